#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "table/dna.h"

namespace remy {

// What must hold of any bytes: they are refused with a sentence, or read to a table that writes and
// reads back equal. Throws std::logic_error where it does not hold.
inline bool dna_round_trips(std::string_view bytes) {
  try {
    const DnaFile file = read_dna(bytes);
    const std::string written = write_dna(file.table, file.metadata);
    const DnaFile again = read_dna(written);
    if (again.table != file.table || again.metadata != file.metadata) {
      throw std::logic_error("what was read differs after writing and reading again");
    }
    if (write_dna(again.table, again.metadata) != written) {
      throw std::logic_error("the same table is written in two ways");
    }
    return true;
  } catch (const InvalidTable& refusal) {
    if (!std::string_view(refusal.what()).ends_with('.')) {
      throw std::logic_error("the refusal is not a sentence");
    }
    return false;
  }
}

}  // namespace remy
