#include "evaluation/memory_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "random_cases.h"

namespace remy {
namespace {

using memory_scale::bucket;
using memory_scale::kBuckets;
using memory_scale::lower_edge;
using memory_scale::upper_edge;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr auto kAllSignals = by_axis([](const SignalAxis& axis) { return axis.signal; });

double origin(Signal signal) { return signal == Signal::kRttRatio ? 1 : 0; }

SignalSummary summarize(Signal signal, const std::vector<double>& values) {
  MemoryCounts counts;
  for (const double value : values) {
    counts.add(static_cast<std::size_t>(signal), value);
  }
  SignalSummary summary{signal, {}, {}};
  const auto all = counts.counts(signal);
  for (std::uint32_t number = 0; number < all.size(); ++number) {
    if (all[number] > 0) {
      summary.buckets.push_back(number);
      summary.counts.push_back(all[number]);
    }
  }
  return summary;
}

double exact_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

TEST(MemoryScale, EdgesIncreaseAndAdjoin) {
  for (const Signal signal : kAllSignals) {
    for (std::uint32_t number = 0; number + 1 < kBuckets; ++number) {
      const std::uint32_t next = number + 1;
      EXPECT_LT(lower_edge(signal, next), upper_edge(signal, next)) << next;
      EXPECT_LE(lower_edge(signal, number), lower_edge(signal, next)) << number;
      if (number > 0) {
        EXPECT_EQ(upper_edge(signal, number), lower_edge(signal, next)) << number;
      }
    }
  }
}

TEST(MemoryScale, EdgesBelongToTheBucketAboveThem) {
  for (const Signal signal : kAllSignals) {
    for (std::uint32_t number = 2; number < kBuckets; ++number) {
      const double edge = lower_edge(signal, number);
      EXPECT_EQ(bucket(signal, edge), number);
      EXPECT_EQ(bucket(signal, std::nextafter(edge, 0)), number - 1);
    }
  }
}

TEST(MemoryScale, BucketsAreMonotonicInTheirValues) {
  for (const Signal signal : kAllSignals) {
    RandomCase random(static_cast<std::uint64_t>(signal));
    std::vector<double> values{0};
    for (int i = 0; i < 20'000; ++i) {
      values.push_back(origin(signal) + std::ldexp(random.uniform(1, 2),
                                                   static_cast<int>(random.integer(0, 50)) - 31));
    }
    std::sort(values.begin(), values.end());
    std::uint32_t before = 0;
    for (const double value : values) {
      const std::uint32_t number = bucket(signal, value);
      EXPECT_GE(number, before);
      before = number;
      if (number + 1 < kBuckets) {
        EXPECT_LE(lower_edge(signal, number), value);
        EXPECT_GT(upper_edge(signal, number), value);
      }
    }
  }
}

TEST(MemoryScale, HasBucketsForExtremeValues) {
  for (const Signal signal : kAllSignals) {
    EXPECT_EQ(bucket(signal, 0), 0U);
    EXPECT_EQ(bucket(signal, origin(signal) + 0x1p-31), 1U);
    EXPECT_EQ(bucket(signal, 0x1p18 + 1), kBuckets - 1);
    EXPECT_EQ(bucket(signal, std::numeric_limits<double>::max()), kBuckets - 1);
    EXPECT_EQ(bucket(signal, kInfinity), kBuckets - 1);
  }
  EXPECT_EQ(bucket(Signal::kSendEwma, std::numeric_limits<double>::denorm_min()), 1U);
  EXPECT_EQ(bucket(Signal::kSendEwma, -1), 0U);
  EXPECT_EQ(bucket(Signal::kRttRatio, std::nextafter(1, 0)), 0U);
  EXPECT_EQ(bucket(Signal::kRttRatio, 1), 1U);
}

TEST(MemoryCounts, SumsDoNotDependOnOrderAndParts) {
  RandomCase random(1);
  MemoryCounts forwards;
  MemoryCounts backwards;
  std::array<MemoryCounts, 3> parts;
  std::vector<std::pair<std::size_t, double>> samples;
  for (int i = 0; i < 5000; ++i) {
    samples.emplace_back(random.integer(0, 3), std::exp(random.uniform(-12, 8)));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    forwards.add(samples[i].first, samples[i].second);
    const auto& other = samples[samples.size() - 1 - i];
    backwards.add(other.first, other.second);
    parts[random.integer(0, 2)].add(samples[i].first, samples[i].second);
  }
  for (const Signal signal : kAllSignals) {
    for (std::uint32_t number = 0; number < kBuckets; ++number) {
      const std::uint64_t count = forwards.counts(signal)[number];
      EXPECT_EQ(backwards.counts(signal)[number], count);
      EXPECT_EQ(parts[2].counts(signal)[number] + parts[0].counts(signal)[number] +
                    parts[1].counts(signal)[number],
                count);
    }
  }
}

TEST(Median, IsWithinTwoAndAHalfPercentOfTheExactOne) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomCase random(seed);
    const auto signal = static_cast<Signal>(random.integer(0, 3));
    const double scale = std::pow(10, random.uniform(-3, 3));
    const std::uint32_t shape = random.integer(0, 2);
    std::vector<double> values;
    for (std::uint32_t count = random.integer(2000, 6000); count > 0; --count) {
      const double u = random.uniform(1e-9, 1);
      const double excess = shape == 0 ? u : shape == 1 ? -std::log(u) : std::exp(3 * u);
      values.push_back(origin(signal) + scale * excess);
    }
    const double exact = exact_median(values) - origin(signal);
    EXPECT_NEAR(median(summarize(signal, values)) - origin(signal), exact, 0.025 * exact)
        << "seed " << seed;
  }
}

// For any sample, at least half of the values are on either side of the median, within a bucket's
// width.
TEST(Median, HalvesAnySample) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomCase random(seed);
    std::vector<double> values;
    for (std::uint32_t count = random.integer(1, 9); count > 0; --count) {
      values.push_back(std::exp(random.uniform(-5, 5)));
    }
    const double middle = median(summarize(Signal::kRecEwma, values));
    const auto half = static_cast<std::ptrdiff_t>((values.size() + 1) / 2);
    EXPECT_GE(std::count_if(values.begin(), values.end(),
                            [&](double value) { return value <= middle * (1 + 1.0 / 32); }),
              half)
        << "seed " << seed;
    EXPECT_GE(std::count_if(values.begin(), values.end(),
                            [&](double value) { return value >= middle * (1 - 1.0 / 32); }),
              static_cast<std::ptrdiff_t>(values.size() / 2))
        << "seed " << seed;
  }
}

TEST(Median, OfOneValueIsTheMiddleOfItsBucket) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const double value = std::exp(RandomCase(seed).uniform(-10, 10));
    EXPECT_NEAR(median(summarize(Signal::kSendEwma, {value})), value, value / 32);
  }
}

TEST(Median, OfAnEmptyMemoryIsTheSmallestThresholdAboveIt) {
  const std::vector<double> fresh(5, 0.0);
  EXPECT_EQ(median(summarize(Signal::kSendEwma, fresh)), 0x1p-30);
  EXPECT_EQ(median(summarize(Signal::kRttRatio, fresh)), 1);
  EXPECT_EQ(median(summarize(Signal::kRttRatio, {0, 1, 1})), 1 + 0x1p-30);
}

TEST(Median, OfTheLargestValuesIsFinite) {
  const double middle = median(summarize(Signal::kSlowRecEwma, {1e300, kInfinity, 2e300}));
  EXPECT_GT(middle, 0x1p17);
  EXPECT_LE(middle, 0x1p18);
}

TEST(Median, RejectsInvalidSummaries) {
  const auto refused = [](const SignalSummary& summary) {
    EXPECT_THROW(median(summary), std::invalid_argument);
  };
  refused({Signal::kSendEwma, {}, {}});
  refused({Signal::kSendEwma, {1, 2}, {1}});
  refused({Signal::kSendEwma, {2, 1}, {1, 1}});
  refused({Signal::kSendEwma, {2, 2}, {1, 1}});
  refused({Signal::kSendEwma, {2}, {0}});
  refused({Signal::kSendEwma, {kBuckets}, {1}});
}

}  // namespace
}  // namespace remy
