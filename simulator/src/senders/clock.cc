#include "senders/clock.h"

#include "core/requirement.h"

namespace remy {

void validate(const MeasurementNoise& noise, const std::string& field) {
  const auto require_not_negative = [&](double value, const char* name) {
    require(is_not_negative(value), field + name, value, kNotNegative);
  };
  if (const auto* const jitter = std::get_if<ExponentialJitter>(&noise.jitter)) {
    require_not_negative(jitter->mean_ms, ".exponential_jitter_mean_ms");
  } else if (const auto* const uniform = std::get_if<UniformJitter>(&noise.jitter)) {
    require_not_negative(uniform->maximum_ms, ".uniform_jitter_maximum_ms");
  } else {
    const auto& log_normal = std::get<LogNormalJitter>(noise.jitter);
    require(is_positive(log_normal.median_ms), field + ".log_normal_jitter.median_ms",
            log_normal.median_ms, kPositive);
    require(log_normal.percentile_99_ms >= log_normal.median_ms &&
                is_positive(log_normal.percentile_99_ms),
            field + ".log_normal_jitter.percentile_99_ms", log_normal.percentile_99_ms,
            "a finite number not below median_ms");
  }
  require_not_negative(noise.timestamp_resolution_ms, ".timestamp_resolution_ms");
  require(noise.bunch_packets >= 1, field + ".bunch_packets", noise.bunch_packets,
          "a number of at least 1");
  require_not_negative(noise.delayed_ack_ms, ".delayed_ack_ms");
  require_not_negative(noise.rtt_offset_maximum_ms, ".rtt_offset_maximum_ms");
  require(noise.reordering_probability >= 0 && noise.reordering_probability <= 1,
          field + ".reordering_probability", noise.reordering_probability, "from 0 to 1");
  require_not_negative(noise.reordering_delay_ms, ".reordering_delay_ms");
}

double rtt_offset_ms(const MeasurementNoise& noise, std::uint64_t key, std::uint32_t sender) {
  return noise.rtt_offset_ms.has_value()
             ? *noise.rtt_offset_ms
             : noise.rtt_offset_maximum_ms * unit_interval(random_bits(key, sender));
}

}  // namespace remy
