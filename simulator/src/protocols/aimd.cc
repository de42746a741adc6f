#include <algorithm>

#include "protocols/protocol.h"

namespace remy {

namespace {

// Additive increase, multiplicative decrease, AIMD(alpha, beta) of RFC 9438, section 5: cwnd grows
// by alpha packets per RTT and is multiplied by beta after a loss.
class Aimd : public CongestionController {
 public:
  Aimd(double alpha, double beta, double initial_window)
      : alpha_(alpha), beta_(beta), initial_window_(initial_window) {}

  void start(double) override {
    cwnd_ = initial_window_;
    ssthresh_ = kInitialSsthresh;
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_acked > 0 && !ack.in_recovery && ack.is_cwnd_limited) {
      cwnd_ += cwnd_ < ssthresh_ ? 1 : alpha_ / cwnd_;
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      ssthresh_ = std::max(cwnd_ * beta_, 2.0);
      cwnd_ = ssthresh_;
    }
  }

  double slow_start_threshold() const override { return ssthresh_; }
  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      ssthresh_ = std::max(cwnd_ * beta_, 2.0);
    }
    cwnd_ = 1;
  }

  // RFC 5681, section 4.1: RW = min(IW, cwnd) after an idle period.
  void on_idle_timeout(double) override { cwnd_ = std::min(cwnd_, initial_window_); }

 private:
  static constexpr double kInitialSsthresh = 1e9;

  double alpha_;
  double beta_;
  double initial_window_;
  double ssthresh_ = kInitialSsthresh;
};

}  // namespace

Protocol aimd() {
  return {
      .name = "aimd",
      .title = "AIMD",
      .variants = {{
          .name = "aimd",
          .source = "RFC 9438, section 5",
          .parameters = {{"increase_packets", "additive increase alpha of the window in an RTT", 1,
                          1e-3, 1e3},
                         {"decrease_factor", "factor beta that multiplies the window at a loss",
                          0.5, 0.01, 0.99},
                         {"initial_window_packets", "window at the start", 10, 1, 1000}},
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Aimd>(values["increase_packets"], values["decrease_factor"],
                                      values["initial_window_packets"]);
      },
  };
}

}  // namespace remy
