#include <gtest/gtest.h>

#include <cmath>

#include "protocols/ack_clock.h"

namespace remy {
namespace {

const Choice kDctcp = {"dctcp", "", {}};

// RFC 8257, section 3.3: alpha = (1 - g) alpha + g M for each window, and the window is reduced by
// half of it.
TEST(Dctcp, ReducesTheWindowByHalfTheAverageShareOfMarks) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  // Slow start from 10 has taken three windows and begun the fourth, and the first ACK ends one of
  // nothing else.
  const double share = std::pow(15 / 16.0, 4);
  clock.acknowledge(1, 1);
  EXPECT_NEAR(clock.window(), 100 * (1 - share / 2), 0.5);
}

TEST(Dctcp, AveragesTheShareOfMarksOverWindows) {
  // Gain 1: the share of the last window is all.
  AckClock clock({"dctcp", "", {{"gain", 1}}}, 100);
  while (clock.window() < 64) {
    clock.acknowledge();
  }
  clock.round();
  clock.round();
  // One mark in a window, whose share of marks until then is 0.
  const double before = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_NEAR(clock.window(), before, 2);
  // That mark counts when its window is over, and for the next reaction.
  clock.round();
  const double then = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_LT(clock.window(), then);
  EXPECT_GT(clock.window(), then * (1 - 0.5 * 2 / before));
}

TEST(Dctcp, ReactsOnceInAWindowOfData) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.acknowledge(1, 1);
  const double reduced = clock.window();
  for (int ack = 0; ack < 40; ++ack) {
    clock.acknowledge(1, 1);
    EXPECT_GE(clock.window(), reduced);
  }
  clock.round();
  clock.round();
  const double before = clock.window();
  clock.acknowledge(1, 1);
  EXPECT_LT(clock.window(), before);
}

// All marked, in every window: alpha goes to 1, and each window is half the last, and a packet.
TEST(Dctcp, IsRenoWhereEverythingIsMarked) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 1000) {
    clock.acknowledge();
  }
  for (int ack = 0; ack < 5000; ++ack) {
    clock.acknowledge(1, 1);
  }
  EXPECT_LE(clock.window(), 4);
  EXPECT_GE(clock.window(), 2);
}

TEST(Dctcp, HalvesTheWindowAtALoss) {
  AckClock clock(kDctcp, 100);
  while (clock.window() < 100) {
    clock.acknowledge();
  }
  clock.lose();
  EXPECT_EQ(clock.window(), 50);
}

TEST(Dctcp, AsksForMarks) { EXPECT_TRUE(find_protocol("dctcp").needs.is_ecn_capable); }

}  // namespace
}  // namespace remy
