#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/elementary.h"
#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

// RFC 9438 in real numbers. Sections are that document's.
class Rfc9438Cubic : public CongestionController {
 public:
  Rfc9438Cubic(double initial_window_packets, double c, double beta, bool has_fast_convergence)
      : CongestionController({.on_sent = false, .full_acks = false}),
        initial_window_(initial_window_packets),
        c_(c),
        beta_(beta),
        has_fast_convergence_(has_fast_convergence),
        // Section 4.3: what makes an AIMD of this beta as fast as Reno on average.
        alpha_(3 * (1 - beta) / (1 + beta)) {}

  void start(double now_ms) override {
    cwnd_ = initial_window_;
    threshold_ = kNever;
    maximum_ = 0;
    prior_ = 0;
    srtt_ms_ = 0;
    in_epoch_ = false;
    was_loss_ = false;
    active_ms_ = now_ms;
  }

  void on_ack(const AckEvent& ack) override {
    measure(ack.now_ms, ack.rtt_ms, ack.is_cwnd_limited);
    if (!ack.in_recovery && ack.is_cwnd_limited && ack.newly_delivered > 0) {
      grow(ack.now_ms, static_cast<double>(ack.newly_delivered));
    }
  }

  void on_in_order_ack(double now_ms, double rtt_ms, bool is_window_limited) override {
    measure(now_ms, rtt_ms, is_window_limited);
    if (is_window_limited) {
      grow(now_ms, 1);
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      reduce();
      // Section 4.6: the window is multiplied by beta, but never below two packets.
      cwnd_ = threshold_;
      was_loss_ = true;
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      reduce();
    }
    // Section 4.8: as Reno, and the curve of the next congestion avoidance starts at its bottom.
    cwnd_ = 1;
    in_epoch_ = false;
    was_loss_ = false;
  }

  // RFC 5681, section 4.1: after a pause no more than the initial window.
  void on_idle_timeout(double) override { cwnd_ = std::min(cwnd_, initial_window_); }

  void on_transmit_start(double now_ms) override {
    epoch_ms_ += now_ms - active_ms_;
    active_ms_ = now_ms;
  }

 private:
  void measure(double now_ms, double rtt_ms, bool is_window_limited) {
    srtt_ms_ = srtt_ms_ > 0 ? srtt_ms_ + (rtt_ms - srtt_ms_) / 8 : rtt_ms;
    // Section 5.8: time in which the application limits what is sent does not count.
    if (!is_window_limited) {
      epoch_ms_ += now_ms - active_ms_;
    }
    active_ms_ = now_ms;
  }

  [[gnu::always_inline]] void grow(double now_ms, double packets) {
    if (cwnd_ < threshold_) {
      // Section 4.10: slow start as ever.
      cwnd_ += packets;
      if (cwnd_ <= threshold_) {
        return;
      }
      packets = cwnd_ - threshold_;
      cwnd_ = threshold_;
    }
    avoid_congestion(now_ms, packets);
  }

  void reduce() {
    // Section 4.7, fast convergence: who did not get back to the last maximum leaves more room to
    // others.
    maximum_ = has_fast_convergence_ && cwnd_ < maximum_ ? cwnd_ * (1 + beta_) / 2 : cwnd_;
    prior_ = cwnd_;
    threshold_ = std::max(cwnd_ * beta_, 2.0);
    in_epoch_ = false;
  }

  [[gnu::always_inline]] void avoid_congestion(double now_ms, double packets) {
    if (in_epoch_) [[likely]] {
      climb(now_ms, packets);
    } else {
      begin_epoch(now_ms, packets);
    }
  }

  [[gnu::always_inline]] void climb(double now_ms, double packets) {
    const double window = cwnd_;
    const double t_s = (now_ms - epoch_ms_) / 1000;
    // Section 4.2: the window that the curve has in an RTT, but never less than now, and never more
    // than half as much again.
    const double target = std::clamp(curve(t_s + srtt_ms_ / 1000), window, 1.5 * window);
    // Section 4.3: what Reno would have; as fast as Reno itself from the window on at which the
    // last loss was.
    double growth = packets;
    if (reno_ < prior_) [[likely]] {
      growth *= alpha_;
    }
    reno_ += growth / window;
    // Sections 4.4 and 4.5: towards the target, by a packet's share for a packet. No step goes
    // beyond it where an ACK stands for more packets than the window has.
    cwnd_ = window + (target - window) * std::min(packets / window, 1.0);
    if (curve(t_s) < reno_) {
      cwnd_ = std::max(cwnd_, reno_);
    }
  }

  [[gnu::noinline]] void begin_epoch(double now_ms, double packets) {
    in_epoch_ = true;
    epoch_ms_ = now_ms;
    // Section 4.2: K is the time that the curve takes back to the maximum; 0 where no loss was
    // before, and the maximum is then where congestion avoidance begins (section 4.8).
    if (was_loss_) {
      k_s_ = cube_root((maximum_ - cwnd_) / c_);
    } else {
      k_s_ = 0;
      maximum_ = cwnd_;
    }
    reno_ = cwnd_;
    climb(now_ms, packets);
  }

  // Section 4.2, figure 1: W_cubic(t) = C (t - K)^3 + W_max.
  double curve(double t_s) const {
    const double from_k_s = t_s - k_s_;
    return c_ * from_k_s * from_k_s * from_k_s + maximum_;
  }

  double initial_window_;
  double c_;
  double beta_;
  bool has_fast_convergence_;
  double alpha_;
  double threshold_ = kNever;
  double maximum_ = 0;  // W_max
  double prior_ = 0;    // cwnd_prior
  double reno_ = 0;     // W_est
  double k_s_ = 0;
  double srtt_ms_ = 0;
  double epoch_ms_ = 0;
  double active_ms_ = 0;
  bool in_epoch_ = false;
  bool was_loss_ = false;
};

// What both kernels reckon with: whole packets, binary fractions, and time in ms.
constexpr std::uint64_t kBetaScale = 1024;
constexpr std::uint64_t kCurveScale = 41;              // of 1024: C = 0.4004
constexpr std::uint64_t kRttScale = kCurveScale * 10;  // with 0.1 s for an RTT
constexpr std::uint64_t kTimeUnitsPerSecond = 1024;
constexpr std::uint64_t kCubeFactor = (1ULL << 40) / kRttScale;
// Beyond, the cube does not fit its 64 bits; such an epoch lasts four minutes.
constexpr std::uint64_t kLongestOffset = 1ULL << 18;

// The kernel's cubic curve. The kernel's cube root, from a table and one step of Newton's, is 0.2 %
// off on average; this one is rounded down.
class KernelCurve {
 public:
  void start(std::uint64_t now_ms, std::uint64_t window, std::uint64_t last_maximum) {
    start_ms_ = now_ms;
    origin_ = std::max(window, last_maximum);
    k_ = static_cast<std::uint64_t>(
        cube_root(static_cast<double>(kCubeFactor * (origin_ - window))));
  }

  // Packets acknowledged for each packet by which the window grows.
  std::uint64_t acks_per_packet(std::uint64_t now_ms, std::uint64_t minimum_rtt_ms,
                                std::uint64_t window) {
    const std::uint64_t t = (now_ms + minimum_rtt_ms - start_ms_) * kTimeUnitsPerSecond / 1000;
    is_beyond_k_ = t >= k_;
    const std::uint64_t offset = std::min(is_beyond_k_ ? t - k_ : k_ - t, kLongestOffset);
    const std::uint64_t distance = (kRttScale * offset * offset * offset) >> 40;
    const std::uint64_t target =
        is_beyond_k_ ? origin_ + distance : origin_ - std::min(distance, origin_);
    return target > window ? window / (target - window) : 100 * window;
  }

  bool is_beyond_k() const { return is_beyond_k_; }
  std::uint64_t start_ms() const { return start_ms_; }

 private:
  std::uint64_t start_ms_ = 0;
  std::uint64_t origin_ = 0;
  std::uint64_t k_ = 0;  // in 1/1024 s
  bool is_beyond_k_ = false;
};

// What Reno would have, in the kernel's numbers.
class KernelReno {
 public:
  explicit KernelReno(std::uint64_t beta)
      : acks_per_packet_(8 * (kBetaScale + beta) / 3 / (kBetaScale - beta)) {}

  void start(std::uint64_t window, std::uint64_t acks) {
    window_ = window;
    acks_ = acks;
  }
  void count(std::uint64_t acks) { acks_ += acks; }

  // The same, but as fast as Reno where that is faster.
  std::uint64_t limit(std::uint64_t acks_per_packet, std::uint64_t window) {
    const std::uint64_t step = std::max<std::uint64_t>(window * acks_per_packet_ / 8, 1);
    if (acks_ > step) {
      const std::uint64_t packets = (acks_ - 1) / step;
      acks_ -= packets * step;
      window_ += packets;
    }
    return window_ > window ? std::min(acks_per_packet, window / (window_ - window))
                            : acks_per_packet;
  }

 private:
  std::uint64_t acks_per_packet_;  // and per packet of the window, in eighths
  std::uint64_t window_ = 0;
  std::uint64_t acks_ = 0;
};

// The maximum that the curve aims at, after a loss at this window (fast convergence).
std::uint64_t next_maximum(std::uint64_t window, std::uint64_t last_maximum, std::uint64_t beta) {
  return window < last_maximum ? window * (kBetaScale + beta) / (2 * kBetaScale) : window;
}

std::uint64_t whole_ms(double ms) { return static_cast<std::uint64_t>(ms); }

// tcp_cubic 2.1 of Linux 2.6.22, as ns-2.35 runs it.
class Linux2622Cubic : public Ns2Linux {
 public:
  explicit Linux2622Cubic(double initial_window_packets)
      : Ns2Linux(initial_window_packets), reno_(kBeta) {}

 private:
  static constexpr std::uint64_t kBeta = 819;
  static constexpr std::uint64_t kMaximumIncrease = 16;  // packets in 100 ms
  static constexpr std::uint64_t kUnknownAcks = 50;      // per packet, before the first loss
  static constexpr std::uint64_t kStaleMs = 1000 / 32;
  static constexpr std::uint64_t kFreshMs = 1000;

  void restarted(double) override { forget(); }

  void measured(const AckEvent& ack) override {
    // Packets an ACK, in sixteenths, by a filter of whole numbers: where each packet has its ACK it
    // comes down from 2 no further than to 31/16, so that the window grows nearly twice as fast as
    // the curve says.
    if (ack.newly_acked > 0 && state() == State::kOpen) {
      ack_ratio_ = ack_ratio_ - (ack_ratio_ >> 4) + ack.newly_acked;
    }
  }

  void grow(const AckEvent& ack) override {
    now_ms_ = whole_ms(ack.now_ms);
    // Not while something is out of order.
    if (state() == State::kOpen && ack.newly_delivered <= ack.newly_acked) {
      measure_delay(ack.sent_ms);
    }
    if (!is_full(ack)) {
      return;
    }
    if (in_slow_start()) {
      slow_start();
    } else {
      update();
      grow_by_acks(acks_per_packet_);
    }
  }

  std::uint64_t reduced_threshold() override {
    in_epoch_ = false;
    maximum_ = next_maximum(window(), maximum_, kBeta);
    has_lost_ = true;
    return std::max<std::uint64_t>(window() * kBeta / kBetaScale, 2);
  }

  std::uint64_t recovery_window() const override { return threshold(); }

  void state_changed() override {
    if (state() == State::kLoss) {
      forget();
    }
  }

  void forget() {
    acks_per_packet_ = 0;
    maximum_ = 0;
    has_lost_ = false;
    updated_window_ = 0;
    updated_ms_ = 0;
    minimum_rtt_eighths_ms_ = 0;
    in_epoch_ = false;
    ack_ratio_ = 2 << 4;
    reno_.start(0, 0);
  }

  // The first second of an epoch, in which a queue may still drain, does not count; nor does the
  // first of all.
  void measure_delay(double sent_ms) {
    if (now_ms_ - (in_epoch_ ? curve_.start_ms() : 0) < kFreshMs) {
      return;
    }
    const std::uint64_t left_ms = whole_ms(sent_ms + 0.5);
    const std::uint64_t delay =
        std::max<std::uint64_t>((now_ms_ - std::min(now_ms_, left_ms)) << 3, 1);
    if (minimum_rtt_eighths_ms_ == 0 || minimum_rtt_eighths_ms_ > delay) {
      minimum_rtt_eighths_ms_ = delay;
    }
  }

  void update() {
    reno_.count(1);
    // Nothing is new unless the window has changed, or some ms have passed.
    if (updated_window_ == window() && now_ms_ - updated_ms_ <= kStaleMs) {
      return;
    }
    updated_window_ = window();
    updated_ms_ = now_ms_;
    if (!in_epoch_) {
      in_epoch_ = true;
      curve_.start(now_ms_, window(), maximum_);
      reno_.start(window(), 1);
    }
    std::uint64_t acks = curve_.acks_per_packet(now_ms_, minimum_rtt_eighths_ms_ >> 3, window());
    // Beyond the last maximum it grows no faster than by so many packets in 100 ms.
    if (minimum_rtt_eighths_ms_ > 0 && curve_.is_beyond_k()) {
      acks = std::max(acks, window() * 8000 / (10 * kMaximumIncrease * minimum_rtt_eighths_ms_));
    }
    if (!has_lost_) {
      acks = kUnknownAcks;
    }
    acks = reno_.limit(acks, window());
    acks_per_packet_ = std::max<std::uint64_t>((acks << 4) / ack_ratio_, 1);
  }

  KernelCurve curve_;
  KernelReno reno_;
  std::uint64_t now_ms_ = 0;
  std::uint64_t acks_per_packet_ = 0;
  std::uint64_t maximum_ = 0;
  std::uint64_t updated_window_ = 0;
  std::uint64_t updated_ms_ = 0;
  std::uint64_t minimum_rtt_eighths_ms_ = 0;
  std::uint64_t ack_ratio_ = 2 << 4;
  bool in_epoch_ = false;
  bool has_lost_ = false;
};

// HyStart as in today's kernel (Ha and Rhee 2011, "Taming the elephants"): slow start ends before
// it loses packets.
class HyStart {
 public:
  void restart(double now_ms, std::uint64_t sent) {
    round_ms_ = now_ms;
    last_ack_ms_ = now_ms;
    round_end_ = sent;
    round_rtt_ms_ = std::numeric_limits<double>::infinity();
    samples_ = 0;
  }

  // Whether this ACK ends it.
  bool ends(double now_ms, double rtt_ms, double minimum_rtt_ms, std::uint64_t acknowledged,
            std::uint64_t sent) {
    if (acknowledged > round_end_) {
      restart(now_ms, sent);
    }
    // A train of ACKs, none late, that is as long as half an RTT: the window fills the path.
    if (now_ms - last_ack_ms_ <= kTrainGapMs) {
      last_ack_ms_ = now_ms;
      if (now_ms - round_ms_ > minimum_rtt_ms / 2) {
        return true;
      }
    }
    // The least RTT of a round's first samples is above the least of all: a queue grows.
    round_rtt_ms_ = std::min(round_rtt_ms_, rtt_ms);
    if (samples_ < kSamples) {
      ++samples_;
      return false;
    }
    return round_rtt_ms_ > minimum_rtt_ms + std::clamp(minimum_rtt_ms / 8, 4.0, 16.0);
  }

 private:
  static constexpr double kTrainGapMs = 2;
  static constexpr int kSamples = 8;

  double round_ms_ = 0;
  double last_ack_ms_ = 0;
  double round_rtt_ms_ = 0;
  std::uint64_t round_end_ = 0;
  int samples_ = 0;
};

// tcp_cubic of today's Linux (6.18): beta 0.7, byte counting, HyStart.
class LinuxCubic : public CongestionController {
 public:
  LinuxCubic(double initial_window_packets, bool has_hystart)
      : initial_window_(static_cast<std::uint64_t>(initial_window_packets)),
        has_hystart_(has_hystart),
        reno_(kBeta) {}

  void start(double now_ms) override {
    threshold_ = kNoThreshold;
    credit_ = 0;
    set_window(initial_window_);
    forget(now_ms);
  }

  void on_ack(const AckEvent& ack) override {
    now_ms_ = whole_ms(ack.now_ms);
    acknowledged_ += ack.newly_acked;
    measure(ack);
    if (ack.in_recovery || !ack.is_cwnd_limited || ack.newly_delivered == 0) {
      return;
    }
    std::uint64_t packets = ack.newly_delivered;
    if (window_ < threshold_) {
      const std::uint64_t growth = std::min(packets, threshold_ - window_);
      set_window(window_ + growth);
      packets -= growth;
      if (packets == 0) {
        return;
      }
    }
    update(packets);
    grow_by(packets);
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      reduce();
      set_window(threshold_);
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      reduce();
    }
    credit_ = 0;
    set_window(1);
    forget(timeout.now_ms);
  }

  // After a pause slow start goes on to three quarters of the window.
  void on_idle_timeout(double) override {
    threshold_ = std::max(threshold_, window_ * 3 / 4);
    set_window(std::min(window_, initial_window_));
  }

  void on_sent(const SendEvent& sent) override {
    sent_ += sent.is_retransmission ? 0 : 1;
    // After a pause the epoch goes on where it was.
    if (sent.in_flight <= 1 && in_epoch_) {
      idle_ms_ += whole_ms(sent.now_ms) - whole_ms(last_sent_ms_);
    }
    last_sent_ms_ = sent.now_ms;
  }

 private:
  static constexpr std::uint64_t kBeta = 717;
  static constexpr std::uint64_t kNoThreshold = std::numeric_limits<std::uint64_t>::max() / 2;
  static constexpr std::uint64_t kUnknownAcks = 20;  // per packet at most, before the first loss
  static constexpr std::uint64_t kFewestAcks = 2;    // the window grows by half in an RTT at most
  static constexpr std::uint64_t kStaleMs = 1000 / 32;
  static constexpr std::uint64_t kFreshMs = 1000;
  static constexpr std::uint64_t kHyStartWindow = 16;

  void set_window(std::uint64_t packets) {
    window_ = packets;
    cwnd_ = static_cast<double>(packets);
  }

  void reduce() {
    in_epoch_ = false;
    maximum_ = next_maximum(window_, maximum_, kBeta);
    threshold_ = std::max<std::uint64_t>(window_ * kBeta / kBetaScale, 2);
  }

  void forget(double now_ms) {
    acks_per_packet_ = 1;
    maximum_ = 0;
    updated_window_ = 0;
    updated_ms_ = 0;
    minimum_rtt_ms_ = 0;
    in_epoch_ = false;
    idle_ms_ = 0;
    is_found_ = false;
    hystart_.restart(now_ms, sent_);
  }

  // Time less all pauses.
  std::uint64_t busy_ms() const { return now_ms_ - idle_ms_; }

  void measure(const AckEvent& ack) {
    // As above: a queue may still drain from before the loss.
    if (in_epoch_ && busy_ms() - curve_.start_ms() < kFreshMs) {
      return;
    }
    if (minimum_rtt_ms_ == 0 || minimum_rtt_ms_ > ack.rtt_ms) {
      minimum_rtt_ms_ = ack.rtt_ms;
    }
    if (has_hystart_ && !is_found_ && window_ < threshold_ && window_ >= kHyStartWindow &&
        hystart_.ends(ack.now_ms, ack.rtt_ms, minimum_rtt_ms_, acknowledged_, sent_)) {
      is_found_ = true;
      threshold_ = window_;
    }
  }

  void update(std::uint64_t packets) {
    reno_.count(packets);
    if (updated_window_ == window_ && now_ms_ - updated_ms_ <= kStaleMs) {
      return;
    }
    // The curve has nothing new within a ms.
    if (!in_epoch_ || now_ms_ != updated_ms_) {
      updated_window_ = window_;
      updated_ms_ = now_ms_;
      if (!in_epoch_) {
        in_epoch_ = true;
        last_sent_ms_ = std::max(last_sent_ms_, static_cast<double>(now_ms_));
        curve_.start(busy_ms(), window_, maximum_);
        reno_.start(window_, packets);
      }
      acks_per_packet_ = curve_.acks_per_packet(busy_ms(), whole_ms(minimum_rtt_ms_), window_);
      if (maximum_ == 0) {
        acks_per_packet_ = std::min(acks_per_packet_, kUnknownAcks);
      }
    }
    acks_per_packet_ = std::max(reno_.limit(acks_per_packet_, window_), kFewestAcks);
  }

  void grow_by(std::uint64_t packets) {
    // What was saved up for a slower growth counts for one packet.
    if (credit_ >= acks_per_packet_) {
      credit_ = 0;
      set_window(window_ + 1);
    }
    credit_ += packets;
    if (credit_ >= acks_per_packet_) {
      const std::uint64_t growth = credit_ / acks_per_packet_;
      credit_ -= growth * acks_per_packet_;
      set_window(window_ + growth);
    }
  }

  std::uint64_t initial_window_;
  bool has_hystart_;
  KernelCurve curve_;
  KernelReno reno_;
  HyStart hystart_;
  std::uint64_t window_ = 1;
  std::uint64_t threshold_ = kNoThreshold;
  std::uint64_t credit_ = 0;
  std::uint64_t acks_per_packet_ = 1;
  std::uint64_t maximum_ = 0;
  std::uint64_t updated_window_ = 0;
  std::uint64_t updated_ms_ = 0;
  std::uint64_t now_ms_ = 0;
  std::uint64_t idle_ms_ = 0;
  std::uint64_t sent_ = 0;  // in order, over all time, as acknowledged_
  std::uint64_t acknowledged_ = 0;
  double minimum_rtt_ms_ = 0;
  double last_sent_ms_ = 0;  // or when the epoch began, if that was later
  bool in_epoch_ = false;
  bool is_found_ = false;
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
                              {"c", "packets per s^3", 0.4, 0.001, 100},
                              {"beta", "of the window that a loss leaves", 0.7, 0.1, 0.99},
                              {"fast_convergence",
                               "1: a window that did not recover makes room, 0: not", 1, 0, 1}},
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
                              {"hystart", "1: slow start ends by HyStart, 0: by a loss", 1, 0, 1}},
           }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        const double initial_window = chosen["initial_window_packets"];
        if (chosen.variant() == "rfc9438") {
          return std::make_unique<Rfc9438Cubic>(initial_window, chosen["c"], chosen["beta"],
                                                chosen["fast_convergence"] > 0);
        }
        if (chosen.variant() == "linux-2.6.22") {
          return std::make_unique<Linux2622Cubic>(initial_window);
        }
        return std::make_unique<LinuxCubic>(initial_window, chosen["hystart"] > 0);
      },
  };
}

}  // namespace remy
