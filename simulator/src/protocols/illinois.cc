#include <algorithm>

#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// Liu, Basar and Srikant 2008, "TCP-Illinois": an AIMD whose growth falls, and whose reduction
// rises, with the mean queueing delay. Sections are that paper's.
class Illinois : public Reno {
 public:
  explicit Illinois(double initial_window_packets) : Reno(initial_window_packets) {}

  void on_sent(const SendEvent& sent) override { round_.on_sent(sent); }

 private:
  // Section 5: what its authors chose.
  static constexpr double kLargestGrowth = 10;  // packets an RTT
  static constexpr double kSmallestGrowth = 0.3;
  static constexpr double kLargestReduction = 0.5;  // of the window
  static constexpr double kSmallestReduction = 0.125;
  static constexpr double kWindowThreshold = 15;  // below it is Reno
  static constexpr int kLowRounds = 5;            // theta
  static constexpr double kLowDelay = 0.01;       // d1, d2 and d3, of the largest delay
  static constexpr double kReductionDelay = 0.1;
  static constexpr double kHighDelay = 0.8;

  void restarted(double) override {
    minimum_rtt_ms_ = kNever;
    maximum_rtt_ms_ = 0;
    forget();
  }

  void expired(double) override { forget(); }

  void forget() {
    growth_ = 1;
    reduction_ = kLargestReduction;
    low_rounds_ = 0;
    is_low_ = true;
    sum_ms_ = 0;
    samples_ = 0;
    round_.restart();
  }

  void measured(const AckEvent& ack) override {
    minimum_rtt_ms_ = std::min(minimum_rtt_ms_, ack.rtt_ms);
    maximum_rtt_ms_ = std::max(maximum_rtt_ms_, ack.rtt_ms);
    sum_ms_ += ack.rtt_ms;
    ++samples_;
    if (round_.ends(ack)) {
      adapt(sum_ms_ / samples_ - minimum_rtt_ms_, maximum_rtt_ms_ - minimum_rtt_ms_);
      sum_ms_ = 0;
      samples_ = 0;
    }
  }

  // Section 3, equations 3 to 6.
  void adapt(double delay_ms, double largest_ms) {
    if (cwnd_ < kWindowThreshold) {
      growth_ = 1;
      reduction_ = kLargestReduction;
      return;
    }
    growth_ = growth_at(delay_ms, largest_ms);
    const double low_ms = kReductionDelay * largest_ms;
    const double high_ms = kHighDelay * largest_ms;
    if (delay_ms <= low_ms) {
      reduction_ = kSmallestReduction;
    } else if (delay_ms < high_ms) {
      reduction_ = kSmallestReduction + (kLargestReduction - kSmallestReduction) *
                                            (delay_ms - low_ms) / (high_ms - low_ms);
    } else {
      reduction_ = kLargestReduction;
    }
  }

  double growth_at(double delay_ms, double largest_ms) {
    const double low_ms = kLowDelay * largest_ms;
    if (delay_ms <= low_ms) {
      // Section 5: one round of little delay is no reason to be fast again, only theta of them.
      if (!is_low_ && ++low_rounds_ < kLowRounds) {
        return growth_;
      }
      is_low_ = true;
      low_rounds_ = 0;
      return kLargestGrowth;
    }
    is_low_ = false;
    low_rounds_ = 0;
    // Equation 5, k1 / (k2 + d): the largest growth at d1, the smallest at the largest delay.
    const double span_ms = largest_ms - low_ms;
    const double beyond_ms = delay_ms - low_ms;
    return kLargestGrowth * kSmallestGrowth * span_ms /
           (kSmallestGrowth * span_ms + (kLargestGrowth - kSmallestGrowth) * beyond_ms);
  }

  double avoidance_packets() const override { return growth_ / cwnd_; }
  double window_after_loss() override { return cwnd_ * (1 - reduction_); }

  Rounds round_;
  double minimum_rtt_ms_ = kNever;
  double maximum_rtt_ms_ = 0;
  double sum_ms_ = 0;
  double samples_ = 0;
  double growth_ = 1;
  double reduction_ = kLargestReduction;
  int low_rounds_ = 0;
  bool is_low_ = true;
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
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Illinois>(chosen["initial_window_packets"]);
      },
  };
}

}  // namespace remy
