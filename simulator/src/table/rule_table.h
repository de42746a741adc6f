#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "table/signals.h"

namespace remy {

// The units in which rules speak: milliseconds and packets, or the sender's own measured scale
// (docs/explanation/scale-free-rules.md). Scale-free rules look up the same axes as
// ratios (docs/reference/signals.md), and age in place of rec_ewma itself. Senders that remember
// begin an on period with the rate of the last.
enum class Rules : std::uint8_t { kAbsolute = 1, kScaleFree = 2, kScaleFreeRemembering = 3 };

constexpr bool is_scale_free(Rules rules) { return rules != Rules::kAbsolute; }

// The signal's name in specs and error messages.
std::string_view signal_name(Signal signal, Rules rules);

// Those of all signals that such rules may look at, as a part of a sentence.
std::string signal_names(Rules rules);

// The shortest decimal text that reads back as the same number, for error messages.
std::string text(double value);

// A point of memory space, indexed by Signal. Times in ms, or as ratios.
using MemoryPoint = std::array<double, kSignals>;

// What a sender does after an ACK (section 4.2):
// window = clamp(int(window * window_multiple + window_increment), 0, 1e6). Of scale-free rules the
// increment is in percent of the packets that the smallest RTT holds at the measured rate, and the
// intersend time a multiple of the measured interval; while nothing is measured, both are absolute.
struct Action {
  double window_multiple = 1;
  double window_increment = 1;
  double intersend_ms = 3;

  friend bool operator==(const Action&, const Action&) = default;
};

// Where an inner node divides its region: below, or at and above, `value`.
struct Threshold {
  Signal signal = Signal::kSendEwma;
  double value = 0;

  friend bool operator==(const Threshold&, const Threshold&) = default;
};

// An inner node (thresholds not empty, 2^k children follow in pre-order; child c lies at or above
// thresholds[j] exactly when bit j of c is set) or a rule (no thresholds).
struct Node {
  std::vector<Threshold> thresholds;
  Action action;

  friend bool operator==(const Node&, const Node&) = default;
};

// A rule's half-open box: lower <= memory < upper on every axis.
struct Region {
  MemoryPoint lower{};
  MemoryPoint upper{};
};

// One sentence about what is wrong with a table or with a file that should hold one.
class InvalidTable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A RemyCC: a tree that divides memory space into rules. Rules are numbered in pre-order from 0.
// Immutable but for its actions. Every instance is valid: signals are in axis order, at least one;
// thresholds lie in their node's region (lower <= value < upper) and on signals of the table, each
// signal at most once a node; actions are finite, window_multiple and intersend_ms not negative,
// and of scale-free rules within kLargestRelative, so that what they come to is a number. A
// threshold on the lower bound leaves the regions below it empty: their rules are never used. The
// published tables of 2013 have such rules.
class RuleTable {
 public:
  static constexpr double kDefaultDomainUpper = 163840;
  static constexpr std::size_t kMaximumRules = 1'000'000;
  static constexpr std::size_t kMaximumDepth = 64;
  static constexpr double kLargestRelative = 1e9;

  // Throws InvalidTable.
  RuleTable(std::vector<Signal> signals, std::vector<Node> preorder,
            double domain_upper = kDefaultDomainUpper, Rules rules = Rules::kAbsolute);

  // One rule for all of memory space.
  static RuleTable single_rule(std::vector<Signal> signals, const Action& action,
                               double domain_upper = kDefaultDomainUpper);

  std::span<const Signal> signals() const { return signals_; }
  // Whether it may look at others than the usual signals.
  bool has_more_signals() const { return axis_of(signals_.back()) >= kUsualSignals; }
  std::span<const Node> nodes() const { return nodes_; }
  double domain_upper() const { return domain_upper_; }
  Rules rules() const { return rules_; }

  std::size_t rule_count() const { return rule_nodes_.size(); }
  const Action& action(std::size_t rule) const { return nodes_[rule_nodes_[rule]].action; }
  // Throws InvalidTable if the action is not finite or negative where it must not be.
  void set_action(std::size_t rule, const Action& action);
  const Region& region(std::size_t rule) const { return regions_[rule]; }

  // The rule for a memory value; values outside the domain are clamped to it. The slow, obvious
  // look-up that CompiledTable is tested against.
  std::size_t find(const MemoryPoint& memory) const;

  // The table with one rule divided at the thresholds; its children take its action.
  // Throws InvalidTable if there is no threshold or one does not lie strictly inside the rule's
  // region, and as the constructor does.
  RuleTable split(std::size_t rule, std::span<const Threshold> thresholds) const;

  friend bool operator==(const RuleTable&, const RuleTable&);

 private:
  std::vector<Signal> signals_;
  std::vector<Node> nodes_;
  double domain_upper_;
  Rules rules_;
  std::vector<std::size_t> rule_nodes_;
  std::vector<Region> regions_;
};

}  // namespace remy
