#include "table/dna.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "table/dna_messages.h"
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
constexpr std::size_t kMaximumChildren = std::size_t{1} << dna::kAxes;

bool is_metadata(const wire::Field& field) {
  return field.number >= kConfig && field.number <= kConfigVector;
}

// A WhiskerTree whose children are not decoded yet.
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
        refuse(place, "has more than 64 children, the most allowed");
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

// The factor for values of a signal: unit_ms for times, else 1.
double unit_factor(Signal signal, double unit_ms) {
  return kSignalAxes[axis_of(signal)].absolute.unit == "ms" ? unit_ms : 1;
}

// Converts the nodes' times to ms.
std::vector<Node> to_ms(std::vector<Node> nodes, double unit_ms) {
  for (Node& node : nodes) {
    for (Threshold& threshold : node.thresholds) {
      threshold.value *= unit_factor(threshold.signal, unit_ms);
    }
    if (node.thresholds.empty()) {
      node.action.intersend_ms *= unit_ms;
    }
  }
  return nodes;
}

// The thresholds at which the children of a node divide its domain.
struct Division {
  // In the order for which the children's file order is that of Node, if there is one; otherwise in
  // axis order.
  std::vector<Threshold> thresholds;
  // order[c] is the index in the file of child c in the order of Node.
  std::vector<std::size_t> order;
};

using Thresholds = std::array<std::optional<double>, dna::kAxes>;

// Returns the threshold at which the children divide an axis. If one side is empty, lower bounds do
// not show it, so the upper bounds of all children are checked, too.
std::optional<double> find_threshold(const MemoryRange& parent,
                                     std::span<const MemoryRange> children, std::size_t axis) {
  for (const MemoryRange& child : children) {
    if (child.upper[axis] != parent.upper[axis]) {
      return child.upper[axis];
    }
    if (child.lower[axis] != parent.lower[axis]) {
      return child.lower[axis];
    }
  }
  return std::nullopt;
}

void check_threshold(const MemoryRange& parent, std::size_t axis, double value, const Place& node) {
  const std::string division =
      "is divided on " + std::string(dna::axis_name(axis)) + " at " + text(value);
  if (!parent.active[axis]) {
    refuse(node, division + ", which is not one of its active axes");
  }
  if (!(parent.lower[axis] <= value && value < parent.upper[axis])) {
    refuse(node, division + "; the threshold must be at least " + text(parent.lower[axis]) +
                     " and below " + text(parent.upper[axis]) + ", the bounds of its domain");
  }
}

// Returns on which side of each threshold the child lies, as bits by axis.
unsigned orthant_of(const MemoryRange& parent, const MemoryRange& child,
                    const Thresholds& thresholds, const Place& place) {
  unsigned orthant = 0;
  for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
    if (!thresholds[axis]) {
      continue;
    }
    const double threshold = *thresholds[axis];
    if (child.lower[axis] == threshold && child.upper[axis] == parent.upper[axis]) {
      orthant |= 1U << axis;
    } else if (child.lower[axis] != parent.lower[axis] || child.upper[axis] != threshold) {
      refuse(place, "goes from " + text(child.lower[axis]) + " to " + text(child.upper[axis]) +
                        " on " + std::string(dna::axis_name(axis)) + "; it must go from " +
                        text(parent.lower[axis]) + " to " + text(threshold) + " or from " +
                        text(threshold) + " to " + text(parent.upper[axis]) +
                        ", so that the children neither overlap nor leave gaps");
    }
  }
  return orthant;
}

// Returns the axes in the order in which the children's file order counts through the orthants in
// binary; in axis order if there is none.
std::vector<std::size_t> order_axes(std::span<const unsigned> orthants,
                                    const Thresholds& thresholds) {
  std::vector<std::size_t> in_file_order;
  for (std::size_t child = 0; child < orthants.size(); ++child) {
    unsigned expected = 0;
    for (std::size_t j = 0; j < in_file_order.size(); ++j) {
      expected |= static_cast<unsigned>(child >> j & 1U) << in_file_order[j];
    }
    if (std::has_single_bit(child) && std::has_single_bit(orthants[child])) {
      in_file_order.push_back(static_cast<std::size_t>(std::countr_zero(orthants[child])));
    } else if (orthants[child] != expected) {
      in_file_order.clear();
      break;
    }
  }
  if (!in_file_order.empty()) {
    return in_file_order;
  }
  std::vector<std::size_t> in_axis_order;
  for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
    if (thresholds[axis]) {
      in_axis_order.push_back(axis);
    }
  }
  return in_axis_order;
}

// Recovers the thresholds from the children's domains. `node` is the path of the parent. Throws
// InvalidTable unless the children divide it at one threshold per signal.
Division divide(const MemoryRange& parent, std::span<const MemoryRange> children,
                const Place& node) {
  Thresholds thresholds;
  std::size_t divided = 0;
  for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
    thresholds[axis] = find_threshold(parent, children, axis);
    if (thresholds[axis]) {
      check_threshold(parent, axis, *thresholds[axis], node);
      ++divided;
    }
  }
  if (divided == 0) {
    refuse(node, "is divided into children that all have its own domain; they must divide it");
  }
  const std::size_t child_count = std::size_t{1} << divided;
  if (children.size() != child_count) {
    refuse(node, "is divided on " + std::to_string(divided) + (divided == 1 ? " axis" : " axes") +
                     " but not into " + std::to_string(child_count) +
                     " children, one for each "
                     "combination of sides; it has " +
                     std::to_string(children.size()));
  }

  std::vector<unsigned> orthants;
  std::array<std::optional<std::size_t>, 1U << dna::kAxes> child_by_orthant;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Place child{&node, "children", i};
    orthants.push_back(orthant_of(parent, children[i], thresholds, child));
    std::optional<std::size_t>& same = child_by_orthant[orthants.back()];
    if (same) {
      refuse(child, "has the same domain as the child with index " + std::to_string(*same) +
                        "; the children of a node must not overlap");
    }
    same = i;
  }

  Division division;
  const std::vector<std::size_t> axes = order_axes(orthants, thresholds);
  for (const std::size_t axis : axes) {
    division.thresholds.push_back({static_cast<Signal>(axis), *thresholds[axis]});
  }
  for (std::size_t c = 0; c < child_count; ++c) {
    std::size_t orthant = 0;
    for (std::size_t j = 0; j < axes.size(); ++j) {
      orthant |= (c >> j & 1U) << axes[j];
    }
    division.order.push_back(*child_by_orthant[orthant]);
  }
  return division;
}

// Converts the tree of a file to nodes in pre-order.
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
    Division division = divide_without_empty(node.domain, domains, kept, place);
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

  // Files without a list of axes predate it: they have the three signals of the paper, and the
  // fourth if a node splits on it.
  std::vector<Signal> signals(const MemoryRange& root) const {
    std::vector<Signal> signals;
    for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
      const auto signal = static_cast<Signal>(axis);
      const bool used = signal < Signal::kSlowRecEwma || divided_[axis];
      if (root.lists_active ? root.active[axis] : used) {
        signals.push_back(signal);
      }
    }
    return signals;
  }

 private:
  // Returns true if the child is an empty cell of its parent.
  static bool is_empty(const MemoryRange& child, const MemoryRange& parent) {
    bool is_empty = false;
    for (std::size_t axis = 0; axis < dna::kAxes; ++axis) {
      if (child.lower[axis] < parent.lower[axis] || child.upper[axis] > parent.upper[axis]) {
        return false;
      }
      is_empty = is_empty || (child.active[axis] && child.lower[axis] == child.upper[axis]);
    }
    return is_empty;
  }

  // Returns how the kept children (all, or all non-empty ones) divide their parent. A single child
  // that covers its parent gives no division.
  static Division divide_without_empty(const MemoryRange& parent,
                                       std::span<const MemoryRange> children,
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
      return divide(parent, children, place);
    }
    try {
      Division division = divide(parent, children, place);
      kept.resize(children.size());
      std::iota(kept.begin(), kept.end(), std::size_t{0});
      return division;
    } catch (const InvalidTable& problem) {
      if (domains.size() == 1 && domains.front() == parent) {
        return {};
      }
      try {
        return divide(parent, domains, place);
      } catch (const InvalidTable&) {
        throw problem;  // its message counts children as in the file
      }
    }
  }

  std::vector<Node> nodes_;
  std::array<bool, dna::kAxes> divided_{};
};

// Returns the largest upper bound of the root.
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
    const double upper = root.upper[axis_of(signal)];
    if (!(upper > 0)) {
      refuse(place, "has the upper bound 0 on " + std::string(dna::axis_name(axis_of(signal))) +
                        "; it must be above 0");
    }
    domain_upper = std::max(domain_upper, upper * unit_factor(signal, unit_ms));
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

// Encodes the table's nodes in pre-order.
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
      (above ? region.lower : region.upper)[axis_of(signal)] = value;
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
  return {RuleTable(std::move(signals), to_ms(reader.take_nodes(), time_unit_ms), domain_upper),
          read_metadata(bytes)};
}

std::string write_dna(const RuleTable& table, std::string_view metadata) {
  if (table.rules() != Rules::kAbsolute) {
    throw InvalidTable(
        "its rules are scale-free, but a .dna file can hold only absolute rules; keep it as .json");
  }
  if (const Signal last = table.signals().back(); axis_of(last) >= dna::kAxes) {
    throw InvalidTable("it looks at " + std::string(signal_name(last, table.rules())) +
                       ", but the .dna format does not have this signal; keep it as .json");
  }
  if (table.path().has_value()) {
    throw InvalidTable(
        "it has a path model, which a .dna file cannot hold; keep it as .json, or write its rules "
        "alone (--rules-alone, or Table.without_path_model)");
  }
  check_metadata(metadata);
  Region everything;
  everything.upper.fill(table.domain_upper());
  std::string message = TreeWriter(table).write(everything);
  message.append(metadata);
  return message;
}

}  // namespace remy
