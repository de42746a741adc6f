#pragma once

#include <string>
#include <string_view>

#include "table/rule_table.h"

namespace remy {

// Serializes a table as remy_farm.v1.RuleTable, without .dna metadata. The search sends tables to
// its evaluators in this form at every step.
std::string write_message(const RuleTable& table);

// Parses a serialized remy_farm.v1.RuleTable. Throws InvalidTable.
RuleTable read_message(std::string_view message);

}  // namespace remy
