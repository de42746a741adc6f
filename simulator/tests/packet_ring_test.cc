#include "elements/packet_ring.h"

#include <gtest/gtest.h>

#include <deque>

#include "random_cases.h"

namespace remy {
namespace {

bool same(const Packet& a, const Packet& b) {
  return a.sent_ms == b.sent_ms && a.sequence == b.sequence && a.flow == b.flow;
}

class PacketRingAgainstADeque : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PacketRingAgainstADeque, HoldsTheSamePackets) {
  RandomCase random(GetParam());
  PacketRing ring;
  std::deque<Packet> model;
  std::uint32_t sequence = 0;
  for (int phase = 0; phase < 12; ++phase) {
    // Grows and shrinks in turn, beyond the ring's initial slots.
    const double growth = random.uniform(0.2, 0.8);
    for (std::uint32_t steps = random.integer(1, 1500); steps > 0; --steps) {
      if (random.chance(growth)) {
        const Packet packet{random.uniform(0, 100), sequence++, FlowTag(random.integer(0, 9))};
        ASSERT_TRUE(ring.push(packet.sent_ms, packet.sequence, packet.flow));
        model.push_back(packet);
      } else if (!model.empty()) {
        ring.pop();
        model.pop_front();
      }
      ASSERT_EQ(ring.empty(), model.empty());
      if (!model.empty()) {
        ASSERT_TRUE(same(ring.front(), model.front()));
        const std::size_t back = random.integer(1, static_cast<std::uint32_t>(model.size()));
        ASSERT_TRUE(same(ring.from_back(back), model[model.size() - back]));
      }
    }
  }
  for (; !model.empty(); model.pop_front(), ring.pop()) {
    ASSERT_TRUE(same(ring.front(), model.front()));
  }
  EXPECT_TRUE(ring.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, PacketRingAgainstADeque, testing::Range<std::uint64_t>(0, 20));

TEST(PacketRing, RejectsPacketsBeyondItsBoundAndLosesNone) {
  PacketRing ring;
  // Starts in the middle of the array, so that it wraps around.
  for (std::uint32_t i = 0; i < 100; ++i) {
    ring.push(0, i, FlowTag(0));
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    ring.pop();
  }
  std::uint32_t count = 0;
  while (ring.push(0, count, FlowTag(0))) {
    ++count;
  }
  EXPECT_EQ(count, PacketRing::kMaximumPackets);
  EXPECT_EQ(count, (1U << 20) - 1);
  ring.pop();
  EXPECT_TRUE(ring.push(0, count, FlowTag(0)));
  EXPECT_FALSE(ring.push(0, count + 1, FlowTag(0)));
  for (std::uint32_t expected = 1; expected <= count; ++expected) {
    ASSERT_EQ(ring.front().sequence, expected);
    ring.pop();
  }
  EXPECT_TRUE(ring.empty());
}

}  // namespace
}  // namespace remy
