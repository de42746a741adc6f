#include "transports/newreno_recovery.h"

#include <algorithm>

namespace remy {

// A duplicate ACK says that a packet has left the network, but not which.
std::uint64_t NewRenoRecovery::count_delivered(std::uint64_t newly_acked,
                                               std::uint64_t newly_delivered, bool is_duplicate) {
  if (newly_acked > 0) {
    // Duplicates have reported all of these but the packet that was retransmitted.
    const std::uint64_t known = std::min(duplicates_, newly_acked - 1);
    duplicates_ = in_recovery() ? std::max(duplicates_ - known, least_duplicates()) : 0;
    return newly_acked - known;
  }
  if (is_duplicate && duplicates_ < countable_duplicates()) {
    ++duplicates_;
    return 1;
  }
  return newly_delivered;
}

// Each of the first two duplicates lets a new packet be sent (Limited Transmit, RFC 3042), the
// third starts recovery if it may, and all count in recovery.
std::uint64_t NewRenoRecovery::countable_duplicates() const {
  if (state_ == State::kLoss && !counts_duplicates_after_timeout()) {
    return 0;
  }
  const std::uint64_t bound = in_recovery()                  ? kUnlimited
                              : may_start_recovery_by_acks() ? duplicate_threshold_
                                                             : duplicate_threshold_ - 1;
  return std::min(bound, scoreboard_.in_flight());
}

// RFC 6582, section 3.2, step 2: only if "the Cumulative Acknowledgment field covers more than
// recover". Other duplicates may be of packets that were retransmitted without need.
bool NewRenoRecovery::may_start_recovery_by_acks() const {
  return state_ == State::kOpen &&
         (scoreboard_.first() > recovery_point_ || recovery_point_ == connection_start_);
}

std::span<const std::uint64_t> NewRenoRecovery::detect_losses(const AckOfRecovery& ack) {
  lost_.clear();
  // RFC 6582, section 3.2, step 2: the third duplicate ACK starts fast retransmit.
  const bool starts = duplicates_ >= duplicate_threshold_ && may_start_recovery_by_acks();
  // Step 3: a partial ACK shows that the next packet is lost, too.
  const bool is_partial = ack.newly_acked > 0 && ack.was_in_recovery && in_recovery();
  const std::uint64_t packet = scoreboard_.first();
  if ((starts || is_partial) && !scoreboard_.is_lost(packet)) {
    scoreboard_.mark_lost(packet);
    duplicates_ = std::min(duplicates_, scoreboard_.in_flight());
    must_retransmit_ = true;
    lost_.push_back(packet);
  }
  return lost_;
}

void NewRenoRecovery::enter_recovery(std::uint64_t cwnd_packets) {
  LossRecovery::enter_recovery(cwnd_packets);
  is_first_partial_ = true;
}

// RFC 6582, section 3.2, step 3: "for the first partial ACK that arrives during fast recovery, also
// reset the retransmit timer".
bool NewRenoRecovery::restarts_timer() {
  const bool is_partial = in_recovery();
  const bool restarts = !is_partial || is_first_partial_ || !is_impatient_;
  is_first_partial_ = is_first_partial_ && !is_partial;
  return restarts;
}

}  // namespace remy
