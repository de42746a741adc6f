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

// Which links a sender's packets cross, and its ACKs on the way back, in order; and constant delays
// before and behind them, all of a packet's way and of its ACK's.
struct RouteDescription {
  std::vector<std::uint32_t> links;
  std::vector<std::uint32_t> return_links;
  double delay_ms = 0;
  double return_delay_ms = 0;
};

// One sender: a RemyCC, by its table's index, or a protocol.
struct SenderDescription {
  std::optional<std::uint32_t> table;
  Choice protocol;  // where there is no table
  // What carries it (transports/endpoint.h): for a RemyCC "datagram", "ns2" or "tcp"; a protocol is
  // always on "tcp".
  Choice transport;
  Traffic traffic;
  // None: after an off time that is drawn, or at once where there is none.
  std::optional<double> first_on_ms;
  std::optional<double> rtt_offset_ms = {};  // none: as the network's measurement has it
  // Where its traffic has a barrier: which one.
  std::uint32_t barrier = 0;
  RouteDescription route;
};

// A network on which senders of different kinds meet.
struct NetworkDescription {
  std::uint64_t key = 0;       // names its random streams, as a specimen's does
  double packet_bytes = 1500;  // whole
  double ack_bytes = 0;        // whole; 0: ACKs take no time on a link
  std::vector<LinkDescription> links;
  MeasurementNoise measurement;
  std::vector<SenderDescription> senders;
};

// Whether any sender is omniscient; then all are in a network that is valid.
bool has_omniscient_senders(const NetworkDescription& network);

// Throws std::invalid_argument with one sentence if the network cannot be simulated with this many
// tables: where a name or a parameter is unknown, a number is out of its range, a route leads
// nowhere, or a sender needs what its links or its transport do not have.
void validate(const NetworkDescription& network, std::size_t tables);

}  // namespace remy
