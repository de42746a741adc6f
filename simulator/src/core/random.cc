#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/clones.h"
#include "core/elementary.h"

namespace remy {
namespace {

// A candidate point in the square around the unit disk: its first coordinate u, and s, the squared
// distance from the centre.
struct Point {
  double u;
  double s;
};

// Each variate has its own stream of candidate points, so that rejections for one variate do not
// shift another.
constexpr Point candidate_point(std::uint64_t points, std::uint64_t draw) {
  const double u = 2 * unit_interval(random_bits(points, draw)) - 1;
  const double v = 2 * unit_interval(random_bits(points, draw + 1)) - 1;
  return {u, u * u + v * v};
}

constexpr bool is_accepted(double s) { return s > 0 && s < 1; }

// The first candidate from draw `first` on that lies in the open unit disk and is not its centre.
constexpr Point accepted_point(std::uint64_t points, std::uint64_t first) {
  for (std::uint64_t draw = first;; draw += 2) {
    const Point point = candidate_point(points, draw);
    if (is_accepted(point.s)) {
      return point;
    }
  }
}

constexpr std::size_t kBlock = 128;

}  // namespace

// Marsaglia's polar method.
double normal(std::uint64_t key, std::uint64_t counter) {
  const auto [u, s] = accepted_point(random_bits(key, counter), 0);
  return u * std::sqrt(-2 * natural_logarithm(s) / s);
}

// Computes the first candidates in a branch-free loop that the compiler vectorizes, then replaces
// the rejected ones.
REMY_WIDE_CLONES
void normals(std::uint64_t key, std::span<const std::uint64_t> counters, std::span<double> draws) {
  std::array<double, kBlock> coordinates;
  std::array<double, kBlock> squares;
  std::array<double, kBlock> logarithms;
  std::array<std::size_t, kBlock> rejected;
  for (std::size_t first = 0; first < counters.size(); first += kBlock) {
    const std::size_t size = std::min(kBlock, counters.size() - first);
    const std::uint64_t* const counter = counters.data() + first;
    for (std::size_t i = 0; i < size; ++i) {
      const auto [u, s] = candidate_point(random_bits(key, counter[i]), 0);
      coordinates[i] = u;
      squares[i] = s;
    }
    std::size_t rejections = 0;
    for (std::size_t i = 0; i < size; ++i) {
      rejected[rejections] = i;
      rejections += is_accepted(squares[i]) ? 0 : 1;
    }
    for (std::size_t i = 0; i < rejections; ++i) {
      const std::size_t index = rejected[i];
      const auto [u, s] = accepted_point(random_bits(key, counter[index]), 2);
      coordinates[index] = u;
      squares[index] = s;
    }
    natural_logarithms(std::span(squares).first(size), logarithms);
    double* const draw = draws.data() + first;
    for (std::size_t i = 0; i < size; ++i) {
      draw[i] = coordinates[i] * std::sqrt(-2 * logarithms[i] / squares[i]);
    }
  }
}

}  // namespace remy
