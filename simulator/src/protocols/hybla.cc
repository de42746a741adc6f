#include <algorithm>

#include "core/elementary.h"
#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// TCP Hybla (Caini and Firrincieli 2004): its rate grows as fast as that of a Reno flow whose RTT
// is the reference RTT.
class Hybla : public Reno {
 public:
  Hybla(double initial_window_packets, double reference_rtt_ms)
      : Reno(initial_window_packets), rtt0_ms_(reference_rtt_ms) {}

 private:
  // As in Linux's tcp_hybla: 2^16 packets per ACK exceed any path's capacity.
  static constexpr double kMaxRho = 16;

  void reset(double) override {
    min_rtt_ms_ = kNever;
    rho_ = 1;
    slow_start_increase_ = 1;
  }

  // Section 3.1: rho = RTT / RTT0, at least 1, so that the growth is never slower than Reno's. It
  // uses the minimum RTT, which the flow's own queue does not inflate.
  void on_every_ack(const AckEvent& ack) override {
    if (ack.rtt_ms < min_rtt_ms_) {
      min_rtt_ms_ = ack.rtt_ms;
      rho_ = std::clamp(min_rtt_ms_ / rtt0_ms_, 1.0, kMaxRho);
      slow_start_increase_ = power(2, rho_) - 1;
    }
  }

  // Section 3.1, equation 6: 2^rho - 1 per ACK in slow start, rho^2 / W in congestion avoidance.
  double slow_start_increase() const override { return slow_start_increase_; }
  double congestion_avoidance_increase() const override { return rho_ * rho_ / cwnd_; }

  double rtt0_ms_;
  double min_rtt_ms_ = kNever;
  double rho_ = 1;
  double slow_start_increase_ = 1;
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
                         {"reference_rtt_ms", "RTT of the Reno flow whose growth it equals (RTT0)",
                          25, 1, 1000}},
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Hybla>(values["initial_window_packets"],
                                       values["reference_rtt_ms"]);
      },
  };
}

}  // namespace remy
