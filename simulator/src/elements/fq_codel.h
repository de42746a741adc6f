#pragma once

#include <cstdint>

#include "elements/codel.h"
#include "elements/flow_bins.h"
#include "elements/queue.h"

namespace remy {

struct FqCoDelParameters {
  CoDelParameters codel;
  std::uint32_t flows = 1024;
  std::uint32_t quantum_bytes = 1514;
  std::uint64_t limit_packets = 10240;
  std::uint32_t drop_batch_packets = 64;
};

// FQ-CoDel (RFC 8290): deficit round robin by bytes over per-flow queues, each managed by CoDel.
// Queues that have just become active are served before the others.
class FqCoDelQueue final : public Queue {
 public:
  FqCoDelQueue(const FqCoDelParameters& parameters, std::uint32_t largest_bytes)
      : parameters_(parameters), largest_bytes_(largest_bytes), bins_(parameters.flows) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

 private:
  struct Flow {
    CoDel codel;
    std::int64_t credit_bytes = 0;
    bool is_active = false;  // on the list of new or old flows
  };
  using Bins = FlowBins<Flow>;
  struct PacketSupply {
    FqCoDelQueue& queue;
    Bins::Bin& bin;
    Segment* take() {
      if (bin.waiting.empty()) {
        return nullptr;
      }
      Segment& segment = queue.bins_.pop(bin);
      queue.count_dequeued(segment);
      return &segment;
    }
    bool is_short() const { return bin.bytes <= queue.largest_bytes_; }
  };

  void drop_from_largest(double now_ms, DropListener& drops);

  FqCoDelParameters parameters_;
  std::uint32_t largest_bytes_;
  Bins bins_;
  // Bin numbers.
  Ring<std::uint32_t> new_flows_;
  Ring<std::uint32_t> old_flows_;
};

}  // namespace remy
