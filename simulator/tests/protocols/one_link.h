#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "protocols/protocol.h"

namespace remy {

// Runs controllers that share one link, without a transport. Every packet is acknowledged
// individually by its transmission number, and there is always data to send. A loss is detected
// three packets later, and retransmitted with the next packet.
struct OneLink {
  double rate_packets_per_ms = 1.25;
  double rtt_ms = 100;
  std::size_t buffer_packets = 1'000'000;
  double loss_probability = 0;
  bool are_losses_even = false;  // losses are evenly spaced instead of random
};

class OneLinkRun {
 public:
  struct Counts {
    std::uint64_t delivered = 0;
    std::uint64_t lost = 0;
    double rtt_sum_ms = 0;
    std::uint64_t timeouts = 0;

    Counts operator-(const Counts& earlier) const {
      return {delivered - earlier.delivered, lost - earlier.lost, rtt_sum_ms - earlier.rtt_sum_ms,
              timeouts - earlier.timeouts};
    }
    double mean_rtt_ms() const { return rtt_sum_ms / static_cast<double>(delivered); }
    double loss_rate() const {
      return static_cast<double>(lost) / static_cast<double>(lost + delivered);
    }
  };

  explicit OneLinkRun(OneLink link) : link_(link) {}

  void add(std::unique_ptr<CongestionController> controller, double start_ms = 0) {
    flows_.emplace_back();
    flows_.back().controller = std::move(controller);
    flows_.back().start_ms = start_ms;
  }
  void add(const Choice& choice, double start_ms = 0) {
    const Protocol& protocol = find_protocol(choice.name);
    add(protocol.make(ParameterValues("protocol", protocol.variants, choice), flows_.size()),
        start_ms);
  }

  OneLink& link() { return link_; }
  double now_ms() const { return now_ms_; }
  const CongestionController& controller(std::size_t flow) const {
    return *flows_[flow].controller;
  }
  std::uint64_t in_flight(std::size_t flow) const { return flows_[flow].outstanding.size(); }
  const Counts& counts(std::size_t flow) const { return flows_[flow].counts; }
  // Packets waiting or in transmission.
  std::size_t backlog() {
    while (!departures_.empty() && departures_.front() <= now_ms_) {
      departures_.pop_front();
    }
    return departures_.size();
  }

  // Called after every event of the flow's controller.
  std::function<void(std::size_t flow)> observer;
  // Additional delay of a delivered packet. Does not reorder packets.
  std::function<double(double now_ms)> jitter_ms;

  // Runs until end_ms and returns each flow's counts in that time.
  std::vector<Counts> run_until(double end_ms) {
    std::vector<Counts> before;
    for (const Flow& flow : flows_) {
      before.push_back(flow.counts);
    }
    while (step(end_ms)) {
    }
    now_ms_ = end_ms;
    std::vector<Counts> since;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      since.push_back(flows_[i].counts - before[i]);
    }
    return since;
  }

 private:
  static constexpr double kNever = CongestionController::kNever;
  static constexpr std::uint64_t kReordering = 3;
  static constexpr double kLeastTimeoutMs = 200;

  struct Packet {
    std::uint64_t serial = 0;
    std::uint64_t sequence = 0;
    DeliverySnapshot state;
  };
  struct Arrival {
    double now_ms = 0;
    double received_ms = 0;
    std::uint64_t serial = 0;
  };
  struct Flow {
    std::unique_ptr<CongestionController> controller;
    double start_ms = 0;
    bool is_on = false;
    std::deque<Packet> outstanding;
    std::deque<std::uint64_t> missing;  // sequence numbers to retransmit
    std::deque<bool> received;          // received packets, from the cumulative ACK on
    std::uint64_t cumulative = 0;
    std::uint64_t next_sequence = 0;
    std::deque<Arrival> acks;
    std::uint64_t next_serial = 0;
    double next_send_ms = 0;
    double last_arrival_ms = 0;
    double smoothed_rtt_ms = 0;
    double timeout_ms = kNever;
    bool has_timed_out = false;
    double delivered_ms = 0;
    double first_sent_ms = 0;
    bool in_recovery = false;
    std::uint64_t recovery_end = 0;
    Counts counts;
  };

  double window(const Flow& flow) const { return std::max(1.0, flow.controller->cwnd()); }
  bool may_send(const Flow& flow) const {
    return static_cast<double>(flow.outstanding.size() + 1) <= window(flow);
  }

  // Processes the next event; false if there is none before end_ms.
  bool step(double end_ms) {
    double next_ms = end_ms;
    std::size_t flow_index = flows_.size();
    enum { kStart, kAck, kTimeout, kTick, kSend } next_event = kStart;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const Flow& flow = flows_[i];
      const auto consider = [&](double ms, decltype(next_event) event) {
        if (ms < next_ms) {
          next_ms = ms, flow_index = i, next_event = event;
        }
      };
      if (!flow.is_on) {
        consider(flow.start_ms, kStart);
        continue;
      }
      if (!flow.acks.empty()) {
        consider(flow.acks.front().now_ms, kAck);
      }
      consider(flow.timeout_ms, kTimeout);
      consider(std::max(now_ms_, flow.controller->next_tick_ms()), kTick);
      if (may_send(flow)) {
        consider(std::max(now_ms_, flow.next_send_ms), kSend);
      }
    }
    if (flow_index == flows_.size()) {
      return false;
    }
    now_ms_ = next_ms;
    Flow& flow = flows_[flow_index];
    switch (next_event) {
      case kStart:
        flow.is_on = true;
        flow.next_send_ms = flow.delivered_ms = flow.first_sent_ms = now_ms_;
        flow.controller->start(now_ms_);
        break;
      case kAck:
        acknowledge(flow);
        break;
      case kTimeout:
        time_out(flow);
        break;
      case kTick:
        flow.controller->on_tick(now_ms_);
        break;
      case kSend:
        send(flow);
        break;
    }
    if (observer) {
      observer(flow_index);
    }
    return true;
  }

  void send(Flow& flow) {
    if (flow.outstanding.empty()) {
      flow.delivered_ms = flow.first_sent_ms = now_ms_;
      flow.timeout_ms = now_ms_ + timeout_after(flow);
    }
    const bool is_repetition = !flow.missing.empty();
    Packet packet{
        flow.next_serial++, is_repetition ? flow.missing.front() : flow.next_sequence++, {}};
    if (is_repetition) {
      flow.missing.pop_front();
    }
    packet.state = {.sent_ms = now_ms_,
                    .delivered = flow.counts.delivered,
                    .delivered_ms = flow.delivered_ms,
                    .first_sent_ms = flow.first_sent_ms,
                    .tx_in_flight = flow.outstanding.size() + 1,
                    .lost = flow.counts.lost,
                    .is_app_limited = false};
    flow.outstanding.push_back(packet);
    flow.next_send_ms =
        std::max(flow.next_send_ms, now_ms_ - 1e-9) + flow.controller->pacing_interval_ms();
    const bool is_room = backlog() <= link_.buffer_packets;
    const bool is_lost = loses();
    if (is_room) {
      const double start_ms = departures_.empty() ? now_ms_ : departures_.back();
      departures_.push_back(start_ms + 1 / link_.rate_packets_per_ms);
      if (!is_lost) {
        double received_ms = departures_.back() + link_.rtt_ms / 2;
        if (jitter_ms) {
          received_ms = std::max(flow.last_arrival_ms, received_ms + jitter_ms(now_ms_));
        }
        flow.last_arrival_ms = received_ms;
        flow.acks.push_back({received_ms + link_.rtt_ms / 2, received_ms, packet.serial});
      }
    }
    if (flow.outstanding.size() == 1) {
      flow.controller->on_transmit_start(now_ms_);
    }
    flow.controller->on_sent({.now_ms = now_ms_,
                              .transmission_number = packet.serial,
                              .in_flight = flow.outstanding.size(),
                              .is_retransmission = is_repetition});
  }

  bool loses() {
    const double draw = unit_interval(random_bits(0x1055, packets_sent_++));
    if (!link_.are_losses_even) {
      return draw < link_.loss_probability;
    }
    losses_due_ += link_.loss_probability;
    const bool is_due = losses_due_ >= 1;
    losses_due_ -= is_due ? 1 : 0;
    return is_due;
  }

  double timeout_after(const Flow& flow) const {
    return flow.smoothed_rtt_ms == 0 ? 1000 : std::max(kLeastTimeoutMs, 2 * flow.smoothed_rtt_ms);
  }

  void acknowledge(Flow& flow) {
    const Arrival arrival = flow.acks.front();
    flow.acks.pop_front();
    const auto packet_it =
        std::ranges::lower_bound(flow.outstanding, arrival.serial, {}, &Packet::serial);
    if (packet_it == flow.outstanding.end() || packet_it->serial != arrival.serial) {
      return;  // considered lost at a timeout
    }
    const DeliverySnapshot state = packet_it->state;
    const std::uint64_t sequence = packet_it->sequence;
    const std::uint64_t prior = flow.outstanding.size();
    flow.outstanding.erase(packet_it);
    while (!flow.outstanding.empty() &&
           flow.outstanding.front().serial + kReordering <= arrival.serial) {
      lose(flow);
    }
    ++flow.counts.delivered;
    const double rtt_ms = now_ms_ - state.sent_ms;
    flow.counts.rtt_sum_ms += rtt_ms;
    flow.smoothed_rtt_ms = flow.smoothed_rtt_ms == 0
                               ? rtt_ms
                               : flow.smoothed_rtt_ms + (rtt_ms - flow.smoothed_rtt_ms) / 8;
    flow.has_timed_out = false;
    flow.delivered_ms = now_ms_;
    flow.first_sent_ms = state.sent_ms;
    flow.timeout_ms = flow.outstanding.empty() ? kNever : now_ms_ + timeout_after(flow);
    const std::uint64_t acknowledged = advance(flow, sequence);
    flow.in_recovery = flow.in_recovery && flow.cumulative < flow.recovery_end;
    const double interval_ms =
        std::max(state.sent_ms - state.first_sent_ms, now_ms_ - state.delivered_ms);
    flow.controller->on_ack({
        .now_ms = now_ms_,
        .sent_ms = state.sent_ms,
        .received_ms = arrival.received_ms,
        .rtt_ms = rtt_ms,
        .transmission_number = arrival.serial,
        .newly_acked = acknowledged,
        .newly_delivered = 1,
        .newly_marked = 0,
        .total_delivered = flow.counts.delivered,
        .total_lost = flow.counts.lost,
        .prior_in_flight = prior,
        .in_flight = flow.outstanding.size(),
        .in_recovery = flow.in_recovery,
        .is_cwnd_limited = true,
        .packet = state,
        .delivery_rate_per_ms =
            static_cast<double>(flow.counts.delivered - state.delivered) / interval_ms,
        .delivery_interval_ms = interval_ms,
        .xcp_feedback_packets = 0,
    });
  }

  // Returns by how many packets the cumulative ACK advances.
  static std::uint64_t advance(Flow& flow, std::uint64_t sequence) {
    const auto offset = static_cast<std::size_t>(sequence - flow.cumulative);
    if (offset >= flow.received.size()) {
      flow.received.resize(offset + 1);
    }
    flow.received[offset] = true;
    const std::uint64_t before = flow.cumulative;
    for (; !flow.received.empty() && flow.received.front(); ++flow.cumulative) {
      flow.received.pop_front();
    }
    return flow.cumulative - before;
  }

  void lose(Flow& flow) {
    const Packet packet = flow.outstanding.front();
    const bool starts_recovery = !flow.in_recovery;
    if (starts_recovery) {
      flow.in_recovery = true;
      flow.recovery_end = flow.next_sequence;
    }
    flow.missing.push_back(packet.sequence);
    flow.controller->on_loss({.now_ms = now_ms_,
                              .transmission_number = packet.serial,
                              .in_flight = flow.outstanding.size(),
                              .starts_recovery = starts_recovery,
                              .packet = packet.state});
    flow.outstanding.pop_front();
    ++flow.counts.lost;
  }

  void time_out(Flow& flow) {
    flow.controller->on_timeout(
        {.now_ms = now_ms_, .in_flight = flow.outstanding.size(), .is_first = !flow.has_timed_out});
    flow.has_timed_out = true;
    ++flow.counts.timeouts;
    flow.counts.lost += flow.outstanding.size();
    for (const Packet& packet : flow.outstanding) {
      flow.missing.push_back(packet.sequence);
    }
    flow.outstanding.clear();
    flow.in_recovery = true;
    flow.recovery_end = flow.next_sequence;
    flow.timeout_ms = kNever;
  }

  OneLink link_;
  double now_ms_ = 0;
  std::uint64_t packets_sent_ = 0;
  double losses_due_ = 0;
  std::deque<double> departures_;
  std::vector<Flow> flows_;
};

}  // namespace remy
