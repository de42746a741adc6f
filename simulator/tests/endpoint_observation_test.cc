#include "network/endpoint_observation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "network/network.h"
#include "network_cases.h"

namespace remy {
namespace {

std::uint64_t events_of(const PacketCapture& capture, PacketCapture::Kind kind) {
  return static_cast<std::uint64_t>(
      std::ranges::count(capture.kind, static_cast<std::uint8_t>(kind)));
}

void expect_equal(const NetworkSenderResults& one, const NetworkSenderResults& other) {
  EXPECT_EQ(one.totals.packets_sent, other.totals.packets_sent);
  EXPECT_EQ(one.totals.packets_received, other.totals.packets_received);
  EXPECT_EQ(one.totals.packets_lost, other.totals.packets_lost);
  EXPECT_EQ(one.totals.on_ms, other.totals.on_ms);
  EXPECT_EQ(one.totals.share_ms, other.totals.share_ms);
  EXPECT_EQ(one.totals.delay_sum_ms, other.totals.delay_sum_ms);
  EXPECT_EQ(one.endpoint.packets_in_order, other.endpoint.packets_in_order);
  EXPECT_EQ(one.endpoint.packets_retransmitted, other.endpoint.packets_retransmitted);
  EXPECT_EQ(one.endpoint.packets_marked, other.endpoint.packets_marked);
  EXPECT_EQ(one.endpoint.timeouts, other.endpoint.timeouts);
  EXPECT_EQ(one.endpoint.rtt.mean_ms(), other.endpoint.rtt.mean_ms());
  EXPECT_EQ(one.endpoint.rtt.mean_over_time_ms(), other.endpoint.rtt.mean_over_time_ms());
  EXPECT_EQ(one.delay_samples, other.delay_samples);
  EXPECT_EQ(one.acks_sent, other.acks_sent);
  EXPECT_EQ(one.flows.size(), other.flows.size());
}

class AnyObservedNetwork : public testing::TestWithParam<std::uint64_t> {};

// A captured sender handles data and ACKs one by one, which must give the same bits as the fast
// path.
TEST_P(AnyObservedNetwork, HasTheResultsOfTheSameNetworkUnobserved) {
  RandomNetwork random(GetParam());
  const CompiledTable table = random.random().table();
  const NetworkDescription network = random.network();
  const NetworkResults expected = run_network(network, {&table, 1}, 3000, GetParam());
  PacketCapture capture;
  capture.sender = static_cast<std::uint32_t>(GetParam() % network.senders.size());
  NetworkOptions options;
  options.measures_distributions = true;
  options.capture = &capture;
  const NetworkResults observed = run_network(network, {&table, 1}, 3000, GetParam(), options);
  for (std::size_t i = 0; i < expected.senders.size(); ++i) {
    SCOPED_TRACE(i);
    expect_equal(expected.senders[i], observed.senders[i]);
    std::uint64_t samples = 0;
    observed.senders[i].rtts.for_each(
        [&](std::uint32_t, std::uint64_t count) { samples += count; });
    EXPECT_EQ(samples, observed.senders[i].delay_samples);
  }
  const EndpointResults& sender = observed.senders[capture.sender].endpoint;
  EXPECT_EQ(events_of(capture, PacketCapture::Kind::kSent), sender.packets_sent);
  EXPECT_EQ(events_of(capture, PacketCapture::Kind::kAck), capture.cumulative.size());
  EXPECT_EQ(events_of(capture, PacketCapture::Kind::kState), capture.in_flight.size());
  EXPECT_EQ(std::accumulate(capture.blocks.begin(), capture.blocks.end(), std::uint64_t{0}),
            capture.block_first.size());
  EXPECT_TRUE(std::ranges::is_sorted(capture.time_ms));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyObservedNetwork,
                         testing::Range<std::uint64_t>(0, random_cases(200, 50)));

TEST(PacketCapture, RefusesASenderThatTheNetworkLacks) {
  RandomNetwork random(1);
  const CompiledTable table = random.random().table();
  const NetworkDescription network = random.network();
  PacketCapture capture;
  capture.sender = static_cast<std::uint32_t>(network.senders.size());
  NetworkOptions options;
  options.capture = &capture;
  EXPECT_THROW(run_network(network, {&table, 1}, 10, 1, options), std::invalid_argument);
}

}  // namespace
}  // namespace remy
