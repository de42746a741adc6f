#include <algorithm>
#include <cmath>
#include <cstdint>

#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

// Brakmo and Peterson 1995, as ns-2's own agent has it (tcp/tcp-vegas.cc): once an RTT the packets
// in the queue are held between alpha and beta. Its fine-grained timeouts are not part of it; the
// transport finds losses as ever.
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
    threshold_ = kNever;
    base_ms_ = kNever;
    increase_ = 0;
    grows_this_rtt_ = true;
    next_round();
    round_start_ = sent_;
  }

  void on_ack(const AckEvent& ack) override {
    acknowledged_ += ack.newly_acked;
    if (ack.newly_acked == 0 || ack.in_recovery) {
      return;
    }
    // The first packet that was sent in this RTT is acknowledged: the next begins.
    if (acknowledged_ > round_start_) {
      decide(ack.rtt_ms);
      next_round();
      round_start_ = sent_;
    }
    if (increase_ >= 1 && cwnd_ >= threshold_) {
      increase_ = 0;
    }
    // Unless what is sent has not kept up with the window.
    if (increase_ > 0 && cwnd_ - outstanding() <= 2) {
      cwnd_ += increase_;
    }
    sum_ms_ += ack.rtt_ms;
    ++samples_;
    base_ms_ = std::min(base_ms_, ack.rtt_ms);
  }

  // Down by a quarter only, as the queue is short; and no slow start any more.
  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      const double window = std::floor(cwnd_);
      cwnd_ = window <= 3 ? 2 : window - std::floor(window / 4);
      threshold_ = 2;
    }
  }

  void on_timeout(const TimeoutEvent&) override { restart(); }
  // It makes no difference whether anything is in flight.
  void on_idle_timeout(double) override { restart(); }

  void on_sent(const SendEvent& sent) override { sent_ += sent.is_retransmission ? 0 : 1; }

 private:
  void restart() {
    threshold_ = std::max(std::floor(cwnd_ / 2), 2.0);
    cwnd_ = 2;
  }

  double outstanding() const { return static_cast<double>(sent_ - acknowledged_); }

  void next_round() {
    sum_ms_ = 0;
    samples_ = 0;
  }

  void decide(double last_rtt_ms) {
    const double rtt_ms = samples_ > 0 ? sum_ms_ / samples_ : last_rtt_ms;
    const auto packets = static_cast<double>(sent_ - round_start_);
    // A packet alone sees no queue of its own.
    if (rtt_ms < base_ms_ || packets <= 1) {
      base_ms_ = rtt_ms;
    }
    // Section 3.2: expected less actual rate, times the base RTT, rounded.
    const double queued =
        std::trunc((outstanding() / base_ms_ - packets / rtt_ms) * base_ms_ + 0.5);
    if (cwnd_ < threshold_) {
      slow_start(queued);
    } else if (queued > settings_.beta_packets) {
      cwnd_ = std::max(cwnd_ - 1, 2.0);
      increase_ = 0;
    } else {
      increase_ = queued < settings_.alpha_packets ? 1 / cwnd_ : 0;
    }
  }

  // Section 3.3: doubles every other RTT, so that in between the rates compare.
  void slow_start(double queued) {
    grows_this_rtt_ = !grows_this_rtt_;
    if (!grows_this_rtt_) {
      increase_ = 0;
    } else if (queued > settings_.gamma_packets) {
      threshold_ = 2;
      cwnd_ = std::max(cwnd_ - cwnd_ / 8, 2.0);
      increase_ = 0;
    } else {
      increase_ = 1;
    }
  }

  Settings settings_;
  double threshold_ = kNever;
  double base_ms_ = kNever;
  double increase_ = 0;  // of the window for each ACK of this RTT
  double sum_ms_ = 0;
  double samples_ = 0;
  bool grows_this_rtt_ = true;
  std::uint64_t sent_ = 0;  // in order, over all time, as acknowledged_
  std::uint64_t acknowledged_ = 0;
  std::uint64_t round_start_ = 0;
};

// tcp_vegas of Linux 2.6.22, as ns-2.35 runs it; today's has the same rules.
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
        alpha_halves_(halves(settings.alpha_packets)),
        beta_halves_(halves(settings.beta_packets)),
        gamma_halves_(halves(settings.gamma_packets)) {}

 private:
  static std::uint64_t halves(double packets) { return static_cast<std::uint64_t>(2 * packets); }

  void restarted(double) override { has_begun_ = false; }

  void measured(const AckEvent& ack) override {
    if (!has_begun_) {
      has_begun_ = true;
      round_.forget_base();
      round_.restart(sent());
      round_window_ = window();
    }
    if (ack.newly_acked > 0) {
      round_.measure(ack.rtt_ms);
    }
  }

  void grow(const AckEvent& ack) override {
    if (state() != State::kOpen) {
      grow_as_reno(ack);
      return;
    }
    if (!round_.is_over(acknowledged())) {
      if (in_slow_start()) {
        slow_start();
      }
      return;
    }
    const std::uint64_t round_window = round_window_;
    const bool has_samples = round_.finish(sent());
    round_window_ = window();
    if (has_samples) {
      adjust(round_window);
    } else {
      grow_as_reno(ack);
    }
    round_.clear();
  }

  void adjust(std::uint64_t round_window) {
    const std::uint64_t excess = round_.excess_halves();
    if (in_slow_start()) {
      // Faster than the path: to what it carries, and a packet that whole numbers would lose.
      if (excess > gamma_halves_) {
        set_threshold(2);
        set_window(std::min(window(), round_.target_halves() / 2 + 1));
      }
      slow_start();
    } else if (excess > beta_halves_) {
      move_towards(round_window - 1);
    } else if (excess < alpha_halves_) {
      move_towards(round_window + 1);
    } else {
      move_towards(round_window);
    }
    set_window(std::max<std::uint64_t>(window(), 2));
  }

  void move_towards(std::uint64_t packets) {
    if (packets != window()) {
      set_window(packets > window() ? window() + 1 : window() - 1);
    }
  }

  std::uint64_t reduced_threshold() override { return reno_threshold(); }
  std::uint64_t recovery_window() const override { return reno_recovery_window(); }
  void state_changed() override {
    if (state() == State::kOpen) {
      round_.restart(sent());
    }
  }

  std::uint64_t alpha_halves_;
  std::uint64_t beta_halves_;
  std::uint64_t gamma_halves_;
  VegasRound round_;
  bool has_begun_ = false;
  std::uint64_t round_window_ = 0;
};

}  // namespace

Protocol vegas() {
  const auto parameters = [](double initial_window, double alpha, double beta) {
    return std::vector<Parameter>{
        initial_window_packets(initial_window),
        {"alpha_packets", "in the queue at least", alpha, 0, 1000},
        {"beta_packets", "in the queue at most", beta, 0, 1000},
        {"gamma_packets", "in the queue that end slow start", 1, 0, 1000}};
  };
  return {
      .name = "vegas",
      .title = "TCP Vegas",
      .variants = {{"ns-2", "Brakmo and Peterson (1995), as in ns-2.35", parameters(2, 1, 3)},
                   {"linux", "Linux 2.6.22, tcp_vegas (2007)", parameters(2, 2, 4)}},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        const auto make = [&chosen]<class Vegas>() {
          return std::make_unique<Vegas>(
              typename Vegas::Settings{.initial_window_packets = chosen["initial_window_packets"],
                                       .alpha_packets = chosen["alpha_packets"],
                                       .beta_packets = chosen["beta_packets"],
                                       .gamma_packets = chosen["gamma_packets"]});
        };
        if (chosen.variant() == "linux") {
          return make.operator()<LinuxVegas>();
        }
        return make.operator()<Ns2Vegas>();
      },
  };
}

}  // namespace remy
