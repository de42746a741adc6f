#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace remy {

// A histogram of positive numbers with logarithmic buckets: the exponent and the first 8 bits of
// the mantissa of a double name its bucket, so that each power of two has 256. The middle of a
// bucket is at most 1/512 (0.2 %) away from any number in it. Only integers are computed: counts
// are the same on every machine, and of any order of the numbers.
class LogHistogram {
 public:
  // Bits of a double that do not count.
  static constexpr int kIgnoredBits = 52 - 8;
  // Numbers below are counted in its bucket.
  static constexpr double kLeast = 0x1p-20;

  static constexpr std::uint32_t bucket_of(double number) {
    return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(std::max(number, kLeast)) >>
                                      kIgnoredBits);
  }
  static constexpr double middle_of(std::uint32_t bucket) {
    return std::bit_cast<double>((std::uint64_t{bucket} << kIgnoredBits) |
                                 (std::uint64_t{1} << (kIgnoredBits - 1)));
  }

  void add(double number, std::uint64_t times = 1) {
    const std::uint32_t bucket = bucket_of(number);
    const std::uint32_t place = bucket - first_;
    if (place >= counts_.size()) [[unlikely]] {
      make_room(bucket);
    }
    counts_[bucket - first_] += times;
  }

  // Calls visit(bucket, count) for each bucket that is not empty, in ascending order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t place = 0; place < counts_.size(); ++place) {
      if (counts_[place] > 0) {
        visit(first_ + static_cast<std::uint32_t>(place), counts_[place]);
      }
    }
  }

 private:
  // Buckets that are added at once below and above a new one.
  static constexpr std::uint32_t kMargin = 256;

  void make_room(std::uint32_t bucket) {
    const bool is_empty = counts_.empty();
    const std::uint32_t old_end = first_ + static_cast<std::uint32_t>(counts_.size());
    const std::uint32_t first = is_empty ? bucket - kMargin : std::min(first_, bucket - kMargin);
    const std::uint32_t end = std::max(is_empty ? bucket : old_end, bucket + kMargin);
    std::vector<std::uint64_t> counts(end - first);
    std::ranges::copy(counts_, counts.begin() + (is_empty ? 0 : first_ - first));
    counts_.swap(counts);
    first_ = first;
  }

  std::uint32_t first_ = 0;  // bucket of the first count
  std::vector<std::uint64_t> counts_;
};

}  // namespace remy
