#pragma once

#include <algorithm>
#include <cstdint>

#include "protocols/window_reduction.h"
#include "senders/congestion_controller.h"

namespace remy {

// Slow start and congestion avoidance of RFC 5681. A derived class changes the increase per ACK and
// the reduction after a loss.
class Reno : public CongestionController {
 public:
  void start(double now_ms) final {
    cwnd_ = initial_window_;
    ssthresh_ = kNever;
    before_reduction_.forget();
    reset(now_ms);
  }

  void on_ack(const AckEvent& ack) final {
    on_every_ack(ack);
    // RFC 3168, section 6.1.2: the window does not increase in response to an ACK with ECN-Echo.
    if (ack.in_recovery || !ack.is_cwnd_limited || ack.newly_delivered <= ack.newly_marked) {
      return;
    }
    auto packets = static_cast<double>(ack.newly_delivered - ack.newly_marked);
    if (is_in_slow_start()) {
      // Packets beyond those that reach ssthresh count for congestion avoidance.
      const double growth = packets * slow_start_increase();
      const double room = ssthresh_ - cwnd_;
      if (growth < room) {
        cwnd_ += growth;
        return;
      }
      cwnd_ = ssthresh_;
      packets *= 1 - room / growth;
    }
    cwnd_ += packets * congestion_avoidance_increase();
  }

  void on_loss(const LossEvent& loss) final {
    if (loss.starts_recovery) {
      before_reduction_.remember(cwnd_, ssthresh_);
      reduce_to(ssthresh_after_loss());
    }
  }

  // RFC 5681, section 3.1: ssthresh falls once per window of data; slow start from one packet.
  void on_timeout(const TimeoutEvent& timeout) final {
    if (timeout.is_first) {
      before_reduction_.remember(cwnd_, ssthresh_);
      reduce_to(ssthresh_after_loss());
    }
    cwnd_ = 1;
    after_timeout(timeout.now_ms);
  }

  // RFC 5681, section 4.1: RW = min(IW, cwnd) after an idle period.
  void on_idle_timeout(double) final { cwnd_ = std::min(cwnd_, initial_window_); }

  void lower_unused_window(double packets) final { lower_unused(cwnd_, ssthresh_, packets); }
  void on_spurious_recovery() final { before_reduction_.restore(cwnd_, ssthresh_); }
  double slow_start_threshold() const override { return ssthresh_; }
  bool is_in_slow_start() const final { return cwnd_ < ssthresh_; }

 protected:
  explicit Reno(double initial_window_packets) : initial_window_(initial_window_packets) {}

  // A connection starts.
  virtual void reset(double /*now_ms*/) {}
  // An ACK arrives, in recovery or not. Called before the window changes.
  virtual void on_every_ack(const AckEvent&) {}
  virtual void after_timeout(double /*now_ms*/) {}
  // Growth of cwnd in packets for each packet delivered.
  virtual double slow_start_increase() const { return 1; }
  virtual double congestion_avoidance_increase() const { return 1 / cwnd_; }
  virtual double ssthresh_after_loss() { return cwnd_ / 2; }

  // Sets ssthresh and cwnd, to at least two packets (RFC 5681, equation 4).
  void reduce_to(double packets) {
    ssthresh_ = std::max(packets, 2.0);
    cwnd_ = ssthresh_;
  }

 private:
  double initial_window_;
  double ssthresh_ = kNever;
  WindowBeforeReduction before_reduction_;
};

// Divides time into round trips. A round trip ends when a packet is acknowledged that was sent
// after it began.
class RoundTripTracker {
 public:
  // Starts a round trip with the next packet sent.
  void restart() { end_ = next_; }
  void on_sent(const SendEvent& sent) { next_ = sent.transmission_number + 1; }
  // Returns true if the ACK ends the round trip, and starts the next one.
  bool ends_round(const AckEvent& ack) {
    if (ack.transmission_number < end_) {
      return false;
    }
    end_ = next_;
    return true;
  }

 private:
  std::uint64_t next_ = 0;  // transmission numbers
  std::uint64_t end_ = 0;
};

}  // namespace remy
