#pragma once

#include <cstddef>
#include <limits>

#include "senders/segment.h"

namespace remy {

// Hears of every segment that a queue drops, at whichever end.
class DropListener {
 public:
  virtual void dropped(const Segment& segment, double now_ms) = 0;

 protected:
  ~DropListener() = default;
};

// A queue discipline: what waits in front of a link, beside the segment that the link transmits.
// It is told the time, which never runs backwards.
class Queue {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~Queue() = default;

  // A segment arrives, and is kept, or dropped; or another is dropped for it.
  virtual void accept(const Segment& segment, double now_ms, DropListener& drops) = 0;
  // The segment that the link transmits next, from now_ms on, where it waited: it is there until
  // the queue is called again. Null if all are gone.
  virtual Segment* depart(double now_ms, DropListener& drops) = 0;
  // When the queue wants to do something of itself, and that.
  double next_ms() const { return next_ms_; }
  virtual void tick(double) {}

  std::size_t packets() const { return packets_; }
  std::size_t bytes() const { return bytes_; }

 protected:
  void joined(const Segment& segment) {
    ++packets_;
    bytes_ += segment.bytes;
  }
  void left(const Segment& segment) {
    --packets_;
    bytes_ -= segment.bytes;
  }

  double next_ms_ = kNever;

 private:
  std::size_t packets_ = 0;  // that wait
  std::size_t bytes_ = 0;
};

}  // namespace remy
