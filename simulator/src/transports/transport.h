#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice.h"
#include "senders/clock.h"
#include "senders/congestion_controller.h"
#include "senders/remy_controller.h"
#include "senders/telemetry.h"
#include "transports/endpoint.h"

namespace remy {

// The parameters of an endpoint that do not depend on its transport. It runs either a RemyCC, if
// `table` is not null, or a congestion controller.
struct EndpointSetting {
  std::uint32_t sender = 0;  // index of the sender in its network
  double packet_bytes = 1500;
  const CompiledTable* table = nullptr;  // outlives the endpoint
  RuleObserver* observer = nullptr;      // notified of each rule that the sender uses; may be null
  PathTelemetry* telemetry = nullptr;    // of the sender's packets; null if the table needs none
  std::unique_ptr<CongestionController> controller;
  bool is_ecn_capable = false;
  bool asks_xcp_routers = false;
  bool samples_rates = true;  // the controller needs delivery rates
  bool retransmits = true;    // the controller runs on a transport that retransmits losses
  MeasurementNoise measurement;
  std::uint64_t jitter_key = 0;      // random-stream key of the measurement jitter
  std::uint64_t rtt_offset_key = 0;  // random-stream key of the constant error of measured RTTs
};

// A kind of endpoint that users select by name: `transport: tcp`, `ns2` or `datagram`.
struct Transport {
  std::string_view name;
  std::string_view title;
  std::vector<Variant> variants;  // the default first
  bool runs_tables = false;
  bool runs_controllers = false;
  bool takes_noise = false;  // applies all of MeasurementNoise, not only RTT offsets
  // Throughput counts every packet received; otherwise packets delivered in order.
  bool counts_every_packet = false;
  std::unique_ptr<Endpoint> (*make)(const ParameterValues& values,
                                    EndpointSetting setting) = nullptr;
};

// All transports, sorted by name.
std::span<const Transport> transports();

// Throws std::invalid_argument if there is no transport of this name.
const Transport& find_transport(std::string_view name);

}  // namespace remy
