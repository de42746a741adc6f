#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>

#include "core/random.h"
#include "elements/packet_ring.h"
#include "senders/packet.h"
#include "senders/telemetry.h"

namespace remy {

// The bottleneck of a dumbbell network.
struct PathParameters {
  double service_ms = 1;  // time to send one packet over the link
  double delay_ms = 100;  // constant delay after the link, back to the sender as ACK
  std::uint32_t buffer_packets = 0;
  double loss_probability = 0;
  std::uint64_t loss_key = 0;
  // Waiting packets at which an arrival is marked, for RemyCCs that look at marks.
  double marking_threshold_packets = std::numeric_limits<double>::infinity();
};

// The path from the senders to their ACKs: a FIFO queue, a link of constant rate, Bernoulli loss
// and a constant delay. It needs no events. Packets depart in order of arrival, so each departure
// follows from the previous one,
//     departure = max(arrival, previous departure) + service time,
// and is computed when the packet becomes the first in transit.
template <bool kFiniteBuffer, bool kLossy>
class Path {
 public:
  explicit Path(const PathParameters& parameters) : parameters_(parameters) {}

  // Returns false if the queue is full and drops the packet.
  [[gnu::always_inline]] bool send(double now_ms, std::uint32_t sequence, FlowTag flow) {
    if constexpr (kFiniteBuffer) {
      // A departure at the same time as an arrival comes first. Such ties are common with ACK
      // clocking.
      while (queued_packets_ > 0 && first_departure_ms_ <= now_ms) {
        --queued_packets_;
        if (queued_packets_ > 0) {
          first_departure_ms_ =
              departure_after(first_departure_ms_, in_transit_.from_back(queued_packets_).sent_ms);
        }
      }
      if (queued_packets_ > parameters_.buffer_packets) {
        return false;
      }
      if (queued_packets_ == 0) {
        first_departure_ms_ = departure_after(first_departure_ms_, now_ms);
      }
    }
    const bool was_empty = in_transit_.empty();
    if (!in_transit_.push(now_ms, sequence, flow)) [[unlikely]] {
      return false;
    }
    if constexpr (kFiniteBuffer) {
      ++queued_packets_;
    }
    if (was_empty) [[unlikely]] {
      schedule_front();
    }
    return true;
  }

  // Arrival time of the first packet in transit; infinity if there is none.
  double next_arrival_ms() const { return next_arrival_ms_; }

  // The first packet in transit. Valid until arrive().
  const Packet& front() const { return in_transit_.front(); }

  // Loss is drawn by flow and sequence number, so that a sender's losses do not depend on other
  // senders.
  bool is_lost([[maybe_unused]] std::uint32_t sequence, [[maybe_unused]] FlowTag flow) const {
    if constexpr (kLossy) {
      const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sequence;
      return unit_interval(random_bits(parameters_.loss_key, name)) < parameters_.loss_probability;
    } else {
      return false;
    }
  }

  // Removes the first packet in transit. Calls `on_batch` from time to time with the number of
  // packets removed since the last call.
  template <class OnBatch>
  [[gnu::always_inline]] void arrive(OnBatch on_batch) {
    in_transit_.pop(on_batch);
    if (in_transit_.empty()) [[unlikely]] {
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
    departure_ms_ = departure_after(departure_ms_, in_transit_.front().sent_ms);
    next_arrival_ms_ = departure_ms_ + parameters_.delay_ms;
  }

  PathParameters parameters_;
  PacketRing in_transit_;
  double departure_ms_ = 0;  // of the first packet in transit
  double next_arrival_ms_ = std::numeric_limits<double>::infinity();
  // With a finite buffer: packets that had not left the link when the last packet arrived, and the
  // departure time of the first of these.
  std::size_t queued_packets_ = 0;
  double first_departure_ms_ = 0;
};

// A path with telemetry of queueing and rate, for RemyCCs with extended signals. Uses the largest
// buffer size for an infinite buffer.
class TelemetryPath : public Path<true, true> {
 public:
  using Path::Path;

  bool send(double now_ms, std::uint32_t sequence, FlowTag flow) {
    if (!Path::send(now_ms, sequence, flow)) {
      return false;
    }
    queue_lengths_.push_back(static_cast<std::uint32_t>(queued_packets_ - 1));
    return true;
  }

  // Telemetry of the first packet in transit.
  Telemetry telemetry() const {
    return {queue_lengths_.front(), static_cast<double>(departures_ + 1), parameters_.service_ms,
            departure_ms_};
  }
  // Whether it has a CE mark (RFC 3168).
  bool is_marked() const {
    const std::uint32_t queue_length = queue_lengths_.front();
    const std::uint32_t waiting = queue_length > 0 ? queue_length - 1 : 0;
    return waiting >= parameters_.marking_threshold_packets;
  }

  template <class OnBatch>
  void arrive(OnBatch on_batch) {
    queue_lengths_.pop_front();
    ++departures_;
    Path::arrive(on_batch);
  }

 private:
  // Queue length in packets at the arrival of each packet in transit.
  std::deque<std::uint32_t> queue_lengths_;
  std::uint64_t departures_ = 0;
};

}  // namespace remy
