#pragma once

#include <algorithm>
#include <cstdint>

#include "protocols/protocol.h"

namespace remy {

// Runs a controller without a network: every packet is acknowledged one RTT after it was sent, and
// the window is always full. Shows how a protocol's rules respond to ACKs, losses and timeouts.
class AckClock {
 public:
  // Tests of controllers that ignore on_sent() need not call it, which takes most of the time.
  AckClock(const Choice& choice, double rtt_ms, double start_ms = 0, bool tells_sent = true)
      : controller_(make(choice)), rtt_ms_(rtt_ms), now_ms_(start_ms), tells_sent_(tells_sent) {
    controller_->start(now_ms_);
    fill();
  }

  double window() const { return controller_->cwnd(); }
  double now_ms() const { return now_ms_; }
  CongestionController& controller() { return *controller_; }
  void set_rtt_ms(double rtt_ms) { rtt_ms_ = rtt_ms; }
  void set_one_way_ms(double one_way_ms) { one_way_ms_ = one_way_ms; }
  void set_in_recovery(bool in_recovery) { in_recovery_ = in_recovery; }

  // Advances time by `packets` / window of an RTT, then acknowledges the packets.
  void acknowledge(std::uint64_t packets = 1, std::uint64_t marked = 0) {
    now_ms_ += rtt_ms_ * static_cast<double>(packets) / std::max(window(), 1.0);
    acknowledge_now(packets, marked);
  }

  void acknowledge_now(std::uint64_t packets = 1, std::uint64_t marked = 0) {
    const std::uint64_t prior = in_flight_;
    packets = std::min(packets, in_flight_);
    in_flight_ -= packets;
    acknowledged_ += packets;
    AckEvent ack;
    ack.now_ms = now_ms_;
    ack.sent_ms = now_ms_ - rtt_ms_;
    ack.received_ms = ack.sent_ms + one_way_ms_;
    ack.rtt_ms = rtt_ms_;
    ack.transmission_number = acknowledged_ - 1;
    ack.newly_acked = packets;
    ack.newly_delivered = packets;
    ack.newly_marked = marked;
    ack.total_delivered = acknowledged_;
    ack.prior_in_flight = prior;
    ack.in_flight = in_flight_;
    ack.in_recovery = in_recovery_;
    ack.is_cwnd_limited = static_cast<double>(prior + 1) > window();
    controller_->on_ack(ack);
    fill();
  }

  // Acknowledges the packets that are in flight now, one by one.
  void round() {
    for (std::uint64_t left = in_flight_; left > 0; --left) {
      acknowledge();
    }
  }

  void lose() {
    LossEvent loss;
    loss.now_ms = now_ms_;
    loss.transmission_number = acknowledged_;
    loss.in_flight = in_flight_;
    loss.starts_recovery = true;
    controller_->on_loss(loss);
  }

  void time_out(bool is_first = true) {
    controller_->on_timeout({.now_ms = now_ms_, .in_flight = in_flight_, .is_first = is_first});
    in_flight_ = 0;
    fill();
  }

  void wait(double ms) { now_ms_ += ms; }

  // Stops sending, acknowledges everything, and waits.
  void pause(double ms) {
    is_paused_ = true;
    while (in_flight_ > 0) {
      acknowledge();
    }
    is_paused_ = false;
    wait(ms);
    fill();
  }

 private:
  static std::unique_ptr<CongestionController> make(const Choice& choice) {
    const Protocol& protocol = find_protocol(choice.name);
    return protocol.make(ParameterValues("protocol", protocol.variants, choice), 1);
  }

  void fill() {
    if (is_paused_) {
      return;
    }
    const auto whole = static_cast<std::uint64_t>(std::max(window(), 1.0));
    if (in_flight_ == 0) {
      controller_->on_transmit_start(now_ms_);
    }
    if (!tells_sent_) {
      in_flight_ = std::max(in_flight_, whole);
    }
    while (in_flight_ < whole) {
      ++in_flight_;
      SendEvent sent;
      sent.now_ms = now_ms_;
      sent.transmission_number = serial_++;
      sent.in_flight = in_flight_;
      controller_->on_sent(sent);
    }
  }

  std::unique_ptr<CongestionController> controller_;
  double rtt_ms_;
  double one_way_ms_ = 0;
  double now_ms_;
  bool tells_sent_;
  bool in_recovery_ = false;
  bool is_paused_ = false;
  std::uint64_t in_flight_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t serial_ = 0;
};

// The mean window, in packets per RTT, if every packets_per_loss'th packet is lost. Averages over
// `losses` losses after as many to settle. An ACK may stand for several packets, to save time.
inline double mean_window(const Choice& choice, double rtt_ms, std::uint64_t packets_per_loss,
                          std::uint64_t packets_per_ack, int losses = 60) {
  AckClock clock(choice, rtt_ms, 0, packets_per_ack == 1);
  // Starts from a small window: the overshoot of slow start would have a lasting effect.
  while (clock.window() < 10) {
    clock.acknowledge();
  }
  double start_ms = 0;
  for (int loss = -losses; loss < losses; ++loss) {
    if (loss == 0) {
      start_ms = clock.now_ms();
    }
    clock.lose();
    for (std::uint64_t left = packets_per_loss; left > 0;) {
      const std::uint64_t packets = std::min<std::uint64_t>(
          {left, packets_per_ack,
           std::max<std::uint64_t>(static_cast<std::uint64_t>(clock.window()) / 32, 1)});
      clock.acknowledge(packets);
      left -= packets;
    }
  }
  return static_cast<double>(packets_per_loss) * losses * rtt_ms / (clock.now_ms() - start_ms);
}

}  // namespace remy
