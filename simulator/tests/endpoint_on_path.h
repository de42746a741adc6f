#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transports/endpoint.h"

namespace remy {

// Runs one endpoint on a path: a link with a finite buffer, and half the RTT in each direction. A
// test says which transmissions and which ACKs are lost.
class EndpointOnPath final : public PacketSink {
 public:
  static constexpr double kNever = Endpoint::kNever;

  explicit EndpointOnPath(Endpoint& endpoint, double rtt_ms = 100)
      : endpoint_(endpoint), rtt_ms_(rtt_ms) {}

  double rate_packets_per_ms = 0;  // 0: infinite
  std::size_t buffer_packets = 1'000'000;
  std::function<bool(const Segment&)> loses;
  std::function<bool(const Segment&, const AckContent&)> loses_ack;
  // Extra delay of a transmission, which others may overtake.
  std::function<double(const Segment&)> delays_ms;

  bool keeps_record = true;  // fills sent and sent_ms
  std::vector<Segment> sent;
  std::vector<double> sent_ms;
  std::uint64_t dropped = 0;
  double now_ms = 0;

  void switch_on(std::optional<std::uint64_t> packets) {
    endpoint_.switch_on(packets, now_ms, *this);
  }

  // Handles the next event until `until_ms`. Returns false if there is none.
  bool step(double until_ms = kNever) {
    const auto data =
        delays_ms ? std::ranges::min_element(data_, {}, &InFlight::arrives_ms) : data_.begin();
    const double data_ms = data == data_.end() ? kNever : data->arrives_ms;
    const double ack_ms = acks_.empty() ? kNever : acks_.front().arrives_ms;
    const double next =
        std::min({endpoint_.next_act_ms(), endpoint_.delayed_ack_due_ms(), data_ms, ack_ms});
    if (next > until_ms || next == kNever) {
      now_ms = until_ms == kNever ? now_ms : until_ms;
      return false;
    }
    now_ms = std::max(now_ms, next);
    if (endpoint_.next_act_ms() <= now_ms) {
      endpoint_.act(now_ms, *this);
    } else if (endpoint_.delayed_ack_due_ms() <= now_ms) {
      if (const auto late = endpoint_.take_delayed_ack(now_ms)) {
        acknowledge(late->first, late->second);
      }
    } else if (data_ms <= now_ms) {
      const Segment segment = data->segment;
      data_.erase(data);
      if (const auto content = endpoint_.on_data(segment, now_ms)) {
        acknowledge(segment, *content);
      }
    } else {
      const Returning ack = acks_.front();
      acks_.pop_front();
      endpoint_.on_ack(ack.echo, ack.content, now_ms, *this);
    }
    return true;
  }
  void run_until(double until_ms) {
    while (step(until_ms)) {
    }
  }
  // Runs until all packets of the on period are acknowledged, or until a time.
  void run_to_the_end(double until_ms) {
    while (!endpoint_.is_done() && step(until_ms)) {
    }
  }

  void send(const Segment& segment, double at_ms) override {
    if (keeps_record) {
      sent.push_back(segment);
      sent_ms.push_back(at_ms);
    }
    if (loses && loses(segment)) {
      ++dropped;
      return;
    }
    double leaves_ms = at_ms;
    if (rate_packets_per_ms > 0) {
      const double service_ms = 1 / rate_packets_per_ms;
      const double backlog = std::max(0.0, busy_until_ms_ - at_ms) / service_ms;
      if (backlog > static_cast<double>(buffer_packets) + 1) {
        ++dropped;
        return;
      }
      busy_until_ms_ = std::max(busy_until_ms_, at_ms) + service_ms;
      leaves_ms = busy_until_ms_;
    }
    data_.push_back({leaves_ms + rtt_ms_ / 2 + (delays_ms ? delays_ms(segment) : 0), segment});
  }

 private:
  struct InFlight {
    double arrives_ms;
    Segment segment;
  };
  struct Returning {
    double arrives_ms;
    Segment echo;
    AckContent content;
  };

  void acknowledge(const Segment& echo, const AckContent& content) {
    if (!loses_ack || !loses_ack(echo, content)) {
      acks_.push_back({now_ms + rtt_ms_ / 2, echo, content});
    }
  }

  Endpoint& endpoint_;
  double rtt_ms_;
  double busy_until_ms_ = 0;
  std::deque<InFlight> data_;
  std::deque<Returning> acks_;
};

}  // namespace remy
