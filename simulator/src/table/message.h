#pragma once

#include <string>
#include <string_view>

#include "table/rule_table.h"

namespace remy {

// A table as a serialized remy_farm.v1.RuleTable, without what came with it from a .dna file.
// Tables pass from the search to its evaluators at every step.
std::string write_message(const RuleTable& table);

// The inverse. Throws InvalidTable.
RuleTable read_message(std::string_view message);

}  // namespace remy
