#include "senders/traffic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/random.h"
#include "network/network.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

EmpiricalBytes empirical(const FlowQuantiles& quantiles, double extra_bytes = 0) {
  return {std::make_shared<const FlowQuantiles>(quantiles), extra_bytes};
}

std::string refusal(const Traffic& traffic) {
  try {
    validate(traffic, "traffic");
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "";
}

TEST(FlowLengths, AreLinearInProbabilityBetweenQuantilesAndConstantBeyond) {
  const Schedule schedule({empirical({{0.25, 100}, {0.75, 300}}, 7), 1}, 42);
  for (std::uint64_t period = 0; period < 1000; ++period) {
    const double u = unit_interval(random_bits(42, 2 * period + 1));
    const double expected = u < 0.25 ? 100 : u > 0.75 ? 300 : std::round(100 + (u - 0.25) * 400);
    // Packets of one byte each are bytes.
    EXPECT_EQ(schedule.on_packets(period, 1), static_cast<std::uint64_t>(expected) + 7) << u;
  }
}

TEST(FlowLengths, OfOneQuantileAreConstant) {
  const Schedule schedule({empirical({{0.5, 1501}}), 1}, 7);
  EXPECT_EQ(schedule.on_packets(0, 1500), 2U);
  EXPECT_EQ(schedule.on_packets(1, 1500), 2U);
}

// The quantiles of the source's list of 100,000 lengths, and its mean, in whole bytes.
TEST(FlowLengths, OfIcsiHaveThePublishedQuantilesAndMean) {
  const auto quantiles = flow_quantiles("icsi");
  ASSERT_EQ(quantiles->size(), 201U);
  const auto at = [&](double probability) {
    for (std::size_t i = 1; i < quantiles->size(); ++i) {
      const FlowQuantile& low = (*quantiles)[i - 1];
      const FlowQuantile& high = (*quantiles)[i];
      if (probability <= high.probability) {
        return low.bytes + (high.bytes - low.bytes) * (probability - low.probability) /
                               (high.probability - low.probability);
      }
    }
    return quantiles->back().bytes;
  };
  EXPECT_NEAR(at(0.25) / 261, 1, 0.015);
  EXPECT_NEAR(at(0.5) / 542, 1, 0.015);
  EXPECT_NEAR(at(0.75) / 2625, 1, 0.015);
  EXPECT_NEAR(at(0.9) / 14'019, 1, 0.015);
  EXPECT_NEAR(at(0.95) / 43'490, 1, 0.015);
  EXPECT_NEAR(at(0.99) / 247'533, 1, 0.015);
  double mean = quantiles->front().probability * quantiles->front().bytes;
  for (std::size_t i = 1; i < quantiles->size(); ++i) {
    const FlowQuantile& low = (*quantiles)[i - 1];
    const FlowQuantile& high = (*quantiles)[i];
    mean += (high.probability - low.probability) * (low.bytes + high.bytes) / 2;
  }
  mean += (1 - quantiles->back().probability) * quantiles->back().bytes;
  EXPECT_NEAR(mean, 106'575.4, 1);
}

TEST(FlowLengths, RefuseUnknownNames) {
  EXPECT_THROW(flow_quantiles("caida"), std::invalid_argument);
}

TEST(Arrivals, OfAPoissonProcessDoNotDependOnEarlierFlows) {
  const Traffic traffic{ConstantBytes{3000}, 0, PoissonArrivals{10}};
  Schedule idle(traffic, 5);
  Schedule busy(traffic, 5);
  double sum_ms = 0;
  double before_ms = 0;
  constexpr int kFlows = 20'000;
  for (int flow = 0; flow < kFlows; ++flow) {
    const double begin_ms = idle.begins_ms(static_cast<std::uint64_t>(flow), 0);
    EXPECT_EQ(idle.arrival_ms(begin_ms), begin_ms);
    // If the sender was busy until 1e9, the flow begins late, but its arrival time is the same.
    EXPECT_EQ(busy.begins_ms(static_cast<std::uint64_t>(flow), 1e9), 1e9);
    EXPECT_EQ(busy.arrival_ms(1e9), begin_ms);
    EXPECT_GT(begin_ms, before_ms);
    sum_ms += begin_ms - before_ms;
    before_ms = begin_ms;
  }
  EXPECT_NEAR(sum_ms / kFlows, 10, 0.3);
}

TEST(Arrivals, OfAPeriodicProcessBeginAtTheFirstOnTime) {
  Schedule schedule({ConstantBytes{3000}, 0, PeriodicArrivals{25}}, 5, 100);
  EXPECT_EQ(schedule.begins_ms(0, 0), 100);
  EXPECT_EQ(schedule.begins_ms(1, 110), 125);
  EXPECT_EQ(schedule.begins_ms(2, 190), 190);
  EXPECT_EQ(schedule.arrival_ms(190), 150);
}

TEST(OnPeriods, FollowGivenIntervals) {
  Schedule schedule({Intervals{{{5, 10}, {10, 30}, {50, kNever}}}, 0}, 1);
  EXPECT_TRUE(schedule.by_time());
  EXPECT_EQ(schedule.begins_ms(0, 0), 5);
  EXPECT_EQ(schedule.ends_ms(0, 5), 10);
  EXPECT_EQ(schedule.begins_ms(1, 10), 10);
  EXPECT_EQ(schedule.ends_ms(1, 10), 30);
  EXPECT_EQ(schedule.begins_ms(2, 30), 50);
  EXPECT_EQ(schedule.ends_ms(2, 50), kNever);
  EXPECT_EQ(schedule.begins_ms(3, 60), kNever);
}

TEST(OnPeriods, MayLastForEver) {
  Schedule schedule({Always{}, 0}, 1);
  EXPECT_EQ(schedule.begins_ms(0, 0), 0);
  EXPECT_EQ(schedule.ends_ms(0, 0), kNever);
}

TEST(OffTimes, AreHalvedAtFirstWithAFactorOfAHalf) {
  Traffic traffic{ExponentialTime{100}, 500};
  Schedule whole(traffic, 9);
  traffic.first_off_factor = 0.5;
  Schedule half(traffic, 9);
  EXPECT_EQ(half.begins_ms(0, 0), whole.begins_ms(0, 0) / 2);
  EXPECT_EQ(half.begins_ms(1, 1000), whole.begins_ms(1, 1000));
}

TEST(Traffic, IsRefusedWithTheValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal({Always{}, 0}), "");
  EXPECT_EQ(refusal({ConstantBytes{1}, 0, PoissonArrivals{1}}), "");
  EXPECT_EQ(refusal({empirical({}), 1}),
            "traffic.empirical_bytes.probabilities is empty but must have at least one entry");
  EXPECT_EQ(
      refusal({empirical({{0.1, 5}, {0.1, 6}}), 1}),
      "traffic.empirical_bytes.probabilities[1] is 0.100000 but must be above the previous one");
  EXPECT_EQ(refusal({empirical({{0.1, 5}, {0.2, 4}}), 1}),
            "traffic.empirical_bytes.bytes[1] is 4.000000 but must be at least the previous one");
  EXPECT_EQ(refusal({ConstantBytes{0}, 1}),
            "traffic.constant_bytes.bytes is 0.000000 but must be a positive number");
  EXPECT_EQ(refusal({ConstantBytes{1}, 0, Barrier{0}}),
            "traffic.barrier.pause_ms is 0.000000 but must be a number of at least 0.001");
  EXPECT_EQ(refusal({ExponentialTime{1}, 0, PoissonArrivals{1}}),
            "traffic has arrivals, which need on periods by bytes, but its on periods are by time");
  EXPECT_EQ(refusal({Intervals{{{0, 5}, {4, 6}}}, 0}),
            "traffic.intervals.begin_ms[1] is 4.000000 but must be at least the end of the "
            "previous interval");
  EXPECT_EQ(refusal({Intervals{{{5, 5}}}, 0}),
            "traffic.intervals.end_ms[0] is 5.000000 but must be at least 0.001 above begin_ms");
}

// NewReno senders on a link of 1 packet per ms, with a delay of 5 ms in each direction.
NetworkDescription constant_rate(const Traffic& traffic, std::uint32_t senders) {
  NetworkDescription network;
  network.links.emplace_back();
  for (std::uint32_t i = 0; i < senders; ++i) {
    SenderDescription sender;
    sender.protocol = {"newreno", "", {}};
    sender.transport = {"tcp", "", {}};
    sender.traffic = traffic;
    sender.route = {{0}, {}, 5, 5};
    network.senders.push_back(sender);
  }
  return network;
}

TEST(Barriers, HoldEverySenderUntilTheLastHasEnded) {
  // Each of three senders sends ten packets per round. A round ends when all 30 have crossed the
  // link, and their ACKs have returned.
  const NetworkDescription network = constant_rate({ConstantBytes{15'000}, 0, Barrier{20}}, 3);
  const NetworkResults results = run_network(network, {}, 10'000, 1);
  const std::size_t rounds = results.senders.front().flows.size();
  EXPECT_GT(rounds, 50U);
  for (std::size_t round = 0; round < rounds; ++round) {
    double longest_ms = 0;
    for (const NetworkSenderResults& sender : results.senders) {
      ASSERT_GE(sender.flows.size(), rounds);
      EXPECT_EQ(sender.flows[round].packets, 10U);
      longest_ms = std::max(longest_ms, sender.flows[round].time_ms);
    }
    EXPECT_GE(longest_ms, 30 + 10);
  }
  // The simulation may end within a round, which some senders have completed.
  for (const NetworkSenderResults& sender : results.senders) {
    EXPECT_EQ(sender.totals.first_on_ms, 0);
    EXPECT_LE(sender.flows.size() - rounds, 1U);
  }
}

TEST(Flows, ThatWaitForEarlierFlowsTakeLonger) {
  // A flow of 20 packets takes longer than the 10 ms until the next one comes.
  const NetworkDescription network =
      constant_rate({ConstantBytes{30'000}, 0, PeriodicArrivals{10}}, 1);
  const NetworkResults results = run_network(network, {}, 1000, 1);
  const std::vector<FlowCompletion>& flows = results.senders.front().flows;
  ASSERT_GT(flows.size(), 10U);
  for (std::size_t i = 1; i < flows.size(); ++i) {
    EXPECT_GT(flows[i].time_ms, flows[i - 1].time_ms);
  }
  // As flows queue up, the sender is always on.
  EXPECT_EQ(results.senders.front().totals.on_ms, 1000);
}

}  // namespace
}  // namespace remy
