#include "senders/traffic.h"

#include <algorithm>
#include <cmath>

#include "core/elementary.h"
#include "core/random.h"
#include "core/requirement.h"

namespace remy {

double Schedule::exponential_variate(double mean, std::uint64_t counter) const {
  return -mean * natural_logarithm(open_unit_interval(random_bits(key_, counter)));
}

double Schedule::off_ms(std::uint64_t period) const {
  return exponential_variate(traffic_.mean_off_ms, 2 * period);
}

double Schedule::on_ms(std::uint64_t period) const {
  return exponential_variate(std::get<ExponentialTime>(traffic_.on).mean_ms, 2 * period + 1);
}

std::uint64_t Schedule::on_packets(std::uint64_t period, double packet_bytes) const {
  double bytes = 0;
  if (const auto* const exponential = std::get_if<ExponentialBytes>(&traffic_.on)) {
    bytes = exponential_variate(exponential->mean_bytes, 2 * period + 1);
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
  // Shorter periods would keep a simulation busy for ever.
  constexpr double kShortestMeanMs = 0.001;
  const auto require_period = [&](double mean_ms, const char* name) {
    require(mean_ms >= kShortestMeanMs && std::isfinite(mean_ms), field + name, mean_ms,
            "a number of at least 0.001");
  };
  const auto require_positive = [&](double value, const char* name) {
    require(is_positive(value), field + name, value, kPositive);
  };
  require_period(traffic.mean_off_ms, ".mean_off_ms");
  if (const auto* const time = std::get_if<ExponentialTime>(&traffic.on)) {
    require_period(time->mean_ms, ".mean_on_ms");
  } else if (const auto* const bytes = std::get_if<ExponentialBytes>(&traffic.on)) {
    require_positive(bytes->mean_bytes, ".mean_on_bytes");
  } else {
    const auto& pareto = std::get<ParetoBytes>(traffic.on);
    require_positive(pareto.scale_bytes, ".scale_bytes");
    require_positive(pareto.shape, ".shape");
    require_positive(pareto.maximum_bytes, ".maximum_bytes");
    require(std::isfinite(pareto.shift_bytes), field + ".shift_bytes", pareto.shift_bytes,
            "a finite number");
    require(is_not_negative(pareto.extra_bytes), field + ".extra_bytes", pareto.extra_bytes,
            kNotNegative);
  }
}

}  // namespace remy
