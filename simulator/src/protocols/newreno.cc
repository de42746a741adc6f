#include <algorithm>

#include "protocols/protocol.h"

namespace remy {

namespace {

struct NewRenoSettings {
  double initial_window_packets = 10;
  bool is_paced = false;
  // ns-2's: grows whether the window was used or not, and leaves recovery with no more than is
  // outstanding.
  bool is_ns2 = false;
};

// Slow start and congestion avoidance (RFC 5681); its recovery is the transport's.
class NewReno : public Controller {
 public:
  explicit NewReno(const NewRenoSettings& settings) : settings_(settings) {}

  void start(double) override {
    window_packets_ = settings_.initial_window_packets;
    // RFC 5681, section 3.1: the initial threshold is arbitrarily high.
    threshold_packets_ = kNoThreshold;
    was_in_recovery_ = false;
    intersend_ms_ = 0;
    smoothed_rtt_ms_ = 0;
  }

  void acknowledged(const Ack& ack) override {
    if (settings_.is_paced) {
      pace(ack.rtt_ms);
    }
    if (was_in_recovery_ && !ack.in_recovery && settings_.is_ns2) {
      const auto outstanding = static_cast<double>(ack.in_flight);
      window_packets_ = std::max(std::min(threshold_packets_, outstanding), 1.0);
    } else if (ack.acknowledged > 0 && !ack.in_recovery && !was_in_recovery_ &&
               (ack.is_window_limited || settings_.is_ns2)) {
      grow();
    }
    was_in_recovery_ = ack.in_recovery;
  }

  void lost(const Loss& loss) override {
    if (loss.starts_recovery) {
      // RFC 5681, section 3.2: ssthresh = max(FlightSize / 2, 2 packets), and the window with it.
      threshold_packets_ = halved(static_cast<double>(loss.in_flight));
      window_packets_ = threshold_packets_;
    }
  }

  void timed_out(const Timeout& timeout) override {
    // Section 3.1: half of what was in flight, once; then slow start from one packet.
    if (timeout.is_first) {
      threshold_packets_ = halved(static_cast<double>(timeout.in_flight));
    }
    window_packets_ = 1;
    was_in_recovery_ = false;
  }

 private:
  static constexpr double kNoThreshold = 1e9;

  double halved(double in_flight) const {
    return std::max((settings_.is_ns2 ? window_packets_ : in_flight) / 2, 2.0);
  }

  void grow() {
    // Section 3.1: slow start by a packet for every ACK, congestion avoidance by a packet every
    // RTT.
    window_packets_ += window_packets_ < threshold_packets_ ? 1 : 1 / window_packets_;
  }

  // A window every smoothed RTT, evenly spread (Aggarwal, Savage and Anderson 2000).
  void pace(double rtt_ms) {
    smoothed_rtt_ms_ += smoothed_rtt_ms_ > 0 ? (rtt_ms - smoothed_rtt_ms_) / 8 : rtt_ms;
    intersend_ms_ = smoothed_rtt_ms_ / window_packets_;
  }

  NewRenoSettings settings_;
  double threshold_packets_ = kNoThreshold;
  double smoothed_rtt_ms_ = 0;
  bool was_in_recovery_ = false;
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
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<Controller> {
        return std::make_unique<NewReno>(
            NewRenoSettings{.initial_window_packets = chosen["initial_window_packets"],
                            .is_paced = chosen.variant() == "paced",
                            .is_ns2 = chosen.variant() == "ns-2"});
      },
  };
}

}  // namespace remy
