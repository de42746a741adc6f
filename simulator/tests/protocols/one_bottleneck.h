#pragma once

#include <functional>
#include <span>
#include <vector>

#include "network/network.h"

namespace remy {

// Runs bulk flows of one protocol over one link with the real transport. Each flow starts at a
// given time and never ends.
struct OneBottleneck {
  Choice protocol;
  Choice transport;
  LinkDescription link;
  double rtt_ms = 100;
  std::vector<double> starts_ms = {0};

  NetworkDescription network(std::uint64_t key = 0) const {
    NetworkDescription description;
    description.key = key;
    description.links = {link};
    description.links[0].delay_ms = rtt_ms / 2;
    for (const double start_ms : starts_ms) {
      SenderDescription sender;
      sender.protocol = protocol;
      sender.transport = transport;
      sender.traffic = {ExponentialTime{1e15}, 1};
      sender.first_on_ms = start_ms;
      sender.route = {
          .links = {0}, .return_links = {}, .delay_ms = 0, .return_delay_ms = rtt_ms / 2};
      description.senders.push_back(sender);
    }
    return description;
  }

  NetworkResults run(double duration_ms, std::uint64_t key = 0) const {
    return run_network(network(key), {}, duration_ms, 1);
  }

  // Queue lengths in packets, sampled at a regular interval from a given time on.
  std::vector<double> queue(double from_ms, double until_ms, double every_ms) const {
    class Queue final : public Recorder {
     public:
      explicit Queue(double from_ms) : from_ms_(from_ms) {}
      void sample(double now_ms, std::span<const SenderSample>,
                  std::span<const LinkSample> links) override {
        if (now_ms >= from_ms_) {
          packets.push_back(static_cast<double>(links[0].waiting_packets));
        }
      }
      std::vector<double> packets;

     private:
      double from_ms_;
    };
    Queue recorder(from_ms);
    NetworkOptions options;
    options.recorder = &recorder;
    options.record_every_ms = every_ms;
    run_network(network(), {}, until_ms, 1, options);
    return recorder.packets;
  }
};

// Sum over all senders.
inline double mean_rtt_ms(const NetworkResults& results) {
  double sum_ms = 0;
  double samples = 0;
  for (const NetworkSenderResults& sender : results.senders) {
    sum_ms += sender.totals.delay_sum_ms;
    samples += static_cast<double>(sender.delay_samples);
  }
  return sum_ms / samples;
}

inline double packets_in_order(const NetworkResults& results) {
  double packets = 0;
  for (const NetworkSenderResults& sender : results.senders) {
    packets += static_cast<double>(sender.endpoint.packets_in_order);
  }
  return packets;
}

}  // namespace remy
