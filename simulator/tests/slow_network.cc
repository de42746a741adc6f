#include "slow_network.h"

#include <algorithm>
#include <limits>

#include "core/random.h"
#include "protocols/protocol.h"
#include "reference_queues.h"
#include "senders/packet.h"
#include "slow_endpoints.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Stands for the delay before a link, in place of the delay behind it.
constexpr double kBeforeLink = -1;
// Stands for the delay of reordered packets.
constexpr double kReordered = std::numeric_limits<double>::infinity();

}  // namespace

SlowNetwork::SlowNetwork(const NetworkDescription& network, std::span<const CompiledTable> tables,
                         double duration_ms, std::uint64_t seed)
    : network_(network),
      duration_ms_(duration_ms),
      key_(derive_key(seed, network.key)),
      link_results_(network.links.size()) {
  const auto key_of = [this](Purpose purpose, std::uint64_t index) {
    return derive_key(key_, {static_cast<std::uint64_t>(purpose), index});
  };
  for (const LinkDescription& link : network.links) {
    links_.emplace_back(link, static_cast<std::uint32_t>(links_.size()), network.packet_bytes, key_,
                        duration_ms);
  }
  for (const SenderDescription& description : network.senders) {
    const std::size_t index = senders_.size();
    SlowSender sender(
        Schedule(description.traffic, key_of(Purpose::kTraffic, index), description.first_on_ms));
    sender.description = &description;
    const auto setting = [&] {
      EndpointSetting made;
      made.sender = static_cast<std::uint32_t>(index);
      made.packet_bytes = network.packet_bytes;
      made.measurement = network.measurement;
      made.measurement.rtt_offset_ms = description.rtt_offset_ms;
      made.jitter_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kJitter));
      made.rtt_offset_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kRttOffset));
      if (description.table) {
        made.table = &tables[*description.table];
      } else {
        const Protocol& protocol = find_protocol(description.protocol.name);
        made.is_ecn_capable = protocol.needs.is_ecn_capable;
        made.asks_xcp_routers = protocol.needs.needs_xcp_router;
        made.retransmits = protocol.needs.retransmits;
        made.controller =
            protocol.make(ParameterValues("protocol", protocol.variants, description.protocol),
                          key_of(Purpose::kController, index));
      }
      return made;
    };
    sender.endpoint = slow_endpoint(description.transport, setting());
    if (!sender.endpoint) {
      const Transport& kind = find_transport(description.transport.name);
      sender.endpoint =
          kind.make(ParameterValues("transport", kind.variants, description.transport), setting());
    }
    sender.switch_ms = sender.schedule.begins_ms(0, 0);
    senders_.push_back(std::move(sender));
  }
}

NetworkResults SlowNetwork::run() {
  for (SlowSender& sender : senders_) {
    sender.results.totals.first_on_ms = duration_ms_;
  }
  for (;;) {
    const Event event = next_event();
    const double until_ms = std::min(event.now_ms, duration_ms_);
    const auto on = std::ranges::count(senders_, true, &SlowSender::is_on);
    if (on > 0) {
      share_ms_ += (until_ms - clock_ms_) / static_cast<double>(on);
    }
    clock_ms_ = until_ms;
    if (event.kind == Kind::kNone || event.now_ms > duration_ms_) {
      break;
    }
    handle(event);
    while (!new_losses_.empty()) {
      const Segment segment = new_losses_.front();
      new_losses_.pop_front();
      if (!segment.is_ack) {
        sender_ = segment.sender;
        SlowSender& sender = senders_[sender_];
        ++sender.results.totals.packets_lost;
        sender.endpoint->on_packet_lost(segment, event.now_ms);
        end_if_done(sender, event.now_ms);
      }
    }
  }
  NetworkResults results;
  results.links = link_results_;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    results.links[i].transmitted = links_[i].transmitted();
  }
  for (SlowSender& sender : senders_) {
    SenderResults& totals = sender.results.totals;
    if (sender.is_on) {
      totals.on_ms += duration_ms_ - sender.on_since_ms;
      totals.share_ms += share_ms_ - sender.share_at_on_ms;
    }
    sender.results.endpoint = sender.endpoint->results();
    if (is_constant_return(sender)) {
      sender.results.delay_samples = totals.packets_received;
    }
    sender.results.throughput_packets = sender.description->transport.name == "datagram"
                                            ? totals.packets_received
                                            : sender.results.endpoint.packets_in_order;
    results.senders.push_back(sender.results);
  }
  return results;
}

SlowNetwork::Event SlowNetwork::next_event() const {
  Event first{kNever, Kind::kNone};
  const auto consider = [&](double at_ms, Kind kind, std::size_t index, double delay_ms = 0) {
    if (at_ms < kNever) {
      first = std::min(first, {std::max(at_ms, clock_ms_), kind, index, delay_ms});
    }
  };
  for (std::size_t link = 0; link < links_.size(); ++link) {
    consider(links_[link].next_ms(), Kind::kDeparture, link);
    consider(links_[link].queue().next_ms(), Kind::kTick, link);
    consider(links_[link].next_release_ms(), Kind::kRelease, link);
  }
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    const SlowSender& sender = senders_[i];
    consider(sender.endpoint->next_act_ms(), Kind::kAct, i);
    consider(sender.switch_ms, Kind::kSwitch, i);
    const double back_ms =
        is_constant_return(sender) ? sender.description->route.return_delay_ms : 0;
    consider(sender.endpoint->delayed_ack_due_ms() + back_ms, Kind::kDelayedAck, i);
  }
  for (const auto& [key, segments] : delays_) {
    if (!segments.empty()) {
      consider(segments.front().arrives_ms, Kind::kArrival, key.first, key.second);
    }
  }
  return first;
}

void SlowNetwork::handle(const Event& event) {
  const double now_ms = event.now_ms;
  switch (event.kind) {
    case Kind::kDeparture:
      handle_link_event(event.index, now_ms);
      return;
    case Kind::kTick:
      links_[event.index].queue().tick(now_ms);
      return;
    case Kind::kRelease:
      for (const ReferenceLink::Held& held : links_[event.index].release(now_ms)) {
        add_to_delay(event.index, held);
      }
      return;
    case Kind::kArrival: {
      auto& segments = delays_[{event.index, event.delay_ms}];
      Segment segment = segments.front().segment;
      segments.pop_front();
      if (event.delay_ms == kBeforeLink) {
        enqueue(segment, true, now_ms);
        return;
      }
      if (event.delay_ms < kReordered) {
        ++segment.hop;
      }
      arrive(segment, now_ms);
      return;
    }
    default:
      break;
  }
  sender_ = event.index;
  SlowSender& sender = senders_[sender_];
  if (event.kind == Kind::kAct) {
    sender.endpoint->act(now_ms, *this);
  } else if (event.kind == Kind::kDelayedAck) {
    if (const auto ack = sender.endpoint->take_delayed_ack(now_ms)) {
      send_ack(sender, ack->first, ack->second, now_ms);
    }
  } else if (sender.is_on) {
    switch_off(sender, now_ms);
  } else {
    switch_on(sender, now_ms);
  }
  end_if_done(sender, now_ms);
}

const std::vector<std::uint32_t>& SlowNetwork::links_of(const Segment& segment) const {
  const RouteDescription& route = senders_[segment.sender].description->route;
  return segment.is_ack ? route.return_links : route.links;
}

// Returns the constant delay behind the segment's link, which includes the route's delay behind the
// last link.
double SlowNetwork::delay_behind(const Segment& segment) const {
  const RouteDescription& route = senders_[segment.sender].description->route;
  const auto& links = links_of(segment);
  double rest_ms = segment.is_ack ? route.return_delay_ms : route.delay_ms;
  if (!segment.is_ack && route.return_links.empty()) {
    rest_ms = route.delay_ms + route.return_delay_ms;
  }
  if (segment.hop + 1U < links.size()) {
    rest_ms = 0;
  }
  const LinkDescription& link = network_.links[links[segment.hop]];
  return link.changes || delays_before(link) ? rest_ms : link.delay_ms + rest_ms;
}

std::uint16_t SlowNetwork::lost_behind(const std::vector<std::uint32_t>& links, bool is_return,
                                       std::uint64_t name) const {
  const std::uint64_t key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kLoss));
  for (std::size_t hop = 0; hop < links.size(); ++hop) {
    const std::uint32_t link = links[hop];
    const bool is_first = link == 0 && !is_return;
    const std::uint64_t link_key = is_first ? key : derive_key(key, {link, is_return ? 1U : 0U});
    const double probability = network_.links[link].loss_probability;
    const auto& changes = network_.links[link].changes;
    if (changes && change_loss(*changes)) {
      continue;
    }
    if (probability > 0 && unit_interval(random_bits(link_key, name)) < probability) {
      return static_cast<std::uint16_t>(hop + 1);
    }
  }
  return 0;
}

void SlowNetwork::send(const Segment& segment, double now_ms) {
  SlowSender& sender = senders_[sender_];
  Segment leaving = segment;
  leaving.sender = static_cast<std::uint32_t>(sender_);
  leaving.hop = 0;
  FlowTag flow(leaving.sender);
  for (std::uint32_t i = 0; i < sender.period; ++i) {
    flow.next_period();
  }
  const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sender.sent_in_period;
  leaving.lost_behind_hop = lost_behind(links_of(leaving), false, name);
  const std::uint64_t late_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kReordering));
  leaving.is_late =
      network_.measurement.reordering_delay_ms > 0 &&
      unit_interval(random_bits(late_key, name)) < network_.measurement.reordering_probability;
  ++sender.sent_in_period;
  ++sender.results.totals.packets_sent;
  enqueue(leaving, false, now_ms);
}

void SlowNetwork::on_drop(const Segment& segment, double) {
  ++link_results_[links_of(segment)[segment.hop]].dropped;
  new_losses_.push_back(segment);
}

void SlowNetwork::enqueue(const Segment& segment, bool is_delayed, double now_ms) {
  const std::uint32_t index = links_of(segment)[segment.hop];
  const LinkDescription& description = network_.links[index];
  if (delays_before(description) && !is_delayed) {
    delays_[{index, kBeforeLink}].push_back({now_ms + description.delay_ms, segment});
    return;
  }
  ReferenceLink& link = links_[index];
  if (!link.admits(segment, now_ms)) {
    on_drop(segment, now_ms);
    return;
  }
  link.queue().enqueue(segment, now_ms, *this);
  if (link.is_idle()) {
    link.arrived(now_ms);
    if (link.next_ms() == now_ms) {
      link.begin(now_ms, *this);
    }
  }
}

// The link's next event: a transmission ends or starts.
void SlowNetwork::handle_link_event(std::size_t index, double now_ms) {
  ReferenceLink& link = links_[index];
  std::optional<Segment> departed = link.poll(now_ms, *this);
  if (!departed) {
    return;
  }
  link.draw_loss(*departed, now_ms);
  const LinkDescription& description = network_.links[index];
  const double own_ms =
      description.changes && !delays_before(description) ? link.delay_ms(now_ms) : 0;
  link.hold(*departed, now_ms, own_ms);
  for (const ReferenceLink::Held& held : link.released()) {
    add_to_delay(index, held);
  }
}

void SlowNetwork::add_to_delay(std::size_t index, const ReferenceLink::Held& held) {
  const double behind_ms = delay_behind(held.segment);
  std::deque<InDelay>& in_delay = delays_[{index, behind_ms}];
  double arrives_ms = held.release_ms + held.delay_ms + behind_ms;
  if (!links_[index].reorders() && !in_delay.empty()) {
    arrives_ms = std::max(arrives_ms, in_delay.back().arrives_ms);
  }
  const auto position = std::ranges::upper_bound(in_delay, arrives_ms, {}, &InDelay::arrives_ms);
  in_delay.insert(position, {arrives_ms, held.segment});
}

void SlowNetwork::arrive(const Segment& segment, double now_ms) {
  const auto& links = links_of(segment);
  if (segment.lost_behind_hop == segment.hop) {
    ++link_results_[links[segment.hop - 1U]].lost;
    new_losses_.push_back(segment);
    return;
  }
  if (segment.hop < links.size()) {
    enqueue(segment, false, now_ms);
    return;
  }
  if (segment.is_late) {
    Segment late = segment;
    late.is_late = false;
    delays_[{links.back(), kReordered}].push_back(
        {now_ms + network_.measurement.reordering_delay_ms, late});
    return;
  }
  sender_ = segment.sender;
  SlowSender& sender = senders_[sender_];
  if (!segment.is_ack) {
    data_arrived(sender, segment, now_ms);
    return;
  }
  sender.results.totals.delay_sum_ms += now_ms - segment.sent_ms;
  ++sender.results.delay_samples;
  sender.endpoint->on_ack(segment, acks_.at(segment.ack_slot), now_ms, *this);
  end_if_done(sender, now_ms);
}

void SlowNetwork::data_arrived(SlowSender& sender, const Segment& segment, double now_ms) {
  ++sender.results.totals.packets_received;
  double received_ms = now_ms;
  if (is_constant_return(sender)) {
    // Without return links the event is the ACK's arrival. The packet was received earlier.
    received_ms = now_ms - sender.description->route.return_delay_ms;
    sender.results.totals.delay_sum_ms += now_ms - segment.sent_ms;
  }
  const auto content = sender.endpoint->on_data(segment, received_ms);
  if (is_constant_return(sender)) {
    end_if_done(sender, now_ms);
  }
  if (content) {
    send_ack(sender, segment, *content, now_ms);
  }
  end_if_done(sender, now_ms);
}

void SlowNetwork::send_ack(SlowSender& sender, const Segment& echo, const AckContent& content,
                           double now_ms) {
  if (is_constant_return(sender)) {
    sender.endpoint->on_ack(echo, content, now_ms, *this);
    return;
  }
  Segment ack = echo;
  ack.is_ack = true;
  ack.is_marked = false;
  ack.is_ecn_capable = false;
  ack.bytes = static_cast<std::uint32_t>(network_.ack_bytes);
  if (ack.bytes > 0 && content.bytes > 0) {
    ack.bytes = content.bytes;
  }
  ack.hop = 0;
  ack.ack_slot = next_slot_++;
  acks_[ack.ack_slot] = content;
  ack.lost_behind_hop =
      lost_behind(links_of(ack), true, std::uint64_t{ack.sender} << 40 ^ sender.acks_sent++);
  enqueue(ack, false, now_ms);
}

void SlowNetwork::switch_on(SlowSender& sender, double now_ms) {
  sender.is_on = true;
  sender.on_since_ms = now_ms;
  sender.share_at_on_ms = share_ms_;
  double& first_on_ms = sender.results.totals.first_on_ms;
  first_on_ms = std::min(first_on_ms, now_ms);
  sender.switch_ms = kNever;
  sender.flow_packets.reset();
  if (sender.schedule.by_time()) {
    sender.switch_ms = sender.schedule.ends_ms(sender.period, now_ms);
  } else {
    sender.flow_packets = sender.schedule.on_packets(sender.period, network_.packet_bytes);
  }
  ++sender.period;
  sender.sent_in_period = 0;
  sender.endpoint->switch_on(sender.flow_packets, now_ms, *this);
}

void SlowNetwork::switch_off(SlowSender& sender, double now_ms) {
  if (sender.flow_packets) {
    sender.results.flows.push_back(
        {*sender.flow_packets, now_ms - sender.schedule.arrival_ms(sender.on_since_ms)});
  }
  sender.results.totals.on_ms += now_ms - sender.on_since_ms;
  sender.results.totals.share_ms += share_ms_ - sender.share_at_on_ms;
  sender.is_on = false;
  sender.endpoint->switch_off(now_ms);
  sender.switch_ms = sender.schedule.begins_ms(sender.period, now_ms);
  const auto* const barrier = std::get_if<Barrier>(&sender.description->traffic.arrivals);
  const auto shares_barrier = [&](const SlowSender& other) {
    return std::holds_alternative<Barrier>(other.description->traffic.arrivals) &&
           other.description->barrier == sender.description->barrier;
  };
  // The barrier opens when none of its senders is on or about to switch on.
  if (barrier != nullptr && std::ranges::all_of(senders_, [&](const SlowSender& other) {
        return !shares_barrier(other) || (!other.is_on && other.switch_ms == kNever);
      })) {
    for (SlowSender& other : senders_) {
      if (shares_barrier(other)) {
        other.switch_ms = now_ms + barrier->pause_ms;
      }
    }
  }
}

void SlowNetwork::end_if_done(SlowSender& sender, double now_ms) {
  if (sender.is_on && sender.flow_packets && sender.endpoint->is_done()) {
    switch_off(sender, now_ms);
  }
}

}  // namespace remy
