#pragma once

#include "transports/loss_recovery.h"

namespace remy {

// Recovery by duplicate and partial ACKs, without SACK (NewReno, RFC 6582).
class NewRenoRecovery : public LossRecovery {
 public:
  NewRenoRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : NewRenoRecovery(settings, scoreboard, {.uses_sack = false}, kUnlimited) {}

  std::uint64_t count_delivered(std::uint64_t newly_acked, std::uint64_t newly_delivered,
                                bool is_duplicate) override;
  std::span<const std::uint64_t> detect_losses(const AckOfRecovery& ack) override;
  bool restarts_timer() override;

 protected:
  NewRenoRecovery(const TcpSettings& settings, Scoreboard& scoreboard, const RecoveryRules& rules,
                  std::uint64_t burst_limit)
      : LossRecovery(settings, scoreboard, rules, burst_limit),
        is_impatient_(settings.is_impatient) {}

  // Duplicates that remain counted after a partial ACK, and whether any count after a timeout.
  virtual std::uint64_t least_duplicates() const { return 0; }
  virtual bool counts_duplicates_after_timeout() const { return false; }
  void enter_recovery(std::uint64_t cwnd_packets) override;

 private:
  std::uint64_t countable_duplicates() const;
  bool may_start_recovery_by_acks() const;

  const bool is_impatient_;
  bool is_first_partial_ = false;  // no partial ACK has arrived yet in this recovery
};

}  // namespace remy
