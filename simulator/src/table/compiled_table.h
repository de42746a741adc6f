#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "table/rule_table.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remy {

// A rule table in a layout for fast look-up: one load and one branch per level, for any number of
// signals.
class CompiledTable {
 public:
  CompiledTable(const RuleTable& table);  // implicit conversion

  // Returns the rule for a memory value. For tables without extended signals. `memory` is 16-byte
  // aligned and indexed by Signal. Values outside the domain match the rule at its border, since
  // only thresholds are compared.
  std::uint32_t find(const double* memory) const {
    const auto* const nodes = reinterpret_cast<const std::byte*>(basic_nodes_.data());
    std::int64_t node = 0;
#if defined(__SSE2__)
    const __m128d first = _mm_load_pd(memory);
    const __m128d second = _mm_load_pd(memory + 2);
    do {
      const BasicNode& basic = *reinterpret_cast<const BasicNode*>(nodes + node);
      const __m128d a = _mm_cmple_pd(_mm_load_pd(basic.thresholds.data()), first);
      const __m128d b = _mm_cmple_pd(_mm_load_pd(basic.thresholds.data() + 2), second);
      const int orthant = _mm_movemask_ps(_mm_shuffle_ps(_mm_castpd_ps(a), _mm_castpd_ps(b), 0x88));
      node = basic.children[static_cast<std::size_t>(orthant)];
    } while (node >= 0);
#else
    do {
      const BasicNode& basic = *reinterpret_cast<const BasicNode*>(nodes + node);
      unsigned orthant = 0;
      for (std::size_t axis = 0; axis < kBasicSignals; ++axis) {
        orthant |= static_cast<unsigned>(basic.thresholds[axis] <= memory[axis]) << axis;
      }
      node = basic.children[orthant];
    } while (node >= 0);
#endif
    return static_cast<std::uint32_t>(~node);
  }

  // Returns the rule for a memory value, for any table.
  std::uint32_t find_extended(const double* memory) const {
    if (!has_extended_signals()) {
      return find(memory);
    }
    std::int32_t node = 0;
    do {
      const ExtendedNode& extended = extended_nodes_[static_cast<std::size_t>(node)];
      std::size_t child = extended.first_child;
      for (std::size_t j = 0; j < extended.count; ++j) {
        const Threshold& threshold = thresholds_[extended.first_threshold + j];
        child += std::size_t{threshold.value <= memory[static_cast<std::size_t>(threshold.signal)]}
                 << j;
      }
      node = children_[child];
    } while (node >= 0);
    return static_cast<std::uint32_t>(~node);
  }

  // Returns true if the table has signals other than the basic ones.
  bool has_extended_signals() const { return has_extended_signals_; }
  bool looks_at(Signal signal) const { return looks_at_[axis_of(signal)]; }
  const Action& action(std::uint32_t rule) const { return actions_[rule]; }
  void set_action(std::uint32_t rule, const Action& action) { actions_[rule] = action; }
  std::size_t rule_count() const { return actions_.size(); }
  Rules rules() const { return rules_; }
  // nullopt: senders have no path model.
  const std::optional<PathSettings>& path() const { return path_; }
  // Returns true for scale-free rules that look at the age.
  bool looks_at_age() const { return looks_at_age_; }

 private:
  // An inner node over the basic signals. Its children, by orthant (bit s is set at or above the
  // threshold of signal s), are inner nodes (byte offset, not negative) or rules (complement of the
  // rule number). The threshold of a signal without a split is NaN.
  struct alignas(32) BasicNode {
    std::array<double, kBasicSignals> thresholds;
    std::array<std::int32_t, std::size_t{1} << kBasicSignals> children;
  };

  // An inner node of a table with extended signals. It refers to its thresholds and children in
  // common lists. Children are by orthant in the order of the thresholds: the number of an inner
  // node, or the complement of a rule number.
  struct ExtendedNode {
    std::size_t first_threshold;
    std::size_t count;
    std::size_t first_child;
  };

  void compile_basic(const RuleTable& table);
  void compile_extended(const RuleTable& table);
  void add_basic_node(const std::vector<Threshold>& thresholds);

  // The root is first, and exists even if there is only one rule.
  std::vector<BasicNode> basic_nodes_;
  std::vector<Action> actions_;
  Rules rules_;
  bool looks_at_age_;
  bool has_extended_signals_;
  std::array<bool, kSignals> looks_at_{};
  std::optional<PathSettings> path_;
  // Replaces basic_nodes_ in tables with extended signals.
  std::vector<ExtendedNode> extended_nodes_;
  std::vector<Threshold> thresholds_;
  std::vector<std::int32_t> children_;
};

}  // namespace remy
