#pragma once

#include <string>
#include <string_view>

#include "table/rule_table.h"

namespace remy {

// The content of a .dna file.
struct DnaFile {
  RuleTable table;
  // The encoded fields 4 (config), 5 (optimizer) and 6 (configvector) of the outermost message, in
  // file order. Written back unchanged.
  std::string metadata;
};

// Reads a .dna file of the reference tool (Protocol Buffers message WhiskerTree). Accepts trees in
// which the children of a node divide it at one threshold per signal, in any order. Empty cells (of
// zero width on a signal, as medians at a lower edge produce them) are dropped if the children
// divide their parent only without them: bounds are half-open, so nothing falls into an empty cell.
// If the root's upper bounds differ by signal, the domain has the largest. Memory beyond a bound is
// clamped to it, so no look-up changes.
//
// The file does not record its unit of time, which is `time_unit_ms`. Throws InvalidTable with one
// sentence that says what is wrong and where.
DnaFile read_dna(std::string_view bytes, double time_unit_ms = 1);

// Writes a .dna file with times in ms. Throws InvalidTable if a window increment is not a 32-bit
// integer, as the format requires.
std::string write_dna(const RuleTable& table, std::string_view metadata = {});

}  // namespace remy
