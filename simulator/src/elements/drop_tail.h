#pragma once

#include <cstdint>
#include <limits>

#include "core/ring.h"
#include "elements/queue.h"

namespace remy {

// Capacity of a drop-tail queue, without the packet that its link is transmitting.
struct DropTailLimits {
  std::uint64_t packets = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
};

// A FIFO queue that drops arrivals when it is full.
class DropTail final : public Queue {
 public:
  explicit DropTail(const DropTailLimits& limits) : limits_(limits) {}

  const DropTailLimits& limits() const { return limits_; }

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

 private:
  DropTailLimits limits_;
  Ring<Segment> waiting_;
  // True if the link has found the queue empty, so the next arrival does not wait.
  bool is_link_idle_ = true;
};

}  // namespace remy
