#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace remy {

// Reports a measured value for the tables of docs/reference/protocols.md, which
// scripts/protocol_reference.py fills from a report of these tests: our value, and in parentheses
// the reference value.
inline void record_measured(const std::string& table, const std::string& row,
                            const std::string& column, double ours, double theirs) {
  char cell[64];
  std::snprintf(cell, sizeof cell, "%.4g (%.5g)", ours, theirs);
  testing::Test::RecordProperty("measured/" + table + "/" + row + "/" + column, cell);
}

}  // namespace remy
