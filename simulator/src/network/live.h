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

// A sender as it is now. Counts are from the beginning.
struct LiveSender {
  bool is_on = false;
  Pace pace;
  double rtt_ms = 0;            // of the last ACK; 0 before the first
  std::uint64_t in_flight = 0;  // packets sent that are neither received nor lost
  std::uint64_t received = 0;
  std::uint64_t lost = 0;
  double delay_sum_ms = 0;  // over the ACKs
};

// A link as it is now. Counts are from the beginning.
struct LiveLink {
  std::size_t waiting_packets = 0;
  std::uint64_t dropped = 0;  // by its queue
  std::uint64_t lost = 0;     // behind it
};

// A network that runs as far as it is told to, and may be changed in between. What happens depends
// on the description, the seed, and the changes with their times, not on the steps.
class LiveNetwork {
 public:
  virtual ~LiveNetwork() = default;

  // All that happens up to, and at, until_ms, which never runs backwards.
  virtual void run_until(double until_ms) = 0;

  // As of now. The description must be valid in the network.
  virtual void change_link(std::uint32_t link, const LinkDescription& description) = 0;
  // Switches the sender, unless it is so already, and keeps it so.
  virtual void hold(std::uint32_t sender, bool is_on) = 0;
  // Leaves the sender to its traffic, from now on.
  virtual void release(std::uint32_t sender) = 0;

  virtual LiveSender sender(std::uint32_t index) const = 0;
  virtual LiveLink link(std::uint32_t index) const = 0;
};

// At 0. Description, tables and observer, which may be null, outlive the network. Throws
// std::invalid_argument as run_network() does, and where a sender is omniscient.
std::unique_ptr<LiveNetwork> make_live_network(const NetworkDescription& network,
                                               std::span<const CompiledTable> tables,
                                               std::uint64_t seed, RuleObserver* observer);

}  // namespace remy
