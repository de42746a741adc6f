#pragma once

#include <string>
#include <string_view>

#include "table/rule_table.h"

namespace remy {

// A table as a .dna file holds it.
struct DnaFile {
  RuleTable table;
  // The encoded fields 4 (config), 5 (optimizer) and 6 (configvector) of the outermost message, in
  // the order of the file; written back as they are.
  std::string metadata;
};

// Reads the Protocol Buffers wire format of the reference tool (message WhiskerTree). Accepts the
// trees whose children divide their parent at one threshold a signal, in any order. Where they do
// so only without their empty cells (of zero width on a signal, as medians at a lower edge leave
// them), those are dropped: bounds are half-open, so that nothing falls into them. If the root's
// bounds differ by signal, the largest is the domain's: memory beyond a bound is clamped to it, so
// that no look-up changes.
//
// The file does not tell its unit of time: it is `time_unit_ms`. Throws InvalidTable with one
// sentence that says what is wrong and where.
DnaFile read_dna(std::string_view bytes, double time_unit_ms = 1);

// The inverse, in ms. Throws InvalidTable if a window increment is not an integer of 32 bits, which
// is all that the format holds.
std::string write_dna(const RuleTable& table, std::string_view metadata = {});

}  // namespace remy
