#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluation/evaluator.h"

namespace remy {

// A 64-bit digest, as 16 hexadecimal digits, of every sender's exact results in order. Equal
// results have equal digests; it protects against accidents, not against malice.
std::string digest(const std::vector<SpecimenOutcome>& outcomes);

}  // namespace remy
