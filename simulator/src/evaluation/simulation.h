#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/log_histogram.h"
#include "evaluation/evaluator.h"
#include "evaluation/memory_summary.h"
#include "network/results.h"
#include "table/compiled_table.h"

namespace remy {

// Records nothing.
class NoObserver {
 public:
  static constexpr bool kSeesPackets = false;

  template <class Controller>
  void used(std::uint32_t, const Controller&, std::uint32_t) {}
};

// Counts the uses of one table's rules.
class UseCounter {
 public:
  static constexpr bool kSeesPackets = false;

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

// Counts the uses of one table's rules, and records the distributions of each sender's RTTs and
// flows.
class DistributionRecorder {
 public:
  static constexpr bool kSeesPackets = true;

  // Distributions by sender.
  struct Distributions {
    LogHistogram rtts;
    std::vector<FlowCompletion> flows;
  };

  DistributionRecorder(const void* table, std::size_t rules, std::size_t senders)
      : uses_(table, rules), senders_(senders) {}

  template <class Controller>
  void used(std::uint32_t sender, const Controller& controller, std::uint32_t rule) {
    uses_.used(sender, controller, rule);
  }
  void received(std::uint32_t sender, double rtt_ms) { senders_[sender].rtts.add(rtt_ms); }
  void completed(std::uint32_t sender, const FlowCompletion& flow) {
    senders_[sender].flows.push_back(flow);
  }

  const std::vector<std::uint64_t>& uses() const { return uses_.uses(); }
  std::vector<Distributions>& senders() { return senders_; }

 private:
  UseCounter uses_;
  std::vector<Distributions> senders_;
};

// Counts the uses of one table's rules, and the memory values that triggered each.
class MemoryRecorder {
 public:
  static constexpr bool kSeesPackets = false;

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
      summary = std::make_unique<MemoryCounts>(controller.axes());
    }
    for (std::size_t axis = 0; axis < controller.axes(); ++axis) {
      summary->add(axis, controller.memory()[axis]);
    }
  }

  const std::vector<std::uint64_t>& uses() const { return uses_; }
  // By rule; null for unused rules.
  const std::vector<std::unique_ptr<MemoryCounts>>& summaries() const { return summaries_; }

 private:
  const void* table_;
  std::vector<std::uint64_t> uses_;
  std::vector<std::unique_ptr<MemoryCounts>> summaries_;
};

// Simulates one specimen with senders of one kind of controller. The specimen determines the kinds
// of path and clock. Senders of table 0 use `table` instead. Throws Interrupted.
//
// Each controller is compiled in its own file (composition.h), because there are many combinations
// of path, clock and observer.
template <class Controller, class Observer>
std::vector<SenderResults> run_rules(std::span<const CompiledTable> tables,
                                     const CompiledTable& table, const Specimen& specimen,
                                     double duration_ms, std::uint64_t seed, Observer& observer,
                                     Interruption* interruption);

}  // namespace remy
