#pragma once

#include "transports/transport.h"

namespace remy {

// A RemyCC as in Remy's own simulator, and in network/dumbbell.h: nothing is sent again, no sender
// is told of a loss, a packet counts as gone once a later one was received, and an on period starts
// with nothing known. One by packets ends when all of them are received or lost.
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
  // How many packets leave together as soon as pacing lets them; none if the window has no room.
  std::uint32_t bunch() const;
  // Up to where the window, and what there is to send, let it send.
  void open_window();
  void send_what_may_leave(double now_ms, PacketSink& sink);

  RemyController<true> controller_;
  NoisyClock clock_;
  const bool is_exact_;
  NoisyClock::Reader reader_;
  FlowTag flow_;  // names the clock's draws
  RuleObserver* observer_;
  std::uint32_t sender_;
  std::uint32_t packet_bytes_;
  double next_ms_ = kNever;
  // A packet that was received and has no ACK yet.
  std::optional<Segment> unacknowledged_;
  double delayed_ack_due_ms_ = kNever;
  double last_send_ms_ = kLongAgo;  // in this on period
  // Serials: of the first packet of this on period, behind the largest acknowledged, behind the
  // last that may be sent.
  std::uint64_t period_begin_ = 0;
  std::uint64_t acknowledged_end_ = 0;
  std::uint64_t window_end_ = 0;
  bool is_on_ = false;
  // Of an on period by packets: what it has yet to see received or lost, and the
  // transmission_number behind its last.
  bool is_counted_ = false;
  std::uint64_t unresolved_ = 0;
  std::uint64_t flow_end_ = 0;
};

}  // namespace remy
