#include "elements/codel.h"

#include <algorithm>

#include "elements/queues.h"

namespace remy {

void CoDelQueue::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  if (packets() >= capacity_packets_) [[unlikely]] {
    accept_without_room(segment, now_ms, drops);
    return;
  }
  Segment& kept = waiting_.push_without_growing();
  kept = segment;
  kept.queued_ms = now_ms;
  count_enqueued(segment);
}

// The queue is full, or its ring must grow.
[[gnu::noinline]] void CoDelQueue::accept_without_room(const Segment& segment, double now_ms,
                                                       DropListener& drops) {
  if (packets() >= limit_packets_) {
    drops.on_drop(segment, now_ms);
    return;
  }
  waiting_.grow();
  capacity_packets_ = std::min<std::uint64_t>(limit_packets_, waiting_.capacity());
  enqueue(segment, now_ms, drops);
}

Segment* CoDelQueue::dequeue(double now_ms, DropListener& drops) {
  PacketSupply supply{*this};
  return codel_.dequeue(parameters_, supply, now_ms, drops);
}

std::vector<Parameter> codel_parameters() {
  return {
      {"target_ms", "acceptable sojourn time", 5, 1e-3, 1e5},
      {"interval_ms", "time above the target after which CoDel starts to drop", 100, 1e-3, 1e6},
  };
}

std::vector<Parameter> codel_parameters_with_ecn() {
  std::vector<Parameter> parameters = codel_parameters();
  parameters.push_back({"ecn", "1: marks ECN-capable packets instead of dropping them", 1, 0, 1});
  return parameters;
}

QueueDiscipline codel() {
  return {
      .name = "codel",
      .title = "CoDel",
      .variants = {{"rfc8289", "RFC 8289", codel_parameters_with_ecn()},
                   {"ns2", "Nichols 2012, codel.cc of ns-2", codel_parameters()}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        const bool is_rfc = values.variant() == "rfc8289";
        return std::make_unique<CoDelQueue>(
            CoDelParameters{.target_ms = values["target_ms"],
                            .interval_ms = values["interval_ms"],
                            .reentry = is_rfc ? CoDelReentry::kRfc8289 : CoDelReentry::kNs2,
                            .uses_ecn = is_rfc && values["ecn"] != 0},
            limit_packets("codel", setting), static_cast<std::uint32_t>(setting.packet_bytes));
      },
  };
}

}  // namespace remy
