#include "network/network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/random.h"
#include "core/requirement.h"
#include "elements/drop_tail.h"
#include "elements/fifo_link.h"
#include "elements/jitter_box.h"
#include "elements/link_conditions.h"
#include "elements/link_driver.h"
#include "elements/link_loss.h"
#include "elements/packet_ring.h"
#include "elements/policer.h"
#include "elements/queues.h"
#include "elements/ring.h"
#include "network/live.h"
#include "network/omniscient.h"
#include "network/timers.h"
#include "protocols/protocol.h"
#include "transports/transport.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The place of a lane before its link, among those behind it.
constexpr double kBefore = -1;
// Of that for packets that are late.
constexpr double kLate = std::numeric_limits<double>::infinity();

// One run. What happens to packets on their way, departures from links and arrivals behind them, is
// kept apart from what is rare, or often put off before it happens.
class Network final : private PacketSink, public LiveNetwork, private DropListener {
 public:
  // Only one that is not simplified can be changed: links whose packets' departures are known when
  // they come cannot.
  Network(const NetworkDescription& description, std::span<const CompiledTable> tables,
          double duration_ms, std::uint64_t seed, const NetworkOptions& options,
          bool is_simplified);

  NetworkResults run();

  void run_until(double until_ms) override;
  void change_link(std::uint32_t link, const LinkDescription& description) override;
  void hold(std::uint32_t sender, bool is_on) override;
  void release(std::uint32_t sender) override;
  LiveSender sender(std::uint32_t index) const override;
  LiveLink link(std::uint32_t index) const override;

 private:
  struct Link;

  // Segments between a link and what lies behind it, at a constant distance, or before a queue.
  struct Lane {
    struct InFlight {
      double arrives_ms;
      Segment segment;
    };
    Ring<InFlight> in_flight;
    double delay_ms = 0;
    Link* link = nullptr;
    std::uint32_t index = 0;
  };

  // What a link has that is not of constant rate, delay and loss.
  struct Variety {
    std::optional<LinkConditions> conditions;  // of delay and loss
    std::unique_ptr<LinkDriver> driver;
    std::optional<FifoLink> fifo;
    std::optional<TokenBucket> policer;
    std::optional<GilbertElliott> bursts;
    std::optional<JitterBox> jitter_box;
    Lane* lane_before = nullptr;  // where its delay is
    bool changes_loss = false;
    bool reorders = false;
    bool only_drives = false;  // a FIFO queue's segments, all of which fly the same way
    double box_ticks_ms = kNever;
    std::uint64_t loss_key = 0;
  };

  // One whose queue is drop-tail by packets needs no events.
  struct Link {
    std::unique_ptr<Queue> queue;
    std::optional<FifoLink> fifo;  // where there is no variety
    double service_ms = 1;         // of a whole packet
    bool is_busy = false;          // or is about to ask the queue
    std::uint32_t index = 0;
    Lane* only_lane = nullptr;  // behind it, where all routes have the same
    LinkResults results;
    LinkDescription description;
    std::unique_ptr<Variety> variety;
  };

  // A step of a route: over the link, then along the lane.
  struct Hop {
    Link* link;
    Lane* lane;
  };

  // Of a route, a link with loss; or the last, behind which packets may be late.
  struct LossyHop {
    std::uint16_t behind_hop;
    bool only_delays;
    double probability;
    std::uint64_t key;
  };

  // A way from one end to the other. Loss is drawn for a segment when it leaves.
  struct Route {
    const Hop* hops = nullptr;
    std::uint32_t length = 0;
    std::vector<LossyHop> lossy_hops;
    Lane* lane_of_late = nullptr;  // where packets may be late
  };

  // What ends the on period that a sender is in.
  enum class Mode : std::uint8_t { kOff, kOnForTime, kOnForPackets };

  struct Sender {
    Sender(const SenderDescription& description, std::uint64_t traffic_key, std::uint32_t number)
        : index(number),
          flow(number),
          schedule(description.traffic, traffic_key, description.first_on_ms),
          barrier(description.barrier) {
      if (const auto* const shared = std::get_if<Barrier>(&description.traffic.arrivals)) {
        barrier_pause_ms = shared->pause_ms;
      }
    }

    std::unique_ptr<Endpoint> endpoint;
    // When the endpoint's timer fires, which may be before it wants to act: a retransmission timer
    // is put off at every ACK.
    double act_timer_ms = kNever;
    double ack_timer_ms = kNever;
    Mode mode = Mode::kOff;
    // Packets are received and their ACKs arrive in one event, where nothing can happen to ACKs but
    // their delay.
    bool has_constant_return = true;
    std::uint32_t index;
    double return_delay_ms = 0;
    double rtt_ms = 0;  // the last
    Route route;
    Route return_route;
    FlowTag flow;                          // names losses
    std::uint32_t sent_before_period = 0;  // likewise, modulo 2^32
    NetworkSenderResults results;
    Schedule schedule;
    bool counts_every_packet = false;
    std::uint64_t period = 0;
    double on_since_ms = 0;
    double share_at_on_ms = 0;
    std::uint64_t flow_packets = 0;
    std::uint32_t barrier;
    // So many packets may be under way where no loss is to be drawn.
    std::uint32_t most_under_way = 0;
    double barrier_pause_ms = kNever;  // none: it has no barrier
  };

  static constexpr std::uint64_t kEventsPerLook = 4096;

  // Of the rare timers: ticks of queues, switches of senders, delayed ACKs, jitter boxes.
  std::uint32_t timer_of_switch(std::uint32_t sender) const {
    return static_cast<std::uint32_t>(links_.size()) + sender;
  }
  std::uint32_t timer_of_delayed_ack(std::uint32_t sender) const {
    return static_cast<std::uint32_t>(links_.size() + senders_.size()) + sender;
  }
  std::uint32_t timer_of_jitter_box(std::uint32_t link) const {
    return static_cast<std::uint32_t>(links_.size() + 2 * senders_.size()) + link;
  }
  void set_rare(std::uint32_t timer, double due_ms) {
    rare_.set(timer, due_ms);
    find_horizon();
  }
  void set_act(Sender& sender, double due_ms) {
    sender.act_timer_ms = due_ms;
    acts_.set(index_of(sender), due_ms);
    find_horizon();
  }
  void find_horizon() {
    horizon_ms_ = std::min({acts_.earliest(), rare_.earliest(), next_sample_ms_, end_ms_});
  }

  // If it has one.
  static FifoLink* fifo_of(Link& link) {
    std::optional<FifoLink>& fifo = link.variety ? link.variety->fifo : link.fifo;
    return fifo ? &*fifo : nullptr;
  }
  void add_link(const LinkDescription& description, bool is_simplified);
  std::unique_ptr<Variety> variety_of(const LinkDescription& description,
                                      std::uint32_t index) const;
  void add_sender(const SenderDescription& description, std::span<const CompiledTable> tables,
                  const MeasurementNoise& measurement, RuleObserver* observer);
  std::unique_ptr<Queue> make_queue(std::uint32_t link, const LinkDescription& description) const;
  Route route(const std::vector<std::uint32_t>& links, double delay_ms, bool is_return);
  void find_losses(Route& route, const std::vector<std::uint32_t>& links, bool is_return) const;
  static void find_most_under_way(Sender& sender);
  Lane* lane(std::uint32_t link, double order, double delay_ms);
  void order_lanes();
  void draw_loss(const Route& route, std::uint64_t name, Segment& segment) const;
  const Route& route_of(const Sender& sender, const Segment& segment) const {
    return segment.is_ack ? sender.return_route : sender.route;
  }

  void send(const Segment& segment, double now_ms) override;
  void send_with_care(const Segment& segment, double now_ms);
  void dropped(const Segment& segment, double now_ms) override;

  // What comes first where that need not be a departure from a link or an arrival behind it.
  enum class First : std::uint8_t { kEnd, kFired, kOnItsWay };
  First fire_first(double departure_ms, double arrival_ms);
  void act(Sender& sender, double now_ms);
  void fire_rare(std::uint32_t timer, double now_ms);
  void enqueue(const Hop& hop, const Segment& segment, double now_ms);
  void enqueue_at_queue(const Hop& hop, const Segment& segment, double now_ms);
  void begin_transmission(Link& link, double now_ms);
  void wake(Link& link, double now_ms);
  double service_ms(const Link& link, const Segment& segment) const;
  void enqueue_at_variety(const Hop& hop, const Segment& segment, double now_ms);
  void enqueue_at_full(const Hop& hop, const Segment& segment, double now_ms);
  void fly(Link& link, Lane& lane, const Segment& segment, double departure_ms);
  void fly_with_care(Lane& lane, const Segment& segment, double arrives_ms);
  void leave(Link& link, Segment& segment, double departure_ms);
  void join_lane_behind(const Segment& segment, double leaves_ms, double delay_ms,
                        bool may_overtake);
  void join_lane(Lane& lane, const Segment& segment, std::uint32_t hop, double arrives_ms,
                 bool may_overtake);
  void departed(Link& link, double now_ms);
  void arrived(Lane& lane, double now_ms);
  void lost_or_late(const Lane& lane, const Segment& segment, double now_ms);
  void data_arrived(Sender& sender, const Segment& segment, double now_ms);
  // The same where packet and ACK are not taken in one.
  void data_received(Sender& sender, const Segment& segment, double now_ms);
  void ack_leaves(Sender& sender, const Segment& echo, const AckContent& content, double now_ms);
  void ack_arrived(Sender& sender, const Segment& ack, double now_ms);
  void switch_sender(Sender& sender, double now_ms);
  void switch_on(Sender& sender, double now_ms);
  void switch_off(Sender& sender, double now_ms);
  void end_at_barrier(const Sender& sender, double now_ms);
  // After every call of an endpoint: it may want to act at another time, or be done.
  void settle(Sender& sender, double now_ms);
  void settle_delayed_ack(Sender& sender);
  void tell_of_losses(double now_ms);
  void advance_share(double now_ms);
  void stop_counting(Sender& sender, double now_ms);
  void record();
  void look();
  double now_ms() const { return std::nextafter(end_ms_, 0); }
  NetworkResults finish();

  static std::uint32_t index_of(const Sender& sender) { return sender.index; }

  const NetworkDescription& description_;
  double duration_ms_;
  std::uint64_t key_;
  NetworkOptions options_;
  std::uint32_t packet_bytes_;
  std::uint32_t ack_bytes_;
  std::vector<Link> links_;
  // By link and delay: of arrivals at one instant the first is before or behind the lowest link,
  // and then the nearest, whoever's route a lane was made for.
  std::map<std::pair<std::uint32_t, double>, Lane> lane_of_;
  std::vector<Lane*> lanes_;            // in this order
  std::vector<std::vector<Hop>> hops_;  // of all routes
  std::vector<Sender> senders_;
  Timers departures_{0};  // by link
  Timers arrivals_{0};    // by lane
  Timers acts_{0};        // by sender
  Timers rare_{0};
  double end_ms_ = 0;  // behind the last instant
  double next_sample_ms_ = kNever;
  double horizon_ms_ = 0;                 // of what is not on its way
  Sender* sending_ = nullptr;             // whose endpoint is called
  std::vector<Segment> untold_losses_;    // of packets that endpoints have yet to hear of
  std::vector<AckContent> ack_contents_;  // by slot
  std::vector<std::uint32_t> free_slots_;
  std::size_t under_way_ = 0;          // packets
  std::uint64_t packets_at_look_ = 0;  // that had been received or lost
  std::uint64_t events_until_look_ = kEventsPerLook;
  std::vector<SenderSample> sender_samples_;
  std::vector<LinkSample> link_samples_;
  std::size_t senders_on_ = 0;
  // By their number: who shares a barrier, and how many of them have ended since the last round
  // began.
  std::map<std::uint32_t, std::vector<std::uint32_t>> barriers_;
  std::map<std::uint32_t, std::size_t> ended_at_barrier_;
  // Integral from 0 of dt / (number of senders on), over the time when any is.
  double share_ms_ = 0;
  double share_until_ms_ = 0;
};

Network::Network(const NetworkDescription& description, std::span<const CompiledTable> tables,
                 double duration_ms, std::uint64_t seed, const NetworkOptions& options,
                 bool is_simplified)
    : description_(description),
      duration_ms_(duration_ms),
      key_(derive_key(seed, description.key)),
      options_(options),
      packet_bytes_(static_cast<std::uint32_t>(description.packet_bytes)),
      ack_bytes_(static_cast<std::uint32_t>(description.ack_bytes)) {
  links_.reserve(description.links.size());
  for (const LinkDescription& each : description.links) {
    add_link(each, is_simplified);
  }
  senders_.reserve(description.senders.size());
  for (const SenderDescription& each : description.senders) {
    add_sender(each, tables, description.measurement, options.observer);
  }
  order_lanes();
  const auto links = static_cast<std::uint32_t>(links_.size());
  const auto senders = static_cast<std::uint32_t>(senders_.size());
  departures_ = Timers(links);
  arrivals_ = Timers(static_cast<std::uint32_t>(lanes_.size()));
  acts_ = Timers(senders);
  rare_ = Timers(2 * links + 2 * senders);
  for (std::uint32_t i = 0; i < senders; ++i) {
    rare_.set(timer_of_switch(i), senders_[i].schedule.begins_ms(0, 0));
    if (senders_[i].barrier_pause_ms < kNever) {
      barriers_[senders_[i].barrier].push_back(i);
    }
  }
  if (options.recorder != nullptr) {
    next_sample_ms_ = 0;
    sender_samples_.resize(senders_.size());
    link_samples_.resize(links_.size());
  }
}

void Network::add_link(const LinkDescription& description, bool is_simplified) {
  const auto index = static_cast<std::uint32_t>(links_.size());
  Link& link = links_.emplace_back();
  link.index = index;
  link.description = description;
  link.queue = make_queue(index, description);
  std::optional<FifoLink>* fifo = &link.fifo;
  if (!is_constant(description)) {
    link.variety = variety_of(description, index);
    fifo = &link.variety->fifo;
  }
  // Cellsim's link may ask again in the instant that something comes to it.
  if (is_simplified && description.queue.name == "drop-tail" && !delays_before(description)) {
    const DropTailLimits& limits = static_cast<const DropTail&>(*link.queue).limits();
    if (limits.packets > 0 && limits.bytes == DropTailLimits().bytes) {
      fifo->emplace(limits.packets);
    }
  }
  if (Variety* const variety = link.variety.get(); variety != nullptr) {
    variety->only_drives = variety->fifo && !variety->conditions && !variety->policer &&
                           !variety->bursts && !variety->jitter_box;
  }
  link.service_ms = 1 / description.rate_packets_per_ms;
}

std::unique_ptr<Network::Variety> Network::variety_of(const LinkDescription& description,
                                                      std::uint32_t index) const {
  enum class Draws : std::uint64_t { kOpportunities, kWalk, kBursts, kJitterBox, kLoss };
  const auto key_of = [this, index](Draws draws) {
    return derive_key(key_, {static_cast<std::uint64_t>(Purpose::kLink), index,
                             static_cast<std::uint64_t>(draws)});
  };
  auto variety = std::make_unique<Variety>();
  if (description.changes) {
    variety->conditions.emplace(LinkCondition{description.rate_packets_per_ms, description.delay_ms,
                                              description.loss_probability},
                                *description.changes, key_of(Draws::kWalk), duration_ms_);
    variety->changes_loss = change_loss(*description.changes);
  }
  if (description.trace) {
    variety->driver = trace_driver(description.trace->semantics,
                                   Opportunities(description.trace->source, description.trace->ends,
                                                 key_of(Draws::kOpportunities)));
  } else if (description.changes && change_rate(*description.changes)) {
    variety->driver = rate_driver(*variety->conditions, description_.packet_bytes);
  } else {
    variety->driver = rate_driver(description.rate_packets_per_ms, description_.packet_bytes);
  }
  if (description.policer) {
    variety->policer.emplace(*description.policer, description_.packet_bytes);
  }
  if (description.gilbert_elliott) {
    variety->bursts.emplace(*description.gilbert_elliott, key_of(Draws::kBursts));
  }
  if (description.jitter_box) {
    variety->jitter_box.emplace(*description.jitter_box, key_of(Draws::kJitterBox));
    const auto* const random = std::get_if<RandomRelease>(&*description.jitter_box);
    variety->reorders = random != nullptr && random->reorders;
  }
  variety->loss_key = key_of(Draws::kLoss);
  return variety;
}

void Network::add_sender(const SenderDescription& description,
                         std::span<const CompiledTable> tables, const MeasurementNoise& measurement,
                         RuleObserver* observer) {
  const auto index = static_cast<std::uint32_t>(senders_.size());
  Sender& sender = senders_.emplace_back(
      description, derive_key(key_, {static_cast<std::uint64_t>(Purpose::kTraffic), index}), index);
  const Transport& kind = find_transport(description.transport.name);
  sender.counts_every_packet = kind.counts_every_packet;
  EndpointSetting setting;
  setting.sender = index;
  setting.packet_bytes = description_.packet_bytes;
  setting.measurement = measurement;
  setting.measurement.rtt_offset_ms = description.rtt_offset_ms;
  setting.jitter_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kJitter));
  setting.offset_key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kRttOffset));
  if (description.table) {
    setting.table = &tables[*description.table];
    setting.observer = observer;
  } else {
    const Protocol& protocol = find_protocol(description.protocol.name);
    setting.is_ecn_capable = protocol.needs.is_ecn_capable;
    setting.asks_xcp_routers = protocol.needs.needs_xcp_router;
    setting.samples_rates = protocol.needs.needs_rate_samples;
    setting.retransmits = protocol.needs.retransmits;
    setting.controller =
        protocol.make(Chosen("protocol", protocol.variants, description.protocol),
                      derive_key(key_, {static_cast<std::uint64_t>(Purpose::kController), index}));
  }
  sender.endpoint =
      kind.make(Chosen("transport", kind.variants, description.transport), std::move(setting));
  const RouteDescription& way = description.route;
  sender.has_constant_return = way.return_links.empty();
  sender.return_delay_ms = way.return_delay_ms;
  if (sender.has_constant_return) {
    sender.route = route(way.links, way.delay_ms + way.return_delay_ms, false);
  } else {
    sender.route = route(way.links, way.delay_ms, false);
    sender.return_route = route(way.return_links, way.return_delay_ms, true);
  }
  find_most_under_way(sender);
}

std::unique_ptr<Queue> Network::make_queue(std::uint32_t link,
                                           const LinkDescription& description) const {
  const QueueDiscipline& discipline = find_queue_discipline(description.queue.name);
  return discipline.make(
      Chosen("queue", discipline.variants, description.queue),
      {description.buffer_packets, mean_rate_packets_per_ms(description, description_.packet_bytes),
       description_.packet_bytes,
       derive_key(key_, {static_cast<std::uint64_t>(Purpose::kQueue), link})});
}

// `delay_ms` comes on top of the last link's.
Network::Route Network::route(const std::vector<std::uint32_t>& links, double delay_ms,
                              bool is_return) {
  Route route;
  std::vector<Hop>& hops = hops_.emplace_back();
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i]];
    double lane_ms = i + 1 == links.size() ? delay_ms : 0;
    if (delays_before(link.description)) {
      link.variety->lane_before = lane(links[i], kBefore, link.description.delay_ms);
    } else if (!link.description.changes) {
      lane_ms += link.description.delay_ms;
    }
    hops.push_back({&link, lane(links[i], lane_ms, lane_ms)});
  }
  route.hops = hops.data();
  route.length = static_cast<std::uint32_t>(hops.size());
  if (description_.measurement.reorders() && !is_return) {
    route.lane_of_late = lane(links.back(), kLate, description_.measurement.reordering_delay_ms);
  }
  find_losses(route, links, is_return);
  return route;
}

void Network::find_losses(Route& route, const std::vector<std::uint32_t>& links,
                          bool is_return) const {
  route.lossy_hops.clear();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::uint32_t link = links[i];
    const LinkDescription& description = links_[link].description;
    const double probability = description.loss_probability;
    // Where it changes it is drawn behind the link.
    if (probability > 0 && !(description.changes && change_loss(*description.changes))) {
      // The first link's are named as the dumbbell's are.
      std::uint64_t key = derive_key(key_, static_cast<std::uint64_t>(Purpose::kLoss));
      if (link > 0 || is_return) {
        key = derive_key(key, {link, is_return ? 1U : 0U});
      }
      route.lossy_hops.push_back({static_cast<std::uint16_t>(i + 1), false, probability, key});
    }
  }
  if (route.lane_of_late != nullptr) {
    route.lossy_hops.push_back(
        {static_cast<std::uint16_t>(links.size()), true,
         description_.measurement.reordering_probability,
         derive_key(key_, static_cast<std::uint64_t>(Purpose::kReordering))});
  }
}

Network::Lane* Network::lane(std::uint32_t link, double order, double delay_ms) {
  return &lane_of_.try_emplace({link, order}, Lane{{}, delay_ms, &links_[link], 0}).first->second;
}

void Network::order_lanes() {
  for (auto& [where, lane] : lane_of_) {
    lane.index = static_cast<std::uint32_t>(lanes_.size());
    lanes_.push_back(&lane);
  }
  for (const std::vector<Hop>& hops : hops_) {
    for (const Hop& hop : hops) {
      hop.link->only_lane = hop.lane;
    }
  }
  for (const std::vector<Hop>& hops : hops_) {
    for (const Hop& hop : hops) {
      if (hop.link->only_lane != hop.lane) {
        hop.link->only_lane = nullptr;
      }
    }
  }
}

void Network::find_most_under_way(Sender& sender) {
  sender.most_under_way = sender.route.lossy_hops.empty() ? PacketRing::kMaximumPackets : 0;
}

void Network::draw_loss(const Route& route, std::uint64_t name, Segment& segment) const {
  for (const LossyHop& lossy : route.lossy_hops) {
    if (unit_interval(random_bits(lossy.key, name)) < lossy.probability) {
      segment.lost_behind_hop = lossy.behind_hop;
      segment.is_late = lossy.only_delays;
      return;
    }
  }
}

NetworkResults Network::run() {
  for (Sender& sender : senders_) {
    sender.results.traffic.first_on_ms = duration_ms_;
  }
  run_until(duration_ms_);
  return finish();
}

inline double Network::service_ms(const Link& link, const Segment& segment) const {
  return segment.bytes == packet_bytes_
             ? link.service_ms
             : segment.bytes / description_.packet_bytes * link.service_ms;
}

// The segment will have left the link at departure_ms.
[[gnu::always_inline]] inline void Network::fly(Link& link, Lane& lane, const Segment& segment,
                                                double departure_ms) {
  ++link.results.transmitted;
  const double arrives_ms = departure_ms + lane.delay_ms;
  if (!lane.in_flight.is_partly_filled()) [[unlikely]] {
    fly_with_care(lane, segment, arrives_ms);
    return;
  }
  Lane::InFlight& flying = lane.in_flight.push_without_growing();
  flying.arrives_ms = arrives_ms;
  flying.segment = segment;
  ++flying.segment.hop;
}

// The first on its way, or one too many for the places that there are.
[[gnu::noinline]] void Network::fly_with_care(Lane& lane, const Segment& segment,
                                              double arrives_ms) {
  if (lane.in_flight.empty()) {
    arrivals_.set(lane.index, arrives_ms);
  }
  Lane::InFlight& flying = lane.in_flight.push();
  flying.arrives_ms = arrives_ms;
  flying.segment = segment;
  ++flying.segment.hop;
}

[[gnu::noinline]] void Network::enqueue(const Hop& hop, const Segment& segment, double now_ms) {
  Link& link = *hop.link;
  if (!link.fifo) {
    enqueue_at_queue(hop, segment, now_ms);
  } else if (link.fifo->accept(now_ms, service_ms(link, segment), segment.bytes)) [[likely]] {
    fly(link, *hop.lane, segment, link.fifo->last_departure_ms());
  } else {
    enqueue_at_full(hop, segment, now_ms);
  }
}

// A queue that is full, or looks as if it were.
[[gnu::noinline]] void Network::enqueue_at_full(const Hop& hop, const Segment& segment,
                                                double now_ms) {
  if (hop.link->fifo->make_room()) {
    enqueue(hop, segment, now_ms);
  } else {
    dropped(segment, now_ms);
  }
}

// The link is free; when it will be again, and when the segment arrives behind it, are known.
[[gnu::always_inline]] inline void Network::begin_transmission(Link& link, double now_ms) {
  Segment* const segment = link.queue->depart(now_ms, *this);
  link.is_busy = segment != nullptr;
  if (segment == nullptr) {
    departures_.set(link.index, kNever);
  } else if (link.variety) {
    const LinkDriver::Transmission transmission =
        link.variety->driver->transmit(now_ms, segment->bytes);
    departures_.set(link.index, transmission.next_start_ms);
    leave(link, *segment, transmission.departs_ms);
  } else {
    const double departure_ms = now_ms + service_ms(link, *segment);
    departures_.set(link.index, departure_ms);
    Lane* lane = link.only_lane;
    if (lane == nullptr) [[unlikely]] {
      lane = route_of(senders_[segment->sender], *segment).hops[segment->hop].lane;
    }
    fly(link, *lane, *segment, departure_ms);
  }
}

// Something has come to a link that was free.
[[gnu::noinline]] void Network::wake(Link& link, double now_ms) {
  begin_transmission(link, now_ms);
}

// The link has ended a transmission.
[[gnu::always_inline]] inline void Network::departed(Link& link, double now_ms) {
  begin_transmission(link, now_ms);
  if (!untold_losses_.empty()) [[unlikely]] {
    tell_of_losses(now_ms);
  }
}

[[gnu::always_inline]] inline void Network::data_arrived(Sender& sender, const Segment& segment,
                                                         double now_ms) {
  --under_way_;
  ++sender.results.traffic.packets_received;
  sending_ = &sender;
  if (!sender.has_constant_return) {
    const auto content = sender.endpoint->on_data(segment, now_ms);
    if (!content || sender.ack_timer_ms < kNever) [[unlikely]] {
      settle_delayed_ack(sender);
    }
    if (content) {
      ack_leaves(sender, segment, *content, now_ms);
    }
    settle(sender, now_ms);
    return;
  }
  sender.rtt_ms = now_ms - segment.sent_ms;
  sender.results.traffic.delay_sum_ms += sender.rtt_ms;
  const double received_ms = now_ms - sender.return_delay_ms;
  const double act_ms = sender.endpoint->on_round_trip(segment, received_ms, now_ms, *this);
  if (act_ms < sender.act_timer_ms || sender.mode == Mode::kOnForPackets) [[unlikely]] {
    if (act_ms == Endpoint::kDeclined) {
      data_received(sender, segment, now_ms);
    } else {
      settle(sender, now_ms);
    }
  }
}

[[gnu::always_inline]] inline void Network::arrived(Lane& lane, double now_ms) {
  // Where it is while it is read, though others may join it meanwhile.
  const Segment& segment = lane.in_flight.front().segment;
  if (segment.lost_behind_hop == segment.hop && !segment.is_delayed) [[unlikely]] {
    lost_or_late(lane, segment, now_ms);
  } else {
    Sender& sender = senders_[segment.sender];
    const Route& route = route_of(sender, segment);
    if (segment.hop < route.length) {
      enqueue(route.hops[segment.hop], segment, now_ms);
    } else if (segment.is_ack) {
      ack_arrived(sender, segment, now_ms);
    } else {
      data_arrived(sender, segment, now_ms);
    }
  }
  lane.in_flight.pop();
  arrivals_.set(lane.index, lane.in_flight.empty() ? kNever : lane.in_flight.front().arrives_ms);
  if (!untold_losses_.empty()) [[unlikely]] {
    tell_of_losses(now_ms);
  }
}

void Network::lost_or_late(const Lane& lane, const Segment& segment, double now_ms) {
  if (!segment.is_late) {
    ++lane.link->results.lost;
    untold_losses_.push_back(segment);
    return;
  }
  Segment late = segment;
  late.is_late = false;
  late.lost_behind_hop = 0;
  Lane& beside = *senders_[segment.sender].route.lane_of_late;
  join_lane(beside, late, late.hop, now_ms + beside.delay_ms, false);
}

void Network::run_until(double until_ms) {
  end_ms_ = std::nextafter(until_ms, kNever);
  find_horizon();
  for (;;) {
    const double departure_ms = departures_.earliest();
    const double arrival_ms = arrivals_.earliest();
    const bool departs = departure_ms <= arrival_ms;
    First first = First::kOnItsWay;
    if ((departs ? departure_ms : arrival_ms) >= horizon_ms_) [[unlikely]] {
      first = fire_first(departure_ms, arrival_ms);
      if (first == First::kEnd) {
        return;
      }
    }
    if (first == First::kOnItsWay) [[likely]] {
      if (departs) {
        departed(links_[departures_.first()], departure_ms);
        continue;
      }
      arrived(*lanes_[arrivals_.first()], arrival_ms);
    }
    if (--events_until_look_ == 0) [[unlikely]] {
      look();
    }
  }
}

Network::First Network::fire_first(double departure_ms, double arrival_ms) {
  const double now_ms = std::min({departure_ms, arrival_ms, acts_.earliest(), rare_.earliest()});
  if (next_sample_ms_ < now_ms && next_sample_ms_ < end_ms_) {
    record();
  } else if (now_ms >= end_ms_) {
    return First::kEnd;
  } else if (departure_ms == now_ms) {
    return First::kOnItsWay;
  } else if (acts_.earliest() == now_ms) {
    act(senders_[acts_.first()], now_ms);
  } else if (rare_.earliest() == now_ms) {
    fire_rare(rare_.first(), now_ms);
  } else {
    return First::kOnItsWay;
  }
  return First::kFired;
}

void Network::act(Sender& sender, double now_ms) {
  sender.act_timer_ms = kNever;
  if (sender.endpoint->next_act_ms() <= now_ms) {
    sending_ = &sender;
    sender.endpoint->act(now_ms, *this);
  }
  settle(sender, now_ms);
  if (sender.act_timer_ms == kNever) {
    set_act(sender, kNever);
  }
  tell_of_losses(now_ms);
}

void Network::fire_rare(std::uint32_t timer, double now_ms) {
  if (timer < timer_of_switch(0)) {
    Queue& queue = *links_[timer].queue;
    queue.tick(now_ms);
    set_rare(timer, queue.next_ms());
    return;
  }
  if (timer < timer_of_delayed_ack(0)) {
    switch_sender(senders_[timer - timer_of_switch(0)], now_ms);
  } else if (timer < timer_of_jitter_box(0)) {
    Sender& sender = senders_[timer - timer_of_delayed_ack(0)];
    sending_ = &sender;
    // The on period may be over in which it was kept back.
    const bool is_due = sender.endpoint->delayed_ack_due_ms() < kNever;
    const auto ack = is_due ? sender.endpoint->take_delayed_ack(now_ms) : std::nullopt;
    settle_delayed_ack(sender);
    if (ack) {
      ack_leaves(sender, ack->first, ack->second, now_ms);
    }
    settle(sender, now_ms);
  } else {
    Variety& variety = *links_[timer - timer_of_jitter_box(0)].variety;
    variety.jitter_box->tick([&](const Segment& released, double release_ms, double behind_ms) {
      join_lane_behind(released, release_ms, behind_ms, variety.reorders);
    });
    variety.box_ticks_ms = kNever;
    set_rare(timer, kNever);
  }
  tell_of_losses(now_ms);
}

// Of the endpoint whose function is called.
void Network::send(const Segment& leaving, double now_ms) {
  Sender& sender = *sending_;
  ++sender.results.traffic.packets_sent;
  if (++under_way_ > sender.most_under_way) [[unlikely]] {
    send_with_care(leaving, now_ms);
  } else {
    enqueue(*sender.route.hops, leaving, now_ms);
  }
}

// A packet that may be lost behind a link, or one too many.
[[gnu::noinline]] void Network::send_with_care(const Segment& leaving, double now_ms) {
  const Sender& sender = *sending_;
  const std::uint32_t number = static_cast<std::uint32_t>(sender.results.traffic.packets_sent - 1) -
                               sender.sent_before_period;
  Segment segment = leaving;
  draw_loss(sender.route, std::uint64_t{sender.flow.word()} << 32 | number, segment);
  // Windows end at 1e6 packets; beyond this bound a flood can only waste memory.
  if (under_way_ > PacketRing::kMaximumPackets) {
    dropped(segment, now_ms);
  } else {
    enqueue(*sender.route.hops, segment, now_ms);
  }
}

void Network::dropped(const Segment& segment, double) {
  const Route& route = route_of(senders_[segment.sender], segment);
  ++route.hops[segment.hop].link->results.dropped;
  untold_losses_.push_back(segment);
}

[[gnu::noinline]] void Network::enqueue_at_queue(const Hop& hop, const Segment& segment,
                                                 double now_ms) {
  Link& link = *hop.link;
  if (link.variety) {
    enqueue_at_variety(hop, segment, now_ms);
    return;
  }
  link.queue->accept(segment, now_ms, *this);
  if (!link.is_busy) {
    wake(link, now_ms);
  }
  if (const double tick_ms = link.queue->next_ms(); tick_ms < kNever) [[unlikely]] {
    set_rare(link.index, tick_ms);
  }
}

[[gnu::noinline]] void Network::enqueue_at_variety(const Hop& hop, const Segment& arriving,
                                                   double now_ms) {
  Link& link = *hop.link;
  Variety& variety = *link.variety;
  if (variety.only_drives) [[likely]] {
    if (const auto departure_ms = variety.fifo->accept(now_ms, *variety.driver, arriving.bytes)) {
      fly(link, *hop.lane, arriving, *departure_ms);
    } else {
      dropped(arriving, now_ms);
    }
    return;
  }
  Segment segment = arriving;
  if (Lane* const before = variety.lane_before; before != nullptr && !segment.is_delayed) {
    segment.is_delayed = true;
    join_lane(*before, segment, segment.hop, now_ms + before->delay_ms, false);
    return;
  }
  segment.is_delayed = false;
  if (variety.policer && !variety.policer->admits(now_ms, segment.bytes)) {
    dropped(segment, now_ms);
    return;
  }
  if (variety.fifo) {
    if (const auto departure_ms = variety.fifo->accept(now_ms, *variety.driver, segment.bytes)) {
      leave(link, segment, *departure_ms);
    } else {
      dropped(segment, now_ms);
    }
    return;
  }
  link.queue->accept(segment, now_ms, *this);
  if (!link.is_busy) {
    if (const double next_start_ms = variety.driver->next_start_ms(now_ms);
        next_start_ms > now_ms) {
      link.is_busy = true;
      departures_.set(link.index, next_start_ms);
    } else {
      wake(link, now_ms);
    }
  }
  if (const double tick_ms = link.queue->next_ms(); tick_ms < kNever) {
    set_rare(link.index, tick_ms);
  }
}

// The same behind a link with variety.
void Network::leave(Link& link, Segment& segment, double departure_ms) {
  Variety& variety = *link.variety;
  ++link.results.transmitted;
  // The draws of one transmission at one hop are its own.
  const std::uint64_t name =
      (std::uint64_t{segment.is_ack} << 62 | std::uint64_t{segment.sender} << 48 |
       std::uint64_t{segment.hop} << 38) ^
      segment.transmission_number;
  const auto hop = static_cast<std::uint16_t>(segment.hop + 1);
  double delay_ms = 0;
  if (variety.conditions) {
    const LinkCondition& condition = variety.conditions->at(departure_ms);
    delay_ms = delays_before(link.description) ? 0 : condition.delay_ms;
    if (variety.changes_loss &&
        unit_interval(random_bits(variety.loss_key, name)) < condition.loss_probability) {
      segment.lost_behind_hop = hop;
      segment.is_late = false;
    }
  }
  if (variety.bursts && variety.bursts->loses_next()) {
    segment.lost_behind_hop = hop;
    segment.is_late = false;
  }
  if (!variety.jitter_box) {
    join_lane_behind(segment, departure_ms, delay_ms, false);
    return;
  }
  variety.jitter_box->put(segment, departure_ms, delay_ms, name,
                          [&](const Segment& released, double release_ms, double behind_ms) {
                            join_lane_behind(released, release_ms, behind_ms, variety.reorders);
                          });
  if (const double ticks_ms = variety.jitter_box->next_ms(); ticks_ms != variety.box_ticks_ms) {
    variety.box_ticks_ms = ticks_ms;
    set_rare(timer_of_jitter_box(link.index), ticks_ms);
  }
}

// Behind the link that it crosses.
void Network::join_lane_behind(const Segment& segment, double leaves_ms, double delay_ms,
                               bool may_overtake) {
  Lane& lane = *route_of(senders_[segment.sender], segment).hops[segment.hop].lane;
  join_lane(lane, segment, segment.hop + 1U, leaves_ms + delay_ms + lane.delay_ms, may_overtake);
}

// `hop` is how many links it has then crossed.
void Network::join_lane(Lane& lane, const Segment& segment, std::uint32_t hop, double arrives_ms,
                        bool may_overtake) {
  Ring<Lane::InFlight>& in_flight = lane.in_flight;
  if (!may_overtake && !in_flight.empty()) {
    arrives_ms = std::max(arrives_ms, in_flight.back().arrives_ms);
  }
  Lane::InFlight& joining = in_flight.push();
  joining.arrives_ms = arrives_ms;
  joining.segment = segment;
  joining.segment.hop = static_cast<std::uint16_t>(hop);
  std::size_t place = in_flight.size() - 1;
  for (; place > 0 && in_flight.at(place - 1).arrives_ms > arrives_ms; --place) {
    std::swap(in_flight.at(place - 1), in_flight.at(place));
  }
  if (place == 0) {
    arrivals_.set(lane.index, arrives_ms);
  }
}

void Network::data_received(Sender& sender, const Segment& segment, double now_ms) {
  const double received_ms = now_ms - sender.return_delay_ms;
  const auto content = sender.endpoint->on_data(segment, received_ms);
  if (!content || sender.ack_timer_ms < kNever) [[unlikely]] {
    settle_delayed_ack(sender);
  }
  if (sender.mode == Mode::kOnForPackets && sender.endpoint->is_done()) {
    switch_off(sender, now_ms);
  }
  if (content) {
    sender.endpoint->on_ack(segment, *content, now_ms, *this);
  }
  settle(sender, now_ms);
}

void Network::ack_leaves(Sender& sender, const Segment& echo, const AckContent& content,
                         double now_ms) {
  if (sender.has_constant_return) {
    sender.endpoint->on_ack(echo, content, now_ms, *this);
    return;
  }
  Segment ack = echo;
  ack.sender = index_of(sender);
  ack.is_ack = true;
  ack.is_marked = false;
  ack.is_ecn_capable = false;
  ack.bytes = ack_bytes_;
  ack.hop = 0;
  ack.lost_behind_hop = 0;
  const std::uint64_t number = sender.results.acks_sent++;
  if (!sender.return_route.lossy_hops.empty()) {
    draw_loss(sender.return_route, std::uint64_t{ack.sender} << 40 ^ number, ack);
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(ack_contents_.size()));
    ack_contents_.emplace_back();
  }
  ack.ack_slot = free_slots_.back();
  free_slots_.pop_back();
  ack_contents_[ack.ack_slot] = content;
  enqueue(*sender.return_route.hops, ack, now_ms);
}

void Network::ack_arrived(Sender& sender, const Segment& ack, double now_ms) {
  sending_ = &sender;
  sender.rtt_ms = now_ms - ack.sent_ms;
  sender.results.traffic.delay_sum_ms += sender.rtt_ms;
  ++sender.results.delay_samples;
  free_slots_.push_back(ack.ack_slot);
  // Kept, as what the endpoint sends at once may take the slot.
  const AckContent content = ack_contents_[ack.ack_slot];
  sender.endpoint->on_ack(ack, content, now_ms, *this);
  settle(sender, now_ms);
}

void Network::switch_sender(Sender& sender, double now_ms) {
  look();
  sending_ = &sender;
  if (sender.mode == Mode::kOff) {
    switch_on(sender, now_ms);
  } else {
    switch_off(sender, now_ms);
  }
  settle(sender, now_ms);
}

void Network::switch_on(Sender& sender, double now_ms) {
  advance_share(now_ms);
  ++senders_on_;
  sender.on_since_ms = now_ms;
  sender.share_at_on_ms = share_ms_;
  SenderResults& results = sender.results.traffic;
  results.first_on_ms = std::min(results.first_on_ms, now_ms);
  sender.flow.next_period();
  sender.sent_before_period = static_cast<std::uint32_t>(results.packets_sent);
  std::optional<std::uint64_t> packets;
  double off_ms = kNever;
  if (sender.schedule.by_time()) {
    sender.mode = Mode::kOnForTime;
    off_ms = sender.schedule.ends_ms(sender.period, now_ms);
  } else {
    sender.mode = Mode::kOnForPackets;
    packets = sender.schedule.on_packets(sender.period, description_.packet_bytes);
    sender.flow_packets = *packets;
  }
  ++sender.period;
  set_rare(timer_of_switch(index_of(sender)), off_ms);
  sender.endpoint->switch_on(packets, now_ms, *this);
}

void Network::switch_off(Sender& sender, double now_ms) {
  if (sender.mode == Mode::kOnForPackets) {
    sender.results.flows.push_back(
        {sender.flow_packets, now_ms - sender.schedule.came_ms(sender.on_since_ms)});
  }
  stop_counting(sender, now_ms);
  --senders_on_;
  sender.mode = Mode::kOff;
  sender.endpoint->switch_off(now_ms);
  set_rare(timer_of_switch(index_of(sender)), sender.schedule.begins_ms(sender.period, now_ms));
  if (sender.barrier_pause_ms < kNever) {
    end_at_barrier(sender, now_ms);
  }
}

// The last one lets all begin again.
void Network::end_at_barrier(const Sender& sender, double now_ms) {
  const std::vector<std::uint32_t>& all = barriers_[sender.barrier];
  std::size_t& ended = ended_at_barrier_[sender.barrier];
  if (++ended < all.size()) {
    return;
  }
  ended = 0;
  for (const std::uint32_t each : all) {
    set_rare(timer_of_switch(each), now_ms + sender.barrier_pause_ms);
  }
}

void Network::settle(Sender& sender, double now_ms) {
  if (sender.mode == Mode::kOnForPackets && sender.endpoint->is_done()) [[unlikely]] {
    switch_off(sender, now_ms);
  }
  if (const double act_ms = sender.endpoint->next_act_ms(); act_ms < sender.act_timer_ms)
      [[unlikely]] {
    set_act(sender, std::max(act_ms, now_ms));
  }
}

void Network::settle_delayed_ack(Sender& sender) {
  sender.ack_timer_ms = sender.endpoint->delayed_ack_due_ms();
  if (sender.has_constant_return) {
    sender.ack_timer_ms += sender.return_delay_ms;
  }
  set_rare(timer_of_delayed_ack(index_of(sender)), sender.ack_timer_ms);
}

void Network::tell_of_losses(double now_ms) {
  // Endpoints may send, and lose, more meanwhile.
  for (std::size_t i = 0; i < untold_losses_.size(); ++i) {
    const Segment segment = untold_losses_[i];
    if (segment.is_ack) {
      free_slots_.push_back(segment.ack_slot);
      continue;
    }
    --under_way_;
    Sender& sender = senders_[segment.sender];
    ++sender.results.traffic.packets_lost;
    sending_ = &senders_[segment.sender];
    sender.endpoint->on_packet_lost(segment, now_ms);
    settle(sender, now_ms);
  }
  untold_losses_.clear();
}

void Network::advance_share(double now_ms) {
  if (senders_on_ > 0) {
    share_ms_ += (now_ms - share_until_ms_) / static_cast<double>(senders_on_);
  }
  share_until_ms_ = now_ms;
}

void Network::stop_counting(Sender& sender, double now_ms) {
  advance_share(now_ms);
  sender.results.traffic.on_ms += now_ms - sender.on_since_ms;
  sender.results.traffic.share_ms += share_ms_ - sender.share_at_on_ms;
}

void Network::record() {
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    const Sender& sender = senders_[i];
    sender_samples_[i] = {sender.mode != Mode::kOff, sender.endpoint->pace(), sender.rtt_ms,
                          sender.endpoint->results()};
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    FifoLink* const fifo = fifo_of(link);
    link_samples_[i] =
        fifo != nullptr
            ? LinkSample{fifo->waiting_packets(next_sample_ms_),
                         fifo->waiting_bytes(next_sample_ms_), link.results.dropped}
            : LinkSample{link.queue->packets(), link.queue->bytes(), link.results.dropped};
  }
  options_.recorder->sample(next_sample_ms_, sender_samples_, link_samples_);
  next_sample_ms_ += options_.record_every_ms;
  find_horizon();
}

void Network::look() {
  events_until_look_ = kEventsPerLook;
  if (options_.interruption != nullptr) {
    std::uint64_t packets = 0;
    for (const Sender& sender : senders_) {
      packets += sender.results.traffic.packets_received + sender.results.traffic.packets_lost;
    }
    options_.interruption->check(packets - std::exchange(packets_at_look_, packets));
  }
}

// What waits is queued anew; what is in the wire gets there sooner or later by as much as the wire
// is shorter or longer, and at once where that time is past.
void Network::change_link(std::uint32_t index, const LinkDescription& description) {
  Link& link = links_[index];
  if (link.variety || !is_constant(description)) {
    refuse("only links of constant rate, delay and loss can be changed");
  }
  const double longer_ms = description.delay_ms - link.description.delay_ms;
  link.description = description;
  link.service_ms = 1 / description.rate_packets_per_ms;
  const std::unique_ptr<Queue> before = std::exchange(link.queue, make_queue(index, description));
  while (const Segment* const waiting = before->depart(now_ms(), *this)) {
    link.queue->accept(*waiting, now_ms(), *this);
  }
  set_rare(index, link.queue->next_ms());
  for (Lane* const lane : lanes_) {
    if (lane->link != &link) {
      continue;
    }
    lane->delay_ms += longer_ms;
    for (std::size_t place = 0; place < lane->in_flight.size(); ++place) {
      double& arrives_ms = lane->in_flight.at(place).arrives_ms;
      arrives_ms = std::max(arrives_ms + longer_ms, now_ms());
    }
    if (!lane->in_flight.empty()) {
      arrivals_.set(lane->index, lane->in_flight.front().arrives_ms);
    }
  }
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    find_losses(senders_[i].route, description_.senders[i].route.links, false);
    find_losses(senders_[i].return_route, description_.senders[i].route.return_links, true);
    find_most_under_way(senders_[i]);
  }
  tell_of_losses(now_ms());
}

void Network::hold(std::uint32_t index, bool is_on) {
  Sender& sender = senders_[index];
  if ((sender.mode != Mode::kOff) != is_on) {
    switch_sender(sender, now_ms());
    tell_of_losses(now_ms());
  }
  set_rare(timer_of_switch(index), kNever);
}

void Network::release(std::uint32_t index) {
  Sender& sender = senders_[index];
  double at_ms = kNever;
  if (sender.mode == Mode::kOff) {
    at_ms = sender.schedule.begins_ms(sender.period, now_ms());
  } else if (sender.mode == Mode::kOnForTime) {
    at_ms = sender.schedule.ends_ms(sender.period, now_ms());
  }
  set_rare(timer_of_switch(index), at_ms);
}

LiveSender Network::sender(std::uint32_t index) const {
  const Sender& sender = senders_[index];
  const SenderResults& traffic = sender.results.traffic;
  LiveSender live;
  live.is_on = sender.mode != Mode::kOff;
  live.pace = sender.endpoint->pace();
  live.rtt_ms = sender.rtt_ms;
  live.in_flight = traffic.packets_sent - traffic.packets_received - traffic.packets_lost;
  live.received = traffic.packets_received;
  live.lost = traffic.packets_lost;
  live.delay_sum_ms = traffic.delay_sum_ms;
  return live;
}

LiveLink Network::link(std::uint32_t index) const {
  const Link& link = links_[index];
  return {link.queue->packets(), link.results.dropped, link.results.lost};
}

NetworkResults Network::finish() {
  NetworkResults results;
  for (Sender& sender : senders_) {
    if (sender.mode != Mode::kOff) {
      stop_counting(sender, duration_ms_);
    }
    sender.results.endpoint = sender.endpoint->results();
    if (sender.has_constant_return) {
      sender.results.delay_samples = sender.results.traffic.packets_received;
    }
    sender.results.throughput_packets = sender.counts_every_packet
                                            ? sender.results.traffic.packets_received
                                            : sender.results.endpoint.packets_in_order;
    results.senders.push_back(std::move(sender.results));
  }
  for (Link& link : links_) {
    FifoLink* const fifo = fifo_of(link);
    link.results.waiting =
        fifo != nullptr ? fifo->waiting_packets(duration_ms_) : link.queue->packets();
    results.links.push_back(link.results);
  }
  for (const Lane* const lane : lanes_) {
    results.links[lane->link->index].under_way += lane->in_flight.size();
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].variety && links_[i].variety->jitter_box) {
      results.links[i].under_way += links_[i].variety->jitter_box->size();
    }
    // What waits is in its lane already, or its box.
    if (fifo_of(links_[i]) != nullptr) {
      results.links[i].under_way -= results.links[i].waiting;
      results.links[i].transmitted -= results.links[i].waiting;
    }
  }
  return results;
}

}  // namespace

CompletionSummary summarize(std::span<const FlowCompletion> flows) {
  if (flows.empty()) {
    return {};
  }
  std::vector<double> times_ms;
  double sum_ms = 0;
  for (const FlowCompletion& flow : flows) {
    times_ms.push_back(flow.time_ms);
    sum_ms += flow.time_ms;
  }
  std::ranges::sort(times_ms);
  const std::size_t count = times_ms.size();
  return {count, sum_ms / static_cast<double>(count),
          (times_ms[(count - 1) / 2] + times_ms[count / 2]) / 2,
          times_ms[(99 * count + 99) / 100 - 1]};
}

namespace {

void require_simulable(const NetworkDescription& network, std::span<const CompiledTable> tables) {
  validate(network, tables.size());
  for (const SenderDescription& sender : network.senders) {
    if (sender.table && tables[*sender.table].has_extended_signals()) {
      refuse("table " + std::to_string(*sender.table) +
             " looks at signals that only the dumbbell has (docs/reference/signals.md)");
    }
  }
}

}  // namespace

NetworkResults run_network(const NetworkDescription& network, std::span<const CompiledTable> tables,
                           double duration_ms, std::uint64_t seed, const NetworkOptions& options) {
  require_simulable(network, tables);
  if (has_omniscient_senders(network)) {
    return run_omniscient(network, duration_ms, seed, options.interruption);
  }
  return Network(network, tables, duration_ms, seed, options, true).run();
}

std::unique_ptr<LiveNetwork> make_live_network(const NetworkDescription& network,
                                               std::span<const CompiledTable> tables,
                                               std::uint64_t seed, RuleObserver* observer) {
  require_simulable(network, tables);
  if (has_omniscient_senders(network)) {
    refuse("omniscient senders are computed, and cannot be watched");
  }
  // It ends when nobody runs it any more; links' schedules and walks stop after hours.
  constexpr double kWithoutEndMs = 1e7;
  return std::make_unique<Network>(network, tables, kWithoutEndMs, seed,
                                   NetworkOptions{.observer = observer}, false);
}

}  // namespace remy
