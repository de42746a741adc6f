#include "transports/scoreboard.h"

#include <gtest/gtest.h>

#include <map>
#include <ranges>
#include <set>

#include "core/random.h"
#include "transports/reassembly.h"

namespace remy {
namespace {

// A simple model of Scoreboard: a state for every packet, all scanned at every call.
class SlowScoreboard {
 public:
  enum class State { kInFlight, kReceived, kLost };

  std::map<std::uint64_t, State> packets;
  std::set<std::uint64_t> ever_lost;
  std::uint64_t end = 0;

  void send() { packets[end++] = State::kInFlight; }
  void retransmit(std::uint64_t packet) { packets[packet] = State::kInFlight; }
  std::uint64_t count(State state) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(packets, [state](const auto& each) { return each.second == state; }));
  }
  std::uint64_t first_lost() const {
    return std::ranges::find_if(packets,
                                [](const auto& each) { return each.second == State::kLost; })
        ->first;
  }
  std::uint64_t acknowledge(std::uint64_t cumulative) {
    std::uint64_t newly_delivered = 0;
    while (!packets.empty() && packets.begin()->first < cumulative) {
      newly_delivered += packets.begin()->second == State::kReceived ? 0 : 1;
      packets.erase(packets.begin());
    }
    return newly_delivered;
  }
  std::uint64_t acknowledge(const SackBlock& block) {
    std::uint64_t newly_delivered = 0;
    for (auto& [packet, state] : packets) {
      if (packet >= block.first && packet < block.end && state != State::kReceived) {
        state = State::kReceived;
        ++newly_delivered;
      }
    }
    return newly_delivered;
  }
  std::vector<std::uint64_t> detect_losses(std::uint64_t threshold) {
    std::vector<std::uint64_t> found;
    std::uint64_t received_above = 0;
    for (auto& [packet, state] : packets | std::views::reverse) {
      if (state == State::kReceived) {
        ++received_above;
      } else if (state == State::kInFlight && !ever_lost.contains(packet) &&
                 received_above >= threshold) {
        state = State::kLost;
        ever_lost.insert(packet);
        found.insert(found.begin(), packet);
      }
    }
    return found;
  }
};

// A sender and a receiver exchange packets and ACKs, any of which may be lost or late. Both
// scoreboards must stay the same.
class AgainstTheSlowScoreboard : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AgainstTheSlowScoreboard, HasTheSameState) {
  std::uint64_t draws = 0;
  const auto chance = [&draws](double probability) {
    return unit_interval(random_bits(GetParam(), draws++)) < probability;
  };
  const double loss = unit_interval(random_bits(GetParam(), 1u << 30)) * 0.5;
  const std::uint64_t window = GetParam() % 3 == 0 ? 1000 : 30;
  // Without losses and delays of ACKs, the sender processes them by on_received().
  const bool acks_are_reliable = GetParam() % 4 == 1;
  Scoreboard fast;
  SlowScoreboard slow;
  Reassembly reassembly;
  std::set<std::uint64_t> received;
  std::uint64_t transmission_number = 0;
  for (int step = 0; step < 1500; ++step) {
    std::optional<std::uint64_t> sent;
    if (fast.has_lost() && chance(0.5)) {
      sent = fast.first_lost();
      ASSERT_EQ(*sent, slow.first_lost());
      fast.retransmit(*sent).transmission_number = transmission_number++;
      slow.retransmit(*sent);
    } else if (fast.end() - fast.first() < window) {
      sent = fast.end();
      fast.send().transmission_number = transmission_number++;
      slow.send();
    } else {
      ASSERT_EQ(fast.mark_all_lost(), slow.count(SlowScoreboard::State::kInFlight));
      for (auto& [packet, state] : slow.packets) {
        slow.ever_lost.insert(packet);
        state = state == SlowScoreboard::State::kReceived ? state : SlowScoreboard::State::kLost;
      }
    }
    if (!sent || chance(loss)) {
      continue;
    }
    ASSERT_EQ(reassembly.add(*sent), received.insert(*sent).second);
    std::uint64_t in_order = 0;
    while (received.contains(in_order)) {
      ++in_order;
    }
    ASSERT_EQ(reassembly.in_order_end(), in_order);
    AckContent ack;
    reassembly.report(ack);
    for (std::uint32_t block = 0; block < ack.blocks; ++block) {
      const auto [first, end] = ack.sacks[block];
      ASSERT_LT(first, end);
      for (std::uint64_t packet = first; packet < end; ++packet) {
        ASSERT_TRUE(received.contains(packet));
      }
      ASSERT_FALSE(received.contains(first - 1));
      ASSERT_FALSE(received.contains(end));
      ASSERT_TRUE(block > 0 || *sent < in_order || (first <= *sent && *sent < end));
    }
    if (!acks_are_reliable && chance(loss)) {
      continue;
    }
    std::uint64_t newly_delivered = 0;
    const auto delivered = [&newly_delivered](std::uint64_t, const Scoreboard::Transmission&) {
      ++newly_delivered;
    };
    if (acks_are_reliable) {
      newly_delivered = fast.on_received(*sent) ? 1 : 0;
      ASSERT_EQ(fast.first(), in_order);
    } else {
      fast.acknowledge(in_order, delivered);
      for (std::uint32_t block = 0; block < ack.blocks; ++block) {
        fast.acknowledge(ack.sacks[block], delivered);
      }
    }
    std::uint64_t slow_newly_delivered = slow.acknowledge(in_order);
    for (std::uint32_t block = 0; block < ack.blocks; ++block) {
      slow_newly_delivered += slow.acknowledge(ack.sacks[block]);
    }
    ASSERT_EQ(newly_delivered, slow_newly_delivered);
    std::vector<std::uint64_t> found;
    fast.detect_losses(3, found);
    ASSERT_EQ(found, slow.detect_losses(3));
    ASSERT_EQ(fast.in_flight(), slow.count(SlowScoreboard::State::kInFlight));
    ASSERT_EQ(fast.has_lost(), slow.count(SlowScoreboard::State::kLost) > 0);
    for (const auto& [packet, state] : slow.packets) {
      ASSERT_EQ(fast.is_sacked(packet), state == SlowScoreboard::State::kReceived);
      ASSERT_EQ(fast.is_lost(packet), state == SlowScoreboard::State::kLost);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstTheSlowScoreboard, testing::Range<std::uint64_t>(0, 60));

TEST(ScoreboardTest, LossByDistanceNeedsNoSackedPacketsBetween) {
  Scoreboard scoreboard;
  for (int i = 0; i < 10; ++i) {
    scoreboard.send();
  }
  const auto ignore = [](std::uint64_t, const Scoreboard::Transmission&) {};
  std::vector<std::uint64_t> found;
  scoreboard.acknowledge(SackBlock{6, 7}, ignore);
  scoreboard.detect_losses(3, found);
  EXPECT_TRUE(found.empty());
  scoreboard.detect_losses_by_distance(4, found);
  EXPECT_EQ(found, (std::vector<std::uint64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace remy
