#pragma once

#include <cstdint>

#include "elements/flow_bins.h"
#include "elements/queue.h"

namespace remy {

enum class FairRound : std::uint8_t {
  kBytes,    // deficit round robin (Shreedhar and Varghese 1995)
  kPackets,  // stochastic fairness queueing (McKenney 1990)
};

// Fair queueing: one queue per flow, served in turn, with a common limit. At the limit the longest
// queue loses its last packet ("buffer stealing", McKenney 1990, section 3).
class FairQueue final : public Queue {
 public:
  static constexpr std::uint32_t kBins = 1024;

  // `quantum_bytes` is what a flow may send per round with FairRound::kBytes.
  FairQueue(FairRound round, std::uint32_t quantum_bytes, std::uint64_t limit_packets)
      : round_(round), quantum_bytes_(quantum_bytes), limit_packets_(limit_packets), bins_(kBins) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

 private:
  struct Flow {
    std::uint64_t deficit_bytes = 0;  // unused bytes that the flow may still send
    bool is_active = false;
    bool has_quantum = false;  // the flow has received this round's quantum
  };
  using Bins = FlowBins<Flow>;

  FairRound round_;
  std::uint32_t quantum_bytes_;
  std::uint64_t limit_packets_;
  Bins bins_;
  Ring<std::uint32_t> active_;  // bin numbers, in the order of their turns
};

}  // namespace remy
