#include <algorithm>

#include "protocols/protocol.h"

namespace remy {

namespace {

// The sender of XCP (Katabi, Handley and Rohrs 2002, section 3.4): its window changes as the
// routers say, whose part is elements/xcp_router.h.
class Xcp : public Controller {
 public:
  explicit Xcp(double initial_window_packets) : initial_window_packets_(initial_window_packets) {}

  // Until a first RTT is known routers grant nothing.
  void start(double) override { window_packets_ = initial_window_packets_; }

  // Section 3.4: cwnd = max(cwnd + H_feedback, one packet).
  void acknowledged(const Ack& ack) override {
    window_packets_ = std::clamp(window_packets_ + ack.feedback_packets, 1.0, kMaximumWindow);
  }

  // Section 3.4: losses are rare, and answered as TCP does.
  void lost(const Loss& loss) override {
    if (loss.starts_recovery) {
      window_packets_ = std::max(window_packets_ / 2, 1.0);
    }
  }
  void timed_out(const Timeout&) override { window_packets_ = 1; }

  // Section 3.4 asks for what the sender's data can fill, and this one's never ends.
  double wanted_packets() const override { return kMaximumWindow; }

 private:
  static constexpr double kMaximumWindow = 1e6;

  double initial_window_packets_;
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
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<Controller> {
        return std::make_unique<Xcp>(chosen["initial_window_packets"]);
      },
  };
}

}  // namespace remy
