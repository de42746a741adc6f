#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/interruption.h"
#include "network/description.h"
#include "senders/packet.h"
#include "senders/remy_controller.h"
#include "table/compiled_table.h"
#include "transports/endpoint.h"

namespace remy {

// An on period by packets that was completed.
struct FlowCompletion {
  std::uint64_t packets = 0;
  double time_ms = 0;  // from its start
};

// Of completion times, ms; zeros where there are none.
struct CompletionSummary {
  std::uint64_t flows = 0;
  double mean_ms = 0;
  double median_ms = 0;
  double percentile_99_ms = 0;  // the least that 99 % do not exceed
};

CompletionSummary summarize(std::span<const FlowCompletion> flows);

// What one sender got out of a simulation on a network.
struct NetworkSenderResults {
  // Where ACKs return over links, delay_sum_ms is over the ACKs that arrived.
  SenderResults traffic;
  EndpointResults endpoint;
  std::uint64_t delay_samples = 0;  // that delay_sum_ms is the sum of
  std::uint64_t acks_sent = 0;      // over links
  // Packets that count as throughput: all that were received, or those handed on in order,
  // whichever the endpoint is for (Transport::counts_every_packet).
  std::uint64_t throughput_packets = 0;
  std::vector<FlowCompletion> flows;
};

// What became of the packets and ACKs that came to a link.
struct LinkResults {
  std::uint64_t transmitted = 0;
  std::uint64_t dropped = 0;  // by its policer or its queue
  std::uint64_t lost = 0;     // behind it
  // At the end: before it, and in it or behind it (or on the way to it, where its delay is there).
  std::uint64_t waiting = 0;
  std::uint64_t under_way = 0;
};

struct NetworkResults {
  std::vector<NetworkSenderResults> senders;
  std::vector<LinkResults> links;
};

// A sender at the time of a sample.
struct SenderSample {
  bool is_on = false;
  Pace pace;
  double rtt_ms = 0;  // of the last ACK; 0 before the first
  EndpointResults counts;
};

// A link at the time of a sample.
struct LinkSample {
  std::size_t waiting_packets = 0;
  std::size_t waiting_bytes = 0;
  std::uint64_t dropped = 0;  // so far
};

// Sees the state of a network in equal steps of time.
class Recorder {
 public:
  virtual void sample(double now_ms, std::span<const SenderSample> senders,
                      std::span<const LinkSample> links) = 0;

 protected:
  ~Recorder() = default;
};

// What a simulation does beside simulating. All may be null, and outlive it.
struct NetworkOptions {
  RuleObserver* observer = nullptr;
  Recorder* recorder = nullptr;
  double record_every_ms = 10;
  Interruption* interruption = nullptr;
};

// Simulates senders of any kind on a network of links, from 0 to duration_ms. Where all senders are
// RemyCCs in the datagram endpoint on one link with a drop-tail queue, results have the bits of the
// dumbbell's (network/dumbbell.h).
//
// Ties, at one instant: links end transmissions, endpoints act (send, time out), queues act of
// themselves, senders are switched, ACKs leave that were kept back, jitter boxes release, segments
// arrive. Within a kind
// the lowest index is first; segments arrive by lane, and lanes are in the order in which routes
// name them first. What an event causes at once (a packet that leaves at an ACK, joins a queue and
// begins to be transmitted) belongs to it; but endpoints hear of their packets' loss after it.
//
// Omniscient senders are computed (network/omniscient.h), and not recorded. Throws
// std::invalid_argument as validate() does, and Interrupted.
NetworkResults run_network(const NetworkDescription& network, std::span<const CompiledTable> tables,
                           double duration_ms, std::uint64_t seed,
                           const NetworkOptions& options = {});

}  // namespace remy
