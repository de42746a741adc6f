#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <variant>

#include "network/description.h"
#include "network/results.h"
#include "network/route.h"
#include "senders/packet.h"
#include "senders/telemetry.h"
#include "senders/traffic.h"
#include "transports/endpoint.h"

namespace remy {

// One sender in a simulation: its endpoint, its routes, and the state of its traffic.
struct NetworkSender {
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // The event that ends the present on period.
  enum class Mode : std::uint8_t { kOff, kOnForTime, kOnForPackets };

  NetworkSender(const SenderDescription& description, std::uint64_t traffic_key,
                std::uint32_t number)
      : index(number),
        flow(number),
        schedule(description.traffic, traffic_key, description.first_on_ms),
        barrier(description.barrier) {
    if (const auto* const shared = std::get_if<Barrier>(&description.traffic.arrivals)) {
      barrier_pause_ms = shared->pause_ms;
    }
  }

  // Written by links into its packets, if its table looks at it. The endpoint reads it.
  std::unique_ptr<PathTelemetry> telemetry;
  std::unique_ptr<Endpoint> endpoint;
  // When act() is called, which may be earlier than the endpoint needs: its retransmission timer is
  // postponed at every ACK, the event is not.
  double act_timer_ms = kNever;
  double delayed_ack_timer_ms = kNever;
  Mode mode = Mode::kOff;
  // ACKs cross no links: a packet's arrival and its ACK's arrival are one event, at the ACK's time.
  bool has_constant_return = true;
  std::uint32_t index;
  double return_delay_ms = 0;
  double rtt_ms = 0;  // of the last ACK
  Route route;
  Route return_route;
  FlowTag flow;                          // names the draws of losses
  std::uint32_t sent_before_period = 0;  // packets, modulo 2^32; names the draws of losses
  NetworkSenderResults results;
  Schedule schedule;
  bool counts_every_packet = false;
  std::uint64_t period = 0;  // number of the next on period
  double on_since_ms = 0;
  double share_at_on_ms = 0;       // FairShare::integral_ms() at on_since_ms
  std::uint64_t flow_packets = 0;  // length of the present on period
  std::uint32_t barrier;
  // While no more packets than this are in the network, a packet of this sender can neither be lost
  // behind a link nor be one too many.
  std::uint32_t lossless_packets = 0;
  double barrier_pause_ms = kNever;  // kNever: no barrier
};

}  // namespace remy
