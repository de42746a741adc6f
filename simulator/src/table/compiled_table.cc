#include "table/compiled_table.h"

#include <algorithm>
#include <limits>

namespace remy {
namespace {

// An inner node on the path of a pre-order walk.
struct OpenNode {
  std::size_t node_index;
  const std::vector<Threshold>* thresholds;
  unsigned next_child;
};

std::size_t orthant_of(const OpenNode& parent) {
  std::size_t orthant = 0;
  for (std::size_t j = 0; j < parent.thresholds->size(); ++j) {
    orthant |= std::size_t{parent.next_child >> j & 1U}
               << static_cast<std::size_t>((*parent.thresholds)[j].signal);
  }
  return orthant;
}

// The value that memory is compared with. Nothing lies below the domain, to which memory is
// clamped.
double lowest_at_or_above(double threshold) {
  return threshold > 0 ? threshold : -std::numeric_limits<double>::infinity();
}

}  // namespace

CompiledTable::CompiledTable(const RuleTable& table)
    : rules_(table.rules()),
      looks_at_age_(is_scale_free(table.rules()) &&
                    std::ranges::find(table.signals(), Signal::kRecEwma) != table.signals().end()),
      has_extended_signals_(table.has_extended_signals()),
      path_(table.path()) {
  for (const Signal signal : table.signals()) {
    looks_at_[axis_of(signal)] = true;
  }
  actions_.reserve(table.rule_count());
  if (table.has_extended_signals()) {
    compile_extended(table);
  } else {
    compile_basic(table);
  }
}

void CompiledTable::compile_basic(const RuleTable& table) {
  std::vector<OpenNode> path;
  for (const Node& node : table.nodes()) {
    const bool is_rule = node.thresholds.empty();
    if (!path.empty()) {
      OpenNode& parent = path.back();
      basic_nodes_[parent.node_index].children[orthant_of(parent)] =
          is_rule ? ~static_cast<std::int32_t>(actions_.size())
                  : static_cast<std::int32_t>(basic_nodes_.size() * sizeof(BasicNode));
      if (++parent.next_child == 1U << parent.thresholds->size()) {
        path.pop_back();
      }
    }
    if (is_rule) {
      actions_.push_back(node.action);
      continue;
    }
    path.push_back({basic_nodes_.size(), &node.thresholds, 0});
    add_basic_node(node.thresholds);
  }
  if (basic_nodes_.empty()) {
    add_basic_node({});
    basic_nodes_.front().children[0] = ~0;
  }
}

void CompiledTable::compile_extended(const RuleTable& table) {
  std::vector<OpenNode> path;
  for (const Node& node : table.nodes()) {
    const bool is_rule = node.thresholds.empty();
    if (!path.empty()) {
      OpenNode& parent = path.back();
      children_[extended_nodes_[parent.node_index].first_child + parent.next_child] =
          is_rule ? ~static_cast<std::int32_t>(actions_.size())
                  : static_cast<std::int32_t>(extended_nodes_.size());
      if (++parent.next_child == 1U << parent.thresholds->size()) {
        path.pop_back();
      }
    }
    if (is_rule) {
      actions_.push_back(node.action);
      continue;
    }
    path.push_back({extended_nodes_.size(), &node.thresholds, 0});
    extended_nodes_.push_back({thresholds_.size(), node.thresholds.size(), children_.size()});
    children_.resize(children_.size() + (std::size_t{1} << node.thresholds.size()));
    for (const Threshold& threshold : node.thresholds) {
      thresholds_.push_back({threshold.signal, lowest_at_or_above(threshold.value)});
    }
  }
  if (extended_nodes_.empty()) {
    extended_nodes_.push_back({0, 0, 0});
    children_.push_back(~0);
  }
}

void CompiledTable::add_basic_node(const std::vector<Threshold>& thresholds) {
  BasicNode added{};
  // Comparisons with NaN are false.
  added.thresholds.fill(std::numeric_limits<double>::quiet_NaN());
  for (const Threshold& threshold : thresholds) {
    added.thresholds[static_cast<std::size_t>(threshold.signal)] =
        lowest_at_or_above(threshold.value);
  }
  basic_nodes_.push_back(added);
}

}  // namespace remy
