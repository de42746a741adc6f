#include "elements/queues.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "elements/queue_harness.h"
#include "random_cases.h"
#include "reference_queues.h"

namespace remy {
namespace {

std::string message_of(const std::function<void()>& refused) {
  try {
    refused();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

TEST(Queues, AreFoundByNameAndInOrder) {
  std::string last;
  for (const QueueDiscipline& discipline : queue_disciplines()) {
    EXPECT_GT(std::string(discipline.name), last);
    last = discipline.name;
    EXPECT_EQ(&find_queue_discipline(discipline.name), &discipline);
    EXPECT_FALSE(discipline.title.empty());
    ASSERT_FALSE(discipline.variants.empty());
    for (const Variant& variant : discipline.variants) {
      for (const Parameter& parameter : variant.parameters) {
        EXPECT_LE(parameter.minimum, parameter.default_value) << parameter.name;
        EXPECT_LE(parameter.default_value, parameter.maximum) << parameter.name;
      }
    }
  }
  EXPECT_TRUE(find_queue_discipline("xcp").is_xcp_router);
  EXPECT_FALSE(find_queue_discipline("codel").is_xcp_router);
}

TEST(Queues, ErrorMessagesAreOneSentence) {
  EXPECT_EQ(message_of([] { find_queue_discipline("fifo"); }),
            "there is no queue \"fifo\"; there are: codel, drop-tail, fair-queueing, fq-codel, "
            "red, sfq-codel, threshold-marking, xcp");
  EXPECT_EQ(message_of([] { QueueHarness({"codel", "linux", {}}, {}); }),
            "queue codel has no variant \"linux\"; there are: rfc8289, ns2");
  EXPECT_EQ(message_of([] { QueueHarness({"codel", "", {{"target_ms", 0}}}, {}); }),
            "queue codel: target_ms must be from 0.001 to 100000, not 0");
  EXPECT_EQ(message_of([] { QueueHarness({"sfq-codel", "", {}}, {.buffer_packets = 0}); }),
            "queue sfq-codel needs a buffer of at least 1 packet, not 0");
}

void expect_same(const std::vector<QueueHarness::Event>& one,
                 const std::vector<QueueHarness::Event>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Segment& a = one[i].segment;
    const Segment& b = other[i].segment;
    ASSERT_EQ(one[i].now_ms, other[i].now_ms) << i;
    ASSERT_EQ(a.transmission_number, b.transmission_number) << i;
    ASSERT_EQ(a.queued_ms, b.queued_ms) << i;
    ASSERT_EQ(a.is_marked, b.is_marked) << i;
    ASSERT_EQ(a.congestion.feedback_packets, b.congestion.feedback_packets) << i;
  }
}

// All disciplines with random parameters and random arrivals.
class EveryQueue : public testing::TestWithParam<std::uint64_t> {
 protected:
  Choice choice(RandomCase& random) {
    const auto all = queue_disciplines();
    const QueueDiscipline& discipline =
        all[random.integer(0, static_cast<std::uint32_t>(all.size() - 1))];
    const Variant& variant = discipline.variants[random.integer(
        0, static_cast<std::uint32_t>(discipline.variants.size() - 1))];
    Choice choice{std::string(discipline.name), std::string(variant.name), {}};
    const auto sometimes = [&](const std::string& name, double value) {
      for (const Parameter& parameter : variant.parameters) {
        if (parameter.name == name && random.chance(0.7)) {
          choice.parameters.emplace_back(name, value);
        }
      }
    };
    sometimes("target_ms", random.uniform(0.1, 20));
    sometimes("interval_ms", random.uniform(1, 100));
    sometimes("ecn", random.integer(0, 1));
    sometimes("flows", random.integer(1, 8));
    sometimes("quantum_bytes", random.integer(1, 4000));
    sometimes("drop_batch_packets", random.integer(1, 80));
    sometimes("threshold_packets", random.integer(0, 40));
    sometimes("minimum_packets", random.integer(0, 5));
    sometimes("weight", random.uniform(0.001, 1));
    return choice;
  }
};

TEST_P(EveryQueue, HandlesEachSegmentOnceInFlowOrderLikeItsReference) {
  RandomCase random(GetParam());
  QueueSetting setting;
  if (random.chance(0.7)) {
    setting.buffer_packets = random.integer(1, 150);
  }
  setting.rate_packets_per_ms = random.uniform(0.2, 4);
  setting.key = GetParam();
  const Choice chosen = choice(random);
  SCOPED_TRACE(chosen.name + " " + chosen.variant);
  QueueHarness driven(chosen, setting);
  QueueHarness reference(reference_queue(chosen, setting));

  // Transmission numbers of the segments in the queue.
  std::map<std::uint64_t, Segment> waiting;
  std::map<std::pair<std::uint32_t, bool>, std::uint64_t> last_departed;
  std::uint64_t accepted = 0;
  std::size_t drops_seen = 0;
  const auto remove = [&](const Segment& segment) {
    const auto found = waiting.find(segment.transmission_number);
    ASSERT_NE(found, waiting.end()) << segment.transmission_number;
    const Segment& original = found->second;
    EXPECT_EQ(segment.sender, original.sender);
    EXPECT_EQ(segment.bytes, original.bytes);
    EXPECT_EQ(segment.sequence, original.sequence);
    EXPECT_EQ(segment.sent_ms, original.sent_ms);
    EXPECT_EQ(segment.is_ack, original.is_ack);
    EXPECT_EQ(segment.is_ecn_capable, original.is_ecn_capable);
    EXPECT_TRUE(segment.is_ecn_capable || !segment.is_marked);
    EXPECT_TRUE(std::isfinite(segment.congestion.feedback_packets));
    waiting.erase(found);
  };
  const auto check = [&] {
    for (; drops_seen < driven.dropped().size(); ++drops_seen) {
      remove(driven.dropped()[drops_seen].segment);
    }
    std::size_t bytes = 0;
    for (const auto& [serial, segment] : waiting) {
      bytes += segment.bytes;
    }
    ASSERT_EQ(driven.queue().packets(), waiting.size());
    ASSERT_EQ(driven.queue().bytes(), bytes);
    if (setting.buffer_packets) {
      ASSERT_LE(driven.queue().packets(), *setting.buffer_packets);
    }
  };
  const auto dequeue = [&] {
    const auto segment = driven.dequeue();
    reference.dequeue();
    ASSERT_EQ(segment.has_value(), driven.queue().packets() + 1 ==
                                       waiting.size() - (driven.dropped().size() - drops_seen));
    if (segment) {
      EXPECT_LE(segment->queued_ms, driven.now_ms);
      auto& last = last_departed[{segment->sender, segment->is_ack}];
      EXPECT_GE(segment->transmission_number + 1, last + 1);
      last = segment->transmission_number + 1;
      remove(*segment);
    }
    check();
  };

  const double load = random.uniform(0.3, 1.6);
  const std::uint32_t senders = random.integer(1, 12);
  for (int step = 0; step < 1500; ++step) {
    driven.now_ms += random.chance(0.02) ? random.uniform(0, 300) : random.uniform(0, 3);
    while (driven.queue().next_ms() <= driven.now_ms) {
      driven.queue().tick(driven.now_ms);
    }
    reference.now_ms = driven.now_ms;
    while (reference.queue().next_ms() <= reference.now_ms) {
      reference.queue().tick(reference.now_ms);
    }
    for (std::uint32_t bunch = random.chance(load / 3) ? random.integer(1, 5) : 0; bunch > 0;
         --bunch) {
      Segment segment;
      segment.sender = random.integer(0, senders - 1);
      segment.bytes = random.chance(0.8) ? 1500 : random.integer(40, 1500);
      segment.sequence = random.integer(0, 1000);
      segment.sent_ms = random.uniform(0, 1);
      segment.is_ack = random.chance(0.1);
      segment.is_ecn_capable = random.chance(0.5);
      segment.congestion = {random.uniform(1, 100), random.chance(0.1) ? 0 : random.uniform(1, 300),
                            random.chance(0.8) ? 1e6 : random.uniform(-1, 1)};
      segment.transmission_number = accepted;
      waiting[accepted++] = segment;
      driven.enqueue(segment);
      reference.enqueue(segment);
      check();
    }
    if (random.chance(0.5)) {
      dequeue();
    }
    if (HasFatalFailure()) {
      return;
    }
  }
  while (driven.queue().packets() > 0 && !HasFatalFailure()) {
    dequeue();
  }
  EXPECT_EQ(accepted, driven.departed().size() + driven.dropped().size());
  EXPECT_FALSE(driven.dequeue().has_value());
  expect_same(driven.departed(), reference.departed());
  expect_same(driven.dropped(), reference.dropped());
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryQueue, testing::Range<std::uint64_t>(0, 300));

}  // namespace
}  // namespace remy
