#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "senders/packet.h"

namespace remy {

// Throughput and delay of a sender, from which every objective is computed.
struct Performance {
  double throughput_packets_per_ms = 0;  // flows per ms if ThroughputMeasure::counts_flows
  double delay_ms = 0;
};

// Counts of one sender: packets that count as throughput, and the number of delay samples in
// delay_sum_ms. On the dumbbell both are the packets received.
struct Tally {
  std::uint64_t throughput_packets = 0;
  std::uint64_t delay_samples = 0;
  std::uint64_t flows = 0;  // completed flows of by-bytes traffic; 0 on the dumbbell
};

// A definition of throughput that an objective can use.
struct ThroughputMeasure {
  std::uint32_t number;   // value of the enum remy_farm.v1.ThroughputMeasure
  std::string_view name;  // name in specifications
  // True: counts completed flows (1/s), which needs by-bytes traffic. False: counts packets
  // (Mbit/s).
  bool counts_flows;
  double SenderResults::* time_ms;  // the time by which the count is divided
  // Computes it for a sender that could have received something.
  Performance (*performance)(const SenderResults& sender, const Tally& tally, double time_ms,
                             double duration_ms);
};

std::span<const ThroughputMeasure> throughput_measures();

// Throw std::invalid_argument if there is no such measure.
const ThroughputMeasure& throughput_measure(std::uint32_t number);
const ThroughputMeasure& throughput_measure(std::string_view name);

}  // namespace remy
