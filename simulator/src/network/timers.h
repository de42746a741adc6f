#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace remy {

// When each of n things is due, and which is due first (of those at equal times, the lowest): a
// complete binary tree whose inner nodes hold the earlier of their two children.
class Timers {
 public:
  explicit Timers(std::uint32_t count)
      : leaves_(std::bit_ceil(std::max(count, 1U))),
        minima_(2 * std::size_t{leaves_}, std::numeric_limits<double>::infinity()) {}

  double earliest() const { return minima_[1]; }

  std::uint32_t first() const {
    std::uint32_t node = 1;
    while (node < leaves_) {
      node *= 2;
      node += minima_[node] == minima_[1] ? 0 : 1;
    }
    return node - leaves_;
  }

  void set(std::uint32_t index, double due) {
    std::size_t node = std::size_t{leaves_} + index;
    minima_[node] = due;
    for (node /= 2; node > 0; node /= 2) {
      minima_[node] = std::min(minima_[2 * node], minima_[2 * node + 1]);
    }
  }

 private:
  std::uint32_t leaves_;
  std::vector<double> minima_;  // 1 is the root; the leaves are the last half
};

}  // namespace remy
