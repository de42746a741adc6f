#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "elements/packet_ring.h"
#include "evaluation/evaluator.h"
#include "random_cases.h"
#include "slow_dumbbell.h"

namespace remy {
namespace {

SpecimenOutcome simulate_fast(const RuleTable& table, const Specimen& specimen, double duration_ms,
                              std::uint64_t seed, Recording recording = Recording::kUses) {
  return evaluate({{table}, {Unchanged{}}, {specimen}, duration_ms, seed, recording}, 1).front();
}

class AgainstTheSlowSimulator
    : public testing::TestWithParam<std::tuple<Rules, std::size_t, std::uint64_t>> {};

// Times on are sums whose terms the two simulators group differently; all else is bit-identical.
TEST_P(AgainstTheSlowSimulator, SameResultsAndRuleUses) {
  const auto [rules, axes, seed] = GetParam();
  RandomCase random(seed);
  const RuleTable table = random.table(rules, axes);
  Specimen specimen = random.specimen();
  if (table.has_extended_signals() && specimen.buffer_packets != 0U && random.chance(0.5)) {
    const double packets = random.integer(0, 20);
    specimen.bottleneck = {.queue =
                               Choice{"threshold-marking", "", {{"threshold_packets", packets}}}};
  }
  const double duration_ms = 3000;
  const SpecimenOutcome fast = simulate_fast(table, specimen, duration_ms, seed);
  SlowDumbbell slow(table, specimen, seed);
  const auto expected = slow.run(duration_ms);
  ASSERT_EQ(fast.senders.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(fast.senders[i].packets_received, expected[i].packets_received) << "sender " << i;
    EXPECT_EQ(fast.senders[i].packets_sent, expected[i].packets_sent) << "sender " << i;
    EXPECT_EQ(fast.senders[i].packets_lost, expected[i].packets_lost) << "sender " << i;
    EXPECT_EQ(fast.senders[i].delay_sum_ms, expected[i].delay_sum_ms) << "sender " << i;
    EXPECT_EQ(fast.senders[i].first_on_ms, expected[i].first_on_ms) << "sender " << i;
    EXPECT_NEAR(fast.senders[i].on_ms, expected[i].on_ms, 1e-7) << "sender " << i;
    EXPECT_NEAR(fast.senders[i].share_ms, expected[i].share_ms, 1e-7) << "sender " << i;
  }
  EXPECT_EQ(fast.rule_uses, slow.rule_uses());
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstTheSlowSimulator,
                         testing::Combine(testing::Values(Rules::kAbsolute, Rules::kScaleFree,
                                                          Rules::kScaleFreeRemembering),
                                          testing::Values(kBasicSignals, kSignals),
                                          testing::Range<std::uint64_t>(0, random_cases(300, 60))));

// A rule for senders without measurements, and rules that divide on slow_rec_ratio and send_ratio.
RuleTable scale_free_table(double first_intersend_ms) {
  const auto below = [](Signal signal, double value) { return Node{{{signal, value}}, {}}; };
  const auto rule = [](double multiple, double increment, double intersend) {
    return Node{{}, {multiple, increment, intersend}};
  };
  return RuleTable({Signal::kSendEwma, Signal::kRttRatio, Signal::kSlowRecEwma},
                   {below(Signal::kRttRatio, 0.5), rule(0, 30, first_intersend_ms),
                    below(Signal::kSlowRecEwma, 0.05), rule(0.7, 17, 1.8),
                    below(Signal::kSendEwma, 0.95), rule(0.7, 30, 1.1), rule(0.7, 33, 0.9)},
                   RuleTable::kDefaultDomainUpper, Rules::kScaleFree);
}

class TimeScales : public testing::TestWithParam<int> {};

// With all times multiplied by a power of two, scale-free rules give the same results times that
// power, to the bit.
TEST_P(TimeScales, DoNotAffectScaleFreeRules) {
  const double scale = std::ldexp(1, GetParam());
  const auto network = [](double unit) {
    Specimen specimen;
    specimen.key = 5;
    specimen.link_rate_packets_per_ms = 1.25 / unit;
    specimen.rtt_ms = 150 * unit;
    specimen.measurement = {UniformJitter{0.3 * unit}, 0};
    specimen.senders = {{3, 0, {ExponentialTime{2000 * unit}, 1000 * unit}}};
    return specimen;
  };
  const auto original = simulate_fast(scale_free_table(0.25), network(1), 20'000, 3);
  const auto scaled =
      simulate_fast(scale_free_table(0.25 * scale), network(scale), 20'000 * scale, 3);
  EXPECT_EQ(original.rule_uses, scaled.rule_uses);
  for (std::size_t i = 0; i < original.senders.size(); ++i) {
    EXPECT_GT(original.senders[i].packets_received, 1000U);
    EXPECT_EQ(original.senders[i].packets_received, scaled.senders[i].packets_received);
    EXPECT_EQ(original.senders[i].packets_sent, scaled.senders[i].packets_sent);
    EXPECT_EQ(original.senders[i].delay_sum_ms * scale, scaled.senders[i].delay_sum_ms);
    EXPECT_EQ(original.senders[i].share_ms * scale, scaled.senders[i].share_ms);
  }
}

INSTANTIATE_TEST_SUITE_P(PowersOfTwo, TimeScales, testing::Values(-10, -1, 1, 7));

// A sender that is always on with a fixed window: its throughput is one window per RTT up to the
// link rate, and packets beyond the BDP wait in the queue.
TEST(Dumbbell, FixedWindowOnAnIdleLink) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {0, 10, 0});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 1;
  specimen.rtt_ms = 99;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 100'000, 1).senders.front();
  // 10 packets per RTT of 100 ms (99 ms and one transmission time). Those of the last RTT are still
  // in flight.
  EXPECT_NEAR(static_cast<double>(sender.packets_received), 10'000, 10);
  // Packets wait for one another in the first RTT only; then they are ACK-clocked.
  const double delay_ms = sender.delay_sum_ms / static_cast<double>(sender.packets_received);
  EXPECT_NEAR(delay_ms, 100, 0.1);
}

TEST(Dumbbell, WindowAboveTheBdpFillsTheQueue) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {0, 300, 0});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 1;
  specimen.rtt_ms = 99;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 100'000, 1).senders.front();
  EXPECT_NEAR(static_cast<double>(sender.packets_received), 100'000 - 99, 1);
  const double delay_ms = sender.delay_sum_ms / static_cast<double>(sender.packets_received);
  EXPECT_NEAR(delay_ms, 300, 1);
}

TEST(Dumbbell, FullBufferDropsAtItsTail) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {0, 300, 0});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 1;
  specimen.rtt_ms = 99;
  specimen.buffer_packets = 20;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 50, 1).senders.front();
  // One packet is transmitted, 20 wait, and the rest of the burst is dropped.
  EXPECT_EQ(sender.packets_sent, 300U);
  EXPECT_EQ(sender.packets_lost, 300U - 21U);
}

TEST(Dumbbell, PacingKeepsSendsApart) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {1, 1000, 4});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.rtt_ms = 50;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 10'000, 1).senders.front();
  EXPECT_NEAR(static_cast<double>(sender.packets_sent), 10'000.0 / 4, 1);
}

TEST(Dumbbell, BunchesLeaveTogetherAtTheSameRate) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {1, 1000, 4});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.rtt_ms = 50;
  specimen.measurement.bunch_packets = 4;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 10'000, 1).senders.front();
  EXPECT_NEAR(static_cast<double>(sender.packets_sent), 10'000.0 / 4, 4);
  // Only the packets of the same bunch wait for one another.
  const double delay_ms = sender.delay_sum_ms / static_cast<double>(sender.packets_received);
  EXPECT_NEAR(delay_ms, 50 + (0.1 + 0.2 + 0.3 + 0.4) / 4, 1e-9);
}

// Because of losses the window's room is rarely a whole bunch, which must not stop the sender.
TEST(Dumbbell, LargeBunchesReduceThroughputOnlySlightly) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {0, 50, 0});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.rtt_ms = 100;
  specimen.loss_probability = 0.01;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto single = simulate_fast(table, specimen, 100'000, 1).senders.front();
  specimen.measurement.bunch_packets = 40;
  const auto bunched = simulate_fast(table, specimen, 100'000, 1).senders.front();
  EXPECT_LE(bunched.packets_received, single.packets_received);
  EXPECT_GT(bunched.packets_received, single.packets_received * 8 / 10);
}

TEST(Dumbbell, AnAckIsDelayedUntilASecondPacketOrTheTimeout) {
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.rtt_ms = 99.9;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  specimen.measurement.delayed_ack_ms = 25;
  const auto one = RuleTable::single_rule({Signal::kSendEwma}, {0, 1, 0});
  const SpecimenOutcome late = simulate_fast(one, specimen, 12'500, 1);
  EXPECT_NEAR(static_cast<double>(late.senders.front().packets_received), 12'500.0 / 125, 1);
  // A packet's delay does not include the delay of its ACK.
  EXPECT_NEAR(late.senders.front().delay_sum_ms,
              100 * static_cast<double>(late.senders.front().packets_received), 1e-6);
  const auto two = RuleTable::single_rule({Signal::kSendEwma}, {0, 2, 0});
  const SpecimenOutcome pairs = simulate_fast(two, specimen, 10'010, 1);
  EXPECT_NEAR(static_cast<double>(pairs.senders.front().packets_received), 200, 2);
  // One look-up at the start, and one per pair of packets.
  EXPECT_EQ(pairs.rule_uses.front(), 1 + pairs.senders.front().packets_received / 2);
}

// rec_ewma is the time per packet, whether an ACK acknowledges one packet or two.
TEST(Dumbbell, IntervalsArePerPacketWithDelayedAcks) {
  RuleTable table = RuleTable::single_rule({Signal::kRecEwma}, {0, 40, 1});
  table = table.split(0, std::vector<Threshold>{{Signal::kRecEwma, 1.5}});
  table.set_action(1, {0, 1, 1000});
  Specimen specimen;
  specimen.rtt_ms = 10;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const SpecimenOutcome every = simulate_fast(table, specimen, 10'000, 1);
  specimen.measurement.delayed_ack_ms = 5;
  const SpecimenOutcome second = simulate_fast(table, specimen, 10'000, 1);
  EXPECT_EQ(every.rule_uses[1], 0U);
  EXPECT_EQ(second.rule_uses[1], 0U);
  EXPECT_NEAR(static_cast<double>(second.rule_uses[0]), static_cast<double>(every.rule_uses[0]) / 2,
              20);
}

TEST(Dumbbell, LossHasItsProbability) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {1, 1000, 1});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.rtt_ms = 50;
  specimen.loss_probability = 0.1;
  specimen.senders = {{1, 0, {ExponentialTime{1e12}, 1e-3}}};
  const auto sender = simulate_fast(table, specimen, 100'000, 1).senders.front();
  const double lost = static_cast<double>(sender.packets_lost) /
                      static_cast<double>(sender.packets_lost + sender.packets_received);
  // Five standard deviations of the mean of 1e5 draws.
  EXPECT_NEAR(lost, 0.1, 5 * std::sqrt(0.1 * 0.9 / 1e5));
}

TEST(Dumbbell, EqualSharesAddUpToTheTimeInWhichAnySenderIsOn) {
  RandomCase random(7);
  const RuleTable table = random.table();
  Specimen specimen;
  specimen.senders = {{12, 0, {ExponentialTime{500}, 500}}};
  double shares = 0;
  for (const auto& sender : simulate_fast(table, specimen, 20'000, 3).senders) {
    shares += sender.share_ms;
    EXPECT_LE(sender.share_ms, sender.on_ms);
  }
  // Each of twelve senders is on half of the time, so all are off in 1/4096 of the time, and at the
  // start.
  EXPECT_LE(shares, 20'000);
  EXPECT_GE(shares, 19'500);
}

TEST(Dumbbell, OnOffScheduleDoesNotDependOnTheTable) {
  Specimen specimen;
  specimen.senders = {{4, 0, {ExponentialTime{500}, 500}}};
  const auto meek = RuleTable::single_rule({Signal::kSendEwma}, {0, 1, 10});
  const auto bold = RuleTable::single_rule({Signal::kSendEwma}, {1, 20, 0.1});
  const auto a = simulate_fast(meek, specimen, 20'000, 3);
  const auto b = simulate_fast(bold, specimen, 20'000, 3);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a.senders[i].on_ms, b.senders[i].on_ms);
    EXPECT_EQ(a.senders[i].share_ms, b.senders[i].share_ms);
    EXPECT_NE(a.senders[i].packets_received, b.senders[i].packets_received);
  }
}

TEST(Dumbbell, FlowsByBytesDeliverAllTheirPackets) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {1, 2, 0.1});
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 5;
  specimen.rtt_ms = 20;
  specimen.senders = {{3, 0, {ExponentialBytes{1e5}, 200}}};
  for (const auto& sender : simulate_fast(table, specimen, 100'000, 5).senders) {
    // Nothing is lost, so all packets are received but those of the flow at the end.
    EXPECT_GE(sender.packets_received + 2000, sender.packets_sent);
    EXPECT_GT(sender.packets_received, 1000U);
    EXPECT_LT(sender.on_ms, 100'000);
  }
}

TEST(Dumbbell, FloodOfAnInfiniteQueueIsBounded) {
  const auto table = RuleTable::single_rule({Signal::kSendEwma}, {1, 1e6, 0});
  Specimen specimen;
  specimen.senders = {{8, 0, {ExponentialTime{1e12}, 1e-3}}};
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  for (const auto& sender : simulate_fast(table, specimen, 100, 1).senders) {
    sent += sender.packets_sent;
    lost += sender.packets_lost;
  }
  EXPECT_EQ(sent - lost, PacketRing::kMaximumPackets);
}

}  // namespace
}  // namespace remy
