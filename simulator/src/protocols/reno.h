#pragma once

#include <algorithm>
#include <cstdint>

#include "senders/congestion_controller.h"

namespace remy {

// Slow start and congestion avoidance (RFC 5681), where a protocol changes how fast the window
// grows and by how much it shrinks.
class Reno : public CongestionController {
 public:
  void start(double now_ms) final {
    cwnd_ = initial_window_packets_;
    threshold_packets_ = kNever;
    restarted(now_ms);
  }

  void on_ack(const AckEvent& ack) final {
    measured(ack);
    if (ack.in_recovery || !ack.is_cwnd_limited || ack.newly_delivered == 0) {
      return;
    }
    auto packets = static_cast<double>(ack.newly_delivered);
    if (in_slow_start()) {
      // What is left at the threshold grows as beyond it.
      const double growth = packets * slow_start_packets();
      const double room = threshold_packets_ - cwnd_;
      if (growth < room) {
        cwnd_ += growth;
        return;
      }
      cwnd_ = threshold_packets_;
      packets *= 1 - room / growth;
    }
    cwnd_ += packets * avoidance_packets();
  }

  void on_loss(const LossEvent& loss) final {
    if (loss.starts_recovery) {
      reduce_to(window_after_loss());
    }
  }

  // RFC 5681, section 3.1: the threshold once, then slow start from one packet.
  void on_timeout(const TimeoutEvent& timeout) final {
    if (timeout.is_first) {
      reduce_to(window_after_loss());
    }
    cwnd_ = 1;
    expired(timeout.now_ms);
  }

  // RFC 5681, section 4.1: after a pause no more than the initial window.
  void on_idle_timeout(double) final { cwnd_ = std::min(cwnd_, initial_window_packets_); }

 protected:
  explicit Reno(double initial_window_packets) : initial_window_packets_(initial_window_packets) {}

  virtual void restarted(double) {}
  // Every ACK, before the window changes.
  virtual void measured(const AckEvent&) {}
  virtual void expired(double) {}
  // By how many packets the window grows for a packet that is acknowledged.
  virtual double slow_start_packets() const { return 1; }
  virtual double avoidance_packets() const { return 1 / cwnd_; }
  virtual double window_after_loss() { return cwnd_ / 2; }

  bool in_slow_start() const { return cwnd_ < threshold_packets_; }
  void reduce_to(double packets) {
    threshold_packets_ = std::max(packets, 2.0);
    cwnd_ = threshold_packets_;
  }

 private:
  double initial_window_packets_;
  double threshold_packets_ = kNever;
};

// Tells when a round trip is over: when a packet is acknowledged that was sent after it began.
class Rounds {
 public:
  void restart() { end_ = next_; }
  void on_sent(const SendEvent& sent) { next_ = sent.transmission_number + 1; }
  // Whether this ACK ends one; the next then begins.
  bool ends(const AckEvent& ack) {
    if (ack.transmission_number < end_) {
      return false;
    }
    end_ = next_;
    return true;
  }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace remy
