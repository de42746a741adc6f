#pragma once

#include <cstdint>

#include "transports/retransmission_timer.h"

namespace remy {

// The algorithm that finds lost packets and recovers from their loss.
enum class RecoveryKind : std::uint8_t {
  kSack,        // sack_recovery.h: RFC 6675
  kRack,        // rack_recovery.h, tail_loss_probe.h: RFC 8985
  kNewReno,     // newreno_recovery.h: RFC 6582, without SACK
  kNs2NewReno,  // ns2_recovery.h: ns-2.35's Agent/TCP/Newreno
  kNs2Linux,    // ns2_recovery.h: ns-2.35's Agent/TCP/Linux
};

// The parameters of a TCP connection. Packets are the unit of all counts, as all have one size.
struct TcpSettings {
  RecoveryKind recovery = RecoveryKind::kSack;
  std::uint64_t duplicate_threshold = 3;  // DupThresh (RFC 6675)
  // Proportional rate reduction (RFC 6937).
  bool uses_prr = false;
  // An idle or unused window shrinks as in Linux (cwnd_validation.h); otherwise the controller is
  // told of idle times (RFC 5681, section 4.1).
  bool validates_cwnd = false;
  // RFC 6582, section 3.2: only the first partial ACK restarts the timer, "Impatient"; otherwise
  // each does, "Slow-but-Steady".
  bool is_impatient = true;

  // The connection lasts over off periods; otherwise each on period starts a new one.
  bool keeps_state = false;
  // The window is validated, or the controller told, when nothing was in flight for one
  // retransmission timeout.
  bool reports_idle_timeouts = true;
  std::uint64_t receive_window_packets = 1'000'000;
  double delayed_ack_ms = 0;  // longest delay of an ACK (RFC 5681, section 4.2); 0 disables
  RetransmissionTimeouts timeouts;
  // Lost packets are retransmitted and delivery is in order. Otherwise a packet counts as lost once
  // a later one is received or an on period starts, and there is no timeout.
  bool retransmits = true;

  std::uint32_t sender = 0;  // index of the sender in its network
  std::uint32_t packet_bytes = 1500;
  bool is_ecn_capable = false;
  bool asks_xcp_routers = false;
  double rtt_offset_ms = 0;   // added to measured RTTs, except to a connection's first
  bool samples_rates = true;  // the controller reads AckEvent's delivery rates and packet snapshots
};

}  // namespace remy
