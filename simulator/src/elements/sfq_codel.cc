#include "elements/sfq_codel.h"

#include "elements/queues.h"

namespace remy {

void SfqCoDelQueue::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  const std::uint32_t number = bins_.number_of(segment);
  // The limit is common to all bins: the longest one makes room, whichever flow the arrival belongs
  // to.
  if (packets() >= limit_packets_) {
    const Segment dropped = bins_.pop_back(bins_.with_most_packets());
    count_dequeued(dropped);
    drops.on_drop(dropped, now_ms);
  }
  Bins::Bin& bin = bins_[number];
  bins_.push(bin, segment, now_ms);
  count_enqueued(segment);
  // A bin that joins the schedule is served after other new ones and before the old ones.
  if (!bin.is_scheduled) {
    bin.is_scheduled = true;
    new_bins_.push(number);
  }
}

Segment* SfqCoDelQueue::dequeue(double now_ms, DropListener& drops) {
  for (;;) {
    Ring<std::uint32_t>& list = new_bins_.empty() ? old_bins_ : new_bins_;
    if (list.empty()) {
      return nullptr;
    }
    const std::uint32_t number = list.front();
    list.pop();
    Bins::Bin& bin = bins_[number];
    // A bin leaves the schedule only when it is empty at its turn.
    if (bin.waiting.empty()) {
      bin.is_scheduled = false;
      bin.codel.stop_dropping();
      continue;
    }
    // One packet per turn.
    old_bins_.push(number);
    PacketSupply supply{*this, bin};
    return bin.codel.dequeue(parameters_, supply, now_ms, drops);
  }
}

QueueDiscipline sfq_codel() {
  return {
      .name = "sfq-codel",
      .title = "sfqCoDel",
      .variants = {{"ns2", "Nichols 2013, sfqcodel.cc of ns-2", codel_parameters()}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        return std::make_unique<SfqCoDelQueue>(CoDelParameters{.target_ms = values["target_ms"],
                                                               .interval_ms = values["interval_ms"],
                                                               .reentry = CoDelReentry::kNs2,
                                                               .uses_ecn = false},
                                               limit_packets("sfq-codel", setting),
                                               static_cast<std::uint32_t>(setting.packet_bytes));
      },
  };
}

}  // namespace remy
