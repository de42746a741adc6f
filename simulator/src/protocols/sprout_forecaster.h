#pragma once

#include <array>
#include <cstddef>

namespace remy {

// Sprout's probabilistic model of a link (Winstein, Sivaraman and Balakrishnan, NSDI 2013, section
// 3). Packets arrive as a Poisson process whose rate follows a Brownian motion between 0 and 1000
// packets/s. A rate near 0 is an outage, in which the rate tends to stay. The belief is a
// probability distribution over 256 rates; time advances in ticks of 20 ms.
class SproutForecaster {
 public:
  static constexpr std::size_t kBins = 256;
  static constexpr double kTickMs = 20;
  static constexpr std::size_t kForecastTicks = 8;
  // Larger counts of arrivals in a tick are treated as this one.
  static constexpr std::size_t kMaxArrivals = 30;

  static constexpr double kMaxRatePerMs = 1;
  static constexpr double kDeviationPerRootSecond = 0.2;  // of the rate, in packets per ms
  static constexpr double kOutageEscapesPerSecond = 1;

  using Belief = std::array<double, kBins>;

  SproutForecaster();

  // Resets the belief to the uniform distribution.
  void reset();
  // Advances the belief by one tick of Brownian motion.
  void evolve();
  // Updates the belief with the arrivals of a tick, in which packets waited for the link during
  // waited_ms. The link had nothing to deliver in the rest of the tick.
  void observe(std::size_t arrivals, double waited_ms = kTickMs);
  // Returns the smallest count of packets that the arrivals in the next `ticks` (0 to 8) do not
  // exceed with at least this probability.
  std::size_t forecast(std::size_t ticks, double probability) const;
  // Returns the probability that at most `packets` arrive in the next `ticks`.
  double probability_of_at_most(std::size_t packets, std::size_t ticks) const;

  const Belief& belief() const { return belief_; }
  // The rate at the middle of a bin.
  static constexpr double rate_per_ms(std::size_t bin) {
    return (static_cast<double>(bin) + 0.5) * kMaxRatePerMs / kBins;
  }

 private:
  Belief belief_;
};

}  // namespace remy
