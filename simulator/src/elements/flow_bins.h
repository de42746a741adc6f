#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "elements/ring.h"
#include "senders/segment.h"

namespace remy {

// Segments that wait in bins, one for each flow: what fair queueing chooses from. A flow is one
// sender's packets, or its ACKs. Where other implementations hash addresses, so that two flows may
// share a bin by chance, flows are numbered here, and share bins only when there are more of them
// than bins. `State` is what a discipline keeps for a bin.
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
  // The first; there is one. It can be read until the next push.
  Segment& pop(Bin& bin) {
    Segment& segment = bin.waiting.pop();
    bin.bytes -= segment.bytes;
    return segment;
  }
  // The last; there is one.
  Segment pop_back(Bin& bin) {
    const Segment segment = bin.waiting.back();
    bin.waiting.pop_back();
    bin.bytes -= segment.bytes;
    return segment;
  }

  // The bin with most packets; of several, the first.
  Bin& longest() {
    return *std::ranges::max_element(bins_, {}, [](const Bin& bin) { return bin.waiting.size(); });
  }
  // The bin with most bytes; of several, the first.
  Bin& fattest() { return *std::ranges::max_element(bins_, {}, &Bin::bytes); }

 private:
  std::uint32_t count_;
  std::vector<Bin> bins_;  // as many as have been needed
};

}  // namespace remy
