#include <algorithm>
#include <cmath>

#include "protocols/protocol.h"
#include "protocols/window_reduction.h"

namespace remy {

namespace {

// Slow start and congestion avoidance (RFC 5681). The transport implements recovery (RFC 6582).
class NewReno : public CongestionController {
 public:
  explicit NewReno(double initial_window, bool is_paced = false)
      : NewReno(initial_window, is_paced, {.on_sent = false, .full_acks = false}) {}

  void start(double) override {
    cwnd_ = initial_window_;
    // RFC 5681, section 3.1: the initial ssthresh is arbitrarily high.
    ssthresh_ = kInitialSsthresh;
    pacing_interval_ms_ = 0;
    srtt_ms_ = 0;
    before_reduction_.forget();
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_acked > 0 && !ack.in_recovery && ack.is_cwnd_limited) {
      grow();
    }
    if (is_paced_) {
      update_pacing(ack.rtt_ms);
    }
  }

  void on_in_order_ack(double, double rtt_ms, bool is_cwnd_limited) override {
    if (is_cwnd_limited) {
      grow();
    }
    if (is_paced_) {
      update_pacing(rtt_ms);
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      before_reduction_.remember(cwnd_, ssthresh_);
      // Section 3.2: ssthresh = max(FlightSize / 2, 2 packets), and cwnd = ssthresh.
      ssthresh_ = std::max(static_cast<double>(loss.in_flight) / 2, 2.0);
      cwnd_ = ssthresh_;
    }
  }

  double slow_start_threshold() const override { return ssthresh_; }
  void on_timeout(const TimeoutEvent& timeout) override {
    // Section 3.1: ssthresh is reduced once per window of data; slow start from one packet.
    if (timeout.is_first) {
      before_reduction_.remember(cwnd_, ssthresh_);
      ssthresh_ = std::max(static_cast<double>(timeout.in_flight) / 2, 2.0);
    }
    cwnd_ = 1;
    if (is_paced_) {
      pacing_interval_ms_ = srtt_ms_ / cwnd_;
    }
  }

  void on_idle_timeout(double) override {
    // Section 4.1: RW = min(IW, cwnd).
    cwnd_ = std::min(initial_window_, cwnd_);
    if (is_paced_) {
      pacing_interval_ms_ = srtt_ms_ / cwnd_;
    }
  }

  void lower_unused_window(double packets) override { lower_unused(cwnd_, ssthresh_, packets); }
  void on_spurious_recovery() override { before_reduction_.restore(cwnd_, ssthresh_); }

  bool is_in_slow_start() const override { return cwnd_ < ssthresh_; }

 protected:
  static constexpr double kInitialSsthresh = 1e9;

  NewReno(double initial_window, bool is_paced, const ControllerNeeds& needs)
      : CongestionController(needs), initial_window_(initial_window), is_paced_(is_paced) {}

  // Section 3.1: one packet per ACK in slow start, one packet per RTT in congestion avoidance.
  void grow() { cwnd_ += cwnd_ < ssthresh_ ? 1 : 1 / cwnd_; }

  double initial_window_;
  double ssthresh_ = kInitialSsthresh;

 private:
  // Spreads a window evenly over the smoothed RTT (Aggarwal, Savage and Anderson 2000, section 2).
  void update_pacing(double rtt_ms) {
    srtt_ms_ += srtt_ms_ > 0 ? (rtt_ms - srtt_ms_) / 8 : rtt_ms;
    pacing_interval_ms_ = srtt_ms_ / cwnd_;
  }

  bool is_paced_;
  double srtt_ms_ = 0;
  WindowBeforeReduction before_reduction_;
};

// Agent/TCP/Newreno of ns-2.35. The window grows even if it is not fully used, every timeout halves
// ssthresh, and a partial ACK deflates the window by the packets that duplicate ACKs have not
// accounted for.
class Ns2NewReno final : public NewReno {
 public:
  explicit Ns2NewReno(double initial_window) : NewReno(initial_window, false, {.on_sent = false}) {}

  void start(double now_ms) override {
    NewReno::start(now_ms);
    is_in_recovery_ = false;
    dup_acks_ = 0;
  }

  void on_ack(const AckEvent& ack) override {
    if (!ack.in_recovery) {
      if (ack.newly_acked > 0) {
        grow();
      }
    } else if (ack.newly_acked > 0) {
      deflate(static_cast<double>(ack.newly_acked));
    } else if (is_in_recovery_) {
      ++dup_acks_;
    }
    is_in_recovery_ = ack.in_recovery;
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      halve_ssthresh();
      cwnd_ /= 2;
      dup_acks_ = kDupAckThreshold;
    }
  }

  void on_timeout(const TimeoutEvent&) override {
    halve_ssthresh();
    cwnd_ = 1;
    is_in_recovery_ = false;
  }

  void on_idle_timeout(double) override { cwnd_ = 1; }

 private:
  static constexpr double kDupAckThreshold = 3;

  void halve_ssthresh() { ssthresh_ = std::max(std::floor(cwnd_ / 2), 2.0); }

  void deflate(double acknowledged) {
    if (dup_acks_ > acknowledged) {
      dup_acks_ -= acknowledged - 1;
      return;
    }
    cwnd_ = std::max(cwnd_ - (acknowledged - dup_acks_), 1.0);
    dup_acks_ = 1;
  }

  bool is_in_recovery_ = false;
  double dup_acks_ = 0;
};

}  // namespace

Protocol newreno() {
  const auto initial_window = [](double default_value) {
    return Parameter{"initial_window_packets", "window at the start of a connection", default_value,
                     1, 1000};
  };
  return {
      .name = "newreno",
      .title = "NewReno",
      .variants = {{"rfc", "RFC 5681, 6582, 6928", {initial_window(10)}},
                   {"ns-2", "ns-2.35, Agent/TCP/Newreno", {initial_window(2)}},
                   {"paced", "Aggarwal, Savage and Anderson 2000", {initial_window(10)}}},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        const double initial_window = values["initial_window_packets"];
        if (values.variant() == "ns-2") {
          return std::make_unique<Ns2NewReno>(initial_window);
        }
        return std::make_unique<NewReno>(initial_window, values.variant() == "paced");
      },
  };
}

}  // namespace remy
