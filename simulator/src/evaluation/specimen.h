#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/choice.h"
#include "network/description.h"
#include "senders/clock.h"
#include "senders/traffic.h"

namespace remy {

// A number of like senders.
struct SenderGroup {
  std::uint32_t count = 1;
  std::uint32_t table = 0;  // which of the request's tables they run
  Traffic traffic;
  std::optional<Choice> protocol = {};     // in place of a table
  std::optional<Choice> body = {};         // none: datagrams of a table, TCP of a protocol
  std::optional<double> first_on_ms = {};  // none: after an off period
};

// What a path has beyond the plain dumbbell.
struct Bottleneck {
  std::optional<Choice> queue;  // none: drop-tail
  double packet_bytes = kPacketBytes;
  double ack_bytes = 0;  // on a link back that is as the one there; 0: there is none
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
  std::optional<Bottleneck> bottleneck = {};
};

// Of all groups.
std::size_t sender_count(const Specimen& specimen);

// Whether the dumbbell alone simulates it (network/dumbbell.h): RemyCCs on datagrams that meet in a
// drop-tail queue.
bool is_plain(const Specimen& specimen);

// What carries the senders of a group.
Choice body_of(const SenderGroup& group);

// Any specimen, as the general network takes it. Tables keep their numbers.
NetworkDescription describe(const Specimen& specimen);

// Throws std::invalid_argument with one sentence if the specimen cannot be simulated with this many
// tables.
void validate(const Specimen& specimen, std::size_t tables);

}  // namespace remy
