#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kBbrV3 = {"bbr", "v3", {}};

// An interval of constant pacing gain.
struct GainInterval {
  double start_ms = 0;
  double gain = 0;  // pacing rate relative to the link rate
  double window_packets = 0;
};

// Intervals separated by gain changes of more than 0.02.
std::vector<GainInterval> gain_intervals(OneLinkRun& run, double end_ms) {
  std::vector<GainInterval> intervals;
  run.observer = [&](std::size_t flow) {
    const double gain =
        1 / (run.controller(flow).pacing_interval_ms() * run.link().rate_packets_per_ms * 0.99);
    if (intervals.empty() || std::fabs(gain - intervals.back().gain) > 0.02) {
      intervals.push_back({run.now_ms(), gain, run.controller(flow).cwnd()});
    }
  };
  run.run_until(end_ms);
  run.observer = nullptr;
  return intervals;
}

auto find_gain(const std::vector<GainInterval>& intervals,
               std::vector<GainInterval>::const_iterator from, double gain) {
  return std::find_if(from, intervals.end(), [&](const GainInterval& interval) {
    return std::fabs(interval.gain - gain) < 0.02;
  });
}

TEST(BbrV3, StartupGainIs4Ln2AndDrainGainIsOneHalf) {
  OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 100});
  run.add(kBbrV3);
  const auto intervals = gain_intervals(run, 2500);
  const auto full = find_gain(intervals, intervals.begin(), 2.77);
  ASSERT_NE(full, intervals.end());
  const auto drain = full + 1;
  ASSERT_NE(drain, intervals.end());
  EXPECT_NEAR(drain->gain, 0.5, 0.01);
  // Three rounds of 100 to 200 ms in which bandwidth grows by less than 25 %.
  EXPECT_GT(drain->start_ms - full->start_ms, 3 * 100);
  EXPECT_LT(drain->start_ms - full->start_ms, 3 * 250);
  // cwnd_gain 2: 2 BDP.
  EXPECT_NEAR(drain->window_packets, 400, 20);
  // The queue is drained, so ProbeBW_DOWN ends at once.
  EXPECT_NEAR(drain[1].gain, 1, 0.01);
}

TEST(BbrV3, ProbesBandwidthEveryTwoToThreeSeconds) {
  OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 100});
  run.add(kBbrV3);
  run.run_until(1500);
  const auto intervals = gain_intervals(run, 60000);
  double last_up_ms = 0;
  std::size_t probes = 0;
  for (auto up = find_gain(intervals, intervals.begin(), 1.25); up < intervals.end();
       up = find_gain(intervals, up + 1, 1.25)) {
    if (up + 2 >= intervals.end()) {
      break;
    }
    // cwnd_gain 2.25: inflight rises above 2 BDP.
    EXPECT_NEAR(up->window_packets, 2.25 * 200, 50);
    if (up[1].window_packets < 110) {
      continue;  // ended by ProbeRTT
    }
    EXPECT_NEAR(up[1].gain, 0.9, 0.02);
    EXPECT_NEAR(up[2].gain, 1, 0.02);
    // A probe ends after three rounds in which bandwidth grows by less than 25 %.
    EXPECT_GT(up[1].start_ms - up->start_ms, 3 * 100);
    EXPECT_LT(up[1].start_ms - up->start_ms, 6 * 100);
    if (probes > 0) {
      // Wait, REFILL and UP; ProbeRTT restarts the wait.
      EXPECT_GT(up->start_ms - last_up_ms, 2000);
      EXPECT_LT(up->start_ms - last_up_ms, 3000 + 2 * 600 + 3000);
    }
    last_up_ms = up->start_ms;
    ++probes;
  }
  EXPECT_GE(probes, 12U);
  EXPECT_LE(probes, 28U);
}

// With a small BDP, Reno coexistence makes the interval shorter than 2 to 3 s: at most as many
// round trips as the BDP has packets.
TEST(BbrV3, ProbesAtTheRenoCoexistenceInterval) {
  OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 20});
  run.add(kBbrV3);
  run.run_until(1500);
  const auto intervals = gain_intervals(run, 4500);
  std::size_t probes = 0;
  double first_ms = 0;
  double last_ms = 0;
  for (auto up = find_gain(intervals, intervals.begin(), 1.25); up < intervals.end();
       up = find_gain(intervals, up + 1, 1.25)) {
    first_ms = probes++ == 0 ? up->start_ms : first_ms;
    last_ms = up->start_ms;
  }
  ASSERT_GE(probes, 4U);
  // The BDP is 20 packets: 20 round trips, and those of the probe.
  const double period_ms = (last_ms - first_ms) / static_cast<double>(probes - 1);
  EXPECT_GT(period_ms, 19 * 20);
  EXPECT_LT(period_ms, 30 * 22);
}

TEST(BbrV3, ProbesRttEveryFiveSecondsWithHalfABdp) {
  OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 150});
  run.add(kBbrV3);
  run.run_until(4000);
  std::vector<std::pair<double, double>> probes;
  bool is_probing = false;
  run.observer = [&](std::size_t) {
    const double window = run.controller(0).cwnd();
    const bool is = window < 0.6 * 188;
    if (is && !is_probing) {
      EXPECT_NEAR(window, 0.5 * 1.25 * 150, 3);
      probes.emplace_back(run.now_ms(), 0);
    } else if (!is && is_probing) {
      probes.back().second = run.now_ms();
      EXPECT_GT(window, 1.7 * 188);
    }
    is_probing = is;
  };
  run.run_until(60000);
  ASSERT_GE(probes.size(), 6U);
  std::size_t at_once = 0;
  for (std::size_t i = 0; i + 1 < probes.size(); ++i) {
    const double length_ms = probes[i].second - probes[i].first;
    EXPECT_GT(length_ms, 200);
    EXPECT_LT(length_ms, 200 + 3 * 150);
    // Later if the queue has drained without ProbeRTT, which restarts the interval.
    const double wait_ms = probes[i + 1].first - probes[i].second;
    EXPECT_GT(wait_ms, 5000);
    at_once += wait_ms < 5050 ? 1 : 0;
  }
  EXPECT_GE(at_once, 3U);
}

// Packets are lost at a given rate during one probe only.
class BbrV3Probe : public testing::TestWithParam<double> {};

TEST_P(BbrV3Probe, EndsAbove2PercentLossAndBoundsInflightLongterm) {
  const double loss = GetParam();
  OneLinkRun run({.rate_packets_per_ms = 5, .rtt_ms = 100});
  run.add(kBbrV3);
  const auto gain = [&] {
    return 1 / (run.controller(0).pacing_interval_ms() * run.link().rate_packets_per_ms * 0.99);
  };
  const auto run_to_gain = [&](double wanted) {
    const double start_ms = run.now_ms();
    while (std::fabs(gain() - wanted) > 0.02 && run.now_ms() < start_ms + 9000) {
      run.run_until(run.now_ms() + 1);
    }
  };
  run.run_until(2000);
  run_to_gain(1.25);
  const double start_ms = run.now_ms();
  run.link().loss_probability = loss;
  run_to_gain(0.9);
  run.link().loss_probability = 0;
  const double length_ms = run.now_ms() - start_ms;
  const double window = run.controller(0).cwnd();
  run_to_gain(1);
  const double cruising = run.controller(0).cwnd();
  if (loss > 0.02) {
    // The probe ends in its first round trip, and inflight_longterm becomes the inflight at the
    // loss, but at least 0.7 of the target.
    EXPECT_LT(length_ms, 2.5 * 100);
    EXPECT_LT(window, 1.4 * 500);
    EXPECT_GT(window, 0.69 * 500);
    EXPECT_NEAR(cruising, 0.85 * window, 0.02 * window);
  } else {
    EXPECT_GT(length_ms, 3 * 100);
    EXPECT_GT(window, 1.9 * 500);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, BbrV3Probe, testing::Values(0.0, 0.005, 0.04, 0.1));

TEST(BbrV3, LosesLessThanV1InAShallowBuffer) {
  const auto run_with = [](const char* variant) {
    OneLinkRun run({.rate_packets_per_ms = 5, .rtt_ms = 60, .buffer_packets = 40});
    run.add({"bbr", variant, {}});
    run.add({"bbr", variant, {}}, 300);
    run.run_until(5000);
    const auto counts = run.run_until(35000);
    const double lost = static_cast<double>(counts[0].lost + counts[1].lost);
    const double delivered = static_cast<double>(counts[0].delivered + counts[1].delivered);
    EXPECT_GT(delivered / 30000, 0.85 * 5) << variant;
    return lost / (lost + delivered);
  };
  const double v1 = run_with("v1");
  const double v3 = run_with("v3");
  EXPECT_LT(v3, 0.02);
  EXPECT_GT(v1, 3 * v3);
}

TEST(BbrV3, Tolerates1PercentRandomLossButNot5) {
  for (const double loss : {0.01, 0.05}) {
    OneLinkRun run({.rate_packets_per_ms = 1.25, .rtt_ms = 100, .buffer_packets = 1000});
    run.link().loss_probability = loss;
    run.add(kBbrV3);
    run.run_until(3000);
    const double rate = static_cast<double>(run.run_until(63000)[0].delivered) / 60000;
    if (loss < 0.02) {
      EXPECT_GT(rate, 0.75 * 1.25);
    } else {
      EXPECT_LT(rate, 0.5 * 1.25);
    }
  }
}

// Convergence takes up to two minutes, as a probe every 2 to 3 s changes rates by a few percent.
TEST(BbrV3, SharesALinkEqually) {
  OneLinkRun run({.rate_packets_per_ms = 5, .rtt_ms = 60, .buffer_packets = 600});
  run.add(kBbrV3);
  run.add(kBbrV3, 5000);
  run.run_until(120000);
  const auto counts = run.run_until(180000);
  const auto first = static_cast<double>(counts[0].delivered);
  const auto second = static_cast<double>(counts[1].delivered);
  EXPECT_NEAR(first / (first + second), 0.5, 0.05);
  EXPECT_GT((first + second) / 60000, 0.95 * 5);
}

}  // namespace
}  // namespace remy
