#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice.h"
#include "senders/congestion_controller.h"

namespace remy {

// What the transport has to do for a protocol, beside what it does for all.
struct TransportNeeds {
  bool is_ecn_capable = false;
  bool needs_xcp_router = false;
  // Fills DeliverySnapshot and samples of the delivery rate (senders/congestion_controller.h).
  bool samples_rates = false;
  bool repairs = true;  // sends again what was lost, and hands on in order
};

// A congestion control that senders can run.
struct Protocol {
  std::string_view name;
  std::string_view title;         // "CUBIC"
  std::vector<Variant> variants;  // the usual one first
  TransportNeeds needs;
  // Has no controller: what it gets is computed (network/omniscient.h).
  bool is_omniscient = false;
  // `key` names the draws of the sender's controller.
  std::unique_ptr<CongestionController> (*make)(const Chosen& chosen, std::uint64_t key) = nullptr;
};

// What a protocol sends before it has heard anything, where it can be told.
inline Parameter initial_window_packets(double usual) {
  return {"initial_window_packets", "packets that may leave before the first ACK", usual, 1, 1000};
}

// All of them, by name.
std::span<const Protocol> protocols();

// Throws std::invalid_argument with one sentence if there is none.
const Protocol& find_protocol(std::string_view name);

}  // namespace remy
