#include "senders/traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"
#include "core/random.h"
#include "core/requirement.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A lower bound of periods, so that a simulation has a bounded number of events.
constexpr double kShortestMs = 0.001;

double interpolate(const FlowQuantiles& quantiles, double u) {
  const auto next = std::ranges::upper_bound(quantiles, u, {}, &FlowQuantile::probability);
  if (next == quantiles.begin()) {
    return next->bytes;
  }
  const FlowQuantile& previous = *std::prev(next);
  if (next == quantiles.end()) {
    return previous.bytes;
  }
  return previous.bytes +
         (next->bytes - previous.bytes) *
             ((u - previous.probability) / (next->probability - previous.probability));
}

void validate(const EmpiricalBytes& empirical, const std::string& field) {
  const FlowQuantiles& quantiles = *empirical.quantiles;
  if (quantiles.empty()) {
    refuse(field + ".probabilities is empty but must have at least one entry");
  }
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const auto [probability, bytes] = quantiles[i];
    const std::string place = "[" + std::to_string(i) + "]";
    require(probability >= 0 && probability <= 1, field + ".probabilities" + place, probability,
            "from 0 to 1");
    require(is_not_negative(bytes), field + ".bytes" + place, bytes, kNotNegative);
    if (i > 0) {
      require(probability > quantiles[i - 1].probability, field + ".probabilities" + place,
              probability, "above the previous one");
      require(bytes >= quantiles[i - 1].bytes, field + ".bytes" + place, bytes,
              "at least the previous one");
    }
  }
  require(is_not_negative(empirical.extra_bytes), field + ".extra_bytes", empirical.extra_bytes,
          kNotNegative);
}

void validate(const Intervals& on, const std::string& field) {
  if (on.intervals.empty()) {
    refuse(field + ".begin_ms is empty but must have at least one entry");
  }
  double least_ms = 0;
  for (std::size_t i = 0; i < on.intervals.size(); ++i) {
    const auto [begin_ms, end_ms] = on.intervals[i];
    const std::string place = "[" + std::to_string(i) + "]";
    require(begin_ms >= least_ms && std::isfinite(begin_ms), field + ".begin_ms" + place, begin_ms,
            i == 0 ? "a number of at least 0" : "at least the end of the previous interval");
    require(end_ms - begin_ms >= kShortestMs, field + ".end_ms" + place, end_ms,
            "at least 0.001 above begin_ms");
    least_ms = end_ms;
  }
}

}  // namespace

double Schedule::exponential_variate(double mean, std::uint64_t counter) const {
  return -mean * natural_logarithm(open_unit_interval(random_bits(key_, counter)));
}

double Schedule::begins_ms(std::uint64_t period, double now_ms) {
  if (const auto* const on = std::get_if<Intervals>(&traffic_.on)) {
    return period < on->intervals.size() ? on->intervals[period].begin_ms : kNever;
  }
  const double first_ms = first_on_ms_.value_or(0);
  if (std::holds_alternative<Always>(traffic_.on) ||
      std::holds_alternative<Barrier>(traffic_.arrivals)) {
    return period == 0 ? first_ms : kNever;
  }
  if (const auto* const poisson = std::get_if<PoissonArrivals>(&traffic_.arrivals)) {
    has_arrivals_ = true;
    arrival_ms_ = period == 0 && first_on_ms_
                      ? first_ms
                      : arrival_ms_ + exponential_variate(poisson->mean_interval_ms, 2 * period);
    return std::max(arrival_ms_, now_ms);
  }
  if (const auto* const periodic = std::get_if<PeriodicArrivals>(&traffic_.arrivals)) {
    has_arrivals_ = true;
    arrival_ms_ = first_ms + static_cast<double>(period) * periodic->interval_ms;
    return std::max(arrival_ms_, now_ms);
  }
  if (period == 0 && first_on_ms_) {
    return first_ms;
  }
  const double off_ms = exponential_variate(traffic_.mean_off_ms, 2 * period);
  return now_ms + (period == 0 ? off_ms * traffic_.first_off_factor : off_ms);
}

double Schedule::ends_ms(std::uint64_t period, double now_ms) const {
  if (std::holds_alternative<Always>(traffic_.on)) {
    return kNever;
  }
  if (const auto* const on = std::get_if<Intervals>(&traffic_.on)) {
    return on->intervals[period].end_ms;
  }
  return now_ms +
         exponential_variate(std::get<ExponentialTime>(traffic_.on).mean_ms, 2 * period + 1);
}

std::uint64_t Schedule::on_packets(std::uint64_t period, double packet_bytes) const {
  double bytes = 0;
  if (const auto* const exponential = std::get_if<ExponentialBytes>(&traffic_.on)) {
    bytes = exponential_variate(exponential->mean_bytes, 2 * period + 1);
  } else if (const auto* const constant = std::get_if<ConstantBytes>(&traffic_.on)) {
    bytes = constant->bytes;
  } else if (const auto* const empirical = std::get_if<EmpiricalBytes>(&traffic_.on)) {
    const double u = unit_interval(random_bits(key_, 2 * period + 1));
    bytes = std::floor(interpolate(*empirical->quantiles, u) + 0.5) + empirical->extra_bytes;
  } else {
    const auto& pareto = std::get<ParetoBytes>(traffic_.on);
    const double u = open_unit_interval(random_bits(key_, 2 * period + 1));
    bytes = std::min(pareto.scale_bytes * power(u, -1 / pareto.shape) + pareto.shift_bytes,
                     pareto.maximum_bytes) +
            pareto.extra_bytes;
  }
  return static_cast<std::uint64_t>(std::clamp(std::ceil(bytes / packet_bytes), 1.0, 0x1p62));
}

void validate(const Traffic& traffic, const std::string& field) {
  const auto require_period = [&](double period_ms, const char* name) {
    require(period_ms >= kShortestMs && std::isfinite(period_ms), field + name, period_ms,
            "a number of at least 0.001");
  };
  const auto require_positive = [&](double value, const char* name) {
    require(is_positive(value), field + name, value, kPositive);
  };
  const bool has_off_time =
      !std::holds_alternative<Always>(traffic.on) && !std::holds_alternative<Intervals>(traffic.on);
  const bool has_bytes = has_off_time && !std::holds_alternative<ExponentialTime>(traffic.on);
  const bool has_arrivals = !std::holds_alternative<std::monostate>(traffic.arrivals);
  if (has_off_time && !has_arrivals) {
    require_period(traffic.mean_off_ms, ".mean_off_ms");
  }
  if (const auto* const time = std::get_if<ExponentialTime>(&traffic.on)) {
    require_period(time->mean_ms, ".mean_on_ms");
  } else if (const auto* const bytes = std::get_if<ExponentialBytes>(&traffic.on)) {
    require_positive(bytes->mean_bytes, ".mean_on_bytes");
  } else if (const auto* const constant = std::get_if<ConstantBytes>(&traffic.on)) {
    require_positive(constant->bytes, ".constant_bytes.bytes");
  } else if (const auto* const empirical = std::get_if<EmpiricalBytes>(&traffic.on)) {
    validate(*empirical, field + ".empirical_bytes");
  } else if (const auto* const intervals = std::get_if<Intervals>(&traffic.on)) {
    validate(*intervals, field + ".intervals");
  } else if (const auto* const pareto = std::get_if<ParetoBytes>(&traffic.on)) {
    require_positive(pareto->scale_bytes, ".scale_bytes");
    require_positive(pareto->shape, ".shape");
    require_positive(pareto->maximum_bytes, ".maximum_bytes");
    require(std::isfinite(pareto->shift_bytes), field + ".shift_bytes", pareto->shift_bytes,
            "a finite number");
    require(is_not_negative(pareto->extra_bytes), field + ".extra_bytes", pareto->extra_bytes,
            kNotNegative);
  }
  if (has_arrivals && !has_bytes) {
    refuse(field + " has arrivals, which need on periods by bytes, but its on periods are by time");
  }
  if (const auto* const poisson = std::get_if<PoissonArrivals>(&traffic.arrivals)) {
    require_period(poisson->mean_interval_ms, ".poisson.mean_interval_ms");
  } else if (const auto* const periodic = std::get_if<PeriodicArrivals>(&traffic.arrivals)) {
    require_period(periodic->interval_ms, ".periodic.interval_ms");
  } else if (const auto* const barrier = std::get_if<Barrier>(&traffic.arrivals)) {
    require_period(barrier->pause_ms, ".barrier.pause_ms");
  }
  require(is_not_negative(traffic.first_off_factor), field + ".first_off_factor",
          traffic.first_off_factor, kNotNegative);
}

}  // namespace remy
