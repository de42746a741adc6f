#include "network/network.h"

#include <memory>

#include "core/requirement.h"
#include "network/live.h"
#include "network/live_simulation.h"
#include "network/network_simulation.h"
#include "network/omniscient.h"

namespace remy {

NetworkResults run_network(const NetworkDescription& network, std::span<const CompiledTable> tables,
                           double duration_ms, std::uint64_t seed, const NetworkOptions& options) {
  validate(network, tables.size());
  if (options.capture != nullptr) {
    require(options.capture->sender < network.senders.size(), "capture_sender",
            options.capture->sender, "the index of a sender");
  }
  if (has_omniscient_senders(network)) {
    if (options.capture != nullptr) {
      refuse("omniscient senders are computed, and send no packets to capture");
    }
    return run_omniscient(network, duration_ms, seed, options.interruption);
  }
  return NetworkSimulation(network, tables, duration_ms, seed, options, Departures::kComputedAhead)
      .run();
}

std::unique_ptr<LiveNetwork> make_live_network(const NetworkDescription& network,
                                               std::span<const CompiledTable> tables,
                                               std::uint64_t seed, RuleObserver* observer) {
  validate(network, tables.size());
  if (has_omniscient_senders(network)) {
    refuse("omniscient senders are computed, and cannot be watched");
  }
  return std::make_unique<LiveSimulation>(network, tables, seed, observer);
}

}  // namespace remy
