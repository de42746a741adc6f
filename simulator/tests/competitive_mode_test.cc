#include "senders/competitive_mode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "random_cases.h"
#include "senders/path_model.h"

namespace remy {
namespace {

using State = CompetitiveMode::State;

// A path of 100 ms and 2 packets per ms, on which others have a window that the sender does not
// change. Round trips are computed one after the other: the queue is what does not fit into the
// path.
struct CompetitiveModeTest : testing::Test {
  static constexpr double kPathMs = 100;
  static constexpr double kCapacityPerMs = 2;

  double rtt_ms() const {
    const double packets =
        others_packets + (mode.is_competing() ? mode.window_packets() : alone_packets);
    return std::max(path_ms, packets / kCapacityPerMs);
  }
  // A round trip, in which half of the window is acknowledged at the beginning.
  void round() {
    const double length_ms = smoothed_ms = rtt_ms();
    const double window = mode.is_competing() ? mode.window_packets() : alone_packets;
    for (int half = 0; half < 2; ++half) {
      now_ms += length_ms / 2;
      if (mode.is_competing()) {
        mode.on_ack(now_ms, rtt_ms(), window / 2, smoothed_ms);
      }
    }
    mode.on_round({.now_ms = now_ms,
                   .length_ms = length_ms,
                   .rtt_ms = length_ms,
                   .smoothed_rtt_ms = smoothed_ms,
                   .delivered_packets = window});
  }
  void rounds(int count) {
    for (; count > 0; --count) {
      round();
    }
  }
  // Returns the number of round trips until the state is reached, or -1.
  int rounds_until(State state, int most = 1000) {
    for (int count = 0; count < most; ++count) {
      if (mode.state() == state) {
        return count;
      }
      round();
    }
    return -1;
  }
  // The path is empty first; then a queue stands.
  void meet_others(double packets) {
    mode.on_path_change(kPathMs);
    alone_packets = 150;
    rounds(8);
    others_packets = packets;
    alone_packets = 20;
  }
  void lose() { mode.on_loss(now_ms, smoothed_ms); }
  // Beside others with 400 packets, until it has lost.
  void compete() {
    meet_others(400);
    ASSERT_GT(rounds_until(State::kRamp), 0);
    rounds(2);
    lose();
    ASSERT_EQ(mode.state(), State::kCompete);
  }

  CompetitiveMode mode{1.1};
  double now_ms = 0;
  double smoothed_ms = kPathMs;
  double path_ms = kPathMs;
  double others_packets = 0;
  double alone_packets = 20;
};

TEST_F(CompetitiveModeTest, CompetesOnceAQueueHasStoodForTenToFourteenRoundTrips) {
  meet_others(400);
  const int count = rounds_until(State::kRamp);
  EXPECT_GE(count, 10);
  EXPECT_LE(count, 14 + 8) << "the rise counts as a spike at first";
}

TEST_F(CompetitiveModeTest, IsAloneBesideAQueueBelowTheRatioOrOfTwoPackets) {
  meet_others(190);  // 210 packets on a path that holds 200
  EXPECT_EQ(rounds_until(State::kRamp, 300), -1);

  mode = CompetitiveMode(1.1);
  mode.on_path_change(kPathMs);
  // A rate of at most a packet in 100 ms.
  for (int i = 0; i < 300; ++i) {
    now_ms += 120;
    mode.on_round({now_ms, 120, 120, 120, 1});
  }
  EXPECT_EQ(mode.state(), State::kAlone);
}

TEST_F(CompetitiveModeTest, NumberOfRoundTripsDiffersBetweenSenders) {
  std::map<int, int> counts;
  for (int sender = 0; sender < 40; ++sender) {
    mode = CompetitiveMode(1.1);
    mode.on_path_change(kPathMs);
    now_ms = 17.3 * sender;
    int count = 0;
    for (; mode.state() == State::kAlone; ++count) {
      ASSERT_LT(count, 20);
      now_ms += 150;
      mode.on_round({now_ms, 150, 150, 150, 20});
    }
    ++counts[count];
  }
  EXPECT_GE(counts.size(), 4U);
  EXPECT_GE(counts.begin()->first, 10);
  EXPECT_LE(counts.rbegin()->first, 14);
}

TEST_F(CompetitiveModeTest, FewerRoundTripsSufficeOnALongPath) {
  for (const auto& [base_ms, least, most] : {std::tuple{400.0, 7, 8}, {2000.0, 5, 5}}) {
    mode = CompetitiveMode(1.1);
    mode.on_path_change(base_ms);
    int count = 0;
    for (; mode.state() == State::kAlone; ++count) {
      ASSERT_LT(count, 20);
      now_ms += 1.5 * base_ms;
      mode.on_round({now_ms, 1.5 * base_ms, 1.5 * base_ms, 1.5 * base_ms, 20});
    }
    EXPECT_GE(count, least);
    EXPECT_LE(count, most);
  }
}

TEST_F(CompetitiveModeTest, SpikeIsATestBySendersOfItsKindAndRaisesTheThreshold) {
  mode.on_path_change(kPathMs);
  alone_packets = 236;  // a queue of 18 ms
  const auto spike = [this] {
    for (const double ratio : {1.18, 1.5, 2.2, 2.6, 1.9, 1.18}) {
      now_ms += 100;
      mode.on_round({now_ms, 100, ratio * kPathMs, 100, 100});
    }
  };
  rounds(7);
  spike();
  EXPECT_EQ(rounds_until(State::kRamp, 100), -1) << "1.15 times the queue is above the threshold";
  alone_packets = 300;
  EXPECT_GT(rounds_until(State::kRamp, 100), 0) << "a higher queue is not";
}

TEST_F(CompetitiveModeTest, LateLossesCallForCompetition) {
  mode.on_path_change(kPathMs);
  alone_packets = 190;
  rounds(20);
  // The queue stands in every second round trip only, and the sender is slow.
  for (int i = 0; i < 6 && !mode.is_competing(); ++i) {
    for (const double ratio : {1.3, 1.0}) {
      now_ms += 100 * ratio;
      mode.on_round({now_ms, 100 * ratio, 100 * ratio, 100 * ratio, 20});
      lose();
    }
  }
  EXPECT_TRUE(mode.is_competing());
}

TEST_F(CompetitiveModeTest, RampGrowsByAPacketPerPacketAckedAndEndsAtALoss) {
  meet_others(2000);
  ASSERT_GT(rounds_until(State::kRamp), 0);
  EXPECT_EQ(mode.window_packets(), alone_packets);
  round();
  EXPECT_EQ(mode.window_packets(), 2 * alone_packets);
  lose();
  EXPECT_EQ(mode.state(), State::kCompete);
  EXPECT_DOUBLE_EQ(mode.window_packets(), 0.7 * 2 * alone_packets);
}

TEST_F(CompetitiveModeTest, RampEndsWithoutALossOnceTheWindowIsLargerThanTheOthers) {
  meet_others(300);
  ASSERT_GT(rounds_until(State::kRamp), 0);
  ASSERT_GT(rounds_until(State::kCompete, 20), 0);
  EXPECT_GT(mode.window_packets(), 0.9 * others_packets);
  EXPECT_LT(mode.window_packets(), 2.1 * others_packets);
}

TEST_F(CompetitiveModeTest, LossesOfARoundTripAreOneEventAndNothingGrowsMeanwhile) {
  compete();
  const double window = mode.window_packets();
  lose();
  EXPECT_EQ(mode.window_packets(), window);
  mode.on_ack(now_ms + smoothed_ms / 2, rtt_ms(), 10, smoothed_ms);
  EXPECT_EQ(mode.window_packets(), window);
  now_ms += smoothed_ms;
  mode.on_ack(now_ms, rtt_ms(), 10, smoothed_ms);
  EXPECT_GT(mode.window_packets(), window);
  lose();
  EXPECT_LT(mode.window_packets(), window);
}

TEST_F(CompetitiveModeTest, TimeoutHalvesWhatALossLeaves) {
  compete();
  const double window = mode.window_packets();
  mode.on_timeout(now_ms, smoothed_ms);
  EXPECT_DOUBLE_EQ(mode.window_packets(), 0.7 * window / 2);
}

TEST_F(CompetitiveModeTest, SpuriousRecoveryGivesTheWindowBackOnce) {
  compete();
  const double window = mode.window_packets();
  now_ms += smoothed_ms;
  lose();
  ASSERT_LT(mode.window_packets(), window);
  mode.on_spurious_recovery();
  EXPECT_EQ(mode.window_packets(), window);
  mode.on_timeout(now_ms, smoothed_ms);
  mode.on_spurious_recovery();
  mode.on_spurious_recovery();
  EXPECT_EQ(mode.window_packets(), window);
}

TEST_F(CompetitiveModeTest, ProbeHasTheWindowOfAnEmptyQueueForOneAndAHalfRoundTrips) {
  compete();
  ASSERT_GT(rounds_until(State::kProbe, 20), 0);
  const double begin_ms = now_ms;
  const double rtt_before_ms = smoothed_ms;
  const double window = mode.window_packets();
  EXPECT_LT(window, others_packets);
  mode.on_ack(begin_ms + 1.49 * rtt_before_ms, rtt_ms(), 1, smoothed_ms);
  EXPECT_EQ(mode.state(), State::kProbe);
  mode.on_ack(begin_ms + 1.5 * rtt_before_ms, rtt_ms(), 1, smoothed_ms);
  EXPECT_NE(mode.state(), State::kProbe);
  EXPECT_GT(mode.window_packets() * kPathMs / rtt_before_ms, 0.84 * window);
}

TEST_F(CompetitiveModeTest, WindowsApproachThoseOfTheOthers) {
  for (const double others : {250.0, 400.0, 1200.0}) {
    mode = CompetitiveMode(1.1);
    others_packets = 0;
    meet_others(others);
    ASSERT_GT(rounds_until(State::kRamp), 0);
    // A buffer of three times the others' window: both lose when it is full.
    double sum = 0;
    int samples = 0;
    for (int i = 0; i < 400; ++i) {
      round();
      if (mode.is_competing() && mode.window_packets() + others > 2.4 * others) {
        lose();
      }
      if (i >= 200 && mode.state() == State::kCompete) {
        sum += mode.window_packets();
        ++samples;
      }
    }
    ASSERT_GT(samples, 100) << others;
    EXPECT_GT(sum / samples, 0.6 * others);
    EXPECT_LT(sum / samples, 1.5 * others);
  }
}

TEST_F(CompetitiveModeTest, RampsAgainIfAProbeFindsItFarBehind) {
  compete();
  ASSERT_LT(4 * mode.window_packets(), others_packets);
  ASSERT_GT(rounds_until(State::kProbe, 20), 0);
  EXPECT_GT(rounds_until(State::kRamp, 4), 0);
}

TEST_F(CompetitiveModeTest, IsAloneOnceTheOthersHaveLeftAndCompetesSoonerAfterwards) {
  compete();
  rounds(4);
  ASSERT_TRUE(mode.is_competing());
  others_packets = 0;
  ASSERT_GE(rounds_until(State::kAlone, 60), 0) << "the rate rises, and calls for a probe";
  EXPECT_EQ(mode.base_rtt_ms(), kPathMs);
  alone_packets = 150;
  rounds(8);
  others_packets = 400;
  alone_packets = 20;
  int count = rounds_until(State::kRamp, 100);
  EXPECT_GE(count, 5);
  EXPECT_LE(count, 5 + 9) << "the rise counts as a spike at first";
}

TEST_F(CompetitiveModeTest, OthersThatGiveWayWithoutLossesAreOfItsOwnKind) {
  meet_others(300);
  ASSERT_GT(rounds_until(State::kRamp), 0);
  ASSERT_GT(rounds_until(State::kCompete, 20), 0);
  others_packets = 60;
  ASSERT_GT(rounds_until(State::kAlone, 20), 0);
  // The false alarm has raised the threshold above the queue of equal senders.
  others_packets = 220;
  EXPECT_EQ(rounds_until(State::kRamp, 300), -1);
}

TEST_F(CompetitiveModeTest, NobodyCompetesAboveTheCeiling) {
  meet_others(240);
  ASSERT_GT(rounds_until(State::kRamp), 0);
  path_ms = 600;  // an RTT as of a queue that nobody limits
  round();
  EXPECT_EQ(mode.state(), State::kAlone);
  path_ms = kPathMs;
  others_packets = 600;
  const double end_ms = now_ms;
  ASSERT_GT(rounds_until(State::kRamp, 200), 0);
  EXPECT_GE(now_ms - end_ms, 20 * kPathMs) << "a rest of twenty round trips";
}

TEST_F(CompetitiveModeTest, RttThatDoesNotMoveInAProbeIsThePathsOwn) {
  compete();
  others_packets = 0;
  path_ms = 400;  // longer than all queues
  ASSERT_GT(rounds_until(State::kAlone, 60), 0);
  EXPECT_EQ(mode.base_rtt_ms(), 400);
}

// Beside the path model, it sets window and pace in place of the rules, and drains nothing.
TEST(CompetitionOfAPath, SetsTheWindowInPlaceOfTheRulesUntilItEnds) {
  PathSettings settings;
  settings.competition_rtt_ratio = 1.1;
  settings.base_rtt_rounds = 1000;
  PathModel model(&settings);
  model.start(PathModel::kInfinite);
  double now_ms = 0;
  const auto round = [&](double rtt_ms) {
    for (int i = 0; i < 20; ++i) {
      now_ms += rtt_ms / 20;
      model.on_ack(now_ms, rtt_ms, 1);
    }
  };
  for (int i = 0; i < 20; ++i) {
    round(100);
  }
  EXPECT_EQ(model.competition(), State::kAlone);
  EXPECT_EQ(model.limit_window(7), 7U);
  // The RTT rises slowly, because the path model would take a jump for a change of the path.
  for (double rtt_ms = 100; rtt_ms < 160; rtt_ms += 4) {
    round(rtt_ms);
  }
  for (int i = 0; i < 30 && model.competition() == State::kAlone; ++i) {
    round(160);
  }
  ASSERT_EQ(model.competition(), State::kRamp);
  const std::uint32_t window = model.limit_window(7);
  EXPECT_GE(window, 15U);
  EXPECT_EQ(model.limit_window(1'000'000), window) << "rules do not raise it either";
  EXPECT_NEAR(model.limit_intersend(1e9), 160 / (1.2 * window), 1.0);
  EXPECT_EQ(model.limit_intersend(0), model.limit_intersend(1e9));
  round(160);
  EXPECT_GT(model.limit_window(7), window);
  EXPECT_TRUE(model.measures_rate(now_ms)) << "no drain";
  model.on_loss(now_ms, 1);
  EXPECT_EQ(model.competition(), State::kCompete);
  EXPECT_LT(model.limit_window(7), 2 * window);
  // A new on period is alone.
  model.start(PathModel::kInfinite);
  EXPECT_EQ(model.competition(), State::kAlone);
}

// Random round trips, ACKs and losses: windows stay finite and at least two packets, and all
// transitions between states occur.
TEST(CompetitiveMode, WindowsAreFiniteAndAllTransitionsOccur) {
  std::map<std::pair<State, State>, int> transitions;
  const std::uint64_t cases = random_cases(300, 100);
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    RandomCase random(seed + 77'000);
    CompetitiveMode mode(random.uniform(1.02, 1.5));
    double path_ms = random.uniform(1, 400);
    mode.on_path_change(path_ms);
    double queue_ms = 0;
    double now_ms = 0;
    State state = mode.state();
    for (int i = 0; i < 600; ++i) {
      if (random.chance(0.03)) {
        queue_ms = random.chance(0.3) ? 0 : path_ms * random.uniform(0, 4);
      }
      const double window = mode.is_competing() ? mode.window_packets() : random.uniform(1, 40);
      const double rtt_ms =
          (path_ms + queue_ms) * (random.chance(0.5) ? 1 : random.uniform(1, 1.2)) +
          (mode.is_competing() && random.chance(0.7) ? window / random.uniform(1, 10) : 0);
      now_ms += random.chance(0.02) ? 0 : rtt_ms;
      if (mode.is_competing()) {
        mode.on_ack(now_ms, rtt_ms, random.chance(0.1) ? 1e6 : window, rtt_ms);
      }
      if (random.chance(0.1)) {
        mode.on_loss(now_ms, rtt_ms);
      }
      if (random.chance(0.01)) {
        mode.on_timeout(now_ms, rtt_ms);
      }
      if (mode.is_competing() && random.chance(0.03)) {
        mode.on_spurious_recovery();
      }
      mode.on_round({now_ms, rtt_ms, rtt_ms, rtt_ms, window});
      if (mode.is_competing()) {
        ASSERT_TRUE(std::isfinite(mode.window_packets())) << seed;
        ASSERT_GE(mode.window_packets(), 2) << seed;
      }
      ASSERT_LE(mode.base_rtt_ms(), rtt_ms) << seed;
      if (mode.state() != state) {
        ++transitions[{state, mode.state()}];
        state = mode.state();
      }
    }
  }
  for (const auto& [from, to] : {std::pair{State::kAlone, State::kRamp},
                                 {State::kRamp, State::kCompete},
                                 {State::kRamp, State::kAlone},
                                 {State::kCompete, State::kProbe},
                                 {State::kCompete, State::kAlone},
                                 {State::kProbe, State::kCompete},
                                 {State::kProbe, State::kRamp},
                                 {State::kProbe, State::kAlone}}) {
    EXPECT_GT((transitions[{from, to}]), 0)
        << static_cast<int>(from) << " to " << static_cast<int>(to);
  }
}

}  // namespace
}  // namespace remy
