#pragma once

#include <cstdint>
#include <span>

#include "network/live.h"
#include "network/network_simulation.h"

namespace remy {

// Live control of a NetworkSimulation.
class LiveSimulation final : public LiveNetwork {
 public:
  LiveSimulation(const NetworkDescription& network, std::span<const CompiledTable> tables,
                 std::uint64_t seed, RuleObserver* observer)
      : simulation_(network, tables, kDurationMs, seed, NetworkOptions{.observer = observer},
                    Departures::kScheduled) {}

  void run_until(double until_ms) override { simulation_.run_until(until_ms); }
  void change_link(std::uint32_t link, const LinkDescription& description) override {
    simulation_.change_link(link, description);
  }
  void hold(std::uint32_t sender, bool is_on) override { simulation_.hold_sender(sender, is_on); }
  void release(std::uint32_t sender) override { simulation_.release_sender(sender); }
  LiveSender sender(std::uint32_t index) const override;
  LiveLink link(std::uint32_t index) const override;

 private:
  // Until when link conditions change. A live network has no end of its own.
  static constexpr double kDurationMs = 1e7;

  NetworkSimulation simulation_;
};

}  // namespace remy
