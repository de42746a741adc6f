#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "protocols/protocol.h"

namespace remy {

namespace {

// LEDBAT (RFC 6817): yields to other flows by keeping the one-way queueing delay at a target.
class Ledbat : public CongestionController {
 public:
  Ledbat(double initial_window_packets, double target_ms, double gain)
      : initial_window_(initial_window_packets), target_ms_(target_ms), gain_(gain) {}

  void start(double now_ms) override {
    cwnd_ = initial_window_;
    base_delays_ms_.fill(kNever);
    current_delays_ms_.fill(kNever);
    last_rollover_minute_ = whole_minutes(now_ms);
  }

  void on_ack(const AckEvent& ack) override {
    if (ack.newly_delivered == 0) {
      return;
    }
    const double delay_ms = ack.received_ms - ack.sent_ms;
    update_base_delay(ack.now_ms, delay_ms);
    current_delays_ms_[next_current_] = delay_ms;
    next_current_ = (next_current_ + 1) % kCurrentFilter;
    if (ack.in_recovery) {
      return;
    }
    // Section 2.4.2: off_target = (TARGET - queuing_delay) / TARGET; cwnd += GAIN off_target
    // bytes_newly_acked MSS / cwnd.
    const double queuing_delay_ms = *std::ranges::min_element(current_delays_ms_) - base_delay_ms();
    const double off_target = (target_ms_ - queuing_delay_ms) / target_ms_;
    cwnd_ += gain_ * off_target * static_cast<double>(ack.newly_delivered) / cwnd_;
    // Section 2.4.2: cwnd exceeds the flight size by at most ALLOWED_INCREASE (plus a packet, as
    // cwnd may be fractional), and is at least MIN_CWND.
    cwnd_ = std::min(cwnd_, static_cast<double>(ack.prior_in_flight + kAllowedIncrease + 1));
    cwnd_ = std::max(cwnd_, kMinCwnd);
  }

  void on_loss(const LossEvent& loss) override {
    // Section 2.4.2: halved at most once per RTT.
    if (loss.starts_recovery) {
      cwnd_ = std::min(cwnd_, std::max(cwnd_ / 2, kMinCwnd));
    }
  }

  // Section 2.4.2: one packet after a congestion timeout (CTO).
  void on_timeout(const TimeoutEvent&) override { cwnd_ = 1; }

  // RFC 5681, section 4.1: RW = min(IW, cwnd) after an idle period. Delays from before it are not
  // current (RFC 6817, section 2.4.2).
  void on_idle_timeout(double) override {
    cwnd_ = std::min(cwnd_, initial_window_);
    current_delays_ms_.fill(kNever);
  }

  void lower_unused_window(double packets) override { cwnd_ = packets; }

 private:
  static constexpr std::size_t kBaseHistory = 10;   // minutes
  static constexpr std::size_t kCurrentFilter = 4;  // samples
  static constexpr std::uint64_t kAllowedIncrease = 1;
  static constexpr double kMinCwnd = 2;

  static std::uint64_t whole_minutes(double now_ms) {
    return static_cast<std::uint64_t>(now_ms / 60'000);
  }

  // update_base_delay() of section 2.4.2: keeps the minimum delay of each of the last BASE_HISTORY
  // minutes, so that the base delay follows route changes.
  void update_base_delay(double now_ms, double delay_ms) {
    const std::uint64_t now = whole_minutes(now_ms);
    if (now - last_rollover_minute_ >= kBaseHistory) {
      base_delays_ms_.fill(kNever);
      last_rollover_minute_ = now;
    }
    while (last_rollover_minute_ < now) {
      base_delays_ms_[++last_rollover_minute_ % kBaseHistory] = kNever;
    }
    double& min_delay_ms = base_delays_ms_[now % kBaseHistory];
    min_delay_ms = std::min(min_delay_ms, delay_ms);
  }

  double base_delay_ms() const { return *std::ranges::min_element(base_delays_ms_); }

  double initial_window_;
  double target_ms_;
  double gain_;
  std::array<double, kBaseHistory> base_delays_ms_{};
  std::array<double, kCurrentFilter> current_delays_ms_{};
  std::size_t next_current_ = 0;
  std::uint64_t last_rollover_minute_ = 0;
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
                         {"target_ms", "one-way queueing delay that it aims at", 100, 1, 100},
                         {"gain", "growth in packets per RTT without a queue", 1, 0.01, 1}},
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Ledbat>(values["initial_window_packets"], values["target_ms"],
                                        values["gain"]);
      },
  };
}

}  // namespace remy
