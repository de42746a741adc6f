#include "evaluation/specimen.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "core/requirement.h"
#include "elements/queues.h"
#include "senders/packet.h"

namespace remy {
namespace {

void require(bool condition, const char* field, double value, std::string_view allowed) {
  remy::require(condition, std::string("specimen.") + field, value, allowed);
}

constexpr std::string_view kMarkingQueue = "threshold-marking";

bool is_plain_apart_from_queue(const Specimen& specimen) {
  return specimen.links.empty() && !specimen.measurement.reorders() &&
         std::ranges::none_of(specimen.senders, [](const SenderGroup& group) {
           return group.protocol.has_value() || group.transport.has_value() ||
                  group.first_on_ms.has_value() || group.route.has_value() ||
                  group.rtt_offset_ms.has_value() ||
                  std::holds_alternative<Barrier>(group.traffic.arrivals);
         });
}

}  // namespace

std::size_t sender_count(const Specimen& specimen) {
  std::size_t count = 0;
  for (const SenderGroup& group : specimen.senders) {
    count += group.count;
  }
  return count;
}

bool is_plain(const Specimen& specimen) {
  return !specimen.bottleneck.has_value() && is_plain_apart_from_queue(specimen);
}

std::optional<double> marking_threshold_packets(const Specimen& specimen) {
  if (!specimen.bottleneck.has_value() || !is_plain_apart_from_queue(specimen)) {
    return {};
  }
  const auto& [queue, packet_bytes, ack_bytes] = *specimen.bottleneck;
  if (!queue.has_value() || queue->name != kMarkingQueue || packet_bytes != kPacketBytes ||
      ack_bytes > 0) {
    return {};
  }
  return ParameterValues("queue", find_queue_discipline(kMarkingQueue).variants,
                         *queue)["threshold_packets"];
}

Choice transport_of(const SenderGroup& group) {
  return group.transport.value_or(Choice{group.protocol.has_value() ? "tcp" : "datagram", "", {}});
}

NetworkDescription describe(const Specimen& specimen) {
  const Bottleneck bottleneck = specimen.bottleneck.value_or(Bottleneck{});
  NetworkDescription network;
  network.key = specimen.key;
  network.packet_bytes = bottleneck.packet_bytes;
  network.ack_bytes = bottleneck.ack_bytes;
  network.measurement = specimen.measurement;
  network.links = specimen.links;
  RouteDescription default_route;
  default_route.delay_ms = specimen.rtt_ms / 2;
  default_route.return_delay_ms = specimen.rtt_ms - default_route.delay_ms;
  std::vector<std::uint32_t> default_return_links;
  if (specimen.links.empty()) {
    LinkDescription link;
    link.rate_packets_per_ms = specimen.link_rate_packets_per_ms;
    link.buffer_packets = specimen.buffer_packets;
    link.queue = bottleneck.queue.value_or(link.queue);
    link.loss_probability = specimen.loss_probability;
    network.links.push_back(link);
  }
  std::vector<std::uint32_t> all_links(network.links.size());
  std::iota(all_links.begin(), all_links.end(), 0U);
  if (specimen.links.empty() && bottleneck.ack_bytes > 0) {
    // On the return link ACKs are dropped by its queue only.
    default_return_links = {1};
    network.links.push_back(network.links.front());
    network.links.back().loss_probability = 0;
  }
  for (std::uint32_t number = 0; number < specimen.senders.size(); ++number) {
    const SenderGroup& group = specimen.senders[number];
    SenderDescription sender;
    if (group.protocol.has_value()) {
      sender.protocol = *group.protocol;
    } else {
      sender.table = group.table;
    }
    sender.transport = transport_of(group);
    sender.traffic = group.traffic;
    sender.first_on_ms = group.first_on_ms;
    sender.rtt_offset_ms = group.rtt_offset_ms;
    sender.barrier = number;
    sender.route = group.route.value_or(default_route);
    if (sender.route.links.empty()) {
      sender.route.links = all_links;
    }
    if (sender.route.return_links.empty()) {
      sender.route.return_links = default_return_links;
    }
    network.senders.insert(network.senders.end(), group.count, sender);
  }
  return network;
}

void validate(const Specimen& specimen, std::size_t tables) {
  require(is_positive(specimen.link_rate_packets_per_ms), "link_rate_packets_per_ms",
          specimen.link_rate_packets_per_ms, "a positive number");
  require(is_positive(specimen.rtt_ms), "rtt_ms", specimen.rtt_ms, "a positive number");
  require(specimen.loss_probability >= 0 && specimen.loss_probability < 1, "loss_probability",
          specimen.loss_probability, "at least 0 and below 1");
  validate(specimen.measurement, "specimen.measurement");
  if (!specimen.links.empty() &&
      (specimen.buffer_packets.has_value() || specimen.loss_probability > 0 ||
       (specimen.bottleneck.has_value() && specimen.bottleneck->queue.has_value()))) {
    throw std::invalid_argument(
        "specimen has links, so it cannot have a buffer, queue or loss of its own; each link has "
        "them");
  }
  for (const SenderGroup& group : specimen.senders) {
    if (!group.protocol.has_value()) {
      require(group.table < tables, "senders.table", group.table,
              "below the number of tables, " + std::to_string(tables));
    }
    validate(group.traffic, "specimen.traffic");
    require(is_not_negative(group.weight), "senders.weight", group.weight, kNotNegative);
  }
  const std::size_t count = sender_count(specimen);
  require(count >= 1 && count < FlowTag::kMaximumSenders, "senders.count",
          static_cast<double>(count), "from 1 to 16383 in all");
  if (!is_plain(specimen)) {
    validate(describe(specimen), tables);
  }
}

}  // namespace remy
