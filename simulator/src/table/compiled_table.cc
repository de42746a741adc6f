#include "table/compiled_table.h"

#include <algorithm>
#include <limits>

namespace remy {
namespace {

// An inner node whose children have not all been seen yet, in a walk in pre-order.
struct Open {
  std::size_t inner;
  const std::vector<Threshold>* thresholds;
  unsigned next_child;
};

std::size_t orthant_of(const Open& parent) {
  std::size_t orthant = 0;
  for (std::size_t j = 0; j < parent.thresholds->size(); ++j) {
    orthant |= std::size_t{parent.next_child >> j & 1U}
               << static_cast<std::size_t>((*parent.thresholds)[j].signal);
  }
  return orthant;
}

// What memory is compared with. Nothing lies below the domain, as memory is clamped to it.
double lowest_at_or_above(double threshold) {
  return threshold > 0 ? threshold : -std::numeric_limits<double>::infinity();
}

}  // namespace

CompiledTable::CompiledTable(const RuleTable& table)
    : rules_(table.rules()),
      looks_at_age_(is_scale_free(table.rules()) &&
                    std::ranges::find(table.signals(), Signal::kRecEwma) != table.signals().end()) {
  actions_.reserve(table.rule_count());
  if (table.has_more_signals()) {
    lay_out_any(table);
  } else {
    lay_out(table);
  }
}

void CompiledTable::lay_out(const RuleTable& table) {
  std::vector<Open> path;
  for (const Node& node : table.nodes()) {
    const bool is_rule = node.thresholds.empty();
    if (!path.empty()) {
      Open& parent = path.back();
      inner_[parent.inner].children[orthant_of(parent)] =
          is_rule ? ~static_cast<std::int32_t>(actions_.size())
                  : static_cast<std::int32_t>(inner_.size() * sizeof(Inner));
      if (++parent.next_child == 1U << parent.thresholds->size()) {
        path.pop_back();
      }
    }
    if (is_rule) {
      actions_.push_back(node.action);
      continue;
    }
    path.push_back({inner_.size(), &node.thresholds, 0});
    add_inner(node.thresholds);
  }
  if (inner_.empty()) {
    add_inner({});
    inner_.front().children[0] = ~0;
  }
}

void CompiledTable::lay_out_any(const RuleTable& table) {
  std::vector<Open> path;
  for (const Node& node : table.nodes()) {
    const bool is_rule = node.thresholds.empty();
    if (!path.empty()) {
      Open& parent = path.back();
      children_[divided_[parent.inner].first_child + parent.next_child] =
          is_rule ? ~static_cast<std::int32_t>(actions_.size())
                  : static_cast<std::int32_t>(divided_.size());
      if (++parent.next_child == 1U << parent.thresholds->size()) {
        path.pop_back();
      }
    }
    if (is_rule) {
      actions_.push_back(node.action);
      continue;
    }
    path.push_back({divided_.size(), &node.thresholds, 0});
    divided_.push_back({thresholds_.size(), node.thresholds.size(), children_.size()});
    children_.resize(children_.size() + (std::size_t{1} << node.thresholds.size()));
    for (const Threshold& threshold : node.thresholds) {
      thresholds_.push_back({threshold.signal, lowest_at_or_above(threshold.value)});
    }
  }
  if (divided_.empty()) {
    divided_.push_back({0, 0, 0});
    children_.push_back(~0);
  }
}

void CompiledTable::add_inner(const std::vector<Threshold>& thresholds) {
  Inner inner{};
  // Nothing lies at or above what is not a number.
  inner.thresholds.fill(std::numeric_limits<double>::quiet_NaN());
  for (const Threshold& threshold : thresholds) {
    inner.thresholds[static_cast<std::size_t>(threshold.signal)] =
        lowest_at_or_above(threshold.value);
  }
  inner_.push_back(inner);
}

}  // namespace remy
