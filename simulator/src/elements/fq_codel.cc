#include "elements/fq_codel.h"

#include <algorithm>

#include "elements/queues.h"

namespace remy {

void FqCoDelQueue::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  const std::uint32_t number = bins_.number_of(segment);
  Bins::Bin& bin = bins_[number];
  bins_.push(bin, segment, now_ms);
  count_enqueued(segment);
  // RFC 8290, section 4.1: a queue on neither list is appended to the new flows, with one quantum.
  if (!bin.is_active) {
    bin.is_active = true;
    bin.credit_bytes = parameters_.quantum_bytes;
    new_flows_.push(number);
  }
  if (packets() > parameters_.limit_packets) {
    drop_from_largest(now_ms, drops);
  }
}

// RFC 8290, section 4.1: above the limit, half the packets of the queue with the most bytes are
// dropped from its head, up to a batch. Dropping in batches saves searching for the queue each
// time.
void FqCoDelQueue::drop_from_largest(double now_ms, DropListener& drops) {
  Bins::Bin& largest = bins_.with_most_bytes();
  const std::uint64_t half = (largest.waiting.size() + 1) / 2;
  for (auto left_to_drop = std::min<std::uint64_t>(half, parameters_.drop_batch_packets);
       left_to_drop > 0; --left_to_drop) {
    const Segment& dropped = bins_.pop(largest);
    count_dequeued(dropped);
    drops.on_drop(dropped, now_ms);
  }
}

Segment* FqCoDelQueue::dequeue(double now_ms, DropListener& drops) {
  for (;;) {
    const bool is_new = !new_flows_.empty();
    Ring<std::uint32_t>& list = is_new ? new_flows_ : old_flows_;
    if (list.empty()) {
      return nullptr;
    }
    const std::uint32_t number = list.front();
    Bins::Bin& bin = bins_[number];
    // RFC 8290, section 4.2: a queue without credit receives a quantum and moves to the end of the
    // old flows.
    if (bin.credit_bytes <= 0) {
      bin.credit_bytes += parameters_.quantum_bytes;
      list.pop();
      old_flows_.push(number);
      continue;
    }
    PacketSupply supply{*this, bin};
    Segment* const departing = bin.codel.dequeue(parameters_.codel, supply, now_ms, drops);
    if (departing != nullptr) {
      bin.credit_bytes -= departing->bytes;
      return departing;
    }
    // RFC 8290, section 4.2: an empty new queue moves to the old flows first; otherwise a flow
    // could stay new for ever by sending again at once. An empty old queue becomes inactive.
    list.pop();
    if (is_new) {
      old_flows_.push(number);
    } else {
      bin.is_active = false;
    }
  }
}

QueueDiscipline fq_codel() {
  std::vector<Parameter> parameters = codel_parameters_with_ecn();
  parameters.push_back({"flows", "number of queues, one per flow", 1024, 1, 65536});
  parameters.push_back({"quantum_bytes", "bytes per flow and round", 1514, 1, 1e9});
  parameters.push_back({"limit_packets",
                        "packets that may wait, if the link's buffer is not smaller", 10240, 1,
                        1e9});
  parameters.push_back(
      {"drop_batch_packets", "largest number of packets dropped at once at the limit", 64, 1, 1e9});
  return {
      .name = "fq-codel",
      .title = "FQ-CoDel",
      .variants = {{"rfc8290", "RFC 8290", parameters}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        const FqCoDelParameters parameters{
            .codel = {.target_ms = values["target_ms"],
                      .interval_ms = values["interval_ms"],
                      .reentry = CoDelReentry::kRfc8289,
                      .uses_ecn = values["ecn"] != 0},
            .flows = static_cast<std::uint32_t>(values["flows"]),
            .quantum_bytes = static_cast<std::uint32_t>(values["quantum_bytes"]),
            .limit_packets = std::min(static_cast<std::uint64_t>(values["limit_packets"]),
                                      limit_packets("fq-codel", setting)),
            .drop_batch_packets = static_cast<std::uint32_t>(values["drop_batch_packets"])};
        return std::make_unique<FqCoDelQueue>(parameters,
                                              static_cast<std::uint32_t>(setting.packet_bytes));
      },
  };
}

}  // namespace remy
