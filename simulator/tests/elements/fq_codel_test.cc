#include "elements/fq_codel.h"

#include <gtest/gtest.h>

#include <vector>

#include "elements/queue_harness.h"

namespace remy {
namespace {

using Senders = std::vector<std::uint32_t>;

// A quantum is one packet, so that turns can be counted.
const Choice kPacketQuantum{"fq-codel", "", {{"quantum_bytes", 1500}}};

TEST(FqCoDel, ServesANewFlowOneQuantumBeforeOldOnes) {
  QueueHarness driven(kPacketQuantum, {});
  driven.enqueue_many(10, 0);
  driven.enqueue_many(10, 1);
  // Both flows have been served and are old.
  driven.senders_of_next(4);
  driven.enqueue_many(3, 2);
  // Flow 1 was served last when the new flow arrives, so it is after it in the round.
  EXPECT_EQ(driven.senders_of_next(7), (Senders{2, 0, 2, 1, 0, 2, 1}));
}

TEST(FqCoDel, HasAQuantumOfTwoPacketsOf1500BytesAsLinuxDoes) {
  QueueHarness driven({"fq-codel", "", {}}, {});
  driven.enqueue_many(10, 0);
  driven.enqueue_many(10, 1);
  // After the first packet a quantum of 1514 bytes leaves a credit of 14, so a second packet is
  // sent. The debt is then 1486, less than a quantum.
  EXPECT_EQ(driven.senders_of_next(8), (Senders{0, 0, 1, 1, 0, 1, 0, 1}));
}

TEST(FqCoDel, ServesNewFlowsInOrderOfArrival) {
  QueueHarness driven(kPacketQuantum, {});
  driven.enqueue_many(2, 5);
  driven.enqueue_many(2, 3);
  driven.enqueue_many(2, 4);
  EXPECT_EQ(driven.senders_of_next(6), (Senders{5, 3, 4, 5, 3, 4}));
}

// RFC 8290, section 4.2: otherwise a flow could become new again and again.
TEST(FqCoDel, MovesAnEmptyNewFlowToTheOldFlowsFirst) {
  QueueHarness driven({"fq-codel", "", {{"quantum_bytes", 4500}}}, {});
  driven.enqueue_many(10, 0);
  EXPECT_EQ(driven.senders_of_next(4), (Senders{0, 0, 0, 0}));
  driven.enqueue(1);
  // It is empty at its turn, with credit left.
  EXPECT_EQ(driven.senders_of_next(2), (Senders{1, 0}));
  driven.enqueue(1);
  EXPECT_EQ(driven.senders_of_next(2), (Senders{0, 1}));
}

TEST(FqCoDel, SparseFlowsDoNotWaitForOthersQueues) {
  QueueHarness driven(kPacketQuantum, {});
  double worst_ms = 0;
  std::uint32_t next = 0;
  for (int step = 0; step < 20'000; ++step, driven.now_ms += 1) {
    while (driven.queue().packets() < 100) {
      driven.enqueue(next = 1 - next);
    }
    // One packet per 20 service times.
    if (step % 20 == 10) {
      driven.enqueue(2);
    }
    if (const auto segment = driven.dequeue(); segment->sender == 2) {
      worst_ms = std::max(worst_ms, driven.now_ms - segment->queued_ms);
    }
  }
  // It arrives at the time of a departure, and departs at once.
  EXPECT_EQ(worst_ms, 0);
}

TEST(FqCoDel, DropsHalfOfTheLargestFlowFromItsHeadUpToABatch) {
  for (const auto& [limit, expected] : {std::pair{100U, 50U}, {1000U, 64U}}) {
    QueueHarness driven(kPacketQuantum, {.buffer_packets = limit});
    driven.enqueue_many(10, 1, 100);
    driven.enqueue_many(limit - 10, 0);
    EXPECT_TRUE(driven.dropped().empty());
    driven.enqueue(1, 100);
    const std::size_t dropped = driven.dropped().size();
    EXPECT_EQ(dropped, std::min((limit - 9) / 2, expected));
    EXPECT_EQ(senders_of(driven.dropped()), Senders(dropped, 0));
    EXPECT_EQ(driven.dropped().front().segment.transmission_number, 10);
    EXPECT_EQ(driven.dropped().back().segment.transmission_number, 10 + dropped - 1);
  }
}

TEST(FqCoDel, LargestFlowIsByBytesNotPackets) {
  QueueHarness driven(kPacketQuantum, {.buffer_packets = 50});
  driven.enqueue_many(40, 0, 50);
  driven.enqueue_many(11, 1, 1500);
  EXPECT_EQ(senders_of(driven.dropped()), Senders(6, 1));
}

TEST(FqCoDel, BatchAndLimitAreParameters) {
  QueueHarness driven({"fq-codel", "", {{"limit_packets", 30}, {"drop_batch_packets", 4}}},
                      {.buffer_packets = 1000});
  driven.enqueue_many(31, 0);
  EXPECT_EQ(driven.dropped().size(), 4);
  QueueHarness default_queue({"fq-codel", "", {}}, {});
  default_queue.enqueue_many(10240, 0);
  EXPECT_TRUE(default_queue.dropped().empty());
  default_queue.enqueue(0);
  EXPECT_EQ(default_queue.dropped().size(), 64);
}

TEST(FqCoDel, SharesBytesEquallyWhateverFlowsSend) {
  QueueHarness driven({"fq-codel", "", {}}, {});
  const std::vector<std::uint32_t> bytes = {1500, 1500, 1500, 700, 700, 300, 1500, 40};
  std::vector<double> served(bytes.size());
  for (int step = 0; step < 50'000; ++step) {
    driven.now_ms += 1;
    for (std::uint32_t flow = 0; flow < bytes.size(); ++flow) {
      // Each flow sends more than its share, some much more.
      driven.enqueue_many(flow % 3 + 1, flow, bytes[flow]);
    }
    for (int sent = 0; sent < 2; ++sent) {
      const auto segment = driven.dequeue();
      served[segment->sender] += segment->bytes;
    }
  }
  EXPECT_GT(jain_index(served), 0.99999);
}

TEST(FqCoDel, HasACoDelPerFlow) {
  QueueHarness driven(kPacketQuantum, {});
  // At 0.1 ms per packet, the packets of one flow wait for 20 ms, and those of the other hardly.
  for (; driven.now_ms < 1000; driven.now_ms += 0.2) {
    while (driven.queue().packets() < 100) {
      driven.enqueue(0);
    }
    driven.enqueue(1);
    driven.dequeue();
    driven.dequeue();
  }
  EXPECT_GT(driven.dropped().size(), 10);
  EXPECT_EQ(senders_of(driven.dropped()), Senders(driven.dropped().size(), 0));
  EXPECT_NEAR(driven.dropped()[1].now_ms - driven.dropped()[0].now_ms, 100, 0.5);
}

TEST(FqCoDel, SeparatesAcksFromData) {
  QueueHarness driven(kPacketQuantum, {});
  driven.enqueue_many(3, 0);
  Segment ack;
  ack.bytes = 40;
  ack.is_ack = true;
  driven.senders_of_next(1);
  driven.enqueue(ack);
  EXPECT_TRUE(driven.dequeue()->is_ack);
}

TEST(FqCoDel, FlowsShareQueuesIfThereAreTooFew) {
  QueueHarness driven({"fq-codel", "", {{"flows", 4}, {"quantum_bytes", 1500}}}, {});
  driven.enqueue_many(2, 0);
  driven.enqueue_many(2, 1);
  driven.enqueue_many(2, 2);
  EXPECT_EQ(driven.senders_of_next(6), (Senders{0, 1, 0, 1, 2, 2}));
}

}  // namespace
}  // namespace remy
