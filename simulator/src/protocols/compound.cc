#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/elementary.h"
#include "protocols/ns2_linux.h"
#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// Compound TCP (Tan, Song, Zhang and Sridharan, MSR-TR-2005-86): the window is the sum of Reno's
// window (the report's cwnd) and of a delay-based window (dwnd), which grows while there is no
// queue. Sections and equations are the report's.
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
    dwnd_ = 0;
    ssthresh_ = kNever;
    base_rtt_ms_ = kNever;
    reset_rtt_samples();
    round_.restart();
    update_cwnd();
  }

  void on_ack(const AckEvent& ack) override {
    base_rtt_ms_ = std::min(base_rtt_ms_, ack.rtt_ms);
    rtt_sum_ms_ += ack.rtt_ms;
    ++rtt_samples_;
    const bool is_round_over = round_.ends_round(ack);
    if (!ack.in_recovery && ack.is_cwnd_limited && ack.newly_delivered > 0) {
      const auto packets = static_cast<double>(ack.newly_delivered);
      if (loss_window_ < ssthresh_) {
        // Section 4.1: slow start, with the loss-based window alone.
        loss_window_ = std::min(loss_window_ + packets, ssthresh_);
      } else {
        // Equation 2: cwnd grows by 1 / (cwnd + dwnd) per ACK.
        loss_window_ += packets / cwnd_;
        if (is_round_over) {
          update_dwnd();
        }
      }
      update_cwnd();
    }
    if (is_round_over) {
      reset_rtt_samples();
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      // Equation 5: dwnd = max(win (1 - beta) - cwnd / 2, 0), and cwnd halves.
      halve_loss_window();
      dwnd_ = std::max(cwnd_ * (1 - settings_.beta) - loss_window_, 0.0);
      update_cwnd();
    }
  }

  double slow_start_threshold() const override { return ssthresh_; }
  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      halve_loss_window();
    }
    // Section 4.4: dwnd is reset after a timeout.
    loss_window_ = 1;
    dwnd_ = 0;
    update_cwnd();
  }

  // RFC 5681, section 4.1: RW = min(IW, cwnd) after an idle period.
  void on_idle_timeout(double) override {
    loss_window_ = std::min(cwnd_, settings_.initial_window_packets);
    dwnd_ = 0;
    update_cwnd();
  }

  void lower_unused_window(double packets) override {
    ssthresh_ = std::max(ssthresh_, 0.75 * cwnd_);
    dwnd_ = std::min(dwnd_, packets);
    loss_window_ = packets - dwnd_;
    update_cwnd();
  }

  bool is_in_slow_start() const override { return loss_window_ < ssthresh_; }

  void on_sent(const SendEvent& sent) override { round_.on_sent(sent); }

 private:
  void halve_loss_window() {
    ssthresh_ = std::max(loss_window_ / 2, 2.0);
    loss_window_ = ssthresh_;
  }

  void update_cwnd() { cwnd_ = loss_window_ + dwnd_; }

  void reset_rtt_samples() {
    rtt_sum_ms_ = 0;
    rtt_samples_ = 0;
  }

  // Section 4.2: diff = (win / baseRTT - win / RTT) baseRTT, the packets in the queue. Equation 5:
  // dwnd grows by max(alpha win^k - 1, 0) if diff < gamma (cwnd contributes the one packet), else
  // it shrinks by zeta diff.
  void update_dwnd() {
    const double diff = cwnd_ * (1 - base_rtt_ms_ / (rtt_sum_ms_ / rtt_samples_));
    if (diff < settings_.gamma_packets) {
      dwnd_ += std::max(settings_.alpha * power(cwnd_, settings_.k) - 1, 0.0);
    } else {
      dwnd_ = std::max(dwnd_ - settings_.zeta * diff, 0.0);
    }
  }

  Settings settings_;
  double loss_window_ = 1;  // the report's cwnd
  double dwnd_ = 0;
  double ssthresh_ = kNever;
  double base_rtt_ms_ = kNever;
  double rtt_sum_ms_ = 0;
  double rtt_samples_ = 0;
  RoundTripTracker round_;
};

// tcp_compound of ns-2.35 by Castellani and Hemminger, derived from the module of Linux 2.6.17.
class LinuxCompound : public Ns2Linux {
 public:
  explicit LinuxCompound(double initial_window_packets) : Ns2Linux(initial_window_packets) {}

 private:
  static constexpr std::uint64_t kAlphaShift = 3;         // 1/8
  static constexpr std::uint64_t kGammaHalfPackets = 60;  // 30 packets

  void init(double) override {
    has_started_ = false;
    round_.start(snd_nxt());
    loss_window_ = snd_cwnd();
    dwnd_ = 0;
  }

  // The module starts with the first ACK, whose RTT sample it discards.
  void pkts_acked(const AckEvent& ack) override {
    if (!has_started_) {
      has_started_ = true;
      round_.reset_base_rtt();
      round_.restart(snd_nxt());
      loss_window_ = snd_cwnd();
      dwnd_ = 0;
      return;
    }
    round_.add_sample(ack.rtt_ms);
  }

  void cong_avoid(const AckEvent& ack) override {
    // The base class has reduced the sum of the two windows. The loss-based window absorbs the
    // reduction if it is large enough; otherwise the delay-based window is reset.
    if (loss_window_ + dwnd_ > snd_cwnd()) {
      if (loss_window_ > snd_cwnd() || dwnd_ > snd_cwnd()) {
        loss_window_ = snd_cwnd();
        dwnd_ = 0;
      } else {
        loss_window_ = snd_cwnd() - dwnd_;
      }
    }
    if (!is_cwnd_limited(ack)) {
      return;
    }
    if (loss_window_ <= snd_ssthresh() || count_ack()) {
      ++loss_window_;
    }
    if (round_.is_over(snd_una())) {
      if (round_.start_next(snd_nxt())) {
        update_dwnd();
      }
      round_.reset_samples();
    }
    set_cwnd(loss_window_ + dwnd_);
  }

  // Equation 5 with the packets of the last round trip in place of win, in half packets.
  void update_dwnd() {
    const std::uint64_t diff = round_.diff_half_packets();
    if (diff < kGammaHalfPackets) {
      const auto packets = static_cast<double>(round_.packets());
      const auto root =
          static_cast<std::uint64_t>(std::sqrt(std::sqrt(packets * packets * packets)));
      dwnd_ += std::max<std::uint64_t>(root >> kAlphaShift, 1) - 1;
    } else {
      dwnd_ = (2 * dwnd_ - std::min(diff, 2 * dwnd_)) / 2;
    }
  }

  std::uint64_t ssthresh() override { return reno_ssthresh(); }
  std::uint64_t min_cwnd() const override { return reno_min_cwnd(); }
  void set_state() override {
    if (state() == State::kOpen) {
      round_.restart(snd_nxt());
    }
  }

  VegasRound round_;
  bool has_started_ = false;
  std::uint64_t loss_window_ = 1;
  std::uint64_t dwnd_ = 0;
};

}  // namespace

Protocol compound() {
  return {
      .name = "compound",
      .title = "Compound TCP",
      .variants =
          {{
               .name = "paper",
               .source = "Tan, Song, Zhang and Sridharan, MSR-TR-2005-86 (2005)",
               .parameters =
                   {initial_window_packets(10),
                    {"alpha", "dwnd grows by alpha win^k per RTT", 0.125, 0.001, 10},
                    {"beta", "fraction of the window by which a loss reduces it", 0.5, 0.01, 0.99},
                    {"k", "dwnd grows by alpha win^k per RTT", 0.75, 0, 1},
                    {"gamma_packets", "queued packets from which on dwnd shrinks", 30, 1, 10'000},
                    {"zeta", "packets by which dwnd then shrinks per queued packet", 1, 0.01, 100}},
           },
           {
               .name = "linux",
               .source = "tcp_compound of ns-2.35 (2007)",
               .parameters = {initial_window_packets(2)},
           }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        if (values.variant() == "linux") {
          return std::make_unique<LinuxCompound>(values["initial_window_packets"]);
        }
        return std::make_unique<PaperCompound>(
            PaperCompound::Settings{.initial_window_packets = values["initial_window_packets"],
                                    .alpha = values["alpha"],
                                    .beta = values["beta"],
                                    .k = values["k"],
                                    .gamma_packets = values["gamma_packets"],
                                    .zeta = values["zeta"]});
      },
  };
}

}  // namespace remy
