#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "protocols/one_link.h"

namespace remy {
namespace {

const Choice kVivace = {"pcc-vivace", "", {}};
const OneLink kFastLink = {.rate_packets_per_ms = 8.33, .rtt_ms = 30, .buffer_packets = 250};

TEST(PccVivace, FillsALinkWithoutAQueue) {
  OneLinkRun run(kFastLink);
  run.add(kVivace);
  run.run_until(20000);
  const auto counts = run.run_until(60000);
  EXPECT_GT(static_cast<double>(counts[0].delivered) / 40000, 0.9 * 8.33);
  EXPECT_LT(counts[0].mean_rtt_ms(), 32);
  EXPECT_LT(counts[0].loss_rate(), 1e-3);
}

TEST(PccVivace, SendersConvergeToEqualShares) {
  for (const std::size_t senders : {std::size_t{2}, std::size_t{4}}) {
    OneLinkRun run(kFastLink);
    for (std::size_t i = 0; i < senders; ++i) {
      run.add(kVivace, 3000.0 * static_cast<double>(i));
    }
    run.run_until(60000);
    const auto counts = run.run_until(260000);
    const double share = 8.33 / static_cast<double>(senders);
    for (const auto& flow : counts) {
      EXPECT_NEAR(static_cast<double>(flow.delivered) / 200000, share, 0.12 * share);
    }
  }
}

// The RTT grows independently of the sending rate.
TEST(PccVivace, IgnoresRttGradientsBelowOnePercent) {
  const auto rate_at = [](double slope, double least_slope) {
    OneLinkRun run({.rate_packets_per_ms = 20, .rtt_ms = 30, .buffer_packets = 1000});
    run.add({"pcc-vivace", "", {{"least_slope", least_slope}}});
    run.jitter_ms = [slope](double now_ms) { return slope * now_ms; };
    run.run_until(8000);
    return static_cast<double>(run.run_until(10000)[0].delivered) / 2000;
  };
  EXPECT_GT(rate_at(0, 0.01), 0.9 * 20);
  EXPECT_GT(rate_at(0.008, 0.01), 0.85 * 20);
  EXPECT_LT(rate_at(0.02, 0.01), 0.2 * 20);
  EXPECT_LT(rate_at(0.008, 0.004), 0.2 * 20);
}

// The derivative of x^0.9 - 11.35 x L is zero at L = 0.9 / (11.35 x^0.1), which is 5.0 % at 100
// Mbit/s.
TEST(PccVivace, ToleratesLossUpToFivePercent) {
  const auto rate_at = [](double loss) {
    OneLinkRun run(kFastLink);
    run.add(kVivace);
    run.run_until(10000);
    run.link().loss_probability = loss;
    run.run_until(60000);
    return static_cast<double>(run.run_until(90000)[0].delivered) / 30000;
  };
  EXPECT_GT(rate_at(0.03), 0.7 * 0.97 * 8.33);
  EXPECT_LT(rate_at(0.1), 0.3 * 0.9 * 8.33);
}

TEST(PccVivace, TriesFivePercentAboveAndBelow) {
  OneLinkRun run(kFastLink);
  run.add(kVivace);
  run.run_until(20000);
  std::vector<double> rates;
  run.observer = [&](std::size_t) {
    const double rate = 1 / run.controller(0).pacing_interval_ms();
    if (rates.empty() || rate != rates.back()) {
      rates.push_back(rate);
    }
  };
  run.run_until(30000);
  // The two trials of a pair in either order, then the base rate while results are pending.
  std::size_t pairs = 0;
  std::size_t up_first = 0;
  for (std::size_t i = 0; i + 2 < rates.size(); ++i) {
    const double middle = rates[i + 2];
    if (std::fabs(rates[i] + rates[i + 1] - 2 * middle) < 1e-9 * middle) {
      ++pairs;
      up_first += rates[i] > middle ? 1 : 0;
      EXPECT_NEAR(std::fabs(rates[i] / middle - 1), 0.05, 1e-9);
    }
  }
  EXPECT_GT(pairs, 60U);
  EXPECT_NEAR(static_cast<double>(up_first) / static_cast<double>(pairs), 0.5, 0.2);
}

}  // namespace
}  // namespace remy
