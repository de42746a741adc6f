#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "senders/congestion_controller.h"

namespace remy {

// What carries a congestion control module of Linux 2.6.22 in ns-2.35 (tcp/tcp-linux.cc): whole
// packets, three states, and the order in which a module is asked. Undoing a loss that was none is
// not among it: nothing there calls it.
class Ns2Linux : public CongestionController {
 public:
  void start(double now_ms) final {
    state_ = State::kOpen;
    recover_ = 0;
    threshold_ = kNoThreshold;
    forget_credit();
    set_window(initial_window_);
    restarted(now_ms);
  }

  void on_ack(const AckEvent& ack) final {
    acknowledged_ += ack.newly_acked;
    reno_packets_ += ack.newly_acked;
    measured(ack);
    // The window grows in the state Loss, too, as a slow start, but not in Recovery.
    if (ack.newly_acked > 0 && state_ != State::kRecovery) {
      grow(ack);
    }
    if (state_ != State::kOpen && acknowledged_ >= recover_) {
      // Where the window had gone below the threshold, it comes back to it, but not with a burst.
      if (window_ < threshold_) {
        set_window(std::min(threshold_, ack.in_flight + kBurst));
      }
      enter(State::kOpen);
    }
  }

  void on_loss(const LossEvent& loss) final {
    if (loss.starts_recovery) {
      recover_ = sent_;
      threshold_ = reduced_threshold();
      forget_credit();
      set_window(recovery_window());
      enter(State::kRecovery);
    }
  }

  // Every one sets the threshold anew, also where the window is that of the last one.
  void on_timeout(const TimeoutEvent&) final {
    recover_ = sent_;
    threshold_ = reduced_threshold();
    forget_credit();
    set_window(1);
    enter(State::kLoss);
  }

  // A pause of a timeout brings the initial window back, but leaves the threshold.
  void on_idle_timeout(double) final { set_window(initial_window_); }

  void on_sent(const SendEvent& sent) final { sent_ += sent.is_retransmission ? 0 : 1; }

 protected:
  enum class State { kOpen, kRecovery, kLoss };

  explicit Ns2Linux(double initial_window_packets)
      : initial_window_(static_cast<std::uint64_t>(initial_window_packets)) {}

  // The module.
  virtual void restarted(double now_ms) = 0;
  virtual void measured(const AckEvent& ack) = 0;  // before anything else
  virtual void grow(const AckEvent& ack) = 0;
  virtual std::uint64_t reduced_threshold() = 0;
  virtual std::uint64_t recovery_window() const = 0;
  virtual void state_changed() = 0;

  void set_window(std::uint64_t packets) {
    window_ = packets;
    cwnd_ = static_cast<double>(packets);
  }
  bool is_full(const AckEvent& ack) const { return ack.prior_in_flight >= window_; }
  bool in_slow_start() const { return window_ <= threshold_; }

  // Slow start is by ACKs, not by the packets that they acknowledge.
  void slow_start() {
    reno_packets_ = 0;
    credit_ += window_;
    while (credit_ >= window_) {
      credit_ -= window_;
      set_window(window_ + 1);
    }
  }

  // A packet for so many ACKs and one.
  void grow_by_acks(std::uint64_t acks) {
    if (credit_ >= acks) {
      set_window(window_ + 1);
      credit_ = 0;
    } else {
      ++credit_;
    }
  }

  // A packet for as many ACKs as the window has packets; whether it is due.
  bool counts_to_window() {
    credit_ += credit_ < window_ ? 1 : 0;
    const bool is_due = credit_ >= window_;
    credit_ = is_due ? 0 : credit_;
    return is_due;
  }

  // Reno with appropriate byte counting (RFC 3465).
  void grow_as_reno(const AckEvent& ack) {
    if (!is_full(ack)) {
      return;
    }
    if (in_slow_start()) {
      slow_start();
    } else if (reno_packets_ >= window_) {
      reno_packets_ -= window_;
      set_window(window_ + 1);
    }
  }

  // Half the window, and recovery with a quarter of it.
  std::uint64_t reno_threshold() const { return std::max<std::uint64_t>(window_ / 2, 2); }
  std::uint64_t reno_recovery_window() const { return threshold_ / 2; }

  std::uint64_t window() const { return window_; }
  std::uint64_t threshold() const { return threshold_; }
  void set_threshold(std::uint64_t packets) { threshold_ = packets; }
  // Packets sent and acknowledged in order, over all time: both count from 0.
  std::uint64_t sent() const { return sent_; }
  std::uint64_t acknowledged() const { return acknowledged_; }
  State state() const { return state_; }

 private:
  static constexpr std::uint64_t kNoThreshold = std::numeric_limits<std::uint64_t>::max() / 2;
  static constexpr std::uint64_t kBurst = 3;

  void forget_credit() {
    credit_ = 0;
    reno_packets_ = 0;
  }
  void enter(State state) {
    state_ = state;
    state_changed();
  }

  std::uint64_t initial_window_;
  State state_ = State::kOpen;
  std::uint64_t window_ = 1;
  std::uint64_t threshold_ = kNoThreshold;
  std::uint64_t credit_ = 0;        // ACKs counted towards the next packet
  std::uint64_t reno_packets_ = 0;  // packets, likewise
  std::uint64_t sent_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t recover_ = 0;  // Recovery and Loss end when so many are acknowledged
};

// What Vegas measures in a round trip, which lasts until a packet is acknowledged beyond those that
// had been sent when it began, in Linux 2.6.22 and in Compound after it.
class VegasRound {
 public:
  static constexpr std::uint64_t kUnknown = 0x7fffffff;

  void forget_base() { base_us_ = kUnknown; }
  // After recovery only the end is new: the next round counts all that was sent since the last
  // began, recovery with it.
  void restart(std::uint64_t sent) {
    end_ = sent;
    clear();
  }
  void measure(double rtt_ms) {
    const std::uint64_t rtt_us = static_cast<std::uint64_t>(rtt_ms * 1000) + 1;
    base_us_ = std::min(base_us_, rtt_us);
    least_us_ = std::min(least_us_, rtt_us);
    ++samples_;
  }
  bool is_over(std::uint64_t acknowledged) const { return acknowledged > end_; }
  // The next begins. Whether this one has samples enough to be sure of one that no delayed ACK
  // spoilt.
  bool finish(std::uint64_t sent) {
    packets_ = end_ - begin_;
    begin_ = end_;
    end_ = sent;
    return samples_ > 2;
  }
  void clear() {
    samples_ = 0;
    least_us_ = kUnknown;
  }

  // Packets that were sent in the round that is over, and, in halves: how many would fill the path
  // at the rate that they had, and how many more there were.
  std::uint64_t packets() const { return packets_; }
  std::uint64_t target_halves() const { return packets_ * base_us_ * 2 / least_us_; }
  std::uint64_t excess_halves() const { return packets_ * 2 - target_halves(); }

 private:
  std::uint64_t base_us_ = kUnknown;
  std::uint64_t least_us_ = kUnknown;
  std::uint64_t samples_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t packets_ = 0;
};

}  // namespace remy
