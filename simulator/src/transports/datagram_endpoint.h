#pragma once

#include "transports/transport.h"

namespace remy {

// Runs a RemyCC over datagrams, as Remy's own simulator and network/dumbbell.h do. Nothing is
// retransmitted, and the sender learns of no loss: a packet leaves the window once a later one is
// acknowledged. Each on period starts with an empty memory. An on period of a number of packets
// ends when all of them are received or lost.
class DatagramEndpoint final : public Endpoint {
 public:
  DatagramEndpoint(const EndpointSetting& setting);

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override;
  void switch_off(double now_ms) override;
  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override;
  double next_act_ms() const override { return next_ms_; }
  void act(double now_ms, PacketSink& sink) override;
  bool is_done() const override { return is_counted_ && unresolved_ == 0; }
  Pace pace() const override;
  RecoveryState recovery_state() const override {
    return {.first = acknowledged_end_, .in_flight = results_.packets_sent - acknowledged_end_};
  }
  AckMeaning ack_meaning() const override { return AckMeaning::kEcho; }
  void on_packet_lost(const Segment& segment, double now_ms) override;
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override;
  double delayed_ack_due_ms() const override { return delayed_ack_due_ms_; }
  std::optional<std::pair<Segment, AckContent>> take_delayed_ack(double now_ms) override;

 private:
  static constexpr double kLongAgo = -kNever;

  void used(std::uint32_t rule);
  bool is_of_this_period(const Segment& segment) const {
    return segment.transmission_number >= period_begin_;
  }
  void resolve(const Segment& segment);
  AckTimes read(const Segment& echo, double now_ms);
  // Packets that are sent together when pacing allows; 0 if the window is full.
  std::uint32_t bunch() const;
  // Sets window_end_ by the window and the length of the flow.
  void open_window();
  void send_what_may_leave(double now_ms, PacketSink& sink);

  AnyController controller_;
  NoisyClock clock_;
  const bool is_exact_;
  NoisyClock::Reader reader_;
  FlowTag flow_;  // names the random draws of the clock
  RuleObserver* observer_;
  PathTelemetry* telemetry_;
  std::uint32_t sender_;
  Segment outgoing_;  // template of all packets
  double next_ms_ = kNever;
  // The packet whose ACK is delayed.
  std::optional<Segment> unacknowledged_;
  double delayed_ack_due_ms_ = kNever;
  double last_send_ms_ = kLongAgo;  // of this on period
  // Transmission numbers: the first of this on period, the end of the acknowledged packets, the end
  // of the window.
  std::uint64_t period_begin_ = 0;
  std::uint64_t acknowledged_end_ = 0;
  std::uint64_t window_end_ = 0;
  bool is_on_ = false;
  // Of an on period with a number of packets: how many are neither received nor lost yet, and the
  // end of their transmission numbers.
  bool is_counted_ = false;
  std::uint64_t unresolved_ = 0;
  std::uint64_t flow_end_ = 0;
};

}  // namespace remy
