#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "elements/ring.h"

namespace remy {

// A link behind a drop-tail queue that counts packets. Segments leave in the order they came, so
// that each one's departure follows from the one before,
//     departure = max(arrival, departure of the one before) + service time,
// and neither queue nor link needs an event. Tells what DropTail and a link that asks it would.
class FifoLink {
 public:
  // How many may wait, beside the one that is transmitted.
  explicit FifoLink(std::uint64_t limit_packets) : limit_packets_(limit_packets) {}

  // When a segment will have left that arrives now; none if the queue is full.
  [[gnu::always_inline]] std::optional<double> accept(double now_ms, double service_ms,
                                                      std::uint32_t bytes) {
    forget_departed(now_ms);
    if (at_link_.size() > limit_packets_) {
      return std::nullopt;
    }
    departure_ms_ = std::max(departure_ms_, now_ms) + service_ms;
    AtLink& last = at_link_.push();
    last.departure_ms = departure_ms_;
    last.bytes = bytes;
    bytes_ += bytes;
    return departure_ms_;
  }

  std::size_t waiting_packets(double now_ms) {
    forget_departed(now_ms);
    return at_link_.empty() ? 0 : at_link_.size() - 1;
  }
  std::size_t waiting_bytes(double now_ms) {
    forget_departed(now_ms);
    return at_link_.empty() ? 0 : bytes_ - at_link_.front().bytes;
  }

 private:
  struct AtLink {
    double departure_ms;
    std::uint32_t bytes;
  };

  // A departure at the very instant of an arrival comes first, as ACK clocking often has it.
  [[gnu::always_inline]] void forget_departed(double now_ms) {
    while (!at_link_.empty() && at_link_.front().departure_ms <= now_ms) {
      bytes_ -= at_link_.front().bytes;
      at_link_.pop();
    }
  }

  std::uint64_t limit_packets_;
  double departure_ms_ = 0;  // of the last that came
  Ring<AtLink> at_link_;     // the first is transmitted
  std::size_t bytes_ = 0;    // of all of them
};

}  // namespace remy
