#include "senders/path_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "random_cases.h"
#include "senders/remy_controller.h"
#include "slow_path_model.h"

namespace remy {
namespace {

constexpr double kInfinite = PathModel::kInfinite;
constexpr std::uint32_t kLargeWindow = 1'000'000;

// One part of the model at a time: rules see RTTs as they are, and nothing is sent beside them.
PathSettings plain_settings() {
  return {.base_rtt_rounds = 4,
          .tolerated_loss = 0.02,
          .loss_debt_packets = 6,
          .loss_window = 0.875,
          .least_window_packets = 2,
          .reference_rtt_ms = 0,
          .additive_packets = 0,
          .flight_bound = 1e6};
}

struct PathModelTest : testing::Test {
  // One ACK is a round trip, because it arrives much later than a smoothed RTT after the last.
  void round(double rtt_ms, std::uint32_t packets = 100) { ack_after(5000, rtt_ms, packets); }
  void rounds(int count, double rtt_ms, std::uint32_t packets = 100) {
    for (; count > 0; --count) {
      round(rtt_ms, packets);
    }
  }
  void ack_after(double wait_ms, double rtt_ms, std::uint32_t packets = 1) {
    now_ms += wait_ms;
    rtt_of_rules_ms = model.on_ack(now_ms, rtt_ms, packets);
  }
  void lose(std::uint32_t packets) { model.on_loss(now_ms, packets); }
  std::uint32_t window() const { return model.limit_window(kLargeWindow); }

  PathSettings settings = plain_settings();
  PathModel model{&settings};
  double now_ms = 0;
  double rtt_of_rules_ms = 0;  // at the last ACK
};

TEST_F(PathModelTest, LimitsNothingButALargeWindowBeforeTheFirstAck) {
  for (const double flight_bound : {1e6, 1.75}) {
    settings.flight_bound = flight_bound;
    model.start(80);
    lose(1000);
    EXPECT_EQ(model.limit_window(0), 0);
    EXPECT_EQ(window(), flight_bound == 1.75 ? 64 : kLargeWindow);
    EXPECT_EQ(model.limit_intersend(5000), 5000);
    EXPECT_EQ(model.base_rtt_ms(), 80);
    round(100);
    EXPECT_EQ(window(), flight_bound == 1.75 ? 16 * 16 : kLargeWindow)
        << "losses of before are not of this path";
  }
}

struct FlightBound : PathModelTest {
  FlightBound() {
    settings.flight_bound = 1.75;
    settings.base_rtt_rounds = 10'000;
  }
  // Ends the start.
  void see_queue() { round(104); }
};

TEST_F(FlightBound, AllowsAMultipleOfTheBetterOfTwoRoundTrips) {
  round(100);
  see_queue();
  rounds(3, 104, 400);
  EXPECT_EQ(window(), 1.75 * 400);
  round(104, 40);
  EXPECT_EQ(window(), 1.75 * 400);
  round(104, 60);
  EXPECT_EQ(window(), 1.75 * 60);
  round(104, 40);
  EXPECT_EQ(window(), 1.75 * 60);
  rounds(2, 104, 3);
  EXPECT_EQ(window(), 1.75 * 16) << "a few packets count always";
  EXPECT_EQ(model.limit_window(20), 20);
}

TEST_F(FlightBound, IsSixteenTimesADeliveryInTheStart) {
  round(100);
  rounds(3, 100, 400);
  EXPECT_EQ(window(), 16 * 400);
  see_queue();
  EXPECT_EQ(window(), 1.75 * 400);
}

TEST_F(FlightBound, BoundsThePace) {
  round(100);
  see_queue();
  rounds(30, 104, 400);
  rounds(30, 104, 400);
  EXPECT_NEAR(model.limit_intersend(0), 104 / (1.75 * 400), 1e-2);
  EXPECT_EQ(model.limit_intersend(2), 2) << "a slower pace stays as it is";
}

// A path that gets shorter lets all ACKs that are on it arrive at once. Rules that send a multiple
// of the measured rate then send without bound.
TEST_F(FlightBound, HoldsWhenAcksArriveAllAtOnce) {
  round(100);
  see_queue();
  rounds(20, 100, 50);
  for (int packet = 0; packet < 50; ++packet) {
    ack_after(0, 50);
    EXPECT_LE(window(), 1.75 * 50);
    EXPECT_GE(model.limit_intersend(0), 50 / (1.75 * 50));
  }
}

TEST_F(PathModelTest, BaseRttOfAPathThatGetsLongerSlowlyExpiresAfterTwoEpochsAndNotBefore) {
  round(100);
  rounds(4, 100);
  const double rises[] = {103, 106, 109, 109};
  for (const double rtt_ms : rises) {
    round(rtt_ms);
    EXPECT_EQ(model.base_rtt_ms(), 100) << "in the epoch of the rise, at " << rtt_ms;
  }
  for (int i = 1; i < 4; ++i) {
    round(109);
    EXPECT_EQ(model.base_rtt_ms(), 100) << "in round trip " << i << " of the epoch after it";
  }
  round(109);
  EXPECT_EQ(model.base_rtt_ms(), 109);
}

TEST_F(PathModelTest, BaseRttFallsAtOnceWithTheRtt) {
  round(100);
  ack_after(1, 90);
  EXPECT_EQ(model.base_rtt_ms(), 90);
  EXPECT_EQ(rtt_of_rules_ms, 90);
  ack_after(1, 95);
  EXPECT_EQ(model.base_rtt_ms(), 90);
}

TEST_F(PathModelTest, RememberedBaseRttCountsUntilTheFirstEpochEnds) {
  model.start(80);
  round(100);
  EXPECT_EQ(model.base_rtt_ms(), 80);
  rounds(3, 100);
  EXPECT_EQ(model.base_rtt_ms(), 80);
  round(100);
  EXPECT_EQ(model.base_rtt_ms(), 100);
}

TEST_F(PathModelTest, EpochThatRoseByMoreThanAThirtySecondIsFollowedByADrain) {
  for (const bool exceeds : {false, true}) {
    SCOPED_TRACE(exceeds);
    model.start(kInfinite);
    const double risen_ms = exceeds ? 103.2 : 103.125;
    round(100);
    rounds(4, 100);
    // This epoch begins with the last round trip of the one before.
    rounds(4, risen_ms);
    rounds(3, risen_ms);
    EXPECT_EQ(window(), kLargeWindow);
    round(risen_ms, 60);
    EXPECT_EQ(window(), exceeds ? 30 : kLargeWindow) << "of 60 packets of the last round trip";
    EXPECT_EQ(model.base_rtt_ms(), risen_ms);
    rounds(4, risen_ms);
    EXPECT_EQ(window(), kLargeWindow) << "it was tested";
  }
}

TEST_F(PathModelTest, DrainLastsForOneSmoothedRttAndLeavesTheSmallestWindow) {
  settings.base_rtt_rounds = 1;
  model.start(64);
  // The first epoch is above the remembered base RTT, and the RTT constant, as is its average.
  round(128);
  round(128, 100);
  EXPECT_EQ(window(), 50);
  EXPECT_EQ(model.limit_window(10), 10) << "a drain raises no window";
  ack_after(127, 128);
  EXPECT_EQ(window(), 50);
  ack_after(1, 128);
  EXPECT_EQ(window(), kLargeWindow);
  EXPECT_FALSE(model.measures_rate(now_ms + 127)) << "ACKs of the drain still arrive";
  EXPECT_TRUE(model.measures_rate(now_ms + 128));
  model.start(64);
  round(128);
  round(128, 3);
  EXPECT_EQ(window(), 2) << "the smallest window, and not half of 3";
}

TEST_F(PathModelTest, RttThatCreepsIsDrainedOnceItHasRisenEnoughSinceTheLastDrain) {
  round(100);
  double tested_ms = 100;
  double rtt_ms = 100;
  int drains = 0;
  for (int epoch = 0; epoch < 40; ++epoch) {
    // The first round trip of an epoch is its least: the last of the one before.
    const double least_ms = rtt_ms;
    rtt_ms += 1;
    rounds(3, rtt_ms);
    ASSERT_EQ(window(), kLargeWindow) << "epoch " << epoch;
    round(rtt_ms);
    if (least_ms > tested_ms * (1 + 1.0 / 32)) {
      EXPECT_EQ(window(), 50) << "epoch " << epoch;
      tested_ms = least_ms;
      ++drains;
    } else {
      EXPECT_EQ(window(), kLargeWindow) << "epoch " << epoch;
    }
  }
  // At least RTTs of 104, 108, 112, 116, 120, 124, 128, 133 and 138 ms.
  EXPECT_EQ(drains, 9);
}

struct Jumps : PathModelTest {
  Jumps() { settings.base_rtt_rounds = 10'000; }
  // A path of 100 ms.
  void begin() {
    round(100);
    rounds(5, 100);
  }
};

TEST_F(Jumps, JumpThatStaysIsAdoptedAfterADrain) {
  begin();
  round(130);
  rounds(2, 131);
  EXPECT_EQ(window(), kLargeWindow);
  round(129);
  EXPECT_EQ(window(), 50);
  round(130);
  EXPECT_EQ(model.base_rtt_ms(), 100);
  round(130.5);
  EXPECT_EQ(model.base_rtt_ms(), 130.5);
  EXPECT_EQ(window(), kLargeWindow);
  rounds(20, 130.5);
  EXPECT_EQ(window(), kLargeWindow) << "it was tested";
  round(130);
  EXPECT_EQ(model.base_rtt_ms(), 130);
}

TEST_F(Jumps, QueueThatDipsDuringTheDrainIsNoJump) {
  begin();
  int drains = 0;
  for (int i = 0; i < 100; ++i) {
    const bool is_drained = window() < kLargeWindow;
    drains += is_drained ? 1 : 0;
    round(is_drained ? 115 : 130);
    EXPECT_EQ(model.base_rtt_ms(), 100) << i;
  }
  EXPECT_GT(drains, 10);
}

TEST_F(Jumps, RiseThatFallsBackIsNoJump) {
  begin();
  rounds(3, 130);
  rounds(20, 103);
  EXPECT_EQ(window(), kLargeWindow);
  EXPECT_EQ(model.base_rtt_ms(), 100);
}

TEST_F(Jumps, JumpIsARiseByMoreThanFivePercentInARoundTrip) {
  begin();
  rounds(20, 105);
  EXPECT_EQ(model.base_rtt_ms(), 100);
  rounds(20, 109);
  EXPECT_EQ(model.base_rtt_ms(), 100) << "it rose in two steps";
  rounds(20, 100);
  rounds(20, 105.5);
  EXPECT_EQ(model.base_rtt_ms(), 105.5);
}

TEST_F(Jumps, QueueThatRisesInManyStepsIsNoJump) {
  for (const int steps : {6, 7}) {
    SCOPED_TRACE(steps);
    model.start(kInfinite);
    begin();
    double rtt_ms = 110;
    round(rtt_ms);
    for (int i = 0; i < steps; ++i) {
      rtt_ms *= 1.04;
      round(rtt_ms);
    }
    rounds(5, rtt_ms);
    EXPECT_EQ(model.base_rtt_ms(), steps == 6 ? rtt_ms : 100);
    rounds(50, rtt_ms);
    EXPECT_EQ(model.base_rtt_ms(), steps == 6 ? rtt_ms : 100);
    EXPECT_EQ(window(), kLargeWindow);
  }
}

TEST_F(PathModelTest, LossOfOnePercentNeverCapsAndOfTenPercentDoes) {
  rounds(2, 100);
  for (int i = 0; i < 1000; ++i) {
    lose(1);
    round(100, 99);
    ASSERT_EQ(window(), kLargeWindow);
  }
  // Each lost packet adds 0.98, and the nine delivered ones pay 0.18: the eighth reaches 6.58.
  for (int lost = 1; lost <= 8; ++lost) {
    EXPECT_EQ(window(), kLargeWindow) << lost;
    lose(1);
    round(100, 9);
  }
  EXPECT_LT(window(), kLargeWindow);
}

TEST_F(PathModelTest, CapIsPartOfTheLastDeliveryAndGrowsFasterAndFasterUntilItEnds) {
  for (const std::uint32_t delivered : {10U, 100U}) {
    SCOPED_TRACE(delivered);
    model.start(kInfinite);
    rounds(3, 128, delivered);
    lose(7);
    double expected = 0.875 * delivered;
    EXPECT_EQ(window(), std::floor(expected));
    EXPECT_EQ(model.limit_intersend(0), 128 / (1.1 * expected)) << "it is sent evenly";
    ack_after(127, 128, delivered);
    EXPECT_EQ(window(), std::floor(expected))
        << "it does not grow during the losses' own round trip";
    const double end = std::max(64.0, 4.0 * delivered);
    int k = 1;
    for (; k < 1000 && window() < kLargeWindow; ++k) {
      round(128, delivered);
      expected += k / 8.0;
      EXPECT_EQ(window(), expected > end ? kLargeWindow : std::floor(expected))
          << "round trip " << k;
    }
    EXPECT_GT(expected, end);
    EXPECT_LT(model.limit_intersend(0), 1e-3);
  }
}

TEST_F(PathModelTest, CapIsOfTheRunningRoundTripIfItHasDeliveredMore) {
  rounds(2, 128, 10);
  ack_after(1, 128, 40);
  lose(7);
  EXPECT_EQ(window(), 0.875 * 40);
}

TEST_F(PathModelTest, CapIsNotBelowTheSmallestWindow) {
  settings.loss_window = 0.01;
  rounds(2, 100, 100);
  lose(50);
  EXPECT_EQ(window(), 2);
}

TEST_F(PathModelTest, LossesWithinASmoothedRttAfterACapDoNotLowerItAgain) {
  rounds(3, 128, 100);
  lose(50);
  EXPECT_EQ(window(), 87);
  model.on_loss(now_ms + 127, 50);
  EXPECT_EQ(window(), 87);
  model.on_loss(now_ms + 128, 6);
  EXPECT_EQ(window(), 87) << "the losses before cause no debt: this is 5.88 packets";
  model.on_loss(now_ms + 128, 1);
  EXPECT_EQ(window(), std::floor(0.875 * 87.5))
      << "of the cap, which is less than the last delivery";
}

TEST_F(PathModelTest, LossesOfTheFirstRoundTripCauseNoDebt) {
  round(100);
  ack_after(10, 100);
  lose(50);
  EXPECT_EQ(window(), kLargeWindow);
  rounds(1, 100, 100);
  EXPECT_EQ(window(), kLargeWindow);
  lose(50);
  EXPECT_EQ(window(), std::floor(0.875 * 101));
}

TEST_F(PathModelTest, SpuriousRecoveryGivesTheCapBack) {
  rounds(3, 100, 100);
  lose(7);
  EXPECT_EQ(window(), 87);
  model.on_spurious_recovery();
  EXPECT_EQ(window(), kLargeWindow);
  round(100);
  lose(7);
  round(100);
  const std::uint32_t before = window();
  EXPECT_EQ(before, 87);
  lose(7);
  EXPECT_LT(window(), before);
  model.on_spurious_recovery();
  EXPECT_EQ(window(), before) << "and not more: the losses before were real";
  model.on_spurious_recovery();
  EXPECT_EQ(window(), before);
}

TEST_F(PathModelTest, SpuriousRecoveryGivesACapBackOnlyWithinThreeRoundTrips) {
  for (const int rounds_later : {3, 4}) {
    SCOPED_TRACE(rounds_later);
    model.start(kInfinite);
    rounds(3, 100, 100);
    lose(7);
    rounds(rounds_later, 100);
    model.on_spurious_recovery();
    EXPECT_EQ(window() == kLargeWindow, rounds_later == 3);
  }
}

TEST_F(PathModelTest, SpuriousRecoveryEndsTheDebt) {
  rounds(3, 100, 100);
  lose(6);
  model.on_spurious_recovery();
  lose(6);
  EXPECT_EQ(window(), kLargeWindow);
}

TEST_F(PathModelTest, SpuriousRecoveryDoesNotBringBackACapThatHasEnded) {
  rounds(3, 100, 10);
  lose(7);
  round(100, 10);
  lose(7);
  rounds(100, 100, 10);
  ASSERT_EQ(window(), kLargeWindow);
  lose(1);
  model.on_spurious_recovery();
  EXPECT_EQ(window(), kLargeWindow);
}

TEST_F(PathModelTest, TimeoutsCountAsLosses) {
  rounds(3, 100, 100);
  model.on_timeout(now_ms, 6);
  EXPECT_EQ(window(), kLargeWindow);
  model.on_timeout(now_ms, 1);
  EXPECT_EQ(window(), 87);
}

TEST_F(PathModelTest, SenderAlwaysSendsAFewPacketsPerRtt) {
  round(100);
  EXPECT_EQ(model.limit_window(0), 2);
  EXPECT_EQ(model.limit_window(3), 3);
  EXPECT_EQ(model.limit_intersend(1e9), 100);
  EXPECT_EQ(model.limit_intersend(99), 99);
  round(180);
  EXPECT_EQ(model.limit_intersend(1e9), 110) << "the smoothed RTT";
}

// Rules see the ratio 1 + queue / base RTT * sqrt(base RTT / reference RTT)
// = 1 + queue / sqrt(base RTT * reference RTT).
TEST_F(PathModelTest, RulesSeeAQueueAsOnAPathOfTheReferenceRttByItsSquareRoot) {
  const auto queue_in_base_rtts = [&](double base_ms, double queue_ms) {
    model.start(kInfinite);
    ack_after(1, base_ms);
    ack_after(1, base_ms + queue_ms);
    return (rtt_of_rules_ms - model.base_rtt_ms()) / model.base_rtt_ms();
  };
  const double without_short = queue_in_base_rtts(20, 10);
  const double without_long = queue_in_base_rtts(200, 10);
  EXPECT_DOUBLE_EQ(without_short, 10.0 / 20);
  EXPECT_DOUBLE_EQ(without_short / without_long, 10);
  settings.reference_rtt_ms = 50;
  const double with_short = queue_in_base_rtts(20, 10);
  const double with_long = queue_in_base_rtts(200, 10);
  EXPECT_DOUBLE_EQ(with_short, 10 / std::sqrt(20.0 * 50));
  EXPECT_DOUBLE_EQ(with_long, 10 / std::sqrt(200.0 * 50));
  EXPECT_DOUBLE_EQ((without_short / without_long) / (with_short / with_long), std::sqrt(10.0));
  EXPECT_DOUBLE_EQ(queue_in_base_rtts(50, 10), 10.0 / 50) << "nothing changes at the reference";
}

TEST_F(PathModelTest, AdditivePacketsAreSentBesideTheRulesPace) {
  settings.additive_packets = 1.5;
  round(100);
  for (const double ms : {0.01, 1.0, 20.0, 60.0}) {
    EXPECT_NEAR(1 / model.limit_intersend(ms), 1 / ms + 1.5 / 100, 1e-12 / ms) << ms;
  }
  EXPECT_LT(model.limit_intersend(0), 1e-3);
}

// Packets are sent every 5 ms on a path of 40 ms or a little more, and ACKs wait for the next
// multiple of 50 ms.
TEST_F(PathModelTest, WhileAcksAreHeldTheLeastRttOfTheLastGapsCounts) {
  settings.base_rtt_rounds = 10'000;
  RandomCase random(1);
  struct Ack {
    double at_ms;
    double rtt_ms;
  };
  std::vector<Ack> acks;
  int checked = 0;
  double highest_own_ms = 0;
  for (int bunch = 1; bunch <= 200; ++bunch) {
    const double path_ms = 40 + random.uniform(0, 4);
    for (int packet = 9; packet >= 0; --packet) {
      now_ms = 50 * bunch;
      const double rtt_ms = path_ms + 5 * packet;
      acks.push_back({now_ms, rtt_ms});
      rtt_of_rules_ms = model.on_ack(now_ms, rtt_ms, 1);
      // Three round trips of two bunches show that ACKs are held, and a gap later all that counts
      // was seen since.
      if (bunch > 8) {
        double least_ms = rtt_ms;
        for (const Ack& ack : acks) {
          least_ms = ack.at_ms >= now_ms - 1.2 * 50 ? std::min(least_ms, ack.rtt_ms) : least_ms;
        }
        ASSERT_EQ(rtt_of_rules_ms, least_ms) << "bunch " << bunch << ", packet " << packet;
        highest_own_ms = std::max(highest_own_ms, rtt_ms);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 1000);
  EXPECT_GT(highest_own_ms, 85);
  EXPECT_LT(model.base_rtt_ms(), 41);
}

TEST_F(PathModelTest, AcksThatAreNotHeldCountEachByItsOwnRtt) {
  RandomCase random(2);
  ack_after(5, 40);
  for (int i = 0; i < 1000; ++i) {
    const double rtt_ms = 40 + random.uniform(0, 40);
    ack_after(5, rtt_ms);
    ASSERT_EQ(rtt_of_rules_ms, rtt_ms);
  }
}

TEST_F(PathModelTest, SenderThatSeesNoQueueForThreeRoundTripsStartsFaster) {
  round(100);
  rounds(2, 102);
  EXPECT_EQ(model.limit_intersend(6), 6);
  round(102);
  EXPECT_EQ(model.limit_intersend(6), 6 / 1.2);
  rounds(20, 102);
  EXPECT_EQ(model.limit_intersend(6), 6 / 1.2);
}

TEST_F(PathModelTest, FastStartEndsForGoodAtAQueueOrACap) {
  const auto is_fast = [this] { return model.limit_intersend(6) < 6; };
  const auto begin = [&] {
    model.start(kInfinite);
    round(100);
    rounds(5, 100);
    ASSERT_TRUE(is_fast());
  };
  begin();
  round(103.5);
  EXPECT_FALSE(is_fast()) << "a round trip without any ACK of the base RTT";
  rounds(50, 100);
  EXPECT_FALSE(is_fast());
  begin();
  for (int i = 0; i < 8; ++i) {
    ack_after(1, 130);
  }
  EXPECT_TRUE(is_fast()) << "until the round trip ends";
  round(100);
  EXPECT_FALSE(is_fast()) << "the queue on average, although one ACK saw none";
  rounds(50, 100);
  EXPECT_FALSE(is_fast());
  begin();
  lose(7);
  round(100);
  rounds(200, 100);
  ASSERT_EQ(window(), kLargeWindow) << "the cap has ended";
  EXPECT_FALSE(is_fast());
}

TEST_F(PathModelTest, StartForgetsAllButTheRememberedBaseRtt) {
  for (const double remembered_ms : {kInfinite, 90.0}) {
    PathModel fresh(&settings);
    fresh.start(remembered_ms);
    // Held ACKs, a jump that is tested, losses at the limit, a cap, and a base RTT far below.
    now_ms = 0;
    model.start(kInfinite);
    round(10);
    rounds(6, 10);
    rounds(4, 30);
    ASSERT_LT(window(), kLargeWindow) << "a drain";
    lose(7);
    now_ms += 100;
    lose(6);
    ASSERT_LT(window(), 100);
    model.start(remembered_ms);
    EXPECT_EQ(model.base_rtt_ms(), remembered_ms);
    RandomCase random(3);
    for (int i = 0; i < 500; ++i) {
      const double rtt_ms = random.uniform(100, 150);
      ack_after(random.uniform(0, 20), rtt_ms);
      ASSERT_EQ(fresh.on_ack(now_ms, rtt_ms, 1), rtt_of_rules_ms);
      if (i % 50 == 0) {
        lose(2);
        fresh.on_loss(now_ms, 2);
      }
      if (i == 20) {
        model.on_spurious_recovery();
        fresh.on_spurious_recovery();
      }
      ASSERT_EQ(model.base_rtt_ms(), fresh.base_rtt_ms());
      ASSERT_EQ(window(), fresh.limit_window(kLargeWindow));
      ASSERT_EQ(model.limit_window(0), fresh.limit_window(0));
      for (const double ms : {0.0, 6.0, 1e9}) {
        ASSERT_EQ(model.limit_intersend(ms), fresh.limit_intersend(ms));
      }
    }
  }
}

class WithoutAPathModel : public testing::TestWithParam<Rules> {};

// Compares a controller that could have a path model with one that cannot.
template <class Controller>
void compare_with_basic(Rules rules) {
  std::uint64_t rules_used = 0;
  for (std::uint64_t seed = 0; seed < random_cases(200, 40); ++seed) {
    SCOPED_TRACE(seed);
    RandomCase random(seed + 77'000);
    const CompiledTable table(random.table(rules));
    BasicController expected(table);
    Controller found(table);
    ASSERT_EQ(found.start(), expected.start());
    double now_ms = 0;
    double sent_ms = 0;
    for (int event = 0; event < 400; ++event) {
      now_ms += random.chance(0.1) ? 0 : random.uniform(0, 10);
      sent_ms = std::max(sent_ms, now_ms - random.uniform(20, 60));
      if (random.chance(0.02)) {
        ASSERT_EQ(found.start(), expected.start());
      } else if (random.chance(0.05)) {
        ASSERT_EQ(found.acknowledge_earlier_period(), expected.acknowledge_earlier_period());
      } else if (random.chance(0.1)) {
        found.on_loss(now_ms, random.integer(1, 20));
        found.on_timeout(now_ms, random.integer(1, 20));
        found.on_spurious_recovery();
      } else {
        const std::uint32_t packets = random.integer(1, 3);
        const double rtt_ms = now_ms - sent_ms + 1;
        const std::uint32_t rule = expected.acknowledge(sent_ms, now_ms, rtt_ms, packets);
        const auto no_feedback = [] {
          ADD_FAILURE() << "the table has no extended signals";
          return Feedback();
        };
        ASSERT_EQ(found.acknowledge(sent_ms, now_ms, rtt_ms, packets, no_feedback), rule);
        rules_used |= 1U << std::min(rule, 31U);
      }
      ASSERT_EQ(found.window_packets(), expected.window_packets());
      ASSERT_EQ(found.intersend_ms(), expected.intersend_ms());
      for (std::size_t axis = 0; axis < kBasicSignals; ++axis) {
        ASSERT_EQ(found.memory()[axis], expected.memory()[axis]);
      }
    }
  }
  EXPECT_GT(rules_used, 3U) << "tables with several rules";
}

TEST_P(WithoutAPathModel, AControllerThatCouldHaveOneIsEqualToOneThatCannot) {
  compare_with_basic<PathController>(GetParam());
}

TEST_P(WithoutAPathModel, AControllerOfAnyTableIsEqualToOneOfBasicTables) {
  compare_with_basic<AnyController>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rules, WithoutAPathModel,
                         testing::Values(Rules::kAbsolute, Rules::kScaleFree,
                                         Rules::kScaleFreeRemembering));

// Random ACKs of a path that jumps, creeps and has queues of its own kinds, and losses. Returns
// what the slow model reached.
SlowPathModel::Reached compare_with_slow(std::uint64_t seed) {
  RandomCase random(seed + 31'000);
  PathSettings settings = random.path_settings();
  settings.competition_rtt_ratio = 0;  // which has its own tests
  PathModel fast(&settings);
  SlowPathModel slow(settings);
  // A queue that other senders keep, and one that is there only while the sender fills its window.
  double path_ms = random.uniform(5, 150);
  double others_ms = 0;
  double own_ms = 0;
  double jitter = random.chance(0.6) ? 0.005 : random.uniform(0, 0.2);
  double loss = 0;
  double hold_ms = 0;
  double every_ms = path_ms / random.uniform(3, 12);
  double now_ms = 0;
  fast.start(kInfinite);
  slow.start(kInfinite);
  for (int event = 0; event < 1200; ++event) {
    if (random.chance(0.006)) {
      path_ms *= random.chance(0.6) ? random.uniform(1.06, 1.7) : random.uniform(0.5, 0.95);
      path_ms = std::clamp(path_ms, 1.0, 2000.0);
    }
    path_ms *= random.chance(0.1) ? 1.002 : 1;
    if (random.chance(0.01)) {
      others_ms = random.chance(0.5) ? 0 : random.uniform(0, path_ms);
    }
    if (others_ms > 0 && random.chance(0.05)) {
      others_ms += 0.05 * path_ms;
    }
    if (random.chance(0.01)) {
      own_ms = random.chance(0.5) ? 0 : random.uniform(0, path_ms);
    }
    if (random.chance(0.01)) {
      loss = random.chance(0.5) ? 0 : random.uniform(0, 0.2);
    }
    if (random.chance(0.005)) {
      hold_ms = random.chance(0.6) ? 0 : random.uniform(0.2, 2) * path_ms;
    }
    if (random.chance(0.01)) {
      jitter = random.chance(0.7) ? 0.005 : random.uniform(0, 0.2);
      every_ms = path_ms / random.uniform(3, 12);
    }
    now_ms += random.chance(0.003) ? random.uniform(1, 20) * path_ms
              : random.chance(0.1) ? 0
                                   : random.uniform(0, 2 * every_ms);
    if (random.chance(0.002)) {
      const double remembered_ms =
          random.chance(0.5) ? kInfinite : random.uniform(0.5, 2) * path_ms;
      fast.start(remembered_ms);
      slow.start(remembered_ms);
    } else if (random.chance(loss)) {
      const std::uint32_t packets = random.chance(0.2) ? random.integer(1, 20) : 1;
      if (random.chance(0.1)) {
        fast.on_timeout(now_ms, packets);
      } else {
        fast.on_loss(now_ms, packets);
      }
      slow.on_loss(now_ms, packets);
    } else if (random.chance(loss * 0.1)) {
      fast.on_spurious_recovery();
      slow.on_spurious_recovery();
    } else {
      double rtt_ms = path_ms * (1 + random.uniform(0, jitter)) + others_ms +
                      (slow.is_draining() ? own_ms / 3 : own_ms);
      if (hold_ms > 0) {
        const double released_ms = std::ceil(now_ms / hold_ms) * hold_ms;
        rtt_ms += released_ms - now_ms;
        now_ms = released_ms;
        // The packets of the next bunch.
        now_ms += random.chance(0.2) ? 0.1 : 0;
      }
      const std::uint32_t packets = random.chance(0.2) ? random.integer(2, 30) : 1;
      EXPECT_EQ(fast.on_ack(now_ms, rtt_ms, packets), slow.on_ack(now_ms, rtt_ms, packets));
    }
    EXPECT_EQ(fast.base_rtt_ms(), slow.base_rtt_ms());
    EXPECT_EQ(fast.measures_rate(now_ms), slow.measures_rate(now_ms));
    for (const std::uint32_t packets : {0U, 7U, kLargeWindow}) {
      EXPECT_EQ(fast.limit_window(packets), slow.limit_window(packets));
    }
    for (const double ms : {0.0, 0.7, 1e9}) {
      EXPECT_EQ(fast.limit_intersend(ms), slow.limit_intersend(ms));
    }
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ", event " << event << ", " << now_ms << " ms";
      return {};
    }
  }
  return slow.reached();
}

TEST(PathModel, IsEqualToASlowOne) {
  SlowPathModel::Reached total;
  const std::uint64_t cases = random_cases(200, 40);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    for (const auto& [state, times] : compare_with_slow(seed)) {
      total[state] += times;
    }
    ASSERT_FALSE(HasFailure());
  }
  for (const char* const state :
       {"expired bases", "epoch drains", "jump drains", "adopted jumps", "refuted jumps",
        "abandoned jumps", "caps", "lowered caps", "ended caps", "ignored losses", "returned caps",
        "held acks", "held acks below their rtt", "fast rounds"}) {
    EXPECT_GE(total[state], cases / 4) << state;
    RecordProperty(std::string(state), std::to_string(total[state]));
  }
}

}  // namespace
}  // namespace remy
