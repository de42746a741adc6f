#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "elements/queues.h"
#include "evaluation/specimen.h"
#include "network/description.h"
#include "protocols/protocol.h"
#include "random_cases.h"
#include "senders/bodies.h"

namespace remy {

// The network that a specimen is, of RemyCCs in the datagram body.
inline NetworkDescription as_network(const Specimen& specimen) {
  NetworkDescription network;
  network.key = specimen.key;
  network.measurement = specimen.measurement;
  LinkDescription link;
  link.rate_packets_per_ms = specimen.link_rate_packets_per_ms;
  link.delay_ms = specimen.rtt_ms;
  link.buffer_packets = specimen.buffer_packets;
  link.loss_probability = specimen.loss_probability;
  network.links.push_back(link);
  for (const SenderGroup& group : specimen.senders) {
    for (std::uint32_t i = 0; i < group.count; ++i) {
      SenderDescription sender;
      sender.table = group.table;
      sender.body.name = "datagram";
      sender.traffic = group.traffic;
      sender.route.links = {0};
      network.senders.push_back(sender);
    }
  }
  return network;
}

// Small random networks of senders of all kinds, a function of the seed. They run table 0, if any.
class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : random_(seed ^ 0x6e7700) {}

  RandomCase& random() { return random_; }

  NetworkDescription network() {
    NetworkDescription network;
    network.key = random_.integer(0, 1'000'000);
    network.packet_bytes = random_.chance(0.5) ? 1500 : random_.integer(100, 3000);
    network.ack_bytes = random_.chance(0.3) ? 0 : random_.integer(1, 100);
    // XCP runs on its own routers alone.
    const bool is_xcp = random_.chance(0.15);
    for (std::uint32_t links = random_.integer(1, 4); links > 0; --links) {
      network.links.push_back(link(is_xcp));
    }
    for (std::uint32_t senders = random_.integer(1, 6); senders > 0; --senders) {
      network.senders.push_back(sender(is_xcp, static_cast<std::uint32_t>(network.links.size())));
    }
    return network;
  }

  Traffic traffic() {
    Traffic traffic = random_.traffic(500, 3000);
    if (!Schedule(traffic, 0).by_time() && random_.chance(0.2)) {
      traffic.arrivals = Barrier{random_.uniform(0.001, 100)};
    }
    return traffic;
  }

  // Any variant, and parameters up to twice or half of what is usual.
  Choice choice(std::string_view name, const std::vector<Variant>& variants) {
    const auto last = static_cast<std::uint32_t>(variants.size() - 1);
    const Variant& variant = variants[random_.integer(0, last)];
    Choice choice = {std::string(name), std::string(variant.name), {}};
    for (const Parameter& parameter : variant.parameters) {
      if (random_.chance(0.2)) {
        const double value = parameter.usual * random_.uniform(0.5, 2);
        choice.parameters.emplace_back(parameter.name,
                                       std::clamp(value, parameter.minimum, parameter.maximum));
      }
    }
    return choice;
  }

  Choice protocol(bool is_xcp) {
    for (;;) {
      const auto last = static_cast<std::uint32_t>(protocols().size() - 1);
      const Protocol& protocol = protocols()[random_.integer(0, last)];
      if (!protocol.is_omniscient && (is_xcp || !protocol.needs.needs_xcp_router)) {
        return choice(protocol.name, protocol.variants);
      }
    }
  }

 private:
  LinkDescription link(bool is_xcp) {
    LinkDescription link;
    link.rate_packets_per_ms = random_.uniform(0.2, 4);
    link.delay_ms = random_.chance(0.2) ? 0 : random_.uniform(0.1, 60);
    if (random_.chance(0.7)) {
      link.buffer_packets = random_.integer(1, 100);
    }
    if (random_.chance(0.4)) {
      link.loss_probability = random_.uniform(0, 0.1);
    }
    for (;;) {
      const auto last = static_cast<std::uint32_t>(queue_disciplines().size() - 1);
      const QueueDiscipline& discipline = queue_disciplines()[random_.integer(0, last)];
      if (discipline.is_xcp_router == is_xcp) {
        const auto variants = static_cast<std::uint32_t>(discipline.variants.size() - 1);
        link.queue = {std::string(discipline.name),
                      std::string(discipline.variants[random_.integer(0, variants)].name),
                      {}};
        return link;
      }
    }
  }

  SenderDescription sender(bool is_xcp, std::uint32_t links) {
    SenderDescription sender;
    if (random_.chance(0.25)) {
      sender.table = 0;
    } else {
      sender.protocol = protocol(is_xcp);
    }
    do {
      const auto last = static_cast<std::uint32_t>(body_kinds().size() - 1);
      const BodyKind& kind = body_kinds()[random_.integer(0, last)];
      if (sender.table ? kind.carries_tables : kind.carries_controllers) {
        sender.body = choice(kind.name, kind.variants);
      }
    } while (sender.body.name.empty());
    sender.traffic = traffic();
    sender.barrier = random_.integer(0, 1);
    sender.route.links.push_back(random_.integer(0, links - 1));
    while (random_.chance(0.4)) {
      sender.route.links.push_back(random_.integer(0, links - 1));
    }
    while (random_.chance(0.4)) {
      sender.route.return_links.push_back(random_.integer(0, links - 1));
    }
    sender.route.delay_ms = random_.chance(0.5) ? 0 : random_.uniform(0, 50);
    sender.route.return_delay_ms = random_.chance(0.3) ? 0 : random_.uniform(0, 50);
    return sender;
  }

  RandomCase random_;
};

}  // namespace remy
