#include "core/log_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "random_cases.h"

namespace remy {
namespace {

std::map<std::uint32_t, std::uint64_t> counts_of(const LogHistogram& histogram) {
  std::map<std::uint32_t, std::uint64_t> counts;
  histogram.for_each(
      [&](std::uint32_t bucket, std::uint64_t count) { counts.emplace(bucket, count); });
  return counts;
}

class AnyNumbers : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyNumbers, AreCountedOnceWithinAFifthOfAPercentInAnyOrder) {
  RandomCase random(GetParam());
  std::vector<double> numbers(random.integer(1, 300));
  for (double& number : numbers) {
    number = std::exp2(random.uniform(-19, 40));
  }
  LogHistogram histogram;
  std::map<std::uint32_t, std::uint64_t> expected;
  for (const double number : numbers) {
    histogram.add(number);
    const std::uint32_t bucket = LogHistogram::bucket_of(number);
    ++expected[bucket];
    EXPECT_NEAR(LogHistogram::middle_of(bucket) / number, 1, 0.002);
  }
  EXPECT_EQ(counts_of(histogram), expected);
  LogHistogram reversed;
  std::ranges::reverse(numbers);
  for (const double number : numbers) {
    reversed.add(number);
  }
  EXPECT_EQ(counts_of(reversed), expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyNumbers, testing::Range<std::uint64_t>(0, random_cases(50, 20)));

TEST(LogHistogram, CountsTheLeastNumbersTogether) {
  LogHistogram histogram;
  histogram.add(0);
  histogram.add(1e-9, 2);
  const std::map<std::uint32_t, std::uint64_t> expected = {
      {LogHistogram::bucket_of(LogHistogram::kLeast), 3}};
  EXPECT_EQ(counts_of(histogram), expected);
}

TEST(LogHistogram, KeepsTheOrderOfNumbers) {
  EXPECT_LT(LogHistogram::bucket_of(1), LogHistogram::bucket_of(1.01));
  EXPECT_EQ(LogHistogram::bucket_of(1), LogHistogram::bucket_of(1.001));
}

}  // namespace
}  // namespace remy
