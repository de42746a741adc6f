#include "core/random.h"

#include <cmath>

#include "core/elementary.h"

namespace remy {

// Marsaglia's polar method. Each variate owns a stream of candidate points, so that the number of
// rejections of one does not shift the others.
double normal(std::uint64_t key, std::uint64_t counter) {
  const std::uint64_t points = random_bits(key, counter);
  for (std::uint64_t draw = 0;; draw += 2) {
    const double u = 2 * unit_interval(random_bits(points, draw)) - 1;
    const double v = 2 * unit_interval(random_bits(points, draw + 1)) - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) {
      return u * std::sqrt(-2 * natural_logarithm(s) / s);
    }
  }
}

}  // namespace remy
