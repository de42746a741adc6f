#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/interruption.h"
#include "elements/path.h"
#include "network/timers.h"
#include "senders/clock.h"
#include "senders/packet.h"
#include "senders/traffic.h"

namespace remy {

// n senders share one path (TCP ex Machina, Figure 2). Composed at compile time of
//   Controller: congestion control. start(), acknowledge(...) and acknowledge_earlier_period()
//               return the rule used; window_packets() and intersend_ms() limit transmissions. With
//               kExtendedSignals, acknowledge(...) is told of losses, marks and telemetry, too.
//   Path:       send(packet), next_arrival_ms(), front(), is_lost(packet), arrive(); with
//               kExtendedSignals also telemetry() and is_marked().
//   Clock:      read(...) gives the times of an ACK as its sender measures them. Unless it is
//               exact, it also determines how packets are bunched and ACKs are delayed.
//   Observer:   used(sender, controller, rule) is called for every rule used; with kSeesPackets
//   also
//               received(sender, RTT) for every packet, and completed(sender, flow).
// Each packet has two events: it is sent when pacing allows, and it arrives at the end of the path.
// Rare events switch senders on or off, or send a delayed ACK.
template <class Controller, class Path, class Clock, class Observer>
class Dumbbell {
 public:
  // There is one controller and one schedule per sender. `observer` and `interruption`, which may
  // be null, outlive the simulation.
  Dumbbell(const PathParameters& path, std::span<const Controller> controllers,
           std::span<const Schedule> schedules, const Clock& clock, Observer& observer,
           Interruption* interruption)
      : path_(path),
        clock_(clock),
        observer_(observer),
        interruption_(interruption),
        schedules_(schedules.begin(), schedules.end()),
        timers_(static_cast<std::uint32_t>(controllers.size()) * (Clock::kIsExact ? 1 : 2)) {
    senders_.reserve(controllers.size());
    for (std::uint32_t index = 0; index < controllers.size(); ++index) {
      senders_.emplace_back(controllers[index], index);
      timers_.set(index, schedules_[index].begins_ms(0, 0));
    }
  }

  // Simulates from 0 to duration_ms, once. Returns one result per sender. Throws Interrupted.
  //
  // An on period by bytes ends when all its packets are received or lost. Lost packets are not
  // retransmitted: throughput counts packets, and RemyCCs do not react to single losses.
  std::vector<SenderResults> run(double duration_ms) {
    for (Sender& sender : senders_) {
      sender.results.first_on_ms = duration_ms;
    }
    end_ms_ = std::nextafter(duration_ms, SendQueue::kNever);
    update_horizon();
    for (;;) {
      // At the same time senders act before packets arrive. ACK clocking makes such coincidences
      // common.
      const double arrival_ms = path_.next_arrival_ms();
      const double send_ms = waiting_.first().due_ms;
      if (arrival_ms < send_ms) {
        if (arrival_ms < horizon_ms_) [[likely]] {
          packet_arrived(arrival_ms);
          continue;
        }
      } else if (send_ms < horizon_ms_) [[likely]] {
        send_waiting(static_cast<Sender&>(waiting_.first()), send_ms);
        continue;
      }
      if (horizon_ms_ == end_ms_) {
        break;
      }
      if (send_ms == horizon_ms_) {
        send_waiting(static_cast<Sender&>(waiting_.first()), send_ms);
      } else {
        fire_first_timer();
      }
    }
    return finish(duration_ms);
  }

 private:
  static constexpr double kLongAgo = -std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t kDropsPerCheck = 4096;

  // The event that ends the present on period.
  enum class Mode : std::uint8_t { kOff, kOnForTime, kOnForPackets };

  // Marks and telemetry of the packets that the receiver got since the last ACK.
  struct Heard {
    std::uint32_t marked = 0;
    Telemetry newest;
    Telemetry acknowledged;  // of the latest packet that the last ACK acknowledged
  };
  struct NothingHeard {};

  struct Sender : SendQueue::Waiter {
    Sender(const Controller& with, std::uint32_t number) : controller(with), flow(number) {
      index = number;
    }

    // Packets that the window has room for.
    std::int32_t room() const { return static_cast<std::int32_t>(window_end - sent); }
    // Least time until the next transmission: one intersend time for each packet of the last bunch.
    double intersend_ms() const {
      if constexpr (Clock::kIsExact) {
        return controller.intersend_ms();
      } else {
        return controller.intersend_ms() * reader.bunch;
      }
    }

    Controller controller;
    double last_send_ms = kLongAgo;  // in this on period
    // Counts of packets of this on period, modulo 2^32.
    std::uint32_t sent = 0;
    std::uint32_t acknowledged = 0;  // largest sequence number, plus one
    std::uint32_t window_end = 0;    // packets that may be sent
    FlowTag flow;
    Mode mode = Mode::kOff;
    // For on periods by bytes: packets neither received nor lost yet, and the value of
    // results.packets_sent after the last packet.
    std::uint64_t unresolved = 0;
    std::uint64_t flow_end = 0;
    [[no_unique_address]] typename Clock::Reader reader;
    [[no_unique_address]] std::conditional_t<Controller::kExtendedSignals, Heard, NothingHeard>
        heard;
    SenderResults results;
    double on_since_ms = 0;
    double share_at_on_ms = 0;
    std::uint64_t period = 0;
  };

  [[gnu::always_inline]] void packet_arrived(double now_ms) {
    // Copied field by field, because the compiler copies the whole packet through memory.
    const double sent_ms = path_.front().sent_ms;
    const std::uint32_t sequence = path_.front().sequence;
    const FlowTag flow = path_.front().flow;
    Sender& sender = senders_[flow.sender()];
    const bool is_lost = path_.is_lost(sequence, flow);
    if constexpr (Controller::kExtendedSignals) {
      if (!is_lost && flow == sender.flow) {
        sender.heard.marked += path_.is_marked() ? 1 : 0;
        sender.heard.newest = path_.telemetry();
      }
    }
    path_.arrive([this](std::size_t packets) { check_interruption(packets); });
    if (is_lost) [[unlikely]] {
      ++sender.results.packets_lost;
    } else {
      ++sender.results.packets_received;
      sender.results.delay_sum_ms += now_ms - sent_ms;
      if constexpr (Observer::kSeesPackets) {
        observer_.received(sender.index, now_ms - sent_ms);
      }
    }
    if (is_lost || sender.mode != Mode::kOnForTime) [[unlikely]] {
      packet_arrived_slow_path(sender, {sent_ms, sequence, flow}, is_lost, now_ms);
    } else if (const std::uint32_t packets = ready_for_ack(sender, sent_ms, sequence, flow, now_ms);
               packets > 0) {
      acknowledge(sender, sent_ms, sequence, flow, now_ms, packets);
      fill_window(sender, now_ms);
    }
  }

  [[gnu::noinline]] void packet_arrived_slow_path(Sender& sender, const Packet& packet,
                                                  bool is_lost, double now_ms) {
    // ACKs that arrive while the sender is off are ignored, because each on period starts with an
    // empty memory.
    if (sender.mode == Mode::kOff) {
      return;
    }
    if (sender.mode == Mode::kOnForPackets && packet.flow == sender.flow &&
        !resolve(sender, now_ms)) {
      return;
    }
    if (is_lost) {
      return;
    }
    const auto [sent_ms, sequence, flow] = packet;
    if (const std::uint32_t packets = ready_for_ack(sender, sent_ms, sequence, flow, now_ms);
        packets > 0) {
      acknowledge(sender, sent_ms, sequence, flow, now_ms, packets);
      limit_window_to_flow(sender);
      fill_window(sender, now_ms);
    }
  }

  // Returns how many packets the ACK for this packet acknowledges; 0 if the ACK is delayed. ACKs
  // for packets of earlier on periods are never delayed.
  [[gnu::always_inline]] std::uint32_t ready_for_ack(Sender& sender, double sent_ms,
                                                     std::uint32_t sequence, FlowTag flow,
                                                     double now_ms) {
    if constexpr (!Clock::kIsExact) {
      if (clock_.noise().delays_acks() && flow == sender.flow) {
        sender.reader.has_unacknowledged = !sender.reader.has_unacknowledged;
        if (sender.reader.has_unacknowledged) {
          sender.reader.unacknowledged = {sent_ms, sequence, flow};
          set_ack_timer(sender, now_ms + clock_.noise().delayed_ack_ms);
          return 0;
        }
        set_ack_timer(sender, SendQueue::kNever);
        return 2;
      }
    }
    return 1;
  }

  void set_ack_timer(const Sender& sender, double due_ms) {
    timers_.set(static_cast<std::uint32_t>(senders_.size()) + sender.index, due_ms);
    update_horizon();
  }

  // Sends the delayed ACK, if any: no second packet arrived in time.
  void send_delayed_ack(Sender& sender, double now_ms) {
    set_ack_timer(sender, SendQueue::kNever);
    if (!sender.reader.has_unacknowledged) {
      return;
    }
    sender.reader.has_unacknowledged = false;
    const auto [sent_ms, sequence, flow] = sender.reader.unacknowledged;
    acknowledge(sender, sent_ms, sequence, flow, now_ms, 1);
    limit_window_to_flow(sender);
    fill_window(sender, now_ms);
  }

  // An ACK of `packets` packets arrives. It causes one look-up, with the times of the latest
  // packet.
  [[gnu::always_inline]] void acknowledge(Sender& sender, double sent_ms, std::uint32_t sequence,
                                          FlowTag flow, double now_ms, std::uint32_t packets) {
    std::uint32_t rule = 0;
    if (flow == sender.flow) [[likely]] {
      const std::uint32_t resolved = sequence + 1 - sender.acknowledged;
      sender.acknowledged = sequence + 1;
      const AckTimes seen = clock_.read(sender.reader, sent_ms, sequence, flow, now_ms);
      if constexpr (Controller::kHasPathModel) {
        // Packets stay in order, so those between are lost.
        if (resolved > packets) [[unlikely]] {
          sender.controller.on_loss(seen.sent_ms + seen.rtt_ms, resolved - packets);
        }
      }
      if constexpr (Controller::kExtendedSignals) {
        rule = sender.controller.acknowledge(seen.sent_ms, seen.received_ms, seen.rtt_ms, packets,
                                             [&] { return feedback(sender, packets); });
      } else {
        rule = sender.controller.acknowledge(seen.sent_ms, seen.received_ms, seen.rtt_ms, packets);
      }
    } else {
      rule = sender.controller.acknowledge_earlier_period();
    }
    observer_.used(sender.index, sender.controller, rule);
    // The window starts after the last acknowledged packet.
    sender.window_end = sender.acknowledged + sender.controller.window_packets();
  }

  // Returns the marks and the telemetry that an ACK of `packets` packets carries.
  static Feedback feedback(Sender& sender, std::uint32_t packets) {
    Heard& heard = sender.heard;
    const Telemetry before = std::exchange(heard.acknowledged, heard.newest);
    return {packets, std::exchange(heard.marked, 0U),
            PathUsage{static_cast<double>(heard.newest.queue_packets),
                      utilization(before, heard.newest)}};
  }

  // A packet of an on period by bytes is received or lost. Returns false if it is the last one,
  // which ends the period.
  bool resolve(Sender& sender, double now_ms) {
    if (--sender.unresolved > 0) {
      return true;
    }
    if constexpr (Observer::kSeesPackets) {
      const Schedule& schedule = schedules_[sender.index];
      observer_.completed(sender.index, {schedule.on_packets(sender.period - 1),
                                         now_ms - schedule.arrival_ms(sender.on_since_ms)});
    }
    switch_off(sender, now_ms);
    return false;
  }

  // Ends the window at the last packet of an on period by bytes.
  void limit_window_to_flow(Sender& sender) {
    const std::uint64_t unsent = sender.flow_end - sender.results.packets_sent;
    if (sender.mode == Mode::kOnForPackets && sender.room() > 0 &&
        sender.window_end - sender.sent > unsent) {
      sender.window_end = sender.sent + static_cast<std::uint32_t>(unsent);
    }
  }

  // "If the number of outstanding packets is [less] than cwnd, the sender will transmit segments to
  // close the window, but no faster than one segment every r milliseconds" (section 4.2).
  [[gnu::always_inline]] void fill_window(Sender& sender, double now_ms) {
    while (const std::uint32_t packets = bunch(sender)) {
      const double next_send_ms = sender.last_send_ms + sender.intersend_ms();
      if (next_send_ms > now_ms) {
        if (next_send_ms > sender.due_ms || next_send_ms < sender.due_ms) {
          waiting_.wait(sender, next_send_ms);
        }
        return;
      }
      if (!send_bunch(sender, packets, now_ms)) [[unlikely]] {
        return;
      }
    }
    waiting_.leave(sender);
  }

  // Pacing allows a waiting sender to transmit.
  [[gnu::always_inline]] void send_waiting(Sender& sender, double now_ms) {
    while (send_bunch(sender, bunch(sender), now_ms)) [[likely]] {
      if (bunch(sender) == 0) {
        waiting_.leave(sender);
        return;
      }
      const double next_send_ms = now_ms + sender.intersend_ms();
      if (next_send_ms > now_ms) {
        waiting_.wait_again(sender, next_send_ms);
        return;
      }
    }
  }

  // Packets that are sent together when pacing allows; 0 if the window is full.
  [[gnu::always_inline]] std::uint32_t bunch(const Sender& sender) const {
    if constexpr (Clock::kIsExact) {
      return sender.room() > 0 ? 1 : 0;
    } else {
      if (clock_.noise().bunch_packets == 1) {
        return sender.room() > 0 ? 1 : 0;
      }
      const std::uint64_t unsent = sender.mode == Mode::kOnForPackets
                                       ? sender.flow_end - sender.results.packets_sent
                                       : std::numeric_limits<std::uint64_t>::max();
      return clock_.bunch(sender.room(), sender.controller.window_packets(), unsent);
    }
  }

  // Returns false if that ends the on period.
  [[gnu::always_inline]] bool send_bunch(Sender& sender, std::uint32_t packets, double now_ms) {
    if constexpr (Clock::kIsExact) {
      return send(sender, now_ms);
    } else {
      sender.reader.bunch = packets;
      for (; packets > 0; --packets) {
        if (!send(sender, now_ms)) {
          return false;
        }
      }
      return true;
    }
  }

  // Returns false if the packet is dropped and that ends the on period.
  [[gnu::always_inline]] bool send(Sender& sender, double now_ms) {
    sender.last_send_ms = now_ms;
    ++sender.results.packets_sent;
    if (path_.send(now_ms, sender.sent++, sender.flow)) [[likely]] {
      return true;
    }
    ++sender.results.packets_lost;
    if (++drops_ % kDropsPerCheck == 0) {
      check_interruption(kDropsPerCheck);
    }
    return sender.mode == Mode::kOnForTime || resolve(sender, now_ms);
  }

  // Called regularly whatever the kind of events: after batches of arrivals, batches of drops, and
  // at timers.
  [[gnu::noinline]] void check_interruption(std::uint64_t packets) {
    if (interruption_ != nullptr) {
      interruption_->check(packets);
    }
  }

  void update_horizon() { horizon_ms_ = std::min(timers_.earliest(), end_ms_); }

  [[gnu::noinline]] void fire_first_timer() {
    check_interruption(0);
    const std::uint32_t timer = timers_.first();
    if constexpr (!Clock::kIsExact) {
      if (timer >= senders_.size()) {
        send_delayed_ack(senders_[timer - senders_.size()], horizon_ms_);
        return;
      }
    }
    Sender& sender = senders_[timer];
    if (sender.mode == Mode::kOff) {
      switch_on(sender, horizon_ms_);
    } else {
      switch_off(sender, horizon_ms_);
    }
  }

  void switch_on(Sender& sender, double now_ms) {
    advance_share(now_ms);
    ++senders_on_;
    sender.on_since_ms = now_ms;
    sender.share_at_on_ms = share_ms_;
    sender.results.first_on_ms = std::min(sender.results.first_on_ms, now_ms);
    // Packets of earlier on periods no longer occupy the window.
    sender.flow.next_period();
    sender.heard = {};
    sender.sent = 0;
    sender.acknowledged = 0;
    sender.last_send_ms = kLongAgo;
    const Schedule& schedule = schedules_[sender.index];
    if (schedule.by_time()) {
      sender.mode = Mode::kOnForTime;
      timers_.set(sender.index, schedule.ends_ms(sender.period, now_ms));
    } else {
      sender.mode = Mode::kOnForPackets;
      sender.unresolved = schedule.on_packets(sender.period);
      sender.flow_end = sender.results.packets_sent + sender.unresolved;
      timers_.set(sender.index, SendQueue::kNever);
    }
    update_horizon();
    ++sender.period;
    observer_.used(sender.index, sender.controller, sender.controller.start());
    sender.window_end = sender.controller.window_packets();
    limit_window_to_flow(sender);
    fill_window(sender, now_ms);
  }

  [[gnu::noinline]] void switch_off(Sender& sender, double now_ms) {
    stop_counting(sender, now_ms);
    --senders_on_;
    sender.mode = Mode::kOff;
    sender.reader = {};
    waiting_.leave(sender);
    timers_.set(sender.index, schedules_[sender.index].begins_ms(sender.period, now_ms));
    update_horizon();
  }

  void stop_counting(Sender& sender, double now_ms) {
    advance_share(now_ms);
    sender.results.on_ms += now_ms - sender.on_since_ms;
    sender.results.share_ms += share_ms_ - sender.share_at_on_ms;
  }

  void advance_share(double now_ms) {
    if (senders_on_ > 0) {
      share_ms_ += (now_ms - share_until_ms_) / static_cast<double>(senders_on_);
    }
    share_until_ms_ = now_ms;
  }

  std::vector<SenderResults> finish(double duration_ms) {
    std::vector<SenderResults> results;
    results.reserve(senders_.size());
    for (Sender& sender : senders_) {
      if (sender.mode != Mode::kOff) {
        stop_counting(sender, duration_ms);
      }
      results.push_back(sender.results);
    }
    return results;
  }

  Path path_;
  [[no_unique_address]] Clock clock_;
  Observer& observer_;
  Interruption* interruption_;
  std::vector<Sender> senders_;  // never resized, because the send queue points to them
  std::vector<Schedule> schedules_;
  SendQueue waiting_;
  Timers timers_;  // the next switch of each sender, then the delayed ACK of each
  double end_ms_ = 0;
  double horizon_ms_ = 0;  // the next timer, or the end
  std::size_t senders_on_ = 0;
  std::uint64_t drops_ = 0;
  // Integral of dt / (number of senders on) over the times when any is on.
  double share_ms_ = 0;
  double share_until_ms_ = 0;
};

}  // namespace remy
