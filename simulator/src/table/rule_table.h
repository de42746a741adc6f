#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "table/path_settings.h"
#include "table/signals.h"

namespace remy {

// The kind of a table's rules, which determines the units of thresholds and actions. Absolute rules
// use milliseconds and packets. Scale-free rules use the sender's own measured scale
// (docs/explanation/scale-free-rules.md): they look up the same axes as ratios
// (docs/reference/signals.md), and age in place of rec_ewma. Senders with remembering rules start
// an on period with the rate of the previous one.
enum class Rules : std::uint8_t { kAbsolute = 1, kScaleFree = 2, kScaleFreeRemembering = 3 };

constexpr bool is_scale_free(Rules rules) { return rules != Rules::kAbsolute; }

// The signal's name in specifications and error messages.
std::string_view signal_name(Signal signal, Rules rules);

// The names of all signals of such rules, joined by commas.
std::string signal_names(Rules rules);

// The shortest decimal text that parses to the same number, for error messages.
std::string text(double value);

// A point in memory space, indexed by Signal. Times are in ms, or ratios.
using MemoryPoint = std::array<double, kSignals>;

// What a sender does after an ACK (TCP ex Machina, section 4.2):
//     window = clamp(int(window * window_multiple + window_increment), 0, 1e6).
// In scale-free rules the increment is a percentage of the BDP (smallest RTT times measured rate),
// and the intersend time is a multiple of the measured interval. Both are absolute until something
// is measured.
struct Action {
  double window_multiple = 1;
  double window_increment = 1;
  double intersend_ms = 3;

  friend bool operator==(const Action&, const Action&) = default;
};

// A split of an inner node's region into the parts below `value`, and at or above it.
struct Threshold {
  Signal signal = Signal::kSendEwma;
  double value = 0;

  friend bool operator==(const Threshold&, const Threshold&) = default;
};

// A node of the tree: a rule (no thresholds), or an inner node with k thresholds, whose 2^k
// children follow in pre-order. Child c is at or above thresholds[j] if and only if bit j of c is
// set.
struct Node {
  std::vector<Threshold> thresholds;
  Action action;

  friend bool operator==(const Node&, const Node&) = default;
};

// The half-open box of a rule: lower <= memory < upper on every axis.
struct Region {
  MemoryPoint lower{};
  MemoryPoint upper{};
};

// A table, or a file that should contain one, is invalid. The message is one sentence.
class InvalidTable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A RemyCC: a tree that divides memory space into rules, numbered in pre-order from 0. Only its
// actions can change.
//
// Every instance is valid. Its signals are in axis order, at least one. Thresholds are inside their
// node's region (lower <= value < upper) and on signals of the table, each signal at most once per
// node. Actions are finite, window_multiple and intersend_ms are not negative, and those of
// scale-free rules are at most kMaxRelative, so that results are finite. A threshold on the lower
// bound leaves the regions below it empty, and their rules are never used; the published tables of
// 2013 have such rules. The constants of a path model are in their ranges (kPathFields), and the
// table then has basic signals only.
class RuleTable {
 public:
  static constexpr double kDefaultDomainUpper = 163840;
  static constexpr std::size_t kMaximumRules = 1'000'000;
  static constexpr std::size_t kMaximumDepth = 64;
  static constexpr double kMaxRelative = 1e9;

  // Throws InvalidTable.
  RuleTable(std::vector<Signal> signals, std::vector<Node> preorder,
            double domain_upper = kDefaultDomainUpper, Rules rules = Rules::kAbsolute,
            const std::optional<PathSettings>& path = {});

  // Returns the table with another path model, or with none. Throws InvalidTable.
  RuleTable with_path(const std::optional<PathSettings>& path) const {
    return {signals_, nodes_, domain_upper_, rules_, path};
  }

  // Makes a table with one rule for all of memory space.
  static RuleTable single_rule(std::vector<Signal> signals, const Action& action,
                               double domain_upper = kDefaultDomainUpper);

  std::span<const Signal> signals() const { return signals_; }
  // Returns true if the table has signals other than the basic ones.
  bool has_extended_signals() const { return axis_of(signals_.back()) >= kBasicSignals; }
  std::span<const Node> nodes() const { return nodes_; }
  double domain_upper() const { return domain_upper_; }
  Rules rules() const { return rules_; }
  // Constants of the path model; nullopt: senders have none, as in Remy.
  const std::optional<PathSettings>& path() const { return path_; }

  std::size_t rule_count() const { return rule_nodes_.size(); }
  const Action& action(std::size_t rule) const { return nodes_[rule_nodes_[rule]].action; }
  // Throws InvalidTable if the action is not finite, or negative where it must not be.
  void set_action(std::size_t rule, const Action& action);
  const Region& region(std::size_t rule) const { return regions_[rule]; }

  // Returns the rule for a memory value. Values outside the domain are clamped to it. A linear
  // search, as the reference for testing CompiledTable.
  std::size_t find(const MemoryPoint& memory) const;

  // Returns the table with one rule split at the thresholds; the children take its action. Throws
  // InvalidTable if there is no threshold, one is not strictly inside the rule's region, or the
  // result is invalid.
  RuleTable split(std::size_t rule, std::span<const Threshold> thresholds) const;

  friend bool operator==(const RuleTable&, const RuleTable&);

 private:
  std::vector<Signal> signals_;
  std::vector<Node> nodes_;
  double domain_upper_;
  Rules rules_;
  std::optional<PathSettings> path_;
  std::vector<std::size_t> rule_nodes_;
  std::vector<Region> regions_;
};

}  // namespace remy
