#pragma once

#include <array>
#include <cstddef>

namespace remy {

// What Sprout believes of a link, and forecasts (Winstein, Sivaraman and Balakrishnan, NSDI 2013,
// section 3): packets arrive as a Poisson process whose rate wanders as a Brownian motion between 0
// and 1000 packets/s, and which once near 0, in an outage, tends to stay there. A belief is a
// probability of each of 256 rates; time goes in ticks of 20 ms.
class SproutForecaster {
 public:
  static constexpr std::size_t kBins = 256;
  static constexpr double kTickMs = 20;
  static constexpr std::size_t kForecastTicks = 8;
  // More are not told apart.
  static constexpr std::size_t kMostArrivals = 30;

  static constexpr double kLargestRatePerMs = 1;
  static constexpr double kDeviationPerRootSecond = 0.2;  // of the rate, in packets a ms
  static constexpr double kOutageEscapesPerSecond = 1;

  using Belief = std::array<double, kBins>;

  SproutForecaster();

  // All rates are as likely.
  void forget();
  // A tick passes.
  void evolve();
  // So many packets arrived in the tick, and in so much of it packets waited for the link: in the
  // rest of it there was nothing to deliver.
  void observe(std::size_t arrivals, double waited_ms = kTickMs);
  // The least count that is not exceeded with this probability in so many ticks from now, 0 to 8.
  std::size_t forecast(std::size_t ticks, double probability) const;
  // That of no more than so many packets.
  double probability_of_at_most(std::size_t packets, std::size_t ticks) const;

  const Belief& belief() const { return belief_; }
  // The middle of a bin.
  static constexpr double rate_per_ms(std::size_t bin) {
    return (static_cast<double>(bin) + 0.5) * kLargestRatePerMs / kBins;
  }

 private:
  Belief belief_;
};

}  // namespace remy
