#pragma once

#include <cstdint>
#include <span>

#include "core/interruption.h"
#include "network/description.h"
#include "network/packet_capture.h"
#include "network/recorder.h"
#include "network/results.h"
#include "senders/remy_controller.h"
#include "table/compiled_table.h"

namespace remy {

// Optional parts of a simulation. Pointers may be null; what they point to outlives it.
struct NetworkOptions {
  RuleObserver* observer = nullptr;
  Recorder* recorder = nullptr;
  double record_every_ms = 10;
  bool measures_distributions = false;  // fill NetworkSenderResults::rtts
  PacketCapture* capture = nullptr;     // what one sender sends and receives
  Interruption* interruption = nullptr;
};

// Simulates senders of any kind on a network of links, from 0 to duration_ms. If all senders are
// RemyCCs over datagrams on one link with a drop-tail queue, results are bit for bit those of the
// dumbbell (network/dumbbell.h).
//
// Events at the same time are handled in this order: links end transmissions, endpoints act (send
// packets, handle timeouts), queues act, senders switch on or off, delayed ACKs are sent, jitter
// boxes release packets, packets arrive. Within a kind the lowest index is first; packets arrive in
// the order of delay lines (topology.h). The immediate effects of an event belong to it: a packet
// that is sent at an ACK, joins a queue and begins its transmission. Endpoints are told of lost
// packets after the event.
//
// Omniscient senders are computed (network/omniscient.h) and not recorded. Throws
// std::invalid_argument as validate() does, and Interrupted.
NetworkResults run_network(const NetworkDescription& network, std::span<const CompiledTable> tables,
                           double duration_ms, std::uint64_t seed,
                           const NetworkOptions& options = {});

}  // namespace remy
