#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "senders/segment.h"
#include "transports/endpoint.h"
#include "transports/reassembly.h"
#include "transports/tcp_settings.h"

namespace remy {

// The receiving end of a TCP connection: it delivers packets in order and sends ACKs, with SACK
// blocks (RFC 2018), time stamps (RFC 7323) and delays (RFC 5681, section 4.2).
class TcpReceiver {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit TcpReceiver(const TcpSettings& settings)
      : sends_sacks_(settings.recovery == RecoveryKind::kSack ||
                     settings.recovery == RecoveryKind::kRack ||
                     settings.recovery == RecoveryKind::kNs2Linux),
        delivers_in_order_(settings.retransmits),
        delayed_ack_ms_(settings.delayed_ack_ms) {}

  // A connection starts with this packet.
  void start_connection(std::uint64_t first_packet);

  // A data packet of the connection arrives and is counted in the results. Returns its ACK, or
  // nullopt if the ACK is delayed.
  std::optional<AckContent> on_data(const Segment& segment, double now_ms,
                                    EndpointResults& results);

  double delayed_ack_due_ms() const { return delayed_ack_due_ms_; }
  std::pair<Segment, AckContent> take_delayed_ack();

 private:
  void fill_ack(AckContent& content, const Segment& segment, double received_ms);

  const bool sends_sacks_;
  const bool delivers_in_order_;
  const double delayed_ack_ms_;

  Reassembly reassembly_;
  double time_stamp_ms_ = 0;           // TS.Recent (RFC 7323)
  std::uint32_t unacked_packets_ = 0;  // packets that the next ACK acknowledges
  std::uint32_t unacked_marks_ = 0;    // of these, packets with a CE mark
  Segment delayed_packet_;             // the packet whose ACK is delayed
  double delayed_packet_received_ms_ = 0;
  double delayed_ack_due_ms_ = kNever;
};

}  // namespace remy
