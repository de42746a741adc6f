#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "network/delay_line.h"
#include "network/description.h"
#include "network/link.h"
#include "network/network_sender.h"
#include "network/route.h"
#include "senders/remy_controller.h"
#include "table/compiled_table.h"

namespace remy {

// Whether links compute departures ahead where they can (Link::fifo). Such links cannot be changed
// during a simulation.
enum class Departures : std::uint8_t { kComputedAhead, kScheduled };

// Builds the links, delay lines, routes and senders that a description names.
class Topology {
 public:
  // Description and tables outlive it. `key` is the random-stream key of the simulation.
  Topology(const NetworkDescription& description, std::span<const CompiledTable> tables,
           double duration_ms, std::uint64_t key, RuleObserver* observer, Departures departures);
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  std::vector<Link>& links() { return links_; }
  const std::vector<Link>& links() const { return links_; }
  std::vector<NetworkSender>& senders() { return senders_; }
  const std::vector<NetworkSender>& senders() const { return senders_; }
  // Sorted by link, then by delay: the order of simultaneous arrivals.
  const std::vector<DelayLine*>& delay_lines() const { return lines_; }

  std::unique_ptr<Queue> make_queue(std::uint32_t link, const LinkDescription& description) const;
  // Updates all routes to the loss probabilities of Link::description.
  void update_losses();

 private:
  void add_link(const LinkDescription& description, Departures departures, bool has_telemetry);
  std::unique_ptr<TimeVaryingLink> make_time_varying(const LinkDescription& description,
                                                     std::uint32_t index) const;
  LinkTelemetry make_telemetry(const LinkDescription& description) const;
  void add_sender(const SenderDescription& description, std::span<const CompiledTable> tables,
                  RuleObserver* observer);
  std::unique_ptr<Endpoint> make_endpoint(const SenderDescription& description,
                                          const NetworkSender& sender,
                                          std::span<const CompiledTable> tables,
                                          RuleObserver* observer) const;
  Route make_route(const std::vector<std::uint32_t>& links, double delay_ms, bool is_return);
  std::vector<LossyHop> lossy_hops(const std::vector<std::uint32_t>& links, bool is_return,
                                   bool may_reorder) const;
  DelayLine* delay_line(std::uint32_t link, double order, double delay_ms);
  void order_delay_lines();

  const NetworkDescription& description_;
  const double duration_ms_;
  const std::uint64_t key_;
  std::vector<Link> links_;
  std::vector<NetworkSender> senders_;
  // By link and a sort key: kBeforeLink, the delay behind the link, or kReordering.
  std::map<std::pair<std::uint32_t, double>, DelayLine> line_of_;
  std::vector<DelayLine*> lines_;       // in the order of line_of_
  std::vector<std::vector<Hop>> hops_;  // of all routes
};

}  // namespace remy
