#include "elements/sfq_codel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "elements/queue_harness.h"

namespace remy {
namespace {

using Senders = std::vector<std::uint32_t>;

const Choice kSfqCoDel{"sfq-codel", "", {}};

TEST(SfqCoDel, ServesBinsInTurnByPacketsOfAnySize) {
  QueueHarness driven(kSfqCoDel, {});
  driven.enqueue_many(5, 0, 1500);
  driven.enqueue_many(5, 1, 40);
  EXPECT_EQ(driven.senders_of_next(6), (Senders{0, 1, 0, 1, 0, 1}));
}

TEST(SfqCoDel, ServesANewBinAfterOtherNewOnesAndBeforeOldOnes) {
  QueueHarness driven(kSfqCoDel, {});
  driven.enqueue_many(5, 0);
  driven.enqueue_many(5, 1);
  driven.senders_of_next(2);
  driven.enqueue_many(2, 3);
  driven.enqueue_many(2, 2);
  // A bin that has been served is old, and comes after all others.
  EXPECT_EQ(driven.senders_of_next(8), (Senders{3, 2, 0, 1, 3, 2, 0, 1}));
}

TEST(SfqCoDel, KeepsABinOnTheScheduleUntilItIsEmptyAtItsTurn) {
  QueueHarness driven(kSfqCoDel, {});
  driven.enqueue_many(9, 0);
  driven.enqueue(1);
  EXPECT_EQ(driven.senders_of_next(2), (Senders{0, 1}));
  // It has a packet again before its turn, so it is not a new bin.
  driven.enqueue(1);
  EXPECT_EQ(driven.senders_of_next(3), (Senders{0, 1, 0}));
  // It was empty at its turn, so it is a new bin again.
  EXPECT_EQ(driven.senders_of_next(1), (Senders{0}));
  driven.enqueue(1);
  EXPECT_EQ(driven.senders_of_next(1), (Senders{1}));
}

TEST(SfqCoDel, DropsTheLastPacketOfTheLongestBinForAnyArrival) {
  QueueHarness driven(kSfqCoDel, {.buffer_packets = 10});
  driven.enqueue_many(6, 0, 40);
  driven.enqueue_many(4, 1, 1500);
  driven.enqueue(2);
  ASSERT_EQ(senders_of(driven.dropped()), (Senders{0}));
  EXPECT_EQ(driven.dropped().front().segment.transmission_number, 5);
  driven.enqueue(2);
  EXPECT_EQ(driven.dropped().back().segment.transmission_number, 4);
  EXPECT_EQ(driven.queue().packets(), 10);
}

TEST(SfqCoDel, HasNoLimitOfItsOwn) {
  QueueHarness driven(kSfqCoDel, {});
  driven.enqueue_many(20'000, 0);
  EXPECT_TRUE(driven.dropped().empty());
}

// Two bins of 10 ms each on a link of 100 packets per ms.
class TwoBins {
 public:
  void hold(std::size_t first, std::size_t second, double for_ms) {
    for (const double end_ms = driven.now_ms + for_ms; driven.now_ms < end_ms;) {
      for (; counts_[0] < first; ++counts_[0]) {
        driven.enqueue(0);
      }
      for (; counts_[1] < second; ++counts_[1]) {
        driven.enqueue(1);
      }
      const std::size_t dropped = driven.dropped().size();
      if (const auto segment = driven.dequeue()) {
        --counts_[segment->sender];
      }
      for (std::size_t i = dropped; i < driven.dropped().size(); ++i) {
        --counts_[driven.dropped()[i].segment.sender];
      }
      driven.now_ms += 0.01;
    }
  }
  std::vector<double> drops_of(std::uint32_t sender) const {
    std::vector<double> times;
    for (const auto& event : driven.dropped()) {
      if (event.segment.sender == sender) {
        times.push_back(event.now_ms);
      }
    }
    return times;
  }

  QueueHarness driven{kSfqCoDel, {}};

 private:
  std::size_t counts_[2] = {};
};

TEST(SfqCoDel, HasACoDelPerBin) {
  TwoBins bins;
  bins.hold(500, 100, 400);
  const std::vector<double> drops = bins.drops_of(0);
  ASSERT_EQ(drops.size(), 5);
  EXPECT_NEAR(drops[0], 105, 0.1);
  EXPECT_NEAR(drops[1], 205, 0.1);
  EXPECT_NEAR(drops[2], 275.7, 0.1);
  EXPECT_NEAR(drops[3], 333.4, 0.1);
  EXPECT_NEAR(drops[4], 383.4, 0.1);
  EXPECT_TRUE(bins.drops_of(1).empty());
}

TEST(SfqCoDel, ReentersWithCountMinusTwo) {
  TwoBins bins;
  while (bins.drops_of(0).size() < 6) {
    bins.hold(1000, 0, 0.01);
  }
  bins.hold(50, 0, 300);
  while (bins.drops_of(0).size() < 8) {
    bins.hold(1000, 0, 0.01);
  }
  EXPECT_NEAR(bins.drops_of(0)[7] - bins.drops_of(0)[6], 100 / std::sqrt(4), 0.1);
}

TEST(SfqCoDel, NeverDropsTheLastPacketOfABin) {
  // One packet in each of 50 bins, for a second.
  QueueHarness driven(kSfqCoDel, {});
  for (std::uint32_t sender = 0; sender < 50; ++sender) {
    driven.enqueue(sender);
  }
  for (; driven.now_ms < 2000; driven.now_ms += 1) {
    if (const auto segment = driven.dequeue()) {
      driven.enqueue(segment->sender);
    }
  }
  EXPECT_TRUE(driven.dropped().empty());
}

// A bin with little backlog while all bins together have more: FQ-CoDel, which looks at the bin's
// own bytes, keeps its last packet; sfqCoDel drops it.
TEST(SfqCoDel, ComparesTheBytesOfAllBinsTogether) {
  const auto drops_with = [](const Choice& choice, std::uint32_t others) {
    QueueHarness driven(choice, {});
    // On a slow link two packets wait in bin 0 and some in bin 1.
    driven.enqueue_many(2, 0);
    driven.enqueue_many(others, 1);
    for (; driven.now_ms < 3000; driven.now_ms += 10) {
      const std::size_t dropped = driven.dropped().size();
      driven.enqueue(driven.dequeue()->sender);
      for (std::size_t i = dropped; i < driven.dropped().size(); ++i) {
        driven.enqueue(driven.dropped()[i].segment.sender);
      }
    }
    const Senders senders = senders_of(driven.dropped());
    return std::ranges::count(senders, 0U);
  };
  EXPECT_EQ(drops_with(kSfqCoDel, 0), 0);
  EXPECT_GT(drops_with(kSfqCoDel, 5), 0);
  EXPECT_EQ(drops_with({"fq-codel", "", {{"quantum_bytes", 1500}}}, 5), 0);
}

TEST(SfqCoDel, SharesPacketsEqually) {
  QueueHarness driven(kSfqCoDel, {.buffer_packets = 1000});
  std::vector<double> served(8);
  for (int step = 0; step < 20'000; ++step) {
    driven.now_ms += 1;
    for (std::uint32_t flow = 0; flow < served.size(); ++flow) {
      driven.enqueue_many(flow % 3 + 1, flow);
    }
    for (int sent = 0; sent < 2; ++sent) {
      ++served[driven.dequeue()->sender];
    }
  }
  EXPECT_GT(jain_index(served), 0.99999);
}

TEST(SfqCoDel, DoesNotMark) {
  EXPECT_THROW(QueueHarness({"sfq-codel", "", {{"ecn", 1}}}, {}), std::invalid_argument);
  QueueHarness driven(kSfqCoDel, {});
  for (int i = 0; i < 200; ++i) {
    driven.enqueue(0, 1500, true);
  }
  for (; driven.now_ms < 1000; driven.now_ms += 1) {
    driven.enqueue(0, 1500, true);
    driven.dequeue();
  }
  EXPECT_FALSE(driven.dropped().empty());
  for (const auto& event : driven.departed()) {
    EXPECT_FALSE(event.segment.is_marked);
  }
}

}  // namespace
}  // namespace remy
