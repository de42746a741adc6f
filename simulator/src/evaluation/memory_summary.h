#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "table/rule_table.h"

namespace remy {

// A fixed logarithmic scale of buckets for memory values: 32 per octave from 2^-30 to 2^18. Counts
// from different simulations add up exactly and in any order, and medians have an error of about 1
// %. rtt_ratio is measured by its excess over 1, which is what a RemyCC can learn from.
namespace memory_scale {

inline constexpr int kOctaveBits = 5;
inline constexpr int kLowestExponent = -30;
inline constexpr int kHighestExponent = 18;
// Bucket 0 holds the values of an empty memory (0; for rtt_ratio, below 1). Bucket 1 holds values
// between those and the smallest value of the logarithmic scale.
inline constexpr std::uint32_t kBuckets =
    2 + (static_cast<std::uint32_t>(kHighestExponent - kLowestExponent) << kOctaveBits);

std::uint32_t bucket(Signal signal, double value);
// The smallest value above all values in the bucket.
double upper_edge(Signal signal, std::uint32_t bucket);
double lower_edge(Signal signal, std::uint32_t bucket);

}  // namespace memory_scale

// Counts of the memory values that triggered one rule, by axis and bucket.
class MemoryCounts {
 public:
  explicit MemoryCounts(std::size_t axes = kSignals) : counts_(axes) {}

  std::size_t axes() const { return counts_.size(); }
  void add(std::size_t axis, double value) {
    ++counts_[axis][memory_scale::bucket(static_cast<Signal>(axis), value)];
  }
  void add(Signal signal, std::uint32_t bucket, std::uint64_t count) {
    counts_[axis_of(signal)][bucket] += count;
  }
  std::span<const std::uint64_t> counts(Signal signal) const { return counts_[axis_of(signal)]; }

 private:
  std::vector<std::array<std::uint64_t, memory_scale::kBuckets>> counts_;
};

// A summary of one axis of a rule's memory: non-empty buckets, strictly increasing, and their
// counts.
struct SignalSummary {
  Signal signal = Signal::kSendEwma;
  std::vector<std::uint32_t> buckets;
  std::vector<std::uint64_t> counts;
};

// Returns the median of summarized values, interpolated within its bucket; for buckets 0 and 1,
// their upper edge. Throws std::invalid_argument if there are no values, or buckets are not
// strictly increasing or out of range.
double median(const SignalSummary& summary);

}  // namespace remy
