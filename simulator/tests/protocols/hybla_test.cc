#include <gtest/gtest.h>

#include "protocols/ack_clock.h"

namespace remy {
namespace {

const Choice kHybla = {"hybla", "", {{"initial_window_packets", 2}}};

// rho = RTT / 25 ms: 2^rho - 1 packets per ACK in slow start.
TEST(Hybla, SlowStartIsAsFastAsAtTheReferenceRtt) {
  AckClock clock(kHybla, 75);
  clock.acknowledge();
  EXPECT_NEAR(clock.window(), 2 + 7, 1e-12);
  // One RTT has the effect of three RTTs of 25 ms.
  clock.acknowledge();
  EXPECT_NEAR(clock.window(), 2 * 8, 1e-12);
}

// rho^2 / W in congestion avoidance: 9 packets per RTT.
TEST(Hybla, CongestionAvoidanceGrowsByTheSquareOfRho) {
  AckClock clock(kHybla, 75);
  while (clock.window() < 400) {
    clock.acknowledge();
  }
  clock.lose();
  const double before = clock.window();
  clock.acknowledge();
  EXPECT_NEAR(clock.window(), before + 9 / before, 1e-12);
}

TEST(Hybla, IsRenoIfTheRttIsShort) {
  AckClock clock(kHybla, 10);
  clock.round();
  EXPECT_EQ(clock.window(), 4);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.lose();
  EXPECT_EQ(clock.window(), 50);
  clock.acknowledge();
  EXPECT_DOUBLE_EQ(clock.window(), 50 + 1 / 50.0);
}

// The flow's own queue does not make it faster.
TEST(Hybla, UsesTheMinimumRtt) {
  AckClock clock(kHybla, 75);
  clock.acknowledge();
  clock.set_rtt_ms(150);
  const double before = clock.window();
  clock.acknowledge();
  EXPECT_NEAR(clock.window(), before + 7, 1e-12);
}

}  // namespace
}  // namespace remy
