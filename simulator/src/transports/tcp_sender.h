#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "senders/congestion_controller.h"
#include "transports/cwnd_validation.h"
#include "transports/delivery_rate.h"
#include "transports/endpoint.h"
#include "transports/loss_recovery.h"
#include "transports/proportional_rate_reduction.h"
#include "transports/retransmission_timer.h"
#include "transports/scoreboard.h"
#include "transports/tail_loss_probe.h"
#include "transports/tcp_receiver.h"
#include "transports/tcp_settings.h"

namespace remy {

// The sending end of a TCP connection, with its receiver (tcp_receiver.h). It sends packets as the
// congestion controller's window and pacing allow, turns ACKs into the controller's events, and
// retransmits lost packets. Its parts: the scoreboard knows the state of each packet, LossRecovery
// finds losses, RetransmissionTimer has the RTO, TailLossProbe the timer before it,
// DeliveryRateSampler the delivery rate, ProportionalRateReduction the window during recovery and
// CwndValidation the window that is not used.
//
// An ACK enters by on_ack() or, together with its data packet, by on_round_trip(). Both end in
// process_ack(), but for in-order packets on the fast path of on_round_trip().
class TcpSender final : public Endpoint {
 public:
  TcpSender(const TcpSettings& settings, std::unique_ptr<CongestionController> controller);

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override;
  void switch_off(double now_ms) override;
  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override;
  double on_round_trip(const Segment& segment, double received_ms, double now_ms,
                       PacketSink& sink) override;
  double next_act_ms() const override;
  void act(double now_ms, PacketSink& sink) override;
  bool is_done() const override {
    return (settings_.retransmits ? scoreboard_.first() : connection_start_ + resolved_) >=
           data_end_;
  }
  void on_packet_lost(const Segment& segment, double now_ms) override;
  Pace pace() const override { return {controller_->cwnd(), controller_->pacing_interval_ms()}; }
  RecoveryState recovery_state() const override {
    return {scoreboard_.first(), in_flight(), timer_.smoothed_ms(), timer_.variation_ms(),
            controller_->slow_start_threshold()};
  }
  AckMeaning ack_meaning() const override {
    return settings_.retransmits ? AckMeaning::kContent : AckMeaning::kEcho;
  }
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override;
  double delayed_ack_due_ms() const override { return receiver_.delayed_ack_due_ms(); }
  std::optional<std::pair<Segment, AckContent>> take_delayed_ack(double now_ms) override;

  // Read by tests.
  const CongestionController& controller() const { return *controller_; }
  const RetransmissionTimer& timer() const { return timer_; }
  std::uint64_t in_flight() const { return scoreboard_.in_flight() - recovery_->duplicates(); }
  bool in_recovery() const { return recovery_->in_recovery(); }

 private:
  // What an ACK says, once the scoreboard is up to date.
  struct ReceivedAck {
    double sent_ms;        // when the packet was sent that it echoes, or that packet's time stamp
    double received_ms;    // when that packet was received
    double time_stamp_ms;  // the time stamp that it echoes (RFC 7323)
    double rtt_ms;         // as measured, with the RTT offset
    std::uint64_t transmission_number;
    std::uint64_t first_before;     // first packet not acknowledged before this ACK
    std::uint64_t prior_in_flight;  // before this ACK
    std::uint64_t newly_acked;      // by how much the cumulative ACK advances
    std::uint64_t newly_delivered;  // packets first reported delivered, SACKs included
    std::uint64_t newly_marked;
    bool is_duplicate;        // the receiver had the packet already
    double feedback_packets;  // window change that XCP routers grant
    const Scoreboard::Transmission*
        newest;  // newly delivered, sent last; null without rate samples
  };

  static constexpr double kMaximumWindow = 1e6;  // packets
  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

  void start_connection(double now_ms);

  double on_round_trip_off_fast_path(const Segment& segment, double received_ms, double now_ms,
                                     PacketSink& sink);
  void process_ack(ReceivedAck ack, bool is_simple, double now_ms, PacketSink& sink);
  void process_any_ack(const ReceivedAck& ack, double now_ms, PacketSink& sink);
  void on_ack_without_retransmission(const Segment& echo, const AckContent& content, double now_ms);
  void on_new_data_acked(bool was_in_recovery, double now_ms);
  double with_rtt_offset(double rtt_ms) {
    return rtt_ms + std::exchange(next_rtt_offset_ms_, settings_.rtt_offset_ms);
  }
  bool is_cwnd_limited(const ReceivedAck& ack) const;
  void undo_spurious_recovery();
  void process_probe_ack(const ReceivedAck& ack, double now_ms);
  void on_loss(std::uint64_t packet, std::uint64_t prior_in_flight, double now_ms);
  void report_loss(std::uint64_t packet, bool starts_recovery, std::uint64_t prior_in_flight,
                   double now_ms);
  void report_brief_ack(const ReceivedAck& ack, double now_ms);
  void report_full_ack(const ReceivedAck& ack, double now_ms);
  void on_retransmission_timeout(double now_ms);
  void on_reordering_timer(double now_ms);
  void send_tail_loss_probe(double now_ms, PacketSink& sink);
  void schedule_tail_loss_probe(double now_ms);
  bool may_probe() const;

  double next_event_ms() const;
  std::uint64_t cwnd_packets() const;
  std::uint64_t window_packets() const;
  void on_write(double now_ms, std::uint64_t data_end);
  void validate_cwnd(double now_ms, std::uint64_t end_before);
  void send_allowed_packets(double now_ms, PacketSink& sink);
  void send_while_allowed(double now_ms, PacketSink& sink);
  void send_packet(bool is_retransmission, double now_ms, PacketSink& sink);
  void send_unpaced(double now_ms, PacketSink& sink);
  void transmit(std::uint64_t packet, Scoreboard::Transmission& transmission, double now_ms,
                PacketSink& sink);
  void update_fast_path();

  const TcpSettings settings_;
  std::unique_ptr<CongestionController> controller_;
  const bool handles_round_trips_;  // on_round_trip() declines no packet of the connection
  const bool is_simple_;            // needs no more than RFC 5681, 6298 and 6675
  // The packet that takes the fast path of on_round_trip() if it arrives next; kEndless if none.
  std::uint64_t fast_path_packet_ = kEndless;
  AckEvent brief_ack_;  // reused for controllers that do not need full ACKs

  Scoreboard scoreboard_;
  RetransmissionTimer timer_;
  std::unique_ptr<LossRecovery> recovery_;
  ProportionalRateReduction prr_;
  TailLossProbe probe_;
  CwndValidation validation_;
  DeliveryRateSampler delivery_;
  TcpReceiver receiver_;

  bool has_started_ = false;
  bool has_timed_out_ = false;          // since new data was acknowledged
  std::uint64_t connection_start_ = 0;  // first packet of the connection
  std::uint64_t data_end_ = 0;          // end of the packets that there are to send
  std::uint64_t cwnd_limited_end_ = 0;  // packets before it were sent while the window was full
  std::uint64_t next_transmission_number_ = 0;
  std::uint64_t resolved_ = 0;  // without retransmission: packets received or lost in the network
  Segment outgoing_;            // template of all packets
  double last_send_ms_ = -kNever;
  double next_rtt_offset_ms_ = 0;
  double time_stamp_ms_ = 0;     // TS.Recent of the receiver, for on_round_trip()
  double pacing_ms_ = kNever;    // when the next packet may be sent that the window allows
  double recovery_ms_ = kNever;  // when the reordering timer or the tail loss probe is due
};

}  // namespace remy
