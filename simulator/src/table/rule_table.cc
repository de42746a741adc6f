#include "table/rule_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/requirement.h"

namespace remy {
namespace {

// An inner node on the path of a pre-order walk that still has children to visit.
struct OpenNode {
  const Node* node;
  Region region;
  std::size_t next_child = 0;

  std::size_t child_count() const { return std::size_t{1} << node->thresholds.size(); }

  Region take_child_region() {
    Region child = region;
    for (std::size_t j = 0; j < node->thresholds.size(); ++j) {
      const Threshold& threshold = node->thresholds[j];
      const bool above = ((next_child >> j) & 1U) != 0;
      (above ? child.lower : child.upper)[axis_of(threshold.signal)] = threshold.value;
    }
    ++next_child;
    return child;
  }
};

void check_domain(std::span<const Signal> signals, double domain_upper, Rules rules) {
  if (signals.empty()) {
    refuse<InvalidTable>("The table has no signals; it must have at least one.");
  }
  for (std::size_t i = 0; i < signals.size(); ++i) {
    if (axis_of(signals[i]) >= kSignals) {
      refuse<InvalidTable>("Signal number " + std::to_string(axis_of(signals[i])) +
                           " does not exist; the last is " + std::to_string(kSignals - 1) + ", " +
                           std::string(signal_name(kSignalAxes[kSignals - 1].signal, rules)) + ".");
    }
    if (i > 0 && signals[i] <= signals[i - 1]) {
      refuse<InvalidTable>("Signal " + std::string(signal_name(signals[i], rules)) + " follows " +
                           std::string(signal_name(signals[i - 1], rules)) +
                           "; signals must be listed once each, in the order " +
                           signal_names(rules) + ".");
    }
  }
  if (!std::isfinite(domain_upper) || domain_upper <= 0) {
    refuse<InvalidTable>("The upper end of the domain is " + text(domain_upper) +
                         "; it must be a finite number above 0.");
  }
}

void check_action(std::string_view owner, std::size_t number, const Action& action, Rules rules) {
  const auto refuse_part = [&](std::string_view field, double value, std::string_view allowed) {
    refuse<InvalidTable>(std::string(owner) + " " + std::to_string(number) + " has " +
                         std::string(field) + " " + text(value) + "; it must be a finite number" +
                         std::string(allowed) + ".");
  };
  if (!std::isfinite(action.window_multiple) || action.window_multiple < 0) {
    refuse_part("window_multiple", action.window_multiple, " not below 0");
  }
  if (!std::isfinite(action.window_increment)) {
    refuse_part("window_increment", action.window_increment, "");
  }
  if (!std::isfinite(action.intersend_ms) || action.intersend_ms < 0) {
    refuse_part("intersend_ms", action.intersend_ms, " not below 0");
  }
  if (is_scale_free(rules) && std::max({action.window_multiple, std::abs(action.window_increment),
                                        action.intersend_ms}) > RuleTable::kMaxRelative) {
    refuse<InvalidTable>(std::string(owner) + " " + std::to_string(number) + " has the action " +
                         text(action.window_multiple) + ", " + text(action.window_increment) +
                         ", " + text(action.intersend_ms) +
                         "; no part of a scale-free action may be above 1e9.");
  }
}

void check_thresholds(std::size_t number, const Node& node, const Region& region,
                      std::span<const Signal> signals, Rules rules) {
  const std::string name = "Node " + std::to_string(number);
  for (std::size_t j = 0; j < node.thresholds.size(); ++j) {
    const auto [signal, value] = node.thresholds[j];
    if (std::find(signals.begin(), signals.end(), signal) == signals.end()) {
      const std::string divided_on = axis_of(signal) < kSignals
                                         ? std::string(signal_name(signal, rules))
                                         : "signal number " + std::to_string(axis_of(signal));
      refuse<InvalidTable>(name + " divides on " + divided_on +
                           ", which is not one of the table's signals.");
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (node.thresholds[i].signal == signal) {
        refuse<InvalidTable>(name + " divides on " + std::string(signal_name(signal, rules)) +
                             " twice; a node must divide on each signal at most once.");
      }
    }
    const double lower = region.lower[axis_of(signal)];
    const double upper = region.upper[axis_of(signal)];
    if (!(lower <= value && value < upper)) {
      refuse<InvalidTable>(name + " divides on " + std::string(signal_name(signal, rules)) +
                           " at " + text(value) + "; the threshold must be at least " +
                           text(lower) + " and below " + text(upper) +
                           ", the bounds of its region.");
    }
  }
}

void check_path_model(const PathSettings& settings) {
  for (const PathField& field : kPathFields) {
    const double value = settings.*field.value;
    if (!(field.least <= value && value <= field.most) ||
        (field.exceeds_least && value == field.least)) {
      refuse<InvalidTable>("The path model has " + std::string(field.name) + " " + text(value) +
                           "; it must be " +
                           (field.exceeds_least ? "above " + text(field.least) + " and at most "
                                                : "from " + text(field.least) + " to ") +
                           text(field.most) + ".");
    }
  }
}

}  // namespace

std::string_view signal_name(Signal signal, Rules rules) {
  static constexpr auto kAbsolute =
      by_axis([](const SignalAxis& axis) { return axis.form(false).name; });
  static constexpr auto kScaleFree =
      by_axis([](const SignalAxis& axis) { return axis.form(true).name; });
  return (is_scale_free(rules) ? kScaleFree : kAbsolute)[axis_of(signal)];
}

std::string signal_names(Rules rules) {
  std::string names;
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    names +=
        (names.empty() ? "" : ", ") + std::string(signal_name(static_cast<Signal>(axis), rules));
  }
  return names;
}

std::string text(double value) {
  std::array<char, 32> buffer;
#if defined(__cpp_exceptions)
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : "?";
#else
  // The shortest representation needs tables of 100 kB, too large for a web page.
  std::snprintf(buffer.data(), buffer.size(), "%.15g", value);
  return buffer.data();
#endif
}

RuleTable::RuleTable(std::vector<Signal> signals, std::vector<Node> preorder, double domain_upper,
                     Rules rules, const std::optional<PathSettings>& path_settings)
    : signals_(std::move(signals)),
      nodes_(std::move(preorder)),
      domain_upper_(domain_upper),
      rules_(rules),
      path_(path_settings) {
  check_domain(signals_, domain_upper_, rules_);
  if (path_.has_value()) {
    check_path_model(*path_);
  }
  if (nodes_.empty()) {
    refuse<InvalidTable>("The table has no nodes; it must have at least one rule.");
  }
  Region region;
  region.upper.fill(domain_upper_);
  std::vector<OpenNode> path;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (i > 0) {
      if (path.empty()) {
        refuse<InvalidTable>("Node " + std::to_string(i) +
                             " lies outside the tree, which is complete with the node before it.");
      }
      region = path.back().take_child_region();
    }
    if (node.thresholds.empty()) {
      check_action("Node", i, node.action, rules_);
      if (rule_nodes_.size() == kMaximumRules) {
        refuse<InvalidTable>("The table has more than " + std::to_string(kMaximumRules) +
                             " rules, the most allowed.");
      }
      rule_nodes_.push_back(i);
      regions_.push_back(region);
    } else {
      check_thresholds(i, node, region, signals_, rules_);
      node.action = Action{};
      if (path.size() == kMaximumDepth) {
        refuse<InvalidTable>("The children of node " + std::to_string(i) + " lie more than " +
                             std::to_string(kMaximumDepth) +
                             " levels below the root, the most allowed.");
      }
      path.push_back({&node, region});
    }
    while (!path.empty() && path.back().next_child == path.back().child_count()) {
      path.pop_back();
    }
  }
  if (!path.empty()) {
    const auto number = static_cast<std::size_t>(path.back().node - nodes_.data());
    refuse<InvalidTable>("Node " + std::to_string(number) + " has " +
                         std::to_string(path.back().next_child) + " children; it must have " +
                         std::to_string(path.back().child_count()) +
                         ", one for each combination of sides of its thresholds.");
  }
}

RuleTable RuleTable::single_rule(std::vector<Signal> signals, const Action& action,
                                 double domain_upper) {
  return {std::move(signals), {Node{{}, action}}, domain_upper};
}

void RuleTable::set_action(std::size_t rule, const Action& action) {
  check_action("Rule", rule, action, rules_);
  nodes_[rule_nodes_[rule]].action = action;
}

std::size_t RuleTable::find(const MemoryPoint& memory) const {
  const double last = std::nextafter(domain_upper_, 0.0);
  const auto contains = [&](const Region& region) {
    for (std::size_t axis = 0; axis < kSignals; ++axis) {
      const double value = memory[axis] > 0 ? std::min(memory[axis], last) : 0;
      if (!(region.lower[axis] <= value && value < region.upper[axis])) {
        return false;
      }
    }
    return true;
  };
  const auto found = std::find_if(regions_.begin(), regions_.end(), contains);
  return static_cast<std::size_t>(found - regions_.begin());
}

RuleTable RuleTable::split(std::size_t rule, std::span<const Threshold> thresholds) const {
  if (thresholds.empty()) {
    refuse<InvalidTable>("Rule " + std::to_string(rule) +
                         " cannot be split without a threshold; at least one is needed.");
  }
  const Region& region = regions_[rule];
  for (const Threshold& threshold : thresholds) {
    const std::size_t axis = axis_of(threshold.signal);
    if (axis < kSignals && threshold.value == region.lower[axis]) {
      refuse<InvalidTable>("Rule " + std::to_string(rule) + " cannot be split on " +
                           std::string(signal_name(threshold.signal, rules_)) + " at " +
                           text(threshold.value) +
                           ", the lower bound of its region; the threshold must lie above it.");
    }
  }
  const auto position = static_cast<std::ptrdiff_t>(rule_nodes_[rule]);
  const Action& action = nodes_[rule_nodes_[rule]].action;
  std::vector<Node> nodes(nodes_.begin(), nodes_.begin() + position);
  nodes.push_back({{thresholds.begin(), thresholds.end()}, {}});
  if (thresholds.size() <= kSignals) {
    nodes.insert(nodes.end(), std::size_t{1} << thresholds.size(), Node{{}, action});
  }
  nodes.insert(nodes.end(), nodes_.begin() + position + 1, nodes_.end());
  return {signals_, std::move(nodes), domain_upper_, rules_, path_};
}

bool operator==(const RuleTable& a, const RuleTable& b) {
  return a.domain_upper_ == b.domain_upper_ && a.rules_ == b.rules_ && a.path_ == b.path_ &&
         a.signals_ == b.signals_ && a.nodes_ == b.nodes_;
}

}  // namespace remy
