#pragma once

#include <string>

#include "arguments.h"
#include "evaluation/evaluator.h"

namespace remy {

// Both take what one specimen gave, and the CPU time that it took.
std::string json_report(const Arguments& arguments, const Specimen& specimen,
                        const SpecimenOutcome& outcome, double cpu_seconds);
std::string readable_report(const Arguments& arguments, const Specimen& specimen,
                            const SpecimenOutcome& outcome, double cpu_seconds);

}  // namespace remy
