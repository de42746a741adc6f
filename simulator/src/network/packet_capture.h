#pragma once

#include <cstdint>
#include <vector>

#include "transports/endpoint.h"

namespace remy {

// The events of one sender, in order. Each is a row, and the columns are arrays.
struct PacketCapture {
  enum class Kind : std::uint8_t {
    kSent,     // a data packet leaves
    kAck,      // an ACK arrives
    kLost,     // a packet is found lost
    kTimeout,  // a packet is found lost because the retransmission timer expires
    kState,    // the sender's state after other events at this time
  };

  std::uint32_t sender = 0;     // index of the sender in its network
  bool is_ecn_capable = false;  // the sender sets ECT in its packets (RFC 3168)

  // An ACK acknowledges the packet that it echoes alone (AckMeaning::kEcho). Its `cumulative` is
  // the end of the packets that have left the sender's window.
  bool acks_echo_alone = false;

  std::vector<std::uint8_t> kind;
  std::vector<double> time_ms;
  // The packet that is sent or found lost, or that an ACK echoes. Packets are counted over all on
  // periods, from 0, and so are transmissions.
  std::vector<std::uint64_t> sequence;
  std::vector<std::uint64_t> transmission_number;

  // A row for each kAck.
  std::vector<double> echoed_ms;    // when the packet was sent that the ACK echoes
  std::vector<double> received_ms;  // when that packet was received
  std::vector<std::uint64_t> cumulative;
  std::vector<std::uint64_t> marked;  // acknowledged packets with a CE mark
  std::vector<std::uint64_t> blocks;  // number of SACK blocks
  // A row for each SACK block.
  std::vector<std::uint64_t> block_first;
  std::vector<std::uint64_t> block_end;

  // A row for each kState.
  std::vector<double> window_packets;
  std::vector<double> intersend_ms;
  std::vector<std::uint64_t> first;  // packets before it are acknowledged or given up
  std::vector<std::uint64_t> in_flight;
  std::vector<double> smoothed_rtt_ms;   // 0 before the first sample
  std::vector<double> rtt_variation_ms;  // as in RFC 6298
  std::vector<double> ssthresh_packets;  // as in RecoveryState

  void add(Kind what, double now_ms, std::uint64_t packet = 0, std::uint64_t transmission = 0) {
    kind.push_back(static_cast<std::uint8_t>(what));
    time_ms.push_back(now_ms);
    sequence.push_back(packet);
    transmission_number.push_back(transmission);
  }
};

}  // namespace remy
