#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/elementary.h"
#include "protocols/one_link.h"
#include "protocols/sprout_forecaster.h"

namespace remy {
namespace {

using Forecaster = SproutForecaster;

// A sequence of uniform draws.
class RandomDraws {
 public:
  explicit RandomDraws(std::uint64_t key) : key_(key) {}
  double uniform() { return unit_interval(random_bits(key_, next_++)); }
  double gaussian() { return normal(key_ ^ 0x9a55, next_++); }
  // Counts the events of a Poisson process in a unit of time.
  std::size_t poisson(double mean) {
    std::size_t count = 0;
    for (double product = uniform(); product > exponential(-mean); product *= uniform()) {
      ++count;
    }
    return count;
  }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 0;
};

std::size_t bin_of(double rate_per_ms) {
  const double bin = std::floor(rate_per_ms * Forecaster::kBins / Forecaster::kMaxRatePerMs);
  return static_cast<std::size_t>(std::clamp(bin, 0.0, Forecaster::kBins - 1.0));
}

// Draws one tick of the model.
std::size_t step(std::size_t bin, RandomDraws& draws) {
  const double deviation =
      Forecaster::kDeviationPerRootSecond * std::sqrt(Forecaster::kTickMs / 1000);
  const double stays = exponential(-Forecaster::kOutageEscapesPerSecond * 0.020);
  if (bin == 0 && draws.uniform() < stays) {
    return 0;
  }
  for (;;) {
    const std::size_t next = bin_of(Forecaster::rate_per_ms(bin) + deviation * draws.gaussian());
    if (bin != 0 || next != 0) {
      return next;
    }
  }
}

std::size_t arrivals_at(std::size_t bin, RandomDraws& draws) {
  return std::min(draws.poisson(Forecaster::rate_per_ms(bin) * Forecaster::kTickMs),
                  Forecaster::kMaxArrivals);
}

std::size_t mode_of(const Forecaster& forecaster) {
  return static_cast<std::size_t>(std::ranges::max_element(forecaster.belief()) -
                                  forecaster.belief().begin());
}

double mean_rate_of(const Forecaster& forecaster) {
  double mean = 0;
  for (std::size_t bin = 0; bin < Forecaster::kBins; ++bin) {
    mean += forecaster.belief()[bin] * Forecaster::rate_per_ms(bin);
  }
  return mean;
}

// Poisson input of 500 packets/s. The belief follows the latest arrivals, since the rate may change
// by 200 packets/s in a second; so the test averages the posterior.
TEST(SproutForecaster, FindsTheRateOfItsInput) {
  Forecaster forecaster;
  RandomDraws draws(1);
  Forecaster::Belief average{};
  for (int tick = 0; tick < 40000; ++tick) {
    forecaster.evolve();
    forecaster.observe(draws.poisson(0.5 * Forecaster::kTickMs));
    if (tick >= 100) {
      for (std::size_t bin = 0; bin < Forecaster::kBins; ++bin) {
        average[bin] += forecaster.belief()[bin];
      }
    }
  }
  const auto mode = std::ranges::max_element(average) - average.begin();
  EXPECT_NEAR(static_cast<double>(mode), static_cast<double>(bin_of(0.5)), 1);
}

// A constant ten packets per tick, without noise.
TEST(SproutForecaster, IsCertainOfAnEvenRate) {
  for (const std::size_t arrivals : {std::size_t{2}, std::size_t{10}, std::size_t{16}}) {
    Forecaster forecaster;
    for (int tick = 0; tick < 500; ++tick) {
      forecaster.evolve();
      forecaster.observe(arrivals);
    }
    const double rate = static_cast<double>(arrivals) / Forecaster::kTickMs;
    EXPECT_NEAR(static_cast<double>(mode_of(forecaster)), static_cast<double>(bin_of(rate)), 1);
  }
}

TEST(SproutForecaster, BeliefStaysAProbabilityDistribution) {
  Forecaster forecaster;
  RandomDraws draws(2);
  for (int tick = 0; tick < 3000; ++tick) {
    forecaster.evolve();
    if (draws.uniform() < 0.7) {
      forecaster.observe(static_cast<std::size_t>(50 * draws.uniform() * draws.uniform()));
    }
    const double sum = std::accumulate(forecaster.belief().begin(), forecaster.belief().end(), 0.0);
    ASSERT_NEAR(sum, 1, 1e-12);
    ASSERT_GE(std::ranges::min(forecaster.belief()), 0);
  }
}

// For a Poisson process only the count and the observed time matter: half the packets in half the
// time indicate the same rate, a packet without observed time only that the rate is not 0, and time
// without packets a lower rate.
TEST(SproutForecaster, LearnsOnlyFromTheTimeInWhichPacketsWaited) {
  const auto mode_after = [](std::size_t arrivals, double waited_ms) {
    Forecaster forecaster;
    for (int tick = 0; tick < 20; ++tick) {
      forecaster.observe(arrivals, waited_ms);
    }
    return static_cast<double>(mode_of(forecaster));
  };
  EXPECT_NEAR(mode_after(10, 20), static_cast<double>(bin_of(0.5)), 1);
  EXPECT_NEAR(mode_after(5, 10), static_cast<double>(bin_of(0.5)), 1);
  EXPECT_NEAR(mode_after(1, 2), static_cast<double>(bin_of(0.5)), 1);
  EXPECT_EQ(mode_after(1, 0), Forecaster::kBins - 1.0);
  EXPECT_EQ(mode_after(0, 2), 0);
  Forecaster forecaster;
  forecaster.observe(0, 0);
  for (const double probability : forecaster.belief()) {
    EXPECT_NEAR(probability, 1.0 / Forecaster::kBins, 1e-15);
  }
}

// Compares forecasts with a direct simulation of the model, starting from the belief after some
// observations.
class SproutForecasts : public testing::TestWithParam<std::vector<std::size_t>> {};

TEST_P(SproutForecasts, MatchAMonteCarloSimulationOfTheModel) {
  Forecaster forecaster;
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (const std::size_t arrivals : GetParam()) {
      forecaster.evolve();
      forecaster.observe(arrivals);
    }
  }
  constexpr std::size_t kRuns = 100'000;
  std::vector<std::vector<std::size_t>> counts(
      Forecaster::kForecastTicks + 1,
      std::vector<std::size_t>(Forecaster::kForecastTicks * Forecaster::kMaxArrivals + 1));
  std::array<double, Forecaster::kBins> cumulative{};
  std::partial_sum(forecaster.belief().begin(), forecaster.belief().end(), cumulative.begin());
  RandomDraws draws(3);
  for (std::size_t run = 0; run < kRuns; ++run) {
    auto bin = static_cast<std::size_t>(std::ranges::lower_bound(cumulative, draws.uniform()) -
                                        cumulative.begin());
    bin = std::min(bin, Forecaster::kBins - 1);
    std::size_t packets = 0;
    for (std::size_t tick = 1; tick <= Forecaster::kForecastTicks; ++tick) {
      bin = step(bin, draws);
      packets += arrivals_at(bin, draws);
      ++counts[tick][packets];
    }
  }
  for (std::size_t ticks = 1; ticks <= Forecaster::kForecastTicks; ++ticks) {
    std::size_t at_most = 0;
    std::size_t quantile = 0;
    for (std::size_t packets = 0; packets < counts[ticks].size(); ++packets) {
      at_most += counts[ticks][packets];
      const double share = static_cast<double>(at_most) / kRuns;
      quantile += share < 0.05 ? 1 : 0;
      ASSERT_NEAR(forecaster.probability_of_at_most(packets, ticks), share, 0.01);
    }
    EXPECT_NEAR(static_cast<double>(forecaster.forecast(ticks, 0.05)),
                static_cast<double>(quantile), std::max(1.0, 0.01 * static_cast<double>(quantile)));
  }
}

INSTANTIATE_TEST_SUITE_P(Arrivals, SproutForecasts,
                         testing::Values(std::vector<std::size_t>{10}, std::vector<std::size_t>{2},
                                         std::vector<std::size_t>{0},
                                         std::vector<std::size_t>{5, 0, 14, 9},
                                         std::vector<std::size_t>{19, 24}));

TEST(SproutForecaster, ForecastGrowsWithTicksAndRisk) {
  Forecaster forecaster;
  for (int tick = 0; tick < 50; ++tick) {
    forecaster.evolve();
    forecaster.observe(10);
  }
  for (std::size_t ticks = 1; ticks <= Forecaster::kForecastTicks; ++ticks) {
    EXPECT_GE(forecaster.forecast(ticks, 0.05), forecaster.forecast(ticks - 1, 0.05));
    EXPECT_LE(forecaster.forecast(ticks, 0.05), forecaster.forecast(ticks, 0.5));
    // The median forecast is about the mean, apart from the belief's asymmetry.
    EXPECT_NEAR(static_cast<double>(forecaster.forecast(ticks, 0.5)),
                10.0 * static_cast<double>(ticks), 1.0 + 0.5 * static_cast<double>(ticks));
  }
  EXPECT_EQ(forecaster.forecast(0, 0.05), 0U);
}

// A second without packets indicates an outage, from which recovery takes a second, too.
TEST(SproutForecaster, RecognizesOutages) {
  Forecaster forecaster;
  const auto observe = [&](int ticks, std::size_t arrivals) {
    for (int tick = 0; tick < ticks; ++tick) {
      forecaster.evolve();
      forecaster.observe(arrivals);
    }
  };
  observe(100, 10);
  EXPECT_GT(forecaster.forecast(5, 0.05), 30U);
  observe(50, 0);
  EXPECT_EQ(forecaster.forecast(8, 0.05), 0U);
  EXPECT_GT(forecaster.belief()[0], 0.3);
  EXPECT_LT(mean_rate_of(forecaster), 0.03);
  observe(50, 10);
  EXPECT_GT(forecaster.forecast(5, 0.05), 30U);
}

TEST(Sprout, KeepsAQueueThatDrainsIn100Ms) {
  // 40 ms and the rates of the paper.
  for (const double rate : {0.2, 0.5, 0.8}) {
    OneLinkRun run({.rate_packets_per_ms = rate, .rtt_ms = 40});
    run.add({"sprout", "", {}});
    run.run_until(5000);
    const auto counts = run.run_until(25000);
    EXPECT_GT(static_cast<double>(counts[0].delivered) / 20000, 0.9 * rate) << rate;
    EXPECT_LT(counts[0].mean_rtt_ms(), 40 + 100) << rate;
  }
}

// A radio link delivers in batches, so that one part of a flight may arrive before the end of a
// tick and the rest after it, although the link could have carried more. Neither part may count as
// the link's capacity, or a small window would stay small.
TEST(Sprout, FindsTheRateOfALinkThatDeliversInBatches) {
  constexpr double kLongestGapMs = 40;
  for (const std::uint64_t key : {1, 2, 3}) {
    std::vector<double> batches_ms{0};
    while (batches_ms.back() < 25000) {
      const double gap_ms = kLongestGapMs * unit_interval(random_bits(key, batches_ms.size() - 1));
      batches_ms.push_back(batches_ms.back() + gap_ms);
    }
    for (const double slow : {0.02, 0.05, 0.1}) {
      OneLinkRun run({.rate_packets_per_ms = slow, .rtt_ms = 40});
      run.add({"sprout", "", {}});
      run.jitter_ms = [&](double now_ms) {
        return *std::ranges::lower_bound(batches_ms, now_ms) - now_ms;
      };
      run.run_until(2000);
      run.link().rate_packets_per_ms = 0.6;
      run.run_until(10000);
      EXPECT_GT(static_cast<double>(run.run_until(20000)[0].delivered) / 10000, 0.5 * 0.6)
          << slow << " before, key " << key;
    }
  }
}

// A higher risk gives more throughput on long paths, and more delay if the path is full.
TEST(Sprout, SendsMoreWithMoreRisk) {
  const auto run_with = [](double risk, double rtt_ms) {
    OneLinkRun run({.rate_packets_per_ms = 0.4, .rtt_ms = rtt_ms});
    run.add({"sprout", "", {{"risk", risk}}});
    run.run_until(5000);
    return run.run_until(35000)[0];
  };
  EXPECT_GT(static_cast<double>(run_with(0.5, 100).delivered),
            1.3 * static_cast<double>(run_with(0.05, 100).delivered));
  EXPECT_GT(run_with(0.5, 40).mean_rtt_ms(), 1.5 * run_with(0.05, 40).mean_rtt_ms());
}

// Without ACKs it sends a packet now and then, and recovers soon after the link does.
TEST(Sprout, RecoversAfterAnOutage) {
  OneLinkRun run({.rate_packets_per_ms = 0.5, .rtt_ms = 40});
  run.add({"sprout", "", {}});
  run.run_until(5000);
  run.link().loss_probability = 1;
  run.run_until(7000);
  EXPECT_LE(run.controller(0).cwnd(), 10);
  run.link().loss_probability = 0;
  run.run_until(10000);
  EXPECT_GT(static_cast<double>(run.run_until(12000)[0].delivered) / 2000, 0.85 * 0.5);
}

}  // namespace
}  // namespace remy
