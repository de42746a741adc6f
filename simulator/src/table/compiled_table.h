#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "table/rule_table.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remy {

// A rule table laid out for look-up: one load and one branch a level, whatever the signals.
class CompiledTable {
 public:
  CompiledTable(const RuleTable& table);  // implicit: it is the same table

  // The rule for a memory value of a table of the usual signals; `memory` is 16-byte aligned,
  // indexed by Signal. Values outside the domain fall into the rule at its border, because inner
  // nodes are all that is compared with.
  std::uint32_t find(const double* memory) const {
    const auto* const nodes = reinterpret_cast<const std::byte*>(inner_.data());
    std::int64_t node = 0;
#if defined(__SSE2__)
    const __m128d first = _mm_load_pd(memory);
    const __m128d second = _mm_load_pd(memory + 2);
    do {
      const Inner& inner = *reinterpret_cast<const Inner*>(nodes + node);
      const __m128d a = _mm_cmple_pd(_mm_load_pd(inner.thresholds.data()), first);
      const __m128d b = _mm_cmple_pd(_mm_load_pd(inner.thresholds.data() + 2), second);
      const int orthant = _mm_movemask_ps(_mm_shuffle_ps(_mm_castpd_ps(a), _mm_castpd_ps(b), 0x88));
      node = inner.children[static_cast<std::size_t>(orthant)];
    } while (node >= 0);
#else
    do {
      const Inner& inner = *reinterpret_cast<const Inner*>(nodes + node);
      unsigned orthant = 0;
      for (std::size_t axis = 0; axis < kUsualSignals; ++axis) {
        orthant |= static_cast<unsigned>(inner.thresholds[axis] <= memory[axis]) << axis;
      }
      node = inner.children[orthant];
    } while (node >= 0);
#endif
    return static_cast<std::uint32_t>(~node);
  }

  // The same for a table of any signals.
  std::uint32_t find_any(const double* memory) const {
    if (!has_more_signals()) {
      return find(memory);
    }
    std::int32_t node = 0;
    do {
      const Divided& divided = divided_[static_cast<std::size_t>(node)];
      std::size_t child = divided.first_child;
      for (std::size_t j = 0; j < divided.count; ++j) {
        const Threshold& threshold = thresholds_[divided.first_threshold + j];
        child += std::size_t{threshold.value <= memory[static_cast<std::size_t>(threshold.signal)]}
                 << j;
      }
      node = children_[child];
    } while (node >= 0);
    return static_cast<std::uint32_t>(~node);
  }

  bool has_more_signals() const { return !divided_.empty(); }
  const Action& action(std::uint32_t rule) const { return actions_[rule]; }
  void set_action(std::uint32_t rule, const Action& action) { actions_[rule] = action; }
  std::size_t rule_count() const { return actions_.size(); }
  Rules rules() const { return rules_; }
  // Whether it may look at the age, of scale-free rules.
  bool looks_at_age() const { return looks_at_age_; }

 private:
  // Children are inner nodes (their offset in bytes, not negative) or rules (the complement of
  // their number), by orthant: bit s is set at or above the threshold of signal s. Signals not
  // divided on have no number for a threshold.
  struct alignas(32) Inner {
    std::array<double, kUsualSignals> thresholds;
    std::array<std::int32_t, std::size_t{1} << kUsualSignals> children;
  };

  // An inner node of a table that looks at more than the usual signals, by its places in lists of
  // thresholds and of children; those are by orthant, in the order of the thresholds: the number of
  // an inner node, or the complement of a rule's.
  struct Divided {
    std::size_t first_threshold;
    std::size_t count;
    std::size_t first_child;
  };

  void lay_out(const RuleTable& table);
  void lay_out_any(const RuleTable& table);
  void add_inner(const std::vector<Threshold>& thresholds);

  std::vector<Inner> inner_;  // the root first, which is there even if there is only one rule
  std::vector<Action> actions_;
  Rules rules_;
  bool looks_at_age_;
  // Where there are more signals, in place of the above.
  std::vector<Divided> divided_;
  std::vector<Threshold> thresholds_;
  std::vector<std::int32_t> children_;
};

}  // namespace remy
