#include "senders/ns2_body.h"

#include <gtest/gtest.h>

#include "one_body.h"

namespace remy {
namespace {

// One rule: always this window and pacing.
CompiledTable fixed_rule(double window, double intersend_ms) {
  return RuleTable({Signal::kRttRatio}, {Node{{}, {0, window, intersend_ms}}});
}

struct Ns2BodyTest : testing::Test {
  explicit Ns2BodyTest() : table(fixed_rule(10, 1)) {}

  std::unique_ptr<Body> body() {
    BodySetting setting;
    setting.table = &table;
    return std::make_unique<Ns2Body>(setting);
  }

  std::vector<double> times_of(const OneBody& path, std::uint64_t sequence) const {
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

TEST_F(Ns2BodyTest, SendsAWindowByTheRule) {
  const auto sender = body();
  OneBody path(*sender);
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
TEST_F(Ns2BodyTest, WhatIsMissingIsSentAgainWithoutWaitingForThree) {
  const auto sender = body();
  OneBody path(*sender);
  path.loses = [](const Segment& segment) { return segment.serial == 3; };
  path.switch_on(std::nullopt);
  path.run_until(500);
  EXPECT_EQ(times_of(path, 3), (std::vector<double>{3, 104}));
  EXPECT_EQ(sender->results().packets_repeated, 1U);
  EXPECT_EQ(sender->results().timeouts, 0U);
  EXPECT_EQ(sender->pace().window_packets, 10);
}

// The repetition is lost, too: only a timeout shows that, at least 0.2 s after the cumulative ACK
// last moved, and twice as long each time; the window goes on meanwhile.
TEST_F(Ns2BodyTest, ALostRepetitionWaitsForATimeoutThatDoubles) {
  const auto sender = body();
  OneBody path(*sender);
  int copies = 0;
  path.loses = [&copies](const Segment& segment) { return segment.sequence == 3 && ++copies <= 4; };
  path.switch_on(std::nullopt);
  path.run_until(2000);
  // Packet 2 was acknowledged at 102 ms. After three samples of 100 ms RTTVAR is 50 ms * (3/4)^2,
  // and RTO = 100 + 4 * RTTVAR = 212.5 ms; then 400 ms, twice the least, as ACKs compute it afresh.
  EXPECT_EQ(times_of(path, 3), (std::vector<double>{3, 104, 314.5, 714.5, 1114.5}));
  EXPECT_EQ(sender->results().timeouts, 3U);
  EXPECT_GT(sender->results().packets_received, 150U);
}

TEST_F(Ns2BodyTest, WithoutAnyAckTheTimeoutGrowsWithoutCeiling) {
  const auto sender = body();
  OneBody path(*sender);
  path.loses = [](const Segment&) { return true; };
  path.switch_on(std::nullopt);
  path.run_until(200'000);
  EXPECT_EQ(times_of(path, 0),
            (std::vector<double>{0, 1000, 3000, 7000, 15000, 31000, 63000, 127000}));
}

// What is under way or missing outlasts an off period: it fills the next window, and is repaired.
TEST_F(Ns2BodyTest, TheNextOnPeriodFindsTheWindowFull) {
  const auto sender = body();
  OneBody path(*sender);
  path.loses = [](const Segment& segment) { return segment.serial == 8; };
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

TEST_F(Ns2BodyTest, OffSendsNoNewDataButRepairs) {
  const auto sender = body();
  OneBody path(*sender);
  path.loses = [](const Segment& segment) { return segment.serial == 8; };
  path.switch_on(std::nullopt);
  path.run_until(50);
  sender->switch_off(path.now_ms);
  path.run_until(5000);
  EXPECT_EQ(path.sent.size(), 11U);
  EXPECT_EQ(sender->results().packets_in_order, 10U);
}

TEST_F(Ns2BodyTest, AFlowEndsWhenAllIsAcknowledgedInOrder) {
  const auto sender = body();
  OneBody path(*sender);
  path.loses = [](const Segment& segment) { return segment.serial == 11; };
  path.switch_on(12);
  path.run_to_the_end(1e6);
  // Nothing comes behind the last packet: a timeout repairs it, 200 ms after 200 ms.
  EXPECT_EQ(sender->results().timeouts, 1U);
  EXPECT_EQ(path.now_ms, 500);
}

}  // namespace
}  // namespace remy
