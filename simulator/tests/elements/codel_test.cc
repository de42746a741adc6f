#include "elements/codel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "elements/queue_harness.h"

namespace remy {
namespace {

// Keeps a backlog of a given number of packets on a fast link, where every packet waits 0.01 ms
// times that number. The times of drops are then CoDel's, with a resolution of 0.01 ms.
class HeldBacklog {
 public:
  explicit HeldBacklog(const Choice& choice, bool is_ecn_capable = false)
      : driven(choice, {}), is_ecn_capable_(is_ecn_capable) {}

  static constexpr double kStepMs = 0.01;
  static constexpr std::size_t kTenMs = 1000;
  static constexpr std::size_t kOneMs = 100;

  void hold(std::size_t packets, double for_ms) {
    for (const double end_ms = driven.now_ms + for_ms; driven.now_ms < end_ms;) {
      while (driven.queue().packets() < packets) {
        driven.enqueue(0, 1500, is_ecn_capable_);
      }
      driven.dequeue();
      driven.now_ms += kStepMs;
    }
  }
  // Keeps the sojourn time above the target until the given total number of drops.
  void hold_until_drops(std::size_t drops) {
    while (driven.dropped().size() < drops) {
      hold(kTenMs, kStepMs);
    }
  }
  std::vector<double> drop_times_ms() const {
    std::vector<double> times;
    for (const auto& event : driven.dropped()) {
      times.push_back(event.now_ms);
    }
    return times;
  }
  double last_gap_ms() const {
    const auto& drops = driven.dropped();
    return drops[drops.size() - 1].now_ms - drops[drops.size() - 2].now_ms;
  }

  QueueHarness driven;

 private:
  bool is_ecn_capable_;
};

void expect_times(const std::vector<double>& times, const std::vector<double>& expected) {
  ASSERT_EQ(times.size(), expected.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(times[i], expected[i], 0.1) << i;
  }
}

class CoDelOfEitherRule : public testing::TestWithParam<const char*> {};

TEST_P(CoDelOfEitherRule, DropsFasterWithTheSquareRootOfTheirNumber) {
  HeldBacklog backlog({"codel", GetParam(), {}});
  backlog.hold(HeldBacklog::kTenMs, 430);
  // The first packet has waited for the target at 5 ms.
  expect_times(backlog.drop_times_ms(), {105, 205, 275.7, 333.4, 383.4, 428.2});
}

TEST_P(CoDelOfEitherRule, TargetAndIntervalAreParameters) {
  HeldBacklog backlog({"codel", GetParam(), {{"target_ms", 2}, {"interval_ms", 50}}});
  backlog.hold(HeldBacklog::kTenMs, 140);
  expect_times(backlog.drop_times_ms(), {52, 102, 137.4});
}

TEST_P(CoDelOfEitherRule, DoesNotDropBelowTheTarget) {
  HeldBacklog backlog({"codel", GetParam(), {}});
  backlog.hold(HeldBacklog::kOneMs, 1000);
  // No drop before the interval is over.
  backlog.hold(HeldBacklog::kTenMs, 90);
  backlog.hold(HeldBacklog::kOneMs, 1000);
  EXPECT_TRUE(backlog.driven.dropped().empty());
}

TEST_P(CoDelOfEitherRule, LeavesTheDroppingStateAtASojournTimeBelowTheTarget) {
  HeldBacklog backlog({"codel", GetParam(), {}});
  backlog.hold_until_drops(5);
  backlog.hold(HeldBacklog::kOneMs, 12);
  EXPECT_EQ(backlog.driven.dropped().size(), 5);
  // Then the sojourn time must be above the target for an interval again, which starts 5 ms later.
  const double start_ms = backlog.driven.now_ms;
  backlog.hold_until_drops(6);
  EXPECT_NEAR(backlog.drop_times_ms().back() - start_ms, 105, 1.1);
}

TEST_P(CoDelOfEitherRule, StartsWithCountOneWhenTheLastDropIsLongAgo) {
  HeldBacklog backlog({"codel", GetParam(), {}});
  backlog.hold_until_drops(6);
  backlog.hold(HeldBacklog::kOneMs, 1700);
  backlog.hold_until_drops(8);
  EXPECT_NEAR(backlog.last_gap_ms(), 100, 0.1);
}

// On this link a packet's transmission takes longer than the target.
TEST_P(CoDelOfEitherRule, NeverDropsTheLastPacket) {
  for (const std::uint32_t left : {1, 2}) {
    QueueHarness driven({"codel", GetParam(), {}}, {});
    driven.enqueue_many(left, 0);
    for (; driven.now_ms < 2000; driven.now_ms += 20) {
      driven.enqueue(0);
      while (driven.queue().packets() < left + 1) {
        driven.enqueue(0);
      }
      driven.dequeue();
    }
    EXPECT_EQ(driven.dropped().empty(), left == 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, CoDelOfEitherRule, testing::Values("rfc8289", "ns2"));

TEST(CoDel, Rfc8289ReentersWithTheGrowthOfItsCount) {
  HeldBacklog backlog({"codel", "rfc8289", {}});
  backlog.hold_until_drops(6);
  backlog.hold(HeldBacklog::kOneMs, 1200);
  backlog.hold_until_drops(8);
  // Count grew from 1 to 6: 5.
  EXPECT_NEAR(backlog.last_gap_ms(), 100 / std::sqrt(5), 0.1);
  backlog.hold_until_drops(9);
  EXPECT_NEAR(backlog.last_gap_ms(), 100 / std::sqrt(6), 0.1);
  // Count grew from 5 to 7: 2.
  backlog.hold(HeldBacklog::kOneMs, 200);
  backlog.hold_until_drops(11);
  EXPECT_NEAR(backlog.last_gap_ms(), 100 / std::sqrt(2), 0.1);
  // Count grew by 1 only: starts with 1.
  backlog.hold(HeldBacklog::kOneMs, 200);
  backlog.hold_until_drops(13);
  EXPECT_NEAR(backlog.last_gap_ms(), 100, 0.1);
}

TEST(CoDel, Ns2ReentersWithCountMinusTwo) {
  HeldBacklog backlog({"codel", "ns2", {}});
  backlog.hold_until_drops(6);
  backlog.hold(HeldBacklog::kOneMs, 600);
  backlog.hold_until_drops(8);
  EXPECT_NEAR(backlog.last_gap_ms(), 100 / std::sqrt(4), 0.1);
  // RFC 8289 would keep the count for twice as long.
  backlog.hold(HeldBacklog::kOneMs, 800);
  backlog.hold_until_drops(10);
  EXPECT_NEAR(backlog.last_gap_ms(), 100, 0.1);
}

TEST(CoDel, MarksEcnCapablePacketsAtTheTimesOfDrops) {
  HeldBacklog dropping({"codel", "", {}});
  HeldBacklog marking({"codel", "", {}}, true);
  HeldBacklog without({"codel", "", {{"ecn", 0}}}, true);
  for (HeldBacklog* const backlog : {&dropping, &marking, &without}) {
    backlog->hold(HeldBacklog::kTenMs, 430);
  }
  EXPECT_TRUE(marking.driven.dropped().empty());
  std::vector<double> marked;
  for (const auto& event : marking.driven.departed()) {
    if (event.segment.is_marked) {
      marked.push_back(event.now_ms);
    }
  }
  EXPECT_EQ(marked, dropping.drop_times_ms());
  EXPECT_EQ(without.drop_times_ms(), dropping.drop_times_ms());
  for (const auto& event : without.driven.departed()) {
    EXPECT_FALSE(event.segment.is_marked);
  }
}

TEST(CoDel, DropsArrivalsAtAFullBuffer) {
  QueueHarness driven({"codel", "", {}}, {.buffer_packets = 3});
  driven.enqueue_many(5, 0);
  EXPECT_EQ(driven.queue().packets(), 3);
  EXPECT_EQ(driven.dropped().size(), 2);
  EXPECT_EQ(driven.dropped().front().segment.transmission_number, 3);
}

}  // namespace
}  // namespace remy
