#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "elements/queue.h"
#include "network/ack_pool.h"
#include "network/description.h"
#include "network/event_schedule.h"
#include "network/network.h"
#include "network/results.h"
#include "network/topology.h"
#include "network/traffic_switch.h"
#include "table/compiled_table.h"

namespace remy {

// Simulates a network event by event: it moves packets along their routes and hands them to the
// endpoints. Elements are built by Topology, events kept by EventSchedule, and senders switched by
// TrafficSwitch. run_network() documents the order of simultaneous events.
//
// Per packet, only departures from links and arrivals behind them are events. A link that computes
// departures ahead has only the latter.
class NetworkSimulation final : private PacketSink, private DropListener {
 public:
  // Description, tables and what the options point to outlive it.
  NetworkSimulation(const NetworkDescription& description, std::span<const CompiledTable> tables,
                    double duration_ms, std::uint64_t seed, const NetworkOptions& options,
                    Departures departures);

  // Simulates until the duration is over.
  NetworkResults run();

  // Handles all events until until_ms, those at until_ms included. Times must not decrease.
  void run_until(double until_ms);

  // For live control, between calls of run_until(). All take effect at the time of the last.

  const Topology& topology() const { return topology_; }
  // Replaces a constant link by another. Waiting packets join the new queue; packets behind the
  // link arrive later or earlier by the difference of the delays, but not in the past.
  void change_link(std::uint32_t link, const LinkDescription& description);
  // Switches a sender on or off, if it is not already, and cancels its next switch.
  void hold_sender(std::uint32_t sender, bool is_on);
  // Schedules the next switch of a sender by its traffic.
  void release_sender(std::uint32_t sender);

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // The interruption is polled once in so many events.
  static constexpr std::uint64_t kEventsPerPoll = 4096;

  void observe_endpoints();

  // Packets on their way.
  void send(const Segment& segment, double now_ms) override;
  void send_lossy(const Segment& segment, double now_ms);
  void on_drop(const Segment& segment, double now_ms) override;
  void arrive_at_link(const Hop& hop, const Segment& segment, double now_ms);
  void arrive_at_full_fifo(const Hop& hop, const Segment& segment, double now_ms);
  void arrive_at_queue(const Hop& hop, const Segment& segment, double now_ms);
  void arrive_at_time_varying(const Hop& hop, const Segment& segment, double now_ms);
  double transmission_ms(const Link& link, const Segment& segment) const;
  void start_transmission(Link& link, double now_ms);
  void start_idle_link(Link& link, double now_ms);
  void propagate(Link& link, DelayLine& line, const Segment& segment, double departure_ms);
  void propagate_into_new_place(DelayLine& line, const Segment& segment, double arrives_ms);
  void propagate_time_varying(Link& link, Segment& segment, double departure_ms);
  Telemetry* telemetry_of(const Segment& segment);
  void leave_link(const Segment& segment, double leaves_ms, double delay_ms, bool may_overtake);
  void join(DelayLine& line, const Segment& segment, std::uint32_t hop, double arrives_ms,
            bool may_overtake);
  void arrive(DelayLine& line, double now_ms);
  void lose_or_delay(const DelayLine& line, const Segment& segment, double now_ms);

  // Packets and ACKs at their endpoints.
  void receive_data(NetworkSender& sender, const Segment& segment, double now_ms);
  void receive_data_and_ack(NetworkSender& sender, const Segment& segment, double now_ms);
  void send_ack(NetworkSender& sender, const Segment& echo, const AckContent& content,
                double now_ms);
  void receive_ack(NetworkSender& sender, const Segment& ack, double now_ms);
  void report_losses(double now_ms);

  // Other events.
  void handle(const EventSchedule::Event& event);
  void act(NetworkSender& sender, double now_ms);
  void tick_queue(std::uint32_t link, double now_ms);
  void toggle(NetworkSender& sender, double now_ms);
  void send_delayed_ack(NetworkSender& sender, double now_ms);
  void release_jitter_box(std::uint32_t link);
  void record();
  void poll_interruption();

  // After each call of an endpoint: switches its sender off if it is done, and updates its event.
  void update(NetworkSender& sender, double now_ms);
  void update_delayed_ack(NetworkSender& sender);
  void set_act(NetworkSender& sender, double due_ms) {
    sender.act_timer_ms = due_ms;
    events_.set_act(sender.index, due_ms);
  }
  const Route& route_of(const NetworkSender& sender, const Segment& segment) const {
    return segment.is_ack ? sender.return_route : sender.route;
  }
  double now_ms() const { return std::nextafter(events_.end_ms(), 0); }
  NetworkResults collect_results();

  const NetworkDescription& description_;
  const double duration_ms_;
  const NetworkOptions options_;
  const std::uint32_t packet_bytes_;
  const std::uint32_t ack_bytes_;
  Topology topology_;
  EventSchedule events_;
  TrafficSwitch traffic_;
  NetworkSender* active_ = nullptr;  // the sender that send() is called by
  std::vector<Segment> losses_;      // lost segments that report_losses() has not handled yet
  AckPool acks_;
  std::size_t packets_in_network_ = 0;
  std::uint64_t packets_at_poll_ = 0;  // received or lost
  std::uint64_t events_until_poll_ = kEventsPerPoll;
  double next_sample_ms_ = kNever;
  std::vector<SenderSample> sender_samples_;
  std::vector<LinkSample> link_samples_;
};

}  // namespace remy
