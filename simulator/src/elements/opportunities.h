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

// A recording of a link: when it could deliver. Shared by all who follow it.
class Trace {
 public:
  // From the start; never falling. Throws std::invalid_argument with one sentence if there is none,
  // one is before the one before it, or all are at 0.
  explicit Trace(std::vector<double> opportunities_ms);

  const std::vector<double>& opportunities_ms() const { return opportunities_ms_; }
  double last_ms() const { return opportunities_ms_.back(); }

 private:
  std::vector<double> opportunities_ms_;
};

// A model of a cellular link (Winstein, Sivaraman and Balakrishnan 2013, "Stochastic Forecasts
// Achieve High Throughput and Low Delay over Cellular Networks", section 3.1): opportunities are a
// Poisson process whose rate is a Brownian motion, reflected at a maximum. Where the motion comes
// to 0, an outage begins, after which the rate goes on from 0. Between ticks the rate is constant;
// it begins anywhere. In its authors' model of a link an outage is left once a second, and the
// rate's deviation is 200 packets/s in a second.
struct TraceGenerator {
  double maximum_packets_per_s = 1000;
  double volatility_packets_per_s = 200;  // standard deviation of the change in a second
  double outage_escape_per_s = 1;         // 1 over an outage's mean
  double tick_ms = 20;
  std::optional<std::uint64_t> seed = {};  // none: every network has its own
};

// Where opportunities come from.
using OpportunitySource = std::variant<std::shared_ptr<const Trace>, TraceGenerator>;

// Opportunities to deliver, each later than the one before or at the same time; when there are no
// more, at infinity.
class Opportunities {
 public:
  // A trace that does not end begins again at its last opportunity: number n of the round r is at
  // r * last + opportunities_ms()[n]. `key` is of what a generator draws.
  Opportunities(const OpportunitySource& source, bool ends, std::uint64_t key);
  Opportunities(Opportunities&&) = default;
  Opportunities& operator=(Opportunities&&) = default;

  double next_ms() const { return base_ms_ + *next_; }
  void use() {
    if (++next_ == end_) [[unlikely]] {
      refill(0);
    }
  }
  // Lets those pass that are before a time, or also those that are at it.
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
  // All at hand are gone. Rounds may be left out that are over by a time.
  void refill(double time_ms);
  void generate();

  std::shared_ptr<const Trace> trace_;
  std::optional<TraceGenerator> generator_;
  bool ends_;
  std::uint64_t key_;
  // Those at hand, less base_ms_.
  const double* next_ = nullptr;
  const double* end_ = nullptr;
  double base_ms_ = 0;
  std::uint64_t rounds_ = 0;
  std::vector<double> generated_;
  // A generator's state: time, rate during the tick, what is left of the exponential variate that
  // the integral of the rate runs up to.
  double now_ms_ = 0;
  double rate_per_ms_ = 0;
  double left_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t opportunity_ = 0;
};

// Opportunities a ms over the long run.
double mean_rate_per_ms(const OpportunitySource& source);

// Throws std::invalid_argument with one sentence if there is no trace, or a generator's number is
// out of its range. `field` is what the sentence calls it.
void validate(const OpportunitySource& source, const std::string& field);

}  // namespace remy
