#include "protocols/sprout_forecaster.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/elementary.h"

namespace remy {

namespace {

constexpr std::size_t kBins = SproutForecaster::kBins;
constexpr std::size_t kTicks = SproutForecaster::kForecastTicks;
constexpr std::size_t kMostArrivals = SproutForecaster::kMostArrivals;
constexpr std::size_t kCounts = kMostArrivals + 1;

using Row = std::array<double, kBins>;  // over rates

// The model's tables. Computed once, of our own elementary functions, hence the same everywhere.
class Tables {
 public:
  Tables() : arrivals_(kCounts), forecasts_(kTicks) {
    compute_steps();
    compute_arrivals();
    compute_forecasts();
  }

  // Of a tick from one rate to another: the probability from `from` to first + i is weight i.
  struct Step {
    std::size_t first = 0;
    std::size_t end = 0;
    std::array<double, 80> weights{};
  };
  const Step& step(std::size_t from) const { return steps_[from]; }

  // Of so many arrivals in a tick, at each rate.
  const Row& arrivals(std::size_t count) const { return arrivals_[count]; }

  // Of no more than `packets` in the next ticks, at each rate now.
  const Row& at_most(std::size_t packets, std::size_t ticks) const {
    return forecasts_[ticks - 1][packets];
  }

 private:
  // Brownian motion, cut off at five standard deviations; and of an outage, which its bin is left
  // from once a second.
  void compute_steps() {
    const double deviation = SproutForecaster::kDeviationPerRootSecond *
                             std::sqrt(SproutForecaster::kTickMs / 1000) /
                             SproutForecaster::kLargestRatePerMs * kBins;  // in bins
    const auto reach = static_cast<std::size_t>(std::ceil(5 * deviation));
    for (std::size_t from = 0; from < kBins; ++from) {
      Step& step = steps_[from];
      step.first = from > reach ? from - reach : 0;
      step.end = std::min(from + reach + 1, kBins);
      double sum = 0;
      for (std::size_t to = step.first; to < step.end; ++to) {
        const double distance = static_cast<double>(to) - static_cast<double>(from);
        // What would leave the range stays in the bin at its end.
        const double below = to == 0 ? 0 : normal_distribution((distance - 0.5) / deviation);
        const double above =
            to == kBins - 1 ? 1 : normal_distribution((distance + 0.5) / deviation);
        step.weights[to - step.first] = above - below;
        sum += above - below;
      }
      for (double& weight : step.weights) {
        weight /= sum;
      }
    }
    const double stays =
        exponential(-SproutForecaster::kOutageEscapesPerSecond * SproutForecaster::kTickMs / 1000);
    Step& outage = steps_[0];
    const double leaves = 1 - outage.weights[0];
    outage.weights[0] = stays;
    for (std::size_t to = 1; to < outage.end; ++to) {
      outage.weights[to] *= (1 - stays) / leaves;
    }
  }

  void compute_arrivals() {
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double mean = SproutForecaster::rate_per_ms(bin) * SproutForecaster::kTickMs;
      double probability = exponential(-mean);
      double rest = 1;
      for (std::size_t count = 0; count < kMostArrivals; ++count) {
        arrivals_[count][bin] = probability;
        rest = std::max(rest - probability, 0.0);
        probability *= mean / static_cast<double>(count + 1);
      }
      arrivals_[kMostArrivals][bin] = rest;
    }
  }

  // At most c in n ticks: over the rates that a step leads to and what arrives there, at most what
  // is left of c in n - 1 ticks.
  void compute_forecasts() {
    for (std::size_t n = 0; n < kTicks; ++n) {
      std::vector<Row>& forecast = forecasts_[n];
      forecast.resize(kMostArrivals * (n + 1) + 1);
      for (std::size_t packets = 0; packets < forecast.size(); ++packets) {
        Row after_step{};
        for (std::size_t count = 0; count <= std::min(packets, kMostArrivals); ++count) {
          // Of n ticks no more than 30 n are possible.
          if (n == 0 || packets - count >= kMostArrivals * n) {
            for (std::size_t bin = 0; bin < kBins; ++bin) {
              after_step[bin] += arrivals_[count][bin];
            }
            continue;
          }
          const Row& before = forecasts_[n - 1][packets - count];
          for (std::size_t bin = 0; bin < kBins; ++bin) {
            after_step[bin] += arrivals_[count][bin] * before[bin];
          }
        }
        for (std::size_t bin = 0; bin < kBins; ++bin) {
          const Step& step = steps_[bin];
          double sum = 0;
          for (std::size_t to = step.first; to < step.end; ++to) {
            sum += step.weights[to - step.first] * after_step[to];
          }
          forecast[packets][bin] = sum;
        }
      }
    }
  }

  std::array<Step, kBins> steps_;
  std::vector<Row> arrivals_;
  std::vector<std::vector<Row>> forecasts_;
};

const Tables& tables() {
  static const Tables kTables;
  return kTables;
}

}  // namespace

SproutForecaster::SproutForecaster() { forget(); }

void SproutForecaster::forget() { belief_.fill(1.0 / kBins); }

void SproutForecaster::evolve() {
  Belief evolved{};
  for (std::size_t from = 0; from < kBins; ++from) {
    const Tables::Step& step = tables().step(from);
    const double probability = belief_[from];
    for (std::size_t to = step.first; to < step.end; ++to) {
      evolved[to] += probability * step.weights[to - step.first];
    }
  }
  belief_ = evolved;
}

// A Poisson process of rate r that is seen for a part of the tick: r to the count, times
// exp(-r x that part), which is as of the whole tick times exp(r x the rest).
void SproutForecaster::observe(std::size_t arrivals, double waited_ms) {
  const Row& of_whole_ticks = tables().arrivals(std::min(arrivals, kMostArrivals));
  const double rest_ms = std::max(kTickMs - waited_ms, 0.0);
  double sum = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    belief_[bin] *= of_whole_ticks[bin] * exponential(rate_per_ms(bin) * rest_ms);
    sum += belief_[bin];
  }
  for (double& probability : belief_) {
    probability /= sum;
  }
}

double SproutForecaster::probability_of_at_most(std::size_t packets, std::size_t ticks) const {
  if (packets >= kMostArrivals * ticks) {
    return 1;
  }
  const Row& of_rates = tables().at_most(packets, ticks);
  double sum = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    sum += belief_[bin] * of_rates[bin];
  }
  return sum;
}

std::size_t SproutForecaster::forecast(std::size_t ticks, double probability) const {
  std::size_t least = 0;
  std::size_t most = kMostArrivals * ticks;
  while (least < most) {
    const std::size_t middle = (least + most) / 2;
    if (probability_of_at_most(middle, ticks) >= probability) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return least;
}

}  // namespace remy
