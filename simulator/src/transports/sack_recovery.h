#pragma once

#include "transports/loss_recovery.h"

namespace remy {

// Recovery by selective acknowledgements (RFC 6675). A lost retransmission is found by a timeout.
class SackRecovery final : public LossRecovery {
 public:
  SackRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : LossRecovery(settings, scoreboard, {.uses_scoreboard_alone = true}) {}

  // Section 5, step 4: IsLost() of DupThresh packets received beyond. The caller has checked
  // may_detect_losses() already.
  std::span<const std::uint64_t> detect_losses(const AckOfRecovery&) override {
    lost_.clear();
    scoreboard_.detect_losses(duplicate_threshold_, lost_);
    return lost_;
  }
};

}  // namespace remy
