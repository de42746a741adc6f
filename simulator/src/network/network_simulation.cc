#include "network/network_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/random.h"
#include "core/requirement.h"
#include "elements/packet_ring.h"
#include "network/endpoint_observation.h"

namespace remy {

NetworkSimulation::NetworkSimulation(const NetworkDescription& description,
                                     std::span<const CompiledTable> tables, double duration_ms,
                                     std::uint64_t seed, const NetworkOptions& options,
                                     Departures departures)
    : description_(description),
      duration_ms_(duration_ms),
      options_(options),
      packet_bytes_(static_cast<std::uint32_t>(description.packet_bytes)),
      ack_bytes_(static_cast<std::uint32_t>(description.ack_bytes)),
      topology_(description, tables, duration_ms, derive_key(seed, description.key),
                options.observer, departures),
      events_(static_cast<std::uint32_t>(topology_.links().size()),
              static_cast<std::uint32_t>(topology_.delay_lines().size()),
              static_cast<std::uint32_t>(topology_.senders().size())),
      traffic_(topology_.senders(), events_, description.packet_bytes) {
  if (options.recorder != nullptr) {
    next_sample_ms_ = 0;
    events_.set_sample(next_sample_ms_);
    sender_samples_.resize(topology_.senders().size());
    link_samples_.resize(topology_.links().size());
  }
}

void NetworkSimulation::observe_endpoints() {
  for (NetworkSender& sender : topology_.senders()) {
    if (options_.capture != nullptr && options_.capture->sender == sender.index) {
      sender.endpoint = capturing(std::move(sender.endpoint), *options_.capture);
    }
    if (options_.measures_distributions) {
      sender.endpoint = counting_rtts(std::move(sender.endpoint), sender.has_constant_return,
                                      sender.results.rtts);
    }
  }
}

NetworkResults NetworkSimulation::run() {
  observe_endpoints();
  for (NetworkSender& sender : topology_.senders()) {
    sender.results.totals.first_on_ms = duration_ms_;
  }
  run_until(duration_ms_);
  return collect_results();
}

inline double NetworkSimulation::transmission_ms(const Link& link, const Segment& segment) const {
  return segment.bytes == packet_bytes_
             ? link.service_ms
             : segment.bytes / description_.packet_bytes * link.service_ms;
}

// A segment leaves a constant link at departure_ms and enters the line behind it.
[[gnu::always_inline]] inline void NetworkSimulation::propagate(Link& link, DelayLine& line,
                                                                const Segment& segment,
                                                                double departure_ms) {
  ++link.results.transmitted;
  const double arrives_ms = departure_ms + line.delay_ms;
  if (!line.in_flight.is_partly_filled()) [[unlikely]] {
    propagate_into_new_place(line, segment, arrives_ms);
    return;
  }
  DelayLine::InFlight& entry = line.in_flight.push_without_growing();
  entry.arrives_ms = arrives_ms;
  entry.segment = segment;
  ++entry.segment.hop;
}

// The slow path of propagate(): the line is empty, or its ring must grow.
[[gnu::noinline]] void NetworkSimulation::propagate_into_new_place(DelayLine& line,
                                                                   const Segment& segment,
                                                                   double arrives_ms) {
  if (line.in_flight.empty()) {
    events_.set_arrival(line.index, arrives_ms);
  }
  DelayLine::InFlight& entry = line.in_flight.push();
  entry.arrives_ms = arrives_ms;
  entry.segment = segment;
  ++entry.segment.hop;
}

[[gnu::noinline]] void NetworkSimulation::arrive_at_link(const Hop& hop, const Segment& segment,
                                                         double now_ms) {
  Link& link = *hop.link;
  if (!link.fifo) {
    arrive_at_queue(hop, segment, now_ms);
  } else if (link.fifo->accept(now_ms, transmission_ms(link, segment), segment.bytes)) [[likely]] {
    propagate(link, *hop.line, segment, link.fifo->last_departure_ms());
  } else {
    arrive_at_full_fifo(hop, segment, now_ms);
  }
}

// The FIFO is full, or its ring must grow.
[[gnu::noinline]] void NetworkSimulation::arrive_at_full_fifo(const Hop& hop,
                                                              const Segment& segment,
                                                              double now_ms) {
  if (hop.link->fifo->make_room()) {
    arrive_at_link(hop, segment, now_ms);
  } else {
    on_drop(segment, now_ms);
  }
}

// The link is idle and takes the next segment from its queue. The end of the transmission and the
// arrival behind the link are known at once.
[[gnu::always_inline]] inline void NetworkSimulation::start_transmission(Link& link,
                                                                         double now_ms) {
  Segment* const segment = link.queue->dequeue(now_ms, *this);
  link.is_busy = segment != nullptr;
  if (segment == nullptr) {
    events_.set_departure(link.index, kNever);
  } else if (link.time_varying) {
    const LinkDriver::Transmission transmission =
        link.time_varying->driver->transmit(now_ms, segment->bytes);
    events_.set_departure(link.index, transmission.next_start_ms);
    propagate_time_varying(link, *segment, transmission.departs_ms);
  } else {
    const double departure_ms = now_ms + transmission_ms(link, *segment);
    events_.set_departure(link.index, departure_ms);
    DelayLine* line = link.only_line;
    if (line == nullptr) [[unlikely]] {
      const NetworkSender& sender = topology_.senders()[segment->sender];
      line = route_of(sender, *segment).hops[segment->hop].line;
    }
    propagate(link, *line, *segment, departure_ms);
  }
}

// start_transmission() after an arrival. Not inlined, so that it does not burden the fast path.
[[gnu::noinline]] void NetworkSimulation::start_idle_link(Link& link, double now_ms) {
  start_transmission(link, now_ms);
}

[[gnu::always_inline]] inline void NetworkSimulation::receive_data(NetworkSender& sender,
                                                                   const Segment& segment,
                                                                   double now_ms) {
  --packets_in_network_;
  ++sender.results.totals.packets_received;
  active_ = &sender;
  if (!sender.has_constant_return) {
    const auto content = sender.endpoint->on_data(segment, now_ms);
    if (!content || sender.delayed_ack_timer_ms < kNever) [[unlikely]] {
      update_delayed_ack(sender);
    }
    if (content) {
      send_ack(sender, segment, *content, now_ms);
    }
    update(sender, now_ms);
    return;
  }
  sender.rtt_ms = now_ms - segment.sent_ms;
  sender.results.totals.delay_sum_ms += sender.rtt_ms;
  const double received_ms = now_ms - sender.return_delay_ms;
  const double act_ms = sender.endpoint->on_round_trip(segment, received_ms, now_ms, *this);
  if (act_ms < sender.act_timer_ms || sender.mode == NetworkSender::Mode::kOnForPackets)
      [[unlikely]] {
    if (act_ms == Endpoint::kDeclined) {
      receive_data_and_ack(sender, segment, now_ms);
    } else {
      update(sender, now_ms);
    }
  }
}

[[gnu::always_inline]] inline void NetworkSimulation::arrive(DelayLine& line, double now_ms) {
  // The segment is read in its place, which stays valid while others join the line.
  const Segment& segment = line.in_flight.front().segment;
  if (segment.lost_behind_hop == segment.hop && !segment.is_delayed) [[unlikely]] {
    lose_or_delay(line, segment, now_ms);
  } else {
    NetworkSender& sender = topology_.senders()[segment.sender];
    const Route& route = route_of(sender, segment);
    if (segment.hop < route.length) {
      arrive_at_link(route.hops[segment.hop], segment, now_ms);
    } else if (segment.is_ack) {
      receive_ack(sender, segment, now_ms);
    } else {
      receive_data(sender, segment, now_ms);
    }
  }
  line.in_flight.pop();
  events_.set_arrival(line.index,
                      line.in_flight.empty() ? kNever : line.in_flight.front().arrives_ms);
  if (!losses_.empty()) [[unlikely]] {
    report_losses(now_ms);
  }
}

void NetworkSimulation::run_until(double until_ms) {
  events_.set_end(std::nextafter(until_ms, kNever));
  for (;;) {
    const double departure_ms = events_.departure_ms();
    const double arrival_ms = events_.arrival_ms();
    const bool departs = departure_ms <= arrival_ms;
    bool is_packet = true;
    if ((departs ? departure_ms : arrival_ms) >= events_.horizon_ms()) [[unlikely]] {
      const EventSchedule::Event event = events_.next();
      if (event.kind == EventSchedule::Kind::kEnd) {
        return;
      }
      is_packet = event.kind == EventSchedule::Kind::kPacket;
      if (!is_packet) {
        handle(event);
      }
    }
    if (is_packet) [[likely]] {
      if (departs) {
        start_transmission(topology_.links()[events_.departing_link()], departure_ms);
        if (!losses_.empty()) [[unlikely]] {
          report_losses(departure_ms);
        }
        continue;
      }
      arrive(*topology_.delay_lines()[events_.arriving_line()], arrival_ms);
    }
    if (--events_until_poll_ == 0) [[unlikely]] {
      poll_interruption();
    }
  }
}

void NetworkSimulation::handle(const EventSchedule::Event& event) {
  switch (event.kind) {
    case EventSchedule::Kind::kAct:
      act(topology_.senders()[event.index], event.now_ms);
      break;
    case EventSchedule::Kind::kQueue:
      tick_queue(event.index, event.now_ms);
      return;
    case EventSchedule::Kind::kSwitch:
      toggle(topology_.senders()[event.index], event.now_ms);
      break;
    case EventSchedule::Kind::kDelayedAck:
      send_delayed_ack(topology_.senders()[event.index], event.now_ms);
      break;
    case EventSchedule::Kind::kJitterBox:
      release_jitter_box(event.index);
      break;
    case EventSchedule::Kind::kSample:
      record();
      return;
    case EventSchedule::Kind::kPacket:
    case EventSchedule::Kind::kEnd:
      return;
  }
  report_losses(event.now_ms);
}

void NetworkSimulation::act(NetworkSender& sender, double now_ms) {
  sender.act_timer_ms = kNever;
  if (sender.endpoint->next_act_ms() <= now_ms) {
    active_ = &sender;
    sender.endpoint->act(now_ms, *this);
  }
  update(sender, now_ms);
  if (sender.act_timer_ms == kNever) {
    set_act(sender, kNever);
  }
}

void NetworkSimulation::tick_queue(std::uint32_t link, double now_ms) {
  Queue& queue = *topology_.links()[link].queue;
  queue.tick(now_ms);
  events_.set_queue(link, queue.next_ms());
}

void NetworkSimulation::toggle(NetworkSender& sender, double now_ms) {
  poll_interruption();
  active_ = &sender;
  if (sender.mode == NetworkSender::Mode::kOff) {
    traffic_.switch_on(sender, now_ms, *this);
  } else {
    traffic_.switch_off(sender, now_ms);
  }
  update(sender, now_ms);
}

void NetworkSimulation::send_delayed_ack(NetworkSender& sender, double now_ms) {
  active_ = &sender;
  // The on period of the delayed packet may be over, and its ACK cancelled.
  const bool is_due = sender.endpoint->delayed_ack_due_ms() < kNever;
  const auto ack = is_due ? sender.endpoint->take_delayed_ack(now_ms) : std::nullopt;
  update_delayed_ack(sender);
  if (ack) {
    send_ack(sender, ack->first, ack->second, now_ms);
  }
  update(sender, now_ms);
}

void NetworkSimulation::release_jitter_box(std::uint32_t link) {
  TimeVaryingLink& varying = *topology_.links()[link].time_varying;
  varying.jitter_box->tick([&](const Segment& segment, double release_ms, double delay_ms) {
    leave_link(segment, release_ms, delay_ms, varying.reorders);
  });
  varying.jitter_box_timer_ms = kNever;
  events_.set_jitter_box(link, kNever);
}

// Called by the endpoint of the active sender.
void NetworkSimulation::send(const Segment& segment, double now_ms) {
  NetworkSender& sender = *active_;
  ++sender.results.totals.packets_sent;
  if (++packets_in_network_ > sender.lossless_packets) [[unlikely]] {
    send_lossy(segment, now_ms);
  } else {
    arrive_at_link(*sender.route.hops, segment, now_ms);
  }
}

// The slow path of send(): the packet may be lost behind a link, or be one too many.
[[gnu::noinline]] void NetworkSimulation::send_lossy(const Segment& sent, double now_ms) {
  const NetworkSender& sender = *active_;
  const std::uint32_t number = static_cast<std::uint32_t>(sender.results.totals.packets_sent - 1) -
                               sender.sent_before_period;
  Segment segment = sent;
  sender.route.draw_loss(std::uint64_t{sender.flow.word()} << 32 | number, segment);
  // Windows are at most 1e6 packets, so that more packets only waste memory.
  if (packets_in_network_ > PacketRing::kMaximumPackets) {
    on_drop(segment, now_ms);
  } else {
    arrive_at_link(*sender.route.hops, segment, now_ms);
  }
}

void NetworkSimulation::on_drop(const Segment& segment, double) {
  const Route& route = route_of(topology_.senders()[segment.sender], segment);
  ++route.hops[segment.hop].link->results.dropped;
  losses_.push_back(segment);
}

// A segment arrives at a link whose departures are not computed ahead, or which is time-varying.
[[gnu::noinline]] void NetworkSimulation::arrive_at_queue(const Hop& hop, const Segment& segment,
                                                          double now_ms) {
  Link& link = *hop.link;
  if (link.time_varying) {
    arrive_at_time_varying(hop, segment, now_ms);
    return;
  }
  link.queue->enqueue(segment, now_ms, *this);
  if (!link.is_busy) {
    start_idle_link(link, now_ms);
  }
  if (const double tick_ms = link.queue->next_ms(); tick_ms < kNever) [[unlikely]] {
    events_.set_queue(link.index, tick_ms);
  }
}

[[gnu::noinline]] void NetworkSimulation::arrive_at_time_varying(const Hop& hop,
                                                                 const Segment& arriving,
                                                                 double now_ms) {
  Link& link = *hop.link;
  TimeVaryingLink& varying = *link.time_varying;
  if (varying.only_drives) [[likely]] {
    if (const auto departure_ms = varying.fifo->accept(now_ms, *varying.driver, arriving.bytes)) {
      propagate(link, *hop.line, arriving, *departure_ms);
    } else {
      on_drop(arriving, now_ms);
    }
    return;
  }
  Segment segment = arriving;
  if (DelayLine* const before = varying.line_before; before != nullptr && !segment.is_delayed) {
    segment.is_delayed = true;
    join(*before, segment, segment.hop, now_ms + before->delay_ms, false);
    return;
  }
  segment.is_delayed = false;
  if (varying.policer && !varying.policer->admits(now_ms, segment.bytes)) {
    on_drop(segment, now_ms);
    return;
  }
  if (varying.telemetry) {
    const std::size_t waiting = varying.fifo ? 0 : link.queue->packets();
    const std::uint32_t held = varying.telemetry->on_arrival(now_ms, waiting);
    if (Telemetry* const written = telemetry_of(segment)) {
      written->queue_packets = held;
    }
  }
  if (varying.fifo) {
    if (const auto departure_ms = varying.fifo->accept(now_ms, *varying.driver, segment.bytes)) {
      propagate_time_varying(link, segment, *departure_ms);
    } else {
      on_drop(segment, now_ms);
    }
    return;
  }
  link.queue->enqueue(segment, now_ms, *this);
  if (!link.is_busy) {
    if (const double start_ms = varying.driver->next_start_ms(now_ms); start_ms > now_ms) {
      link.is_busy = true;
      events_.set_departure(link.index, start_ms);
    } else {
      start_idle_link(link, now_ms);
    }
  }
  if (const double tick_ms = link.queue->next_ms(); tick_ms < kNever) {
    events_.set_queue(link.index, tick_ms);
  }
}

// A segment leaves a time-varying link at departure_ms: draws its loss, and passes it through the
// jitter box into the line behind.
void NetworkSimulation::propagate_time_varying(Link& link, Segment& segment, double departure_ms) {
  TimeVaryingLink& varying = *link.time_varying;
  ++link.results.transmitted;
  if (varying.telemetry) {
    Telemetry ignored;
    Telemetry* const written = telemetry_of(segment);
    varying.telemetry->on_departure(departure_ms, segment.bytes,
                                    written != nullptr ? *written : ignored);
  }
  // Each transmission has draws of its own at each hop.
  const std::uint64_t counter =
      (std::uint64_t{segment.is_ack} << 62 | std::uint64_t{segment.sender} << 48 |
       std::uint64_t{segment.hop} << 38) ^
      segment.transmission_number;
  const auto hop = static_cast<std::uint16_t>(segment.hop + 1);
  double delay_ms = 0;
  bool is_lost = false;
  if (varying.conditions) {
    const LinkCondition& condition = varying.conditions->at(departure_ms);
    delay_ms = delays_before(link.description) ? 0 : condition.delay_ms;
    is_lost = varying.changes_loss &&
              unit_interval(random_bits(varying.loss_key, counter)) < condition.loss_probability;
  }
  // Drawn whether or not the segment is lost already, as the process has a state.
  if ((varying.bursts && varying.bursts->loses_next()) || is_lost) {
    segment.lost_behind_hop = hop;
    segment.is_late = false;
  }
  if (!varying.jitter_box) {
    leave_link(segment, departure_ms, delay_ms, false);
    return;
  }
  varying.jitter_box->put(segment, departure_ms, delay_ms, counter,
                          [&](const Segment& released, double release_ms, double behind_ms) {
                            leave_link(released, release_ms, behind_ms, varying.reorders);
                          });
  if (const double due_ms = varying.jitter_box->next_ms(); due_ms != varying.jitter_box_timer_ms) {
    varying.jitter_box_timer_ms = due_ms;
    events_.set_jitter_box(link.index, due_ms);
  }
}

// Returns the record into which the link that a segment crosses writes its telemetry, or null if
// the segment's sender does not use telemetry.
Telemetry* NetworkSimulation::telemetry_of(const Segment& segment) {
  PathTelemetry* const telemetry = topology_.senders()[segment.sender].telemetry.get();
  return telemetry == nullptr || segment.is_ack
             ? nullptr
             : telemetry->at(segment.transmission_number, segment.hop);
}

// A segment leaves the link that it crosses, and its jitter box, at leaves_ms.
void NetworkSimulation::leave_link(const Segment& segment, double leaves_ms, double delay_ms,
                                   bool may_overtake) {
  const NetworkSender& sender = topology_.senders()[segment.sender];
  DelayLine& line = *route_of(sender, segment).hops[segment.hop].line;
  join(line, segment, segment.hop + 1U, leaves_ms + delay_ms + line.delay_ms, may_overtake);
}

// Adds a segment to a line, at whose end it will have crossed `hop` links.
void NetworkSimulation::join(DelayLine& line, const Segment& segment, std::uint32_t hop,
                             double arrives_ms, bool may_overtake) {
  if (line.add(segment, hop, arrives_ms, may_overtake)) {
    events_.set_arrival(line.index, line.in_flight.front().arrives_ms);
  }
}

void NetworkSimulation::lose_or_delay(const DelayLine& line, const Segment& segment,
                                      double now_ms) {
  if (!segment.is_late) {
    ++line.link->results.lost;
    losses_.push_back(segment);
    return;
  }
  Segment late = segment;
  late.is_late = false;
  late.lost_behind_hop = 0;
  DelayLine& reordering = *topology_.senders()[segment.sender].route.reordering_line;
  join(reordering, late, late.hop, now_ms + reordering.delay_ms, false);
}

// receive_data() of an endpoint that handles data and ACKs apart. The ACK cannot be lost and
// arrives now.
void NetworkSimulation::receive_data_and_ack(NetworkSender& sender, const Segment& segment,
                                             double now_ms) {
  const double received_ms = now_ms - sender.return_delay_ms;
  const auto content = sender.endpoint->on_data(segment, received_ms);
  if (!content || sender.delayed_ack_timer_ms < kNever) [[unlikely]] {
    update_delayed_ack(sender);
  }
  if (sender.mode == NetworkSender::Mode::kOnForPackets && sender.endpoint->is_done()) {
    traffic_.switch_off(sender, now_ms);
  }
  if (content) {
    sender.endpoint->on_ack(segment, *content, now_ms, *this);
  }
  update(sender, now_ms);
}

void NetworkSimulation::send_ack(NetworkSender& sender, const Segment& echo,
                                 const AckContent& content, double now_ms) {
  if (sender.has_constant_return) {
    sender.endpoint->on_ack(echo, content, now_ms, *this);
    return;
  }
  Segment ack = echo;
  ack.sender = sender.index;
  ack.is_ack = true;
  ack.is_marked = false;
  ack.is_ecn_capable = false;
  ack.bytes = content.bytes > 0 && ack_bytes_ > 0 ? content.bytes : ack_bytes_;
  ack.hop = 0;
  ack.lost_behind_hop = 0;
  const std::uint64_t number = sender.results.acks_sent++;
  if (!sender.return_route.lossy_hops.empty()) {
    sender.return_route.draw_loss(std::uint64_t{ack.sender} << 40 ^ number, ack);
  }
  ack.ack_slot = acks_.put(content);
  arrive_at_link(*sender.return_route.hops, ack, now_ms);
}

void NetworkSimulation::receive_ack(NetworkSender& sender, const Segment& ack, double now_ms) {
  active_ = &sender;
  sender.rtt_ms = now_ms - ack.sent_ms;
  sender.results.totals.delay_sum_ms += sender.rtt_ms;
  ++sender.results.delay_samples;
  sender.endpoint->on_ack(ack, acks_.take(ack.ack_slot), now_ms, *this);
  update(sender, now_ms);
}

void NetworkSimulation::update(NetworkSender& sender, double now_ms) {
  if (sender.mode == NetworkSender::Mode::kOnForPackets && sender.endpoint->is_done())
      [[unlikely]] {
    traffic_.switch_off(sender, now_ms);
  }
  if (const double act_ms = sender.endpoint->next_act_ms(); act_ms < sender.act_timer_ms)
      [[unlikely]] {
    set_act(sender, std::max(act_ms, now_ms));
  }
}

void NetworkSimulation::update_delayed_ack(NetworkSender& sender) {
  sender.delayed_ack_timer_ms = sender.endpoint->delayed_ack_due_ms();
  if (sender.has_constant_return) {
    sender.delayed_ack_timer_ms += sender.return_delay_ms;
  }
  events_.set_delayed_ack(sender.index, sender.delayed_ack_timer_ms);
}

void NetworkSimulation::report_losses(double now_ms) {
  // Endpoints may send packets meanwhile, which may be lost as well.
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const Segment segment = losses_[i];
    if (segment.is_ack) {
      acks_.discard(segment.ack_slot);
      continue;
    }
    --packets_in_network_;
    NetworkSender& sender = topology_.senders()[segment.sender];
    ++sender.results.totals.packets_lost;
    active_ = &sender;
    sender.endpoint->on_packet_lost(segment, now_ms);
    update(sender, now_ms);
  }
  losses_.clear();
}

void NetworkSimulation::record() {
  for (const NetworkSender& sender : topology_.senders()) {
    sender_samples_[sender.index] = {sender.mode != NetworkSender::Mode::kOff,
                                     sender.endpoint->pace(), sender.rtt_ms,
                                     sender.endpoint->results()};
  }
  for (Link& link : topology_.links()) {
    FifoLink* const fifo = link.computed();
    link_samples_[link.index] =
        fifo != nullptr
            ? LinkSample{fifo->waiting_packets(next_sample_ms_),
                         fifo->waiting_bytes(next_sample_ms_), link.results.dropped}
            : LinkSample{link.queue->packets(), link.queue->bytes(), link.results.dropped};
  }
  options_.recorder->sample(next_sample_ms_, sender_samples_, link_samples_);
  next_sample_ms_ += options_.record_every_ms;
  events_.set_sample(next_sample_ms_);
}

void NetworkSimulation::poll_interruption() {
  events_until_poll_ = kEventsPerPoll;
  if (options_.interruption != nullptr) {
    std::uint64_t packets = 0;
    for (const NetworkSender& sender : topology_.senders()) {
      packets += sender.results.totals.packets_received + sender.results.totals.packets_lost;
    }
    options_.interruption->check(packets - std::exchange(packets_at_poll_, packets));
  }
}

void NetworkSimulation::change_link(std::uint32_t index, const LinkDescription& description) {
  Link& link = topology_.links()[index];
  if (!is_constant(link.description) || !is_constant(description)) {
    refuse("only links of constant rate, delay and loss can be changed");
  }
  const double longer_ms = description.delay_ms - link.description.delay_ms;
  link.description = description;
  link.service_ms = 1 / description.rate_packets_per_ms;
  if (link.time_varying) {
    link.time_varying->driver =
        rate_driver(description.rate_packets_per_ms, description_.packet_bytes);
    link.time_varying->telemetry->change_service(link.service_ms);
  }
  const std::unique_ptr<Queue> before =
      std::exchange(link.queue, topology_.make_queue(index, description));
  while (const Segment* const waiting = before->dequeue(now_ms(), *this)) {
    link.queue->enqueue(*waiting, now_ms(), *this);
  }
  events_.set_queue(index, link.queue->next_ms());
  for (DelayLine* const line : topology_.delay_lines()) {
    if (line->link != &link) {
      continue;
    }
    line->delay_ms += longer_ms;
    for (std::size_t place = 0; place < line->in_flight.size(); ++place) {
      double& arrives_ms = line->in_flight.at(place).arrives_ms;
      arrives_ms = std::max(arrives_ms + longer_ms, now_ms());
    }
    if (!line->in_flight.empty()) {
      events_.set_arrival(line->index, line->in_flight.front().arrives_ms);
    }
  }
  topology_.update_losses();
  report_losses(now_ms());
}

void NetworkSimulation::hold_sender(std::uint32_t index, bool is_on) {
  NetworkSender& sender = topology_.senders()[index];
  if ((sender.mode != NetworkSender::Mode::kOff) != is_on) {
    toggle(sender, now_ms());
    report_losses(now_ms());
  }
  events_.set_switch(index, kNever);
}

void NetworkSimulation::release_sender(std::uint32_t index) {
  events_.set_switch(index, TrafficSwitch::next_switch_ms(topology_.senders()[index], now_ms()));
}

NetworkResults NetworkSimulation::collect_results() {
  NetworkResults results;
  for (NetworkSender& sender : topology_.senders()) {
    if (sender.mode != NetworkSender::Mode::kOff) {
      traffic_.count_on_time(sender, duration_ms_);
    }
    sender.results.endpoint = sender.endpoint->results();
    if (sender.has_constant_return) {
      sender.results.delay_samples = sender.results.totals.packets_received;
    }
    sender.results.throughput_packets = sender.counts_every_packet
                                            ? sender.results.totals.packets_received
                                            : sender.results.endpoint.packets_in_order;
    results.senders.push_back(std::move(sender.results));
  }
  for (Link& link : topology_.links()) {
    FifoLink* const fifo = link.computed();
    link.results.waiting =
        fifo != nullptr ? fifo->waiting_packets(duration_ms_) : link.queue->packets();
    results.links.push_back(link.results);
  }
  for (const DelayLine* const line : topology_.delay_lines()) {
    results.links[line->link->index].under_way += line->in_flight.size();
  }
  for (Link& link : topology_.links()) {
    LinkResults& counts = results.links[link.index];
    if (link.time_varying && link.time_varying->jitter_box) {
      counts.under_way += link.time_varying->jitter_box->size();
    }
    // A link that computes departures ahead has put waiting packets into its delay line already.
    if (link.computed() != nullptr) {
      counts.under_way -= counts.waiting;
      counts.transmitted -= counts.waiting;
    }
  }
  return results;
}

}  // namespace remy
