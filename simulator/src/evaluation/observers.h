#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "evaluation/memory_summary.h"
#include "table/rule_table.h"

namespace remy {

// Sees nothing.
class NoObserver {
 public:
  template <class Controller>
  void used(std::uint32_t, const Controller&, std::uint32_t) {}
};

// Counts the uses of one table's rules.
class UseCounter {
 public:
  UseCounter(const void* table, std::size_t rules) : table_(table), uses_(rules) {}

  template <class Controller>
  void used(std::uint32_t, const Controller& controller, std::uint32_t rule) {
    if (&controller.table() == table_) {
      ++uses_[rule];
    }
  }

  const std::vector<std::uint64_t>& uses() const { return uses_; }

 private:
  const void* table_;
  std::vector<std::uint64_t> uses_;
};

// Counts the uses of one table's rules, and the memory values that triggered each.
class MemoryRecorder {
 public:
  MemoryRecorder(const void* table, std::size_t rules)
      : table_(table), uses_(rules), summaries_(rules) {}

  template <class Controller>
  void used(std::uint32_t, const Controller& controller, std::uint32_t rule) {
    if (&controller.table() != table_) {
      return;
    }
    ++uses_[rule];
    auto& summary = summaries_[rule];
    if (summary == nullptr) {
      summary = std::make_unique<MemoryCounts>();
    }
    for (std::size_t axis = 0; axis < kSignals; ++axis) {
      summary->add(axis, controller.memory()[axis]);
    }
  }

  const std::vector<std::uint64_t>& uses() const { return uses_; }
  // Null where a rule was not used.
  const std::vector<std::unique_ptr<MemoryCounts>>& summaries() const { return summaries_; }

 private:
  const void* table_;
  std::vector<std::uint64_t> uses_;
  std::vector<std::unique_ptr<MemoryCounts>> summaries_;
};

}  // namespace remy
