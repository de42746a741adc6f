#pragma once

#include "evaluation/specimen.h"
#include "network/description.h"
#include "random_cases.h"

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

}  // namespace remy
