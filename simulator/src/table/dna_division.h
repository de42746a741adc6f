#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "table/dna_messages.h"

namespace remy::dna {

// How the children of a node divide its domain.
struct Division {
  // In the order that makes the children's order in the file that of Node, if there is one;
  // otherwise in axis order.
  std::vector<Threshold> thresholds;
  // order[c] is the place in the file of child c in the order of Node.
  std::vector<std::size_t> order;
};

// Recovers the thresholds from the children's domains. `node` is the place of the parent. Throws
// InvalidTable unless the children divide it at one threshold a signal.
Division divide(const MemoryRange& parent, std::span<const MemoryRange> children,
                const Place& node);

}  // namespace remy::dna
