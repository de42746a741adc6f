#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace remy {

// A figure of docs/reference/protocols.md's tables, which scripts/protocol_reference.py fills from
// a report of these tests: ours, and in parentheses the one that it is held to.
inline void record_measured(const std::string& table, const std::string& row,
                            const std::string& column, double ours, double theirs) {
  char cell[64];
  std::snprintf(cell, sizeof cell, "%.4g (%.5g)", ours, theirs);
  testing::Test::RecordProperty("measured/" + table + "/" + row + "/" + column, cell);
}

}  // namespace remy
