#include "network/topology.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/random.h"
#include "elements/drop_tail.h"
#include "elements/packet_ring.h"
#include "elements/queues.h"
#include "protocols/protocol.h"
#include "transports/transport.h"

namespace remy {
namespace {

// Sort keys of the delay lines of a link that are not behind it at the delay of a route.
constexpr double kBeforeLink = -1;
constexpr double kReordering = std::numeric_limits<double>::infinity();

// Whether the sender runs a table that looks at the telemetry of links.
bool needs_telemetry(const SenderDescription& sender, std::span<const CompiledTable> tables) {
  return sender.table && std::ranges::any_of(kSignalAxes, [&](const SignalAxis& axis) {
           return axis.origin == SignalOrigin::kTelemetry &&
                  tables[*sender.table].looks_at(axis.signal);
         });
}

}  // namespace

Topology::Topology(const NetworkDescription& description, std::span<const CompiledTable> tables,
                   double duration_ms, std::uint64_t key, RuleObserver* observer,
                   Departures departures)
    : description_(description), duration_ms_(duration_ms), key_(key) {
  std::vector<bool> have_telemetry(description.links.size());
  for (const SenderDescription& each : description.senders) {
    if (needs_telemetry(each, tables)) {
      for (const std::uint32_t link : each.route.links) {
        have_telemetry[link] = true;
      }
    }
  }
  links_.reserve(description.links.size());
  for (std::size_t i = 0; i < description.links.size(); ++i) {
    add_link(description.links[i], departures, have_telemetry[i]);
  }
  senders_.reserve(description.senders.size());
  for (const SenderDescription& each : description.senders) {
    add_sender(each, tables, observer);
  }
  update_losses();
  order_delay_lines();
}

void Topology::add_link(const LinkDescription& description, Departures departures,
                        bool has_telemetry) {
  const auto index = static_cast<std::uint32_t>(links_.size());
  Link& link = links_.emplace_back();
  link.index = index;
  link.description = description;
  link.queue = make_queue(index, description);
  std::optional<FifoLink>* fifo = &link.fifo;
  if (!is_constant(description) || has_telemetry) {
    link.time_varying = make_time_varying(description, index);
    fifo = &link.time_varying->fifo;
  }
  if (has_telemetry) {
    link.time_varying->telemetry = make_telemetry(description);
  }
  // Cellsim's link may ask again at the time of an arrival.
  if (departures == Departures::kComputedAhead && description.queue.name == "drop-tail" &&
      !delays_before(description)) {
    const DropTailLimits& limits = static_cast<const DropTail&>(*link.queue).limits();
    if (limits.packets > 0 && limits.bytes == DropTailLimits().bytes) {
      fifo->emplace(limits.packets);
    }
  }
  if (TimeVaryingLink* const varying = link.time_varying.get(); varying != nullptr) {
    varying->only_drives = varying->fifo && !varying->conditions && !varying->policer &&
                           !varying->bursts && !varying->jitter_box && !varying->telemetry;
  }
  link.service_ms = 1 / description.rate_packets_per_ms;
}

std::unique_ptr<TimeVaryingLink> Topology::make_time_varying(const LinkDescription& description,
                                                             std::uint32_t index) const {
  enum class Draws : std::uint64_t { kOpportunities, kWalk, kBursts, kJitterBox, kLoss };
  const auto key_of = [this, index](Draws draws) {
    return derive_key(key_, {static_cast<std::uint64_t>(Purpose::kLink), index,
                             static_cast<std::uint64_t>(draws)});
  };
  auto link = std::make_unique<TimeVaryingLink>();
  if (description.changes) {
    link->conditions.emplace(LinkCondition{description.rate_packets_per_ms, description.delay_ms,
                                           description.loss_probability},
                             *description.changes, key_of(Draws::kWalk), duration_ms_);
    link->changes_loss = change_loss(*description.changes);
  }
  if (description.trace) {
    link->driver = trace_driver(description.trace->semantics,
                                Opportunities(description.trace->source, description.trace->ends,
                                              key_of(Draws::kOpportunities)));
  } else if (description.changes && change_rate(*description.changes)) {
    link->driver = rate_driver(*link->conditions, description_.packet_bytes);
  } else {
    link->driver = rate_driver(description.rate_packets_per_ms, description_.packet_bytes);
  }
  if (description.policer) {
    link->policer.emplace(*description.policer, description_.packet_bytes);
  }
  if (description.gilbert_elliott) {
    link->bursts.emplace(*description.gilbert_elliott, key_of(Draws::kBursts));
  }
  if (description.jitter_box) {
    link->jitter_box.emplace(*description.jitter_box, key_of(Draws::kJitterBox));
    const auto* const random = std::get_if<RandomRelease>(&*description.jitter_box);
    link->reorders = random != nullptr && random->reorders;
  }
  link->loss_key = key_of(Draws::kLoss);
  return link;
}

LinkTelemetry Topology::make_telemetry(const LinkDescription& description) const {
  if (description.trace || (description.changes && change_rate(*description.changes))) {
    return {};
  }
  return {1 / description.rate_packets_per_ms, description_.packet_bytes};
}

std::unique_ptr<Queue> Topology::make_queue(std::uint32_t link,
                                            const LinkDescription& description) const {
  const QueueDiscipline& discipline = find_queue_discipline(description.queue.name);
  return discipline.make(
      ParameterValues("queue", discipline.variants, description.queue),
      {description.buffer_packets, mean_rate_packets_per_ms(description, description_.packet_bytes),
       description_.packet_bytes,
       derive_key(key_, {static_cast<std::uint64_t>(Purpose::kQueue), link})});
}

void Topology::add_sender(const SenderDescription& description,
                          std::span<const CompiledTable> tables, RuleObserver* observer) {
  const auto index = static_cast<std::uint32_t>(senders_.size());
  NetworkSender& sender = senders_.emplace_back(
      description, derive_key(key_, {static_cast<std::uint64_t>(Purpose::kTraffic), index}), index);
  sender.counts_every_packet = find_transport(description.transport.name).counts_every_packet;
  const RouteDescription& route = description.route;
  if (needs_telemetry(description, tables)) {
    sender.telemetry = std::make_unique<PathTelemetry>(route.links.size());
  }
  sender.endpoint = make_endpoint(description, sender, tables, observer);
  sender.has_constant_return = route.return_links.empty();
  sender.return_delay_ms = route.return_delay_ms;
  if (sender.has_constant_return) {
    sender.route = make_route(route.links, route.delay_ms + route.return_delay_ms, false);
  } else {
    sender.route = make_route(route.links, route.delay_ms, false);
    sender.return_route = make_route(route.return_links, route.return_delay_ms, true);
  }
}

std::unique_ptr<Endpoint> Topology::make_endpoint(const SenderDescription& description,
                                                  const NetworkSender& sender,
                                                  std::span<const CompiledTable> tables,
                                                  RuleObserver* observer) const {
  EndpointSetting setting;
  setting.sender = sender.index;
  setting.packet_bytes = description_.packet_bytes;
  setting.measurement = description_.measurement;
  setting.measurement.rtt_offset_ms = description.rtt_offset_ms;
  setting.jitter_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kJitter));
  setting.rtt_offset_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kRttOffset));
  if (description.table) {
    setting.table = &tables[*description.table];
    setting.observer = observer;
    setting.telemetry = sender.telemetry.get();
    setting.is_ecn_capable = setting.table->looks_at(Signal::kEcnFraction);
  } else {
    const Protocol& protocol = find_protocol(description.protocol.name);
    setting.is_ecn_capable = protocol.needs.is_ecn_capable;
    setting.asks_xcp_routers = protocol.needs.needs_xcp_router;
    setting.samples_rates = protocol.needs.needs_rate_samples;
    setting.retransmits = protocol.needs.retransmits;
    setting.controller = protocol.make(
        ParameterValues("protocol", protocol.variants, description.protocol),
        derive_key(key_, {static_cast<std::uint64_t>(Purpose::kController), sender.index}));
  }
  const Transport& transport = find_transport(description.transport.name);
  return transport.make(ParameterValues("transport", transport.variants, description.transport),
                        std::move(setting));
}

// `delay_ms` is added to the last link's delay.
Route Topology::make_route(const std::vector<std::uint32_t>& links, double delay_ms,
                           bool is_return) {
  Route route;
  std::vector<Hop>& hops = hops_.emplace_back();
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i]];
    double behind_ms = i + 1 == links.size() ? delay_ms : 0;
    if (delays_before(link.description)) {
      link.time_varying->line_before = delay_line(links[i], kBeforeLink, link.description.delay_ms);
    } else if (!link.description.changes) {
      behind_ms += link.description.delay_ms;
    }
    hops.push_back({&link, delay_line(links[i], behind_ms, behind_ms)});
  }
  route.hops = hops.data();
  route.length = static_cast<std::uint32_t>(hops.size());
  if (description_.measurement.reorders() && !is_return) {
    route.reordering_line =
        delay_line(links.back(), kReordering, description_.measurement.reordering_delay_ms);
  }
  return route;
}

void Topology::update_losses() {
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    NetworkSender& sender = senders_[i];
    const RouteDescription& route = description_.senders[i].route;
    sender.route.lossy_hops =
        lossy_hops(route.links, false, sender.route.reordering_line != nullptr);
    sender.return_route.lossy_hops = lossy_hops(route.return_links, true, false);
    sender.lossless_packets = sender.route.lossy_hops.empty() ? PacketRing::kMaximumPackets : 0;
  }
}

std::vector<LossyHop> Topology::lossy_hops(const std::vector<std::uint32_t>& links, bool is_return,
                                           bool may_reorder) const {
  std::vector<LossyHop> lossy;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::uint32_t link = links[i];
    const LinkDescription& description = links_[link].description;
    const double probability = description.loss_probability;
    // A probability that changes is drawn behind the link instead.
    if (probability > 0 && !(description.changes && change_loss(*description.changes))) {
      // The draws of the first link have the dumbbell's names.
      std::uint64_t key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kLoss));
      if (link > 0 || is_return) {
        key = derive_key(key, {link, is_return ? 1U : 0U});
      }
      lossy.push_back({static_cast<std::uint16_t>(i + 1), false, probability, key});
    }
  }
  if (may_reorder) {
    lossy.push_back({static_cast<std::uint16_t>(links.size()), true,
                     description_.measurement.reordering_probability,
                     derive_key(key_, static_cast<std::uint64_t>(Purpose::kReordering))});
  }
  return lossy;
}

DelayLine* Topology::delay_line(std::uint32_t link, double order, double delay_ms) {
  return &line_of_.try_emplace({link, order}, DelayLine{{}, delay_ms, &links_[link], 0})
              .first->second;
}

void Topology::order_delay_lines() {
  for (auto& [order, line] : line_of_) {
    line.index = static_cast<std::uint32_t>(lines_.size());
    lines_.push_back(&line);
  }
  for (const std::vector<Hop>& hops : hops_) {
    for (const Hop& hop : hops) {
      hop.link->only_line = hop.line;
    }
  }
  for (const std::vector<Hop>& hops : hops_) {
    for (const Hop& hop : hops) {
      if (hop.link->only_line != hop.line) {
        hop.link->only_line = nullptr;
      }
    }
  }
}

}  // namespace remy
