#include "elements/fair_queueing.h"

#include "elements/queues.h"

namespace remy {

void FairQueue::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  const std::uint32_t number = bins_.number_of(segment);
  if (packets() >= limit_packets_) {
    const Segment dropped = bins_.pop_back(bins_.with_most_packets());
    count_dequeued(dropped);
    drops.on_drop(dropped, now_ms);
  }
  Bins::Bin& bin = bins_[number];
  bins_.push(bin, segment, now_ms);
  count_enqueued(segment);
  if (!bin.is_active) {
    bin.is_active = true;
    active_.push(number);
  }
}

Segment* FairQueue::dequeue(double, DropListener&) {
  while (!active_.empty()) {
    const std::uint32_t number = active_.front();
    Bins::Bin& bin = bins_[number];
    // An idle flow keeps no deficit (Shreedhar and Varghese 1995, section 3).
    if (bin.waiting.empty()) {
      bin.deficit_bytes = 0;
      bin.has_quantum = false;
      bin.is_active = false;
      active_.pop();
      continue;
    }
    bool may_send = true;
    if (round_ == FairRound::kBytes) {
      if (!bin.has_quantum) {
        bin.has_quantum = true;
        bin.deficit_bytes += quantum_bytes_;
      }
      may_send = bin.waiting.front().bytes <= bin.deficit_bytes;
    }
    if (!may_send) {
      bin.has_quantum = false;
      active_.pop();
      active_.push(number);
      continue;
    }
    Segment& departing = bins_.pop(bin);
    count_dequeued(departing);
    if (round_ == FairRound::kBytes) {
      bin.deficit_bytes -= departing.bytes;
    } else {
      active_.pop();
      active_.push(number);
    }
    return &departing;
  }
  return nullptr;
}

QueueDiscipline fair_queueing() {
  return {
      .name = "fair-queueing",
      .title = "Fair queueing",
      .variants = {{"drr",
                    "Shreedhar and Varghese 1995",
                    {{"quantum_bytes", "bytes per flow and round", 1500, 1, 1e9}}},
                   {"sfq", "McKenney 1990", {}}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        const bool is_drr = values.variant() == "drr";
        return std::make_unique<FairQueue>(
            is_drr ? FairRound::kBytes : FairRound::kPackets,
            is_drr ? static_cast<std::uint32_t>(values["quantum_bytes"]) : 0,
            limit_packets("fair-queueing", setting));
      },
  };
}

}  // namespace remy
