#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "protocols/one_link.h"
#include "protocols/pcc.h"

namespace remy {
namespace {

const Choice kSafe = {"pcc-allegro", "safe", {}};
// 100 Mbit/s and 30 ms.
const OneLink kFastLink = {.rate_packets_per_ms = 8.33, .rtt_ms = 30, .buffer_packets = 250};

// Pacing rates of a sender, recorded at each change.
std::vector<std::pair<double, double>> rates_of(OneLinkRun& run, double end_ms) {
  std::vector<std::pair<double, double>> rates;
  run.observer = [&](std::size_t flow) {
    const double intersend_ms = run.controller(flow).pacing_interval_ms();
    const double rate = intersend_ms > 0 ? 1 / intersend_ms : 0;
    if (rates.empty() || rate != rates.back().second) {
      rates.emplace_back(run.now_ms(), rate);
    }
  };
  run.run_until(end_ms);
  run.observer = nullptr;
  return rates;
}

TEST(MonitorInterval, FitsTheSlopeOfItsRtts) {
  MonitorInterval interval;
  for (int i = 0; i < 50; ++i) {
    const double time_ms = 3.0 * i;
    const double rtt_ms = 80 + 0.04 * time_ms + (i % 2 == 0 ? 0.5 : -0.5);
    interval.rtt_count += 1;
    interval.rtt_sum_ms += rtt_ms;
    interval.time_sum_ms += time_ms;
    interval.time_square_sum += time_ms * time_ms;
    interval.time_rtt_sum += time_ms * rtt_ms;
  }
  EXPECT_NEAR(interval.rtt_slope(), 0.04, 0.001);
  EXPECT_EQ(MonitorInterval().rtt_slope(), 0);
}

TEST(PccAllegro, DoublesFromTwoPacketsAnRttUntilUtilityFalls) {
  OneLinkRun run(kFastLink);
  run.add(kSafe);
  const auto rates = rates_of(run, 1500);
  std::size_t i = 0;
  for (; i < rates.size() && rates[i].second == 0; ++i) {
  }
  ASSERT_LT(i, rates.size());
  EXPECT_NEAR(rates[i].second, 2.0 / 30.12, 0.001);
  std::size_t doublings = 0;
  for (; i + 1 < rates.size() && rates[i + 1].second > 1.5 * rates[i].second; ++i, ++doublings) {
    EXPECT_NEAR(rates[i + 1].second, 2 * rates[i].second, 1e-9);
    if (doublings > 0 && rates[i].second < 4) {
      // An interval has ten packets, or 1.7 to 2.2 RTTs.
      const double length_ms = rates[i + 1].first - rates[i].first;
      EXPECT_GE(length_ms, 1.7 * 30);
      EXPECT_LE(length_ms, std::max(10 / rates[i].second + 30, 2.3 * 32));
    }
  }
  // Rates of 2, 4, ... 256 packets per RTT succeed, 512 fails. The following intervals are sent
  // before that is known.
  EXPECT_GE(doublings, 8U);
  EXPECT_LE(doublings, 9U);
  EXPECT_NEAR(rates[i + 1].second, 256 / 30.12, 0.02 * 256 / 30.12);
}

// A series of timeouts with one lost packet each says nothing about a rate. The rate doubles once,
// before the first interval has results, and then stays.
TEST(PccAllegro, DoesNotDoubleFurtherAfterTimeouts) {
  const Protocol& protocol = find_protocol("pcc-allegro");
  const auto controller = protocol.make(ParameterValues("protocol", protocol.variants, kSafe), 1);
  controller->start(0);
  controller->on_sent({.now_ms = 0, .transmission_number = 0, .in_flight = 1});
  AckEvent ack;
  ack.now_ms = ack.rtt_ms = 100;
  ack.newly_acked = ack.newly_delivered = 1;
  controller->on_ack(ack);
  for (std::uint64_t serial = 1; serial <= 40; ++serial) {
    const double now_ms = 1000.0 * static_cast<double>(serial);
    controller->on_sent({.now_ms = now_ms, .transmission_number = serial, .in_flight = 1});
    EXPECT_NEAR(controller->pacing_interval_ms(), serial == 1 ? 50 : 25, 1e-9) << serial;
    controller->on_timeout({.now_ms = now_ms + 500, .in_flight = 1, .is_first = serial == 1});
  }
}

// Trials are one step above and below the rate, in random order.
TEST(PccAllegro, TriesPairsInRandomOrder) {
  std::set<int> orders;
  for (std::uint64_t key = 0; key < 40; ++key) {
    const Protocol& protocol = find_protocol("pcc-allegro");
    OneLinkRun run(kFastLink);
    run.add(protocol.make(ParameterValues("protocol", protocol.variants, kSafe), key));
    const auto rates = rates_of(run, 4000);
    // The first decision: the rate has returned to an earlier one after the last doubling.
    std::size_t i = 1;
    while (i + 1 < rates.size() && rates[i].second >= rates[i - 1].second) {
      ++i;
    }
    const auto base = std::ranges::find_if(rates, [&](const auto& earlier) {
      return std::fabs(rates[i].second / earlier.second - 1) < 0.015;
    });
    int order = 1;
    for (; i + 1 < rates.size(); ++i) {
      const double step = rates[i].second / base->second - 1;
      if (std::fabs(std::fabs(step) - 0.01) > 1e-6) {
        break;
      }
      order = 2 * order + (step > 0 ? 1 : 0);
    }
    orders.insert(order);
  }
  // Up-down or down-up in each pair. Two equal trials in a row appear as one.
  EXPECT_EQ(orders, (std::set<int>{0b1101, 0b1010, 0b11010, 0b10101}));
}

// Theorem 1: the sum of the senders' rates is above the link rate, but below 20/19 of it, where 5 %
// are lost. The rates become equal.
TEST(PccAllegro, SendersConvergeToEqualSharesSlightlyAboveTheLinkRate) {
  OneLinkRun run(kFastLink);
  run.add(kSafe);
  run.add(kSafe, 500);
  run.run_until(160000);
  const auto counts = run.run_until(260000);
  double sent = 0;
  double delivered = 0;
  for (const auto& flow : counts) {
    sent += static_cast<double>(flow.delivered + flow.lost) / 100000;
    delivered += static_cast<double>(flow.delivered) / 100000;
  }
  EXPECT_GT(sent, 8.33);
  EXPECT_LT(sent, 8.33 * 20 / 19);
  EXPECT_GT(delivered, 0.99 * 8.33);
  EXPECT_NEAR(static_cast<double>(counts[0].delivered) / 100000, 8.33 / 2, 0.1 * 8.33 / 2);
}

class PccAllegroUnderLoss : public testing::TestWithParam<double> {};

TEST_P(PccAllegroUnderLoss, KeepsItsRateBelowTheLossLimitOnly) {
  const double loss = GetParam();
  OneLinkRun run(kFastLink);
  run.link().are_losses_even = true;  // with a few hundred packets, random loss rates vary by 1 %
  run.add(kSafe);
  run.run_until(5000);
  run.link().loss_probability = loss;
  run.run_until(105000);
  const double rate = static_cast<double>(run.run_until(115000)[0].delivered) / 10000;
  if (loss <= 0.05) {
    EXPECT_GT(rate, 0.97 * (1 - loss) * 8.33);
  } else {
    EXPECT_LT(rate, 0.6 * (1 - loss) * 8.33);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, PccAllegroUnderLoss, testing::Values(0.0, 0.02, 0.04, 0.1, 0.2));

TEST(PccAllegro, LossResilientUtilityResistsLoss) {
  for (const double loss : {0.1, 0.3, 0.5}) {
    OneLinkRun run(kFastLink);
    run.add({"pcc-allegro", "loss-resilient", {}});
    run.run_until(5000);
    run.link().loss_probability = loss;
    run.run_until(50000);
    const double rate = static_cast<double>(run.run_until(60000)[0].delivered) / 10000;
    EXPECT_GT(rate, 0.9 * (1 - loss) * 8.33);
  }
}

TEST(PccAllegro, LatencyUtilityQueuesLess) {
  const auto rtt_ms = [](const char* variant) {
    OneLinkRun run(kFastLink);
    run.add({"pcc-allegro", variant, {}});
    run.run_until(20000);
    return run.run_until(80000)[0].mean_rtt_ms();
  };
  EXPECT_LT(rtt_ms("latency"), rtt_ms("safe") - 5);
}

// No ACKs arrive for a while; then the link works as before.
TEST(PccAllegro, RecoversAfterALinkOutage) {
  OneLinkRun run(kFastLink);
  run.add(kSafe);
  run.run_until(5000);
  run.link().loss_probability = 1;
  run.run_until(15000);
  EXPECT_GT(run.counts(0).timeouts, 1U);
  run.link().loss_probability = 0;
  const auto rate_until = [&](double end_ms) {
    return static_cast<double>(run.run_until(end_ms)[0].delivered) / 10000;
  };
  const double at_first = rate_until(25000);
  run.run_until(105000);
  EXPECT_GT(rate_until(115000), 3 * at_first);
}

}  // namespace
}  // namespace remy
