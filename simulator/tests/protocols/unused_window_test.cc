#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include "network/network.h"
#include "protocols/protocol.h"

namespace remy {
namespace {

// The largest window and pacing rate that a sender has had.
class Largest final : public Recorder {
 public:
  void sample(double, std::span<const SenderSample> senders, std::span<const LinkSample>) override {
    const Pace& pace = senders[0].pace;
    window = std::max(window, pace.window_packets);
    if (pace.intersend_ms > 0) {
      rate_per_ms = std::max(rate_per_ms, 1 / pace.intersend_ms);
    }
  }
  double window = 0;
  double rate_per_ms = 0;
};

enum class Limit { kApplication, kReceiver };

// Over 100 Mbit/s and 50 ms (a BDP of 417 packets), on one connection: flows of 20 packets each 100
// ms, or always with a receive window of 30 packets.
Largest largest(const Choice& protocol, Limit limit) {
  NetworkDescription network;
  LinkDescription& link = network.links.emplace_back();
  link.rate_packets_per_ms = 100.0 / 12;
  link.buffer_packets = 200;
  link.delay_ms = 25;
  if (find_protocol(protocol.name).needs.needs_xcp_router) {
    link.queue = {"xcp", "", {}};
  }
  SenderDescription& sender = network.senders.emplace_back();
  sender.protocol = protocol;
  sender.transport = {"tcp", "", {{"keep_state", 1}}};
  sender.route.links = {0};
  sender.route.return_delay_ms = 25;
  sender.first_on_ms = 0;
  if (limit == Limit::kApplication) {
    sender.traffic = {.on = ConstantBytes{30'000}, .arrivals = PeriodicArrivals{100}};
  } else {
    sender.traffic = {.on = Always{}};
    sender.transport.parameters.emplace_back("receive_window_packets", 30);
  }
  Largest largest;
  NetworkOptions options;
  options.recorder = &largest;
  options.record_every_ms = 10;
  run_network(network, {}, 60'000, 1, options);
  return largest;
}

// RFC 9002, section 7.8: a window that is larger than what is in flight should not grow. Half the
// BDP leaves room for what slow start adds at the ACKs of a window that was full.
TEST(UnusedWindow, DoesNotGrow) {
  // Published as they are: docs/reference/protocols.md says that their windows grow unused.
  const std::set<std::string> grow = {"newreno ns-2", "remy-aimd remy", "copa paper",
                                      "copa no-mode-switch"};
  // No window limits them; their rates are limited instead.
  const std::set<std::string> have_no_window = {"constant-rate constant-rate", "pcc-allegro safe",
                                                "pcc-allegro latency", "pcc-allegro loss-resilient",
                                                "pcc-vivace latency"};
  for (const Protocol& protocol : protocols()) {
    for (const Variant& variant : protocol.variants) {
      const std::string name = std::string(protocol.name) + " " + std::string(variant.name);
      if (protocol.is_omniscient || !protocol.needs.retransmits || grow.contains(name)) {
        continue;
      }
      const Choice choice = {std::string(protocol.name), std::string(variant.name), {}};
      for (const Limit limit : {Limit::kApplication, Limit::kReceiver}) {
        const Largest most = largest(choice, limit);
        const char* by = limit == Limit::kApplication ? " by the application" : " by the receiver";
        if (have_no_window.contains(name)) {
          EXPECT_LE(most.rate_per_ms, 4) << name << by;
        } else {
          EXPECT_LE(most.window, 200) << name << by;
        }
      }
    }
  }
}

}  // namespace
}  // namespace remy
