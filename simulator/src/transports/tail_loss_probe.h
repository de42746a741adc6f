#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace remy {

// The tail loss probe (RFC 8985, section 7): if ACKs stay away for two round trips, a packet is
// sent whose ACK shows what is lost, long before the retransmission timer expires.
class TailLossProbe {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // When a probe must be sent; kNever if none.
  double due_ms() const { return due_ms_; }
  // A probe was sent that retransmitted a packet, and it is not known yet whether it repaired a
  // loss.
  bool has_retransmission_out() const { return is_out_ && is_retransmission_; }

  void reset() { *this = {}; }
  void cancel() { due_ms_ = kNever; }

  // Section 7.2: data was sent, or acknowledged. The timer of the probe expires no later than the
  // retransmission timer does.
  void schedule(double now_ms, double smoothed_rtt_ms, std::uint64_t packets_out,
                double timer_expiry_ms) {
    double pto_ms = smoothed_rtt_ms > 0 ? 2 * smoothed_rtt_ms : kInitialTimeoutMs;
    pto_ms += smoothed_rtt_ms > 0 && packets_out == 1 ? kMaxAckDelayMs : 0;
    due_ms_ = std::min(now_ms + pto_ms, timer_expiry_ms);
  }

  // Section 7.3: at most one probe is out.
  bool may_send() const { return !is_out_; }
  // A probe was sent; `end` is the next new packet.
  void on_sent(std::uint64_t end, bool is_retransmission) {
    is_out_ = true;
    end_ = end;
    is_retransmission_ = is_retransmission;
  }

  // Section 7.4: an ACK arrives that acknowledges all packets before `cumulative`. Returns whether
  // it shows that the probe repaired a loss, which the congestion control has to be told.
  bool on_ack(std::uint64_t cumulative, bool is_duplicate, bool reports_nothing_new) {
    if (!is_out_ || cumulative < end_) {
      return false;
    }
    const bool was_repair = is_retransmission_ && !is_duplicate && cumulative > end_;
    if (!is_retransmission_ || is_duplicate || cumulative > end_ || reports_nothing_new) {
      is_out_ = false;
    }
    return was_repair;
  }

 private:
  static constexpr double kInitialTimeoutMs = 1000;  // without a sample of the RTT
  static constexpr double kMaxAckDelayMs = 200;      // TLP.max_ack_delay

  double due_ms_ = kNever;
  bool is_out_ = false;
  std::uint64_t end_ = 0;  // TLP.end_seq
  bool is_retransmission_ = false;
};

}  // namespace remy
