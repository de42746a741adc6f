#pragma once

#include <algorithm>
#include <cstdint>

namespace remy {

// Proportional Rate Reduction (RFC 6937): during recovery it sends in proportion to what is
// delivered, so that in_flight reaches ssthresh at the end of recovery. Names are the RFC's.
class ProportionalRateReduction {
 public:
  bool is_active() const { return is_active_; }
  // Packets that may be in flight, while active.
  std::uint64_t window_packets() const { return window_packets_; }

  // Section 3, "at the beginning of recovery". `in_flight` is from before the loss was found.
  void start(bool is_active, std::uint64_t in_flight) {
    is_active_ = is_active;
    recover_fs_ = std::max<std::uint64_t>(in_flight, 1);
    prr_delivered_ = 0;
    prr_out_ = 0;
    window_packets_ = 0;
  }
  void stop() { is_active_ = false; }
  void on_sent() { ++prr_out_; }

  // Section 3, "on every ACK during recovery"; the reduction bound is SSRB.
  void on_ack(std::uint64_t delivered, std::uint64_t pipe, std::uint64_t ssthresh) {
    prr_delivered_ += delivered;
    std::uint64_t sndcnt = 0;
    if (pipe > ssthresh) {
      // "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out"
      const std::uint64_t due = (prr_delivered_ * ssthresh + recover_fs_ - 1) / recover_fs_;
      sndcnt = due - std::min(due, prr_out_);
    } else {
      // "limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS"
      const std::uint64_t unsent = prr_delivered_ - std::min(prr_delivered_, prr_out_);
      const std::uint64_t limit = std::max(unsent, delivered) + 1;
      // "sndcnt = MIN(ssthresh - pipe, limit)"
      sndcnt = std::min(ssthresh - pipe, limit);
    }
    window_packets_ = pipe + sndcnt;
  }

 private:
  bool is_active_ = false;
  std::uint64_t recover_fs_ = 0;  // RecoverFS
  std::uint64_t prr_delivered_ = 0;
  std::uint64_t prr_out_ = 0;
  std::uint64_t window_packets_ = 0;
};

}  // namespace remy
