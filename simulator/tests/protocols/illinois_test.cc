#include <gtest/gtest.h>

#include "protocols/ack_clock.h"

namespace remy {
namespace {

// RTTs have been from 100 to 200 ms, the window is 200 or so, and the mean RTT of the last round is
// this.
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

// Equation 5, k1 / (k2 + d), from 10 packets an RTT at 1 % of the largest delay to 0.3 at all of
// it: with d = 50 of 100 ms, 10 * 0.3 * 99 / (0.3 * 99 + 9.7 * 49) = 0.588.
TEST(Illinois, GrowsMoreSlowlyTheLongerTheQueueIs) {
  EXPECT_NEAR(growth_at(200), 0.3, 0.01);
  EXPECT_NEAR(growth_at(150), 297.0 / (29.7 + 475.3), 0.01);
  EXPECT_NEAR(growth_at(102), 297.0 / (29.7 + 9.7), 0.1);
}

// Five rounds below 1 % bring the largest growth.
TEST(Illinois, GrowsBySeveralPacketsWhereTheQueueIsEmptyForLong) {
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

// Equation 6: an eighth up to 10 % of the largest delay, a half from 80 % on, and between.
TEST(Illinois, GivesUpMoreTheLongerTheQueueIs) {
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
  clock.round();  // with what was in flight
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
