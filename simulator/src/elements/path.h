#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>

#include "core/random.h"
#include "elements/packet_ring.h"
#include "senders/packet.h"

namespace remy {

// What a path needs to know of its network.
struct PathParameters {
  double service_ms = 1;  // time to send one packet over the link
  double delay_ms = 100;  // constant delay after the link, back to the sender as ACK
  std::uint32_t buffer_packets = 0;
  double loss_probability = 0;
  std::uint64_t loss_key = 0;
  // As many waiting packets mark an arrival, where there is telemetry.
  double marking_packets = std::numeric_limits<double>::infinity();
};

// One FIFO queue, a link of constant rate, Bernoulli loss, and a constant delay: what lies between
// the senders and their ACKs. Nothing here needs an event of its own: packets leave in the order
// they came, so that each one's departure follows from the one before,
//     departure = max(arrival, departure of the one before) + service time,
// and is computed when the packet becomes the first that is still under way.
template <bool kFiniteBuffer, bool kLossy>
class Path {
 public:
  explicit Path(const PathParameters& parameters) : parameters_(parameters) {}

  // Whether the queue took the packet; false: dropped at its tail.
  [[gnu::always_inline]] bool send(double now_ms, std::uint32_t sequence, FlowTag flow) {
    if constexpr (kFiniteBuffer) {
      // A departure at the very instant of an arrival comes first, as ACK clocking often has it.
      while (at_link_ > 0 && at_link_departure_ms_ <= now_ms) {
        --at_link_;
        if (at_link_ > 0) {
          at_link_departure_ms_ =
              departure_after(at_link_departure_ms_, under_way_.from_back(at_link_).sent_ms);
        }
      }
      if (at_link_ > parameters_.buffer_packets) {
        return false;
      }
      if (at_link_ == 0) {
        at_link_departure_ms_ = departure_after(at_link_departure_ms_, now_ms);
      }
    }
    const bool was_empty = under_way_.empty();
    if (!under_way_.push(now_ms, sequence, flow)) [[unlikely]] {
      return false;
    }
    if constexpr (kFiniteBuffer) {
      ++at_link_;
    }
    if (was_empty) [[unlikely]] {
      schedule_front();
    }
    return true;
  }

  // When the first packet under way arrives; infinity if none is.
  double next_arrival_ms() const { return next_arrival_ms_; }

  // The first packet under way; valid until arrive().
  const Packet& front() const { return under_way_.front(); }

  // Drawn by flow and sequence number, so that a sender's losses do not depend on what others sent.
  bool is_lost([[maybe_unused]] std::uint32_t sequence, [[maybe_unused]] FlowTag flow) const {
    if constexpr (kLossy) {
      const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sequence;
      return unit_interval(random_bits(parameters_.loss_key, name)) < parameters_.loss_probability;
    } else {
      return false;
    }
  }

  // Takes the first packet under way from the path. `paused` is called now and then, with a number
  // of packets that have arrived since.
  template <class Paused>
  [[gnu::always_inline]] void arrive(Paused paused) {
    under_way_.pop(paused);
    if (under_way_.empty()) [[unlikely]] {
      next_arrival_ms_ = std::numeric_limits<double>::infinity();
    } else {
      schedule_front();
    }
  }

 protected:
  double departure_after(double departure_ms, double sent_ms) const {
    return std::max(departure_ms, sent_ms) + parameters_.service_ms;
  }

  void schedule_front() {
    departure_ms_ = departure_after(departure_ms_, under_way_.front().sent_ms);
    next_arrival_ms_ = departure_ms_ + parameters_.delay_ms;
  }

  PathParameters parameters_;
  PacketRing under_way_;
  double departure_ms_ = 0;  // of the first packet under way
  double next_arrival_ms_ = std::numeric_limits<double>::infinity();
  // Where the queue's length matters: how many had not left the link when the last one came, and
  // when the first of these leaves.
  std::size_t at_link_ = 0;
  double at_link_departure_ms_ = 0;
};

// Any such path, with telemetry. The largest buffer stands for an infinite one.
class MeteredPath : public Path<true, true> {
 public:
  using Path::Path;

  bool send(double now_ms, std::uint32_t sequence, FlowTag flow) {
    if (!Path::send(now_ms, sequence, flow)) {
      return false;
    }
    found_packets_.push_back(static_cast<std::uint32_t>(at_link_ - 1));
    return true;
  }

  // Of the first packet under way.
  Telemetry telemetry() const {
    const std::uint32_t found = found_packets_.front();
    const std::uint32_t waited = found > 0 ? found - 1 : 0;
    return {found, departures_ + 1, departure_ms_, parameters_.service_ms,
            waited >= parameters_.marking_packets};
  }

  template <class Paused>
  void arrive(Paused paused) {
    found_packets_.pop_front();
    ++departures_;
    Path::arrive(paused);
  }

 private:
  std::deque<std::uint32_t> found_packets_;  // by each packet under way
  std::uint64_t departures_ = 0;
};

}  // namespace remy
