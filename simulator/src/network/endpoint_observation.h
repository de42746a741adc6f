#pragma once

#include <memory>

#include "core/log_histogram.h"
#include "network/packet_capture.h"
#include "transports/endpoint.h"

namespace remy {

// Endpoints that pass every call on to another one, and observe it. Networks put them before the
// endpoints that are to be observed, so that observation costs the others nothing. Results do not
// change. Arguments that are references outlive the endpoints.

// Captures what an endpoint sends and receives.
std::unique_ptr<Endpoint> capturing(std::unique_ptr<Endpoint> endpoint, PacketCapture& capture);

// Counts the RTTs whose sum is SenderResults::delay_sum_ms. The network calls on_round_trip() for
// all packets if `has_constant_return`, else for none.
std::unique_ptr<Endpoint> counting_rtts(std::unique_ptr<Endpoint> endpoint,
                                        bool has_constant_return, LogHistogram& rtts);

}  // namespace remy
