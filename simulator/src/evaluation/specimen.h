#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/choice.h"
#include "evaluation/throughput.h"
#include "network/description.h"
#include "senders/clock.h"
#include "senders/traffic.h"

namespace remy {

// What becomes one score of those of a specimen's groups: the mean over all senders, by their
// weights; or the lowest of the groups' means, each times its weight.
enum class GroupAggregate { kMean, kMinimum };

// U_alpha(throughput) - delta * U_beta(delay) (TCP ex Machina, Equation 1), with
// U_a(x) = x^(1 - a) / (1 - a) and U_1 = log; throughput in Mbit/s or flows/s, delay in ms.
struct Objective {
  double alpha = 1;
  double beta = 1;
  double delta = 1;
  const ThroughputMeasure* throughput = &throughput_measure("equal_share");
  double minimum_on_ms = 0;  // a sender on for less is not scored
  GroupAggregate over_groups = GroupAggregate::kMean;
};

// A number of like senders.
struct SenderGroup {
  std::uint32_t count = 1;
  std::uint32_t table = 0;  // which of the request's tables they run
  Traffic traffic;
  std::optional<Choice> protocol = {};      // in place of a table
  std::optional<Choice> body = {};          // none: datagrams of a table, TCP of a protocol
  std::optional<double> first_on_ms = {};   // none: after an off time, if there is one
  double weight = 1;                        // of each in the specimen's score; 0: not scored
  std::optional<Objective> objective = {};  // none: the request's
  // None: over all links, the specimen's RTT in equal parts there and back. No links: all, in
  // order.
  std::optional<RouteDescription> route = {};
  std::optional<double> rtt_offset_ms = {};  // none: as the specimen's measurement has it
};

// What a path has beyond the plain dumbbell.
struct Bottleneck {
  std::optional<Choice> queue;  // none: drop-tail
  double packet_bytes = kPacketBytes;
  // On a link back that is as the one there; 0: there is none. Where there are links, on those of
  // the way back.
  double ack_bytes = 0;
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
  // In place of the one link that is described above; its rate and RTT stay as what throughput and
  // delays are compared with.
  std::vector<LinkDescription> links = {};
};

// Of all groups.
std::size_t sender_count(const Specimen& specimen);

// Whether the dumbbell alone simulates it (network/dumbbell.h): RemyCCs on datagrams that meet in
// one drop-tail queue, stay in order, and begin when each pleases.
bool is_plain(const Specimen& specimen);

// How many packets wait where the queue marks arrivals, if that is all that keeps the specimen from
// being plain. What looks at marks is simulated by the dumbbell then.
std::optional<double> marking_threshold_packets(const Specimen& specimen);

// What carries the senders of a group.
Choice body_of(const SenderGroup& group);

// Any specimen, as the general network takes it. Tables keep their numbers.
NetworkDescription describe(const Specimen& specimen);

// Throws std::invalid_argument with one sentence if the specimen cannot be simulated with this many
// tables.
void validate(const Specimen& specimen, std::size_t tables);

}  // namespace remy
