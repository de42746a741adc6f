#include "transports/ns2_endpoint.h"

#include <gtest/gtest.h>

#include "endpoint_on_path.h"

namespace remy {
namespace {

// One rule: always this window and pacing.
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

TEST_F(Ns2EndpointTest, SendsAWindowByTheRule) {
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

// A packet beyond it shows that one is missing: it leaves at once, ahead of new data.
TEST_F(Ns2EndpointTest, WhatIsMissingIsSentAgainWithoutWaitingForThree) {
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

// The repetition is lost, too: only a timeout shows that, at least 0.2 s after the cumulative ACK
// last moved, and twice as long each time; the window goes on meanwhile.
TEST_F(Ns2EndpointTest, ALostRepetitionWaitsForATimeoutThatDoubles) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  int copies = 0;
  path.loses = [&copies](const Segment& segment) { return segment.sequence == 3 && ++copies <= 4; };
  path.switch_on(std::nullopt);
  path.run_until(2000);
  // Packet 2 was acknowledged at 102 ms. After the two samples before, of 100 ms, RTTVAR is 50 ms *
  // 3/4, and RTO = 100 + 4 * RTTVAR = 250 ms; then 400 ms, twice the least, as ACKs compute it
  // afresh.
  EXPECT_EQ(times_of(path, 3), (std::vector<double>{3, 104, 352, 752, 1152}));
  EXPECT_EQ(sender->results().timeouts, 3U);
  EXPECT_GT(sender->results().packets_received, 150U);
}

TEST_F(Ns2EndpointTest, WithoutAnyAckTheTimeoutGrowsWithoutCeiling) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment&) { return true; };
  path.switch_on(std::nullopt);
  path.run_until(200'000);
  EXPECT_EQ(times_of(path, 0),
            (std::vector<double>{0, 1000, 3000, 7000, 15000, 31000, 63000, 127000}));
}

// The ACK that moves what is acknowledged starts the timer with the timeout as it stands, doubled;
// computed afresh from that ACK, the timeout counts from the next expiry on.
TEST_F(Ns2EndpointTest, TheFirstAckAfterTimeoutsStartsTheTimerWithTheDoubledTimeout) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  // All are lost but the second repetition of packet 0.
  path.loses = [](const Segment& segment) { return segment.transmission_number != 11; };
  path.switch_on(std::nullopt);
  path.run_until(9000);
  EXPECT_EQ(times_of(path, 0), (std::vector<double>{0, 1000, 3000}));
  // Acknowledged at 3100 ms, the timeout being 4000 ms; by its sample it is 300 ms.
  EXPECT_EQ(times_of(path, 1), (std::vector<double>{1, 7100, 7700, 8900}));
}

// By how many whole seconds a sample is off counts alone: RTTs of 100 and 220 ms in turn leave the
// variation to fade, and the timeout at 100 ms above what is smoothed.
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
  // The timer runs from the ACK before on, by the samples before it, of which the last was 100 ms:
  // smoothed are 156 ms, 7/8 * (7/8 * 156 + 220/8) + 100/8.
  EXPECT_NEAR(times[1] - times[0], 156 + 100, 1e-6);
}

// A timeout moves neither the next opportunity to send nor takes from what waits for it.
TEST_F(Ns2EndpointTest, WhatATimeoutSendsStillWaitsToBeSentAgain) {
  table = fixed_rule(10, 1900);
  const auto sender = endpoint();
  EndpointOnPath path(*sender, 150);
  int copies = 0;
  path.loses = [&copies](const Segment& segment) { return segment.sequence == 1 && ++copies <= 3; };
  path.switch_on(std::nullopt);
  path.run_until(7000);
  // RTO = 150 + 4 * 75 ms, doubled twice. The ACK of packet 2 at 3950 ms shows that 1 is missing.
  EXPECT_EQ(times_of(path, 2), (std::vector<double>{3800}));
  EXPECT_EQ(times_of(path, 1), (std::vector<double>{1900, 2350, 3250, 5050, 6950}));
  // The timer also ran out 1000 ms after the first ACK, with nothing under way.
  EXPECT_EQ(sender->results().timeouts, 3U);
}

// What is under way or missing outlasts an off period: it fills the next window, and is repaired.
TEST_F(Ns2EndpointTest, TheNextOnPeriodFindsTheWindowFull) {
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

TEST_F(Ns2EndpointTest, OffSendsNoNewDataButRepairs) {
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

TEST_F(Ns2EndpointTest, AFlowEndsWhenAllIsAcknowledgedInOrder) {
  const auto sender = endpoint();
  EndpointOnPath path(*sender);
  path.loses = [](const Segment& segment) { return segment.transmission_number == 11; };
  path.switch_on(12);
  path.run_to_the_end(1e6);
  // Nothing comes behind the last packet: a timeout repairs it, 200 ms after 200 ms.
  EXPECT_EQ(sender->results().timeouts, 1U);
  EXPECT_EQ(path.now_ms, 500);
}

}  // namespace
}  // namespace remy
