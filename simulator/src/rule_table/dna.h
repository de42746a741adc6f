#pragma once

#include <string>
#include <string_view>

#include "rule_table/rule_table.h"

namespace remy {

// A table as a .dna file holds it.
struct DnaFile {
  RuleTable table;
  // The encoded fields 4 (config), 5 (optimizer) and 6 (configvector) of the outermost message, in
  // the order of the file; written back as they are.
  std::string metadata;
};

// Reads the Protocol Buffers wire format of the reference tool (message WhiskerTree). Accepts
// exactly the trees whose children divide their parent at one threshold a signal (all that the
// reference tool makes), in any order. Throws InvalidTable with one sentence that says what is
// wrong and where.
DnaFile read_dna(std::string_view bytes);

// The inverse: read_dna(write_dna(x)) == x where every window increment is integral. Increments are
// written rounded to the nearest integer (ties to even).
std::string write_dna(const RuleTable& table, std::string_view metadata = {});

}  // namespace remy
