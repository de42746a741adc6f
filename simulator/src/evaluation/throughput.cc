#include "evaluation/throughput.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "core/choice.h"

namespace remy {
namespace {

Performance packet_performance(const SenderResults& sender, const Tally& tally, double time_ms,
                               double duration_ms) {
  if (tally.throughput_packets == 0 || tally.delay_samples == 0) {
    return {1 / time_ms, duration_ms - sender.first_on_ms};
  }
  return {static_cast<double>(tally.throughput_packets) / time_ms,
          sender.delay_sum_ms / static_cast<double>(tally.delay_samples)};
}

// Divides the number of completed flows by the sender's whole time on, which includes that of
// unfinished flows. If no flow is complete, the first counts as completed at the end of the
// simulation.
Performance flow_performance(const SenderResults& sender, const Tally& tally, double time_ms,
                             double duration_ms) {
  const auto flows = static_cast<double>(std::max<std::uint64_t>(tally.flows, 1));
  const double delay_ms = tally.delay_samples == 0
                              ? duration_ms - sender.first_on_ms
                              : sender.delay_sum_ms / static_cast<double>(tally.delay_samples);
  return {flows / time_ms, delay_ms};
}

constexpr std::array kMeasures = {
    // share_ms is the sender's time on, each instant of it divided by the number of senders on.
    ThroughputMeasure{1, "equal_share", false, &SenderResults::share_ms, &packet_performance},
    ThroughputMeasure{2, "on_time", false, &SenderResults::on_ms, &packet_performance},
    ThroughputMeasure{3, "completion", true, &SenderResults::on_ms, &flow_performance},
};

template <class Value>
const ThroughputMeasure& find_measure(Value ThroughputMeasure::* member, Value value,
                                      const std::string& label) {
  const auto* const measure = std::ranges::find(kMeasures, value, member);
  if (measure == kMeasures.end()) {
    throw std::invalid_argument("throughput is " + label + ", which is not one of " +
                                names_of(throughput_measures()));
  }
  return *measure;
}

}  // namespace

std::span<const ThroughputMeasure> throughput_measures() { return kMeasures; }

const ThroughputMeasure& throughput_measure(std::uint32_t number) {
  return find_measure(&ThroughputMeasure::number, number, std::to_string(number));
}

const ThroughputMeasure& throughput_measure(std::string_view name) {
  return find_measure(&ThroughputMeasure::name, name, std::string(name));
}

}  // namespace remy
