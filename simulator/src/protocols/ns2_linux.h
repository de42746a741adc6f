#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "senders/congestion_controller.h"

namespace remy {

// Runs a congestion control module of Linux 2.6.22 as ns-2.35 does (tcp/tcp-linux.cc): windows are
// whole packets, there are three states, and the module's operations are called in ns-2's order.
// undo_cwnd is missing, as ns-2 never calls it.
class Ns2Linux : public CongestionController {
 public:
  void start(double now_ms) final {
    // Nothing is in flight: packets of an earlier connection are forgotten.
    snd_una_ = snd_nxt_;
    state_ = State::kOpen;
    high_seq_ = 0;
    snd_ssthresh_ = kInfiniteSsthresh;
    reset_ack_counts();
    set_cwnd(initial_window_);
    init(now_ms);
  }

  void on_ack(const AckEvent& ack) final {
    snd_una_ += ack.newly_acked;
    packets_acked_ += ack.newly_acked;
    pkts_acked(ack);
    // The window grows (in slow start) in the state Loss, but not in Recovery.
    if (ack.newly_acked > 0 && state_ != State::kRecovery) {
      cong_avoid(ack);
    }
    if (state_ != State::kOpen && snd_una_ >= high_seq_) {
      // The window returns to ssthresh, limited to avoid a burst.
      if (snd_cwnd_ < snd_ssthresh_) {
        set_cwnd(std::min(snd_ssthresh_, ack.in_flight + kMaxBurst));
      }
      enter(State::kOpen);
    }
  }

  void on_loss(const LossEvent& loss) final {
    if (loss.starts_recovery) {
      high_seq_ = snd_nxt_;
      snd_ssthresh_ = ssthresh();
      reset_ack_counts();
      set_cwnd(min_cwnd());
      enter(State::kRecovery);
    }
  }

  // Each timeout reduces ssthresh, repeated ones included.
  double slow_start_threshold() const override { return static_cast<double>(snd_ssthresh_); }
  void on_timeout(const TimeoutEvent&) final {
    high_seq_ = snd_nxt_;
    snd_ssthresh_ = ssthresh();
    reset_ack_counts();
    set_cwnd(1);
    enter(State::kLoss);
  }

  // An idle period of one RTO restores the initial window and keeps ssthresh.
  void on_idle_timeout(double) final { set_cwnd(initial_window_); }

  void lower_unused_window(double packets) final {
    snd_ssthresh_ = std::max(snd_ssthresh_, snd_cwnd_ * 3 / 4);
    set_cwnd(static_cast<std::uint64_t>(packets));
  }

  bool is_in_slow_start() const final { return snd_cwnd_ <= snd_ssthresh_; }

  void on_sent(const SendEvent& sent) final { snd_nxt_ += sent.is_retransmission ? 0 : 1; }

 protected:
  enum class State { kOpen, kRecovery, kLoss };

  explicit Ns2Linux(double initial_window_packets)
      : initial_window_(static_cast<std::uint64_t>(initial_window_packets)) {}

  // The module's operations (tcp_congestion_ops).
  virtual void init(double now_ms) = 0;
  virtual void pkts_acked(const AckEvent& ack) = 0;  // called first for each ACK
  virtual void cong_avoid(const AckEvent& ack) = 0;
  virtual std::uint64_t ssthresh() = 0;
  virtual std::uint64_t min_cwnd() const = 0;
  virtual void set_state() = 0;

  void set_cwnd(std::uint64_t packets) {
    snd_cwnd_ = packets;
    cwnd_ = static_cast<double>(packets);
  }
  bool is_cwnd_limited(const AckEvent& ack) const { return ack.prior_in_flight >= snd_cwnd_; }

  // tcp_slow_start: one packet per ACK, however many packets the ACK acknowledges.
  void slow_start() {
    packets_acked_ = 0;
    snd_cwnd_cnt_ += snd_cwnd_;
    while (snd_cwnd_cnt_ >= snd_cwnd_) {
      snd_cwnd_cnt_ -= snd_cwnd_;
      set_cwnd(snd_cwnd_ + 1);
    }
  }

  // tcp_cong_avoid_ai: the window grows by one packet per `acks` + 1 ACKs.
  void cong_avoid_ai(std::uint64_t acks) {
    if (snd_cwnd_cnt_ >= acks) {
      set_cwnd(snd_cwnd_ + 1);
      snd_cwnd_cnt_ = 0;
    } else {
      ++snd_cwnd_cnt_;
    }
  }

  // Counts an ACK. Returns true once per window of ACKs.
  bool count_ack() {
    snd_cwnd_cnt_ += snd_cwnd_cnt_ < snd_cwnd_ ? 1 : 0;
    const bool is_due = snd_cwnd_cnt_ >= snd_cwnd_;
    snd_cwnd_cnt_ = is_due ? 0 : snd_cwnd_cnt_;
    return is_due;
  }

  // tcp_reno_cong_avoid with appropriate byte counting (RFC 3465).
  void reno_cong_avoid(const AckEvent& ack) {
    if (!is_cwnd_limited(ack)) {
      return;
    }
    if (is_in_slow_start()) {
      slow_start();
    } else if (packets_acked_ >= snd_cwnd_) {
      packets_acked_ -= snd_cwnd_;
      set_cwnd(snd_cwnd_ + 1);
    }
  }

  // Reno's ssthresh is half the window, and its window in recovery is half of ssthresh.
  std::uint64_t reno_ssthresh() const { return std::max<std::uint64_t>(snd_cwnd_ / 2, 2); }
  std::uint64_t reno_min_cwnd() const { return snd_ssthresh_ / 2; }

  std::uint64_t snd_cwnd() const { return snd_cwnd_; }
  std::uint64_t snd_ssthresh() const { return snd_ssthresh_; }
  void set_ssthresh(std::uint64_t packets) { snd_ssthresh_ = packets; }
  // Sequence numbers in packets, which connections do not reset.
  std::uint64_t snd_nxt() const { return snd_nxt_; }
  std::uint64_t snd_una() const { return snd_una_; }
  State state() const { return state_; }

 private:
  static constexpr std::uint64_t kInfiniteSsthresh = std::numeric_limits<std::uint64_t>::max() / 2;
  static constexpr std::uint64_t kMaxBurst = 3;

  void reset_ack_counts() {
    snd_cwnd_cnt_ = 0;
    packets_acked_ = 0;
  }
  void enter(State state) {
    state_ = state;
    set_state();
  }

  std::uint64_t initial_window_;
  State state_ = State::kOpen;
  std::uint64_t snd_cwnd_ = 1;
  std::uint64_t snd_ssthresh_ = kInfiniteSsthresh;
  std::uint64_t snd_cwnd_cnt_ = 0;   // ACKs counted towards the next increase
  std::uint64_t packets_acked_ = 0;  // acknowledged packets, likewise
  std::uint64_t snd_nxt_ = 0;
  std::uint64_t snd_una_ = 0;
  std::uint64_t high_seq_ = 0;  // Recovery and Loss end when snd_una reaches it
};

// Round-trip measurements of tcp_vegas in Linux 2.6.22, which tcp_compound shares. A round trip
// ends when a packet is acknowledged that was sent after it began.
class VegasRound {
 public:
  static constexpr std::uint64_t kUnknown = 0x7fffffff;

  void reset_base_rtt() { base_rtt_us_ = kUnknown; }
  // A connection starts with this packet.
  void start(std::uint64_t snd_nxt) {
    *this = {};
    round_start_ = round_end_ = snd_nxt;
  }
  // Starts measuring after recovery. Keeps the start of the last round, so that the next one counts
  // the packets of recovery, too.
  void restart(std::uint64_t snd_nxt) {
    round_end_ = snd_nxt;
    reset_samples();
  }
  void add_sample(double rtt_ms) {
    const std::uint64_t rtt_us = static_cast<std::uint64_t>(rtt_ms * 1000) + 1;
    base_rtt_us_ = std::min(base_rtt_us_, rtt_us);
    min_rtt_us_ = std::min(min_rtt_us_, rtt_us);
    ++rtt_count_;
  }
  bool is_over(std::uint64_t snd_una) const { return snd_una > round_end_; }
  // Starts the next round. Returns true if the one that ends has more than two RTT samples, so that
  // at least one was not inflated by a delayed ACK.
  bool start_next(std::uint64_t snd_nxt) {
    packets_in_round_ = round_end_ - round_start_;
    round_start_ = round_end_;
    round_end_ = snd_nxt;
    return rtt_count_ > 2;
  }
  void reset_samples() {
    rtt_count_ = 0;
    min_rtt_us_ = kUnknown;
  }

  // Packets sent in the last round. In half packets: the window that would give the same rate
  // without a queue, and the difference, which is queued.
  std::uint64_t packets() const { return packets_in_round_; }
  std::uint64_t target_half_packets() const {
    return packets_in_round_ * base_rtt_us_ * 2 / min_rtt_us_;
  }
  std::uint64_t diff_half_packets() const { return packets_in_round_ * 2 - target_half_packets(); }

 private:
  std::uint64_t base_rtt_us_ = kUnknown;
  std::uint64_t min_rtt_us_ = kUnknown;
  std::uint64_t rtt_count_ = 0;
  std::uint64_t round_start_ = 0;
  std::uint64_t round_end_ = 0;
  std::uint64_t packets_in_round_ = 0;
};

}  // namespace remy
