#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "protocols/ack_clock.h"
#include "protocols/kernel_link.h"
#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kRfc = {"cubic", "rfc9438", {}};
const Choice kOld = {"cubic", "linux-2.6.22", {}};
const Choice kLinux = {"cubic", "linux", {}};
const Choice kWithoutHyStart = {"cubic", "linux", {{"hystart", 0}}};

// A clock in slow start up to a window, without HyStart.
void open(AckClock& clock, double window) {
  while (clock.window() < window) {
    clock.acknowledge();
  }
}

// The window some time from now.
double window_after(AckClock& clock, double ms) {
  const double until_ms = clock.now_ms() + ms;
  while (clock.now_ms() < until_ms) {
    clock.acknowledge();
  }
  return clock.window();
}

TEST(Cubic, StartsWithTheInitialWindowAndDoublesItEachRtt) {
  AckClock clock(kRfc, 100);
  EXPECT_EQ(clock.window(), 10);
  clock.round();
  EXPECT_EQ(clock.window(), 20);
  clock.round();
  EXPECT_EQ(clock.window(), 40);
  EXPECT_EQ(AckClock(kOld, 100).window(), 2);
  EXPECT_EQ(AckClock({"cubic", "linux", {{"initial_window_packets", 4}}}, 100).window(), 4);
}

// RFC 9438, section 4.2: W(0) = beta W_max, W(K) = W_max.
TEST(Cubic, ReachesWMaxAfterKSeconds) {
  AckClock clock(kRfc, 100);
  open(clock, 1000);
  clock.lose();
  EXPECT_DOUBLE_EQ(clock.window(), 700);
  const double k_ms = 1000 * std::cbrt(300 / 0.4);
  EXPECT_NEAR(window_after(clock, k_ms / 2), 1000 - 300 / 8.0, 4);
  EXPECT_NEAR(window_after(clock, k_ms / 2), 1000, 1);
  // W_cubic is point-symmetric about W_max.
  EXPECT_NEAR(window_after(clock, k_ms / 2), 1000 + 300 / 8.0, 4);
}

TEST(Cubic, LinuxVariantsReachWMaxAfterKSeconds) {
  AckClock clock(kWithoutHyStart, 100);
  open(clock, 1000);
  clock.lose();
  EXPECT_EQ(clock.window(), 1000 * 717 / 1024);
  EXPECT_NEAR(window_after(clock, 1000 * std::cbrt(300 / 0.4)), 1000, 5);

  AckClock old(kOld, 100);
  open(old, 1000);
  old.lose();
  EXPECT_EQ(old.window(), 1000 * 819 / 1024);
  // Earlier, since the window grows faster than W_cubic (the delayed_ack filter).
  EXPECT_NEAR(window_after(old, 1000 * std::cbrt(200 / 0.4)), 1000, 5);
}

// RFC 9438, section 4.7: a loss at 700, before W_max = 1000 is reached, sets W_max = 700 (1 + beta)
// / 2.
TEST(Cubic, FastConvergenceLowersWMax) {
  AckClock clock(kRfc, 100);
  open(clock, 1000);
  clock.lose();
  clock.lose();
  EXPECT_DOUBLE_EQ(clock.window(), 490);
  const double k_ms = 1000 * std::cbrt((595 - 490) / 0.4);
  EXPECT_NEAR(window_after(clock, k_ms), 595, 1);
  AckClock without({"cubic", "rfc9438", {{"fast_convergence", 0}}}, 100);
  open(without, 1000);
  without.lose();
  without.lose();
  EXPECT_NEAR(window_after(without, 1000 * std::cbrt((700 - 490) / 0.4)), 700, 1);
}

// RFC 9438, section 4.3: in the Reno-friendly region the window grows by 3 (1 - beta) / (1 + beta)
// = 0.529 packets per RTT.
TEST(Cubic, GrowsAsRenoInSmallWindows) {
  AckClock clock(kRfc, 10);
  open(clock, 100);
  clock.lose();
  for (int round = 0; round < 20; ++round) {
    clock.round();
  }
  EXPECT_NEAR(clock.window(), 70 + 20 * 9.0 / 17, 0.6);
  // From cwnd_prior on by one packet per RTT.
  while (clock.window() < 101) {
    clock.round();
  }
  const double before = clock.window();
  for (int round = 0; round < 20; ++round) {
    clock.round();
  }
  EXPECT_NEAR(clock.window(), before + 20, 0.6);
}

// RFC 9438, section 4.8.
TEST(Cubic, SlowStartsUpToSsthreshAfterATimeout) {
  AckClock clock(kRfc, 100);
  open(clock, 100);
  clock.time_out();
  EXPECT_EQ(clock.window(), 1);
  clock.time_out(false);
  for (int round = 0; round < 6; ++round) {
    clock.round();
  }
  EXPECT_EQ(clock.window(), 64);
  clock.round();
  // Then W_cubic with K = 0: after 1 s it has grown by 0.4 packets, so W_est is larger.
  EXPECT_NEAR(clock.window(), 70, 1);
  EXPECT_NEAR(window_after(clock, 1000), 70 + 10 * 9.0 / 17, 1);
}

// RFC 9438, section 5.8: idle time does not count for the epoch.
TEST(Cubic, ExcludesIdleTimeFromTheEpoch) {
  for (const Choice& choice : {kRfc, kWithoutHyStart}) {
    AckClock clock(choice, 100);
    open(clock, 1000);
    clock.lose();
    window_after(clock, 2000);
    const double before = clock.window();
    clock.pause(60'000);
    clock.round();
    clock.round();
    EXPECT_NEAR(clock.window(), before, 20) << choice.variant;
    clock.lose();
    clock.acknowledge();
    clock.pause(60'000);
    const double reduced = clock.window();
    clock.round();
    EXPECT_NEAR(clock.window(), reduced, 20) << choice.variant;
  }
}

TEST(Cubic, RestoresTheInitialWindowAfterAnIdleRto) {
  for (const Choice& choice : {kRfc, kWithoutHyStart}) {
    AckClock clock(choice, 100);
    open(clock, 100);
    clock.controller().on_idle_timeout(clock.now_ms());
    EXPECT_EQ(clock.window(), 10) << choice.variant;
  }
  AckClock old(kOld, 100);
  open(old, 100);
  old.controller().on_idle_timeout(old.now_ms());
  EXPECT_EQ(old.window(), 2);
}

TEST(Cubic, DoesNotGrowInRecovery) {
  for (const Choice& choice : {kRfc, kLinux}) {
    AckClock clock(choice, 100);
    open(clock, 30);
    clock.lose();
    const double window = clock.window();
    clock.set_in_recovery(true);
    for (int round = 0; round < 5; ++round) {
      clock.round();
    }
    EXPECT_EQ(clock.window(), window);
  }
}

// RFC 9438, table 1 (RTT 0.1 s) and table 2 (0.01 s): mean windows at a loss rate p, of CUBIC or of
// Reno, whichever is larger. The tables assume that W_max is the same in each cycle; fast
// convergence gives 2 to 6 % less.
TEST(Cubic, HasTheMeanWindowsOfTheRfcsTables) {
  const auto expect_mean = [](double rtt_ms, double p, double window) {
    const auto packets = static_cast<std::uint64_t>(std::llround(1 / p));
    EXPECT_NEAR(mean_window(kRfc, rtt_ms, packets, 100'000) / window, 1, 0.06) << p;
  };
  expect_mean(100, 1e-2, 12);
  expect_mean(100, 1e-3, 38);
  expect_mean(100, 1e-4, 187);
  expect_mean(100, 1e-5, 1054);
  expect_mean(100, 1e-6, 5926);
  expect_mean(100, 1e-7, 33325);
  expect_mean(100, 1e-8, 187400);
  expect_mean(10, 1e-2, 12);
  expect_mean(10, 1e-3, 38);
  expect_mean(10, 1e-4, 120);
  expect_mean(10, 1e-5, 379);
  expect_mean(10, 1e-6, 1200);
  expect_mean(10, 1e-7, 5926);
  expect_mean(10, 1e-8, 33325);
}

// Mean windows of the kernel variants by the formula of section 5.2: (C (3 + beta) / (4 (1 -
// beta)))^(1/4) RTT^(3/4) / p^(3/4). Whole packets grow faster in small windows.
TEST(Cubic, LinuxVariantsHaveTheMeanWindowsOfTheFormula) {
  const auto formula = [](double beta, double rtt_s, double p) {
    return std::pow(0.4 * (3 + beta) / (4 * (1 - beta)), 0.25) * std::pow(rtt_s / p, 0.75);
  };
  const double today = 717 / 1024.0;
  EXPECT_NEAR(mean_window(kLinux, 100, 100'000, 1000) / formula(today, 0.1, 1e-5), 1, 0.12);
  EXPECT_NEAR(mean_window(kLinux, 100, 1'000'000, 10'000) / formula(today, 0.1, 1e-6), 1, 0.05);
  EXPECT_NEAR(mean_window(kLinux, 100, 10'000'000, 100'000) / formula(today, 0.1, 1e-7), 1, 0.05);
  const double then = 819 / 1024.0;
  EXPECT_NEAR(mean_window(kOld, 100, 100'000, 1, 20) / formula(then, 0.1, 1e-5), 1, 0.12);
  EXPECT_NEAR(mean_window(kOld, 100, 1'000'000, 1, 5) / formula(then, 0.1, 1e-6), 1, 0.05);
}

// Before the first loss, 50 ACKs per packet. The kernel's delayed_ack filter turns this into 800 /
// 31, and a counter that starts at 0 adds one.
TEST(Cubic, Linux2622GrowsSlowlyBeforeTheFirstLoss) {
  AckClock clock(kOld, 100);
  open(clock, 100);
  clock.time_out();
  open(clock, 100 * 819 / 1024 + 1);
  int acks = 0;
  const double window = clock.window();
  while (clock.window() < window + 2) {
    clock.acknowledge();
    ++acks;
  }
  EXPECT_NEAR(acks, 2 * 26, 1);
}

// Far above W_max the window grows by at most 16 packets per 100 ms, which the delayed_ack filter
// nearly doubles.
TEST(Cubic, Linux2622LimitsItsGrowth) {
  AckClock clock(kOld, 100, 2000);
  open(clock, 1000);
  clock.lose();
  window_after(clock, 25'000);
  const double before = clock.window();
  EXPECT_NEAR(window_after(clock, 100) - before, 31, 2);
}

TEST(Cubic, HyStartEndsSlowStartByAckTrain) {
  // At 50 packets per RTT of 100 ms, ACKs are 2 ms apart.
  AckClock clock(kLinux, 100);
  for (int round = 0; round < 6; ++round) {
    clock.round();
  }
  EXPECT_GT(clock.window(), 50);
  EXPECT_LT(clock.window(), 160);
  AckClock without(kWithoutHyStart, 100);
  for (int round = 0; round < 6; ++round) {
    without.round();
  }
  EXPECT_EQ(without.window(), 640);
}

TEST(Cubic, HyStartEndsSlowStartWhenTheRttGrowsByAnEighth) {
  const auto after = [](double rtt_ms) {
    AckClock clock(kLinux, 1000);
    open(clock, 20);
    clock.round();
    clock.set_rtt_ms(rtt_ms);
    clock.round();
    return clock.window();
  };
  EXPECT_EQ(after(1015), 80);
  // At most 16 ms.
  EXPECT_LT(after(1017), 75);
}

struct SlowStartEnd {
  double megabits_per_second;
  double rtt_ms;
  double window;
};

class HyStart : public testing::TestWithParam<SlowStartEnd> {};

// Linux 6.14 and newer (commit 25c1a9ca53db): a round begins at the first ACK beyond the end of the
// last one, also while the window is below 16 packets. Windows at which slow start ends.
TEST_P(HyStart, CountsRoundsInSmallWindows) {
  const auto [megabits, rtt_ms, window] = GetParam();
  OneLinkRun run({.rate_packets_per_ms = megabits / 12, .rtt_ms = rtt_ms});
  run.add(kLinux);
  double before = 10;
  std::uint64_t delivered = 0;
  double end = 0;
  run.observer = [&](std::size_t flow) {
    const double now = run.controller(flow).cwnd();
    if (end == 0 && run.counts(flow).delivered > delivered && now == before) {
      end = now;
    }
    before = now;
    delivered = run.counts(flow).delivered;
  };
  run.run_until(3000);
  EXPECT_EQ(end, window);
}

INSTANTIATE_TEST_SUITE_P(Links, HyStart,
                         testing::Values(SlowStartEnd{15, 150, 255}, SlowStartEnd{10, 100, 123},
                                         SlowStartEnd{5, 100, 168}, SlowStartEnd{2, 100, 48},
                                         SlowStartEnd{100, 20, 244}, SlowStartEnd{100, 100, 1058}));

class CubicInTheKernel : public testing::TestWithParam<KernelFlows> {};

TEST_P(CubicInTheKernel, MatchesTheKernel) { expect_kernel(kLinux, "`cubic` `linux`", GetParam()); }

INSTANTIATE_TEST_SUITE_P(Linux, CubicInTheKernel,
                         testing::Values(KernelFlows{"one flow", 1, 0, 14.63, 677.7, 0.01, 0.01},
                                         KernelFlows{"two flows", 2, 0, 14.67, 715.7, 0.01, 0.01},
                                         KernelFlows{"four flows", 4, 0, 14.69, 751.9, 0.01, 0.01},
                                         KernelFlows{"eight flows", 8, 0, 14.68, 778.2, 0.01, 0.01},
                                         KernelFlows{"one flow at 1 % loss for 240 s", 1, 0.01,
                                                     1.006, 151.1, 0.04, 0.01, 240}));

}  // namespace
}  // namespace remy
