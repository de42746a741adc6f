#include "transports/loss_recovery.h"

#include "transports/newreno_recovery.h"
#include "transports/ns2_recovery.h"
#include "transports/rack_recovery.h"
#include "transports/sack_recovery.h"

namespace remy {

void LossRecovery::start_connection(std::uint64_t first_packet) {
  state_ = State::kOpen;
  connection_start_ = first_packet;
  recovery_point_ = first_packet;
  must_retransmit_ = false;
  duplicates_ = 0;
  window_floor_ = 0;
  reordering_timer_ms_ = kNever;
}

// RFC 6675, section 5, step 4.1: "RecoveryPoint = HighData"; RFC 6582, section 3.2, step 2.
void LossRecovery::enter_recovery(std::uint64_t) {
  state_ = State::kRecovery;
  recovery_point_ = scoreboard_.end();
  must_retransmit_ = true;
}

std::optional<std::uint64_t> LossRecovery::exit_recovery() {
  state_ = State::kOpen;
  must_retransmit_ = false;
  duplicates_ = 0;
  const std::uint64_t packet = scoreboard_.first();
  if (packet >= scoreboard_.loss_end()) {
    return std::nullopt;
  }
  // A packet that was sent during recovery is known to be lost.
  enter_recovery(0);
  must_retransmit_ = scoreboard_.is_lost(packet);
  return packet;
}

bool LossRecovery::on_loss(std::uint64_t cwnd_packets) {
  const bool starts = starts_recovery();
  if (starts) {
    enter_recovery(cwnd_packets);
  }
  return starts;
}

// RFC 6675, section 5.1: "RecoveryPoint" is set, so that losses found later start no recovery.
void LossRecovery::on_timeout() {
  state_ = State::kLoss;
  recovery_point_ = scoreboard_.end();
  must_retransmit_ = true;
  duplicates_ = 0;
  window_floor_ = 0;
}

std::unique_ptr<LossRecovery> make_loss_recovery(const TcpSettings& settings,
                                                 Scoreboard& scoreboard) {
  switch (settings.recovery) {
    case RecoveryKind::kNewReno:
      return std::make_unique<NewRenoRecovery>(settings, scoreboard);
    case RecoveryKind::kNs2NewReno:
      return std::make_unique<Ns2NewRenoRecovery>(settings, scoreboard);
    case RecoveryKind::kNs2Linux:
      return std::make_unique<Ns2LinuxRecovery>(settings, scoreboard);
    case RecoveryKind::kRack:
      return std::make_unique<RackRecovery>(settings, scoreboard);
    case RecoveryKind::kSack:
      break;
  }
  return std::make_unique<SackRecovery>(settings, scoreboard);
}

}  // namespace remy
