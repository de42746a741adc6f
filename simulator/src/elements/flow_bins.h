#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ring.h"
#include "senders/segment.h"

namespace remy {

// Per-flow queues (bins) for fair queueing disciplines. A flow is the packets of one sender, or its
// ACKs. Flows are numbered instead of hashed, so they share a bin only if there are more flows than
// bins. `State` is the per-bin state of a discipline.
template <class State>
class FlowBins {
 public:
  struct Bin : State {
    Ring<Segment> waiting;
    std::uint64_t bytes = 0;
  };

  explicit FlowBins(std::uint32_t count) : count_(count) {}

  std::uint32_t number_of(const Segment& segment) {
    const std::uint32_t number = (2 * segment.sender + (segment.is_ack ? 1 : 0)) % count_;
    if (number >= bins_.size()) [[unlikely]] {
      bins_.resize(
          std::min<std::size_t>(count_, std::max<std::size_t>(2 * bins_.size(), number + 1)));
    }
    return number;
  }

  Bin& operator[](std::uint32_t number) { return bins_[number]; }

  void push(Bin& bin, const Segment& segment, double now_ms) {
    Segment& kept = bin.waiting.push();
    kept = segment;
    kept.queued_ms = now_ms;
    bin.bytes += segment.bytes;
  }
  // Removes and returns the first segment, which must exist. It stays readable until the next push.
  Segment& pop(Bin& bin) {
    Segment& segment = bin.waiting.pop();
    bin.bytes -= segment.bytes;
    return segment;
  }
  // Removes and returns the last segment, which must exist.
  Segment pop_back(Bin& bin) {
    const Segment segment = bin.waiting.back();
    bin.waiting.pop_back();
    bin.bytes -= segment.bytes;
    return segment;
  }

  // The bin with the most packets; the first of several.
  Bin& with_most_packets() {
    return *std::ranges::max_element(bins_, {}, [](const Bin& bin) { return bin.waiting.size(); });
  }
  // The bin with the most bytes; the first of several.
  Bin& with_most_bytes() { return *std::ranges::max_element(bins_, {}, &Bin::bytes); }

 private:
  std::uint32_t count_;
  std::vector<Bin> bins_;  // grows up to count_
};

}  // namespace remy
