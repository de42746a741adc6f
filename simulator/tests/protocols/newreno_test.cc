#include <gtest/gtest.h>

#include <cmath>

#include "endpoint_on_path.h"
#include "protocols/ack_clock.h"
#include "protocols/protocol.h"
#include "transports/tcp_sender.h"

namespace remy {
namespace {

std::unique_ptr<CongestionController> make(const Choice& choice) {
  const Protocol& protocol = find_protocol(choice.name);
  return protocol.make(ParameterValues("protocol", protocol.variants, choice), 0);
}

// The mean window over time if a packet is lost 1/p packets after the last loss. Ignores the first
// cycles, which start from slow start.
double mean_window_of_transport(const Choice& choice, double loss) {
  TcpSender endpoint({}, make(choice));
  EndpointOnPath path(endpoint);
  path.keeps_record = false;
  const auto cycle = static_cast<std::uint64_t>(1 / loss);
  path.loses = [cycle, next = std::uint64_t{100}](const Segment& segment) mutable {
    if (segment.sequence < next) {
      return false;
    }
    next = segment.sequence + cycle;
    return true;
  };
  path.switch_on(std::nullopt);
  double sum = 0;
  int samples = 0;
  while (endpoint.results().packets_in_order < 60 * cycle) {
    path.run_until(path.now_ms + 50);
    if (endpoint.results().packets_in_order > 20 * cycle) {
      sum += endpoint.controller().cwnd();
      ++samples;
    }
  }
  return sum / samples;
}

TEST(NewReno, MeanWindowIsSqrtOfThreeHalvesOverP) {
  for (const double loss : {1e-3, 1e-4}) {
    EXPECT_NEAR(mean_window_of_transport({"newreno", "", {}}, loss) / std::sqrt(1.5 / loss), 1,
                0.06)
        << loss;
  }
  // With a window of a dozen packets, recovery's round trip and whole packets cost a seventh.
  EXPECT_NEAR(mean_window_of_transport({"newreno", "", {}}, 1e-2) / std::sqrt(1.5 / 1e-2), 0.86,
              0.03);
}

// Larger windows are tested on the rule alone. Recovery takes a smaller part of a longer cycle.
TEST(NewReno, MeanWindowFollowsTheFormulaForLargeWindows) {
  for (const std::uint64_t packets_per_loss : {100'000U, 1'000'000U}) {
    const double formula = std::sqrt(1.5 * static_cast<double>(packets_per_loss));
    EXPECT_NEAR(mean_window({"newreno", "", {}}, 100, packets_per_loss, 1, 6) / formula, 1, 0.02)
        << packets_per_loss;
  }
}

TEST(Aimd, MeanWindowFollowsItsParameters) {
  for (const auto& [increase, decrease] : {std::pair{1.0, 0.5}, {0.5, 0.7}, {2.0, 0.8}}) {
    const double loss = 1e-4;
    const double expected = std::sqrt(increase * (1 + decrease) / (2 * (1 - decrease) * loss));
    const double mean = mean_window_of_transport(
        {"aimd", "", {{"increase_packets", increase}, {"decrease_factor", decrease}}}, loss);
    EXPECT_NEAR(mean / expected, 1, 0.05) << increase << " " << decrease;
  }
}

AckEvent ack_of_one(double now_ms) {
  AckEvent ack;
  ack.now_ms = now_ms;
  ack.rtt_ms = 100;
  ack.newly_acked = 1;
  ack.newly_delivered = 1;
  ack.is_cwnd_limited = true;
  return ack;
}

TEST(NewReno, SlowStartsThenGrowsByOnePacketPerWindow) {
  const auto controller = make({"newreno", "", {}});
  controller->start(0);
  EXPECT_EQ(controller->cwnd(), 10);
  for (int i = 0; i < 30; ++i) {
    controller->on_ack(ack_of_one(i));
  }
  EXPECT_EQ(controller->cwnd(), 40);
  LossEvent loss;
  loss.in_flight = 40;
  loss.starts_recovery = true;
  controller->on_loss(loss);
  EXPECT_EQ(controller->cwnd(), 20);
  for (int i = 0; i < 20; ++i) {
    controller->on_ack(ack_of_one(100 + i));
  }
  EXPECT_NEAR(controller->cwnd(), 21, 0.03);
  // RFC 5681, section 3.1: ssthresh is half of the flight size at the first of several timeouts.
  controller->on_timeout({.now_ms = 300, .in_flight = 12, .is_first = true});
  controller->on_timeout({.now_ms = 600, .in_flight = 1, .is_first = false});
  EXPECT_EQ(controller->cwnd(), 1);
  for (int i = 0; i < 5; ++i) {
    controller->on_ack(ack_of_one(700 + i));
  }
  EXPECT_EQ(controller->cwnd(), 6);
  controller->on_ack(ack_of_one(710));
  EXPECT_DOUBLE_EQ(controller->cwnd(), 6 + 1.0 / 6);
}

TEST(NewReno, DoesNotGrowUnlessTheWindowIsFull) {
  const auto controller = make({"newreno", "", {}});
  controller->start(0);
  AckEvent ack = ack_of_one(1);
  ack.is_cwnd_limited = false;
  controller->on_ack(ack);
  EXPECT_EQ(controller->cwnd(), 10);
}

// The ns-2 variant deflates its window at a partial ACK for more packets than duplicate ACKs have
// accounted for.
TEST(NewReno, Ns2VariantDeflatesItsWindowAtPartialAcks) {
  const auto controller = make({"newreno", "ns-2", {{"initial_window_packets", 40}}});
  controller->start(0);
  LossEvent loss;
  loss.starts_recovery = true;
  controller->on_loss(loss);
  EXPECT_EQ(controller->cwnd(), 20);
  AckEvent ack = ack_of_one(1);
  ack.in_recovery = true;
  ack.newly_acked = 0;
  controller->on_ack(ack);  // the third duplicate ACK, which revealed the loss
  controller->on_ack(ack);  // the fourth
  ack.newly_acked = 3;
  controller->on_ack(ack);  // leaves two duplicate ACKs
  EXPECT_EQ(controller->cwnd(), 20);
  ack.newly_acked = 7;
  controller->on_ack(ack);
  EXPECT_EQ(controller->cwnd(), 15);
  controller->on_idle_timeout(1000);
  EXPECT_EQ(controller->cwnd(), 1);
}

TEST(NewReno, PacedVariantSpreadsAWindowOverAnRtt) {
  TcpSender endpoint({}, make({"newreno", "paced", {}}));
  EndpointOnPath path(endpoint);
  path.switch_on(std::nullopt);
  path.run_until(2000);
  std::vector<double> gaps;
  for (std::size_t i = path.sent_ms.size() - 50; i < path.sent_ms.size(); ++i) {
    gaps.push_back(path.sent_ms[i] - path.sent_ms[i - 1]);
  }
  const auto [least, most] = std::ranges::minmax(gaps);
  EXPECT_GT(least, 0);
  EXPECT_LT(most, 1.1 * least);
}

TEST(RemyAimd, HalvesOncePerRttAfterAGapAndDoesNotRetransmit) {
  const Protocol& protocol = find_protocol("remy-aimd");
  EXPECT_FALSE(protocol.needs.retransmits);
  TcpSettings settings;
  settings.retransmits = false;
  settings.keeps_state = true;
  TcpSender endpoint(settings, make({"remy-aimd", "", {}}));
  EndpointOnPath path(endpoint);
  path.loses = [](const Segment& segment) {
    return segment.sequence == 40 || segment.sequence == 42;
  };
  path.switch_on(std::nullopt);
  EXPECT_EQ(path.sent.size(), 1U);
  path.run_until(550);
  // Packets 1, 2, 4, 8, 16 per round trip, then nine of 32, as the tenth is lost. Packet 41 reveals
  // the loss, and 43 the second one.
  EXPECT_EQ(endpoint.controller().cwnd(), 32);
  path.run_until(600);
  const double window = endpoint.controller().cwnd();
  EXPECT_GT(window, 20);
  EXPECT_LT(window, 22);
  EXPECT_EQ(endpoint.results().packets_retransmitted, 0U);
  endpoint.switch_off(path.now_ms);
  path.switch_on(3);
  EXPECT_EQ(endpoint.controller().cwnd(), window);
  path.run_to_the_end(1e5);
  EXPECT_TRUE(endpoint.is_done());
}

TEST(RemyAimd, KeepsAWindowOfOnePacketDespiteLosses) {
  AckClock clock({"remy-aimd", "", {}}, 100);
  while (clock.window() < 32) {
    clock.acknowledge();
  }
  for (const double window : {16.0, 8.0, 4.0, 2.0, 1.0, 1.0}) {
    clock.wait(101);
    clock.lose();
    clock.acknowledge_now();
    EXPECT_EQ(clock.window(), window);
  }
}

}  // namespace
}  // namespace remy
