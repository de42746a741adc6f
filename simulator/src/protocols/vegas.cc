#include <algorithm>
#include <cmath>
#include <cstdint>

#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"
#include "protocols/window_reduction.h"

namespace remy {

namespace {

// TCP Vegas (Brakmo and Peterson 1995) as in ns-2's own agent (tcp/tcp-vegas.cc): once per RTT it
// adjusts the window to keep between alpha and beta packets in the queue. The paper's fine-grained
// timeouts are not implemented: the transport detects losses.
class Ns2Vegas : public CongestionController {
 public:
  struct Settings {
    double initial_window_packets;
    double alpha_packets;
    double beta_packets;
    double gamma_packets;
  };

  explicit Ns2Vegas(const Settings& settings) : settings_(settings) {}

  void start(double) override {
    cwnd_ = settings_.initial_window_packets;
    ssthresh_ = kNever;
    base_rtt_ms_ = kNever;
    increase_ = 0;
    grows_this_rtt_ = true;
    reset_rtt_samples();
    // Nothing is in flight: packets of an earlier connection are forgotten.
    snd_una_ = snd_nxt_;
    round_start_ = snd_nxt_;
  }

  void on_ack(const AckEvent& ack) override {
    snd_una_ += ack.newly_acked;
    if (ack.newly_acked == 0) {
      return;
    }
    // A packet sent in this round trip is acknowledged: the next one begins, in recovery too.
    if (snd_una_ > round_start_) {
      if (!ack.in_recovery) {
        adjust_window(ack.rtt_ms);
      }
      reset_rtt_samples();
      round_start_ = snd_nxt_;
    }
    if (ack.in_recovery) {
      return;
    }
    if (increase_ >= 1 && cwnd_ >= ssthresh_) {
      increase_ = 0;
    }
    // The window grows only if the sender uses it.
    if (increase_ > 0 && cwnd_ - in_flight() <= 2) {
      cwnd_ += increase_;
    }
    rtt_sum_ms_ += ack.rtt_ms;
    ++rtt_samples_;
    base_rtt_ms_ = std::min(base_rtt_ms_, ack.rtt_ms);
  }

  // Reduces the window by a quarter only, as the queue is short, and leaves slow start.
  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      const double window = std::floor(cwnd_);
      cwnd_ = window <= 3 ? 2 : window - std::floor(window / 4);
      ssthresh_ = 2;
    }
  }

  double slow_start_threshold() const override { return ssthresh_; }
  void on_timeout(const TimeoutEvent&) override { restart_slow_start(); }
  // An idle period is treated as a timeout.
  void on_idle_timeout(double) override { restart_slow_start(); }

  void lower_unused_window(double packets) override { lower_unused(cwnd_, ssthresh_, packets); }

  bool is_in_slow_start() const override { return cwnd_ < ssthresh_; }

  void on_sent(const SendEvent& sent) override { snd_nxt_ += sent.is_retransmission ? 0 : 1; }

 private:
  void restart_slow_start() {
    ssthresh_ = std::max(std::floor(cwnd_ / 2), 2.0);
    cwnd_ = 2;
  }

  double in_flight() const { return static_cast<double>(snd_nxt_ - snd_una_); }

  void reset_rtt_samples() {
    rtt_sum_ms_ = 0;
    rtt_samples_ = 0;
  }

  void adjust_window(double last_rtt_ms) {
    const double rtt_ms = rtt_samples_ > 0 ? rtt_sum_ms_ / rtt_samples_ : last_rtt_ms;
    const auto packets = static_cast<double>(snd_nxt_ - round_start_);
    // A single packet per round trip meets no queue of its own.
    if (rtt_ms < base_rtt_ms_ || packets <= 1) {
      base_rtt_ms_ = rtt_ms;
    }
    // Section 3.2: diff = (expected - actual) * baseRTT, rounded: the packets in the queue.
    const double diff =
        std::trunc((in_flight() / base_rtt_ms_ - packets / rtt_ms) * base_rtt_ms_ + 0.5);
    if (cwnd_ < ssthresh_) {
      slow_start(diff);
    } else if (diff > settings_.beta_packets) {
      cwnd_ = std::max(cwnd_ - 1, 2.0);
      increase_ = 0;
    } else {
      increase_ = diff < settings_.alpha_packets ? 1 / cwnd_ : 0;
    }
  }

  // Section 3.3: doubles every other RTT, so that the rates can be compared in between.
  void slow_start(double diff) {
    grows_this_rtt_ = !grows_this_rtt_;
    if (!grows_this_rtt_) {
      increase_ = 0;
    } else if (diff > settings_.gamma_packets) {
      ssthresh_ = 2;
      cwnd_ = std::max(cwnd_ - cwnd_ / 8, 2.0);
      increase_ = 0;
    } else {
      increase_ = 1;
    }
  }

  Settings settings_;
  double ssthresh_ = kNever;
  double base_rtt_ms_ = kNever;
  double increase_ = 0;  // of cwnd, for each ACK of this round trip
  double rtt_sum_ms_ = 0;
  double rtt_samples_ = 0;
  bool grows_this_rtt_ = true;
  std::uint64_t snd_nxt_ = 0;  // sequence numbers, which connections do not reset
  std::uint64_t snd_una_ = 0;
  std::uint64_t round_start_ = 0;
};

// tcp_vegas of Linux 2.6.22, as ns-2.35 runs it. Linux 6.18 has the same rules. Unlike the module,
// the window grows only while the sender uses it (RFC 9002, section 7.8).
class LinuxVegas : public Ns2Linux {
 public:
  struct Settings {
    double initial_window_packets;
    double alpha_packets;
    double beta_packets;
    double gamma_packets;
  };

  explicit LinuxVegas(const Settings& settings)
      : Ns2Linux(settings.initial_window_packets),
        alpha_half_packets_(half_packets(settings.alpha_packets)),
        beta_half_packets_(half_packets(settings.beta_packets)),
        gamma_half_packets_(half_packets(settings.gamma_packets)) {}

 private:
  static std::uint64_t half_packets(double packets) {
    return static_cast<std::uint64_t>(2 * packets);
  }

  void init(double) override {
    has_started_ = false;
    round_.start(snd_nxt());
  }

  void pkts_acked(const AckEvent& ack) override {
    if (!has_started_) {
      has_started_ = true;
      round_.reset_base_rtt();
      round_.restart(snd_nxt());
      round_window_ = snd_cwnd();
    }
    if (ack.newly_acked > 0) {
      round_.add_sample(ack.rtt_ms);
    }
  }

  void cong_avoid(const AckEvent& ack) override {
    if (state() != State::kOpen) {
      reno_cong_avoid(ack);
      return;
    }
    if (!round_.is_over(snd_una())) {
      if (is_in_slow_start() && ack.is_cwnd_limited) {
        slow_start();
      }
      return;
    }
    const std::uint64_t round_window = round_window_;
    const bool has_samples = round_.start_next(snd_nxt());
    round_window_ = snd_cwnd();
    if (has_samples) {
      adjust(round_window, ack.is_cwnd_limited);
    } else {
      reno_cong_avoid(ack);
    }
    round_.reset_samples();
  }

  void adjust(std::uint64_t round_window, bool may_grow) {
    const std::uint64_t diff = round_.diff_half_packets();
    if (is_in_slow_start()) {
      // The rate exceeds the path's: the window falls to the target. One packet compensates for
      // rounding down.
      if (diff > gamma_half_packets_) {
        set_ssthresh(2);
        set_cwnd(std::min(snd_cwnd(), round_.target_half_packets() / 2 + 1));
      }
      if (may_grow) {
        slow_start();
      }
    } else if (diff > beta_half_packets_) {
      step_towards(round_window - 1);
    } else if (diff < alpha_half_packets_) {
      step_towards(may_grow ? round_window + 1 : std::min(round_window, snd_cwnd()));
    } else {
      step_towards(may_grow ? round_window : std::min(round_window, snd_cwnd()));
    }
    set_cwnd(std::max<std::uint64_t>(snd_cwnd(), 2));
  }

  void step_towards(std::uint64_t packets) {
    if (packets != snd_cwnd()) {
      set_cwnd(packets > snd_cwnd() ? snd_cwnd() + 1 : snd_cwnd() - 1);
    }
  }

  std::uint64_t ssthresh() override { return reno_ssthresh(); }
  std::uint64_t min_cwnd() const override { return reno_min_cwnd(); }
  void set_state() override {
    if (state() == State::kOpen) {
      round_.restart(snd_nxt());
    }
  }

  std::uint64_t alpha_half_packets_;
  std::uint64_t beta_half_packets_;
  std::uint64_t gamma_half_packets_;
  VegasRound round_;
  bool has_started_ = false;
  std::uint64_t round_window_ = 0;
};

}  // namespace

Protocol vegas() {
  const auto parameters = [](double initial_window, double alpha, double beta) {
    return std::vector<Parameter>{
        initial_window_packets(initial_window),
        {"alpha_packets", "least packets that it keeps in the queue", alpha, 0, 1000},
        {"beta_packets", "most packets that it keeps in the queue", beta, 0, 1000},
        {"gamma_packets", "packets in the queue that end slow start", 1, 0, 1000}};
  };
  return {
      .name = "vegas",
      .title = "TCP Vegas",
      .variants = {{"ns-2", "Brakmo and Peterson (1995), as in ns-2.35", parameters(2, 1, 3)},
                   {"linux", "Linux 2.6.22, tcp_vegas (2007)", parameters(2, 2, 4)}},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        const auto make = [&values]<class Vegas>() {
          return std::make_unique<Vegas>(
              typename Vegas::Settings{.initial_window_packets = values["initial_window_packets"],
                                       .alpha_packets = values["alpha_packets"],
                                       .beta_packets = values["beta_packets"],
                                       .gamma_packets = values["gamma_packets"]});
        };
        if (values.variant() == "linux") {
          return make.operator()<LinuxVegas>();
        }
        return make.operator()<Ns2Vegas>();
      },
  };
}

}  // namespace remy
