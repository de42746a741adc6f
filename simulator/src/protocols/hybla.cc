#include <algorithm>

#include "core/elementary.h"
#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// Caini and Firrincieli 2004: grows as fast, in packets a second, as a Reno of a short RTT.
class Hybla : public Reno {
 public:
  Hybla(double initial_window_packets, double reference_rtt_ms)
      : Reno(initial_window_packets), reference_rtt_ms_(reference_rtt_ms) {}

 private:
  // As the Linux module has it: 2 to this, per ACK, is more than any path holds.
  static constexpr double kLargestRatio = 16;

  void restarted(double) override {
    minimum_rtt_ms_ = kNever;
    ratio_ = 1;
    slow_start_packets_ = 1;
  }

  // Section 3.1: rho = RTT / RTT0, and never slower than Reno. The RTT is the least, which no queue
  // that it builds itself can change.
  void measured(const AckEvent& ack) override {
    if (ack.rtt_ms < minimum_rtt_ms_) {
      minimum_rtt_ms_ = ack.rtt_ms;
      ratio_ = std::clamp(minimum_rtt_ms_ / reference_rtt_ms_, 1.0, kLargestRatio);
      slow_start_packets_ = power(2, ratio_) - 1;
    }
  }

  // Section 3.1, equation 6: for every ACK 2^rho - 1 in slow start, rho^2 / W beyond.
  double slow_start_packets() const override { return slow_start_packets_; }
  double avoidance_packets() const override { return ratio_ * ratio_ / cwnd_; }

  double reference_rtt_ms_;
  double minimum_rtt_ms_ = kNever;
  double ratio_ = 1;
  double slow_start_packets_ = 1;
};

}  // namespace

Protocol hybla() {
  return {
      .name = "hybla",
      .title = "TCP Hybla",
      .variants = {{
          .name = "paper",
          .source = "Caini and Firrincieli, \"TCP Hybla\" (2004)",
          .parameters = {initial_window_packets(10),
                         {"reference_rtt_ms", "RTT of the Reno that it equals", 25, 1, 1000}},
      }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Hybla>(chosen["initial_window_packets"],
                                       chosen["reference_rtt_ms"]);
      },
  };
}

}  // namespace remy
