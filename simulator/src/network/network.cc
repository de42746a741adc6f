#include "network/network.h"

#include <memory>
#include <string>

#include "core/requirement.h"
#include "network/live.h"
#include "network/live_simulation.h"
#include "network/network_simulation.h"
#include "network/omniscient.h"

namespace remy {
namespace {

void require_simulable(const NetworkDescription& network, std::span<const CompiledTable> tables) {
  validate(network, tables.size());
  for (const SenderDescription& sender : network.senders) {
    if (sender.table && tables[*sender.table].has_extended_signals()) {
      refuse("table " + std::to_string(*sender.table) +
             " looks at signals that only the dumbbell has (docs/reference/signals.md)");
    }
  }
}

}  // namespace

NetworkResults run_network(const NetworkDescription& network, std::span<const CompiledTable> tables,
                           double duration_ms, std::uint64_t seed, const NetworkOptions& options) {
  require_simulable(network, tables);
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
  require_simulable(network, tables);
  if (has_omniscient_senders(network)) {
    refuse("omniscient senders are computed, and cannot be watched");
  }
  return std::make_unique<LiveSimulation>(network, tables, seed, observer);
}

}  // namespace remy
