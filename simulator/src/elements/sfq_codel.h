#pragma once

#include <cstdint>

#include "elements/codel.h"
#include "elements/flow_bins.h"
#include "elements/queue.h"

namespace remy {

// sfqCoDel, as TCP ex Machina and its successors used it in ns-2 (Nichols 2013). It differs from
// FQ-CoDel: round robin counts packets, at the limit the longest bin loses its last packet, and
// CoDel stops dropping when all bins together are short.
class SfqCoDelQueue final : public Queue {
 public:
  static constexpr std::uint32_t kBins = 1024;

  SfqCoDelQueue(const CoDelParameters& parameters, std::uint64_t limit_packets,
                std::uint32_t largest_bytes)
      : parameters_(parameters),
        limit_packets_(limit_packets),
        largest_bytes_(largest_bytes),
        bins_(kBins) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

 private:
  struct Flow {
    CoDel codel;
    bool is_scheduled = false;
  };
  using Bins = FlowBins<Flow>;
  struct PacketSupply {
    SfqCoDelQueue& queue;
    Bins::Bin& bin;
    Segment* take() {
      if (bin.waiting.empty()) {
        return nullptr;
      }
      Segment& segment = queue.bins_.pop(bin);
      queue.count_dequeued(segment);
      return &segment;
    }
    // The backlog of all bins together is at most one packet, or this bin is empty.
    bool is_short() const { return queue.bytes() <= queue.largest_bytes_ || bin.waiting.empty(); }
  };

  CoDelParameters parameters_;
  std::uint64_t limit_packets_;
  std::uint32_t largest_bytes_;
  Bins bins_;
  // Bin numbers: bins not served since they joined the schedule, and the others.
  Ring<std::uint32_t> new_bins_;
  Ring<std::uint32_t> old_bins_;
};

}  // namespace remy
