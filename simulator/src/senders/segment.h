#pragma once

#include <cstdint>

namespace remy {

// What XCP's senders and routers tell each other in a header of every packet (Katabi 2002, section
// 3.1).
struct CongestionHeader {
  double window_packets = 0;
  double rtt_ms = 0;            // 0: not known yet
  double feedback_packets = 0;  // what the sender asks for, then what a router grants
};

// What travels in the general network (network/network.h): a data packet, or an ACK. Queues look at
// sender, bytes and is_ecn_capable, set is_marked, and keep the rest as it is.
struct Segment {
  double sent_ms = 0;          // when this transmission left its sender
  double queued_ms = 0;        // when it came to the queue that it waits in, which sets it
  std::uint64_t sequence = 0;  // of the data: counted over all on periods of its sender, from 0
  std::uint64_t serial = 0;    // of this transmission, first or again: likewise
  std::uint32_t sender = 0;
  std::uint32_t bytes = 0;  // on the wire
  std::uint32_t slot = 0;   // of what the network keeps for it
  std::uint16_t hop = 0;    // how many links it has crossed
  // Behind which of these it is lost, or only late; 0: behind none that is known yet.
  std::uint16_t lost_behind_hop = 0;
  bool is_ack = false;
  bool is_ecn_capable = false;
  bool is_delayed = false;  // before the queue that it comes to, where that is so
  bool is_late = false;     // where it would be lost
  bool is_marked = false;   // congestion experienced (RFC 3168)
  CongestionHeader congestion;
};

}  // namespace remy
