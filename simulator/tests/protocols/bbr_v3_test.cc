#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kBbrV3 = {"bbr", "v3", {}};

// What a controller does from one time on.
struct Phase {
  double start_ms = 0;
  double gain = 0;  // rate over the link's
  double window_packets = 0;
};

// The gains in order, without those that last for less than a few ms.
std::vector<Phase> phases_of(OneLinkRun& run, double end_ms) {
  std::vector<Phase> phases;
  run.observer = [&](std::size_t flow) {
    const double gain =
        1 / (run.controller(flow).pacing_interval_ms() * run.link().rate_packets_per_ms * 0.99);
    if (phases.empty() || std::fabs(gain - phases.back().gain) > 0.02) {
      phases.push_back({run.now_ms(), gain, run.controller(flow).cwnd()});
    }
  };
  run.run_until(end_ms);
  run.observer = nullptr;
  return phases;
}

auto find_gain(const std::vector<Phase>& phases, std::vector<Phase>::const_iterator from,
               double gain) {
  return std::find_if(from, phases.end(),
                      [&](const Phase& phase) { return std::fabs(phase.gain - gain) < 0.02; });
}

TEST(BbrV3, StartsUpAtFourTimesLogarithmTwoAndDrainsAtAHalf) {
  OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 100});
  run.add(kBbrV3);
  const auto phases = phases_of(run, 2500);
  const auto full = find_gain(phases, phases.begin(), 2.77);
  ASSERT_NE(full, phases.end());
  const auto drain = full + 1;
  ASSERT_NE(drain, phases.end());
  EXPECT_NEAR(drain->gain, 0.5, 0.01);
  // Three rounds without a quarter more, of 100 to 200 ms each.
  EXPECT_GT(drain->start_ms - full->start_ms, 3 * 100);
  EXPECT_LT(drain->start_ms - full->start_ms, 3 * 250);
  // Twice what the path holds.
  EXPECT_NEAR(drain->window_packets, 400, 20);
  // No queue is left to go down for.
  EXPECT_NEAR(drain[1].gain, 1, 0.01);
}

TEST(BbrV3, ProbesBandwidthEveryTwoToThreeSeconds) {
  OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 100});
  run.add(kBbrV3);
  run.run_until(1500);
  const auto phases = phases_of(run, 60000);
  double last_up_ms = 0;
  std::size_t probes = 0;
  for (auto up = find_gain(phases, phases.begin(), 1.25); up < phases.end();
       up = find_gain(phases, up + 1, 1.25)) {
    if (up + 2 >= phases.end()) {
      break;
    }
    // The window allows for 2.25 times the path.
    EXPECT_NEAR(up->window_packets, 2.25 * 200, 50);
    if (up[1].window_packets < 110) {
      continue;  // ProbeRTT ends it
    }
    EXPECT_NEAR(up[1].gain, 0.9, 0.02);
    EXPECT_NEAR(up[2].gain, 1, 0.02);
    // Three rounds without a quarter more end a probe.
    EXPECT_GT(up[1].start_ms - up->start_ms, 3 * 100);
    EXPECT_LT(up[1].start_ms - up->start_ms, 6 * 100);
    if (probes > 0) {
      // The wait, the round of refilling, the probe; and ProbeRTT starts the wait anew.
      EXPECT_GT(up->start_ms - last_up_ms, 2000);
      EXPECT_LT(up->start_ms - last_up_ms, 3000 + 2 * 600 + 3000);
    }
    last_up_ms = up->start_ms;
    ++probes;
  }
  EXPECT_GE(probes, 12U);
  EXPECT_LE(probes, 28U);
}

// On a short path a Reno flow would be back at its window sooner: 62 or 63 rounds of it.
TEST(BbrV3, ProbesAsOftenAsRenoWouldGrowToItsWindow) {
  OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 20});
  run.add(kBbrV3);
  run.run_until(1500);
  const auto phases = phases_of(run, 4500);
  std::size_t probes = 0;
  double first_ms = 0;
  double last_ms = 0;
  for (auto up = find_gain(phases, phases.begin(), 1.25); up < phases.end();
       up = find_gain(phases, up + 1, 1.25)) {
    first_ms = probes++ == 0 ? up->start_ms : first_ms;
    last_ms = up->start_ms;
  }
  ASSERT_GE(probes, 4U);
  // 20 packets on the path: 20 rounds, and those of the probe.
  const double period_ms = (last_ms - first_ms) / static_cast<double>(probes - 1);
  EXPECT_GT(period_ms, 19 * 20);
  EXPECT_LT(period_ms, 30 * 22);
}

TEST(BbrV3, LooksForTheMinimumRttEveryFiveSecondsWithHalfOfThePath) {
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
    // Later where the queue of itself went down as far.
    const double wait_ms = probes[i + 1].first - probes[i].second;
    EXPECT_GT(wait_ms, 5000);
    at_once += wait_ms < 5050 ? 1 : 0;
  }
  EXPECT_GE(at_once, 3U);
}

// A share of packets is lost on the link during one probe only.
class BbrV3Probe : public testing::TestWithParam<double> {};

TEST_P(BbrV3Probe, EndsAtMoreThanTwoPercentOfLossAndBoundsWhatIsInFlight) {
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
    // In the first round with what was sent in it, and to what the path then held or 0.7 of it.
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

TEST(BbrV3, LosesLittleInAShallowBufferWhereVersionOneDoesNotCare) {
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

TEST(BbrV3, BearsOnePercentOfRandomLossButNotFive) {
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

// Within two minutes, as a probe every 2 to 3 s gains a few percent.
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
