#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/elementary.h"
#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"
#include "protocols/window_reduction.h"
#include "senders/cubic_growth.h"

namespace remy {

namespace {

// RFC 9438 in floating point. Sections are the RFC's.
class Rfc9438Cubic : public CongestionController {
 public:
  Rfc9438Cubic(double initial_window_packets, double c, double beta, bool has_fast_convergence)
      : CongestionController({.on_sent = false, .full_acks = false}),
        initial_window_(initial_window_packets),
        growth_(c, beta, has_fast_convergence),
        undo_{.growth = growth_} {}

  void start(double now_ms) override {
    cwnd_ = initial_window_;
    ssthresh_ = kNever;
    srtt_ms_ = 0;
    growth_.reset();
    undo_ = {.growth = growth_};
    last_active_ms_ = now_ms;
  }

  void on_ack(const AckEvent& ack) override {
    update_srtt(ack.now_ms, ack.rtt_ms, ack.is_cwnd_limited);
    if (!ack.in_recovery && ack.is_cwnd_limited && ack.newly_delivered > 0) {
      on_acked_packets(ack.now_ms, static_cast<double>(ack.newly_delivered));
    }
  }

  void on_in_order_ack(double now_ms, double rtt_ms, bool is_cwnd_limited) override {
    update_srtt(now_ms, rtt_ms, is_cwnd_limited);
    if (is_cwnd_limited) {
      on_acked_packets(now_ms, 1);
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      reduce_ssthresh();
      // Section 4.6: cwnd = ssthresh.
      cwnd_ = ssthresh_;
    }
  }

  double slow_start_threshold() const override { return ssthresh_; }
  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      reduce_ssthresh();
    }
    // Section 4.8: reduces as Reno does.
    cwnd_ = 1;
    growth_.on_timeout();
  }

  // RFC 5681, section 4.1: RW = min(IW, cwnd) after an idle period.
  void on_idle_timeout(double) override { cwnd_ = std::min(cwnd_, initial_window_); }

  void lower_unused_window(double packets) override { lower_unused(cwnd_, ssthresh_, packets); }

  // Section 4.9: the state from before the congestion event.
  void on_spurious_recovery() override {
    cwnd_ = std::max(cwnd_, undo_.cwnd);
    ssthresh_ = std::max(ssthresh_, undo_.ssthresh);
    growth_ = undo_.growth;
  }

  bool is_in_slow_start() const override { return cwnd_ < ssthresh_; }

  void on_transmit_start(double now_ms) override {
    growth_.delay_epoch(now_ms - last_active_ms_);
    last_active_ms_ = now_ms;
  }

 private:
  void update_srtt(double now_ms, double rtt_ms, bool is_cwnd_limited) {
    srtt_ms_ = srtt_ms_ > 0 ? srtt_ms_ + (rtt_ms - srtt_ms_) / 8 : rtt_ms;
    if (!is_cwnd_limited) {
      growth_.delay_epoch(now_ms - last_active_ms_);
    }
    last_active_ms_ = now_ms;
  }

  [[gnu::always_inline]] void on_acked_packets(double now_ms, double packets) {
    if (cwnd_ < ssthresh_) {
      // Section 4.10: slow start.
      cwnd_ += packets;
      if (cwnd_ <= ssthresh_) {
        return;
      }
      packets = cwnd_ - ssthresh_;
      cwnd_ = ssthresh_;
    }
    cwnd_ = growth_.increase(cwnd_, now_ms, packets, srtt_ms_);
  }

  void reduce_ssthresh() {
    undo_ = {cwnd_, ssthresh_, growth_};
    ssthresh_ = growth_.reduce(cwnd_);
  }

  double initial_window_;
  double ssthresh_ = kNever;
  double srtt_ms_ = 0;
  double last_active_ms_ = 0;
  CubicGrowth growth_;

  // Section 4.9.2, from before the last congestion event.
  struct Undo {
    double cwnd = 0;
    double ssthresh = 0;
    CubicGrowth growth;
  } undo_;
};

// Constants of both kernel versions (tcp_cubic.c): whole packets, binary fixed-point fractions, and
// time in ms.
constexpr std::uint64_t kBetaScale = 1024;
constexpr std::uint64_t kCScale = 41;  // C = 41 / 1024 * 10 = 0.4004
constexpr std::uint64_t kRttScale =
    kCScale * 10;  // C divided by 0.1 s, the RTT that the kernel assumes
constexpr std::uint64_t kTimeUnitsPerSecond = 1024;
constexpr std::uint64_t kCubeFactor = (1ULL << 40) / kRttScale;
// Larger offsets would overflow 64 bits when cubed. The bound is an epoch of four minutes.
constexpr std::uint64_t kMaxOffset = 1ULL << 18;

// The kernel's W_cubic in integers. The cube root is exact and rounded down, unlike the kernel's
// own (a table and one Newton step), whose error is 0.2 % on average.
class KernelWCubic {
 public:
  void start(std::uint64_t now_ms, std::uint64_t window, std::uint64_t w_max) {
    start_ms_ = now_ms;
    origin_point_ = std::max(window, w_max);
    k_ = static_cast<std::uint64_t>(
        cube_root(static_cast<double>(kCubeFactor * (origin_point_ - window))));
  }

  // The number of acknowledged packets for each packet by which the window grows (the kernel's
  // ca->cnt).
  std::uint64_t acks_per_packet(std::uint64_t now_ms, std::uint64_t min_rtt_ms,
                                std::uint64_t window) {
    const std::uint64_t t = (now_ms + min_rtt_ms - start_ms_) * kTimeUnitsPerSecond / 1000;
    is_beyond_k_ = t >= k_;
    const std::uint64_t offset = std::min(is_beyond_k_ ? t - k_ : k_ - t, kMaxOffset);
    const std::uint64_t distance = (kRttScale * offset * offset * offset) >> 40;
    const std::uint64_t target =
        is_beyond_k_ ? origin_point_ + distance : origin_point_ - std::min(distance, origin_point_);
    return target > window ? window / (target - window) : 100 * window;
  }

  bool is_beyond_k() const { return is_beyond_k_; }
  std::uint64_t start_ms() const { return start_ms_; }

 private:
  std::uint64_t start_ms_ = 0;
  std::uint64_t origin_point_ = 0;
  std::uint64_t k_ = 0;  // in 1/1024 s
  bool is_beyond_k_ = false;
};

// The kernel's estimate of Reno's window (ca->tcp_cwnd), in integers.
class KernelRenoEstimate {
 public:
  explicit KernelRenoEstimate(std::uint64_t beta)
      : acks_per_packet_(8 * (kBetaScale + beta) / 3 / (kBetaScale - beta)) {}

  void start(std::uint64_t window, std::uint64_t acks) {
    snd_cwnd_ = window;
    acks_ = acks;
  }
  void add_acks(std::uint64_t acks) { acks_ += acks; }

  // Reduces `acks_per_packet` if Reno's window would grow faster.
  std::uint64_t limit_acks_per_packet(std::uint64_t acks_per_packet, std::uint64_t window) {
    const std::uint64_t step = std::max<std::uint64_t>(window * acks_per_packet_ / 8, 1);
    if (acks_ > step) {
      const std::uint64_t packets = (acks_ - 1) / step;
      acks_ -= packets * step;
      snd_cwnd_ += packets;
    }
    return snd_cwnd_ > window ? std::min(acks_per_packet, window / (snd_cwnd_ - window))
                              : acks_per_packet;
  }

 private:
  std::uint64_t acks_per_packet_;  // ACKs per packet of growth and packet of window, in eighths
  std::uint64_t snd_cwnd_ = 0;
  std::uint64_t acks_ = 0;
};

// W_max after a loss at this window, with fast convergence.
std::uint64_t w_max_after_loss(std::uint64_t window, std::uint64_t w_max, std::uint64_t beta) {
  return window < w_max ? window * (kBetaScale + beta) / (2 * kBetaScale) : window;
}

std::uint64_t whole_ms(double ms) { return static_cast<std::uint64_t>(ms); }

// tcp_cubic 2.1 of Linux 2.6.22, as ns-2.35 runs it.
class Linux2622Cubic : public Ns2Linux {
 public:
  explicit Linux2622Cubic(double initial_window_packets)
      : Ns2Linux(initial_window_packets), reno_estimate_(kBeta) {}

 private:
  static constexpr std::uint64_t kBeta = 819;
  static constexpr std::uint64_t kMaxIncrease = 16;  // in packets per 100 ms
  static constexpr std::uint64_t kAcksBeforeLoss =
      50;  // ACKs per packet of growth before the first loss
  static constexpr std::uint64_t kStaleMs = 1000 / 32;
  static constexpr std::uint64_t kDrainMs = 1000;

  void init(double) override { reset(); }

  void pkts_acked(const AckEvent& ack) override {
    // delayed_ack: the average number of packets per ACK, in sixteenths. Integer rounding keeps
    // this filter at 31/16 or above even if every packet has its own ACK, so that the window grows
    // nearly twice as fast as W_cubic.
    if (ack.newly_acked > 0 && state() == State::kOpen) {
      delayed_ack_sixteenths_ =
          delayed_ack_sixteenths_ - (delayed_ack_sixteenths_ >> 4) + ack.newly_acked;
    }
  }

  void cong_avoid(const AckEvent& ack) override {
    now_ms_ = whole_ms(ack.now_ms);
    // Skipped if the ACK reports packets out of order.
    if (state() == State::kOpen && ack.newly_delivered <= ack.newly_acked) {
      update_delay_min(ack.sent_ms);
    }
    if (!is_cwnd_limited(ack)) {
      return;
    }
    if (is_in_slow_start()) {
      slow_start();
    } else {
      update_acks_per_packet();
      cong_avoid_ai(acks_per_packet_);
    }
  }

  std::uint64_t ssthresh() override {
    in_epoch_ = false;
    w_max_ = w_max_after_loss(snd_cwnd(), w_max_, kBeta);
    had_loss_ = true;
    return std::max<std::uint64_t>(snd_cwnd() * kBeta / kBetaScale, 2);
  }

  std::uint64_t min_cwnd() const override { return snd_ssthresh(); }

  void set_state() override {
    if (state() == State::kLoss) {
      reset();
    }
  }

  void reset() {
    acks_per_packet_ = 0;
    w_max_ = 0;
    had_loss_ = false;
    last_cwnd_ = 0;
    last_update_ms_ = 0;
    delay_min_eighth_ms_ = 0;
    in_epoch_ = false;
    delayed_ack_sixteenths_ = 2 << 4;
    reno_estimate_.start(0, 0);
  }

  // Updates the minimum RTT. Skips the first second of an epoch, in which the queue may still be
  // draining, and the first second of the simulation.
  void update_delay_min(double sent_ms) {
    if (now_ms_ - (in_epoch_ ? w_cubic_.start_ms() : 0) < kDrainMs) {
      return;
    }
    const std::uint64_t left_ms = whole_ms(sent_ms + 0.5);
    const std::uint64_t delay =
        std::max<std::uint64_t>((now_ms_ - std::min(now_ms_, left_ms)) << 3, 1);
    if (delay_min_eighth_ms_ == 0 || delay_min_eighth_ms_ > delay) {
      delay_min_eighth_ms_ = delay;
    }
  }

  void update_acks_per_packet() {
    reno_estimate_.add_acks(1);
    // Recomputed only if the window has changed or kStaleMs have passed.
    if (last_cwnd_ == snd_cwnd() && now_ms_ - last_update_ms_ <= kStaleMs) {
      return;
    }
    last_cwnd_ = snd_cwnd();
    last_update_ms_ = now_ms_;
    if (!in_epoch_) {
      in_epoch_ = true;
      w_cubic_.start(now_ms_, snd_cwnd(), w_max_);
      reno_estimate_.start(snd_cwnd(), 1);
    }
    std::uint64_t acks = w_cubic_.acks_per_packet(now_ms_, delay_min_eighth_ms_ >> 3, snd_cwnd());
    // Above W_max the window grows by at most kMaxIncrease packets per 100 ms.
    if (delay_min_eighth_ms_ > 0 && w_cubic_.is_beyond_k()) {
      acks = std::max(acks, snd_cwnd() * 8000 / (10 * kMaxIncrease * delay_min_eighth_ms_));
    }
    if (!had_loss_) {
      acks = kAcksBeforeLoss;
    }
    acks = reno_estimate_.limit_acks_per_packet(acks, snd_cwnd());
    acks_per_packet_ = std::max<std::uint64_t>((acks << 4) / delayed_ack_sixteenths_, 1);
  }

  KernelWCubic w_cubic_;
  KernelRenoEstimate reno_estimate_;
  std::uint64_t now_ms_ = 0;
  std::uint64_t acks_per_packet_ = 0;
  std::uint64_t w_max_ = 0;
  std::uint64_t last_cwnd_ = 0;
  std::uint64_t last_update_ms_ = 0;
  std::uint64_t delay_min_eighth_ms_ = 0;
  std::uint64_t delayed_ack_sixteenths_ = 2 << 4;
  bool in_epoch_ = false;
  bool had_loss_ = false;
};

// HyStart (Ha and Rhee 2011, "Taming the elephants") as in Linux 6.18: leaves slow start before it
// causes losses.
class HyStart {
 public:
  void restart(double now_ms, std::uint64_t snd_nxt) {
    round_start_ms_ = now_ms;
    last_ack_ms_ = now_ms;
    round_end_ = snd_nxt;
    round_min_rtt_ms_ = std::numeric_limits<double>::infinity();
    rtt_samples_ = 0;
  }

  // A round begins with the first ACK beyond the end of the last one, whatever the window (Linux
  // 6.14, commit 25c1a9ca53db). To be called for each ACK, before should_exit().
  void update_round(double now_ms, std::uint64_t snd_una, std::uint64_t snd_nxt) {
    if (snd_una > round_end_) {
      restart(now_ms, snd_nxt);
    }
  }

  // Returns true if slow start should end with this ACK.
  bool should_exit(double now_ms, double rtt_ms, double min_rtt_ms) {
    // ACK train: if closely spaced ACKs span half the minimum RTT, the window fills the path.
    if (now_ms - last_ack_ms_ <= kTrainGapMs) {
      last_ack_ms_ = now_ms;
      if (now_ms - round_start_ms_ > min_rtt_ms / 2) {
        return true;
      }
    }
    // Delay increase: if the round's minimum RTT exceeds the overall minimum, a queue is growing.
    round_min_rtt_ms_ = std::min(round_min_rtt_ms_, rtt_ms);
    if (rtt_samples_ < kMinRttSamples) {
      ++rtt_samples_;
      return false;
    }
    return round_min_rtt_ms_ > min_rtt_ms + std::clamp(min_rtt_ms / 8, 4.0, 16.0);
  }

 private:
  static constexpr double kTrainGapMs = 2;
  static constexpr int kMinRttSamples = 8;

  double round_start_ms_ = 0;
  double last_ack_ms_ = 0;
  double round_min_rtt_ms_ = 0;
  std::uint64_t round_end_ = 0;
  int rtt_samples_ = 0;
};

// tcp_cubic of Linux 6.18: beta 0.7, byte counting, HyStart.
class LinuxCubic : public CongestionController {
 public:
  LinuxCubic(double initial_window_packets, bool has_hystart)
      : initial_window_(static_cast<std::uint64_t>(initial_window_packets)),
        has_hystart_(has_hystart),
        reno_estimate_(kBeta) {}

  void start(double now_ms) override {
    // Nothing is in flight: packets of an earlier connection are forgotten.
    snd_una_ = snd_nxt_;
    ssthresh_ = kInfiniteSsthresh;
    prior_cwnd_ = prior_ssthresh_ = 0;
    snd_cwnd_cnt_ = 0;
    set_cwnd(initial_window_);
    reset(now_ms);
  }

  void on_ack(const AckEvent& ack) override {
    now_ms_ = whole_ms(ack.now_ms);
    snd_una_ += ack.newly_acked;
    update_delay_min(ack);
    if (ack.in_recovery || !ack.is_cwnd_limited || ack.newly_delivered == 0) {
      return;
    }
    std::uint64_t packets = ack.newly_delivered;
    if (snd_cwnd_ < ssthresh_) {
      const std::uint64_t growth = std::min(packets, ssthresh_ - snd_cwnd_);
      set_cwnd(snd_cwnd_ + growth);
      packets -= growth;
      if (packets == 0) {
        return;
      }
    }
    update_acks_per_packet(packets);
    cong_avoid_ai(packets);
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      reduce_ssthresh();
      set_cwnd(ssthresh_);
    }
  }

  double slow_start_threshold() const override { return static_cast<double>(ssthresh_); }
  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      reduce_ssthresh();
    }
    snd_cwnd_cnt_ = 0;
    set_cwnd(1);
    reset(timeout.now_ms);
  }

  // After an idle period ssthresh is at least three quarters of the window (tcp_current_ssthresh).
  void on_idle_timeout(double) override {
    ssthresh_ = std::max(ssthresh_, snd_cwnd_ * 3 / 4);
    set_cwnd(std::min(snd_cwnd_, initial_window_));
  }

  void lower_unused_window(double packets) override {
    ssthresh_ = std::max(ssthresh_, snd_cwnd_ * 3 / 4);
    set_cwnd(static_cast<std::uint64_t>(packets));
  }

  // tcp_undo_cwnd_reduction, tcp_reno_undo_cwnd.
  void on_spurious_recovery() override {
    set_cwnd(std::max(snd_cwnd_, prior_cwnd_));
    ssthresh_ = std::max(ssthresh_, prior_ssthresh_);
  }

  bool is_in_slow_start() const override { return snd_cwnd_ < ssthresh_; }

  void on_sent(const SendEvent& sent) override {
    snd_nxt_ += sent.is_retransmission ? 0 : 1;
    // Idle time is excluded from the epoch.
    if (sent.in_flight <= 1 && in_epoch_) {
      idle_ms_ += whole_ms(sent.now_ms) - whole_ms(last_sent_ms_);
    }
    last_sent_ms_ = sent.now_ms;
  }

 private:
  static constexpr std::uint64_t kBeta = 717;
  static constexpr std::uint64_t kInfiniteSsthresh = std::numeric_limits<std::uint64_t>::max() / 2;
  static constexpr std::uint64_t kAcksBeforeLoss =
      20;  // most ACKs per packet of growth before the first loss
  static constexpr std::uint64_t kMinAcksPerPacket = 2;  // the window grows by at most half per RTT
  static constexpr std::uint64_t kStaleMs = 1000 / 32;
  static constexpr std::uint64_t kDrainMs = 1000;
  static constexpr std::uint64_t kHyStartLowWindow = 16;

  void set_cwnd(std::uint64_t packets) {
    snd_cwnd_ = packets;
    cwnd_ = static_cast<double>(packets);
  }

  void reduce_ssthresh() {
    prior_cwnd_ = snd_cwnd_;
    prior_ssthresh_ = ssthresh_;
    in_epoch_ = false;
    w_max_ = w_max_after_loss(snd_cwnd_, w_max_, kBeta);
    ssthresh_ = std::max<std::uint64_t>(snd_cwnd_ * kBeta / kBetaScale, 2);
  }

  void reset(double now_ms) {
    acks_per_packet_ = 1;
    w_max_ = 0;
    last_cwnd_ = 0;
    last_update_ms_ = 0;
    delay_min_ms_ = 0;
    in_epoch_ = false;
    idle_ms_ = 0;
    has_left_slow_start_ = false;
    hystart_.restart(now_ms, snd_nxt_);
  }

  // Time without idle periods.
  std::uint64_t active_ms() const { return now_ms_ - idle_ms_; }

  void update_delay_min(const AckEvent& ack) {
    // In the first second of an epoch the queue may still be draining.
    if (in_epoch_ && active_ms() - w_cubic_.start_ms() < kDrainMs) {
      return;
    }
    if (delay_min_ms_ == 0 || delay_min_ms_ > ack.rtt_ms) {
      delay_min_ms_ = ack.rtt_ms;
    }
    if (has_hystart_ && !has_left_slow_start_ && snd_cwnd_ < ssthresh_) {
      hystart_.update_round(ack.now_ms, snd_una_, snd_nxt_);
      if (snd_cwnd_ >= kHyStartLowWindow &&
          hystart_.should_exit(ack.now_ms, ack.rtt_ms, delay_min_ms_)) {
        has_left_slow_start_ = true;
        ssthresh_ = snd_cwnd_;
      }
    }
  }

  void update_acks_per_packet(std::uint64_t packets) {
    reno_estimate_.add_acks(packets);
    if (last_cwnd_ == snd_cwnd_ && now_ms_ - last_update_ms_ <= kStaleMs) {
      return;
    }
    // W_cubic is recomputed at most once per ms.
    if (!in_epoch_ || now_ms_ != last_update_ms_) {
      last_cwnd_ = snd_cwnd_;
      last_update_ms_ = now_ms_;
      if (!in_epoch_) {
        in_epoch_ = true;
        last_sent_ms_ = std::max(last_sent_ms_, static_cast<double>(now_ms_));
        w_cubic_.start(active_ms(), snd_cwnd_, w_max_);
        reno_estimate_.start(snd_cwnd_, packets);
      }
      acks_per_packet_ = w_cubic_.acks_per_packet(active_ms(), whole_ms(delay_min_ms_), snd_cwnd_);
      if (w_max_ == 0) {
        acks_per_packet_ = std::min(acks_per_packet_, kAcksBeforeLoss);
      }
    }
    acks_per_packet_ = std::max(reno_estimate_.limit_acks_per_packet(acks_per_packet_, snd_cwnd_),
                                kMinAcksPerPacket);
  }

  void cong_avoid_ai(std::uint64_t packets) {
    // As in tcp_cong_avoid_ai: credit accumulated at a larger divisor counts for one packet.
    if (snd_cwnd_cnt_ >= acks_per_packet_) {
      snd_cwnd_cnt_ = 0;
      set_cwnd(snd_cwnd_ + 1);
    }
    snd_cwnd_cnt_ += packets;
    if (snd_cwnd_cnt_ >= acks_per_packet_) {
      const std::uint64_t growth = snd_cwnd_cnt_ / acks_per_packet_;
      snd_cwnd_cnt_ -= growth * acks_per_packet_;
      set_cwnd(snd_cwnd_ + growth);
    }
  }

  std::uint64_t initial_window_;
  bool has_hystart_;
  std::uint64_t prior_cwnd_ = 0;  // before the last recovery
  std::uint64_t prior_ssthresh_ = 0;
  KernelWCubic w_cubic_;
  KernelRenoEstimate reno_estimate_;
  HyStart hystart_;
  std::uint64_t snd_cwnd_ = 1;
  std::uint64_t ssthresh_ = kInfiniteSsthresh;
  std::uint64_t snd_cwnd_cnt_ = 0;
  std::uint64_t acks_per_packet_ = 1;
  std::uint64_t w_max_ = 0;
  std::uint64_t last_cwnd_ = 0;
  std::uint64_t last_update_ms_ = 0;
  std::uint64_t now_ms_ = 0;
  std::uint64_t idle_ms_ = 0;
  std::uint64_t snd_nxt_ = 0;  // sequence numbers, which connections do not reset
  std::uint64_t snd_una_ = 0;
  double delay_min_ms_ = 0;
  double last_sent_ms_ = 0;  // or the start of the epoch if that is later
  bool in_epoch_ = false;
  bool has_left_slow_start_ = false;
};

}  // namespace

Protocol cubic() {
  return {
      .name = "cubic",
      .title = "CUBIC",
      .variants =
          {{
               .name = "rfc9438",
               .source = "RFC 9438 (2023)",
               .parameters = {initial_window_packets(10),
                              {"c", "scaling constant C in packets per s^3", 0.4, 0.001, 100},
                              {"beta", "factor that multiplies the window after a loss", 0.7, 0.1,
                               0.99},
                              {"fast_convergence", "1: fast convergence, 0: none", 1, 0, 1}},
           },
           {
               .name = "linux-2.6.22",
               .source = "Linux 2.6.22, tcp_cubic 2.1, as in ns-2.35 (2007)",
               .parameters = {initial_window_packets(2)},
           },
           {
               .name = "linux",
               .source = "Linux 6.18, tcp_cubic 2.3 (2025)",
               .parameters = {initial_window_packets(10),
                              {"hystart", "1: HyStart ends slow start, 0: only a loss does", 1, 0,
                               1}},
           }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        const double initial_window = values["initial_window_packets"];
        if (values.variant() == "rfc9438") {
          return std::make_unique<Rfc9438Cubic>(initial_window, values["c"], values["beta"],
                                                values["fast_convergence"] > 0);
        }
        if (values.variant() == "linux-2.6.22") {
          return std::make_unique<Linux2622Cubic>(initial_window);
        }
        return std::make_unique<LinuxCubic>(initial_window, values["hystart"] > 0);
      },
  };
}

}  // namespace remy
