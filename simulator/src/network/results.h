#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/log_histogram.h"
#include "senders/packet.h"
#include "transports/endpoint.h"

namespace remy {

// A completed flow: an on period with a number of packets.
struct FlowCompletion {
  std::uint64_t packets = 0;
  double time_ms = 0;  // from the flow's arrival to its last ACK
};

// Statistics of flow completion times in ms; all 0 if there are no flows.
struct CompletionSummary {
  std::uint64_t flows = 0;
  double mean_ms = 0;
  double median_ms = 0;
  double percentile_99_ms = 0;  // the smallest time that 99 % of the flows do not exceed
};

CompletionSummary summarize(std::span<const FlowCompletion> flows);

// The results of one sender.
struct NetworkSenderResults {
  // Its delay_sum_ms sums over received packets or, if ACKs cross links, over ACKs that arrived.
  SenderResults totals;
  EndpointResults endpoint;
  std::uint64_t delay_samples = 0;  // terms of delay_sum_ms
  std::uint64_t acks_sent = 0;      // over links
  // Packets that count as throughput: all received ones, or those delivered in order, depending on
  // the transport (Transport::counts_every_packet).
  std::uint64_t throughput_packets = 0;
  std::vector<FlowCompletion> flows;
  // RTTs of the terms of delay_sum_ms; empty unless NetworkOptions::measures_distributions.
  LogHistogram rtts;
};

// What happened to the packets and ACKs that arrived at a link.
struct LinkResults {
  std::uint64_t transmitted = 0;
  std::uint64_t dropped = 0;    // by the policer or the queue
  std::uint64_t lost = 0;       // behind the link
  std::uint64_t waiting = 0;    // in the queue at the end
  std::uint64_t under_way = 0;  // on the link, or in a delay before or behind it, at the end
};

struct NetworkResults {
  std::vector<NetworkSenderResults> senders;
  std::vector<LinkResults> links;
};

}  // namespace remy
