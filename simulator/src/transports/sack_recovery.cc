#include "transports/sack_recovery.h"

namespace remy {

SackRecovery::SackRecovery(const TcpSettings& settings, Scoreboard& scoreboard,
                           const RecoveryRules& rules)
    : LossRecovery(settings, scoreboard, rules) {
  if (settings.uses_rack) {
    rack_.emplace(settings.rack_threshold);
  }
}

void SackRecovery::start_connection(std::uint64_t first_packet) {
  LossRecovery::start_connection(first_packet);
  if (rack_) {
    rack_->clear();
  }
}

std::span<const std::uint64_t> SackRecovery::detect_losses(std::uint64_t,
                                                           std::uint64_t transmission_number,
                                                           bool) {
  lost_.clear();
  detect_first_losses();
  if (rack_) {
    rack_->on_delivered(transmission_number);
    rack_->detect_losses(scoreboard_, lost_);
  }
  return lost_;
}

// RFC 6675, section 5, step 4: IsLost() of DupThresh packets received beyond.
// Without RACK the caller has checked may_detect_losses() already.
void SackRecovery::detect_first_losses() {
  if (!rack_ || scoreboard_.may_detect_losses(duplicate_threshold_)) {
    scoreboard_.detect_losses(duplicate_threshold_, lost_);
  }
}

void SackRecovery::on_timeout() {
  LossRecovery::on_timeout();
  if (rack_) {
    rack_->clear();
  }
}

void SackRecovery::on_retransmission(std::uint64_t packet, std::uint64_t number) {
  LossRecovery::on_retransmission(packet, number);
  if (rack_) {
    rack_->on_retransmission(packet, number);
  }
}

}  // namespace remy
