#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/elementary.h"
#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// Tan, Song, Zhang and Sridharan 2006 (MSR-TR-2005-86): Reno's window, and another beside it that
// grows while there is no queue. Sections are that report's.
class PaperCompound : public CongestionController {
 public:
  struct Settings {
    double initial_window_packets;
    double alpha;
    double beta;
    double k;
    double gamma_packets;
    double zeta;
  };

  explicit PaperCompound(const Settings& settings) : settings_(settings) {}

  void start(double) override {
    loss_window_ = settings_.initial_window_packets;
    delay_window_ = 0;
    threshold_ = kNever;
    base_ms_ = kNever;
    next_round();
    round_.restart();
    set_window();
  }

  void on_ack(const AckEvent& ack) override {
    base_ms_ = std::min(base_ms_, ack.rtt_ms);
    sum_ms_ += ack.rtt_ms;
    ++samples_;
    const bool is_round_over = round_.ends(ack);
    if (!ack.in_recovery && ack.is_cwnd_limited && ack.newly_delivered > 0) {
      const auto packets = static_cast<double>(ack.newly_delivered);
      if (loss_window_ < threshold_) {
        // Section 4.1: slow start as ever, with the loss-based window alone.
        loss_window_ = std::min(loss_window_ + packets, threshold_);
      } else {
        // Equation 2: cwnd + 1 / (cwnd + dwnd), for an ACK.
        loss_window_ += packets / cwnd_;
        if (is_round_over) {
          update_delay_window();
        }
      }
      set_window();
    }
    if (is_round_over) {
      next_round();
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      // Equation 5: dwnd = max(win (1 - beta) - cwnd / 2, 0), and Reno's window halves.
      reduce();
      delay_window_ = std::max(cwnd_ * (1 - settings_.beta) - loss_window_, 0.0);
      set_window();
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      reduce();
    }
    // Section 4.4: without the delay-based window.
    loss_window_ = 1;
    delay_window_ = 0;
    set_window();
  }

  // RFC 5681, section 4.1: after a pause no more than the initial window.
  void on_idle_timeout(double) override {
    loss_window_ = std::min(cwnd_, settings_.initial_window_packets);
    delay_window_ = 0;
    set_window();
  }

  void on_sent(const SendEvent& sent) override { round_.on_sent(sent); }

 private:
  void reduce() {
    threshold_ = std::max(loss_window_ / 2, 2.0);
    loss_window_ = threshold_;
  }

  void set_window() { cwnd_ = loss_window_ + delay_window_; }

  void next_round() {
    sum_ms_ = 0;
    samples_ = 0;
  }

  // Section 4.2: diff = (win / baseRTT - win / RTT) baseRTT, packets in the queue. Equation 5:
  // below gamma dwnd grows by max(alpha win^k - 1, 0), so that with Reno's packet the sum is that
  // of the whole; else it gives way by zeta diff.
  void update_delay_window() {
    const double diff = cwnd_ * (1 - base_ms_ / (sum_ms_ / samples_));
    if (diff < settings_.gamma_packets) {
      delay_window_ += std::max(settings_.alpha * power(cwnd_, settings_.k) - 1, 0.0);
    } else {
      delay_window_ = std::max(delay_window_ - settings_.zeta * diff, 0.0);
    }
  }

  Settings settings_;
  double loss_window_ = 1;   // cwnd
  double delay_window_ = 0;  // dwnd
  double threshold_ = kNever;
  double base_ms_ = kNever;
  double sum_ms_ = 0;
  double samples_ = 0;
  Rounds round_;
};

// The module of Castellani and Hemminger in ns-2.35, after the one in Linux 2.6.17.
class LinuxCompound : public Ns2Linux {
 public:
  explicit LinuxCompound(double initial_window_packets) : Ns2Linux(initial_window_packets) {}

 private:
  static constexpr std::uint64_t kAlphaShift = 3;    // 1/8
  static constexpr std::uint64_t kGammaHalves = 60;  // 30 packets

  void restarted(double) override { has_begun_ = false; }

  // It begins with the first ACK, whose sample is then forgotten.
  void measured(const AckEvent& ack) override {
    if (!has_begun_) {
      has_begun_ = true;
      round_.forget_base();
      round_.restart(sent());
      loss_window_ = window();
      delay_window_ = 0;
      return;
    }
    round_.measure(ack.rtt_ms);
  }

  void grow(const AckEvent& ack) override {
    // What has made the window smaller than both knows nothing of them: Reno's part gives way where
    // it can, else the other goes.
    if (loss_window_ + delay_window_ > window()) {
      if (loss_window_ > window() || delay_window_ > window()) {
        loss_window_ = window();
        delay_window_ = 0;
      } else {
        loss_window_ = window() - delay_window_;
      }
    }
    if (!is_full(ack)) {
      return;
    }
    if (loss_window_ <= threshold() || counts_to_window()) {
      ++loss_window_;
    }
    if (round_.is_over(acknowledged())) {
      if (round_.finish(sent())) {
        update_delay_window();
      }
      round_.clear();
    }
    set_window(loss_window_ + delay_window_);
  }

  // The paper's rule with the packets of the last round for a window, in halves.
  void update_delay_window() {
    const std::uint64_t excess = round_.excess_halves();
    if (excess < kGammaHalves) {
      const auto packets = static_cast<double>(round_.packets());
      const auto root =
          static_cast<std::uint64_t>(std::sqrt(std::sqrt(packets * packets * packets)));
      delay_window_ += std::max<std::uint64_t>(root >> kAlphaShift, 1) - 1;
    } else {
      delay_window_ = (2 * delay_window_ - std::min(excess, 2 * delay_window_)) / 2;
    }
  }

  std::uint64_t reduced_threshold() override { return reno_threshold(); }
  std::uint64_t recovery_window() const override { return reno_recovery_window(); }
  void state_changed() override {
    if (state() == State::kOpen) {
      round_.restart(sent());
    }
  }

  VegasRound round_;
  bool has_begun_ = false;
  std::uint64_t loss_window_ = 1;
  std::uint64_t delay_window_ = 0;
};

}  // namespace

Protocol compound() {
  return {
      .name = "compound",
      .title = "Compound TCP",
      .variants = {{
                       .name = "paper",
                       .source = "Tan, Song, Zhang and Sridharan, MSR-TR-2005-86 (2005)",
                       .parameters = {initial_window_packets(10),
                                      {"alpha", "growth is alpha win^k", 0.125, 0.001, 10},
                                      {"beta", "of the window that a loss takes", 0.5, 0.01, 0.99},
                                      {"k", "growth is alpha win^k", 0.75, 0, 1},
                                      {"gamma_packets", "queue at which it gives way", 30, 1,
                                       10'000},
                                      {"zeta", "packets by which it then does, for one queued", 1,
                                       0.01, 100}},
                   },
                   {
                       .name = "linux",
                       .source = "tcp_compound of ns-2.35 (2007)",
                       .parameters = {initial_window_packets(2)},
                   }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        if (chosen.variant() == "linux") {
          return std::make_unique<LinuxCompound>(chosen["initial_window_packets"]);
        }
        return std::make_unique<PaperCompound>(
            PaperCompound::Settings{.initial_window_packets = chosen["initial_window_packets"],
                                    .alpha = chosen["alpha"],
                                    .beta = chosen["beta"],
                                    .k = chosen["k"],
                                    .gamma_packets = chosen["gamma_packets"],
                                    .zeta = chosen["zeta"]});
      },
  };
}

}  // namespace remy
