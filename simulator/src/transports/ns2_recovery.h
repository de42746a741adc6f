#pragma once

#include <optional>
#include <span>

#include "core/ring.h"
#include "transports/newreno_recovery.h"

namespace remy {

// Recovery as in ns-2.35's Agent/TCP/Newreno. It differs from RFC 6582: a partial ACK yields no RTT
// sample and leaves one duplicate counted; during recovery an ACK lets at most two packets be sent;
// after a timeout the first two duplicates still let a packet be sent. RTTs are measured by time
// stamps (RFC 7323).
class Ns2NewRenoRecovery final : public NewRenoRecovery {
 public:
  Ns2NewRenoRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : NewRenoRecovery(settings, scoreboard, {.uses_sack = false, .measures_by_time_stamps = true},
                        kBurstLimit) {}

 private:
  static constexpr std::uint64_t kBurstLimit = 2;  // maxburst_

  bool takes_time_stamp_sample(std::uint64_t newly_acked, bool remains) const override {
    return newly_acked > 0 && !remains;
  }
  std::uint64_t least_duplicates() const override { return 1; }
  bool counts_duplicates_after_timeout() const override { return true; }
};

// Recovery as in ns-2.35's Agent/TCP/Linux. It differs from RFC 6675: losses are found by the
// distance to the highest packet received (FACK); the window is halved gradually, by one packet for
// two ACKs (rate halving); a loss after a timeout starts recovery; SACKs are forgotten when
// recovery ends. A retransmission is lost if a packet sent more than four transmissions later has
// been delivered. Every ACK yields an RTT sample by its time stamp and restarts the timer.
class Ns2LinuxRecovery final : public LossRecovery {
 public:
  Ns2LinuxRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : LossRecovery(settings, scoreboard,
                     {.measures_by_time_stamps = true,
                      .ignores_old_acks = true,
                      .restarts_timer_at_every_ack = true}) {}

  void start_connection(std::uint64_t first_packet) override;
  std::optional<std::uint64_t> exit_recovery() override;
  std::span<const std::uint64_t> detect_losses(const AckOfRecovery& ack) override;
  void on_timeout() override;
  void on_retransmission(std::uint64_t packet, std::uint64_t number) override;
  void before_sending(std::uint64_t in_flight) override;
  void after_sending(std::uint64_t in_flight) override;

 private:
  bool takes_time_stamp_sample(std::uint64_t, bool) const override { return true; }
  bool starts_recovery() const override { return state_ != State::kRecovery; }
  void enter_recovery(std::uint64_t cwnd_packets) override;
  void detect_lost_retransmissions();

  struct Retransmission {
    std::uint64_t packet;
    std::uint64_t transmission_number;
  };

  static constexpr std::uint64_t kRetransmissionThreshold = 4;

  Ring<Retransmission> retransmissions_;  // by transmission_number
  std::uint64_t newest_delivered_ = 0;    // transmission number
};

}  // namespace remy
