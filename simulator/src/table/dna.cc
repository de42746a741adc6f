#include "table/dna.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "table/dna_division.h"
#include "table/dna_messages.h"
#include "table/text.h"
#include "table/wire.h"

namespace remy {
namespace {

using dna::MemoryRange;
using dna::Place;
using dna::refuse;

enum WhiskerTreeField : std::uint32_t {
  kDomain = 1,
  kChildren = 2,
  kLeaf = 3,
  kConfig = 4,
  kConfigVector = 6,
};
constexpr std::size_t kMaximumChildren = std::size_t{1} << kSignals;

bool is_metadata(const wire::Field& field) {
  return field.number >= kConfig && field.number <= kConfigVector;
}

// A WhiskerTree whose children are still encoded.
struct EncodedNode {
  MemoryRange domain;
  std::vector<std::string_view> children;
  std::optional<std::string_view> leaf;
};

EncodedNode open_node(std::string_view message, const Place& place) {
  EncodedNode node;
  dna::Once once;
  dna::for_each_field(message, place, [&](const wire::Field& field) {
    if (field.number == kDomain) {
      const Place domain{&place, "domain"};
      once(field, domain);
      node.domain = dna::decode_memory_range(dna::bytes_of(field, domain), domain);
    } else if (field.number == kChildren) {
      if (node.children.size() == kMaximumChildren) {
        refuse(place, "has more than 16 children, the most allowed");
      }
      node.children.push_back(dna::bytes_of(field, {&place, "children", node.children.size()}));
    } else if (field.number == kLeaf) {
      const Place leaf{&place, "leaf"};
      once(field, leaf);
      node.leaf = dna::bytes_of(field, leaf);
    }
  });
  if (node.children.empty() == !node.leaf.has_value()) {
    refuse(place, node.leaf ? "has both children and a leaf; a node must have one of them"
                            : "has neither children nor a leaf; a node must have one of them");
  }
  return node;
}

// What multiplies values on a signal: rtt_ratio has no unit.
double unit_of(Signal signal, double unit_ms) { return signal == Signal::kRttRatio ? 1 : unit_ms; }

// The nodes with times in ms.
std::vector<Node> in_ms(std::vector<Node> nodes, double unit_ms) {
  for (Node& node : nodes) {
    for (Threshold& threshold : node.thresholds) {
      threshold.value *= unit_of(threshold.signal, unit_ms);
    }
    if (node.thresholds.empty()) {
      node.action.intersend_ms *= unit_ms;
    }
  }
  return nodes;
}

// Turns the tree of the file into nodes in pre-order.
class TreeReader {
 public:
  void read(const EncodedNode& node, const Place& place, std::size_t depth) {
    if (node.leaf) {
      nodes_.push_back({{}, dna::decode_whisker(*node.leaf, node.domain, {&place, "leaf"})});
      return;
    }
    if (depth == RuleTable::kMaximumDepth) {
      refuse(place, "has children more than " + std::to_string(RuleTable::kMaximumDepth) +
                        " levels below the root, the most allowed");
    }
    std::vector<EncodedNode> children;
    std::vector<MemoryRange> domains;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const Place child{&place, "children", i};
      children.push_back(open_node(node.children[i], child));
      domains.push_back(children.back().domain);
      if (domains.back().active != node.domain.active) {
        const Place domain{&child, "domain"};
        refuse({&domain, "active_axis"},
               "lists other axes than the root; they must be the same at every node");
      }
    }
    std::vector<std::size_t> kept;
    dna::Division division = divide(node.domain, domains, kept, place);
    if (kept.size() == 1) {
      read(children[kept.front()], {&place, "children", kept.front()}, depth + 1);
      return;
    }
    for (const Threshold& threshold : division.thresholds) {
      divided_[static_cast<std::size_t>(threshold.signal)] = true;
    }
    nodes_.push_back({std::move(division.thresholds), {}});
    for (const std::size_t i : division.order) {
      read(children[kept[i]], {&place, "children", kept[i]}, depth + 1);
    }
  }

  std::vector<Node> take_nodes() { return std::move(nodes_); }

  // Files that do not list their axes are older than the list: they have the three of the paper,
  // and the fourth where they divide on it.
  std::vector<Signal> signals(const MemoryRange& root) const {
    std::vector<Signal> signals;
    for (std::size_t axis = 0; axis < kSignals; ++axis) {
      const auto signal = static_cast<Signal>(axis);
      const bool used = signal != Signal::kSlowRecEwma || divided_[axis];
      if (root.lists_active ? root.active[axis] : used) {
        signals.push_back(signal);
      }
    }
    return signals;
  }

 private:
  // Whether the child is a cell of its parent into which nothing falls.
  static bool is_empty(const MemoryRange& child, const MemoryRange& parent) {
    bool is_empty = false;
    for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
      if (child.lower[axis] < parent.lower[axis] || child.upper[axis] > parent.upper[axis]) {
        return false;
      }
      is_empty = is_empty ||
                 (axis < kSignals && child.active[axis] && child.lower[axis] == child.upper[axis]);
    }
    return is_empty;
  }

  // How the children that are kept, all or all that are not empty, divide their parent. One that is
  // left alone divides nothing.
  static dna::Division divide(const MemoryRange& parent, std::span<const MemoryRange> children,
                              std::vector<std::size_t>& kept, const Place& place) {
    std::vector<MemoryRange> domains;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (!is_empty(children[i], parent)) {
        kept.push_back(i);
        domains.push_back(children[i]);
      }
    }
    if (kept.empty() || kept.size() == children.size()) {
      kept.resize(children.size());
      std::iota(kept.begin(), kept.end(), std::size_t{0});
      return dna::divide(parent, children, place);
    }
    try {
      dna::Division division = dna::divide(parent, children, place);
      kept.resize(children.size());
      std::iota(kept.begin(), kept.end(), std::size_t{0});
      return division;
    } catch (const InvalidTable& problem) {
      if (domains.size() == 1 && domains.front() == parent) {
        return {};
      }
      try {
        return dna::divide(parent, domains, place);
      } catch (const InvalidTable&) {
        throw problem;  // in which children have the numbers that they have in the file
      }
    }
  }

  std::vector<Node> nodes_;
  std::array<bool, kSignals> divided_{};
};

// The largest of the root's bounds.
double domain_upper_of(const MemoryRange& root, std::span<const Signal> signals, double unit_ms) {
  const Place place;
  for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
    if (root.lower[axis] != 0) {
      refuse(place, "has the lower bound " + text(root.lower[axis]) + " on " +
                        std::string(dna::axis_name(axis)) + "; it must be 0 on every axis");
    }
  }
  double domain_upper = 0;
  for (const Signal signal : signals) {
    const double upper = root.upper[static_cast<std::size_t>(signal)];
    if (!(upper > 0)) {
      refuse(place, "has the upper bound 0 on " +
                        std::string(dna::axis_name(static_cast<std::size_t>(signal))) +
                        "; it must be above 0");
    }
    domain_upper = std::max(domain_upper, upper * unit_of(signal, unit_ms));
  }
  return domain_upper;
}

std::string read_metadata(std::string_view message) {
  const Place root;
  std::string metadata;
  dna::for_each_field(message, root, [&](const wire::Field& field) {
    if (is_metadata(field)) {
      const std::array<std::string_view, 3> names{"config", "optimizer", "configvector"};
      dna::bytes_of(field, {&root, names[field.number - kConfig]});
      metadata.append(field.encoded);
    }
  });
  return metadata;
}

void check_metadata(std::string_view metadata) {
  const auto refuse_metadata = [](const std::string& predicate) {
    throw InvalidTable("The metadata " + predicate + ".");
  };
  while (!metadata.empty()) {
    wire::Field field;
    try {
      field = wire::take_field(metadata);
    } catch (const wire::Malformed& error) {
      refuse_metadata(error.what());
    }
    if (!is_metadata(field) || field.type != wire::Type::kBytes) {
      refuse_metadata("holds field " + std::to_string(field.number) + " with wire type " +
                      std::to_string(static_cast<unsigned>(field.type)) +
                      "; it may hold fields 4, 5 and 6, all with wire type 2");
    }
  }
}

// Writes the table's nodes, each at the place where its turn in pre-order comes.
class TreeWriter {
 public:
  explicit TreeWriter(const RuleTable& table) : table_(table) {}

  std::string write(const Region& region) {
    const Node& node = table_.nodes()[next_node_++];
    const std::string domain = dna::encode_memory_range(region, table_.signals());
    std::string message;
    wire::append_bytes(message, kDomain, domain);
    if (node.thresholds.empty()) {
      wire::append_bytes(message, kLeaf, dna::encode_whisker(node.action, next_rule_++, domain));
      return message;
    }
    for (std::size_t c = 0; c < std::size_t{1} << node.thresholds.size(); ++c) {
      wire::append_bytes(message, kChildren, write(child_region(region, node, c)));
    }
    return message;
  }

 private:
  static Region child_region(Region region, const Node& node, std::size_t child) {
    for (std::size_t j = 0; j < node.thresholds.size(); ++j) {
      const auto& [signal, value] = node.thresholds[j];
      const bool above = (child >> j & 1U) != 0;
      (above ? region.lower : region.upper)[static_cast<std::size_t>(signal)] = value;
    }
    return region;
  }

  const RuleTable& table_;
  std::size_t next_node_ = 0;
  std::size_t next_rule_ = 0;
};

}  // namespace

DnaFile read_dna(std::string_view bytes, double time_unit_ms) {
  if (!(time_unit_ms > 0) || !std::isfinite(time_unit_ms)) {
    throw InvalidTable("The unit of time is " + text(time_unit_ms) +
                       " ms; it must be a finite number above 0.");
  }
  const Place root;
  const EncodedNode node = open_node(bytes, root);
  TreeReader reader;
  reader.read(node, root, 0);
  std::vector<Signal> signals = reader.signals(node.domain);
  const double domain_upper = domain_upper_of(node.domain, signals, time_unit_ms);
  return {RuleTable(std::move(signals), in_ms(reader.take_nodes(), time_unit_ms), domain_upper),
          read_metadata(bytes)};
}

std::string write_dna(const RuleTable& table, std::string_view metadata) {
  check_metadata(metadata);
  Region everything;
  everything.upper.fill(table.domain_upper());
  std::string message = TreeWriter(table).write(everything);
  message.append(metadata);
  return message;
}

}  // namespace remy
