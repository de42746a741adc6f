#pragma once

#include <cstddef>
#include <limits>

#include "senders/segment.h"

namespace remy {

// Is notified of every segment that a queue drops, from its head or its tail.
class DropListener {
 public:
  virtual void on_drop(const Segment& segment, double now_ms) = 0;

 protected:
  ~DropListener() = default;
};

// A queue discipline: holds the segments that wait for a link, without the one that the link is
// transmitting. Times that it is given must not decrease.
class Queue {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~Queue() = default;

  // A segment arrives. The queue keeps it, drops it, or drops another one for it.
  virtual void enqueue(const Segment& segment, double now_ms, DropListener& drops) = 0;
  // Removes and returns the segment that the link transmits next; null if the queue is empty. The
  // segment stays valid until the next call of the queue.
  virtual Segment* dequeue(double now_ms, DropListener& drops) = 0;
  // When the queue's own timer expires, and its handler.
  double next_ms() const { return next_ms_; }
  virtual void tick(double) {}

  std::size_t packets() const { return packets_; }
  std::size_t bytes() const { return bytes_; }

 protected:
  void count_enqueued(const Segment& segment) {
    ++packets_;
    bytes_ += segment.bytes;
  }
  void count_dequeued(const Segment& segment) {
    --packets_;
    bytes_ -= segment.bytes;
  }

  double next_ms_ = kNever;

 private:
  std::size_t packets_ = 0;  // waiting packets
  std::size_t bytes_ = 0;
};

}  // namespace remy
