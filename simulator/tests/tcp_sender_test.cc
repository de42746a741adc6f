#include "transports/tcp_sender.h"

#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "endpoint_on_path.h"

namespace remy {
namespace {

// A constant window, which only a test changes. Records all events.
class ConstantWindow : public CongestionController {
 public:
  struct Events {
    std::vector<AckEvent> acks;
    std::vector<LossEvent> losses;
    std::vector<TimeoutEvent> timeouts;
    int starts = 0;
    double window_after_timeout = 0;  // 0: unchanged
  };

  ConstantWindow(double window, Events& events, double intersend = 0) : events_(events) {
    cwnd_ = window;
    pacing_interval_ms_ = intersend;
  }
  void start(double) override { ++events_.starts; }
  void on_ack(const AckEvent& ack) override { events_.acks.push_back(ack); }
  void on_loss(const LossEvent& loss) override { events_.losses.push_back(loss); }
  void on_timeout(const TimeoutEvent& timeout) override {
    events_.timeouts.push_back(timeout);
    if (events_.window_after_timeout > 0) {
      cwnd_ = events_.window_after_timeout;
    }
  }

 private:
  Events& events_;
};

// Loses the first transmission of each of these packets.
auto first_transmissions_of(std::set<std::uint64_t> packets) {
  return [packets = std::move(packets)](const Segment& segment) mutable {
    return packets.erase(segment.sequence) > 0;
  };
}

struct TcpSenderTest : testing::Test {
  std::unique_ptr<TcpSender> tcp(double window, const TcpSettings& settings = {},
                                 double intersend = 0) {
    return std::make_unique<TcpSender>(settings,
                                       std::make_unique<ConstantWindow>(window, events, intersend));
  }
  static TcpSettings without_sack() {
    TcpSettings settings;
    settings.recovery = RecoveryKind::kNewReno;
    return settings;
  }

  ConstantWindow::Events events;
};

TEST_F(TcpSenderTest, FlowEndsWhenItsLastPacketIsAcknowledged) {
  TcpSettings settings;
  settings.reports_idle_timeouts = false;
  const auto endpoint = tcp(4, settings);
  EndpointOnPath path(*endpoint);
  path.switch_on(10);
  path.run_to_the_end(1e6);
  // Windows of 4, 4 and 2 packets in three RTTs.
  EXPECT_EQ(path.now_ms, 300);
  EXPECT_EQ(path.sent.size(), 10U);
  EXPECT_EQ(endpoint->results().packets_in_order, 10U);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  EXPECT_FALSE(endpoint->timer().is_running());
  EXPECT_EQ(events.acks.back().total_delivered, 10U);
  EXPECT_EQ(events.acks.back().rtt_ms, 100);
}

TEST_F(TcpSenderTest, RetransmitsAfterThreePacketsBeyondAGap) {
  for (const bool uses_sack : {true, false}) {
    events = {};
    const auto endpoint = tcp(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    path.loses = first_transmissions_of({2});
    path.switch_on(std::nullopt);
    path.run_until(100);
    // The ACKs of packets 0 and 1 let one packet each be sent. The third duplicate ACK retransmits
    // packet 2 at the same time.
    ASSERT_EQ(events.losses.size(), 1U) << uses_sack;
    EXPECT_EQ(events.losses[0].transmission_number, 2U);
    EXPECT_TRUE(events.losses[0].starts_recovery);
    const auto repeated = std::ranges::find(path.sent, std::uint64_t{2}, &Segment::sequence);
    const auto again = std::find_if(repeated + 1, path.sent.end(),
                                    [](const Segment& each) { return each.sequence == 2; });
    ASSERT_NE(again, path.sent.end());
    // Ten packets at first, two at ACKs in order, two at duplicate ACKs, and then the
    // retransmission.
    EXPECT_EQ(again->transmission_number, 14U) << uses_sack;
    EXPECT_TRUE(endpoint->in_recovery());
    path.run_until(200);
    EXPECT_FALSE(endpoint->in_recovery());
    EXPECT_EQ(endpoint->results().packets_retransmitted, 1U);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
  }
}

TEST_F(TcpSenderTest, TwoDuplicateAcksAreNoLoss) {
  for (const bool uses_sack : {true, false}) {
    events = {};
    const auto endpoint = tcp(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    // Two packets overtake packet 2.
    path.delays_ms = [](const Segment& each) {
      return each.sequence == 2 ? 2.5 : static_cast<double>(each.sequence) - 2;
    };
    path.switch_on(20);
    path.run_to_the_end(1e6);
    EXPECT_TRUE(events.losses.empty()) << uses_sack;
    EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  }
}

TEST_F(TcpSenderTest, SackRecoversManyLossesInOneRtt) {
  const auto endpoint = tcp(40);
  EndpointOnPath path(*endpoint);
  path.loses = first_transmissions_of({0, 3, 5, 6, 7, 11, 19, 20, 30});
  path.switch_on(40);
  path.run_to_the_end(1e6);
  EXPECT_EQ(path.now_ms, 200);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 9U);
  EXPECT_EQ(events.losses.size(), 9U);
  EXPECT_EQ(std::ranges::count_if(events.losses, &LossEvent::starts_recovery), 1);
  EXPECT_EQ(events.acks.back().total_lost, 9U);
}

TEST_F(TcpSenderTest, WithoutSackEachLossTakesAnRtt) {
  TcpSettings settings = without_sack();
  settings.is_impatient = false;
  for (const std::uint64_t losses : {1, 2, 5, 9}) {
    events = {};
    const auto endpoint = tcp(40, settings);
    EndpointOnPath path(*endpoint);
    std::set<std::uint64_t> lost;
    for (std::uint64_t i = 0; i < losses; ++i) {
      lost.insert(10 + 3 * i);
    }
    path.loses = first_transmissions_of(lost);
    path.switch_on(std::nullopt);
    while (events.losses.empty() || endpoint->in_recovery()) {
      ASSERT_TRUE(path.step(1e5));
    }
    // The first loss is found one RTT after its transmission.
    EXPECT_EQ(path.now_ms, 100 + 100.0 * static_cast<double>(losses));
    EXPECT_EQ(endpoint->results().packets_retransmitted, losses);
    EXPECT_EQ(events.losses.size(), losses);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
  }
}

TEST_F(TcpSenderTest, ImpatientRecoveryFromManyLossesEndsInATimeout) {
  const auto endpoint = tcp(40, without_sack());
  EndpointOnPath path(*endpoint);
  path.loses = first_transmissions_of({10, 13, 16, 19, 22, 25, 28, 31});
  path.switch_on(std::nullopt);
  path.run_until(1000);
  EXPECT_EQ(endpoint->results().timeouts, 1U);
}

TEST_F(TcpSenderTest, TimeoutDoublesUntilAPacketIsDelivered) {
  const auto endpoint = tcp(4);
  EndpointOnPath path(*endpoint);
  int attempts = 0;
  path.loses = [&attempts](const Segment& each) { return each.sequence == 8 && ++attempts <= 5; };
  path.switch_on(9);
  path.run_until(150);
  // Four samples of 100 ms: RTTVAR is 50 and falls by a quarter with each (RFC 6298).
  EXPECT_DOUBLE_EQ(endpoint->timer().smoothed_ms(), 100);
  EXPECT_DOUBLE_EQ(endpoint->timer().variation_ms(), 50 * 0.75 * 0.75 * 0.75);
  path.run_to_the_end(1e6);
  EXPECT_EQ(endpoint->results().timeouts, 5U);
  EXPECT_EQ(events.timeouts.size(), 5U);
  EXPECT_TRUE(events.timeouts[0].is_first);
  EXPECT_FALSE(events.timeouts[1].is_first);
  std::vector<double> copies_ms;
  for (std::size_t i = 0; i < path.sent.size(); ++i) {
    if (path.sent[i].sequence == 8) {
      copies_ms.push_back(path.sent_ms[i]);
    }
  }
  // Packet 8 is first sent at 200 ms, after the ACKs of packets 4 to 7. RTTVAR is 50 * 0.75^7, so
  // that the timeout is the minimum of 200 ms; it doubles each time.
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

TEST(RetransmissionTimerTest, LinuxAppliesTheMinimumToTheVariation) {
  RetransmissionTimer timer({.minimum_ms = 200, .is_minimum_of_variation = true});
  for (int i = 0; i < 100; ++i) {
    timer.sample(150);
  }
  EXPECT_NEAR(timer.timeout_ms(), 350, 1e-9);
}

TEST(RetransmissionTimerTest, VariesByWholeSecondsIfConfigured) {
  RetransmissionTimer timer({.minimum_ms = 1, .varies_by_seconds = true});
  timer.sample(800);
  timer.sample(1600);
  // RTTVAR = 3/4 * 400 + 1/4 * 0; SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
  EXPECT_EQ(timer.variation_ms(), 300);
  EXPECT_EQ(timer.smoothed_ms(), 900);
  timer.sample(3300);
  EXPECT_EQ(timer.variation_ms(), 0.75 * 300 + 0.25 * 2000);
}

TEST_F(TcpSenderTest, RackFindsALostRetransmissionWithoutATimeout) {
  for (const bool finds : {false, true}) {
    events = {};
    TcpSettings settings;
    settings.recovery = finds ? RecoveryKind::kRack : RecoveryKind::kSack;
    settings.timeouts.minimum_ms = 350;
    const auto endpoint = tcp(20, settings);
    EndpointOnPath path(*endpoint);
    int copies = 0;
    path.loses = [&copies](const Segment& each) { return each.sequence == 5 && ++copies <= 2; };
    path.switch_on(200);
    path.run_to_the_end(1e5);
    EXPECT_TRUE(endpoint->is_done());
    EXPECT_EQ(endpoint->results().timeouts, finds ? 0U : 1U);
    EXPECT_EQ(events.losses.size(), finds ? 2U : 1U);
  }
}

TEST_F(TcpSenderTest, TimeoutRetransmitsOnlyMissingPackets) {
  events.window_after_timeout = 10;
  const auto endpoint = tcp(10);
  EndpointOnPath path(*endpoint);
  // Only two packets of the window are delivered, too few for three duplicate ACKs.
  path.loses = first_transmissions_of({10, 11, 12, 13, 16, 17, 18, 19});
  path.switch_on(20);
  path.run_to_the_end(1e5);
  EXPECT_EQ(endpoint->results().timeouts, 1U);
  EXPECT_EQ(endpoint->results().packets_retransmitted, 8U);
  EXPECT_EQ(endpoint->results().packets_in_order, 20U);
}

TEST_F(TcpSenderTest, LostAcksDelayNothing) {
  const auto endpoint = tcp(10);
  EndpointOnPath path(*endpoint);
  path.loses_ack = [](const Segment& echo, const AckContent&) { return echo.sequence % 3 != 2; };
  path.switch_on(30);
  path.run_to_the_end(1e5);
  EXPECT_TRUE(endpoint->is_done());
  EXPECT_EQ(endpoint->results().packets_retransmitted, 0U);
  EXPECT_EQ(events.acks.back().total_delivered, 30U);
  EXPECT_EQ(path.now_ms, 400);
}

TEST_F(TcpSenderTest, LatePacketEndsItsRecovery) {
  for (const bool uses_sack : {true, false}) {
    events = {};
    const auto endpoint = tcp(10, uses_sack ? TcpSettings{} : without_sack());
    EndpointOnPath path(*endpoint);
    path.delays_ms = [](const Segment& each) { return each.transmission_number == 4 ? 30.0 : 0.0; };
    path.switch_on(100);
    path.run_to_the_end(1e5);
    // Without SACK the ACK of the late packet looks like a partial ACK, which shows another loss,
    // and so on for one window.
    EXPECT_EQ(endpoint->results().packets_retransmitted, uses_sack ? 1U : 7U);
    EXPECT_EQ(std::ranges::count_if(events.losses, &LossEvent::starts_recovery), 1);
    EXPECT_EQ(endpoint->results().timeouts, 0U);
    EXPECT_EQ(endpoint->results().packets_in_order, 100U);
  }
}

TEST_F(TcpSenderTest, PacingSpacesAllTransmissions) {
  const auto endpoint = tcp(1000, {}, 2.5);
  EndpointOnPath path(*endpoint);
  path.loses = first_transmissions_of({7, 20});
  path.switch_on(80);
  path.run_to_the_end(1e5);
  for (std::size_t i = 1; i < path.sent_ms.size(); ++i) {
    EXPECT_GE(path.sent_ms[i] - path.sent_ms[i - 1], 2.5);
  }
  EXPECT_EQ(endpoint->results().packets_in_order, 80U);
}

TEST_F(TcpSenderTest, OnPeriodStartsANewConnectionUnlessStateIsKept) {
  for (const bool keeps : {false, true}) {
    events = {};
    TcpSettings settings;
    settings.keeps_state = keeps;
    const auto endpoint = tcp(5, settings);
    EndpointOnPath path(*endpoint);
    path.switch_on(std::nullopt);
    path.run_until(50);
    endpoint->switch_off(path.now_ms);
    path.run_until(60);
    path.switch_on(5);
    path.run_to_the_end(1e5);
    EXPECT_EQ(events.starts, keeps ? 1 : 2);
    // Packets of the earlier period fill the window if state is kept, and are ignored otherwise.
    EXPECT_EQ(path.now_ms, keeps ? 200 : 160);
    EXPECT_EQ(events.acks.size(), keeps ? 10U : 5U);
  }
}

TEST_F(TcpSenderTest, DelayedAckAcknowledgesTwoPackets) {
  TcpSettings settings;
  settings.delayed_ack_ms = 40;
  const auto endpoint = tcp(4, settings);
  EndpointOnPath path(*endpoint);
  path.loses = first_transmissions_of({5});
  path.switch_on(11);
  path.run_to_the_end(1e5);
  // Two ACKs for the first four packets. Packet 5 is lost: the ACK of 4 is delayed until 6 arrives.
  // Packets beyond a gap, or that fill it, are acknowledged at once.
  ASSERT_GE(events.acks.size(), 6U);
  EXPECT_EQ(events.acks[0].newly_acked, 2U);
  EXPECT_EQ(events.acks[1].newly_acked, 2U);
  EXPECT_EQ(events.acks[2].newly_acked, 1U);
  EXPECT_EQ(events.acks[2].newly_delivered, 2U);
  EXPECT_EQ(events.acks[3].newly_acked, 0U);
  EXPECT_EQ(endpoint->results().packets_in_order, 11U);
  EXPECT_EQ(endpoint->results().timeouts, 0U);
  // The ACK of a single packet is delayed by 40 ms.
  const double begin_ms = path.now_ms;
  endpoint->switch_off(begin_ms);
  path.switch_on(1);
  path.run_to_the_end(1e5);
  EXPECT_EQ(path.now_ms, begin_ms + 140);
}

TEST_F(TcpSenderTest, DeliveryRateIsTheRateOfTheLink) {
  const auto endpoint = tcp(200);
  EndpointOnPath path(*endpoint);
  path.rate_packets_per_ms = 0.5;
  path.switch_on(std::nullopt);
  path.run_until(2000);
  EXPECT_NEAR(events.acks.back().delivery_rate_per_ms, 0.5, 0.01);
  EXPECT_FALSE(events.acks.back().packet.is_app_limited);
  EXPECT_TRUE(events.acks.back().is_cwnd_limited);
}

}  // namespace
}  // namespace remy
