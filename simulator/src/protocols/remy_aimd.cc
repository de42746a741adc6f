#include <algorithm>
#include <limits>

#include "protocols/protocol.h"

namespace remy {

namespace {

// The AIMD sender of Remy's trainer, against which the published TCP-aware table was designed
// (keithw/remy at 1524f7f9). It does not retransmit, and a transport without retransmission keeps
// one connection for all on periods: start() is called once, and window and slow-start state
// persist.
class RemyAimd : public CongestionController {
 public:
  void start(double) override {
    cwnd_ = kInitialWindow;
    in_slow_start_ = true;
    last_reduction_ms_ = -kNever;
    has_gap_ = false;
  }

  // Slow start: one packet per ACK; then one packet per window.
  void on_ack(const AckEvent& ack) override {
    if (has_gap_) {
      reduce(ack);
    } else {
      cwnd_ += in_slow_start_ ? 1 : 1 / cwnd_;
    }
    has_gap_ = false;
  }

  void on_loss(const LossEvent&) override { has_gap_ = true; }
  void on_timeout(const TimeoutEvent&) override {}

 private:
  static constexpr double kInitialWindow = 1;

  // Halves the window after a gap in the sequence numbers, but at most once within the RTT of the
  // packet that revealed the gap.
  void reduce(const AckEvent& ack) {
    if (ack.now_ms - last_reduction_ms_ > ack.rtt_ms) {
      cwnd_ = std::max(cwnd_ / 2, kInitialWindow);
      in_slow_start_ = false;
      last_reduction_ms_ = ack.now_ms;
    }
  }

  bool in_slow_start_ = true;
  bool has_gap_ = false;  // the next ACK reveals a loss
  double last_reduction_ms_ = -kNever;
};

}  // namespace

Protocol remy_aimd() {
  return {
      .name = "remy-aimd",
      .title = "AIMD of Remy's trainer",
      .variants = {{"remy", "keithw/remy at 1524f7f9", {}}},
      .needs = {.retransmits = false},
      .make = [](const ParameterValues&, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<RemyAimd>();
      },
  };
}

}  // namespace remy
