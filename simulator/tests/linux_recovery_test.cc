#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "endpoint_on_path.h"
#include "protocols/protocol.h"
#include "transports/transport.h"

namespace remy {
namespace {

// A constant window of one packet after a timeout, which otherwise only the test and the transport
// change. Records all events.
class RecordingWindow : public CongestionController {
 public:
  struct Events {
    std::vector<AckEvent> acks;
    std::vector<SendEvent> sent;
    int reductions = 0;
    int spurious = 0;
  };

  RecordingWindow(double window, Events& events) : events_(events) { cwnd_ = window; }
  void start(double) override {}
  void on_ack(const AckEvent& ack) override { events_.acks.push_back(ack); }
  void on_sent(const SendEvent& sent) override { events_.sent.push_back(sent); }
  void on_loss(const LossEvent& loss) override { events_.reductions += loss.starts_recovery; }
  void on_timeout(const TimeoutEvent&) override { prior_cwnd_ = std::exchange(cwnd_, 1); }
  void on_spurious_recovery() override {
    ++events_.spurious;
    cwnd_ = std::max(cwnd_, prior_cwnd_);
  }
  void lower_unused_window(double packets) override { cwnd_ = packets; }
  bool is_in_slow_start() const override { return true; }
  void set_cwnd(double packets) { cwnd_ = packets; }

 private:
  Events& events_;
  double prior_cwnd_ = 0;
};

// TCP's variant "linux" on a path with an RTT of 100 ms.
struct LinuxRecovery : testing::Test {
  void connect(double window, std::vector<std::pair<std::string, double>> parameters = {}) {
    const Choice choice{"tcp", "linux", std::move(parameters)};
    const Transport& transport = find_transport("tcp");
    auto controller = std::make_unique<RecordingWindow>(window, events);
    recording = controller.get();
    EndpointSetting setting;
    setting.controller = std::move(controller);
    endpoint = transport.make(ParameterValues("transport", transport.variants, choice),
                              std::move(setting));
    path = std::make_unique<EndpointOnPath>(*endpoint);
  }
  // Loses the first transmission of these packets.
  void lose(std::vector<std::uint64_t> packets) {
    path->loses = [packets = std::move(packets)](const Segment& segment) mutable {
      return std::erase(packets, segment.sequence) > 0;
    };
  }
  const EndpointResults& results() const { return endpoint->results(); }

  RecordingWindow::Events events;
  RecordingWindow* recording = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<EndpointOnPath> path;
};

// RFC 8985, section 6.2, step 4: without any sign of reordering, three SACKed packets end the wait.
TEST_F(LinuxRecovery, ThreePacketsBeyondAGapShowALossAtOnceAtFirst) {
  connect(10);
  lose({2});
  path->switch_on(100);
  path->run_until(100);
  EXPECT_EQ(results().packets_retransmitted, 1U);
  EXPECT_EQ(events.reductions, 1);
}

// RFC 8985, section 3.3.2: once reordering was seen, packets may be late by a quarter of min_RTT.
TEST_F(LinuxRecovery, ReorderedPacketsAreNotLost) {
  connect(50);
  path->rate_packets_per_ms = 2;
  path->delays_ms = [](const Segment& segment) {
    return segment.sequence % 100 == 50 ? 20.0 : 0.0;
  };
  path->switch_on(20'000);
  path->run_to_the_end(1e6);
  // The first late packet looks lost: three packets have overtaken it. Its recovery is undone.
  EXPECT_EQ(results().packets_retransmitted, 1U);
  EXPECT_EQ(events.reductions, 1);
  EXPECT_EQ(events.spurious, 1);
  EXPECT_EQ(results().timeouts, 0U);
}

TEST_F(LinuxRecovery, APacketLaterThanTheReorderingWindowIsLost) {
  connect(50);
  path->rate_packets_per_ms = 2;
  // Late by 20 ms, which opens the window of 25 ms; then by 60 ms.
  path->delays_ms = [](const Segment& segment) {
    return segment.sequence == 50 ? 20.0 : segment.transmission_number == 1001 ? 60.0 : 0.0;
  };
  path->switch_on(5'000);
  path->run_to_the_end(1e6);
  EXPECT_EQ(results().packets_retransmitted, 2U);
}

// RFC 8985, section 7: the last packets of a flow have none behind them that would show their loss.
TEST_F(LinuxRecovery, AProbeFindsALossAtTheTailBeforeTheTimer) {
  connect(10);
  lose({18, 19});
  path->switch_on(20);
  path->run_to_the_end(1e6);
  EXPECT_EQ(results().timeouts, 0U);
  EXPECT_EQ(results().packets_retransmitted, 2U);
  // Packets 10 to 19 are sent at 100 ms; their last ACK arrives at 200 ms. The probe is due two
  // SRTTs later, and its SACK shows that packet 18 is lost, too.
  EXPECT_NEAR(path->now_ms, 200 + 2 * 100 + 100 + 100, 1);
}

TEST_F(LinuxRecovery, AProbeSendsNewDataIfThereIsAny) {
  connect(4);
  // All of the first window is lost.
  lose({0, 1, 2, 3});
  path->switch_on(std::nullopt);
  path->run_until(1099);
  // RFC 8985, section 7.2: the timeout is a second before there is a sample of the RTT.
  ASSERT_EQ(results().packets_sent, 5U);
  EXPECT_EQ(path->sent[4].sequence, 4U);
  EXPECT_EQ(path->sent_ms[4], 1000);
  EXPECT_EQ(results().timeouts, 0U);
}

// Section 7.2: where packets beyond a gap are SACKed, the reordering timer takes over.
TEST_F(LinuxRecovery, NoProbeIsSentWhileThereIsAGap) {
  connect(10, {{"keep_state", 1}});
  path->switch_on(10);
  path->run_to_the_end(1e6);
  // Packet 10 is lost. Packet 11 arrives just before a probe is due, 200 ms after it was sent.
  lose({10});
  path->delays_ms = [](const Segment& segment) { return segment.sequence == 11 ? 90.0 : 0.0; };
  const double begin_ms = path->now_ms;
  path->switch_on(2);
  path->run_to_the_end(1e6);
  EXPECT_EQ(results().packets_retransmitted, 1U);
  EXPECT_NEAR(path->sent_ms.back(), begin_ms + 190 + 25, 0.1);
  EXPECT_EQ(path->sent.back().sequence, 10U);
}

// Section 7.4.2: the loss that a probe repairs is a congestion event.
TEST_F(LinuxRecovery, ALossThatAProbeRepairsReducesTheWindow) {
  connect(10, {{"keep_state", 1}});
  lose({19});
  path->switch_on(20);
  path->run_until(1000);
  EXPECT_EQ(results().packets_retransmitted, 1U);
  EXPECT_EQ(events.reductions, 0);
  path->switch_on(5);
  path->run_until(1200);
  EXPECT_EQ(events.reductions, 1);
}

// RFC 3522, RFC 4015: the ACK of the original shows that a timeout was not needed.
TEST_F(LinuxRecovery, ASpuriousTimeoutIsUndone) {
  connect(10);
  // The path stops for 900 ms and loses nothing.
  path->delays_ms = [](const Segment& segment) {
    return segment.sent_ms >= 300 && segment.sent_ms < 1200 ? 1200 - segment.sent_ms : 0.0;
  };
  path->switch_on(100);
  path->run_to_the_end(1e6);
  EXPECT_GE(results().timeouts, 1U);
  EXPECT_EQ(events.spurious, 1);
  // One probe, and one packet for each timeout: the first late ACK ends the recovery.
  EXPECT_LE(results().packets_retransmitted, 1 + results().timeouts);
}

TEST_F(LinuxRecovery, ALostRetransmissionNeedsNoTimeout) {
  connect(20);
  int copies = 0;
  path->loses = [&copies](const Segment& each) { return each.sequence == 5 && ++copies <= 3; };
  path->switch_on(500);
  path->run_to_the_end(1e6);
  EXPECT_EQ(results().timeouts, 0U);
  EXPECT_EQ(results().packets_retransmitted, 3U);
}

// A loss after the recovery point starts another recovery once the first one ends. Its ACK is not
// that of an original, though its retransmission was sent before this recovery began.
TEST_F(LinuxRecovery, ARetransmissionOfTheRecoveryBeforeIsNoOriginal) {
  connect(20);
  int copies = 0;
  path->loses = [&copies](const Segment& each) {
    return (each.sequence == 5 || each.sequence == 32) && ++copies <= 3;
  };
  path->switch_on(500);
  path->run_to_the_end(1e6);
  EXPECT_EQ(results().packets_retransmitted, 3U);
  EXPECT_EQ(events.reductions, 2);
  EXPECT_EQ(events.spurious, 0);
}

// tcp_cwnd_restart() of Linux: halved once for each timeout, not below the initial window.
TEST_F(LinuxRecovery, AnIdleWindowIsHalvedOncePerTimeout) {
  const auto window_after = [this](double idle_ms) {
    connect(10, {{"keep_state", 1}});
    path->switch_on(100);
    path->run_to_the_end(1e6);
    recording->set_cwnd(640);
    path->run_until(path->now_ms - 100 + idle_ms);  // the last packets were sent an RTT ago
    path->switch_on(1);
    return recording->cwnd();
  };
  // The RTO is 100 + 200 ms.
  EXPECT_EQ(window_after(290), 640);
  EXPECT_EQ(window_after(310), 320);
  EXPECT_EQ(window_after(620), 160);
  EXPECT_EQ(window_after(60'000), 10);
}

TEST_F(LinuxRecovery, AnIdleWindowStaysIfTheRestartIsDisabled) {
  connect(10, {{"keep_state", 1}, {"restart_after_idle", 0}});
  path->switch_on(100);
  path->run_to_the_end(1e6);
  recording->set_cwnd(640);
  path->run_until(path->now_ms + 5000);
  path->switch_on(1);
  EXPECT_EQ(recording->cwnd(), 640);
}

// tcp_is_cwnd_limited(), tcp_cwnd_application_limited() of Linux.
TEST_F(LinuxRecovery, AnUnusedWindowMayNotGrowBeyondTwiceItsUseAndDecays) {
  connect(10, {{"keep_state", 1}});
  const auto burst = [this] {
    path->switch_on(20);
    path->run_until(path->now_ms + 110);
    return events.acks.back().is_cwnd_limited;
  };
  burst();
  recording->set_cwnd(39);
  EXPECT_TRUE(burst());
  recording->set_cwnd(40);
  EXPECT_FALSE(burst());
  // 20 packets in flight at most: (40 + 20) / 2 after an RTO.
  burst();
  burst();
  EXPECT_EQ(recording->cwnd(), 30);
}

// draft-cheng-iccrg-delivery-rate-estimation-02, section 3.4: a sender that writes data after it
// had none is application-limited until that data is delivered.
TEST(ApplicationLimited, FlightAfterAnIdleTimeIsMarked) {
  for (const char* const variant : {"rfc", "newreno", "linux", "ns-2", "ns-2-linux"}) {
    RecordingWindow::Events events;
    const Transport& transport = find_transport("tcp");
    EndpointSetting setting;
    setting.controller = std::make_unique<RecordingWindow>(20, events);
    const auto endpoint = transport.make(
        ParameterValues("transport", transport.variants, {"tcp", variant, {{"keep_state", 1}}}),
        std::move(setting));
    EndpointOnPath path(*endpoint);
    path.switch_on(std::nullopt);
    path.run_until(1050);
    EXPECT_FALSE(events.acks.back().packet.is_app_limited) << variant;
    endpoint->switch_off(path.now_ms);
    path.run_until(2000);
    for (int burst = 0; burst < 3; ++burst) {
      events.acks.clear();
      path.switch_on(10);
      path.run_until(path.now_ms + 150);
      ASSERT_EQ(events.acks.size(), 10U) << variant;
      EXPECT_TRUE(std::ranges::all_of(events.acks, [](const AckEvent& ack) {
        return ack.packet.is_app_limited;
      })) << variant;
    }
    // Bulk again: what is sent once the first packet is delivered is not limited.
    events.acks.clear();
    path.switch_on(std::nullopt);
    path.run_until(path.now_ms + 1000);
    EXPECT_TRUE(events.acks.front().packet.is_app_limited) << variant;
    EXPECT_FALSE(events.acks.back().packet.is_app_limited) << variant;
  }
}

}  // namespace
}  // namespace remy
