#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ring.h"
#include "core/windowed_filter.h"
#include "transports/loss_recovery.h"

namespace remy {

// Recovery by RACK (RFC 8985, section 6): a packet is lost if one that was sent a reordering window
// later has been delivered. Names are the RFC's. A recovery whose first retransmission was not
// needed is undone by the Eifel algorithm (RFC 3522). Tail loss probes are in tail_loss_probe.h.
class RackRecovery final : public LossRecovery {
 public:
  RackRecovery(const TcpSettings& settings, Scoreboard& scoreboard)
      : LossRecovery(settings, scoreboard, {.tracks_transmissions = true}) {}

  void start_connection(std::uint64_t first_packet) override;
  void on_rtt(double now_ms, double rtt_ms) override;
  void on_sent(std::uint64_t packet, const Scoreboard::Transmission& transmission) override;
  void on_delivered(std::uint64_t packet, const Scoreboard::Transmission& transmission,
                    double time_stamp_ms, double now_ms) override;
  bool is_spurious(std::uint64_t newly_acked, double time_stamp_ms) const override;
  void undo() override;
  std::optional<std::uint64_t> exit_recovery() override;
  std::span<const std::uint64_t> detect_losses(const AckOfRecovery& ack) override;
  std::span<const std::uint64_t> on_reordering_timer(double now_ms,
                                                     double smoothed_rtt_ms) override;
  std::uint64_t mark_lost_on_timeout(double now_ms, double smoothed_rtt_ms) override;

 private:
  static constexpr double kMinRttWindowMs = 300'000;  // net.ipv4.tcp_min_rtt_wlen of Linux
  static constexpr int kReoWndPersist = 16;           // recoveries

  // A transmission that is neither acknowledged nor lost, as far as is known.
  struct Sent {
    std::uint64_t packet;
    std::uint64_t transmission_number;
    double sent_ms;
  };

  bool is_outstanding(const Sent& sent) const;
  double reordering_window_ms(double smoothed_rtt_ms) const;
  void update_reordering_window(bool is_duplicate);
  void mark_overdue(double now_ms, double smoothed_rtt_ms);
  bool has_retransmissions_out() const;
  void leave_recovery();

  // In the order of transmission. Those of sent_before_ were sent before rack_number_: each is lost
  // or reordered.
  Ring<Sent> sent_;
  std::vector<Sent> sent_before_;
  WindowedMin min_rtt_;            // RACK.min_RTT
  std::uint64_t rack_number_ = 0;  // the most recently sent packet that was delivered, plus one
  double rack_rtt_ms_ = 0;         // RACK.rtt: its RTT
  std::uint64_t fack_ = 0;         // RACK.fack: end of the highest packet delivered before this ACK
  std::uint64_t next_fack_ = 0;    // with this ACK
  bool reordering_seen_ = false;   // RACK.reordering_seen
  std::uint64_t reo_wnd_mult_ = 1;            // RACK.reo_wnd_mult
  int reo_wnd_persist_ = 0;                   // RACK.reo_wnd_persist
  std::optional<std::uint64_t> dsack_round_;  // RACK.dsack_round
  double first_retransmission_ms_ = kNever;   // of this recovery (RFC 3522, RetransmitTS)
};

}  // namespace remy
