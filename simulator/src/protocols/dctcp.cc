#include <algorithm>

#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// Data Center TCP (RFC 8257). Every packet is acknowledged with its own mark, so the receiver's
// state machine (section 3.2) is not needed. A loss halves the window, as in Reno (section 3.5).
class Dctcp : public Reno {
 public:
  Dctcp(double initial_window_packets, double g) : Reno(initial_window_packets), g_(g) {}

  void on_sent(const SendEvent& sent) override {
    observation_window_.on_sent(sent);
    cwr_window_.on_sent(sent);
  }

 private:
  void reset(double) override {
    // Section 4.2: DCTCP.Alpha starts at 1, so that the first reduction is a halving.
    alpha_ = 1;
    packets_ = 0;
    marked_ = 0;
    observation_window_.restart();
    cwr_window_.restart();
    in_cwr_ = false;
  }

  void on_every_ack(const AckEvent& ack) override {
    // Section 3.3, steps 1 to 9: DCTCP.Alpha is the moving average of M, the fraction of marked
    // packets in an observation window.
    packets_ += static_cast<double>(ack.newly_delivered);
    marked_ += static_cast<double>(ack.newly_marked);
    if (observation_window_.ends_round(ack) && packets_ > 0) {
      alpha_ += g_ * (marked_ / packets_ - alpha_);
      packets_ = 0;
      marked_ = 0;
    }
    // Step 10: cwnd = cwnd * (1 - DCTCP.Alpha / 2), once per window of data (RFC 3168, section
    // 6.1.2). After a reduction for a loss, recovery is that window of data.
    if (in_cwr_ && cwr_window_.ends_round(ack)) {
      in_cwr_ = false;
    }
    if (ack.newly_marked > 0 && !in_cwr_ && !ack.in_recovery) {
      const double window = cwnd_;
      reduce_to(window * (1 - alpha_ / 2));
      // A mark does not raise a window below the least ssthresh, such as that after a timeout.
      cwnd_ = std::min(cwnd_, window);
      in_cwr_ = true;
      cwr_window_.restart();
    }
  }

  double g_;
  double alpha_ = 1;    // DCTCP.Alpha
  double packets_ = 0;  // in this observation window, likewise marked_
  double marked_ = 0;
  RoundTripTracker observation_window_;
  RoundTripTracker cwr_window_;
  bool in_cwr_ = false;
};

}  // namespace

Protocol dctcp() {
  return {
      .name = "dctcp",
      .title = "Data Center TCP",
      .variants = {{
          .name = "rfc8257",
          .source = "RFC 8257 (2017)",
          .parameters = {initial_window_packets(10),
                         {"gain", "weight g of a window's fraction of marks in the moving average",
                          1.0 / 16, 0.001, 1}},
      }},
      .needs = {.is_ecn_capable = true},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Dctcp>(values["initial_window_packets"], values["gain"]);
      },
  };
}

}  // namespace remy
