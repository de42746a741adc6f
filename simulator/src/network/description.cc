#include "network/description.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/requirement.h"
#include "elements/queues.h"
#include "protocols/protocol.h"
#include "senders/packet.h"
#include "transports/transport.h"

namespace remy {

namespace {

constexpr double kLargestSegmentBytes = 1e6;
constexpr std::size_t kLongestRoute = 1000;
constexpr std::size_t kMostLinks = 100'000;

bool is_whole(double value) { return value == std::floor(value); }

// Throws unless `number` is the number of one of `count` links or tables.
void validate_number(std::uint32_t number, std::size_t count, const std::string& field_and_verb,
                     const std::string& noun) {
  if (number < count) {
    return;
  }
  refuse(field_and_verb + " " + noun + " " + std::to_string(number) +
         (count == 0 ? " but there are no " + noun + "s"
                     : " but " + noun + " numbers are from 0 to " + std::to_string(count - 1)));
}

void validate_route(const std::vector<std::uint32_t>& links, std::size_t count,
                    const std::string& field) {
  if (links.size() > kLongestRoute) {
    refuse(field + " has " + std::to_string(links.size()) + " links but may have " +
           std::to_string(kLongestRoute));
  }
  for (const std::uint32_t link : links) {
    validate_number(link, count, field + " has", "link");
  }
}

// Checks the sender's transport, and its table or protocol.
void validate_kind(const SenderDescription& sender, const NetworkDescription& network,
                   std::size_t tables, const std::string& field) {
  const Transport& transport = find_transport(sender.transport.name);
  ParameterValues("transport", transport.variants, sender.transport);
  if (!(sender.table ? transport.runs_tables : transport.runs_controllers)) {
    refuse(field + " runs a " + (sender.table ? "RemyCC" : "protocol") + " but the transport \"" +
           sender.transport.name + "\" runs " + (sender.table ? "protocols" : "RemyCCs") + " only");
  }
  if (network.measurement.needs_datagrams() && !transport.takes_noise) {
    refuse(field + " has the transport \"" + sender.transport.name +
           "\", for which measurement noise may have only RTT offsets and reordering");
  }
  if (sender.table) {
    validate_number(*sender.table, tables, field + " runs", "table");
    return;
  }
  const Protocol& protocol = find_protocol(sender.protocol.name);
  ParameterValues("protocol", protocol.variants, sender.protocol);
  if (!protocol.needs.needs_xcp_router) {
    return;
  }
  for (const std::uint32_t link : sender.route.links) {
    if (const Choice& queue = network.links[link].queue;
        !find_queue_discipline(queue.name).is_xcp_router) {
      refuse(field + " runs " + sender.protocol.name +
             ", which needs an XCP router at every link of its route, but "
             "link " +
             std::to_string(link) + " has the queue \"" + queue.name + "\"");
    }
  }
}

// Omniscient senders share one link, and only with each other.
void validate_omniscient(const NetworkDescription& network) {
  for (std::size_t i = 0; i < network.senders.size(); ++i) {
    const SenderDescription& sender = network.senders[i];
    if (sender.table || !find_protocol(sender.protocol.name).is_omniscient) {
      refuse("senders[" + std::to_string(i) +
             "] is not omniscient but others are; all senders must be, or none");
    }
    if (sender.route.links.size() != 1 || !sender.route.return_links.empty() ||
        network.links.size() != 1 || network.links.front().loss_probability > 0 ||
        !is_constant(network.links.front()) || network.measurement.reorders()) {
      refuse("senders[" + std::to_string(i) +
             "] is omniscient, so the network must be one link of constant rate without loss or "
             "reordering, and its route must have no return links");
    }
    if (std::holds_alternative<Barrier>(sender.traffic.arrivals)) {
      refuse("senders[" + std::to_string(i) +
             "] is omniscient, so its traffic must not have a barrier");
    }
  }
}

}  // namespace

bool has_omniscient_senders(const NetworkDescription& network) {
  return std::ranges::any_of(network.senders, [](const SenderDescription& sender) {
    return !sender.table && find_protocol(sender.protocol.name).is_omniscient;
  });
}

void validate(const NetworkDescription& network, std::size_t tables) {
  require(network.packet_bytes >= 1 && network.packet_bytes <= kLargestSegmentBytes &&
              is_whole(network.packet_bytes),
          "packet_bytes", network.packet_bytes, "a whole number from 1 to 1000000");
  require(network.ack_bytes >= 0 && network.ack_bytes <= kLargestSegmentBytes &&
              is_whole(network.ack_bytes),
          "ack_bytes", network.ack_bytes, "a whole number from 0 to 1000000");
  validate(network.measurement, "measurement");
  require(network.links.size() <= kMostLinks, "the number of links",
          static_cast<double>(network.links.size()), "at most 100000");
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    validate(network.links[i], "links[" + std::to_string(i) + "]");
  }
  require(!network.senders.empty() && network.senders.size() < FlowTag::kMaximumSenders,
          "the number of senders", static_cast<double>(network.senders.size()), "from 1 to 16383");
  for (std::size_t i = 0; i < network.senders.size(); ++i) {
    const SenderDescription& sender = network.senders[i];
    const std::string field = "senders[" + std::to_string(i) + "]";
    const RouteDescription& route = sender.route;
    if (route.links.empty()) {
      refuse(field + ".route.links is empty but must have a link");
    }
    validate_route(route.links, network.links.size(), field + ".route.links");
    validate_route(route.return_links, network.links.size(), field + ".route.return_links");
    require(is_not_negative(route.delay_ms), field + ".route.delay_ms", route.delay_ms,
            kNotNegative);
    require(is_not_negative(route.return_delay_ms), field + ".route.return_delay_ms",
            route.return_delay_ms, kNotNegative);
    validate(sender.traffic, field + ".traffic");
    if (sender.rtt_offset_ms) {
      require(is_not_negative(*sender.rtt_offset_ms), field + ".rtt_offset_ms",
              *sender.rtt_offset_ms, kNotNegative);
    }
    if (sender.first_on_ms) {
      require(is_not_negative(*sender.first_on_ms), field + ".first_on_ms", *sender.first_on_ms,
              kNotNegative);
      if (std::holds_alternative<Intervals>(sender.traffic.on)) {
        refuse(field + " has first_on_ms and intervals, which say when it is on");
      }
    }
    validate_kind(sender, network, tables, field);
  }
  if (has_omniscient_senders(network)) {
    validate_omniscient(network);
  }
}

}  // namespace remy
