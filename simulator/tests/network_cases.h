#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elements/queues.h"
#include "evaluation/specimen.h"
#include "network/description.h"
#include "protocols/protocol.h"
#include "random_cases.h"
#include "transports/transport.h"

namespace remy {

// Describes a link's properties other than rate, delay and loss, for failure messages.
inline std::string describe_kind(const LinkDescription& link) {
  std::string text;
  if (link.trace) {
    text += ", trace of semantics " + std::to_string(static_cast<int>(link.trace->semantics)) +
            (link.trace->source.index() == 1 ? ", generated" : "") +
            (link.trace->ends ? ", ends" : "");
  }
  text += link.gilbert_elliott ? ", bursts of loss" : "";
  text += !link.changes ? "" : link.changes->index() == 0 ? ", schedule" : ", walk";
  text += link.policer ? ", policer" : "";
  text += link.jitter_box ? ", jitter box " + std::to_string(link.jitter_box->index()) : "";
  return text;
}

// The general network equal to a specimen of RemyCCs on datagrams.
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
      sender.transport.name = "datagram";
      sender.traffic = group.traffic;
      sender.route.links = {0};
      network.senders.push_back(sender);
    }
  }
  return network;
}

// Small random networks with senders of all kinds, determined by the seed. RemyCCs run table 0.
class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : random_(seed ^ 0x6e7700), kinds_(seed ^ 0x6b696e) {}

  RandomCase& random() { return random_; }

  NetworkDescription network() {
    NetworkDescription network;
    network.key = random_.integer(0, 1'000'000);
    network.packet_bytes = random_.chance(0.5) ? 1500 : random_.integer(100, 3000);
    network.ack_bytes = random_.chance(0.3) ? 0 : random_.integer(1, 100);
    // XCP needs XCP routers on all links.
    const bool is_xcp = random_.chance(0.15);
    for (std::uint32_t links = random_.integer(1, 4); links > 0; --links) {
      network.links.push_back(link(is_xcp));
      if (kinds_.chance(0.5)) {
        vary(network.links.back());
      }
    }
    for (std::uint32_t senders = random_.integer(1, 6); senders > 0; --senders) {
      network.senders.push_back(sender(is_xcp, static_cast<std::uint32_t>(network.links.size())));
    }
    add_noise(network);
    return network;
  }

  // Adds the measurement noise that all transports support.
  void add_noise(NetworkDescription& network) {
    if (kinds_.chance(0.3)) {
      network.measurement.reordering_probability = kinds_.uniform(0, 0.3);
      network.measurement.reordering_delay_ms = kinds_.chance(0.3) ? 5 : kinds_.uniform(0, 40);
    }
    if (kinds_.chance(0.3)) {
      network.measurement.rtt_offset_maximum_ms = kinds_.uniform(0, 5);
    }
    for (SenderDescription& sender : network.senders) {
      if (kinds_.chance(0.1)) {
        sender.rtt_offset_ms = kinds_.uniform(0, 5);
      }
    }
  }

  Traffic traffic() {
    Traffic traffic = random_.traffic(500, 3000);
    if (!Schedule(traffic, 0).by_time() && random_.chance(0.2)) {
      traffic.arrivals = Barrier{random_.uniform(0.001, 100)};
    }
    return traffic;
  }

  // Draws any variant, and parameters between half and twice their defaults.
  Choice choice(std::string_view name, const std::vector<Variant>& variants) {
    const auto last = static_cast<std::uint32_t>(variants.size() - 1);
    const Variant& variant = variants[random_.integer(0, last)];
    Choice choice = {std::string(name), std::string(variant.name), {}};
    for (const Parameter& parameter : variant.parameters) {
      if (random_.chance(0.2)) {
        const double value = parameter.default_value * random_.uniform(0.5, 2);
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

  // Adds random properties other than rate, delay and loss.
  void vary(LinkDescription& link) {
    if (kinds_.chance(0.5)) {
      TraceDescription& trace = link.trace.emplace();
      trace.source = kinds_.chance(0.3) ? OpportunitySource(generator()) : recording();
      trace.semantics = static_cast<TraceSemantics>(kinds_.integer(0, 2));
      trace.ends = kinds_.chance(0.1);
      if (link.buffer_packets == 0U) {
        link.buffer_packets = 1;
      }
    }
    if (kinds_.chance(0.3)) {
      link.loss_probability = 0;
      link.gilbert_elliott = {kinds_.uniform(0, 0.05), kinds_.uniform(0.3, 1),
                              kinds_.uniform(0, 0.02), kinds_.uniform(0, 0.6)};
    }
    if (!(delays_before(link) && link.gilbert_elliott) && kinds_.chance(0.4)) {
      link.changes = kinds_.chance(0.5) ? LinkChanges(schedule(link)) : walk(link);
    }
    if (kinds_.chance(0.3)) {
      link.policer = {kinds_.uniform(0.05, 2), kinds_.uniform(1, 20)};
    }
    if (kinds_.chance(0.4)) {
      const double time_ms = kinds_.chance(0.5) ? kinds_.integer(1, 30) : kinds_.uniform(0.1, 30);
      switch (kinds_.integer(0, 2)) {
        case 0:
          link.jitter_box = PeriodicRelease{time_ms};
          break;
        case 1:
          link.jitter_box = BatchRelease{kinds_.integer(1, 20), time_ms};
          break;
        default:
          link.jitter_box = RandomRelease{time_ms, kinds_.uniform(0, 1), kinds_.chance(0.5)};
      }
    }
  }

  TraceGenerator generator() {
    TraceGenerator generator;
    generator.maximum_packets_per_s = kinds_.uniform(100, 3000);
    generator.volatility_packets_per_s = kinds_.uniform(10, 1000);
    generator.outage_escape_per_s = kinds_.uniform(1, 20);
    if (kinds_.chance(0.3)) {
      generator.seed = kinds_.integer(0, 10);
    }
    return generator;
  }

  std::shared_ptr<const Trace> recording() {
    std::vector<double> times_ms;
    double time_ms = kinds_.integer(0, 5);
    for (std::uint32_t left = kinds_.integer(1, 300); left > 0; --left) {
      times_ms.push_back(time_ms);
      time_ms += kinds_.chance(0.03) ? kinds_.integer(5, 100) : kinds_.integer(0, 3) / 2.0;
    }
    times_ms.push_back(time_ms + 1);
    return std::make_shared<const Trace>(std::move(times_ms));
  }

  LinkSchedule schedule(const LinkDescription& link) {
    LinkSchedule schedule;
    double at_ms = kinds_.integer(0, 50);
    for (std::uint32_t left = kinds_.integer(1, 5); left > 0; --left) {
      LinkStep& step = schedule.steps.emplace_back();
      step.at_ms = at_ms;
      if (!link.trace && kinds_.chance(0.7)) {
        step.rate_packets_per_ms = left > 1 && kinds_.chance(0.3) ? 0 : kinds_.uniform(0.2, 4);
      }
      if (!delays_before(link) && kinds_.chance(0.5)) {
        step.delay_ms = kinds_.uniform(0, 60);
      }
      if (!link.gilbert_elliott && kinds_.chance(0.5)) {
        step.loss_probability = kinds_.chance(0.5) ? 0 : kinds_.uniform(0, 0.1);
      }
      at_ms += kinds_.integer(1, 200);
    }
    if (!link.trace) {
      schedule.steps.back().rate_packets_per_ms = kinds_.uniform(0.2, 4);
    }
    if (kinds_.chance(0.5)) {
      schedule.repeat_after_ms = at_ms;
    }
    return schedule;
  }

  LinkWalk walk(const LinkDescription& link) {
    LinkWalk walk;
    walk.every_ms = kinds_.chance(0.5) ? kinds_.integer(5, 200) : kinds_.uniform(5, 200);
    walk.step = kinds_.chance(0.5) ? 0 : kinds_.uniform(0.05, 1);
    const auto range = [this](double most) {
      const double least = kinds_.uniform(0, most / 2);
      return LinkRange{least, kinds_.uniform(least, most)};
    };
    if (!link.trace) {
      walk.rate_packets_per_ms = range(4);
      walk.rate_packets_per_ms->most += 0.2;
    }
    if (!delays_before(link) && (link.trace || kinds_.chance(0.5))) {
      walk.delay_ms = range(60);
    }
    if (!link.gilbert_elliott && (delays_before(link) || kinds_.chance(0.5))) {
      walk.loss_probability = range(0.1);
    }
    return walk;
  }

  SenderDescription sender(bool is_xcp, std::uint32_t links) {
    SenderDescription sender;
    if (random_.chance(0.25)) {
      sender.table = 0;
    } else {
      sender.protocol = protocol(is_xcp);
    }
    do {
      const auto last = static_cast<std::uint32_t>(transports().size() - 1);
      const Transport& kind = transports()[random_.integer(0, last)];
      if (sender.table ? kind.runs_tables : kind.runs_controllers) {
        sender.transport = choice(kind.name, kind.variants);
      }
    } while (sender.transport.name.empty());
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
  RandomCase kinds_;  // random numbers for the kinds of links
};

}  // namespace remy
