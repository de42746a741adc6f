#include "evaluation/objective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/elementary.h"
#include "random_cases.h"

namespace remy {
namespace {

constexpr double kDurationMs = 10'000;

// A link of 12 Mbit/s with an unloaded RTT of 101 ms.
Specimen one_packet_per_ms() {
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 1;
  specimen.rtt_ms = 100;
  specimen.senders = {{1, 0, {ExponentialTime{1000}, 1000}}};
  return specimen;
}

// A sender that is on for 4 s, half of the time alone and half with three others; it received 1000
// packets with a delay of 150 ms each.
SenderResults ordinary_sender() {
  SenderResults sender;
  sender.packets_received = 1000;
  sender.packets_sent = 1100;
  sender.packets_lost = 60;
  sender.on_ms = 4000;
  sender.share_ms = 2500;
  sender.delay_sum_ms = 150'000;
  sender.first_on_ms = 500;
  return sender;
}

// Equation 1, computed with the C library.
double utility(double alpha, double x) {
  return alpha == 1 ? std::log(x) : std::pow(x, 1 - alpha) / (1 - alpha);
}

std::optional<double> score(const Objective& objective, const SenderResults& sender) {
  return objective_scores(objective, one_packet_per_ms(), {sender}, kDurationMs).front();
}

std::optional<double> normalized(const SenderResults& sender) {
  return normalized_scores(0, one_packet_per_ms(), {sender}, kDurationMs).front();
}

TEST(Objective, IsEquationOne) {
  for (const double alpha : {0.0, 0.5, 1.0, 2.0, 3.5}) {
    for (const double beta : {0.0, 0.5, 1.0, 2.0, 3.5}) {
      for (const double delta : {0.0, 0.1, 1.0, 10.0}) {
        const Objective objective{alpha, beta, delta, &throughput_measure("equal_share"), 0};
        const double expected = utility(alpha, 1000.0 / 2500 * 12) - delta * utility(beta, 150);
        const auto actual = score(objective, ordinary_sender());
        ASSERT_TRUE(actual.has_value());
        EXPECT_NEAR(*actual, expected, 1e-12 * (1 + std::abs(expected)))
            << "alpha " << alpha << ", beta " << beta << ", delta " << delta;
      }
    }
  }
}

TEST(Objective, ChargesTheFractionOfPacketsLost) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RandomCase random(seed);
    SenderResults sender = ordinary_sender();
    const std::uint32_t undelivered = random.integer(0, 100'000);
    sender.packets_sent = sender.packets_received + undelivered;
    sender.packets_lost = random.integer(0, undelivered);
    Objective objective{random.chance(0.3) ? 1 : random.uniform(0, 4),
                        random.chance(0.3) ? 1 : random.uniform(0, 4), random.uniform(0, 20),
                        &throughput_measure(random.chance(0.5) ? "equal_share" : "on_time"), 0};
    objective.loss_price = random.uniform(0, 1000);
    const double time_ms = objective.throughput->name == "on_time" ? 4000 : 2500;
    const double fraction =
        static_cast<double>(sender.packets_lost) / static_cast<double>(sender.packets_sent);
    const double expected = utility(objective.alpha, 1000.0 / time_ms * 12) -
                            objective.delta * utility(objective.beta, 150) -
                            objective.loss_price * fraction;
    EXPECT_NEAR(*score(objective, sender), expected, 1e-11 * (1 + std::abs(expected)))
        << "seed " << seed;
  }
}

TEST(Objective, APriceIsPerPacketSentAndNotPerSecond) {
  Objective objective;
  objective.loss_price = 3;
  SenderResults longer = ordinary_sender();
  longer.packets_sent *= 4;
  longer.packets_lost *= 4;
  EXPECT_EQ(score(objective, longer), score(objective, ordinary_sender()));
  SenderResults lossier = ordinary_sender();
  ++lossier.packets_lost;
  EXPECT_NEAR(*score(objective, ordinary_sender()) - *score(objective, lossier), 3.0 / 1100, 1e-12);
}

TEST(Objective, WithoutAPriceLostPacketsAreFree) {
  SenderResults lossless = ordinary_sender();
  lossless.packets_lost = 0;
  EXPECT_EQ(score({}, lossless), score({}, ordinary_sender()));
  Objective priced;
  priced.loss_price = 7;
  EXPECT_EQ(score(priced, lossless), score({}, lossless));
}

TEST(Objective, ASenderThatLosesEveryPacketPaysThePriceAndOneThatSendsNonePaysNothing) {
  SenderResults starved = ordinary_sender();
  starved.packets_received = 0;
  starved.delay_sum_ms = 0;
  starved.packets_lost = starved.packets_sent;
  Objective priced;
  priced.loss_price = 5;
  EXPECT_DOUBLE_EQ(*score(priced, starved), *score({}, starved) - 5);
  starved.packets_sent = starved.packets_lost = 0;
  EXPECT_EQ(score(priced, starved), score({}, starved));
}

TEST(Objective, ThroughputIsPerTimeOnOrPerShareOfIt) {
  const Objective share{0, 1, 0, &throughput_measure("equal_share"), 0};
  const Objective plain{0, 1, 0, &throughput_measure("on_time"), 0};
  EXPECT_DOUBLE_EQ(*score(share, ordinary_sender()), 1000.0 / 2500 * 12);
  EXPECT_DOUBLE_EQ(*score(plain, ordinary_sender()), 1000.0 / 4000 * 12);
}

TEST(Objective, MinimumPotentialDelayIsMinusTheInverseOfThroughput) {
  const Objective objective{2, 1, 0, &throughput_measure("equal_share"), 0};
  EXPECT_NEAR(*score(objective, ordinary_sender()), -1 / (1000.0 / 2500 * 12), 1e-15);
}

TEST(Objective, WithDeltaZeroTheDelayDoesNotMatter) {
  const Objective objective{1, 1, 0, &throughput_measure("equal_share"), 0};
  SenderResults instant = ordinary_sender();
  instant.delay_sum_ms = 0;
  EXPECT_EQ(score(objective, instant), score(objective, ordinary_sender()));
}

TEST(Objective, RewardsThroughputAndPunishesDelay) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomCase random(seed);
    const Objective objective{random.chance(0.3) ? 1 : random.uniform(0, 4),
                              random.chance(0.3) ? 1 : random.uniform(0, 4),
                              random.uniform(0.05, 20), &throughput_measure("equal_share"), 0};
    SenderResults faster = ordinary_sender();
    faster.packets_received += 100;
    faster.delay_sum_ms *= 1.1;  // the same delay per packet
    SenderResults later = ordinary_sender();
    later.delay_sum_ms *= 1.2;
    const auto ordinary = score(objective, ordinary_sender());
    EXPECT_GT(score(objective, faster), ordinary) << "seed " << seed;
    EXPECT_LT(score(objective, later), ordinary) << "seed " << seed;
  }
}

TEST(Objective, NormalizedScoreIsRelativeToLinkRateAndRtt) {
  EXPECT_NEAR(*normalized(ordinary_sender()), std::log2(1000.0 / 2500) - std::log2(1.5), 1e-13);
}

TEST(Objective, ASenderThatWasNeverOnIsNotScored) {
  SenderResults never;
  never.first_on_ms = kDurationMs;
  EXPECT_EQ(score({}, never), std::nullopt);
  EXPECT_EQ(normalized(never), std::nullopt);
}

TEST(Objective, ASenderIsScoredIfAPacketCouldHaveArrived) {
  SenderResults late;
  late.first_on_ms = kDurationMs - 101;
  late.on_ms = late.share_ms = 101;
  EXPECT_TRUE(score({}, late).has_value());
  EXPECT_TRUE(normalized(late).has_value());
  late.first_on_ms = std::nextafter(late.first_on_ms, kDurationMs);
  EXPECT_EQ(score({}, late), std::nullopt);
  EXPECT_EQ(normalized(late), std::nullopt);
}

TEST(Objective, ASenderThatReceivedNothingIsScoredAsIfItsFirstPacketCameAtTheEnd) {
  SenderResults starved = ordinary_sender();
  starved.packets_received = 0;
  starved.delay_sum_ms = 0;
  SenderResults one_packet = starved;
  one_packet.packets_received = 1;
  one_packet.delay_sum_ms = kDurationMs - starved.first_on_ms;
  for (const double delta : {0.0, 1.0}) {
    const Objective objective{1, 1, delta, &throughput_measure("equal_share"), 0};
    ASSERT_TRUE(score(objective, starved).has_value());
    EXPECT_TRUE(std::isfinite(*score(objective, starved)));
    EXPECT_EQ(score(objective, starved), score(objective, one_packet));
    EXPECT_LT(score(objective, starved), score(objective, ordinary_sender()));
  }
  EXPECT_EQ(normalized(starved), normalized(one_packet));
}

TEST(Objective, ASenderOnForLessThanTheMinimumIsNotScored) {
  Objective objective;
  objective.minimum_on_ms = ordinary_sender().on_ms;
  EXPECT_TRUE(score(objective, ordinary_sender()).has_value());
  objective.minimum_on_ms = std::nextafter(objective.minimum_on_ms, 1e9);
  EXPECT_EQ(score(objective, ordinary_sender()), std::nullopt);
  const auto scores = normalized_scores(objective.minimum_on_ms, one_packet_per_ms(),
                                        {ordinary_sender()}, kDurationMs);
  EXPECT_EQ(scores, SenderScores{std::nullopt});
}

TEST(Objective, ASenderWithoutAScoreDoesNotAffectOthers) {
  SenderResults never;
  never.first_on_ms = kDurationMs;
  const auto scores = objective_scores(
      {}, one_packet_per_ms(), {never, ordinary_sender(), never, ordinary_sender()}, kDurationMs);
  const auto alone = score({}, ordinary_sender());
  EXPECT_EQ(scores, (SenderScores{std::nullopt, alone, std::nullopt, alone}));
}

// Two groups, of two senders and of one, with different scores.
struct Groups {
  Specimen specimen = one_packet_per_ms();
  std::vector<SenderResults> senders{3, ordinary_sender()};

  Groups() {
    specimen.senders.push_back(specimen.senders.front());
    specimen.senders.front().count = 2;
    senders[1].packets_received = 500;
    senders[1].delay_sum_ms = 50'000;
    senders[2].share_ms = 3000;
  }
  std::optional<double> score(const Objective& objective = {}) const {
    return specimen_score(objective, specimen, senders, kDurationMs);
  }
  double sender(std::size_t number, const Objective& objective = {}) const {
    return objective_scores(objective, specimen, senders, kDurationMs)[number].value();
  }
};

TEST(GroupScores, CountByTheirWeights) {
  Groups groups;
  EXPECT_EQ(groups.score(),
            exact_sum(std::vector{groups.sender(0), groups.sender(1), groups.sender(2)}) / 3);
  groups.specimen.senders[1].weight = 4;
  EXPECT_NEAR(*groups.score(), (groups.sender(0) + groups.sender(1) + 4 * groups.sender(2)) / 6,
              1e-12);
  groups.specimen.senders[0].weight = 0;
  EXPECT_NEAR(*groups.score(), groups.sender(2), 1e-12);
  groups.specimen.senders[1].weight = 0;
  EXPECT_EQ(groups.score(), std::nullopt);
}

TEST(GroupScores, HaveTheirOwnObjectives) {
  Groups groups;
  Objective own{2, 1, 10, &throughput_measure("on_time"), 0};
  own.loss_price = 4;
  const double before = groups.sender(0);
  groups.specimen.senders[1].objective = own;
  EXPECT_EQ(groups.sender(0), before);
  EXPECT_EQ(groups.sender(2), *score(own, groups.senders[2]));
}

TEST(GroupScores, CanBeTheMinimumOfTheGroupsMeans) {
  Groups groups;
  Objective lowest;
  lowest.over_groups = GroupAggregate::kMinimum;
  const double first = (groups.sender(0) + groups.sender(1)) / 2;
  EXPECT_NEAR(*groups.score(lowest), std::min(first, groups.sender(2)), 1e-12);
  groups.specimen.senders[0].weight = 1e-3;
  groups.specimen.senders[1].weight = 2;
  EXPECT_NEAR(*groups.score(lowest), std::min(1e-3 * first, 2 * groups.sender(2)), 1e-12);
}

TEST(Completion, IsFlowsOverTheTimeOn) {
  const Objective objective{2, 1, 0, &throughput_measure("completion"), 0};
  const std::vector<SenderResults> senders{ordinary_sender()};
  const auto score_of = [&](std::uint64_t flows) {
    const std::vector<Tally> tallies{{1000, 1000, flows}};
    return *specimen_score(objective, one_packet_per_ms(), senders, kDurationMs, tallies);
  };
  // For 4 s on: minus the mean completion time in seconds.
  EXPECT_DOUBLE_EQ(score_of(8), -0.5);
  EXPECT_DOUBLE_EQ(score_of(1), -4);
  // The time of an unfinished flow counts.
  EXPECT_DOUBLE_EQ(score_of(0), -4);
}

}  // namespace
}  // namespace remy
