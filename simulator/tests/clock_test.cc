#include "senders/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"
#include "evaluation/evaluator.h"
#include "random_cases.h"

namespace remy {
namespace {

constexpr std::uint64_t kKey = 77;
const FlowTag kFlow(3);

// The jitter of packets 0 to count - 1. Each has its own reader, so that it is not delayed by
// earlier packets.
std::vector<double> draw_jitter(const MeasurementNoise& noise, std::uint32_t count) {
  const NoisyClock clock(noise, kKey);
  std::vector<double> jitter;
  for (std::uint32_t sequence = 0; sequence < count; ++sequence) {
    NoisyClock::Reader reader;
    jitter.push_back(clock.read(reader, 0, sequence, kFlow, 100).received_ms - 100);
  }
  return jitter;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

TEST(ExactClock, GivesExactTimes) {
  ExactClock::Reader reader;
  const AckTimes seen = ExactClock().read(reader, 12.25, 5, kFlow, 100.75);
  EXPECT_EQ(seen.sent_ms, 12.25);
  EXPECT_EQ(seen.received_ms, 100.75);
  EXPECT_EQ(seen.rtt_ms, 88.5);
}

TEST(NoisyClock, ExponentialJitterHasItsMean) {
  const auto jitter = draw_jitter({ExponentialJitter{0.5}, 0}, 20'000);
  // The standard deviation of an exponential variate is its mean.
  EXPECT_NEAR(mean_of(jitter), 0.5, 5 * 0.5 / std::sqrt(20'000));
  for (const double late_ms : jitter) {
    EXPECT_GT(late_ms, 0);
  }
}

TEST(NoisyClock, UniformJitterStaysBelowItsMaximum) {
  const auto jitter = draw_jitter({UniformJitter{0.5}, 0}, 20'000);
  EXPECT_NEAR(mean_of(jitter), 0.25, 5 * 0.5 / std::sqrt(12.0 * 20'000));
  for (const double late_ms : jitter) {
    EXPECT_GT(late_ms, 0);
    EXPECT_LT(late_ms, 0.5);
  }
}

TEST(NoisyClock, LogNormalJitterHasItsMedianAndItsPercentile) {
  constexpr std::uint32_t kDraws = 100'000;
  std::uint32_t above_median = 0;
  std::uint32_t above_percentile = 0;
  for (const double late_ms : draw_jitter({LogNormalJitter{0.068, 0.2}, 0}, kDraws)) {
    EXPECT_GT(late_ms, 0);
    above_median += late_ms > 0.068 ? 1 : 0;
    above_percentile += late_ms > 0.2 ? 1 : 0;
  }
  // Five standard deviations of a binomial variate.
  EXPECT_NEAR(above_median, 0.5 * kDraws, 5 * std::sqrt(0.5 * 0.5 * kDraws));
  EXPECT_NEAR(above_percentile, 0.01 * kDraws, 5 * std::sqrt(0.01 * 0.99 * kDraws));
}

TEST(NoisyClock, LogNormalJitterIsBitIdenticalOnEveryMachine) {
  const NoisyClock clock({LogNormalJitter{0.068, 0.2}, 0}, kKey);
  NoisyClock::Reader reader;
  EXPECT_EQ(clock.read(reader, 0, 9, kFlow, 0).received_ms, 0x1.2b6130d2b108fp-5);
}

TEST(NoisyClock, ABunchWaitsForRoomForAllOfItOrAThirdOfTheWindow) {
  constexpr std::uint64_t kPlenty = 1'000'000;
  const NoisyClock clock({.jitter = {}, .bunch_packets = 4}, kKey);
  EXPECT_EQ(clock.bunch(3, 100, kPlenty), 0U);
  EXPECT_EQ(clock.bunch(4, 100, kPlenty), 4U);
  EXPECT_EQ(clock.bunch(100, 100, kPlenty), 4U);
  EXPECT_EQ(clock.bunch(2, 9, kPlenty), 0U);
  EXPECT_EQ(clock.bunch(3, 9, kPlenty), 3U);
  EXPECT_EQ(clock.bunch(1, 2, kPlenty), 1U);
  EXPECT_EQ(clock.bunch(0, 2, kPlenty), 0U);
  EXPECT_EQ(clock.bunch(-7, 2, kPlenty), 0U);
  // The last packets of a flow do not wait.
  EXPECT_EQ(clock.bunch(3, 100, 3), 3U);
}

TEST(NoisyClock, JitterDelaysTheAckAndNotTheSendingTime) {
  const NoisyClock clock({UniformJitter{10}, 0}, kKey);
  NoisyClock::Reader reader;
  const AckTimes seen = clock.read(reader, 12.25, 0, kFlow, 100);
  EXPECT_EQ(seen.sent_ms, 12.25);
  EXPECT_GT(seen.received_ms, 100);
  EXPECT_EQ(seen.rtt_ms, seen.received_ms - 12.25);
}

TEST(NoisyClock, NeverRunsBackwardsInAnOnPeriod) {
  const NoisyClock clock({ExponentialJitter{5}, 0}, kKey);
  NoisyClock::Reader reader;
  double last_ms = 0;
  std::uint32_t held = 0;
  for (std::uint32_t sequence = 0; sequence < 1000; ++sequence) {
    const double now_ms = 100 + 0.1 * sequence;
    const double seen_ms = clock.read(reader, 0, sequence, kFlow, now_ms).received_ms;
    EXPECT_GE(seen_ms, last_ms);
    EXPECT_GE(seen_ms, now_ms);
    held += seen_ms == last_ms ? 1 : 0;
    last_ms = seen_ms;
  }
  // The jitter is many times the spacing of ACKs, so most readings are held back by an earlier one.
  EXPECT_GT(held, 500U);
}

TEST(NoisyClock, ReadingsOfANewOnPeriodMayBeEarlier) {
  const NoisyClock clock({UniformJitter{1}, 0}, kKey);
  NoisyClock::Reader reader;
  clock.read(reader, 0, 0, kFlow, 1000);
  reader = {};
  EXPECT_LT(clock.read(reader, 0, 1, kFlow, 100).received_ms, 101);
}

TEST(NoisyClock, AddsTheSendersOffsetToAllRttsButTheFirst) {
  const NoisyClock clock({.jitter = {}, .rtt_offset_maximum_ms = 3}, kKey, kKey + 1);
  const auto offset_ms = [&](FlowTag flow) {
    NoisyClock::Reader reader;
    EXPECT_EQ(clock.read(reader, 10, 0, flow, 110).rtt_ms, 100);
    const AckTimes second = clock.read(reader, 20, 1, flow, 120);
    EXPECT_EQ(second.received_ms, 120);
    EXPECT_EQ(clock.read(reader, 25, 2, flow, 125).rtt_ms, second.rtt_ms);
    return second.rtt_ms - 100;
  };
  double sum_ms = 0;
  for (std::uint32_t sender = 0; sender < 1000; ++sender) {
    FlowTag flow(sender);
    const double first_ms = offset_ms(flow);
    EXPECT_GE(first_ms, 0);
    EXPECT_LT(first_ms, 3);
    flow.next_period();
    EXPECT_EQ(offset_ms(flow), first_ms);
    sum_ms += first_ms;
  }
  EXPECT_NEAR(sum_ms / 1000, 1.5, 0.1);
}

TEST(NoisyClock, JitterDependsOnFlowAndSequenceNumberOnly) {
  const NoisyClock clock({ExponentialJitter{5}, 0}, kKey);
  const auto late_ms = [&](FlowTag flow, std::uint32_t sequence, double now_ms) {
    NoisyClock::Reader reader;
    return clock.read(reader, 0, sequence, flow, now_ms).received_ms - now_ms;
  };
  FlowTag next_period = kFlow;
  next_period.next_period();
  EXPECT_NEAR(late_ms(kFlow, 9, 64), late_ms(kFlow, 9, 4096), 1e-9);
  EXPECT_NE(late_ms(kFlow, 9, 64), late_ms(kFlow, 10, 64));
  EXPECT_NE(late_ms(kFlow, 9, 64), late_ms(FlowTag(4), 9, 64));
  EXPECT_NE(late_ms(kFlow, 9, 64), late_ms(next_period, 9, 64));
}

TEST(NoisyClock, RoundsBothTimesDownToTicks) {
  const NoisyClock clock({ExponentialJitter{0}, 4}, kKey);
  NoisyClock::Reader reader;
  const AckTimes seen = clock.read(reader, 11.9, 0, kFlow, 163.9);
  EXPECT_EQ(seen.sent_ms, 8);
  EXPECT_EQ(seen.received_ms, 160);
  EXPECT_EQ(seen.rtt_ms, 152);
}

TEST(NoisyClock, AnRttWithinATickCountsAsHalfATick) {
  const NoisyClock clock({ExponentialJitter{0}, 4}, kKey);
  NoisyClock::Reader reader;
  const AckTimes seen = clock.read(reader, 8, 0, kFlow, 11.9);
  EXPECT_EQ(seen.received_ms, seen.sent_ms);
  EXPECT_EQ(seen.rtt_ms, 2);
}

// Differences of rounded multiples of 0.1 are not equal, so the clock must count RTTs in ticks.
TEST(NoisyClock, RttsOfEquallyManyTicksAreEqual) {
  const NoisyClock clock({ExponentialJitter{0}, 0.1}, kKey);
  NoisyClock::Reader reader;
  const double rtt_ms = clock.read(reader, 0, 0, kFlow, 10.05).rtt_ms;
  for (std::uint32_t i = 1; i < 1000; ++i) {
    const double sent_ms = 0.1 * i + 0.05;
    EXPECT_EQ(clock.read(reader, sent_ms, i, kFlow, sent_ms + 10).rtt_ms, rtt_ms) << i;
  }
}

TEST(NoisyClock, AResolutionFinerThanANanosecondIsExact) {
  const NoisyClock clock({ExponentialJitter{0}, 5e-324}, kKey);
  NoisyClock::Reader reader;
  const AckTimes seen = clock.read(reader, 12.25, 0, kFlow, 1e12);
  EXPECT_EQ(seen.sent_ms, 12.25);
  EXPECT_EQ(seen.received_ms, 1e12);
}

std::vector<SenderResults> simulate(const RuleTable& table, const Specimen& specimen) {
  return evaluate({{table}, {Unchanged{}}, {specimen}, 20'000, 3, Recording::kNothing}, 1)
      .front()
      .senders;
}

Specimen with_noise(Specimen specimen, const MeasurementNoise& noise) {
  specimen.measurement = noise;
  return specimen;
}

// A table of one rule ignores its measurements, so noise must not change its results: it affects
// clocks, not the network.
TEST(MeasurementNoise, DoesNotAffectTheNetwork) {
  RandomCase random(11);
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {0.9, 3, 1.5});
  const Specimen exact = with_noise(random.specimen(), {});
  const auto expected = simulate(table, exact);
  const auto noisy = simulate(table, with_noise(exact, {UniformJitter{50}, 7}));
  ASSERT_EQ(noisy.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GT(noisy[i].packets_received, 0U);
    EXPECT_EQ(noisy[i].packets_received, expected[i].packets_received);
    EXPECT_EQ(noisy[i].delay_sum_ms, expected[i].delay_sum_ms);
  }
}

// A sender that is paced below the link rate always has the same RTT. The rule for larger RTTs,
// which slows it down, is used only because of jitter.
TEST(MeasurementNoise, AffectsTheRulesThatAreUsed) {
  RuleTable table = RuleTable::single_rule({Signal::kRttRatio}, {0, 50, 4});
  table = table.split(0, std::vector<Threshold>{{Signal::kRttRatio, 1 + 5e-8}});
  table.set_action(1, {0, 1, 4});
  Specimen specimen;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto exact = simulate(table, specimen).front();
  const auto jittered = simulate(table, with_noise(specimen, {ExponentialJitter{0.5}, 0})).front();
  EXPECT_NEAR(static_cast<double>(exact.packets_received), 20'000 / 4, 30);
  EXPECT_LT(jittered.packets_received, exact.packets_received / 4);
}

}  // namespace
}  // namespace remy
