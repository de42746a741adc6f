#include "slow_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "network_cases.h"

namespace remy {
namespace {

std::string name_of(const Choice& choice) {
  std::string name = choice.name + (choice.variant.empty() ? "" : ":" + choice.variant);
  for (const auto& [parameter, value] : choice.parameters) {
    name += "," + parameter + "=" + std::to_string(value);
  }
  return name;
}

std::string numbers(const std::vector<std::uint32_t>& all) {
  std::string text;
  for (const std::uint32_t number : all) {
    text += std::to_string(number) + " ";
  }
  return text;
}

std::string describe(const NetworkDescription& network) {
  std::string text =
      std::to_string(network.packet_bytes) + " bytes, ACKs of " + std::to_string(network.ack_bytes);
  for (const LinkDescription& link : network.links) {
    text += "\nlink of " + std::to_string(link.rate_packets_per_ms) + " a ms, " +
            std::to_string(link.delay_ms) + " ms, buffer " +
            (link.buffer_packets ? std::to_string(*link.buffer_packets) : "none") + ", " +
            name_of(link.queue) + ", loss " + std::to_string(link.loss_probability) +
            describe_kind(link);
  }
  text += "\noffsets up to " + std::to_string(network.measurement.rtt_offset_maximum_ms) +
          " ms, late by " + std::to_string(network.measurement.reordering_delay_ms) + " ms with " +
          std::to_string(network.measurement.reordering_probability);
  for (const SenderDescription& sender : network.senders) {
    text += "\n" + (sender.table ? "remycc" : name_of(sender.protocol)) + " on " +
            name_of(sender.transport) + ", links " + numbers(sender.route.links) + "back " +
            numbers(sender.route.return_links) + "and " + std::to_string(sender.route.delay_ms) +
            " + " + std::to_string(sender.route.return_delay_ms) + " ms" + ", traffic " +
            std::to_string(sender.traffic.on.index()) + " arriving " +
            std::to_string(sender.traffic.arrivals.index());
  }
  return text;
}

// Draws whole numbers from 0 on, so that many events are simultaneous.
void round_numbers(NetworkDescription& network, RandomCase& random) {
  for (LinkDescription& link : network.links) {
    link.rate_packets_per_ms = std::exp2(static_cast<double>(random.integer(0, 3)) - 1);
    link.delay_ms = std::floor(link.delay_ms / 5);
    network.measurement.reordering_delay_ms = std::ceil(network.measurement.reordering_delay_ms);
    if (link.changes && link.changes->index() == 0) {
      for (LinkStep& step : std::get<LinkSchedule>(*link.changes).steps) {
        for (std::optional<double>* const value : {&step.rate_packets_per_ms, &step.delay_ms}) {
          if (*value) {
            **value = std::ceil(**value);
          }
        }
      }
    }
  }
  for (SenderDescription& sender : network.senders) {
    if (!std::holds_alternative<Intervals>(sender.traffic.on)) {
      sender.first_on_ms = random.integer(0, 1);
    }
    if (auto* const periodic = std::get_if<PeriodicArrivals>(&sender.traffic.arrivals)) {
      periodic->interval_ms = std::ceil(periodic->interval_ms);
    }
    if (auto* const barrier = std::get_if<Barrier>(&sender.traffic.arrivals)) {
      barrier->pause_ms = std::ceil(barrier->pause_ms);
    }
    sender.route.delay_ms = std::floor(sender.route.delay_ms / 5);
    sender.route.return_delay_ms = std::floor(sender.route.return_delay_ms / 5);
  }
}

// Simulations are short, because the slow simulator counts the packets in flight one by one.
void bound_windows(NetworkDescription& network, RandomCase& random) {
  for (SenderDescription& sender : network.senders) {
    if (sender.transport.name == "tcp") {
      std::erase_if(sender.transport.parameters,
                    [](const auto& each) { return each.first == "receive_window_packets"; });
      sender.transport.parameters.emplace_back("receive_window_packets", random.integer(20, 400));
    }
  }
}

void expect_same(const NetworkSenderResults& fast, const NetworkSenderResults& slow) {
  EXPECT_EQ(fast.totals.packets_sent, slow.totals.packets_sent);
  EXPECT_EQ(fast.totals.packets_received, slow.totals.packets_received);
  EXPECT_EQ(fast.totals.packets_lost, slow.totals.packets_lost);
  EXPECT_EQ(fast.totals.delay_sum_ms, slow.totals.delay_sum_ms);
  EXPECT_EQ(fast.totals.on_ms, slow.totals.on_ms);
  EXPECT_EQ(fast.totals.first_on_ms, slow.totals.first_on_ms);
  // The slow simulator sums this integral over different intervals.
  EXPECT_NEAR(fast.totals.share_ms, slow.totals.share_ms, 1e-6);
  EXPECT_EQ(fast.endpoint.packets_sent, slow.endpoint.packets_sent);
  EXPECT_EQ(fast.endpoint.packets_received, slow.endpoint.packets_received);
  EXPECT_EQ(fast.endpoint.packets_in_order, slow.endpoint.packets_in_order);
  EXPECT_EQ(fast.endpoint.packets_retransmitted, slow.endpoint.packets_retransmitted);
  EXPECT_EQ(fast.endpoint.packets_marked, slow.endpoint.packets_marked);
  EXPECT_EQ(fast.endpoint.timeouts, slow.endpoint.timeouts);
  EXPECT_EQ(fast.endpoint.rtt.last_ms(), slow.endpoint.rtt.last_ms());
  EXPECT_EQ(fast.endpoint.rtt.mean_ms(), slow.endpoint.rtt.mean_ms());
  EXPECT_EQ(fast.endpoint.rtt.mean_over_time_ms(), slow.endpoint.rtt.mean_over_time_ms());
  EXPECT_EQ(fast.delay_samples, slow.delay_samples);
  EXPECT_EQ(fast.throughput_packets, slow.throughput_packets);
  ASSERT_EQ(fast.flows.size(), slow.flows.size());
  for (std::size_t i = 0; i < fast.flows.size(); ++i) {
    EXPECT_EQ(fast.flows[i].packets, slow.flows[i].packets);
    EXPECT_EQ(fast.flows[i].time_ms, slow.flows[i].time_ms);
  }
}

class RandomNetworks : public testing::TestWithParam<std::uint64_t> {
 protected:
  void expect_agreement(bool is_rounded) {
    RandomNetwork random(GetParam() + 10'000);
    const CompiledTable table =
        random.random().table(random.random().chance(0.5) ? Rules::kAbsolute : Rules::kScaleFree);
    NetworkDescription network = random.network();
    if (is_rounded) {
      round_numbers(network, random.random());
    }
    bound_windows(network, random.random());
    SCOPED_TRACE(describe(network));
    constexpr double kDurationMs = 800;
    const NetworkResults fast = run_network(network, {&table, 1}, kDurationMs, GetParam());
    const NetworkResults slow = SlowNetwork(network, {&table, 1}, kDurationMs, GetParam()).run();
    for (std::size_t i = 0; i < network.senders.size(); ++i) {
      SCOPED_TRACE("sender " + std::to_string(i));
      expect_same(fast.senders[i], slow.senders[i]);
    }
    for (std::size_t i = 0; i < network.links.size(); ++i) {
      SCOPED_TRACE("link " + std::to_string(i));
      EXPECT_EQ(fast.links[i].transmitted, slow.links[i].transmitted);
      EXPECT_EQ(fast.links[i].dropped, slow.links[i].dropped);
      EXPECT_EQ(fast.links[i].lost, slow.links[i].lost);
    }
  }
};

TEST_P(RandomNetworks, HaveTheResultsOfTheReference) { expect_agreement(false); }

TEST_P(RandomNetworks, WithSimultaneousEventsHaveTheResultsOfTheReference) {
  expect_agreement(true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNetworks,
                         testing::Range<std::uint64_t>(0, random_cases(250, 100)));

}  // namespace
}  // namespace remy
