#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "elements/link_driver.h"

namespace remy {

// A link behind a drop-tail queue that counts packets. Segments leave in the order they came, so
// that when each one departs follows from the one before,
//     departure = max(arrival, departure of the one before) + service time
// or what a driver makes of it, and neither queue nor link needs an event. Tells what DropTail and
// a link that asks it would.
class FifoLink {
 public:
  // How many may wait, at least one, beside the one that is transmitted.
  explicit FifoLink(std::uint64_t limit_packets)
      : limit_packets_(limit_packets),
        waiting_(kInitialPlaces),
        looks_at_(std::min<std::uint64_t>(limit_packets, kInitialPlaces)) {}

  // A segment comes to a link of constant rate, which it will have left at last_departure_ms();
  // false, and nothing is done, if the queue looks full, which it is unless make_room() makes room.
  [[gnu::always_inline]] bool accept(double now_ms, double service_ms, std::uint32_t bytes) {
    if (now_ms >= asks_ms_) {
      asks_ms_ = now_ms + service_ms;
      return true;
    }
    if (is_waiting(looks_at_, now_ms)) [[unlikely]] {
      return false;
    }
    wait(asks_ms_, bytes);
    asks_ms_ += service_ms;
    return true;
  }
  // As many wait as are looked at: whether that is for want of places alone, of which there are
  // then more.
  bool make_room() {
    if (looks_at_ == limit_packets_) {
      return false;
    }
    std::vector<Waiting> larger(2 * waiting_.size());
    for (std::size_t back = 1; back <= waiting_.size(); ++back) {
      larger[(end_ - back) & (larger.size() - 1)] = from_end(back);
    }
    waiting_.swap(larger);
    mask_ = waiting_.size() - 1;
    looks_at_ = std::min<std::uint64_t>(limit_packets_, waiting_.size());
    return true;
  }
  double last_departure_ms() const { return asks_ms_; }

  // The same of a link that is driven: when the segment will have left; none if the queue is full.
  std::optional<double> accept(double now_ms, LinkDriver& driver, std::uint32_t bytes) {
    double asked_ms = asks_ms_;
    if (now_ms >= asks_ms_) {
      // It has asked before, and found nothing: there is room whatever the limit.
      asked_ms = driver.asks_ms(now_ms);
    } else if (is_waiting(looks_at_, now_ms) && !make_room()) {
      return std::nullopt;
    }
    if (asked_ms > now_ms) {
      wait(asked_ms, bytes);
    }
    const LinkDriver::Passage passage = driver.take(asked_ms, bytes);
    asks_ms_ = passage.asks_ms;
    return passage.departs_ms;
  }

  std::size_t waiting_packets(double now_ms) const {
    std::size_t least = 0;
    std::size_t most = waiting_.size();
    while (least < most) {
      const std::size_t middle = (least + most + 1) / 2;
      if (is_waiting(middle, now_ms)) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    return least;
  }
  std::size_t waiting_bytes(double now_ms) const {
    std::size_t bytes = 0;
    for (std::size_t back = waiting_packets(now_ms); back > 0; --back) {
      bytes += from_end(back).bytes;
    }
    return bytes;
  }

 private:
  struct Waiting {
    double taken_ms = -std::numeric_limits<double>::infinity();  // by the link
    std::uint32_t bytes = 0;
  };
  static constexpr std::size_t kInitialPlaces = 64;

  // Counted from the last (1) backwards.
  const Waiting& from_end(std::size_t back) const { return waiting_[(end_ - back) & mask_]; }
  // Whether so many wait. A departure at the very instant of an arrival comes first, as ACK
  // clocking often has it.
  bool is_waiting(std::size_t packets, double now_ms) const {
    return from_end(packets).taken_ms > now_ms;
  }

  [[gnu::always_inline]] void wait(double taken_ms, std::uint32_t bytes) {
    Waiting& last = waiting_[end_++ & mask_];
    last.taken_ms = taken_ms;
    last.bytes = bytes;
  }

  std::uint64_t limit_packets_;
  double asks_ms_ = 0;  // when the link takes the next segment
  // The last that had to wait, in a ring of a power of two of places.
  std::vector<Waiting> waiting_;
  std::size_t mask_ = kInitialPlaces - 1;
  std::size_t end_ = 0;   // how many had to
  std::size_t looks_at_;  // which of them, from the last, must be gone for one more
};

}  // namespace remy
