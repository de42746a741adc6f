#include "transports/ns2_endpoint.h"

#include <gtest/gtest.h>

#include "endpoint_on_path.h"

namespace remy {
namespace {

// A table of one rule: a constant window and intersend time.
CompiledTable fixed_rule(double window, double intersend_ms) {
  return RuleTable({Signal::kRttRatio}, {Node{{}, {0, window, intersend_ms}}});
}

struct Ns2EndpointTest : testing::Test {
  explicit Ns2EndpointTest() : table(fixed_rule(10, 1)) {}

  std::unique_ptr<Endpoint> endpoint() {
    EndpointSetting setting;
    setting.table = &table;
    return std::make_unique<Ns2Endpoint>(setting);
  }

  std::vector<double> times_of(const EndpointOnPath& path, std::uint64_t sequence) const {
    std::vector<double> times;
    for (std::size_t i = 0; i < path.sent.size(); ++i) {
      if (path.sent[i].sequence == sequence) {
        times.push_back(path.sent_ms[i]);
      }
    }
    return times;
  }

  CompiledTable table;
};

TEST_F(Ns2EndpointTest, SendsTheWindowOfTheRule) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.switch_on(std::nullopt);
  path.run_until(99);
  EXPECT_EQ(path.sent.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(path.sent_ms[i], static_cast<double>(i));
  }
  path.run_until(1099);
  EXPECT_EQ(path.sent.size(), 110U);
}

// A packet beyond a missing one shows the gap: the missing packet is sent at once, before new data.
TEST_F(Ns2EndpointTest, RetransmitsAtTheFirstPacketBeyondAGap) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) { return segment.transmission_number == 3; };
  path.switch_on(std::nullopt);
  path.run_until(500);
  EXPECT_EQ(times_of(path, 3), (std::vector<double>{3, 104}));
  EXPECT_EQ(sender->results().packets_retransmitted, 1U);
  EXPECT_EQ(sender->results().timeouts, 0U);
  EXPECT_EQ(sender->pace().window_packets, 10);
}

// The retransmission is lost, too. Only a timeout finds that, at least 0.2 s after the cumulative
// ACK last advanced, then twice as long each time. New packets are sent meanwhile.
TEST_F(Ns2EndpointTest, LostRetransmissionWaitsForATimeoutThatDoubles) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  int copies = 0;
  path.loses = [&copies](const Segment& segment) { return segment.sequence == 3 && ++copies <= 4; };
  path.switch_on(std::nullopt);
  path.run_until(2000);
  // Packet 2 is acknowledged at 102 ms. After two samples of 100 ms, RTTVAR is 50 ms * 3/4 and RTO
  // = 100 + 4 * RTTVAR = 250 ms. ACKs then compute it anew, and it is 400 ms, twice the minimum.
  EXPECT_EQ(times_of(path, 3), (std::vector<double>{3, 104, 352, 752, 1152}));
  EXPECT_EQ(sender->results().timeouts, 3U);
  EXPECT_GT(sender->results().packets_received, 150U);
}

TEST_F(Ns2EndpointTest, TimeoutDoublesWithoutLimitIfNoAckArrives) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment&) { return true; };
  path.switch_on(std::nullopt);
  path.run_until(200'000);
  EXPECT_EQ(times_of(path, 0),
            (std::vector<double>{0, 1000, 3000, 7000, 15000, 31000, 63000, 127000}));
}

// The ACK of new data restarts the timer with the doubled timeout. The timeout that its sample
// yields applies from the next expiry on.
TEST_F(Ns2EndpointTest, FirstAckAfterTimeoutsRestartsTheTimerWithTheDoubledTimeout) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  // All packets are lost but the second retransmission of packet 0.
  path.loses = [](const Segment& segment) { return segment.transmission_number != 11; };
  path.switch_on(std::nullopt);
  path.run_until(9000);
  EXPECT_EQ(times_of(path, 0), (std::vector<double>{0, 1000, 3000}));
  // The ACK arrives at 3100 ms, when the timeout is 4000 ms; its sample yields 300 ms.
  EXPECT_EQ(times_of(path, 1), (std::vector<double>{1, 7100, 7700, 8900}));
}

// Only whole seconds of a sample's distance count: with RTTs of 100 and 220 ms in turn RTTVAR
// decays, and the timeout is 100 ms above the smoothed RTT.
TEST_F(Ns2EndpointTest, RttsThatDifferByLessThanASecondDoNotRaiseTheTimeout) {
  table = fixed_rule(1, 1);
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.delays_ms = [](const Segment& segment) {
    return segment.transmission_number % 2 == 1 ? 120 : 0;
  };
  path.loses = [](const Segment& segment) { return segment.transmission_number == 200; };
  path.switch_on(std::nullopt);
  path.run_until(100'000);
  const std::vector<double> times = times_of(path, 200);
  ASSERT_EQ(times.size(), 2U);
  // The timer was restarted by the ACK before, with the samples before it, the last of which was
  // 100 ms: SRTT is 156 ms, 7/8 * (7/8 * 156 + 220/8) + 100/8.
  EXPECT_NEAR(times[1] - times[0], 156 + 100, 1e-6);
}

// A timeout neither changes the next send opportunity nor the packets that wait for it.
TEST_F(Ns2EndpointTest, PacketSentByATimeoutStillWaitsForItsRetransmission) {
  table = fixed_rule(10, 1900);
  const auto sender = endpoint();
  EndpointOnPath path(*sender, 150);
  int copies = 0;
  path.loses = [&copies](const Segment& segment) { return segment.sequence == 1 && ++copies <= 3; };
  path.switch_on(std::nullopt);
  path.run_until(7000);
  // RTO = 150 + 4 * 75 ms, doubled twice. The ACK of packet 2 at 3950 ms shows that packet 1 is
  // missing.
  EXPECT_EQ(times_of(path, 2), (std::vector<double>{3800}));
  EXPECT_EQ(times_of(path, 1), (std::vector<double>{1900, 2350, 3250, 5050, 6950}));
  // The timer also expired 1000 ms after the first ACK, with nothing in flight.
  EXPECT_EQ(sender->results().timeouts, 3U);
}

// Packets in flight or missing outlast an off period: they fill the next window, and are
// retransmitted.
TEST_F(Ns2EndpointTest, NextOnPeriodStartsWithAFullWindow) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) { return segment.transmission_number == 8; };
  path.switch_on(std::nullopt);
  path.run_until(50);
  sender->switch_off(path.now_ms);
  path.run_until(60);
  path.switch_on(std::nullopt);
  path.run_until(99);
  EXPECT_EQ(path.sent.size(), 10U);
  path.run_until(150);
  EXPECT_EQ(times_of(path, 8), (std::vector<double>{8, 109}));
}

TEST_F(Ns2EndpointTest, OffPeriodSendsRetransmissionsButNoNewData) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) { return segment.transmission_number == 8; };
  path.switch_on(std::nullopt);
  path.run_until(50);
  sender->switch_off(path.now_ms);
  path.run_until(5000);
  EXPECT_EQ(path.sent.size(), 11U);
  EXPECT_EQ(sender->results().packets_in_order, 10U);
}

// The study's application resets the agent when an on period ends, too: its retransmissions leave
// by the window and the interval of a new memory's rule. ACKs do not change that memory.
TEST_F(Ns2EndpointTest, OffPeriodRetransmitsByTheRuleOfANewMemory) {
  // One packet in 50 ms until an RTT ratio is known, then one in 1 ms.
  table = RuleTable({Signal::kRttRatio}, {Node{{{Signal::kRttRatio, 0.5}}, {}},
                                          Node{{}, {0, 10, 50}}, Node{{}, {0, 10, 1}}});
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) {
    return segment.transmission_number == 4 || segment.transmission_number == 5;
  };
  path.switch_on(std::nullopt);
  path.run_until(200);
  sender->switch_off(path.now_ms);
  path.run_until(1000);
  // The second ACK, at 150 ms, yields the first ratio. The ACK at 253 ms shows the losses.
  EXPECT_EQ(times_of(path, 4), (std::vector<double>{151, 253}));
  EXPECT_EQ(times_of(path, 5), (std::vector<double>{152, 303}));
}

TEST_F(Ns2EndpointTest, AcksHaveTheSizeOfNs2sSink) {
  const auto receiver = endpoint();
  const auto ack_bytes = [&receiver](std::uint64_t sequence) {
    Segment segment;
    segment.sequence = sequence;
    return receiver->on_data(segment, 0)->bytes;
  };
  EXPECT_EQ(ack_bytes(0), 40U);
  // Each of at most three SACK blocks has 8 bytes.
  EXPECT_EQ(ack_bytes(2), 48U);
  EXPECT_EQ(ack_bytes(4), 56U);
  EXPECT_EQ(ack_bytes(6), 64U);
  EXPECT_EQ(ack_bytes(8), 64U);
  EXPECT_EQ(ack_bytes(1), 64U);
}

TEST_F(Ns2EndpointTest, FlowEndsWhenAllPacketsAreAcknowledgedInOrder) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) { return segment.transmission_number == 11; };
  path.switch_on(12);
  path.run_to_the_end(1e6);
  // No packet follows the last one: a timeout retransmits it, 200 ms after 200 ms.
  EXPECT_EQ(sender->results().timeouts, 1U);
  EXPECT_EQ(path.now_ms, 500);
}

}  // namespace
}  // namespace remy
