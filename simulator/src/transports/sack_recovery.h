#pragma once

#include "transports/loss_recovery.h"
#include "transports/rack.h"

namespace remy {

// Recovery by selective acknowledgements (RFC 6675). A lost retransmission is found by a timeout,
// or by RACK where the settings ask for it.
class SackRecovery : public LossRecovery {
 public:
  SackRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : SackRecovery(settings, scoreboard, {.uses_scoreboard_alone = !settings.uses_rack}) {}

  void start_connection(std::uint64_t first_packet) override;
  std::span<const std::uint64_t> detect_losses(std::uint64_t newly_acked,
                                               std::uint64_t transmission_number,
                                               bool was_in_recovery) override;
  void on_timeout() override;
  void on_retransmission(std::uint64_t packet, std::uint64_t number) override;

 protected:
  SackRecovery(const TcpSettings& settings, Scoreboard& scoreboard, const RecoveryRules& rules);

  // Marks packets lost that were sent once, and appends them to lost_.
  virtual void detect_first_losses();

  std::optional<Rack> rack_;
};

}  // namespace remy
