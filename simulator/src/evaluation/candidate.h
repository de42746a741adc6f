#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "table/compiled_table.h"

namespace remy {

// The unchanged table.
struct Unchanged {};

// New actions for one or several rules.
struct ActionChanges {
  std::vector<std::pair<std::uint32_t, Action>> changes;
};

// Bounds to which actions are clamped, in the units of the table's rules.
struct ActionBounds {
  double window_multiple_minimum = 0;
  double window_multiple_maximum = 1;
  double window_increment_minimum = 0;
  double window_increment_maximum = 256;
  double intersend_minimum_ms = 0.25;
  double intersend_maximum_ms = 10;
};

// Moves all rules at once: x + scale * epsilon in the coordinates below, where each coordinate of
// epsilon is 1 or -1 with equal probability, drawn from (seed, specimen key). Its description has
// the same size for every table. Two perturbations that differ only in the sign of scale are
// antithetic.
struct Perturbation {
  std::uint64_t seed = 0;
  double scale = 0;
  ActionBounds bounds;
};

using Candidate = std::variant<Unchanged, ActionChanges, Perturbation>;

// Coordinates of an action in which equal steps have roughly equal effects: (log(m_max - m + 0.03),
// log(b - b_min + 1), log r).
struct Coordinates {
  double window_multiple = 0;
  double window_increment = 0;
  double intersend = 0;
};

Coordinates to_coordinates(const Action& action, const ActionBounds& bounds);
// Inverse of to_coordinates(), clamped to the bounds. Does not round the increment.
Action to_action(const Coordinates& coordinates, const ActionBounds& bounds);

// The epsilon of a perturbation on one specimen: 1 or -1 for each coordinate.
class PerturbationNoise {
 public:
  PerturbationNoise(std::uint64_t seed, std::uint64_t specimen_key);
  // Returns it for one coordinate (0, 1, 2) of one rule.
  double operator()(std::uint32_t rule, std::uint32_t coordinate) const;
  // Fills in the first rules, three coordinates each.
  void fill(std::span<double> noise) const;
  // Fills in the given coordinates (3 * rule + coordinate). `noise` must be as long as
  // `coordinates`.
  void fill(std::span<const std::uint64_t> coordinates, std::span<double> noise) const;

 private:
  double sign(std::uint64_t coordinate) const;

  std::uint64_t key_;
};

// Throws std::invalid_argument if the candidate cannot be applied to a table of this many rules.
void validate(const Candidate& candidate, std::size_t rules);

// Applies a candidate to a compiled table. A fractional absolute increment is rounded
// stochastically by a draw of (seed, specimen key, rule), which antithetic candidates share.
void apply(const Candidate& candidate, std::uint64_t specimen_key, CompiledTable& table);

}  // namespace remy
