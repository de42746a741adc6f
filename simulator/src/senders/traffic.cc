#include "senders/traffic.h"

#include <algorithm>
#include <cmath>

#include "core/elementary.h"
#include "core/random.h"

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

}  // namespace remy
