#include "table/dna_division.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "table/text.h"

namespace remy::dna {
namespace {

using Thresholds = std::array<std::optional<double>, kAxes>;

// Where the children divide the axis. One with an empty side hides in the lower bounds, so that
// every child's upper bound must be looked at too.
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
      "is divided on " + std::string(axis_name(axis)) + " at " + text(value);
  if (axis >= kSignals || !parent.active[axis]) {
    refuse(node, division + ", which is not one of its active axes");
  }
  if (!(parent.lower[axis] <= value && value < parent.upper[axis])) {
    refuse(node, division + "; the threshold must be at least " + text(parent.lower[axis]) +
                     " and below " + text(parent.upper[axis]) + ", the bounds of its domain");
  }
}

// The side of every threshold that the child lies on, as bits by axis.
unsigned orthant_of(const MemoryRange& parent, const MemoryRange& child,
                    const Thresholds& thresholds, const Place& place) {
  unsigned orthant = 0;
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    if (!thresholds[axis]) {
      continue;
    }
    const double threshold = *thresholds[axis];
    if (child.lower[axis] == threshold && child.upper[axis] == parent.upper[axis]) {
      orthant |= 1U << axis;
    } else if (child.lower[axis] != parent.lower[axis] || child.upper[axis] != threshold) {
      refuse(place, "goes from " + text(child.lower[axis]) + " to " + text(child.upper[axis]) +
                        " on " + std::string(axis_name(axis)) + "; it must go from " +
                        text(parent.lower[axis]) + " to " + text(threshold) + " or from " +
                        text(threshold) + " to " + text(parent.upper[axis]) +
                        ", so that the children neither overlap nor leave gaps");
    }
  }
  return orthant;
}

// The axes in the order in which the children's places count through the orthants in binary, or in
// axis order if they do not.
std::vector<std::size_t> order_axes(std::span<const unsigned> orthants,
                                    const Thresholds& thresholds) {
  std::vector<std::size_t> in_file_order;
  for (std::size_t place = 0; place < orthants.size(); ++place) {
    unsigned expected = 0;
    for (std::size_t j = 0; j < in_file_order.size(); ++j) {
      expected |= static_cast<unsigned>(place >> j & 1U) << in_file_order[j];
    }
    if (std::has_single_bit(place) && std::has_single_bit(orthants[place])) {
      in_file_order.push_back(static_cast<std::size_t>(std::countr_zero(orthants[place])));
    } else if (orthants[place] != expected) {
      in_file_order.clear();
      break;
    }
  }
  if (!in_file_order.empty()) {
    return in_file_order;
  }
  std::vector<std::size_t> in_axis_order;
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    if (thresholds[axis]) {
      in_axis_order.push_back(axis);
    }
  }
  return in_axis_order;
}

}  // namespace

Division divide(const MemoryRange& parent, std::span<const MemoryRange> children,
                const Place& node) {
  Thresholds thresholds;
  std::size_t divided = 0;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
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
  std::array<std::optional<std::size_t>, 1U << kSignals> places;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Place child{&node, "children", i};
    orthants.push_back(orthant_of(parent, children[i], thresholds, child));
    std::optional<std::size_t>& place = places[orthants.back()];
    if (place) {
      refuse(child, "has the same domain as the child with index " + std::to_string(*place) +
                        "; the children of a node must not overlap");
    }
    place = i;
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
    division.order.push_back(*places[orthant]);
  }
  return division;
}

}  // namespace remy::dna
