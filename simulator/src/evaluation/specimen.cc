#include "evaluation/specimen.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "senders/packet.h"

namespace remy {
namespace {

void require(bool condition, const char* field, double value, const char* allowed) {
  if (!condition) {
    throw std::invalid_argument(std::string("specimen.") + field + " is " + std::to_string(value) +
                                " but must be " + allowed);
  }
}

bool is_positive(double value) { return value > 0 && std::isfinite(value); }

// Shorter periods would keep a simulation busy for ever.
constexpr double kShortestMeanPeriodMs = 0.001;
constexpr char kPeriodAllowed[] = "a number of at least 0.001";

bool is_period(double value) { return value >= kShortestMeanPeriodMs && std::isfinite(value); }

void validate(const Traffic& traffic) {
  require(is_period(traffic.mean_off_ms), "traffic.mean_off_ms", traffic.mean_off_ms,
          kPeriodAllowed);
  if (const auto* const time = std::get_if<ExponentialTime>(&traffic.on)) {
    require(is_period(time->mean_ms), "traffic.mean_on_ms", time->mean_ms, kPeriodAllowed);
  } else if (const auto* const bytes = std::get_if<ExponentialBytes>(&traffic.on)) {
    require(is_positive(bytes->mean_bytes), "traffic.mean_on_bytes", bytes->mean_bytes,
            "a positive number");
  } else {
    const auto& pareto = std::get<ParetoBytes>(traffic.on);
    require(is_positive(pareto.scale_bytes), "traffic.scale_bytes", pareto.scale_bytes,
            "a positive number");
    require(is_positive(pareto.shape), "traffic.shape", pareto.shape, "a positive number");
    require(is_positive(pareto.maximum_bytes), "traffic.maximum_bytes", pareto.maximum_bytes,
            "a positive number");
    require(std::isfinite(pareto.shift_bytes), "traffic.shift_bytes", pareto.shift_bytes,
            "a finite number");
    require(pareto.extra_bytes >= 0 && std::isfinite(pareto.extra_bytes), "traffic.extra_bytes",
            pareto.extra_bytes, "a finite number not below 0");
  }
}

void validate(const MeasurementNoise& measurement) {
  const auto is_size = [](double value) { return value >= 0 && std::isfinite(value); };
  constexpr char kAllowed[] = "a finite number not below 0";
  if (const auto* const jitter = std::get_if<ExponentialJitter>(&measurement.jitter)) {
    require(is_size(jitter->mean_ms), "measurement.exponential_jitter_mean_ms", jitter->mean_ms,
            kAllowed);
  } else if (const auto* const uniform = std::get_if<UniformJitter>(&measurement.jitter)) {
    require(is_size(uniform->maximum_ms), "measurement.uniform_jitter_maximum_ms",
            uniform->maximum_ms, kAllowed);
  } else {
    const auto& log_normal = std::get<LogNormalJitter>(measurement.jitter);
    require(is_positive(log_normal.median_ms), "measurement.log_normal_jitter.median_ms",
            log_normal.median_ms, "a positive number");
    require(log_normal.percentile_99_ms >= log_normal.median_ms &&
                std::isfinite(log_normal.percentile_99_ms),
            "measurement.log_normal_jitter.percentile_99_ms", log_normal.percentile_99_ms,
            "a finite number not below the median");
  }
  require(is_size(measurement.timestamp_resolution_ms), "measurement.timestamp_resolution_ms",
          measurement.timestamp_resolution_ms, kAllowed);
  require(measurement.bunch_packets >= 1, "measurement.bunch_packets", measurement.bunch_packets,
          "a number of at least 1");
  require(is_size(measurement.delayed_ack_ms), "measurement.delayed_ack_ms",
          measurement.delayed_ack_ms, kAllowed);
}

}  // namespace

std::size_t sender_count(const Specimen& specimen) {
  std::size_t count = 0;
  for (const SenderGroup& group : specimen.senders) {
    count += group.count;
  }
  return count;
}

void validate(const Specimen& specimen, std::size_t tables) {
  require(is_positive(specimen.link_rate_packets_per_ms), "link_rate_packets_per_ms",
          specimen.link_rate_packets_per_ms, "a positive number");
  require(is_positive(specimen.rtt_ms), "rtt_ms", specimen.rtt_ms, "a positive number");
  require(specimen.loss_probability >= 0 && specimen.loss_probability < 1, "loss_probability",
          specimen.loss_probability, "at least 0 and below 1");
  validate(specimen.measurement);
  for (const SenderGroup& group : specimen.senders) {
    require(group.table < tables, "senders.table", group.table, "the number of a table");
    validate(group.traffic);
  }
  const std::size_t count = sender_count(specimen);
  require(count >= 1 && count < FlowTag::kMaximumSenders, "senders.count",
          static_cast<double>(count), "from 1 to 16383 in all");
}

}  // namespace remy
