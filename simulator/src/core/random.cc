#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/elementary.h"

namespace remy {
namespace {

// A point of the open unit disk, without its centre, uniformly: one coordinate, and the square of
// the distance from the centre.
struct Point {
  double u;
  double s;
};

// Each variate owns a stream of candidate points, so that the number of rejections of one does not
// shift the others.
Point point(std::uint64_t key, std::uint64_t counter) {
  const std::uint64_t points = random_bits(key, counter);
  for (std::uint64_t draw = 0;; draw += 2) {
    const double u = 2 * unit_interval(random_bits(points, draw)) - 1;
    const double v = 2 * unit_interval(random_bits(points, draw + 1)) - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) {
      return {u, s};
    }
  }
}

constexpr std::size_t kBlock = 128;

}  // namespace

// Marsaglia's polar method.
double normal(std::uint64_t key, std::uint64_t counter) {
  const auto [u, s] = point(key, counter);
  return u * std::sqrt(-2 * natural_logarithm(s) / s);
}

void normals(std::uint64_t key, std::span<const std::uint64_t> counters, std::span<double> draws) {
  std::array<double, kBlock> squares;
  std::array<double, kBlock> logarithms;
  for (std::size_t first = 0; first < counters.size(); first += kBlock) {
    const std::size_t size = std::min(kBlock, counters.size() - first);
    for (std::size_t i = 0; i < size; ++i) {
      const auto [u, s] = point(key, counters[first + i]);
      draws[first + i] = u;
      squares[i] = s;
    }
    natural_logarithms(std::span(squares).first(size), logarithms);
    for (std::size_t i = 0; i < size; ++i) {
      draws[first + i] *= std::sqrt(-2 * logarithms[i] / squares[i]);
    }
  }
}

}  // namespace remy
