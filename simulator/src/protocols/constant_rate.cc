#include "protocols/protocol.h"

namespace remy {

namespace {

// Sends at a constant rate and ignores all feedback, as cross traffic without congestion control.
class ConstantRate : public CongestionController {
 public:
  explicit ConstantRate(double rate_packets_per_ms) {
    cwnd_ = kWindow;
    pacing_interval_ms_ = 1 / rate_packets_per_ms;
  }

  void start(double) override {}
  void on_ack(const AckEvent&) override {}
  void on_loss(const LossEvent&) override {}
  void on_timeout(const TimeoutEvent&) override {}

 private:
  static constexpr double kWindow = 1e6;
};

}  // namespace

Protocol constant_rate() {
  return {
      .name = "constant-rate",
      .title = "Constant rate",
      .variants = {{
          .name = "constant-rate",
          .source = "no congestion control: RFC 8085, section 3.1.3, says why none should use it",
          .parameters = {{"rate_packets_per_ms", "sending rate in packets per ms", 1, 1e-3, 1e4}},
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<ConstantRate>(values["rate_packets_per_ms"]);
      },
  };
}

}  // namespace remy
