#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "elements/link_driver.h"

namespace remy {

// A link behind a drop-tail queue limited in packets, simulated without events. Segments depart in
// order of arrival, so each departure follows from the previous one,
//     departure = max(arrival, previous departure) + service time,
// or from a driver. Behaves exactly as DropTail with a link does.
class FifoLink {
 public:
  // `limit_packets` is the queue's capacity, at least one, without the packet in transmission.
  explicit FifoLink(std::uint64_t limit_packets)
      : limit_packets_(limit_packets),
        waiting_(kInitialSlots),
        check_back_(std::min<std::uint64_t>(limit_packets, kInitialSlots)) {}

  // A segment arrives at a link of constant rate. Returns true if it is accepted;
  // last_departure_ms() is then its departure. Returns false, and changes nothing, if the known
  // waiting times have no free slot: then call make_room().
  [[gnu::always_inline]] bool accept(double now_ms, double service_ms, std::uint32_t bytes) {
    if (now_ms >= next_start_ms_) {
      next_start_ms_ = now_ms + service_ms;
      return true;
    }
    if (is_waiting(check_back_, now_ms)) [[unlikely]] {
      return false;
    }
    wait(next_start_ms_, bytes);
    next_start_ms_ += service_ms;
    return true;
  }
  // Grows the ring of waiting times. Returns false if the queue is really full.
  bool make_room() {
    if (check_back_ == limit_packets_) {
      return false;
    }
    std::vector<Waiting> larger(2 * waiting_.size());
    for (std::size_t back = 1; back <= waiting_.size(); ++back) {
      larger[(end_ - back) & (larger.size() - 1)] = from_end(back);
    }
    waiting_.swap(larger);
    mask_ = waiting_.size() - 1;
    check_back_ = std::min<std::uint64_t>(limit_packets_, waiting_.size());
    return true;
  }
  double last_departure_ms() const { return next_start_ms_; }

  // A segment arrives at a link with a driver. Returns its departure time; none if the queue is
  // full.
  std::optional<double> accept(double now_ms, LinkDriver& driver, std::uint32_t bytes) {
    double start_ms = next_start_ms_;
    if (now_ms >= next_start_ms_) {
      // The link is idle, so the segment does not wait and the limit does not apply.
      start_ms = driver.next_start_ms(now_ms);
    } else if (is_waiting(check_back_, now_ms) && !make_room()) {
      return std::nullopt;
    }
    if (start_ms > now_ms) {
      wait(start_ms, bytes);
    }
    const LinkDriver::Transmission transmission = driver.transmit(start_ms, bytes);
    next_start_ms_ = transmission.next_start_ms;
    return transmission.departs_ms;
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
    double start_ms = -std::numeric_limits<double>::infinity();  // when the link takes the segment
    std::uint32_t bytes = 0;
  };
  static constexpr std::size_t kInitialSlots = 64;

  // The `back`th waiting segment from the end, where 1 is the last.
  const Waiting& from_end(std::size_t back) const { return waiting_[(end_ - back) & mask_]; }
  // Returns true if at least `packets` wait. A departure at the same time as an arrival comes
  // first. Such ties are common with ACK clocking.
  bool is_waiting(std::size_t packets, double now_ms) const {
    return from_end(packets).start_ms > now_ms;
  }

  [[gnu::always_inline]] void wait(double start_ms, std::uint32_t bytes) {
    Waiting& last = waiting_[end_++ & mask_];
    last.start_ms = start_ms;
    last.bytes = bytes;
  }

  std::uint64_t limit_packets_;
  double next_start_ms_ = 0;  // when the link takes the next segment
  // The segments that had to wait most recently, in a ring whose size is a power of two.
  std::vector<Waiting> waiting_;
  std::size_t mask_ = kInitialSlots - 1;
  std::size_t end_ = 0;  // number of segments that ever had to wait
  // One more segment fits if the waiting segment of this number, counted from the end, has left.
  std::size_t check_back_;
};

}  // namespace remy
