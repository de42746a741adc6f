#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "live_results.h"
#include "network/live.h"
#include "network/network.h"
#include "network_cases.h"

namespace remy {
namespace {

// CUBIC senders that are on until they are switched off, on a link of 1 packet per ms.
NetworkDescription cubic_senders(std::uint32_t senders) {
  NetworkDescription network;
  LinkDescription link;
  link.rate_packets_per_ms = 1;
  link.delay_ms = 100;
  link.buffer_packets = 200;
  network.links.push_back(link);
  SenderDescription sender;
  sender.protocol.name = "cubic";
  sender.transport.name = "tcp";
  sender.traffic = {ExponentialTime{1000}, 1000};
  sender.route.links = {0};
  network.senders.assign(senders, sender);
  return network;
}

std::uint64_t received_by(LiveNetwork& network, double until_ms) {
  network.run_until(until_ms);
  return network.sender(0).received;
}

class LiveNetworks : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LiveNetworks, ResultsDoNotDependOnSteps) {
  RandomNetwork random(GetParam());
  const NetworkDescription network = random.network();
  const CompiledTable table(random.random().table(Rules::kAbsolute));
  const double duration_ms = 2000;
  const NetworkResults whole = run_network(network, {&table, 1}, duration_ms, GetParam());
  const std::unique_ptr<LiveNetwork> live =
      make_live_network(network, {&table, 1}, GetParam(), nullptr);
  for (double now_ms = 0; now_ms <= duration_ms; now_ms += 0.5) {
    live->run_until(now_ms);
  }
  expect_same_senders(*live, whole);
}

INSTANTIATE_TEST_SUITE_P(Random, LiveNetworks, testing::Range<std::uint64_t>(0, 40));

TEST(LiveNetwork, RateChangeAppliesToWaitingPackets) {
  const NetworkDescription network = cubic_senders(1);
  const auto live = make_live_network(network, {}, 1, nullptr);
  live->hold(0, true);
  const std::uint64_t at_5_s = received_by(*live, 5000);
  EXPECT_NEAR(static_cast<double>(received_by(*live, 6000) - at_5_s), 1000, 2);
  LinkDescription slower = network.links[0];
  slower.rate_packets_per_ms = 0.25;
  live->change_link(0, slower);
  // For one RTT, packets that have left the link still arrive at the old rate.
  const std::uint64_t at_6_1_s = received_by(*live, 6100);
  EXPECT_NEAR(static_cast<double>(received_by(*live, 7100) - at_6_1_s), 250, 2);
}

TEST(LiveNetwork, ShorterDelayDeliversPacketsInTransit) {
  const NetworkDescription network = cubic_senders(1);
  const auto live = make_live_network(network, {}, 1, nullptr);
  live->hold(0, true);
  const std::uint64_t before = received_by(*live, 6000);
  LinkDescription shorter = network.links[0];
  shorter.delay_ms = 20;
  live->change_link(0, shorter);
  // Eighty of the hundred packets that have left the link arrive at once.
  EXPECT_NEAR(static_cast<double>(received_by(*live, 6000) - before), 80, 2);
  live->run_until(6010);
  EXPECT_GE(live->sender(0).rtt_ms, 20);
}

TEST(LiveNetwork, SmallerBufferDropsPacketsThatNoLongerFit) {
  const NetworkDescription network = cubic_senders(2);
  const auto live = make_live_network(network, {}, 1, nullptr);
  live->hold(0, true);
  live->hold(1, true);
  double now_ms = 0;
  while (live->link(0).waiting_packets < 100) {
    live->run_until(++now_ms);
  }
  const LiveLink before = live->link(0);
  LinkDescription smaller = network.links[0];
  smaller.buffer_packets = 30;
  live->change_link(0, smaller);
  EXPECT_EQ(live->link(0).waiting_packets, 30U);
  EXPECT_EQ(live->link(0).dropped - before.dropped, before.waiting_packets - 30);
  // The counts of drops so far are kept.
  live->hold(0, false);
  live->hold(1, false);
  live->run_until(now_ms + 60'000);
  EXPECT_EQ(live->sender(0).in_flight + live->sender(1).in_flight, 0U);
}

TEST(LiveNetwork, LossCanBeSwitchedOnAndOff) {
  const NetworkDescription network = cubic_senders(1);
  const auto live = make_live_network(network, {}, 1, nullptr);
  live->hold(0, true);
  live->run_until(5000);
  EXPECT_EQ(live->link(0).lost, 0U);
  LinkDescription lossy = network.links[0];
  lossy.loss_probability = 0.05;
  live->change_link(0, lossy);
  live->run_until(10'000);
  const std::uint64_t lost = live->link(0).lost;
  EXPECT_GT(lost, 0U);
  live->change_link(0, network.links[0]);
  live->run_until(10'200);  // packets sent before the change
  const std::uint64_t lost_after = live->link(0).lost;
  live->run_until(20'000);
  EXPECT_EQ(live->link(0).lost, lost_after);
}

TEST(LiveNetwork, SendersCanBeHeldAndReleased) {
  const NetworkDescription network = cubic_senders(1);
  const auto live = make_live_network(network, {}, 1, nullptr);
  live->hold(0, false);
  EXPECT_EQ(received_by(*live, 20'000), 0U);
  live->hold(0, true);
  live->run_until(60'000);
  EXPECT_TRUE(live->sender(0).is_on);
  live->release(0);
  bool was_off = false;
  bool was_on_again = false;
  for (double now_ms = 60'000; now_ms < 120'000; now_ms += 10) {
    live->run_until(now_ms);
    was_off = was_off || !live->sender(0).is_on;
    was_on_again = was_on_again || (was_off && live->sender(0).is_on);
  }
  EXPECT_TRUE(was_on_again);
}

TEST(LiveNetwork, RejectsOmniscientSenders) {
  NetworkDescription network = cubic_senders(1);
  network.senders[0].protocol.name = "omniscient";
  EXPECT_THROW(make_live_network(network, {}, 1, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace remy
