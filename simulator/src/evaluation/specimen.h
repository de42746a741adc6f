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

// How a specimen's score combines its groups: the mean over all senders by weight, or the minimum
// of the groups' means, each times its weight.
enum class GroupAggregate { kMean, kMinimum };

// U_alpha(throughput) - delta * U_beta(delay) - loss_price * loss (TCP ex Machina, Equation 1, with
// a price of lost packets), with U_a(x) = x^(1 - a) / (1 - a) and U_1 = log; throughput in Mbit/s
// or flows/s, delay in ms, loss as packets lost / packets sent.
struct Objective {
  double alpha = 1;
  double beta = 1;
  double delta = 1;
  const ThroughputMeasure* throughput = &throughput_measure("equal_share");
  double minimum_on_ms = 0;  // senders that are on for less are not scored
  GroupAggregate over_groups = GroupAggregate::kMean;
  double loss_price = 0;
};

// A group of identical senders.
struct SenderGroup {
  std::uint32_t count = 1;
  std::uint32_t table = 0;  // index among the request's tables
  Traffic traffic;
  std::optional<Choice> protocol = {};   // replaces the table
  std::optional<Choice> transport = {};  // none: datagram for a table, TCP for a protocol
  // Start of the first on period; none: after an off time, if the traffic has any.
  std::optional<double> first_on_ms = {};
  double weight = 1;  // weight of each sender in the specimen's score; 0: not scored
  std::optional<Objective> objective = {};  // none: the request's objective
  // None: over all links, with half of the specimen's RTT each way. A route without links has all
  // links, in order.
  std::optional<RouteDescription> route = {};
  std::optional<double> rtt_offset_ms = {};  // none: as in the specimen's measurement noise
};

// Properties of the bottleneck that differ from the plain dumbbell.
struct Bottleneck {
  std::optional<Choice> queue;  // none: drop-tail
  double packet_bytes = kPacketBytes;
  // Size of ACKs on a return link equal to the forward link; 0: no return link. If the specimen has
  // links, size on the links of the return route.
  double ack_bytes = 0;
};

// One network drawn from the model.
struct Specimen {
  std::uint64_t key = 0;  // key of the specimen's random streams
  double link_rate_packets_per_ms = 1;
  double rtt_ms = 100;
  // Packets that may wait, without the one in transmission; none: infinite.
  std::optional<std::uint32_t> buffer_packets;
  double loss_probability = 0;
  MeasurementNoise measurement;
  std::vector<SenderGroup> senders;
  std::optional<Bottleneck> bottleneck = {};
  // Replaces the one link described above, whose rate and RTT remain the reference for throughput
  // and delay.
  std::vector<LinkDescription> links = {};
};

// Number of senders in all groups.
std::size_t sender_count(const Specimen& specimen);

// Returns true if the dumbbell simulator suffices (network/dumbbell.h): RemyCCs on datagrams that
// share one drop-tail queue, stay in order and start independently.
bool is_plain(const Specimen& specimen);

// Returns the threshold if the specimen is plain apart from a threshold-marking queue. For tables
// that look at marks, such specimens are simulated by the dumbbell.
std::optional<double> marking_threshold_packets(const Specimen& specimen);

// The transport of a group's senders, with the default filled in.
Choice transport_of(const SenderGroup& group);

// Describes any specimen for the general network. Tables keep their numbers.
NetworkDescription describe(const Specimen& specimen);

// Throws std::invalid_argument if the specimen cannot be simulated with this many tables.
void validate(const Specimen& specimen, std::size_t tables);

}  // namespace remy
