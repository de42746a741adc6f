#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "network/description.h"
#include "senders/remy_controller.h"
#include "table/compiled_table.h"
#include "transports/endpoint.h"

namespace remy {

// The present state of a sender. Counts are since the beginning.
struct LiveSender {
  bool is_on = false;
  Pace pace;
  double rtt_ms = 0;            // of the last ACK; 0 before the first
  std::uint64_t in_flight = 0;  // packets sent that are neither received nor lost
  std::uint64_t received = 0;
  std::uint64_t lost = 0;
  double delay_sum_ms = 0;  // over the ACKs
};

// The present state of a link. Counts are since the beginning.
struct LiveLink {
  std::size_t waiting_packets = 0;
  std::uint64_t dropped = 0;  // by the queue
  std::uint64_t lost = 0;     // behind the link
};

// A simulation that runs in steps and can be changed between them. Its course depends on the
// description, the seed, and the changes with their times, but not on the steps.
class LiveNetwork {
 public:
  virtual ~LiveNetwork() = default;

  // Handles all events until until_ms, those at until_ms included. Times must not decrease.
  virtual void run_until(double until_ms) = 0;

  // Changes a link from now on. The description must be valid in the network.
  virtual void change_link(std::uint32_t link, const LinkDescription& description) = 0;
  // Switches a sender on or off, and keeps it so until release().
  virtual void hold(std::uint32_t sender, bool is_on) = 0;
  // Lets the sender's traffic switch it again, from now on.
  virtual void release(std::uint32_t sender) = 0;

  virtual LiveSender sender(std::uint32_t index) const = 0;
  virtual LiveLink link(std::uint32_t index) const = 0;
};

// Starts a live network at time 0. Description, tables and observer outlive it; the observer may be
// null. Throws std::invalid_argument as run_network() does, and if a sender is omniscient.
std::unique_ptr<LiveNetwork> make_live_network(const NetworkDescription& network,
                                               std::span<const CompiledTable> tables,
                                               std::uint64_t seed, RuleObserver* observer);

}  // namespace remy
