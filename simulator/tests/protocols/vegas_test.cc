#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "protocols/ack_clock.h"
#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kNs2 = {"vegas", "ns-2", {}};
const Choice kLinux = {"vegas", "linux", {}};

// A clock in congestion avoidance: its own queue has ended slow start.
double settled(AckClock& clock) {
  for (int round = 0; round < 20; ++round) {
    clock.round();
    clock.set_rtt_ms(100 * std::max(1.0, clock.window() / 20));
  }
  return clock.window();
}

TEST(Vegas, Ns2VariantDoublesItsWindowEveryOtherRtt) {
  AckClock clock(kNs2, 100);
  EXPECT_EQ(clock.window(), 2);
  std::vector<double> windows;
  for (int round = 0; round < 6; ++round) {
    clock.round();
    windows.push_back(clock.window());
  }
  EXPECT_EQ(windows, (std::vector<double>{2, 4, 4, 8, 8, 16}));
}

TEST(Vegas, LinuxVariantDoublesItsWindowEveryRtt) {
  AckClock clock(kLinux, 100);
  for (int round = 0; round < 4; ++round) {
    clock.round();
  }
  EXPECT_EQ(clock.window(), 32);
}

// The BDP is 20 packets: the window is the BDP plus alpha to beta packets.
TEST(Vegas, KeepsAlphaToBetaPacketsInTheQueue) {
  for (const auto& [choice, alpha, beta] :
       {std::tuple(kNs2, 1.0, 3.0), std::tuple(kLinux, 2.0, 4.0)}) {
    AckClock clock(choice, 100);
    settled(clock);
    for (int round = 0; round < 50; ++round) {
      const double window = settled(clock);
      EXPECT_GE(window, 20 + alpha - 1);
      EXPECT_LE(window, 20 + beta + 1);
    }
  }
}

// Round trips go on in recovery. Otherwise the first one after it would count the packets of
// several as those of one, and take a path with a queue for one without.
TEST(Vegas, CountsRoundTripsInRecovery) {
  AckClock clock(kNs2, 100);
  settled(clock);
  clock.set_rtt_ms(150);
  clock.lose();
  clock.set_in_recovery(true);
  for (int round = 0; round < 5; ++round) {
    clock.round();
  }
  clock.set_in_recovery(false);
  const double window = clock.window();
  clock.round();
  clock.round();
  EXPECT_LT(clock.window(), window);
}

// ns-2: by a quarter. Linux: by half, and by three quarters during recovery.
TEST(Vegas, ReducesItsWindowByAQuarterOrHalfAfterALoss) {
  AckClock clock(kNs2, 100);
  while (clock.window() < 16) {
    clock.round();
  }
  clock.lose();
  EXPECT_EQ(clock.window(), 12);
  AckClock linux(kLinux, 100);
  while (linux.window() < 16) {
    linux.round();
  }
  const double before = linux.window();
  linux.lose();
  EXPECT_EQ(linux.window(), std::floor(before / 4));
  while (linux.window() == std::floor(before / 4)) {
    linux.acknowledge();
  }
  // After recovery: the packets in flight and three more, up to half the window.
  EXPECT_EQ(linux.window(), std::floor(before / 4) - 1 + 3);
}

TEST(Vegas, StartsWithTwoPacketsInNs2AndOneInLinuxAfterATimeout) {
  AckClock clock(kNs2, 100);
  clock.time_out();
  EXPECT_EQ(clock.window(), 2);
  AckClock linux(kLinux, 100);
  linux.time_out();
  EXPECT_EQ(linux.window(), 1);
}

class VegasOnALink : public testing::TestWithParam<std::tuple<Choice, double, double>> {};

// If each flow knows the true base RTT, n flows keep n alpha to n beta packets in the queue. They
// start together on an empty queue.
TEST_P(VegasOnALink, FlowsKeepAlphaToBetaPacketsEach) {
  const auto& [choice, alpha, beta] = GetParam();
  for (const int flows : {1, 3}) {
    OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 100});
    for (int flow = 0; flow < flows; ++flow) {
      run.add(choice, flow * 1e-3);
    }
    run.run_until(60'000);
    double backlog = 0;
    int samples = 0;
    double until = 60'000;
    for (; until < 120'000; until += 97) {
      run.run_until(until);
      backlog += static_cast<double>(run.backlog());
      ++samples;
    }
    EXPECT_GE(backlog / samples, flows * alpha - 1) << flows;
    EXPECT_LE(backlog / samples, flows * beta + 1) << flows;
  }
}

// A latecomer mistakes the queue for propagation delay, keeps more packets in it, and gets more.
TEST_P(VegasOnALink, LatecomerGetsMore) {
  OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 100});
  const Choice choice = std::get<0>(GetParam());
  run.add(choice);
  run.add(choice, 1);
  run.add(choice, 2);
  run.add(choice, 60'000);
  run.run_until(120'000);
  const auto counts = run.run_until(240'000);
  EXPECT_GT(counts[3].delivered, counts[0].delivered);
  EXPECT_GT(counts[3].delivered, counts[1].delivered);
  EXPECT_GT(counts[3].delivered, counts[2].delivered);
}

INSTANTIATE_TEST_SUITE_P(Variants, VegasOnALink,
                         testing::Values(std::tuple(kNs2, 1.0, 3.0), std::tuple(kLinux, 2.0, 4.0)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param).variant == "linux" ? "Linux" : "Ns2";
                         });

}  // namespace
}  // namespace remy
