#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace remy {

// Congestion window validation (RFC 2861, RFC 7661) as in Linux: the window may not grow while it
// is not used, and shrinks after an idle time and while much of it stays unused. Windows are whole
// packets.
class CwndValidation {
 public:
  // A connection starts with this window.
  void start(double now_ms, std::uint64_t cwnd) {
    *this = {};
    initial_window_ = cwnd;
    checked_ms_ = now_ms;
  }

  // Packets were sent, or the window is full (tcp_cwnd_validate). `first` and `end` are the first
  // packet not acknowledged and the next new one. Returns a smaller window if this one has not been
  // used for a retransmission timeout and no packet is missing (tcp_cwnd_application_limited).
  std::optional<std::uint64_t> on_sent(double now_ms, std::uint64_t cwnd, bool is_full,
                                       bool in_slow_start, std::uint64_t first, std::uint64_t end,
                                       bool is_missing_any, double timeout_ms) {
    const std::uint64_t packets_out = end - first;
    if (first >= usage_end_ || is_full || (!is_cwnd_limited_ && packets_out > max_packets_out_)) {
      is_cwnd_limited_ = is_full;
      max_packets_out_ = packets_out;
      usage_end_ = end;
    }
    if (is_cwnd_limited(cwnd, in_slow_start)) {
      used_ = 0;
      checked_ms_ = now_ms;
      return std::nullopt;
    }
    used_ = std::max(used_, packets_out);
    if (now_ms - checked_ms_ < timeout_ms) {
      return std::nullopt;
    }
    checked_ms_ = now_ms;
    if (is_missing_any) {
      return std::nullopt;
    }
    const std::uint64_t used = std::max(std::exchange(used_, 0), initial_window_);
    return used < cwnd ? std::optional((cwnd + used) / 2) : std::nullopt;
  }

  // Whether the window may grow (tcp_is_cwnd_limited): in slow start to twice what was used.
  bool is_cwnd_limited(std::uint64_t cwnd, bool in_slow_start) const {
    return is_cwnd_limited_ || (in_slow_start && cwnd < 2 * max_packets_out_);
  }

  // Data is written after nothing was sent for so long. Returns the window: halved once for each
  // retransmission timeout, down to the initial window (tcp_cwnd_restart).
  std::uint64_t after_idle(double now_ms, double idle_ms, std::uint64_t cwnd, double timeout_ms) {
    const std::uint64_t restart = std::min(cwnd, initial_window_);
    for (idle_ms -= timeout_ms; idle_ms > 0 && cwnd > restart; idle_ms -= timeout_ms) {
      cwnd /= 2;
    }
    used_ = 0;
    checked_ms_ = now_ms;
    return std::max(cwnd, restart);
  }

 private:
  std::uint64_t initial_window_ = 0;
  bool is_cwnd_limited_ = false;
  std::uint64_t max_packets_out_ = 0;  // in this window of data, while it was not full
  std::uint64_t usage_end_ = 0;        // end of this window of data
  std::uint64_t used_ = 0;             // most packets out since checked_ms_
  double checked_ms_ = 0;              // when the window was last full, or lowered
};

}  // namespace remy
