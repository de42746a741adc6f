#include "evaluation/memory_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace remy {
namespace memory_scale {
namespace {

constexpr double kLowest = 0x1p-30;
constexpr double kHighest = 0x1p18;
// A double's exponent and the first kOctaveBits of its fraction number the logarithmic buckets;
// this is the number of the smallest one.
constexpr std::uint64_t kLowestBits = std::bit_cast<std::uint64_t>(kLowest) >> (52 - kOctaveBits);

// The only signal whose smallest value is 1; that of all others is 0. origin() runs for every
// recorded packet, and comparing with one signal is faster than looking up the smallest value.
constexpr Signal kSignalFrom1 =
    std::ranges::find(kSignalAxes, 1.0, &SignalAxis::smallest_value)->signal;
static_assert(std::ranges::count(kSignalAxes, 0.0, &SignalAxis::smallest_value) == kSignals - 1);

double origin(Signal signal) { return signal == kSignalFrom1 ? 1.0 : 0.0; }

}  // namespace

std::uint32_t bucket(Signal signal, double value) {
  const double excess = value - origin(signal);
  if (signal == kSignalFrom1 ? excess < 0 : excess <= 0) {
    return 0;
  }
  if (excess < kLowest) {
    return 1;
  }
  if (!(excess < kHighest)) {
    return kBuckets - 1;
  }
  return static_cast<std::uint32_t>(
      2 + (std::bit_cast<std::uint64_t>(excess) >> (52 - kOctaveBits)) - kLowestBits);
}

double lower_edge(Signal signal, std::uint32_t bucket) {
  if (bucket == 0) {
    return 0;
  }
  if (bucket == 1) {
    return origin(signal);
  }
  return origin(signal) + std::bit_cast<double>((bucket - 2 + kLowestBits) << (52 - kOctaveBits));
}

double upper_edge(Signal signal, std::uint32_t bucket) {
  // Bucket 0 of a signal from 0 holds 0 alone. Its edge is not 0 but kLowest, so that 0 is below
  // it.
  return bucket == 0 ? origin(signal) + (signal == kSignalFrom1 ? 0 : kLowest)
                     : lower_edge(signal, bucket + 1);
}

}  // namespace memory_scale

double median(const SignalSummary& summary) {
  if (summary.buckets.empty() || summary.buckets.size() != summary.counts.size()) {
    throw std::invalid_argument(
        "a summary needs as many counts as buckets, and at least one of each");
  }
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < summary.buckets.size(); ++i) {
    if (summary.buckets[i] >= memory_scale::kBuckets ||
        (i > 0 && summary.buckets[i] <= summary.buckets[i - 1]) || summary.counts[i] == 0) {
      throw std::invalid_argument(
          "the buckets of a summary must be strictly increasing, within the scale and not empty");
    }
    total += summary.counts[i];
  }
  std::uint64_t below = 0;
  for (std::size_t i = 0;; ++i) {
    const std::uint64_t count = summary.counts[i];
    if (2 * (below + count) >= total) {
      const std::uint32_t bucket = summary.buckets[i];
      const double upper = memory_scale::upper_edge(summary.signal, bucket);
      if (bucket < 2) {
        return upper;
      }
      const double lower = memory_scale::lower_edge(summary.signal, bucket);
      const double fraction = (0.5 * static_cast<double>(total) - static_cast<double>(below)) /
                              static_cast<double>(count);
      return lower + fraction * (upper - lower);
    }
    below += count;
  }
}

}  // namespace remy
