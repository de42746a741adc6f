#include <algorithm>
#include <cmath>

#include "protocols/protocol.h"

namespace remy {

namespace {

// Slow start and congestion avoidance (RFC 5681); its recovery is the transport's.
class NewReno : public CongestionController {
 public:
  explicit NewReno(double initial_window, bool is_paced = false)
      : NewReno(initial_window, is_paced, {.on_sent = false, .full_acks = false}) {}

  void start(double) override {
    cwnd_ = initial_window_;
    // RFC 5681, section 3.1: the initial threshold is arbitrarily high.
    threshold_ = kNoThreshold;
    pacing_interval_ms_ = 0;
    smoothed_rtt_ms_ = 0;
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_acked > 0 && !ack.in_recovery && ack.is_cwnd_limited) {
      grow();
    }
    if (is_paced_) {
      pace(ack.rtt_ms);
    }
  }

  void on_in_order_ack(double, double rtt_ms, bool is_window_limited) override {
    if (is_window_limited) {
      grow();
    }
    if (is_paced_) {
      pace(rtt_ms);
    }
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      // Section 3.2: ssthresh = max(FlightSize / 2, 2 packets), and the window with it.
      threshold_ = std::max(static_cast<double>(loss.in_flight) / 2, 2.0);
      cwnd_ = threshold_;
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    // Section 3.1: half of what was in flight, once; then slow start from one packet.
    if (timeout.is_first) {
      threshold_ = std::max(static_cast<double>(timeout.in_flight) / 2, 2.0);
    }
    cwnd_ = 1;
  }

  void on_idle_timeout(double) override {
    // Section 4.1: RW = min(IW, cwnd).
    cwnd_ = std::min(initial_window_, cwnd_);
  }

 protected:
  static constexpr double kNoThreshold = 1e9;

  NewReno(double initial_window, bool is_paced, const ControllerNeeds& needs)
      : CongestionController(needs), initial_window_(initial_window), is_paced_(is_paced) {}

  // Section 3.1: slow start by a packet for every ACK, congestion avoidance by a packet every RTT.
  void grow() { cwnd_ += cwnd_ < threshold_ ? 1 : 1 / cwnd_; }

  double initial_window_;
  double threshold_ = kNoThreshold;

 private:
  // A window every smoothed RTT, evenly spread (Aggarwal, Savage and Anderson 2000, section 2).
  void pace(double rtt_ms) {
    smoothed_rtt_ms_ += smoothed_rtt_ms_ > 0 ? (rtt_ms - smoothed_rtt_ms_) / 8 : rtt_ms;
    pacing_interval_ms_ = smoothed_rtt_ms_ / cwnd_;
  }

  bool is_paced_;
  double smoothed_rtt_ms_ = 0;
};

// As ns-2.35's Agent/TCP/Newreno: the window grows whether it was used or not, every timeout halves
// the threshold, and partial ACKs shrink the window by what duplicates had not told of before.
class Ns2NewReno final : public NewReno {
 public:
  explicit Ns2NewReno(double initial_window) : NewReno(initial_window, false, {.on_sent = false}) {}

  void start(double now_ms) override {
    NewReno::start(now_ms);
    is_in_recovery_ = false;
  }

  void on_ack(const AckEvent& ack) override {
    if (!ack.in_recovery) {
      if (ack.newly_acked > 0) {
        grow();
      }
    } else if (ack.newly_acked > 0) {
      deflate(static_cast<double>(ack.newly_acked));
    } else if (is_in_recovery_) {
      ++duplicates_;
    }
    is_in_recovery_ = ack.in_recovery;
  }

  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      lower_threshold();
      cwnd_ /= 2;
      duplicates_ = kThreshold;
    }
  }

  void on_timeout(const TimeoutEvent&) override {
    lower_threshold();
    cwnd_ = 1;
    is_in_recovery_ = false;
  }

  void on_idle_timeout(double) override { cwnd_ = 1; }

 private:
  static constexpr double kThreshold = 3;

  void lower_threshold() { threshold_ = std::max(std::floor(cwnd_ / 2), 2.0); }

  void deflate(double acknowledged) {
    if (duplicates_ > acknowledged) {
      duplicates_ -= acknowledged - 1;
      return;
    }
    cwnd_ = std::max(cwnd_ - (acknowledged - duplicates_), 1.0);
    duplicates_ = 1;
  }

  bool is_in_recovery_ = false;
  double duplicates_ = 0;
};

}  // namespace

Protocol newreno() {
  const auto initial_window = [](double usual) {
    return Parameter{"initial_window_packets", "window at the start", usual, 1, 1000};
  };
  return {
      .name = "newreno",
      .title = "NewReno",
      .variants = {{"rfc", "RFC 5681, 6582, 6928", {initial_window(10)}},
                   {"ns-2", "ns-2.35, Agent/TCP/Newreno", {initial_window(2)}},
                   {"paced", "Aggarwal, Savage and Anderson 2000", {initial_window(10)}}},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        const double initial_window = chosen["initial_window_packets"];
        if (chosen.variant() == "ns-2") {
          return std::make_unique<Ns2NewReno>(initial_window);
        }
        return std::make_unique<NewReno>(initial_window, chosen.variant() == "paced");
      },
  };
}

}  // namespace remy
