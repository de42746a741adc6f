#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "core/windowed_filter.h"
#include "network/network.h"
#include "protocols/kernel_link.h"
#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kBbrV1 = {"bbr", "v1", {}};

TEST(WindowedMax, IsTheMaximumOfTheWindowOrSlightlyLess) {
  WindowedMax filter;
  std::deque<std::pair<double, double>> samples;
  constexpr double kWindow = 10;
  double value = 50;
  int exact_count = 0;
  for (int i = 0; i < 20000; ++i) {
    const double now = i * 0.1;
    value = std::fabs(value + normal(7, static_cast<std::uint64_t>(i)));
    const double best = filter.update(kWindow, now, value);
    samples.emplace_back(now, value);
    while (now - samples.front().first > kWindow) {
      samples.pop_front();
    }
    double exact = 0;
    for (const auto& [time, sample] : samples) {
      exact = std::max(exact, sample);
    }
    ASSERT_LE(best, exact);
    ASSERT_GE(best, value);
    exact_count += best == exact ? 1 : 0;
  }
  EXPECT_GT(exact_count, 16000);
}

TEST(WindowedMax, ForgetsTheMaximumWhenItLeavesTheWindow) {
  WindowedMax filter;
  EXPECT_EQ(filter.update(10, 0, 9), 9);
  EXPECT_EQ(filter.update(10, 4, 5), 9);
  EXPECT_EQ(filter.update(10, 8, 4), 9);
  EXPECT_EQ(filter.update(10, 10, 3), 9);
  EXPECT_EQ(filter.update(10, 10.5, 3), 5);
  EXPECT_EQ(filter.update(10, 15, 3), 4);
}

// Pacing rates of a controller relative to the link rate, recorded at each change.
std::vector<std::pair<double, double>> gains_of(OneLinkRun& run, double end_ms) {
  std::vector<std::pair<double, double>> gains;
  run.observer = [&](std::size_t flow) {
    const double gain =
        1 / (run.controller(flow).pacing_interval_ms() * run.link().rate_packets_per_ms * 0.99);
    if (gains.empty() || std::fabs(gain - gains.back().second) > 0.02) {
      gains.emplace_back(run.now_ms(), gain);
    }
  };
  run.run_until(end_ms);
  return gains;
}

TEST(BbrV1, DoublesEachRoundThenDrainsThenCyclesItsGain) {
  OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 100});
  run.add(kBbrV1);
  const auto gains = gains_of(run, 9000);
  // Startup: 10 packets per RTT, then 2/ln 2 times the bandwidth, which doubles in each round trip.
  // After three round trips with growth below 25 % the pipe is full, and the queue is drained.
  const auto full = std::ranges::find_if(
      gains, [](const auto& gain) { return std::fabs(gain.second - 2.885) < 0.03; });
  ASSERT_NE(full, gains.end());
  const auto drain =
      std::find_if(full, gains.end(), [](const auto& gain) { return gain.second < 0.5; });
  ASSERT_NE(drain, gains.end());
  EXPECT_NEAR(drain->second, 1 / 2.885, 0.01);
  for (auto gain = full; gain < drain; ++gain) {
    EXPECT_NEAR(gain->second, 2.885, 0.03);
  }
  EXPECT_LT(full->first, 900);
  EXPECT_GT(drain->first - full->first, 3 * 100);
  EXPECT_LT(drain->first - full->first, 3 * 300);
  // ProbeBW: gains of 1.25, 0.75 and six times 1, for one min_rtt each. It does not start with
  // 0.75.
  EXPECT_GT(drain[1].second, 0.98);
  std::size_t probes = 0;
  for (auto gain = drain + 1; gain + 3 < gains.end(); ++gain) {
    if (gain->second > 1.2) {
      ++probes;
      EXPECT_NEAR(gain->second, 1.25, 0.02);
      EXPECT_NEAR(gain[1].second, 0.75, 0.02);
      EXPECT_NEAR(gain[2].second, 1, 0.02);
      EXPECT_NEAR(gain[3].second, 1.25, 0.02);
      EXPECT_GE(gain[1].first - gain->first, 100);
      EXPECT_LE(gain[2].first - gain[1].first, 126);
      EXPECT_GE(gain[3].first - gain[2].first, 600);
      EXPECT_LE(gain[3].first - gain[2].first, 640);
    }
  }
  EXPECT_GE(probes, 5U);
}

TEST(BbrV1, StartsProbeBwInARandomPhaseOtherThanTheDrainingOne) {
  std::set<int> phases;
  for (std::uint64_t key = 0; key < 60; ++key) {
    const Protocol& protocol = find_protocol("bbr");
    OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 40});
    run.add(protocol.make(ParameterValues("protocol", protocol.variants, kBbrV1), key));
    const auto gains = gains_of(run, 4000);
    const auto drain = std::ranges::find_if(
        gains, [](const auto& gain) { return gain.first > 300 && gain.second < 0.4; });
    ASSERT_NE(drain, gains.end());
    const auto probe =
        std::find_if(drain + 1, gains.end(), [](const auto& gain) { return gain.second > 1.2; });
    ASSERT_NE(probe, gains.end());
    EXPECT_GT(drain[1].second, 0.98);
    phases.insert(static_cast<int>(std::lround((probe->first - drain[1].first) / 41.5)));
  }
  // Number of phases with gain 1 before the first probe.
  EXPECT_EQ(phases, (std::set<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(BbrV1, KeepsInflightNearTheBdp) {
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 150, .buffer_packets = 1000});
  run.add(kBbrV1);
  run.run_until(3000);
  double held = 0;
  std::uint64_t samples = 0;
  run.observer = [&](std::size_t) {
    held += static_cast<double>(run.in_flight(0));
    ++samples;
  };
  const auto counts = run.run_until(9900);
  EXPECT_NEAR(held / static_cast<double>(samples), 187.5, 0.25 * 187.5);
  EXPECT_GT(static_cast<double>(counts[0].delivered) / 6900, 0.97 * 1.25);
  EXPECT_LT(counts[0].mean_rtt_ms(), 1.15 * 150);
  EXPECT_EQ(counts[0].lost, 0U);
}

TEST(BbrV1, EntersProbeRttEveryTenSecondsWithFourPackets) {
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 150});
  run.add(kBbrV1);
  std::vector<std::pair<double, double>> probes;  // start and end
  bool is_probing = false;
  run.observer = [&](std::size_t) {
    const bool is = run.controller(0).cwnd() <= 4 && run.now_ms() > 2000;
    if (is && !is_probing) {
      probes.emplace_back(run.now_ms(), 0);
    } else if (!is && is_probing) {
      probes.back().second = run.now_ms();
      // cwnd is restored at once.
      EXPECT_GT(run.controller(0).cwnd(), 300);
    }
    is_probing = is;
  };
  run.run_until(60000);
  ASSERT_GE(probes.size(), 4U);
  for (std::size_t i = 0; i + 1 < probes.size(); ++i) {
    // Drains to four packets, then lasts 200 ms, up to the end of a round trip.
    const double length_ms = probes[i].second - probes[i].first;
    EXPECT_GT(length_ms, 200);
    EXPECT_LT(length_ms, 200 + 2.5 * 150);
    EXPECT_NEAR(probes[i + 1].first - probes[i].second, 10000, 20);
  }
}

TEST(BbrV1, SeveralFlowsInADeepBufferAboutDoubleTheRtt) {
  for (const std::size_t flows : {std::size_t{2}, std::size_t{4}}) {
    OneLinkRun run({.rate_packets_per_ms = 5, .rtt_ms = 60});
    for (std::size_t i = 0; i < flows; ++i) {
      run.add(kBbrV1, 200.0 * static_cast<double>(i));
    }
    run.run_until(10000);
    const auto counts = run.run_until(40000);
    double rtt_ms = 0;
    double delivered = 0;
    for (const auto& flow : counts) {
      rtt_ms += flow.rtt_sum_ms;
      delivered += static_cast<double>(flow.delivered);
    }
    EXPECT_GT(rtt_ms / delivered, 1.5 * 60);
    EXPECT_LT(rtt_ms / delivered, 2.4 * 60);
    EXPECT_GT(delivered / 30000, 0.94 * 5);
  }
}

struct LossCase {
  double loss = 0;
  double share = 0;  // fraction of the rate left after losses
};

class BbrV1UnderLoss : public testing::TestWithParam<LossCase> {};

TEST_P(BbrV1UnderLoss, IgnoresRandomLoss) {
  const auto [loss, share] = GetParam();
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 100, .buffer_packets = 1000});
  run.link().loss_probability = loss;
  run.add(kBbrV1);
  run.run_until(3000);
  const auto counts = run.run_until(63000);
  EXPECT_GT(static_cast<double>(counts[0].delivered) / 60000, share * (1 - loss) * 1.25);
}

// A protocol that halves its window at each loss would get a tenth at 1 % and a fiftieth at 15 %.
INSTANTIATE_TEST_SUITE_P(UpToFifteenPercent, BbrV1UnderLoss,
                         testing::Values(LossCase{0.001, 0.95}, LossCase{0.01, 0.95},
                                         LossCase{0.05, 0.9}, LossCase{0.1, 0.8},
                                         LossCase{0.15, 0.4}));

TEST(BbrV1, StarvesWhenLossesExceedTheProbingGain) {
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 100, .buffer_packets = 1000});
  run.link().loss_probability = 0.3;
  run.add(kBbrV1);
  run.run_until(10000);
  const auto counts = run.run_until(40000);
  EXPECT_LT(static_cast<double>(counts[0].delivered) / 30000, 0.5 * 0.7 * 1.25);
}

// A timeout reduces cwnd to one packet and keeps the model of the path.
TEST(BbrV1, SendsOnePacketAfterATimeoutAndKeepsItsModel) {
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 100, .buffer_packets = 1000});
  run.add(kBbrV1);
  run.run_until(5000);
  const double before = run.controller(0).cwnd();
  run.link().loss_probability = 1;
  std::uint64_t timeouts = 0;
  run.observer = [&](std::size_t) {
    if (run.counts(0).timeouts > timeouts) {
      timeouts = run.counts(0).timeouts;
      EXPECT_EQ(run.controller(0).cwnd(), 1);
    }
  };
  run.run_until(7000);
  EXPECT_GE(timeouts, 1U);
  run.link().loss_probability = 0;
  run.run_until(9500);
  EXPECT_NEAR(run.controller(0).cwnd(), before, 0.1 * before);
}

class BbrV1InTheKernel : public testing::TestWithParam<KernelFlows> {};

TEST_P(BbrV1InTheKernel, MatchesTheKernel) { expect_kernel(kBbrV1, "`bbr` `v1`", GetParam()); }

INSTANTIATE_TEST_SUITE_P(Linux, BbrV1InTheKernel,
                         testing::Values(KernelFlows{"one flow", 1, 0, 14.14, 174.8, 0.01, 0.01},
                                         KernelFlows{"two flows", 2, 0, 14.25, 293.3, 0.01, 0.05},
                                         KernelFlows{"four flows", 4, 0, 14.33, 357.6, 0.01, 0.05},
                                         KernelFlows{"one flow at 1 % loss", 1, 0.01, 13.87, 168.4,
                                                     0.01, 0.03}));

}  // namespace
}  // namespace remy
