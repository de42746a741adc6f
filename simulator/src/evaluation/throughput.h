#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "senders/packet.h"

namespace remy {

// Throughput and delay of a sender as every objective sees them.
struct Performance {
  double throughput_packets_per_ms = 0;  // flows per ms where flows are what counts
  double delay_ms = 0;
};

// What a sender's throughput and delay are counted over: packets that count as throughput, and
// delays that delay_sum_ms is the sum of. On the dumbbell both are the packets received.
struct Tally {
  std::uint64_t throughput_packets = 0;
  std::uint64_t delay_samples = 0;
  std::uint64_t flows = 0;  // by bytes, completed; the dumbbell counts none
};

// A quantity that an objective may take for throughput.
struct ThroughputMeasure {
  std::uint32_t number;   // as remy_farm.v1.ThroughputMeasure has it
  std::string_view name;  // in specifications
  // Whether it is of flows, 1/s, which loads by bytes alone complete; else of packets, Mbit/s.
  bool counts_flows;
  double SenderResults::* time_ms;  // that it is over
  // Of a sender that could have received something.
  Performance (*performance)(const SenderResults& sender, const Tally& tally, double time_ms,
                             double duration_ms);
};

std::span<const ThroughputMeasure> throughput_measures();

// Throw std::invalid_argument where there is none.
const ThroughputMeasure& throughput_measure(std::uint32_t number);
const ThroughputMeasure& throughput_measure(std::string_view name);

}  // namespace remy
