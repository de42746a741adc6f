#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "table/compiled_table.h"

namespace remy {

// The table as it is.
struct Unchanged {};

// New actions for one or several rules.
struct ActionChanges {
  std::vector<std::pair<std::uint32_t, Action>> changes;
};

// The box that actions are clamped to, in the units of the table's rules.
struct ActionBounds {
  double window_multiple_minimum = 0;
  double window_multiple_maximum = 1;
  double window_increment_minimum = 0;
  double window_increment_maximum = 256;
  double intersend_minimum_ms = 0.25;
  double intersend_maximum_ms = 10;
};

// Every rule moved at once: in the coordinates below, x + scale * epsilon, where each coordinate of
// epsilon is 1 or -1, evenly, drawn from (seed, specimen key). A perturbation costs the same to
// name whatever the table's size; those that differ in the sign of scale are antithetic.
struct Perturbation {
  std::uint64_t seed = 0;
  double scale = 0;
  ActionBounds bounds;
};

using Candidate = std::variant<Unchanged, ActionChanges, Perturbation>;

// Coordinates of an action in which equal steps matter about equally:
// (log(m_max - m + 0.03), log(b - b_min + 1), log r).
struct Coordinates {
  double window_multiple = 0;
  double window_increment = 0;
  double intersend = 0;
};

Coordinates to_coordinates(const Action& action, const ActionBounds& bounds);
// The inverse, clamped to the bounds; the increment is not rounded.
Action to_action(const Coordinates& coordinates, const ActionBounds& bounds);

// The epsilon of a perturbation on one specimen.
class PerturbationNoise {
 public:
  PerturbationNoise(std::uint64_t seed, std::uint64_t specimen_key);
  // Of one coordinate (0, 1, 2) of one rule.
  double operator()(std::uint32_t rule, std::uint32_t coordinate) const;
  // Of the first rules, three coordinates each.
  void fill(std::span<double> noise) const;
  // Of the places (3 * rule + coordinate); `noise` is as long.
  void fill(std::span<const std::uint64_t> places, std::span<double> noise) const;

 private:
  double sign(std::uint64_t place) const;

  std::uint64_t key_;
};

// Throws std::invalid_argument if the candidate cannot be applied to a table of this many rules.
void validate(const Candidate& candidate, std::size_t rules);

// Changes the actions of a compiled table. An absolute increment that is not integral is rounded
// stochastically, by a draw of (seed, specimen key, rule) that antithetic candidates share.
void apply(const Candidate& candidate, std::uint64_t specimen_key, CompiledTable& table);

}  // namespace remy
