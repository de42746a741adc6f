#include "senders/telemetry.h"

#include <algorithm>

namespace remy {

Telemetry* PathTelemetry::at(std::uint64_t transmission, std::size_t hop) {
  if (transmission < first_) {
    return nullptr;
  }
  const std::size_t place = (transmission - first_) * hops_;
  while (records_.size() < place + hops_) {
    records_.push({});
  }
  return &records_.at(place + hop);
}

std::optional<PathUsage> PathTelemetry::on_ack(std::uint64_t transmission) {
  if (at(transmission, 0) == nullptr) {
    return std::nullopt;
  }
  for (; first_ < transmission; ++first_) {
    for (std::size_t hop = 0; hop < hops_; ++hop) {
      records_.pop();
    }
  }
  before_.swap(last_);
  for (Telemetry& last : last_) {
    last = records_.pop();
  }
  ++first_;
  PathUsage usage;
  for (std::size_t hop = 0; hop < hops_; ++hop) {
    if (last_[hop].departed_ms < before_[hop].departed_ms) {
      return std::nullopt;
    }
    usage.queue_packets =
        std::max(usage.queue_packets, static_cast<double>(last_[hop].queue_packets));
    usage.utilization = std::max(usage.utilization, utilization(before_[hop], last_[hop]));
  }
  return usage;
}

std::optional<PathUsage> usage_since_last_ack(PathTelemetry* telemetry,
                                              std::uint64_t transmission) {
  return telemetry != nullptr ? telemetry->on_ack(transmission) : std::nullopt;
}

}  // namespace remy
