#include <algorithm>

#include "protocols/protocol.h"

namespace remy {

namespace {

// The sender of XCP (Katabi, Handley and Rohrs 2002, section 3.4): cwnd changes by the feedback of
// the routers (elements/xcp_router.h).
class Xcp : public CongestionController {
 public:
  explicit Xcp(double initial_window_packets) : initial_window_(initial_window_packets) {}

  // Routers grant no feedback until the sender has measured an RTT.
  void start(double) override { cwnd_ = initial_window_; }

  // Section 3.4: cwnd = max(cwnd + H_feedback, one packet). A window that is not used does not grow
  // (RFC 9002, section 7.8), as routers would grant it the spare bandwidth again and again.
  void on_ack(const AckEvent& ack) override {
    if (ack.is_cwnd_limited || ack.xcp_feedback_packets < 0) {
      cwnd_ = std::clamp(cwnd_ + ack.xcp_feedback_packets, 1.0, kMaximumWindow);
    }
  }

  // Section 3.4: losses are rare; the sender responds as TCP does.
  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      cwnd_ = std::max(cwnd_ / 2, 1.0);
    }
  }
  void on_timeout(const TimeoutEvent&) override { cwnd_ = 1; }

  // An idle time of one retransmission timeout is treated as a timeout, as in ns-2: its XCP agent
  // is a TcpAgent, whose timer runs on and whose slow_start_restart_ is true unless it is changed.
  void on_idle_timeout(double) override { cwnd_ = 1; }

  // Section 3.4: the demand is limited by the data to send, which is unlimited here.
  double xcp_demand_packets() const override { return kMaximumWindow; }

 private:
  static constexpr double kMaximumWindow = 1e6;

  double initial_window_;
};

}  // namespace

Protocol xcp() {
  return {
      .name = "xcp",
      .title = "XCP",
      .variants = {{
          .name = "katabi2002",
          .source = "Katabi, Handley and Rohrs 2002",
          .parameters = {{"initial_window_packets", "window at the start", 2, 1, 1000}},
      }},
      .needs = {.needs_xcp_router = true},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Xcp>(values["initial_window_packets"]);
      },
  };
}

}  // namespace remy
