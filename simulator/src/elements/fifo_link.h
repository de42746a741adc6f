#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "elements/link_driver.h"
#include "elements/ring.h"

namespace remy {

// A link behind a drop-tail queue that counts packets. Segments leave in the order they came, so
// that when each one departs follows from the one before,
//     departure = max(arrival, departure of the one before) + service time
// or what a driver makes of it, and neither queue nor link needs an event. Tells what DropTail and
// a link that asks it would.
class FifoLink {
 public:
  // How many may wait, beside the one that is transmitted.
  explicit FifoLink(std::uint64_t limit_packets) : limit_packets_(limit_packets) {}

  // A segment comes to a link of constant rate, which it will have left at last_departure_ms();
  // false if the queue is full.
  [[gnu::always_inline]] bool accept(double now_ms, double service_ms, std::uint32_t bytes) {
    if (now_ms >= asks_ms_) {
      asks_ms_ = now_ms + service_ms;
      return true;
    }
    if (!has_room(now_ms)) [[unlikely]] {
      return false;
    }
    wait(asks_ms_, bytes);
    asks_ms_ += service_ms;
    return true;
  }
  double last_departure_ms() const { return asks_ms_; }

  // The same of a link that is driven: when the segment will have left; none if the queue is full.
  std::optional<double> accept(double now_ms, LinkDriver& driver, std::uint32_t bytes) {
    forget_taken(now_ms);
    double asked_ms = asks_ms_;
    if (now_ms >= asks_ms_) {
      // It has asked before, and found nothing: there is room whatever the limit.
      asked_ms = driver.asks_ms(now_ms);
    } else if (waiting_.size() >= limit_packets_) {
      return std::nullopt;
    }
    if (asked_ms > now_ms) {
      waiting_.make_room(waiting_.size() + 1);
      wait(asked_ms, bytes);
    }
    const LinkDriver::Passage passage = driver.take(asked_ms, bytes);
    asks_ms_ = passage.asks_ms;
    return passage.departs_ms;
  }

  std::size_t waiting_packets(double now_ms) {
    forget_taken(now_ms);
    return waiting_.size();
  }
  std::size_t waiting_bytes(double now_ms) {
    forget_taken(now_ms);
    std::size_t bytes = 0;
    for (std::size_t place = 0; place < waiting_.size(); ++place) {
      bytes += waiting_.at(place).bytes;
    }
    return bytes;
  }

 private:
  struct Waiting {
    double taken_ms;  // by the link
    std::uint32_t bytes;
  };
  static constexpr std::size_t kInitialLook = 64;

  [[gnu::always_inline]] void wait(double taken_ms, std::uint32_t bytes) {
    Waiting& last = waiting_.push_in_room();
    last.taken_ms = taken_ms;
    last.bytes = bytes;
  }

  bool has_room(double now_ms) { return waiting_.size() < looks_at_ || look_for_room(now_ms); }

  // Only when there may be too many are those counted that wait.
  [[gnu::noinline]] bool look_for_room(double now_ms) {
    forget_taken(now_ms);
    if (waiting_.size() >= limit_packets_) {
      return false;
    }
    looks_at_ =
        std::min<std::uint64_t>(limit_packets_, std::max(kInitialLook, 2 * waiting_.size()));
    waiting_.make_room(looks_at_);
    return true;
  }

  // A departure at the very instant of an arrival comes first, as ACK clocking often has it.
  void forget_taken(double now_ms) {
    std::size_t taken = 0;
    while (taken < waiting_.size() && waiting_.at(taken).taken_ms <= now_ms) {
      ++taken;
    }
    waiting_.pop_many(taken);
  }

  std::uint64_t limit_packets_;
  double asks_ms_ = 0;        // when the link takes the next segment
  Ring<Waiting> waiting_;     // all that came and are not taken, and some that are
  std::size_t looks_at_ = 0;  // so many, and who waits is looked for
};

}  // namespace remy
