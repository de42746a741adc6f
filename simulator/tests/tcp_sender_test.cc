#include "transports/tcp_sender.h"

#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "endpoint_on_path.h"

namespace remy {
namespace {

// A window that only the test changes; hears everything.
class Fixed : public CongestionController {
 public:
  struct Heard {
    std::vector<AckEvent> acks;
    std::vector<LossEvent> losses;
    std::vector<TimeoutEvent> timeouts;
    int starts = 0;
    double window_after_timeout = 0;  // 0: unchanged
  };

  Fixed(double window, Heard& heard, double intersend = 0) : heard_(heard) {
    cwnd_ = window;
    pacing_interval_ms_ = intersend;
  }
  void start(double) override { ++heard_.starts; }
  void on_ack(const AckEvent& ack) override { heard_.acks.push_back(ack); }
  void on_loss(const LossEvent& loss) override { heard_.losses.push_back(loss); }
  void on_timeout(const TimeoutEvent& timeout) override {
    heard_.timeouts.push_back(timeout);
    if (heard_.window_after_timeout > 0) {
      cwnd_ = heard_.window_after_timeout;
    }
  }

 private:
  Heard& heard_;
};

// Loses the first transmission of these packets.
auto first_copies_of(std::set<std::uint64_t> packets) {
  return [packets = std::move(packets)](const Segment& segment) mutable {
    return packets.erase(segment.sequence) > 0;
  };
}

struct TcpSenderTest : testing::Test {
  std::unique_ptr<TcpSender> transport(double window, const TcpSettings& settings = {},
                                       double intersend = 0) {
    return std::make_unique<TcpSender>(settings, std::make_unique<Fixed>(window, heard, intersend));
  }
  static TcpSettings without_sack() {
    TcpSettings settings;
    settings.recovery = RecoveryKind::kNewReno;
    return settings;
  }

  Fixed::Heard heard;
};

TEST_F(TcpSenderTest, AFlowEndsWhenItsLastPacketIsAcknowledged) {
  TcpSettings settings;
  settings.reports_idle_timeouts = false;
  const auto endpoint = transport(4, settings);
  EndpointOnPath path(*endpoint);
  path.switch_on(10);
  path.run_to_the_end(1e6);
  // Windows of 4, 4 and 2 in three RTTs.
  EXPECT_EQ(path.now_ms, 300);
  EXPECT_EQ(path.sent.size(), 10U);
  EXPECT_EQ(endpoint->results().packets_in_order, 10U);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  EXPECT_FALSE(endpoint->timer().is_running());
  EXPECT_EQ(heard.acks.back().total_delivered, 10U);
  EXPECT_EQ(heard.acks.back().rtt_ms, 100);
}

TEST_F(TcpSenderTest, RepeatsAfterThreePacketsAreReceivedBeyondAGap) {
  for (const bool uses_sack : {true, false}) {
    heard = {};
    const auto endpoint = transport(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    path.loses = first_copies_of({2});
    path.switch_on(std::nullopt);
    path.run_until(100);
    // Packets 0 and 1 are acknowledged, and each ACK lets one more leave; the third duplicate
    // repeats packet 2 in the same instant.
    ASSERT_EQ(heard.losses.size(), 1U) << uses_sack;
    EXPECT_EQ(heard.losses[0].transmission_number, 2U);
    EXPECT_TRUE(heard.losses[0].starts_recovery);
    const auto repeated = std::ranges::find(path.sent, std::uint64_t{2}, &Segment::sequence);
    const auto again = std::find_if(repeated + 1, path.sent.end(),
                                    [](const Segment& each) { return each.sequence == 2; });
    ASSERT_NE(again, path.sent.end());
    // Ten at first, two for the packets in order, two for duplicates, and then the repetition.
    EXPECT_EQ(again->transmission_number, 14U) << uses_sack;
    EXPECT_TRUE(endpoint->in_recovery());
    path.run_until(200);
    EXPECT_FALSE(endpoint->in_recovery());
    EXPECT_EQ(endpoint->results().packets_retransmitted, 1U);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
  }
}

TEST_F(TcpSenderTest, TwoDuplicatesAreNoLoss) {
  for (const bool uses_sack : {true, false}) {
    heard = {};
    const auto endpoint = transport(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    // Packet 2 is overtaken by two.
    path.delays_ms = [](const Segment& each) {
      return each.sequence == 2 ? 2.5 : static_cast<double>(each.sequence) - 2;
    };
    path.switch_on(20);
    path.run_to_the_end(1e6);
    EXPECT_TRUE(heard.losses.empty()) << uses_sack;
    EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  }
}

TEST_F(TcpSenderTest, SelectiveAcknowledgementsRepairManyLossesInOneRtt) {
  const auto endpoint = transport(40);
  EndpointOnPath path(*endpoint);
  path.loses = first_copies_of({0, 3, 5, 6, 7, 11, 19, 20, 30});
  path.switch_on(40);
  path.run_to_the_end(1e6);
  EXPECT_EQ(path.now_ms, 200);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 9U);
  EXPECT_EQ(heard.losses.size(), 9U);
  EXPECT_EQ(std::ranges::count_if(heard.losses, &LossEvent::starts_recovery), 1);
  EXPECT_EQ(heard.acks.back().total_lost, 9U);
}

TEST_F(TcpSenderTest, WithoutThemEachLossTakesAnRtt) {
  TcpSettings settings = without_sack();
  settings.is_impatient = false;
  for (const std::uint64_t losses : {1, 2, 5, 9}) {
    heard = {};
    const auto endpoint = transport(40, settings);
    EndpointOnPath path(*endpoint);
    std::set<std::uint64_t> lost;
    for (std::uint64_t i = 0; i < losses; ++i) {
      lost.insert(10 + 3 * i);
    }
    path.loses = first_copies_of(lost);
    path.switch_on(std::nullopt);
    while (heard.losses.empty() || endpoint->in_recovery()) {
      ASSERT_TRUE(path.step(1e5));
    }
    // The first loss is found an RTT after it left.
    EXPECT_EQ(path.now_ms, 100 + 100.0 * static_cast<double>(losses));
    EXPECT_EQ(endpoint->results().packets_retransmitted, losses);
    EXPECT_EQ(heard.losses.size(), losses);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
  }
}

TEST_F(TcpSenderTest, AnImpatientRecoveryWithManyLossesEndsInATimeout) {
  const auto endpoint = transport(40, without_sack());
  EndpointOnPath path(*endpoint);
  path.loses = first_copies_of({10, 13, 16, 19, 22, 25, 28, 31});
  path.switch_on(std::nullopt);
  path.run_until(1000);
  EXPECT_EQ(endpoint->results().timeouts, 1U);
}

TEST_F(TcpSenderTest, ATimeoutDoublesUntilAPacketGetsThrough) {
  const auto endpoint = transport(4);
  EndpointOnPath path(*endpoint);
  int attempts = 0;
  path.loses = [&attempts](const Segment& each) { return each.sequence == 8 && ++attempts <= 5; };
  path.switch_on(9);
  path.run_until(150);
  // Four samples of 100 ms, whose variation falls from 50 by a quarter each: RFC 6298.
  EXPECT_DOUBLE_EQ(endpoint->timer().smoothed_ms(), 100);
  EXPECT_DOUBLE_EQ(endpoint->timer().variation_ms(), 50 * 0.75 * 0.75 * 0.75);
  path.run_to_the_end(1e6);
  EXPECT_EQ(endpoint->results().timeouts, 5U);
  EXPECT_EQ(heard.timeouts.size(), 5U);
  EXPECT_TRUE(heard.timeouts[0].is_first);
  EXPECT_FALSE(heard.timeouts[1].is_first);
  std::vector<double> copies_ms;
  for (std::size_t i = 0; i < path.sent.size(); ++i) {
    if (path.sent[i].sequence == 8) {
      copies_ms.push_back(path.sent_ms[i]);
    }
  }
  // Sent at 200 ms, as were the ACKs of packets 4 to 7: variation 50 * 0.75^7, so that the least
  // timeout of 200 ms holds; then twice that each time.
  EXPECT_EQ(copies_ms, (std::vector<double>{200, 400, 800, 1600, 3200, 6400}));
}

TEST(RetransmissionTimerTest, FollowsTheFormula) {
  RetransmissionTimer timer({.minimum_ms = 1});
  EXPECT_EQ(timer.timeout_ms(), 1000);
  timer.sample(80);
  EXPECT_EQ(timer.smoothed_ms(), 80);
  EXPECT_EQ(timer.variation_ms(), 40);
  EXPECT_EQ(timer.timeout_ms(), 80 + 4 * 40);
  timer.sample(120);
  // RTTVAR = 3/4 * 40 + 1/4 * |80 - 120| = 40; SRTT = 7/8 * 80 + 1/8 * 120 = 85.
  EXPECT_EQ(timer.variation_ms(), 40);
  EXPECT_EQ(timer.smoothed_ms(), 85);
  EXPECT_EQ(timer.timeout_ms(), 245);
  timer.back_off();
  timer.back_off();
  EXPECT_EQ(timer.timeout_ms(), 980);
  timer.sample(85);
  EXPECT_EQ(timer.timeout_ms(), 85 + 4 * 30);
  for (int i = 0; i < 20; ++i) {
    timer.back_off();
  }
  EXPECT_EQ(timer.timeout_ms(), 60000);
}

TEST(RetransmissionTimerTest, LinuxHoldsTheVariationToTheMinimum) {
  RetransmissionTimer timer({.minimum_ms = 200, .is_minimum_of_variation = true});
  for (int i = 0; i < 100; ++i) {
    timer.sample(150);
  }
  EXPECT_NEAR(timer.timeout_ms(), 350, 1e-9);
}

TEST(RetransmissionTimerTest, CountsWholeSecondsOfADistanceIfTold) {
  RetransmissionTimer timer({.minimum_ms = 1, .varies_by_seconds = true});
  timer.sample(800);
  timer.sample(1600);
  // RTTVAR = 3/4 * 400 + 1/4 * 0; SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
  EXPECT_EQ(timer.variation_ms(), 300);
  EXPECT_EQ(timer.smoothed_ms(), 900);
  timer.sample(3300);
  EXPECT_EQ(timer.variation_ms(), 0.75 * 300 + 0.25 * 2000);
}

TEST_F(TcpSenderTest, ALostRepetitionShowsByATimeoutOrByWhatLeftLater) {
  for (const bool finds : {false, true}) {
    heard = {};
    TcpSettings settings;
    settings.uses_rack = finds;
    settings.timeouts.minimum_ms = 350;
    const auto endpoint = transport(20, settings);
    EndpointOnPath path(*endpoint);
    int copies = 0;
    path.loses = [&copies](const Segment& each) { return each.sequence == 5 && ++copies <= 2; };
    path.switch_on(200);
    path.run_to_the_end(1e5);
    EXPECT_TRUE(endpoint->is_done());
    EXPECT_EQ(endpoint->results().timeouts, finds ? 0U : 1U);
    EXPECT_EQ(heard.losses.size(), finds ? 2U : 1U);
  }
}

TEST_F(TcpSenderTest, AfterATimeoutOnlyWhatIsMissingIsSentAgain) {
  heard.window_after_timeout = 10;
  const auto endpoint = transport(10);
  EndpointOnPath path(*endpoint);
  // All but two packets of a window are lost: too few for three duplicates.
  path.loses = first_copies_of({10, 11, 12, 13, 16, 17, 18, 19});
  path.switch_on(20);
  path.run_to_the_end(1e5);
  EXPECT_EQ(endpoint->results().timeouts, 1U);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 8U);
  EXPECT_EQ(endpoint->results().packets_in_order, 20U);
}

TEST_F(TcpSenderTest, LostAcknowledgementsDelayNothing) {
  const auto endpoint = transport(10);
  EndpointOnPath path(*endpoint);
  path.loses_ack = [](const Segment& echo, const AckContent&) { return echo.sequence % 3 != 2; };
  path.switch_on(30);
  path.run_to_the_end(1e5);
  EXPECT_TRUE(endpoint->is_done());
  EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  EXPECT_EQ(heard.acks.back().total_delivered, 30U);
  EXPECT_EQ(path.now_ms, 400);
}

TEST_F(TcpSenderTest, APacketThatWasOnlyLateEndsItsRecovery) {
  for (const bool uses_sack : {true, false}) {
    heard = {};
    const auto endpoint = transport(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    path.delays_ms = [](const Segment& each) { return each.transmission_number == 4 ? 30.0 : 0.0; };
    path.switch_on(100);
    path.run_to_the_end(1e5);
    // Without SACK the ACK of the late packet looks like one of the repetition, behind which
    // another is missing, and so on for a window.
    EXPECT_EQ(endpoint->results().packets_retransmitted, uses_sack ? 1U : 7U);
    EXPECT_EQ(std::ranges::count_if(heard.losses, &LossEvent::starts_recovery), 1);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
    EXPECT_EQ(endpoint->results().packets_in_order, 100U);
  }
}

TEST_F(TcpSenderTest, PacingSpacesEverything) {
  const auto endpoint = transport(1000, {}, 2.5);
  EndpointOnPath path(*endpoint);
  path.loses = first_copies_of({7, 20});
  path.switch_on(80);
  path.run_to_the_end(1e5);
  for (std::size_t i = 1; i < path.sent_ms.size(); ++i) {
    EXPECT_GE(path.sent_ms[i] - path.sent_ms[i - 1], 2.5);
  }
  EXPECT_EQ(endpoint->results().packets_in_order, 80U);
}

TEST_F(TcpSenderTest, AnOnPeriodIsANewConnectionUnlessStateIsKept) {
  for (const bool keeps : {false, true}) {
    heard = {};
    TcpSettings settings;
    settings.keeps_state = keeps;
    const auto endpoint = transport(5, settings);
    EndpointOnPath path(*endpoint);
    path.switch_on(std::nullopt);
    path.run_until(50);
    endpoint->switch_off(path.now_ms);
    path.run_until(60);
    path.switch_on(5);
    path.run_to_the_end(1e5);
    EXPECT_EQ(heard.starts, keeps ? 1 : 2);
    // What is on its way from before fills a kept window, and is of no interest to a new one.
    EXPECT_EQ(path.now_ms, keeps ? 200 : 160);
    EXPECT_EQ(heard.acks.size(), keeps ? 10U : 5U);
  }
}

TEST_F(TcpSenderTest, DelayedAcknowledgementsStandForTwo) {
  TcpSettings settings;
  settings.delayed_ack_ms = 40;
  const auto endpoint = transport(4, settings);
  EndpointOnPath path(*endpoint);
  path.loses = first_copies_of({5});
  path.switch_on(11);
  path.run_to_the_end(1e5);
  // Two of four packets each. Of the next four, 5 is lost: 4 waits until 6 shows that, and what
  // comes behind a gap, or fills it, is acknowledged at once.
  ASSERT_GE(heard.acks.size(), 6U);
  EXPECT_EQ(heard.acks[0].newly_acked, 2U);
  EXPECT_EQ(heard.acks[1].newly_acked, 2U);
  EXPECT_EQ(heard.acks[2].newly_acked, 1U);
  EXPECT_EQ(heard.acks[2].newly_delivered, 2U);
  EXPECT_EQ(heard.acks[3].newly_acked, 0U);
  EXPECT_EQ(endpoint->results().packets_in_order, 11U);
  EXPECT_EQ(endpoint->results().timeouts, 0U);
  // A single packet waits 40 ms.
  const double begin_ms = path.now_ms;
  endpoint->switch_off(begin_ms);
  path.switch_on(1);
  path.run_to_the_end(1e5);
  EXPECT_EQ(path.now_ms, begin_ms + 140);
}

TEST_F(TcpSenderTest, RatesAreOfWhatWasDelivered) {
  const auto endpoint = transport(200);
  EndpointOnPath path(*endpoint);
  path.rate_packets_per_ms = 0.5;
  path.switch_on(std::nullopt);
  path.run_until(2000);
  EXPECT_NEAR(heard.acks.back().delivery_rate_per_ms, 0.5, 0.01);
  EXPECT_FALSE(heard.acks.back().packet.is_app_limited);
  EXPECT_TRUE(heard.acks.back().is_cwnd_limited);
}

}  // namespace
}  // namespace remy
