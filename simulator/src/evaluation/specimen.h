#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "senders/clock.h"
#include "senders/traffic.h"

namespace remy {

// A number of like senders.
struct SenderGroup {
  std::uint32_t count = 1;
  std::uint32_t table = 0;  // which of the request's tables they run
  Traffic traffic;
};

// One network drawn from the model.
struct Specimen {
  std::uint64_t key = 0;  // names the specimen's random streams
  double link_rate_packets_per_ms = 1;
  double rtt_ms = 100;
  std::optional<std::uint32_t> buffer_packets;  // beyond the one in service; none: infinite
  double loss_probability = 0;
  MeasurementNoise measurement;
  std::vector<SenderGroup> senders;
};

// Of all groups.
std::size_t sender_count(const Specimen& specimen);

// Throws std::invalid_argument with one sentence if the specimen cannot be simulated with this many
// tables.
void validate(const Specimen& specimen, std::size_t tables);

}  // namespace remy
