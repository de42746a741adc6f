#include <gtest/gtest.h>

#include "protocols/ack_clock.h"

namespace remy {
namespace {

// A clock whose RTTs were between 100 and 200 ms, with a window of about 200 and the given mean RTT
// in the last round trip.
AckClock at_rtt(double rtt_ms) {
  AckClock clock({"illinois", "", {}}, 100);
  while (clock.window() < 400) {
    clock.acknowledge();
  }
  clock.lose();
  clock.set_rtt_ms(200);
  clock.acknowledge();
  clock.set_rtt_ms(rtt_ms);
  for (int round = 0; round < 3; ++round) {
    clock.round();
  }
  return clock;
}

double growth_at(double rtt_ms) {
  AckClock clock = at_rtt(rtt_ms);
  const double before = clock.window();
  clock.acknowledge();
  return (clock.window() - before) * before;
}

double reduction_at(double rtt_ms) {
  AckClock clock = at_rtt(rtt_ms);
  const double before = clock.window();
  clock.lose();
  return 1 - clock.window() / before;
}

// Equation 5: alpha falls from 10 packets per RTT at 1 % of d_m to 0.3 at d_m. At d_a = 50 of 100
// ms it is 10 * 0.3 * 99 / (0.3 * 99 + 9.7 * 49) = 0.588.
TEST(Illinois, AlphaFallsWithTheQueueingDelay) {
  EXPECT_NEAR(growth_at(200), 0.3, 0.01);
  EXPECT_NEAR(growth_at(150), 297.0 / (29.7 + 475.3), 0.01);
  EXPECT_NEAR(growth_at(102), 297.0 / (29.7 + 9.7), 0.1);
}

// Alpha reaches its maximum after five round trips below 1 %.
TEST(Illinois, AlphaIsLargestAfterFiveRoundsOfLowDelay) {
  AckClock clock = at_rtt(150);
  clock.set_rtt_ms(100);
  double before = 0;
  double growth = 0;
  int rounds = 0;
  for (; rounds < 12 && growth < 9; ++rounds) {
    before = clock.window();
    clock.round();
    growth = clock.window() - before;
  }
  EXPECT_NEAR(growth, 10, 0.3);
  EXPECT_GE(rounds, 5);
  EXPECT_LE(rounds, 8);
}

// Equation 6: beta is 1/8 up to 10 % of d_m, 1/2 from 80 % on, and linear in between.
TEST(Illinois, BetaRisesWithTheQueueingDelay) {
  EXPECT_NEAR(reduction_at(105), 0.125, 1e-9);
  EXPECT_NEAR(reduction_at(145), 0.125 + 0.375 * 35 / 70, 1e-3);
  EXPECT_NEAR(reduction_at(185), 0.5, 1e-9);
}

TEST(Illinois, IsRenoInSmallWindows) {
  AckClock clock({"illinois", "", {}}, 100);
  while (clock.window() < 16) {
    clock.acknowledge();
  }
  clock.lose();
  EXPECT_EQ(clock.window(), 8);
  clock.round();  // acknowledges the packets in flight
  const double before = clock.window();
  for (int round = 0; round < 4; ++round) {
    clock.round();
  }
  EXPECT_NEAR(clock.window() - before, 4, 0.5);
  const double after = clock.window();
  clock.lose();
  EXPECT_EQ(clock.window(), after / 2);
}

}  // namespace
}  // namespace remy
