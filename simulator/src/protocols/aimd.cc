#include <algorithm>

#include "protocols/protocol.h"

namespace remy {

namespace {

// Additive increase, multiplicative decrease, as RFC 9438, section 5, compares with: the window
// grows by `increase` packets an RTT and is multiplied by `decrease` at a loss.
class Aimd : public CongestionController {
 public:
  Aimd(double increase, double decrease, double initial_window)
      : increase_(increase), decrease_(decrease), initial_window_(initial_window) {}

  void start(double) override {
    cwnd_ = initial_window_;
    threshold_ = kNoThreshold;
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_acked > 0 && !ack.in_recovery && ack.is_cwnd_limited) {
      cwnd_ += cwnd_ < threshold_ ? 1 : increase_ / cwnd_;
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      threshold_ = std::max(cwnd_ * decrease_, 2.0);
      cwnd_ = threshold_;
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      threshold_ = std::max(cwnd_ * decrease_, 2.0);
    }
    cwnd_ = 1;
  }

 private:
  static constexpr double kNoThreshold = 1e9;

  double increase_;
  double decrease_;
  double initial_window_;
  double threshold_ = kNoThreshold;
};

}  // namespace

Protocol aimd() {
  return {
      .name = "aimd",
      .title = "AIMD",
      .variants = {{
          .name = "aimd",
          .source = "RFC 9438, section 5",
          .parameters = {{"increase_packets", "growth of the window in an RTT", 1, 1e-3, 1e3},
                         {"decrease_factor", "of the window at a loss", 0.5, 0.01, 0.99},
                         {"initial_window_packets", "window at the start", 10, 1, 1000}},
      }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Aimd>(chosen["increase_packets"], chosen["decrease_factor"],
                                      chosen["initial_window_packets"]);
      },
  };
}

}  // namespace remy
