#pragma once

#include <algorithm>
#include <cstdint>

#include "senders/congestion_controller.h"

namespace remy {

// Samples the rate at which packets are delivered (draft-cheng-iccrg-delivery-rate-estimation-02),
// and counts what is delivered and lost. Names are the draft's.
class DeliveryRateSampler {
 public:
  std::uint64_t delivered() const { return delivered_; }  // C.delivered
  std::uint64_t lost() const { return lost_; }

  void on_delivered(std::uint64_t packets) { delivered_ += packets; }
  void on_lost(std::uint64_t packets) { lost_ += packets; }

  // Section 3.4: the sender has sent all data that there is, or new data is written then. Packets
  // sent from now on are application-limited until more than what is in flight is delivered.
  void on_app_limited(std::uint64_t in_flight) {
    app_limited_ = std::max<std::uint64_t>(delivered_ + in_flight, 1);
  }
  void on_connection_start() { app_limited_ = 0; }

  // Section 3.2, SendPacket(). `in_flight` is without the packet that is sent.
  DeliverySnapshot on_sent(double now_ms, std::uint64_t in_flight) {
    if (in_flight == 0) {
      first_sent_ms_ = now_ms;
      delivered_ms_ = now_ms;
    }
    return {.sent_ms = now_ms,
            .delivered = delivered_,
            .delivered_ms = delivered_ms_,
            .first_sent_ms = first_sent_ms_,
            .tx_in_flight = in_flight + 1,
            .lost = lost_,
            .is_app_limited = delivered_ <= app_limited_ && app_limited_ > 0};
  }

  // Section 3.3, UpdateRateSample() and GenerateRateSample(). `packet` is the most recently sent of
  // the packets that the ACK newly delivers.
  void sample(const DeliverySnapshot& packet, AckEvent& ack) {
    ack.packet = packet;
    delivered_ms_ = ack.now_ms;
    first_sent_ms_ = packet.sent_ms;
    const double send_elapsed_ms = packet.sent_ms - packet.first_sent_ms;
    const double ack_elapsed_ms = ack.now_ms - packet.delivered_ms;
    // "Use the longer of the send_elapsed and ack_elapsed"
    ack.delivery_interval_ms = std::max(send_elapsed_ms, ack_elapsed_ms);
    if (ack.delivery_interval_ms > 0) {
      ack.delivery_rate_per_ms =
          static_cast<double>(delivered_ - packet.delivered) / ack.delivery_interval_ms;
    }
  }

 private:
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
  double delivered_ms_ = 0;        // C.delivered_time
  double first_sent_ms_ = 0;       // C.first_sent_time
  std::uint64_t app_limited_ = 0;  // C.app_limited; 0 if the connection is not
};

}  // namespace remy
