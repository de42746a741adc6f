#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/choice.h"
#include "network/link_description.h"
#include "senders/clock.h"
#include "senders/traffic.h"

namespace remy {

// The links that a sender's packets cross, those that its ACKs cross, both in order, and the
// constant delay of each direction, in addition to the links' delays.
struct RouteDescription {
  std::vector<std::uint32_t> links;
  std::vector<std::uint32_t> return_links;
  double delay_ms = 0;
  double return_delay_ms = 0;
};

// One sender: a RemyCC, by the index of its table, or a protocol.
struct SenderDescription {
  std::optional<std::uint32_t> table;
  Choice protocol;  // if there is no table
  // The transport (transports/transport.h): "datagram", "ns2" or "tcp" for a RemyCC, always "tcp"
  // for a protocol.
  Choice transport;
  Traffic traffic;
  // When it is first on. nullopt: after a random off time, or at once if its traffic has none.
  std::optional<double> first_on_ms;
  std::optional<double> rtt_offset_ms = {};  // nullopt: as in the network's measurement
  // The number of its barrier, if its traffic has one.
  std::uint32_t barrier = 0;
  RouteDescription route;
};

// A network of links that senders of different kinds share.
struct NetworkDescription {
  std::uint64_t key = 0;       // key of its random streams, as a specimen's
  double packet_bytes = 1500;  // whole
  double ack_bytes = 0;        // whole; 0: ACKs have no transmission time
  std::vector<LinkDescription> links;
  MeasurementNoise measurement;
  std::vector<SenderDescription> senders;
};

// Whether any sender is omniscient. In a valid network all are or none is.
bool has_omniscient_senders(const NetworkDescription& network);

// Throws std::invalid_argument if the network cannot be simulated with this number of tables: a
// name or a parameter is unknown, a number is out of range, a route has an unknown link, or a
// sender needs a feature that its links or its transport lack.
void validate(const NetworkDescription& network, std::size_t tables);

}  // namespace remy
