#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "table/dna.h"

namespace remy {

// Checks the invariant for any input: read_dna either rejects it with a sentence, or returns a
// table that is equal after writing and reading again. Returns true if it was accepted. Throws
// std::logic_error if the invariant does not hold.
inline bool dna_round_trips(std::string_view bytes) {
  try {
    const DnaFile file = read_dna(bytes);
    const std::string written = write_dna(file.table, file.metadata);
    const DnaFile again = read_dna(written);
    if (again.table != file.table || again.metadata != file.metadata) {
      throw std::logic_error("the table differs after writing and reading it again");
    }
    if (write_dna(again.table, again.metadata) != written) {
      throw std::logic_error("writing the same table twice gives different bytes");
    }
    return true;
  } catch (const InvalidTable& error) {
    if (!std::string_view(error.what()).ends_with('.')) {
      throw std::logic_error("the error message is not a sentence");
    }
    return false;
  }
}

}  // namespace remy
