#include "elements/fair_queueing.h"

#include <gtest/gtest.h>

#include <vector>

#include "elements/queue_harness.h"

namespace remy {
namespace {

using Senders = std::vector<std::uint32_t>;

TEST(FairQueueing, DrrKeepsTheDeficitForAPacketThatDoesNotFit) {
  QueueHarness driven({"fair-queueing", "drr", {{"quantum_bytes", 500}}}, {});
  driven.enqueue_many(4, 0, 700);
  driven.enqueue_many(9, 1, 200);
  // Rounds: flow 0 keeps 500, flow 1 sends two of 200 (100 left); flow 0 sends one of 700 (300
  // left), flow 1 three of 200 (0 left); flow 0 sends one (100 left), flow 1 two (100 left); ...
  EXPECT_EQ(driven.senders_of_next(10), (Senders{1, 1, 0, 1, 1, 1, 0, 1, 1, 1}));
}

TEST(FairQueueing, DrrSharesBytes) {
  QueueHarness driven({"fair-queueing", "drr", {}}, {.buffer_packets = 500});
  const std::vector<std::uint32_t> bytes = {1500, 40, 1000, 1500};
  std::vector<double> served(bytes.size());
  for (int step = 0; step < 100'000; ++step) {
    for (std::uint32_t flow = 0; flow < bytes.size(); ++flow) {
      driven.enqueue(flow, bytes[flow]);
    }
    const auto segment = driven.dequeue();
    served[segment->sender] += segment->bytes;
  }
  EXPECT_GT(jain_index(served), 0.9999);
}

TEST(FairQueueing, ForgetsTheDeficitOfAnIdleFlow) {
  QueueHarness driven({"fair-queueing", "drr", {{"quantum_bytes", 3000}}}, {});
  driven.enqueue(0);
  EXPECT_EQ(driven.senders_of_next(2), (Senders{0}));
  driven.enqueue_many(4, 0);
  driven.enqueue_many(4, 1);
  EXPECT_EQ(driven.senders_of_next(6), (Senders{0, 0, 1, 1, 0, 0}));
}

TEST(FairQueueing, SfqServesFlowsInTurnByPackets) {
  QueueHarness driven({"fair-queueing", "sfq", {}}, {});
  driven.enqueue_many(3, 0, 1500);
  driven.enqueue_many(3, 1, 40);
  EXPECT_EQ(driven.senders_of_next(6), (Senders{0, 1, 0, 1, 0, 1}));
}

TEST(FairQueueing, DropsFromTheLongestQueue) {
  for (const char* const variant : {"drr", "sfq"}) {
    QueueHarness driven({"fair-queueing", variant, {}}, {.buffer_packets = 10});
    driven.enqueue_many(9, 0);
    driven.enqueue_many(5, 1);
    EXPECT_EQ(senders_of(driven.dropped()), (Senders{0, 0, 0, 0}));
    EXPECT_EQ(driven.dropped().front().segment.transmission_number, 8);
    EXPECT_EQ(driven.queue().packets(), 10);
  }
}

TEST(FairQueueing, DoesNotDropForDelay) {
  QueueHarness driven({"fair-queueing", "", {}}, {});
  driven.enqueue_many(1000, 0);
  for (; driven.now_ms < 1e5; driven.now_ms += 100) {
    driven.dequeue();
  }
  EXPECT_TRUE(driven.dropped().empty());
}

}  // namespace
}  // namespace remy
