#include "protocols/sprout_forecaster.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/elementary.h"

namespace remy {

namespace {

constexpr std::size_t kBins = SproutForecaster::kBins;
constexpr std::size_t kTicks = SproutForecaster::kForecastTicks;
constexpr std::size_t kMaxArrivals = SproutForecaster::kMaxArrivals;
constexpr std::size_t kArrivalCounts = kMaxArrivals + 1;

using Row = std::array<double, kBins>;  // over rates

// Precomputed tables of the model. They use core/elementary.h, so they are the same on every
// machine.
class Tables {
 public:
  Tables() : arrivals_(kArrivalCounts), forecasts_(kTicks) {
    compute_steps();
    compute_arrivals();
    compute_forecasts();
  }

  // Transition probabilities of one tick: weights[i] is the probability of moving from the given
  // rate to rate first + i.
  struct Step {
    std::size_t first = 0;
    std::size_t end = 0;
    std::array<double, 80> weights{};
  };
  const Step& step(std::size_t from) const { return steps_[from]; }

  // The probability of `count` arrivals in a tick, for each rate.
  const Row& arrivals(std::size_t count) const { return arrivals_[count]; }

  // The probability of at most `packets` arrivals in the next ticks, for each current rate.
  const Row& at_most(std::size_t packets, std::size_t ticks) const {
    return forecasts_[ticks - 1][packets];
  }

 private:
  // Brownian motion, truncated at five standard deviations. The outage bin is left at the rate of
  // kOutageEscapesPerSecond.
  void compute_steps() {
    const double deviation = SproutForecaster::kDeviationPerRootSecond *
                             std::sqrt(SproutForecaster::kTickMs / 1000) /
                             SproutForecaster::kMaxRatePerMs * kBins;  // in bins
    const auto reach = static_cast<std::size_t>(std::ceil(5 * deviation));
    for (std::size_t from = 0; from < kBins; ++from) {
      Step& step = steps_[from];
      step.first = from > reach ? from - reach : 0;
      step.end = std::min(from + reach + 1, kBins);
      double sum = 0;
      for (std::size_t to = step.first; to < step.end; ++to) {
        const double distance = static_cast<double>(to) - static_cast<double>(from);
        // Probability beyond the range accumulates in its first and last bin.
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
    const double stay_probability =
        exponential(-SproutForecaster::kOutageEscapesPerSecond * SproutForecaster::kTickMs / 1000);
    Step& outage = steps_[0];
    const double leave_weight = 1 - outage.weights[0];
    outage.weights[0] = stay_probability;
    for (std::size_t to = 1; to < outage.end; ++to) {
      outage.weights[to] *= (1 - stay_probability) / leave_weight;
    }
  }

  void compute_arrivals() {
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      const double mean = SproutForecaster::rate_per_ms(bin) * SproutForecaster::kTickMs;
      double probability = exponential(-mean);
      double rest = 1;
      for (std::size_t count = 0; count < kMaxArrivals; ++count) {
        arrivals_[count][bin] = probability;
        rest = std::max(rest - probability, 0.0);
        probability *= mean / static_cast<double>(count + 1);
      }
      arrivals_[kMaxArrivals][bin] = rest;
    }
  }

  // P(at most c arrivals in n ticks): sums over the next rate and the arrivals of the first tick,
  // with P(at most the rest in n - 1 ticks).
  void compute_forecasts() {
    for (std::size_t n = 0; n < kTicks; ++n) {
      std::vector<Row>& forecast = forecasts_[n];
      forecast.resize(kMaxArrivals * (n + 1) + 1);
      for (std::size_t packets = 0; packets < forecast.size(); ++packets) {
        Row after_step{};
        for (std::size_t count = 0; count <= std::min(packets, kMaxArrivals); ++count) {
          // At most kMaxArrivals n arrivals are possible in n ticks.
          if (n == 0 || packets - count >= kMaxArrivals * n) {
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

SproutForecaster::SproutForecaster() { reset(); }

void SproutForecaster::reset() { belief_.fill(1.0 / kBins); }

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

// Likelihood of a Poisson process with rate r observed for waited_ms: proportional to r^arrivals
// exp(-r waited_ms), which is the whole tick's likelihood times exp(r (kTickMs - waited_ms)).
void SproutForecaster::observe(std::size_t arrivals, double waited_ms) {
  const Row& whole_tick_likelihood = tables().arrivals(std::min(arrivals, kMaxArrivals));
  const double rest_ms = std::max(kTickMs - waited_ms, 0.0);
  double sum = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    belief_[bin] *= whole_tick_likelihood[bin] * exponential(rate_per_ms(bin) * rest_ms);
    sum += belief_[bin];
  }
  for (double& probability : belief_) {
    probability /= sum;
  }
}

double SproutForecaster::probability_of_at_most(std::size_t packets, std::size_t ticks) const {
  if (packets >= kMaxArrivals * ticks) {
    return 1;
  }
  const Row& probabilities = tables().at_most(packets, ticks);
  double sum = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    sum += belief_[bin] * probabilities[bin];
  }
  return sum;
}

std::size_t SproutForecaster::forecast(std::size_t ticks, double probability) const {
  std::size_t least = 0;
  std::size_t most = kMaxArrivals * ticks;
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
