#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "network/timers.h"

namespace remy {

// The scheduled events of a simulation. Departures and arrivals of packets are by far the most
// frequent; all others are behind one horizon, so that they cost one comparison per packet.
class EventSchedule {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  enum class Kind : std::uint8_t {
    kEnd,         // nothing is left before the end
    kPacket,      // a departure from a link or an arrival behind it
    kAct,         // an endpoint acts
    kQueue,       // a queue acts
    kSwitch,      // a sender switches on or off
    kDelayedAck,  // a receiver sends a delayed ACK
    kJitterBox,   // a link's jitter box releases packets
    kSample,      // the recorder takes a sample
  };
  struct Event {
    Kind kind;
    std::uint32_t index;  // of the link or sender
    double now_ms;
  };

  EventSchedule() = default;
  EventSchedule(std::uint32_t links, std::uint32_t lines, std::uint32_t senders)
      : links_(links),
        senders_(senders),
        departures_(links),
        arrivals_(lines),
        acts_(senders),
        others_(2 * links + 2 * senders) {}

  // Events at end_ms or later are not returned.
  void set_end(double end_ms) {
    end_ms_ = end_ms;
    update_horizon();
  }
  double end_ms() const { return end_ms_; }
  void set_sample(double due_ms) {
    sample_ms_ = due_ms;
    update_horizon();
  }

  double departure_ms() const { return departures_.earliest(); }
  double arrival_ms() const { return arrivals_.earliest(); }
  std::uint32_t departing_link() const { return departures_.first(); }
  std::uint32_t arriving_line() const { return arrivals_.first(); }
  // The next departure or arrival is the next event if it is before this time.
  double horizon_ms() const { return horizon_ms_; }

  [[gnu::always_inline]] void set_departure(std::uint32_t link, double due_ms) {
    departures_.set(link, due_ms);
  }
  [[gnu::always_inline]] void set_arrival(std::uint32_t line, double due_ms) {
    arrivals_.set(line, due_ms);
  }
  void set_act(std::uint32_t sender, double due_ms) {
    acts_.set(sender, due_ms);
    update_horizon();
  }
  void set_queue(std::uint32_t link, double due_ms) { set_other(link, due_ms); }
  void set_switch(std::uint32_t sender, double due_ms) { set_other(links_ + sender, due_ms); }
  void set_delayed_ack(std::uint32_t sender, double due_ms) {
    set_other(links_ + senders_ + sender, due_ms);
  }
  void set_jitter_box(std::uint32_t link, double due_ms) {
    set_other(links_ + 2 * senders_ + link, due_ms);
  }

  // The next event, whatever its kind. At equal times departures are first, then acts, the other
  // kinds in the order of Kind, and arrivals last.
  Event next() const {
    const double departure_ms = departures_.earliest();
    const double now_ms =
        std::min({departure_ms, arrivals_.earliest(), acts_.earliest(), others_.earliest()});
    if (sample_ms_ < now_ms && sample_ms_ < end_ms_) {
      return {Kind::kSample, 0, sample_ms_};
    }
    if (now_ms >= end_ms_) {
      return {Kind::kEnd, 0, end_ms_};
    }
    if (departure_ms == now_ms) {
      return {Kind::kPacket, 0, now_ms};
    }
    if (acts_.earliest() == now_ms) {
      return {Kind::kAct, acts_.first(), now_ms};
    }
    if (others_.earliest() == now_ms) {
      return other(others_.first(), now_ms);
    }
    return {Kind::kPacket, 0, now_ms};
  }

 private:
  void set_other(std::uint32_t timer, double due_ms) {
    others_.set(timer, due_ms);
    update_horizon();
  }
  void update_horizon() {
    horizon_ms_ = std::min({acts_.earliest(), others_.earliest(), sample_ms_, end_ms_});
  }
  Event other(std::uint32_t timer, double now_ms) const {
    if (timer < links_) {
      return {Kind::kQueue, timer, now_ms};
    }
    if (timer < links_ + senders_) {
      return {Kind::kSwitch, timer - links_, now_ms};
    }
    if (timer < links_ + 2 * senders_) {
      return {Kind::kDelayedAck, timer - links_ - senders_, now_ms};
    }
    return {Kind::kJitterBox, timer - links_ - 2 * senders_, now_ms};
  }

  std::uint32_t links_ = 0;
  std::uint32_t senders_ = 0;
  Timers departures_{0};  // by link
  Timers arrivals_{0};    // by delay line
  Timers acts_{0};        // by sender
  Timers others_{0};      // queues by link, switches and delayed ACKs by sender, boxes by link
  double end_ms_ = 0;
  double sample_ms_ = kNever;
  double horizon_ms_ = 0;
};

}  // namespace remy
