#pragma once

#include <cstdint>
#include <limits>

#include "elements/queue.h"
#include "elements/ring.h"

namespace remy {

// What a drop-tail queue holds at most, beside what its link transmits.
struct DropTailLimits {
  std::uint64_t packets = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
};

// First in, first out; what finds it full is dropped.
class DropTail final : public Queue {
 public:
  explicit DropTail(const DropTailLimits& limits) : limits_(limits) {}

  const DropTailLimits& limits() const { return limits_; }

  void accept(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* depart(double now_ms, DropListener& drops) override;

 private:
  DropTailLimits limits_;
  Ring<Segment> waiting_;
  // The link found nothing to transmit: what comes next does not wait.
  bool is_link_idle_ = true;
};

}  // namespace remy
