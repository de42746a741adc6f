#include "network/timers.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

#include "random_cases.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class TimersAgainstAMultimap : public testing::TestWithParam<std::uint32_t> {};

TEST_P(TimersAgainstAMultimap, HaveTheSameFirst) {
  const std::uint32_t count = GetParam();
  RandomCase random(count);
  Timers timers(count);
  std::vector<double> due(count, kNever);
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t index = random.integer(0, count - 1);
    due[index] = random.chance(0.2)   ? kNever
                 : random.chance(0.5) ? random.integer(0, 5)
                                      : random.uniform(0, 5);
    timers.set(index, due[index]);
    std::multimap<double, std::uint32_t> by_time;  // keeps the order of insertion at equal times
    for (std::uint32_t each = 0; each < count; ++each) {
      by_time.emplace(due[each], each);
    }
    EXPECT_EQ(timers.earliest(), by_time.begin()->first);
    EXPECT_EQ(timers.first(), by_time.begin()->second);
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, TimersAgainstAMultimap,
                         testing::Values(1U, 2U, 3U, 4U, 5U, 8U, 15U, 16U, 17U, 64U, 100U));

TEST(Timers, AreNeverDueUntilSet) {
  EXPECT_EQ(Timers(7).earliest(), kNever);
  EXPECT_EQ(Timers(0).earliest(), kNever);
}

}  // namespace
}  // namespace remy
