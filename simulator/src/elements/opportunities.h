#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace remy {

// A recording of a link: the times at which it could deliver. Shared by all links that follow it.
class Trace {
 public:
  // Times are since the start and must not decrease. Throws std::invalid_argument if there is none,
  // one precedes its predecessor, or all are 0.
  explicit Trace(std::vector<double> opportunities_ms);

  const std::vector<double>& opportunities_ms() const { return opportunities_ms_; }
  double last_ms() const { return opportunities_ms_.back(); }

 private:
  std::vector<double> opportunities_ms_;
};

// A model of a cellular link (Winstein, Sivaraman and Balakrishnan 2013, "Stochastic Forecasts
// Achieve High Throughput and Low Delay over Cellular Networks", section 3.1). Delivery
// opportunities are a Poisson process whose rate is a Brownian motion reflected at a maximum. When
// the rate reaches 0 an outage begins, after which the rate continues from 0. The rate is constant
// during a tick; its initial value is uniform. In the authors' model of a link, outages end at a
// rate of 1/s and the rate's standard deviation is 200 packets/s after one second.
struct TraceGenerator {
  double maximum_packets_per_s = 1000;
  double volatility_packets_per_s = 200;  // standard deviation of the rate's change in one second
  double outage_escape_per_s = 1;         // inverse of the mean outage duration
  double tick_ms = 20;
  std::optional<std::uint64_t> seed = {};  // none: each network draws its own
};

// The origin of delivery opportunities.
using OpportunitySource = std::variant<std::shared_ptr<const Trace>, TraceGenerator>;

// A sequence of delivery opportunities. Times do not decrease; after the last one the time is
// infinity.
class Opportunities {
 public:
  // With `ends` false a trace repeats from its last opportunity: opportunity n of repetition r is
  // at r * last_ms() + opportunities_ms()[n]. `key` is that of a generator's random draws.
  Opportunities(const OpportunitySource& source, bool ends, std::uint64_t key);
  Opportunities(Opportunities&&) = default;
  Opportunities& operator=(Opportunities&&) = default;

  double next_ms() const { return base_ms_ + *next_; }
  void use() {
    if (++next_ == end_) [[unlikely]] {
      refill(0);
    }
  }
  // Skips opportunities before a time (skip_before), or before or at it (skip_until).
  void skip_before(double time_ms) {
    while (next_ms() < time_ms) {
      skip(time_ms);
    }
  }
  void skip_until(double time_ms) {
    while (next_ms() <= time_ms) {
      skip(time_ms);
    }
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void skip(double time_ms) {
    if (++next_ == end_) [[unlikely]] {
      refill(time_ms);
    }
  }
  // Loads further opportunities. May leave out repetitions that end before time_ms.
  void refill(double time_ms);
  void generate();

  std::shared_ptr<const Trace> trace_;
  std::optional<TraceGenerator> generator_;
  bool ends_;
  std::uint64_t key_;
  // The loaded opportunities, relative to base_ms_.
  const double* next_ = nullptr;
  const double* end_ = nullptr;
  double base_ms_ = 0;
  std::uint64_t repetitions_ = 0;
  std::vector<double> generated_;
  // State of a generator: the time, the rate of this tick, and the integral of the rate up to the
  // next opportunity (an exponential variate).
  double now_ms_ = 0;
  double rate_per_ms_ = 0;
  double until_next_opportunity_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t opportunity_ = 0;
};

// Long-term rate of opportunities per ms.
double mean_rate_per_ms(const OpportunitySource& source);

// Throws std::invalid_argument if the trace is null or a generator's number is out of range.
// `field` names the source in the message.
void validate(const OpportunitySource& source, const std::string& field);

}  // namespace remy
