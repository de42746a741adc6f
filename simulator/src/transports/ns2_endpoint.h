#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>

#include "senders/remy_controller.h"
#include "transports/reassembly.h"
#include "transports/retransmission_timer.h"
#include "transports/transport.h"

namespace remy {

// Runs a RemyCC as "An Experimental Study of the Learnability of Congestion Control" did in ns-2.
// The window counts transmissions, retransmissions included: all before the latest acknowledged one
// have left it. A missing packet is retransmitted once when it is first found missing, and after
// that only by timeouts. The receiver delivers in order. Losses change neither window nor memory.
// Packets in flight or missing stay in the window over off periods.
class Ns2Endpoint final : public Endpoint {
 public:
  explicit Ns2Endpoint(const EndpointSetting& setting);

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override;
  void switch_off(double now_ms) override;
  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override;
  double next_act_ms() const override { return std::min(next_send_ms_, timer_.expiry_ms()); }
  void act(double now_ms, PacketSink& sink) override;
  bool is_done() const override { return acknowledged_end_ >= data_end_; }
  Pace pace() const override;
  RecoveryState recovery_state() const override {
    return {.first = acknowledged_end_,
            .in_flight = results_.packets_sent - latest_serial_end_,
            .smoothed_rtt_ms = timer_.smoothed_ms(),
            .rtt_variation_ms = timer_.variation_ms()};
  }
  AckMeaning ack_meaning() const override { return AckMeaning::kContentAndEcho; }
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override;

 private:
  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

  void used(std::uint32_t rule);
  void reset_controller();
  void find_missing(std::uint64_t sequence, double now_ms);
  bool has_room() const {
    return results_.packets_sent < latest_serial_end_ + controller_.window_packets();
  }
  bool has_something() const { return !missing_.empty() || next_sequence_ < data_end_; }
  void set_send_timer(double now_ms);
  void send_next(double now_ms, PacketSink& sink);
  void send(std::uint64_t sequence, double now_ms, PacketSink& sink);

  AnyController controller_;
  RuleObserver* observer_;
  PathTelemetry* telemetry_;
  std::uint32_t sender_;
  Segment outgoing_;  // template of all packets

  RetransmissionTimer timer_;
  double usual_offset_ms_;  // of measured RTTs
  double offset_ms_ = 0;    // of the next RTT
  double last_send_ms_ = -kNever;
  double next_send_ms_ = kNever;
  // Packets by sequence number: the next new one, the end of the data, the end of those
  // acknowledged in order, the end of the highest received.
  std::uint64_t next_sequence_ = 0;
  std::uint64_t data_end_ = 0;
  std::uint64_t acknowledged_end_ = 0;
  std::uint64_t received_end_ = 0;
  std::set<std::uint64_t> missing_;  // packets that wait for their retransmission
  // Transmission numbers: the end of the acknowledged ones, the first of this on period.
  std::uint64_t latest_serial_end_ = 0;
  std::uint64_t period_begin_ = 0;

  Reassembly reassembly_;
};

}  // namespace remy
