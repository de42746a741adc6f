#include "network/omniscient.h"

#include <algorithm>
#include <limits>

#include "core/random.h"
#include "network/timers.h"

namespace remy {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Fluid {
 public:
  Fluid(const NetworkDescription& network, std::uint64_t seed)
      : packet_bytes_(network.packet_bytes),
        rate_packets_per_ms_(network.links.front().rate_packets_per_ms),
        switches_(static_cast<std::uint32_t>(network.senders.size())) {
    const std::uint64_t key = derive_key(seed, network.key);
    for (std::uint32_t i = 0; i < network.senders.size(); ++i) {
      const SenderDescription& each = network.senders[i];
      const RouteDescription& route = each.route;
      const std::uint64_t traffic_key =
          derive_key(key, {static_cast<std::uint64_t>(Purpose::kTraffic), i});
      Sender& sender = senders_.emplace_back(Schedule(each.traffic, traffic_key, each.first_on_ms));
      sender.rtt_ms = network.links.front().delay_ms + route.delay_ms + route.return_delay_ms +
                      1 / rate_packets_per_ms_;
      switches_.set(i, sender.schedule.begins_ms(0, 0));
    }
  }

  NetworkResults run(double duration_ms, Interruption* interruption) {
    for (Sender& sender : senders_) {
      sender.results.totals.first_on_ms = duration_ms;
    }
    for (;;) {
      const double completion_ms = next_completion_ms();
      const double switch_ms = switches_.earliest();
      if (interruption != nullptr) {
        interruption->check(0);
      }
      if (std::min(completion_ms, switch_ms) > duration_ms) {
        return finish(duration_ms);
      }
      if (completion_ms <= switch_ms) {
        complete(completion_ms);
      } else {
        advance(switch_ms);
        const std::uint32_t index = switches_.first();
        if (senders_[index].is_on) {
          switch_off(senders_[index], index);
        } else {
          switch_on(senders_[index], index);
        }
      }
    }
  }

 private:
  struct Sender {
    explicit Sender(const Schedule& of) : schedule(of) {}

    Schedule schedule;
    double rtt_ms = 0;
    bool is_on = false;
    bool is_sharing = false;
    // Values of served_: when the on period started, and when an on period of a number of packets
    // is complete.
    double served_at_start = 0;
    double served_at_end = kNever;
    double packets = 0;  // served in earlier on periods
    std::uint64_t period = 0;
    std::uint64_t flow_packets = 0;
    double on_since_ms = 0;
    double share_at_on_ms = 0;
    NetworkSenderResults results;
  };

  Sender* next_to_complete() {
    Sender* first = nullptr;
    for (Sender& sender : senders_) {
      if (sender.is_sharing && (first == nullptr || sender.served_at_end < first->served_at_end)) {
        first = &sender;
      }
    }
    return first;
  }

  double next_completion_ms() {
    const Sender* const first = next_to_complete();
    return first == nullptr ? kNever
                            : now_ms_ + (first->served_at_end - served_) *
                                            static_cast<double>(sharing_) / rate_packets_per_ms_;
  }

  void advance(double to_ms) {
    if (sharing_ > 0) {
      served_ += (to_ms - now_ms_) * rate_packets_per_ms_ / static_cast<double>(sharing_);
    }
    if (on_ > 0) {
      share_ms_ += (to_ms - now_ms_) / static_cast<double>(on_);
    }
    now_ms_ = to_ms;
  }

  void complete(double at_ms) {
    Sender& sender = *next_to_complete();
    advance(at_ms);
    served_ = sender.served_at_end;
    stop_sharing(sender);
    switches_.set(static_cast<std::uint32_t>(&sender - senders_.data()), at_ms + sender.rtt_ms);
  }

  void stop_sharing(Sender& sender) {
    sender.packets += served_ - sender.served_at_start;
    sender.is_sharing = false;
    --sharing_;
  }

  void switch_on(Sender& sender, std::uint32_t index) {
    sender.is_on = true;
    sender.is_sharing = true;
    ++on_;
    ++sharing_;
    sender.on_since_ms = now_ms_;
    sender.share_at_on_ms = share_ms_;
    sender.served_at_start = served_;
    sender.served_at_end = kNever;
    SenderResults& results = sender.results.totals;
    results.first_on_ms = std::min(results.first_on_ms, now_ms_);
    if (sender.schedule.by_time()) {
      switches_.set(index, sender.schedule.ends_ms(sender.period, now_ms_));
    } else {
      sender.flow_packets = sender.schedule.on_packets(sender.period, packet_bytes_);
      sender.served_at_end = served_ + static_cast<double>(sender.flow_packets);
      switches_.set(index, kNever);
    }
    ++sender.period;
  }

  void switch_off(Sender& sender, std::uint32_t index) {
    if (sender.is_sharing) {
      stop_sharing(sender);
    } else {
      sender.results.flows.push_back(
          {sender.flow_packets, now_ms_ - sender.schedule.arrival_ms(sender.on_since_ms)});
    }
    stop_counting(sender);
    sender.is_on = false;
    --on_;
    switches_.set(index, sender.schedule.begins_ms(sender.period, now_ms_));
  }

  void stop_counting(Sender& sender) {
    sender.results.totals.on_ms += now_ms_ - sender.on_since_ms;
    sender.results.totals.share_ms += share_ms_ - sender.share_at_on_ms;
  }

  NetworkResults finish(double duration_ms) {
    advance(duration_ms);
    NetworkResults results;
    results.links.resize(1);
    for (Sender& sender : senders_) {
      if (sender.is_on) {
        stop_counting(sender);
      }
      if (sender.is_sharing) {
        stop_sharing(sender);
      }
      const auto packets = static_cast<std::uint64_t>(sender.packets);
      sender.results.totals.packets_sent = packets;
      sender.results.totals.packets_received = packets;
      sender.results.totals.delay_sum_ms = static_cast<double>(packets) * sender.rtt_ms;
      sender.results.delay_samples = packets;
      sender.results.rtts.add(sender.rtt_ms, packets);
      sender.results.throughput_packets = packets;
      sender.results.endpoint.packets_sent = packets;
      sender.results.endpoint.packets_received = packets;
      sender.results.endpoint.packets_in_order = packets;
      results.links.front().transmitted += packets;
      results.senders.push_back(std::move(sender.results));
    }
    return results;
  }

  double packet_bytes_;
  double rate_packets_per_ms_;
  std::vector<Sender> senders_;
  Timers switches_;
  double now_ms_ = 0;
  std::size_t on_ = 0;
  std::size_t sharing_ = 0;
  double served_ = 0;    // packets that a sender which is always on would have been served
  double share_ms_ = 0;  // integral of dt / (number of senders on) over the times when any is on
};

}  // namespace

NetworkResults run_omniscient(const NetworkDescription& network, double duration_ms,
                              std::uint64_t seed, Interruption* interruption) {
  return Fluid(network, seed).run(duration_ms, interruption);
}

}  // namespace remy
