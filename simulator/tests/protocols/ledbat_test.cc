#include <gtest/gtest.h>

#include "protocols/ack_clock.h"
#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kLedbat = {"ledbat", "", {}};

// RFC 6817, section 2.4.2: GAIN off_target / cwnd per packet, with off_target = (TARGET -
// queuing_delay) / TARGET.
TEST(Ledbat, ChangesInProportionToTheDistanceFromTheTarget) {
  AckClock clock(kLedbat, 100);
  clock.set_one_way_ms(50);
  for (int round = 0; round < 20; ++round) {
    clock.round();
  }
  EXPECT_NEAR(clock.window(), 20, 1);
  const auto step_at = [&clock](double one_way_ms) {
    clock.set_one_way_ms(one_way_ms);
    for (int ack = 0; ack < 4; ++ack) {
      clock.acknowledge();  // replaces all samples of the current-delay filter
    }
    const double before = clock.window();
    clock.acknowledge();
    return (clock.window() - before) * before;
  };
  EXPECT_NEAR(step_at(50), 1, 1e-9);
  EXPECT_NEAR(step_at(125), 0.25, 1e-9);
  EXPECT_NEAR(step_at(150), 0, 1e-9);
  EXPECT_NEAR(step_at(250), -1, 1e-9);
}

TEST(Ledbat, HalvesAfterALossToAtLeastTwoPackets) {
  AckClock clock(kLedbat, 100);
  clock.set_one_way_ms(50);
  for (int round = 0; round < 20; ++round) {
    clock.round();
  }
  const double before = clock.window();
  clock.lose();
  EXPECT_EQ(clock.window(), before / 2);
  for (int loss = 0; loss < 10; ++loss) {
    clock.lose();
  }
  EXPECT_EQ(clock.window(), 2);
  clock.time_out();
  EXPECT_EQ(clock.window(), 1);
}

// RFC 6817, section 2.4.2: the base delay is the minimum of the last ten minutes.
TEST(Ledbat, ForgetsItsBaseDelayAfterTenMinutes) {
  AckClock clock(kLedbat, 100);
  clock.set_one_way_ms(50);
  clock.round();
  clock.set_one_way_ms(250);
  clock.wait(8 * 60'000.0);
  for (int round = 0; round < 5; ++round) {
    clock.round();
  }
  EXPECT_EQ(clock.window(), 2);
  clock.wait(2 * 60'000.0);
  for (int round = 0; round < 5; ++round) {
    clock.round();
  }
  EXPECT_GT(clock.window(), 5);
}

TEST(Ledbat, OneFlowHoldsTheQueueAtItsTarget) {
  for (const double target_ms : {100.0, 25.0}) {
    OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 100});
    run.add({"ledbat", "", {{"target_ms", target_ms}}});
    run.run_until(300'000);
    const auto counts = run.run_until(400'000);
    EXPECT_NEAR(counts[0].mean_rtt_ms() - 100, target_ms, 0.05 * target_ms + 1);
    EXPECT_GT(counts[0].delivered, 99'900U);
  }
}

// The second flow mistakes the first flow's queue for propagation delay.
TEST(Ledbat, LatecomerGetsMore) {
  OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 100});
  run.add(kLedbat);
  run.add(kLedbat, 200'000);
  run.run_until(500'000);
  const auto counts = run.run_until(550'000);
  EXPECT_GT(counts[1].delivered, 5 * counts[0].delivered);
}

}  // namespace
}  // namespace remy
