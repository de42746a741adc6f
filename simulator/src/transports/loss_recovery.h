#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transports/scoreboard.h"
#include "transports/tcp_settings.h"

namespace remy {

// Rules that differ between the RFCs and ns-2.
struct RecoveryRules {
  bool uses_sack = true;
  bool uses_scoreboard_alone = false;        // losses are those of Scoreboard::detect_losses()
  bool measures_by_time_stamps = false;      // RTTs by RFC 7323; otherwise by what the ACK echoes
  bool ignores_old_acks = false;             // ACKs below the first packet not acknowledged
  bool restarts_timer_at_every_ack = false;  // otherwise only at ACKs of new data
  bool tracks_transmissions = false;         // on_rtt(), on_sent() and on_delivered() are called
};

// An ACK as loss recovery sees it. The scoreboard is up to date with it.
struct AckOfRecovery {
  double now_ms = 0;
  std::uint64_t newly_acked = 0;          // by how much the cumulative ACK advances
  std::uint64_t transmission_number = 0;  // of the packet that the ACK echoes
  bool was_in_recovery = false;
  bool is_duplicate = false;   // the receiver had that packet already (DSACK, RFC 2883)
  double smoothed_rtt_ms = 0;  // SRTT, with this ACK's sample
};

// Finds lost packets and says what a sender may send until they are recovered. This is the base of
// one class per algorithm (RecoveryKind); TcpSender calls these functions in the order in which
// they are declared, and tells the congestion controller of the losses.
class LossRecovery {
 public:
  // Named as Linux's states of congestion avoidance.
  enum class State : std::uint8_t {
    kOpen,      // no packet is missing
    kRecovery,  // a loss was found; not all packets before recovery_point() are acknowledged
    kLoss,      // the same after a retransmission timeout
  };
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~LossRecovery() = default;

  State state() const { return state_; }
  bool in_recovery() const { return state_ == State::kRecovery; }
  // RFC 6675's RecoveryPoint, RFC 6582's "recover": recovery ends when all before it is acked.
  std::uint64_t recovery_point() const { return recovery_point_; }
  bool covers_recovery_point() const {
    return state_ != State::kOpen && scoreboard_.first() >= recovery_point_;
  }
  // Duplicate ACKs, each of which says that a packet has left the network, but not which.
  std::uint64_t duplicates() const { return duplicates_; }
  // The first lost packet is retransmitted whatever the window (RFC 5681, section 3.2, step 3).
  bool must_retransmit() const { return must_retransmit_; }
  // Least window during recovery; 0 outside of it, and for all algorithms but rate halving.
  std::uint64_t window_floor() const { return window_floor_; }
  // How many packets may be sent in response to one event.
  std::uint64_t burst_limit() const {
    return in_recovery() && burst_limit_ < kUnlimited ? burst_limit_ + (must_retransmit_ ? 1 : 0)
                                                      : kUnlimited;
  }
  bool uses_sack() const { return rules_.uses_sack; }
  bool measures_by_time_stamps() const { return rules_.measures_by_time_stamps; }
  bool ignores_old_acks() const { return rules_.ignores_old_acks; }
  bool restarts_timer_at_every_ack() const { return rules_.restarts_timer_at_every_ack; }

  // A connection starts with this packet.
  virtual void start_connection(std::uint64_t first_packet);

  // Returns how many packets an ACK reports delivered: `newly_delivered` by its own account, but
  // duplicate ACKs have reported some of them, or are such a report. Called only without SACK.
  virtual std::uint64_t count_delivered(std::uint64_t /*newly_acked*/,
                                        std::uint64_t newly_delivered, bool /*is_duplicate*/) {
    return newly_delivered;
  }
  // Whether the ACK yields a sample of the RTT. `remains` says that it does not end recovery.
  bool takes_rtt_sample(std::uint64_t newly_acked, std::uint64_t newly_delivered,
                        bool remains) const {
    return rules_.measures_by_time_stamps ? takes_time_stamp_sample(newly_acked, remains)
                                          : newly_delivered > 0;
  }
  // An ACK yields a sample of the RTT, and is not processed yet.
  virtual void on_rtt(double /*now_ms*/, double /*rtt_ms*/) {}
  // A packet is newly delivered. `transmission` is its most recent one. `time_stamp_ms` is the time
  // stamp of an ACK that covers the packet cumulatively; kNever if it is SACKed.
  virtual void on_delivered(std::uint64_t /*packet*/,
                            const Scoreboard::Transmission& /*transmission*/,
                            double /*time_stamp_ms*/, double /*now_ms*/) {}
  // The ACK shows that the receiver had what this recovery first retransmitted. `time_stamp_ms` is
  // the time stamp that it echoes (RFC 7323).
  virtual bool is_spurious(std::uint64_t /*newly_acked*/, double /*time_stamp_ms*/) const {
    return false;
  }
  // Ends a spurious recovery: no packet is lost.
  virtual void undo() {}
  // The ACK covers the recovery point. Returns a lost packet that starts another recovery, if any.
  virtual std::optional<std::uint64_t> exit_recovery();
  // False if the ACK cannot show any packet to be lost: a cheap check before detect_losses().
  bool may_detect_losses() {
    return !rules_.uses_scoreboard_alone || scoreboard_.may_detect_losses(duplicate_threshold_);
  }
  // Marks packets on the scoreboard that the ACK shows to be lost, and returns them. The result is
  // valid until the next call.
  virtual std::span<const std::uint64_t> detect_losses(const AckOfRecovery& ack) = 0;
  // A packet was found lost. Returns whether that starts recovery: a congestion event.
  bool on_loss(std::uint64_t cwnd_packets);
  // Whether an ACK of new data restarts the retransmission timer. Called if `was_in_recovery`.
  virtual bool restarts_timer() { return true; }
  // When on_reordering_timer() must be called; kNever if it need not.
  double reordering_timer_ms() const { return reordering_timer_ms_; }
  // Marks packets on the scoreboard that are lost by now without any ACK, and returns them as
  // detect_losses() does.
  virtual std::span<const std::uint64_t> on_reordering_timer(double /*now_ms*/,
                                                             double /*smoothed_rtt_ms*/) {
    return {};
  }
  // The retransmission timer has expired: marks packets in flight lost on the scoreboard, and
  // returns their number.
  virtual std::uint64_t mark_lost_on_timeout(double /*now_ms*/, double /*smoothed_rtt_ms*/) {
    return scoreboard_.mark_all_lost();
  }
  // Called after mark_lost_on_timeout().
  virtual void on_timeout();

  // A packet is sent, for the first time or again.
  bool tracks_transmissions() const { return rules_.tracks_transmissions; }
  virtual void on_sent(std::uint64_t /*packet*/, const Scoreboard::Transmission&) {}
  // A lost packet is sent again.
  virtual void on_retransmission(std::uint64_t /*packet*/, std::uint64_t /*number*/) {
    must_retransmit_ = false;
  }
  // Before packets are sent in response to an event, and after each. Called if window_floor() > 0.
  virtual void before_sending(std::uint64_t /*in_flight*/) {}
  virtual void after_sending(std::uint64_t /*in_flight*/) {}

 protected:
  LossRecovery(const TcpSettings& settings, Scoreboard& scoreboard, const RecoveryRules& rules = {},
               std::uint64_t burst_limit = kUnlimited)
      : scoreboard_(scoreboard),
        duplicate_threshold_(settings.duplicate_threshold),
        rules_(rules),
        burst_limit_(burst_limit) {}

  // takes_rtt_sample() where RTTs are measured by time stamps.
  virtual bool takes_time_stamp_sample(std::uint64_t newly_acked, bool /*remains*/) const {
    return newly_acked > 0;
  }
  virtual bool starts_recovery() const { return state_ == State::kOpen; }
  virtual void enter_recovery(std::uint64_t cwnd_packets);

  Scoreboard& scoreboard_;
  const std::uint64_t duplicate_threshold_;
  const RecoveryRules rules_;
  const std::uint64_t burst_limit_;
  State state_ = State::kOpen;
  bool must_retransmit_ = false;
  std::uint64_t connection_start_ = 0;
  std::uint64_t recovery_point_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t window_floor_ = 0;
  double reordering_timer_ms_ = kNever;
  std::vector<std::uint64_t> lost_;  // the result of detect_losses()
};

// Makes the algorithm that the settings name. The scoreboard outlives it.
std::unique_ptr<LossRecovery> make_loss_recovery(const TcpSettings& settings,
                                                 Scoreboard& scoreboard);

}  // namespace remy
