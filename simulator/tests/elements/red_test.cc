#include "elements/red.h"

#include <gtest/gtest.h>

#include <cmath>

#include "elements/queue_harness.h"

namespace remy {
namespace {

TEST(ThresholdMarking, MarksArrivalsIfKPacketsWait) {
  QueueHarness driven({"threshold-marking", "", {{"threshold_packets", 20}}}, {});
  for (int i = 0; i < 30; ++i) {
    driven.enqueue(0, 1500, true);
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(driven.dequeue()->is_marked, i >= 20) << i;
  }
  // Marking depends on the current queue, not on an average.
  driven.enqueue(0, 1500, true);
  EXPECT_FALSE(driven.dequeue()->is_marked);
}

TEST(ThresholdMarking, DropsPacketsThatAreNotEcnCapable) {
  QueueHarness driven({"threshold-marking", "", {{"threshold_packets", 20}}}, {});
  driven.enqueue_many(30, 0);
  EXPECT_EQ(driven.queue().packets(), 20);
  EXPECT_EQ(driven.dropped().size(), 10);
}

TEST(ThresholdMarking, EqualsRedWithBothThresholdsAtKAndWeightOne) {
  QueueHarness threshold({"threshold-marking", "", {{"threshold_packets", 2}}}, {});
  QueueHarness red({"red", "", {{"minimum_packets", 2}, {"maximum_packets", 2}, {"weight", 1}}},
                   {});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    for (QueueHarness* const driven : {&threshold, &red}) {
      driven->now_ms = static_cast<double>(i);
      for (std::uint64_t come = i * i % 7; come > 0; --come) {
        driven->enqueue(0, 1500, i % 3 > 0);
      }
      driven->dequeue();
      driven->dequeue();
    }
  }
  ASSERT_EQ(threshold.departed().size(), red.departed().size());
  for (std::size_t i = 0; i < red.departed().size(); ++i) {
    EXPECT_EQ(threshold.departed()[i].segment.is_marked, red.departed()[i].segment.is_marked);
  }
  EXPECT_GT(red.dropped().size(), 0);
}

TEST(ThresholdMarking, KeepsExistingMarks) {
  QueueHarness driven({"threshold-marking", "", {}}, {});
  Segment segment;
  segment.bytes = 1500;
  segment.is_ecn_capable = true;
  segment.is_marked = true;
  driven.enqueue(segment);
  EXPECT_TRUE(driven.dequeue()->is_marked);
}

// The average queue length, relative to `waiting`, after `arrivals` at a queue of constant length.
TEST(Red, AveragesTheQueueOverArrivals) {
  class NoDrops final : public DropListener {
    void on_drop(const Segment&, double) override {}
  } drops;
  RedQueue queue({.minimum_packets = 1e6, .maximum_packets = 1e6, .weight = 0.01}, 1000, 1, 0);
  Segment segment;
  segment.bytes = 1500;
  double average = 0;
  for (int i = 0; i < 300; ++i) {
    average += 0.01 * (i - average);
    queue.enqueue(segment, 0, drops);
    EXPECT_NEAR(queue.average_packets(), average, 1e-9);
  }
  // An idle time of 50 transmission times counts as 50 arrivals at an empty queue; this arrival is
  // the 51st.
  while (queue.dequeue(10, drops)) {
  }
  queue.enqueue(segment, 60.5, drops);
  EXPECT_NEAR(queue.average_packets(), average * std::pow(0.99, 51), 1e-9);
}

// The marking rate of arrivals at a queue of constant length.
double marked_share(const Choice& choice, std::size_t waiting) {
  QueueHarness driven(choice, {.buffer_packets = 10'000, .key = 7});
  while (driven.queue().packets() < waiting) {
    driven.enqueue(0, 1500, true);
  }
  int marked = 0;
  constexpr int kArrivals = 100'000;
  for (int i = 0; i < kArrivals; ++i) {
    driven.enqueue(0, 1500, true);
    marked += driven.dequeue()->is_marked ? 1 : 0;
  }
  return marked / static_cast<double>(kArrivals);
}

// Weight 1: the average is the current queue.
Choice red(const char* variant, double minimum, double maximum, double probability) {
  return {"red",
          variant,
          {{"minimum_packets", minimum},
           {"maximum_packets", maximum},
           {"maximum_probability", probability},
           {"weight", 1}}};
}

TEST(Red, MarkingProbabilityGrowsBetweenTheThresholds) {
  // With n arrivals since the last mark the probability is p / (1 - n p). Gaps are uniform from 1
  // to 1/p, with mean (1 + 1/p) / 2.
  EXPECT_EQ(marked_share(red("", 10, 20, 0.1), 9), 0);
  EXPECT_NEAR(marked_share(red("", 0, 20, 0.1), 10), 2 / (1 + 1 / 0.05), 0.002);
  EXPECT_NEAR(marked_share(red("", 0, 40, 0.1), 10), 2 / (1 + 1 / 0.025), 0.002);
  // Excludes the arrivals that filled the queue.
  EXPECT_GT(marked_share(red("", 5, 10, 0.1), 10), 0.9998);
}

TEST(Red, GentleVariantReachesOneAtTwiceTheMaximum) {
  EXPECT_NEAR(marked_share(red("gentle", 4, 8, 0.2), 11), 2 / (1 + 1 / 0.5), 0.005);
  EXPECT_GT(marked_share(red("gentle", 4, 8, 0.2), 16), 0.9997);
}

TEST(Red, IsADropTailQueueAtTheLimit) {
  QueueHarness driven({"red", "", {}}, {.buffer_packets = 3});
  for (int i = 0; i < 5; ++i) {
    driven.enqueue(0, 1500, true);
  }
  EXPECT_EQ(driven.dropped().size(), 2);
}

TEST(Red, RejectsReversedThresholds) {
  EXPECT_THROW(QueueHarness(red("", 20, 10, 0.1), {}), std::invalid_argument);
}

}  // namespace
}  // namespace remy
