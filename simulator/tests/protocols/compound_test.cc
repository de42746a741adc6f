#include <gtest/gtest.h>

#include <cmath>

#include "protocols/ack_clock.h"

namespace remy {
namespace {

const Choice kPaper = {"compound", "paper", {}};
const Choice kLinux = {"compound", "linux", {}};

// A clock in congestion avoidance at the given window, with a negligible dwnd.
void settle(AckClock& clock, double window) {
  while (clock.window() < 2 * window) {
    clock.acknowledge();
  }
  clock.lose();
}

TEST(Compound, SlowStartIsRenos) {
  AckClock clock(kPaper, 100);
  clock.round();
  clock.round();
  EXPECT_EQ(clock.window(), 40);
  AckClock linux(kLinux, 100);
  linux.round();
  EXPECT_EQ(linux.window(), 4);
}

// At a window of 256 without a queue: 256^(3/4) / 8 - 1 = 7, plus Reno's packet.
TEST(Compound, GrowsByEightPacketsAnRttAtAWindowOf256) {
  AckClock clock(kPaper, 100);
  settle(clock, 256);
  EXPECT_NEAR(clock.window(), 256, 0.5);
  clock.round();
  clock.round();
  const double before = clock.window();
  clock.round();
  const double by = std::pow(before, 0.75) / 8 - 1 + 1;
  EXPECT_NEAR(clock.window() - before, by, 0.05);
  EXPECT_NEAR(by, 8, 0.5);
}

// With more than gamma packets queued, dwnd shrinks until only Reno's window is left.
TEST(Compound, IsRenoWhileMoreThanGammaPacketsAreQueued) {
  for (const Choice& choice : {kPaper, kLinux}) {
    AckClock clock(choice, 100);
    settle(clock, 256);
    for (int round = 0; round < 30; ++round) {
      clock.round();
    }
    EXPECT_GT(clock.window(), 400) << choice.variant;
    // The queue is a fifth of the window.
    clock.set_rtt_ms(125);
    for (int round = 0; round < 20; ++round) {
      clock.round();
    }
    const double before = clock.window();
    for (int round = 0; round < 10; ++round) {
      clock.round();
    }
    EXPECT_NEAR(clock.window() - before, 10, 1) << choice.variant;
  }
}

// With zeta = 1 dwnd falls by the queued packets per round trip: computed from the window in the
// report, from the packets of the last round trip in the Linux module.
TEST(Compound, ReducesDwndByTheQueuedPackets) {
  for (const Choice& choice : {kPaper, kLinux}) {
    AckClock clock(choice, 100);
    settle(clock, 256);
    for (int round = 0; round < 40; ++round) {
      clock.round();
    }
    clock.set_rtt_ms(110);
    clock.round();
    double last = clock.window();
    clock.round();
    for (int round = 0; round < 3; ++round) {
      const double before = clock.window();
      const double queued = (choice.variant == "linux" ? last : before) * (1 - 100 / 110.0);
      EXPECT_GT(queued, 30) << choice.variant;
      clock.round();
      EXPECT_NEAR(clock.window() - before, 1 - queued, 1) << choice.variant;
      last = before;
    }
  }
}

// Equation 5: the whole window halves. Reno's window halves, and dwnd is the remainder.
TEST(Compound, HalvesTheWholeWindowAfterALoss) {
  AckClock clock(kPaper, 100);
  settle(clock, 100);
  for (int round = 0; round < 30; ++round) {
    clock.round();
  }
  const double before = clock.window();
  clock.lose();
  EXPECT_NEAR(clock.window(), before / 2, 1e-9);
  AckClock third({"compound", "paper", {{"beta", 0.25}}}, 100);
  settle(third, 100);
  for (int round = 0; round < 30; ++round) {
    third.round();
  }
  const double previous = third.window();
  third.lose();
  EXPECT_NEAR(third.window(), 0.75 * previous, 1e-9);
}

TEST(Compound, HasOnePacketAndNoDwndAfterATimeout) {
  for (const Choice& choice : {kPaper, kLinux}) {
    AckClock clock(choice, 100);
    settle(clock, 100);
    for (int round = 0; round < 30; ++round) {
      clock.round();
    }
    clock.time_out();
    EXPECT_EQ(clock.window(), 1) << choice.variant;
    clock.round();
    EXPECT_EQ(clock.window(), 2) << choice.variant;
  }
}

// The module computes in whole packets: 256 packets in the last round trip give 7, plus Reno's
// packet.
TEST(Compound, LinuxVariantGrowsByWholePackets) {
  AckClock clock(kLinux, 100);
  settle(clock, 200);
  for (int round = 0; round < 8; ++round) {
    clock.round();
  }
  double last = clock.window();
  for (int round = 0; round < 12; ++round) {
    clock.round();
    const double growth = clock.window() - last;
    last = clock.window();
    EXPECT_EQ(growth, std::floor(growth));
    EXPECT_NEAR(growth, std::floor(std::floor(std::pow(last, 0.75)) / 8) - 1 + 1, 1);
  }
}

// Reno's rule halves the window, and recovery has a quarter. The loss-based window is then the
// whole window less dwnd, if that is positive.
TEST(Compound, LinuxVariantHalvesAsReno) {
  AckClock clock(kLinux, 100);
  settle(clock, 200);
  for (int round = 0; round < 20; ++round) {
    clock.round();
  }
  const double before = clock.window();
  clock.lose();
  EXPECT_EQ(clock.window(), std::floor(std::floor(before / 2) / 2));
}

}  // namespace
}  // namespace remy
