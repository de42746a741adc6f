#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "protocols/ack_clock.h"
#include "protocols/one_bottleneck.h"

namespace remy {
namespace {

const Choice kDctcp = {"dctcp", "", {}};

// RFC 8257, section 3.3: alpha = (1 - g) alpha + g M per window, and the window is reduced by half
// of alpha.
TEST(Dctcp, ReducesTheWindowByHalfOfAlpha) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  // Slow start from 10 to 100 has ended three observation windows, and the very first ACK ended one
  // of its own. None had a mark, so alpha, which starts at 1, has decayed four times.
  const double alpha = std::pow(15 / 16.0, 4);
  clock.acknowledge(1, 1);
  EXPECT_NEAR(clock.window(), 100 * (1 - alpha / 2), 0.5);
}

TEST(Dctcp, AveragesTheFractionOfMarksOverWindows) {
  // With a gain of 1, alpha is the fraction of marked packets in the last window.
  AckClock clock({"dctcp", "", {{"gain", 1}}}, 100);
  while (clock.window() < 64) {
    clock.acknowledge();
  }
  clock.round();
  clock.round();
  // One mark in a window; alpha is 0 until then.
  const double before = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_NEAR(clock.window(), before, 2);
  // The mark is included in alpha at the end of its window, for the next reduction.
  clock.round();
  const double then = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_LT(clock.window(), then);
  EXPECT_GT(clock.window(), then * (1 - 0.5 * 2 / before));
}

TEST(Dctcp, ReactsOncePerWindowOfData) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.acknowledge(1, 1);
  const double reduced = clock.window();
  for (int ack = 0; ack < 40; ++ack) {
    clock.acknowledge(1, 1);
    EXPECT_GE(clock.window(), reduced);
  }
  clock.round();
  clock.round();
  const double before = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_LT(clock.window(), before);
}

// RFC 3168, section 6.1.2: the window does not grow in response to an ACK with ECN-Echo.
TEST(Dctcp, DoesNotGrowWithMarkedPackets) {
  for (const double initial_window : {1.0, 2.0}) {
    AckClock clock({"dctcp", "", {{"initial_window_packets", initial_window}}}, 100);
    for (int ack = 0; ack < 100; ++ack) {
      clock.acknowledge(1, 1);
      EXPECT_EQ(clock.window(), initial_window);
    }
  }
  // Nor at the ACKs of the window of data after a reduction, nor after a timeout.
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.acknowledge(1, 1);
  const double reduced = clock.window();
  for (int ack = 0; ack < 20; ++ack) {
    clock.acknowledge(1, 1);
    EXPECT_EQ(clock.window(), reduced);
  }
  clock.time_out();
  clock.acknowledge(1, 1);
  EXPECT_EQ(clock.window(), 1);
}

// A switch marks every packet: two packets in 10 ms and a transmission time.
TEST(Dctcp, KeepsTwoPacketsIfEverythingIsMarked) {
  OneBottleneck bottleneck;
  bottleneck.protocol = kDctcp;
  bottleneck.transport = {"tcp", "", {}};
  bottleneck.link.rate_packets_per_ms = 100.0 / 12;
  bottleneck.link.queue = {"threshold-marking", "", {{"threshold_packets", 0}}};
  bottleneck.rtt_ms = 10;
  const double packets =
      packets_in_order(bottleneck.run(5000)) - packets_in_order(bottleneck.run(1000));
  EXPECT_NEAR(packets * 12 / 4000, 2.4, 0.05);
}

// All packets are marked: alpha approaches 1, and each window is half the last one.
TEST(Dctcp, HalvesEachWindowIfEverythingIsMarked) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 1000) {
    clock.acknowledge();
  }
  for (int ack = 0; ack < 5000; ++ack) {
    clock.acknowledge(1, 1);
  }
  EXPECT_EQ(clock.window(), 2);
}

TEST(Dctcp, HalvesTheWindowAfterALoss) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.lose();
  EXPECT_EQ(clock.window(), 50);
}

TEST(Dctcp, IsEcnCapable) { EXPECT_TRUE(find_protocol("dctcp").needs.is_ecn_capable); }

// Alizadeh et al. 2010, section 3.3, for n synchronized flows at a switch that marks above K
// packets: the maximum queue is K + n, its amplitude sqrt(2 n (C RTT + K)) / 2 and its period
// sqrt(2 (C RTT + K) / n) / 2 RTTs. The queue never empties if K > C RTT / 7. The paper's windows
// grow with marked packets too. Ours do not, for the RTT that it takes until a reduction ends the
// marks: that RTT comes on top.
class DctcpOnALink : public testing::TestWithParam<int> {};

TEST_P(DctcpOnALink, KeepsTheQueueBelowTheThresholdPlusOnePacketPerFlow) {
  const int flows = GetParam();
  const double threshold = 40;
  for (const double rtt_ms : {10.0, 20.0}) {
    OneBottleneck bottleneck;
    bottleneck.protocol = kDctcp;
    bottleneck.transport = {"tcp", "", {}};
    bottleneck.link.rate_packets_per_ms = 10;
    bottleneck.link.queue = {"threshold-marking", "", {{"threshold_packets", threshold}}};
    bottleneck.rtt_ms = rtt_ms;
    bottleneck.starts_ms.assign(static_cast<std::size_t>(flows), 0);
    const std::vector<double> queue = bottleneck.queue(2000, 6000, 0.05);
    const auto [least, most] = std::ranges::minmax(queue);
    EXPECT_NEAR(most, threshold + flows, 1);
    EXPECT_GT(least, 0);
    const double held = 10 * rtt_ms + threshold;
    EXPECT_NEAR((most - least) / (std::sqrt(2 * flows * held) / 2), 1, 0.15);

    double mean = 0;
    for (const double packets : queue) {
      mean += packets / static_cast<double>(queue.size());
    }
    int periods = 0;
    bool was_low = false;
    for (const double packets : queue) {
      periods += was_low && packets > mean + 2 ? 1 : 0;
      was_low = packets < mean - 2 || (was_low && packets <= mean + 2);
    }
    // The RTT includes the mean queue.
    const double period_rtts = 4000.0 / periods / (rtt_ms + mean / 10);
    EXPECT_NEAR(period_rtts / (std::sqrt(2 * held / flows) / 2 + 1), 1, 0.15);
  }
}

INSTANTIATE_TEST_SUITE_P(Flows, DctcpOnALink, testing::Values(2, 4));

// Alizadeh et al. 2010, section 4.1, "Multi-hop networks": ten senders cross a link of 10 Gbit/s
// and one of 1 Gbit/s, twenty only the first and ten only the second. Each has an access link of 1
// Gbit/s. Fair shares are 50, 475 and 50 Mbit/s; the paper measured 46, 475 and 54.
TEST(Dctcp, SharesTwoBottlenecksFairly) {
  NetworkDescription network;
  const auto add_link = [&network](double gigabits, double threshold) {
    LinkDescription& link = network.links.emplace_back();
    link.rate_packets_per_ms = gigabits * 1e6 / 12'000;
    link.queue = {"threshold-marking", "", {{"threshold_packets", threshold}}};
    return static_cast<std::uint32_t>(network.links.size() - 1);
  };
  const std::uint32_t fast = add_link(10, 65);
  const std::uint32_t slow = add_link(1, 20);
  const auto add_senders = [&](int count, const std::vector<std::uint32_t>& shared) {
    for (int i = 0; i < count; ++i) {
      SenderDescription& sender = network.senders.emplace_back();
      sender.protocol = kDctcp;
      sender.transport = {"tcp", "", {}};
      sender.traffic = {ExponentialTime{1e15}, 1};
      sender.first_on_ms = 0.37 * static_cast<double>(network.senders.size());
      sender.route.links = {add_link(1, 1000)};
      sender.route.links.insert(sender.route.links.end(), shared.begin(), shared.end());
      sender.route.return_delay_ms = 0.3;
    }
  };
  add_senders(10, {fast, slow});
  add_senders(20, {fast});
  add_senders(10, {slow});
  const NetworkResults before = run_network(network, {}, 100, 1);
  const NetworkResults after = run_network(network, {}, 600, 1);
  double megabits[3] = {};
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < network.senders.size(); ++i) {
    const std::size_t group = i < 10 ? 0 : i < 30 ? 1 : 2;
    const double packets = static_cast<double>(after.senders[i].endpoint.packets_in_order -
                                               before.senders[i].endpoint.packets_in_order);
    const double rate = packets * 12 / 500;
    megabits[group] += rate / (group == 1 ? 20 : 10);
    const double share = rate / (group == 1 ? 475 : 50);
    sum += share;
    squares += share * share;
  }
  EXPECT_NEAR(megabits[0], 46, 0.15 * 46);
  EXPECT_NEAR(megabits[1], 475, 9.5);
  EXPECT_NEAR(megabits[2], 54, 0.15 * 54);
  EXPECT_GT(sum * sum / (40 * squares), 0.97);
}

}  // namespace
}  // namespace remy
