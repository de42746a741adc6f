#include <algorithm>

#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// TCP-Illinois (Liu, Basar and Srikant 2008): AIMD whose increase alpha falls, and whose decrease
// beta rises, with the average queueing delay d_a. Sections and equations are the paper's.
class Illinois : public Reno {
 public:
  explicit Illinois(double initial_window_packets) : Reno(initial_window_packets) {}

  void on_sent(const SendEvent& sent) override { round_.on_sent(sent); }

 private:
  // Section 5: the authors' parameters.
  static constexpr double kAlphaMax = 10;  // packets per RTT
  static constexpr double kAlphaMin = 0.3;
  static constexpr double kBetaMax = 0.5;  // fraction of the window
  static constexpr double kBetaMin = 0.125;
  static constexpr double kWindowThreshold = 15;  // W_thresh: Reno below it
  static constexpr int kTheta = 5;
  static constexpr double kD1 = 0.01;  // d_1, d_2 and d_3 as fractions of d_m
  static constexpr double kD2 = 0.1;
  static constexpr double kD3 = 0.8;

  void reset(double) override {
    min_rtt_ms_ = kNever;
    max_rtt_ms_ = 0;
    reset_adaptation();
  }

  void after_timeout(double) override { reset_adaptation(); }

  void reset_adaptation() {
    alpha_ = 1;
    beta_ = kBetaMax;
    low_delay_rounds_ = 0;
    was_delay_low_ = true;
    rtt_sum_ms_ = 0;
    rtt_samples_ = 0;
    round_.restart();
  }

  void on_every_ack(const AckEvent& ack) override {
    min_rtt_ms_ = std::min(min_rtt_ms_, ack.rtt_ms);
    max_rtt_ms_ = std::max(max_rtt_ms_, ack.rtt_ms);
    rtt_sum_ms_ += ack.rtt_ms;
    ++rtt_samples_;
    if (round_.ends_round(ack)) {
      adapt(rtt_sum_ms_ / rtt_samples_ - min_rtt_ms_, max_rtt_ms_ - min_rtt_ms_);
      rtt_sum_ms_ = 0;
      rtt_samples_ = 0;
    }
  }

  // Section 3, equations 3 to 6: alpha and beta as functions of the average queueing delay d_a and
  // the maximum queueing delay d_m.
  void adapt(double d_a_ms, double d_m_ms) {
    if (cwnd_ < kWindowThreshold) {
      alpha_ = 1;
      beta_ = kBetaMax;
      return;
    }
    alpha_ = alpha_at(d_a_ms, d_m_ms);
    const double d_2_ms = kD2 * d_m_ms;
    const double d_3_ms = kD3 * d_m_ms;
    if (d_a_ms <= d_2_ms) {
      beta_ = kBetaMin;
    } else if (d_a_ms < d_3_ms) {
      beta_ = kBetaMin + (kBetaMax - kBetaMin) * (d_a_ms - d_2_ms) / (d_3_ms - d_2_ms);
    } else {
      beta_ = kBetaMax;
    }
  }

  double alpha_at(double d_a_ms, double d_m_ms) {
    const double d_1_ms = kD1 * d_m_ms;
    if (d_a_ms <= d_1_ms) {
      // Section 5: alpha returns to its maximum only after theta round trips of low delay.
      if (!was_delay_low_ && ++low_delay_rounds_ < kTheta) {
        return alpha_;
      }
      was_delay_low_ = true;
      low_delay_rounds_ = 0;
      return kAlphaMax;
    }
    was_delay_low_ = false;
    low_delay_rounds_ = 0;
    // Equation 5: kappa_1 / (kappa_2 + d_a), which is alpha_max at d_1 and alpha_min at d_m.
    const double span_ms = d_m_ms - d_1_ms;
    const double beyond_ms = d_a_ms - d_1_ms;
    return kAlphaMax * kAlphaMin * span_ms /
           (kAlphaMin * span_ms + (kAlphaMax - kAlphaMin) * beyond_ms);
  }

  double congestion_avoidance_increase() const override { return alpha_ / cwnd_; }
  double ssthresh_after_loss() override { return cwnd_ * (1 - beta_); }

  RoundTripTracker round_;
  double min_rtt_ms_ = kNever;
  double max_rtt_ms_ = 0;
  double rtt_sum_ms_ = 0;
  double rtt_samples_ = 0;
  double alpha_ = 1;
  double beta_ = kBetaMax;
  int low_delay_rounds_ = 0;
  bool was_delay_low_ = true;
};

}  // namespace

Protocol illinois() {
  return {
      .name = "illinois",
      .title = "TCP-Illinois",
      .variants = {{
          .name = "paper",
          .source = "Liu, Basar and Srikant, \"TCP-Illinois\" (2008)",
          .parameters = {initial_window_packets(10)},
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Illinois>(values["initial_window_packets"]);
      },
  };
}

}  // namespace remy
