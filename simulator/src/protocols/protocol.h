#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice.h"
#include "senders/congestion_controller.h"

namespace remy {

// What a protocol requires of its transport and network, beyond the default.
struct ProtocolNeeds {
  bool is_ecn_capable = false;
  bool needs_xcp_router = false;
  // The transport fills DeliverySnapshot and samples the delivery rate
  // (senders/congestion_controller.h).
  bool needs_rate_samples = false;
  bool retransmits = true;  // lost packets are retransmitted and data is delivered in order
};

// An entry of the registry of congestion control protocols.
struct Protocol {
  std::string_view name;
  std::string_view title;         // "CUBIC"
  std::vector<Variant> variants;  // the default first
  ProtocolNeeds needs;
  // Has no controller: its results are computed (network/omniscient.h).
  bool is_omniscient = false;
  // Makes a sender's controller, whose random stream has the key `key`.
  std::unique_ptr<CongestionController> (*make)(const ParameterValues& values,
                                                std::uint64_t key) = nullptr;
};

// The parameter for the initial window, which most protocols have.
inline Parameter initial_window_packets(double default_value) {
  return {"initial_window_packets", "packets that may be sent before the first ACK", default_value,
          1, 1000};
}

// All protocols, in alphabetical order.
std::span<const Protocol> protocols();

// Returns a protocol. Throws std::invalid_argument if there is none of this name.
const Protocol& find_protocol(std::string_view name);

}  // namespace remy
