#include <algorithm>
#include <limits>

#include "protocols/protocol.h"

namespace remy {

namespace {

// The small AIMD sender of Remy's trainer, against which the published TCP-aware table was designed
// (keithw/remy at 1524f7f9). Nothing is sent again, and its window outlasts off periods, with the
// end of its slow start.
class RemyAimd : public CongestionController {
 public:
  void start(double) override {
    cwnd_ = kInitialWindow;
    in_slow_start_ = true;
    last_loss_ms_ = -kNever;
    shows_gap_ = false;
  }

  // A packet for every ACK in slow start, then one for every window.
  void on_ack(const AckEvent& ack) override {
    if (shows_gap_) {
      reduce(ack);
    } else {
      cwnd_ += in_slow_start_ ? 1 : 1 / cwnd_;
    }
    shows_gap_ = false;
  }

  void on_loss(const LossEvent&) override { shows_gap_ = true; }
  void on_timeout(const TimeoutEvent&) override {}

 private:
  static constexpr double kInitialWindow = 1;

  // Half the window at a gap in the sequence numbers, but not twice within the round trip of the
  // packet that showed it.
  void reduce(const AckEvent& ack) {
    if (ack.now_ms - last_loss_ms_ > ack.rtt_ms) {
      cwnd_ = std::max(cwnd_ / 2, kInitialWindow);
      in_slow_start_ = false;
      last_loss_ms_ = ack.now_ms;
    }
  }

  bool in_slow_start_ = true;
  bool shows_gap_ = false;  // the ACK that comes next
  double last_loss_ms_ = -kNever;
};

}  // namespace

Protocol remy_aimd() {
  return {
      .name = "remy-aimd",
      .title = "AIMD of Remy's trainer",
      .variants = {{"remy", "keithw/remy at 1524f7f9", {}}},
      .needs = {.repairs = false},
      .make = [](const Chosen&, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<RemyAimd>();
      },
  };
}

}  // namespace remy
