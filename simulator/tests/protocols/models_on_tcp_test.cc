#include <gtest/gtest.h>

#include <string>

#include "network/network.h"

namespace remy {
namespace {

// A rate-based protocol alone on a path over TCP, and bounds: the minimum share of the link rate
// that it reaches, and the maximum of its mean RTT.
struct Expectation {
  const char* protocol;
  const char* variant;
  double rate_packets_per_ms;
  double rtt_ms;
  std::uint32_t buffer_packets;
  double loss;
  double min_share;
  double max_mean_rtt_ms;
};

class RateBasedOnTcp : public testing::TestWithParam<Expectation> {};

TEST_P(RateBasedOnTcp, FillsItsPathButNotTheBuffer) {
  const Expectation& expected = GetParam();
  constexpr double kDurationMs = 40000;
  NetworkDescription network;
  network.key = 3;
  LinkDescription link;
  link.rate_packets_per_ms = expected.rate_packets_per_ms;
  link.delay_ms = expected.rtt_ms / 2;
  link.buffer_packets = expected.buffer_packets;
  link.loss_probability = expected.loss;
  network.links.push_back(link);
  SenderDescription sender;
  sender.protocol = {expected.protocol, expected.variant, {}};
  sender.transport = {"tcp", "linux", {}};
  sender.traffic.on = ExponentialTime{1e12};
  sender.traffic.mean_off_ms = 1;
  sender.first_on_ms = 0;
  sender.route.links = {0};
  sender.route.return_delay_ms = expected.rtt_ms / 2;
  network.senders.push_back(sender);
  const NetworkSenderResults results = run_network(network, {}, kDurationMs, 1).senders.front();
  const double rate = static_cast<double>(results.endpoint.packets_in_order) / kDurationMs;
  EXPECT_GT(rate, expected.min_share * (1 - expected.loss) * expected.rate_packets_per_ms);
  EXPECT_LT(results.totals.delay_sum_ms / static_cast<double>(results.delay_samples),
            expected.max_mean_rtt_ms);
}

std::string name_of(const testing::TestParamInfo<Expectation>& info) {
  std::string name = std::string(info.param.protocol) + "_" + info.param.variant +
                     (info.param.loss > 0 ? "_with_loss" : "") + "_" + std::to_string(info.index);
  for (char& letter : name) {
    letter = letter == '-' ? '_' : letter;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Paths, RateBasedOnTcp,
    testing::Values(Expectation{"bbr", "v1", 1.25, 150, 1000, 0, 0.93, 190},
                    Expectation{"bbr", "v1", 1.25, 150, 1000, 0.01, 0.9, 190},
                    Expectation{"bbr", "v3", 1.25, 150, 1000, 0, 0.93, 200},
                    Expectation{"bbr", "v3", 1.25, 150, 1000, 0.01, 0.8, 200},
                    Expectation{"copa", "validated", 1.25, 150, 1000, 0, 0.9, 170},
                    Expectation{"copa", "validated", 1.25, 150, 1000, 0.01, 0.9, 170},
                    Expectation{"copa", "paper", 1.25, 150, 1000, 0, 0.9, 170},
                    Expectation{"copa", "paper", 1.25, 150, 1000, 0.01, 0.9, 170},
                    Expectation{"copa", "no-mode-switch", 1.25, 150, 1000, 0, 0.9, 170},
                    Expectation{"pcc-allegro", "safe", 8.33, 30, 250, 0, 0.95, 62},
                    Expectation{"pcc-allegro", "safe", 8.33, 30, 250, 0.01, 0.9, 62},
                    Expectation{"pcc-allegro", "latency", 8.33, 30, 250, 0, 0.85, 60},
                    Expectation{"pcc-allegro", "loss-resilient", 8.33, 30, 250, 0.1, 0.85, 62},
                    Expectation{"pcc-vivace", "latency", 1.25, 150, 1000, 0, 0.8, 175},
                    Expectation{"pcc-vivace", "latency", 8.33, 30, 250, 0, 0.85, 35},
                    Expectation{"sprout", "paper", 0.5, 40, 1000, 0, 0.9, 140},
                    Expectation{"sprout", "paper", 0.5, 40, 1000, 0.01, 0.9, 140}),
    name_of);

}  // namespace
}  // namespace remy
