#include "elements/xcp_router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "elements/queue_harness.h"

namespace remy {
namespace {

const Choice kXcp{"xcp", "", {}};

Segment packet(double window_packets, double rtt_ms, double wanted_packets = 1e6) {
  Segment segment;
  segment.bytes = 1500;
  segment.congestion = {window_packets, rtt_ms, wanted_packets};
  return segment;
}

// Drives a router and its timers.
class RouterHarness : public QueueHarness {
 public:
  explicit RouterHarness(const Choice& choice = kXcp) : QueueHarness(choice, QueueSetting{}) {}

  void advance(double until_ms) {
    while (queue().next_ms() <= until_ms) {
      now_ms = queue().next_ms();
      queue().tick(now_ms);
    }
    now_ms = until_ms;
  }
  double feedback_of(const Segment& segment) {
    enqueue(segment);
    return dequeue()->congestion.feedback_packets;
  }
};

TEST(XcpRouter, GrantsNothingInTheFirstControlInterval) {
  RouterHarness router;
  EXPECT_EQ(router.queue().next_ms(), Queue::kNever);
  EXPECT_EQ(router.feedback_of(packet(10, 100)), 0);
  EXPECT_EQ(router.queue().next_ms(), 50);
}

// One control interval of 50 ms at half the rate: 25 packets of two senders, with windows of 5 and
// RTTs of 50 and 100 ms.
TEST(XcpRouter, AllocatesAFractionOfTheSpareBandwidth) {
  RouterHarness router;
  const auto send_an_interval = [&] {
    double change = 0;
    for (int i = 0; i < 25; ++i) {
      const double rtt_ms = i % 2 == 0 ? 50 : 100;
      // Change of rate in packets per ms.
      change += router.feedback_of(packet(5, rtt_ms)) / rtt_ms;
      router.advance(router.now_ms + 2);
    }
    return change;
  };
  send_an_interval();
  // The mean RTT, weighted by time: 13 packets of 10 ms each, and 12 of 20.
  const double mean_rtt_ms = (13 * 10 * 50.0 + 12 * 20 * 100) / (13 * 10 + 12 * 20);
  EXPECT_NEAR(router.queue().next_ms(), 50 + std::min(mean_rtt_ms, 25.0), 1e-9);
  // The senders' rates grow by alpha times the spare bandwidth, in an interval with the same
  // packets.
  EXPECT_NEAR(send_an_interval(), 0.4 * (1 - 0.5), 1e-9);
}

TEST(XcpRouter, GivesFlowsEqualFeedbackAndTakesInProportionToTheirRates) {
  RouterHarness router;
  // Both senders have the same rate, but one has twice the window. The link is full without a
  // persistent queue, so only the shuffled tenth moves.
  for (int i = 0; i < 50; ++i) {
    router.feedback_of(packet(i % 3 == 0 ? 10 : 20, 50));
    router.advance(router.now_ms + 1);
  }
  double small = 0;
  double large = 0;
  for (int i = 0; i < 50; ++i) {
    const double feedback = router.feedback_of(packet(i % 3 == 0 ? 10 : 20, 50));
    (i % 3 == 0 ? small : large) += feedback;
    router.advance(router.now_ms + 0.9);
  }
  EXPECT_GT(small, 0.5);
  EXPECT_LT(large, -0.5);
  EXPECT_NEAR(small + large, 0, 0.05);
}

TEST(XcpRouter, DrainsAPersistentQueue) {
  RouterHarness router;
  for (int i = 0; i < 20; ++i) {
    router.enqueue(packet(50, 50));
  }
  // Each arrival replaces a departure, so 20 packets persist. The rates are equal.
  double change = 0;
  for (int i = 0; i < 400; ++i) {
    router.enqueue(packet(50, 50));
    const double feedback = router.dequeue()->congestion.feedback_packets;
    change += router.now_ms >= 200 && router.now_ms < 250 ? feedback / 50 : 0;
    router.advance(router.now_ms + 1);
  }
  EXPECT_NEAR(change, -0.226 * 20 / 50, 0.003);
}

TEST(XcpRouter, GrantsAtMostWhatOtherRoutersAndTheSenderAllow) {
  RouterHarness router;
  for (int i = 0; i < 50; ++i) {
    router.feedback_of(packet(5, 50));
    router.advance(router.now_ms + 2);
  }
  for (const double wanted : {0.0, -3.0, 1e-6}) {
    EXPECT_EQ(router.feedback_of(packet(5, 50, wanted)), wanted);
  }
}

TEST(XcpRouter, LeavesAcksUnchangedAndCountsThemAsTraffic) {
  for (const bool has_acks : {false, true}) {
    RouterHarness router;
    double granted = 0;
    for (int i = 0; i < 100; ++i) {
      granted = router.feedback_of(packet(5, 50));
      if (has_acks) {
        Segment ack = packet(5, 50, 7.5);
        ack.is_ack = true;
        ack.bytes = 750;
        EXPECT_EQ(router.feedback_of(ack), 7.5);
      }
      router.advance(router.now_ms + 2);
    }
    // Data arrive at 0.5 packets per ms; with ACKs it is 0.75.
    EXPECT_NEAR(granted, 0.4 * (has_acks ? 0.25 : 0.5) * 50 / 25, 1e-9) << has_acks;
  }
}

TEST(XcpRouter, SendersWithoutAnRttGetNoFeedbackAndCountAsTraffic) {
  RouterHarness router;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(router.feedback_of(packet(5, 0)), 0);
    router.advance(router.now_ms + 1);
  }
}

TEST(XcpRouter, StopsItsTimersWithoutArrivals) {
  RouterHarness router;
  router.feedback_of(packet(5, 50));
  router.advance(500);
  EXPECT_EQ(router.queue().next_ms(), Queue::kNever);
  router.enqueue(packet(5, 50));
  EXPECT_EQ(router.queue().next_ms(), 550);
  // Not while packets wait.
  router.advance(2000);
  EXPECT_LT(router.queue().next_ms(), Queue::kNever);
}

TEST(XcpRouter, LimitsItsIntervalToBetweenAMillisecondAndASecond) {
  for (const auto& [rtt_ms, interval_ms] : {std::pair{0.01, 1.0}, {1e4, 1000.0}}) {
    RouterHarness router;
    for (int i = 0; i < 50; ++i) {
      router.feedback_of(packet(5, rtt_ms));
      router.advance(router.now_ms + 1);
    }
    // Without further arrivals the timers stop at the end of this interval.
    double last_ms = 0;
    while (router.queue().next_ms() < Queue::kNever) {
      last_ms = router.queue().next_ms();
      router.advance(last_ms);
    }
    EXPECT_NEAR(last_ms, 50 + interval_ms, 1e-9);
  }
}

}  // namespace
}  // namespace remy
