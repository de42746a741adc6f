#pragma once

#include <cstdint>
#include <span>

#include "evaluation/evaluator.h"
#include "table/compiled_table.h"

namespace remy {

// One candidate on one specimen: picks the simulator that is composed for it and runs it. The
// arguments must have been validated. Throws Interrupted.
SpecimenOutcome simulate(std::span<const CompiledTable> tables, const Candidate& candidate,
                         const Specimen& specimen, double duration_ms, std::uint64_t seed,
                         Recording recording, Interruption* interruption);

}  // namespace remy
