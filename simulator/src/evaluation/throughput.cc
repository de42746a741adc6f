#include "evaluation/throughput.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "core/choice.h"

namespace remy {
namespace {

Performance of_packets(const SenderResults& sender, const Tally& tally, double time_ms,
                       double duration_ms) {
  if (tally.throughput_packets == 0 || tally.delay_samples == 0) {
    return {1 / time_ms, duration_ms - sender.first_on_ms};
  }
  return {static_cast<double>(tally.throughput_packets) / time_ms,
          sender.delay_sum_ms / static_cast<double>(tally.delay_samples)};
}

// A flow that was not completed took the time that it was on; the first, if none was, is taken for
// completed when time ran out.
Performance of_flows(const SenderResults& sender, const Tally& tally, double time_ms,
                     double duration_ms) {
  const auto flows = static_cast<double>(std::max<std::uint64_t>(tally.flows, 1));
  const double delay_ms = tally.delay_samples == 0
                              ? duration_ms - sender.first_on_ms
                              : sender.delay_sum_ms / static_cast<double>(tally.delay_samples);
  return {flows / time_ms, delay_ms};
}

constexpr std::array kMeasures = {
    // Each instant divided by the number of senders on.
    ThroughputMeasure{1, "equal_share", false, &SenderResults::share_ms, &of_packets},
    ThroughputMeasure{2, "on_time", false, &SenderResults::on_ms, &of_packets},
    ThroughputMeasure{3, "completion", true, &SenderResults::on_ms, &of_flows},
};

template <class Value>
const ThroughputMeasure& found(Value ThroughputMeasure::* member, Value value,
                               const std::string& shown) {
  const auto* const measure = std::ranges::find(kMeasures, value, member);
  if (measure == kMeasures.end()) {
    throw std::invalid_argument("throughput is " + shown + ", which is not one of " +
                                names_of(throughput_measures()));
  }
  return *measure;
}

}  // namespace

std::span<const ThroughputMeasure> throughput_measures() { return kMeasures; }

const ThroughputMeasure& throughput_measure(std::uint32_t number) {
  return found(&ThroughputMeasure::number, number, std::to_string(number));
}

const ThroughputMeasure& throughput_measure(std::string_view name) {
  return found(&ThroughputMeasure::name, name, std::string(name));
}

}  // namespace remy
