#pragma once

#include <cstdint>

namespace remy {

// The XCP header of a packet (Katabi 2002, section 3.1).
struct CongestionHeader {
  double window_packets = 0;    // H_cwnd: the sender's congestion window
  double rtt_ms = 0;            // H_rtt: the sender's smoothed RTT; 0 if not measured yet
  double feedback_packets = 0;  // H_feedback: the sender's demand, then what routers grant
};

// A data packet or an ACK of the general network (network/network.h). Queues read sender, bytes and
// is_ecn_capable, and set is_marked and queued_ms.
struct Segment {
  double sent_ms = 0;                     // when this transmission was sent
  double queued_ms = 0;                   // when it joined its present queue
  std::uint64_t sequence = 0;             // counts the sender's packets over all on periods, from 0
  std::uint64_t transmission_number = 0;  // counts the sender's transmissions, from 0
  std::uint32_t sender = 0;
  std::uint32_t bytes = 0;     // on the wire
  std::uint32_t ack_slot = 0;  // where the network keeps an ACK's contents
  std::uint16_t hop = 0;       // number of links crossed so far
  // Value of `hop` behind the link that loses the segment, or delays it if is_late; 0 if none does.
  std::uint16_t lost_behind_hop = 0;
  bool is_ack = false;
  bool is_ecn_capable = false;
  bool is_delayed = false;  // is in the delay before a link (Cellsim's semantics)
  bool is_late = false;     // is reordered, not lost, behind lost_behind_hop
  bool is_marked = false;   // congestion experienced (RFC 3168)
  CongestionHeader congestion;
};

}  // namespace remy
