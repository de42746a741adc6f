#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "protocols/protocol.h"

namespace remy {

namespace {

// RFC 6817: yields to others by holding the queueing delay, one way, at a target.
class Ledbat : public CongestionController {
 public:
  Ledbat(double initial_window_packets, double target_ms, double gain)
      : initial_window_packets_(initial_window_packets), target_ms_(target_ms), gain_(gain) {}

  void start(double now_ms) override {
    cwnd_ = initial_window_packets_;
    base_ms_.fill(kNever);
    recent_ms_.fill(kNever);
    minute_ = whole_minutes(now_ms);
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_delivered == 0) {
      return;
    }
    const double delay_ms = ack.received_ms - ack.sent_ms;
    update_base(ack.now_ms, delay_ms);
    recent_ms_[next_recent_] = delay_ms;
    next_recent_ = (next_recent_ + 1) % kCurrentFilter;
    if (ack.in_recovery) {
      return;
    }
    // Section 2.4.2: off_target = (TARGET - queuing_delay) / TARGET; cwnd += GAIN off_target
    // bytes_newly_acked MSS / cwnd.
    const double queueing_ms = *std::ranges::min_element(recent_ms_) - base_delay_ms();
    const double off_target = (target_ms_ - queueing_ms) / target_ms_;
    cwnd_ += gain_ * off_target * static_cast<double>(ack.newly_delivered) / cwnd_;
    // No further above what is used than by ALLOWED_INCREASE, and the part of a packet that cannot
    // be; at least MIN_CWND.
    cwnd_ = std::min(cwnd_, static_cast<double>(ack.prior_in_flight + kAllowedIncrease + 1));
    cwnd_ = std::max(cwnd_, kMinimumWindow);
  }

  void on_loss(const LossEvent& loss) override {
    // Section 2.4.2: at most once per RTT, halved.
    if (loss.starts_recovery) {
      cwnd_ = std::min(cwnd_, std::max(cwnd_ / 2, kMinimumWindow));
    }
  }

  // Section 2.4.2: no ACK for a timeout: one packet.
  void on_timeout(const TimeoutEvent&) override { cwnd_ = 1; }

  // As any TCP's: after a pause no more than the initial window (RFC 5681, section 4.1).
  void on_idle_timeout(double) override { cwnd_ = std::min(cwnd_, initial_window_packets_); }

 private:
  static constexpr std::size_t kBaseHistory = 10;   // minutes
  static constexpr std::size_t kCurrentFilter = 4;  // samples
  static constexpr std::uint64_t kAllowedIncrease = 1;
  static constexpr double kMinimumWindow = 2;

  static std::uint64_t whole_minutes(double now_ms) {
    return static_cast<std::uint64_t>(now_ms / 60'000);
  }

  // The least delay of each of the last minutes, so that a base that no longer holds is forgotten.
  void update_base(double now_ms, double delay_ms) {
    const std::uint64_t now = whole_minutes(now_ms);
    if (now - minute_ >= kBaseHistory) {
      base_ms_.fill(kNever);
      minute_ = now;
    }
    while (minute_ < now) {
      base_ms_[++minute_ % kBaseHistory] = kNever;
    }
    double& least_ms = base_ms_[now % kBaseHistory];
    least_ms = std::min(least_ms, delay_ms);
  }

  double base_delay_ms() const { return *std::ranges::min_element(base_ms_); }

  double initial_window_packets_;
  double target_ms_;
  double gain_;
  std::array<double, kBaseHistory> base_ms_{};
  std::array<double, kCurrentFilter> recent_ms_{};
  std::size_t next_recent_ = 0;
  std::uint64_t minute_ = 0;
};

}  // namespace

Protocol ledbat() {
  return {
      .name = "ledbat",
      .title = "LEDBAT",
      .variants = {{
          .name = "rfc6817",
          .source = "RFC 6817 (2012)",
          .parameters = {initial_window_packets(2),
                         // Section 2.5: TARGET must be at most 100 ms, GAIN at most 1.
                         {"target_ms", "queueing delay, one way", 100, 1, 100},
                         {"gain", "packets an RTT when there is no queue", 1, 0.01, 1}},
      }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Ledbat>(chosen["initial_window_packets"], chosen["target_ms"],
                                        chosen["gain"]);
      },
  };
}

}  // namespace remy
