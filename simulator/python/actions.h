#pragma once

#include <tuple>

#include "table/rule_table.h"

namespace remy {

// An action as Python has it: (window multiple, window increment, intersend in ms).
using ActionTuple = std::tuple<double, double, double>;

inline Action to_action(const ActionTuple& action) {
  return {std::get<0>(action), std::get<1>(action), std::get<2>(action)};
}

inline ActionTuple from_action(const Action& action) {
  return {action.window_multiple, action.window_increment, action.intersend_ms};
}

// As the table numbers them. Throws InvalidTable.
Signal to_signal(std::uint8_t axis);

}  // namespace remy
