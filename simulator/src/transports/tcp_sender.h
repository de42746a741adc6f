#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "senders/congestion_controller.h"
#include "transports/endpoint.h"
#include "transports/reassembly.h"
#include "transports/retransmission_timer.h"
#include "transports/scoreboard.h"

namespace remy {

// How a transport repairs losses, and what it keeps.
struct TcpSettings {
  // Selective acknowledgements (RFC 2018) and their scoreboard (RFC 6675); else duplicate and
  // partial ACKs (RFC 6582).
  bool uses_sack = true;
  // A packet sent again is lost if one is received that left after it (RFC 8985, section 6.2, with
  // no reordering); else only a timeout shows that.
  bool finds_lost_repetitions = false;
  std::uint64_t repetition_threshold = 0;  // so many more must have left between
  // In recovery packets leave in proportion to those delivered (RFC 6937).
  bool reduces_in_proportion = false;
  // Without SACK, recovery that outlasts the timer of its first partial ACK ends in a timeout ("
  // impatient", RFC 6582, section 3.2); else every partial ACK restarts the timer.
  bool is_impatient = true;
  // As ns-2's Newreno does: a partial ACK takes no sample of the RTT, and leaves at least one
  // duplicate counted; in recovery at most two packets leave at an ACK; after a timeout the first
  // two duplicates still let a packet leave.
  bool has_ns2_partial_acks = false;
  // As ns-2's Linux agent does: losses by distance; what leaves in recovery is halved, one for two
  // ACKs, until the window is reached; a loss after a timeout starts recovery, too; at its end all
  // that was received selectively is forgotten; every ACK is sampled, and restarts the timer.
  bool has_ns2_linux_recovery = false;
  // RTTs are measured by the time stamp of the packet that last came in order (RFC 7323, section
  // 4), and only by ACKs of new data; else by the transmission that caused the ACK.
  bool measures_by_time_stamps = false;
  // Window, threshold and RTT outlast an off period; else each on period is a new connection, for
  // which all that was sent before is gone.
  bool keeps_state = false;
  // The controller hears of it when nothing was in flight for a timeout.
  bool notes_idleness = true;
  std::uint64_t duplicate_threshold = 3;
  std::uint64_t receive_window_packets = 1'000'000;
  double delayed_ack_ms = 0;  // 0: every packet is acknowledged at once
  RetransmissionTimeouts timeouts;
  // What is lost is sent again, and what is received handed on in order. Else a packet is gone as
  // soon as a later one was received, or an on period starts; there is no timeout.
  bool retransmits = true;
  std::uint32_t sender = 0;  // whose packets these are
  std::uint32_t packet_bytes = 1500;
  bool is_ecn_capable = false;
  bool asks_xcp_routers = false;
  double rtt_offset_ms = 0;  // of all RTTs that are measured but the first of a connection
  // The controller reads what packets were sent with (DeliverySnapshot), and samples of the
  // delivery rate; else they stay empty.
  bool samples_rates = true;
};

// A TCP sender and its receiver: a window of packets numbered in order, acknowledged in order and
// selectively, sent again when found to be lost; how many, a controller says. Packets count, bytes
// do not: all are of one size.
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
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override;
  double delayed_ack_due_ms() const override { return ack_due_ms_; }
  std::optional<std::pair<Segment, AckContent>> take_delayed_ack(double now_ms) override;

  // What a record of the simulation shows.
  const CongestionController& controller() const { return *controller_; }
  const RetransmissionTimer& timer() const { return timer_; }
  std::uint64_t in_flight() const { return scoreboard_.in_flight() - duplicates_; }
  bool in_recovery() const { return phase_ == Phase::kRecovery; }

 private:
  // Nothing is missing; a loss was found, and everything up to recovery_end_ is not yet
  // acknowledged; the same after a timeout.
  enum class Phase : std::uint8_t { kOpen, kRecovery, kTimedOut };

  static constexpr double kMaximumWindow = 1e6;
  static constexpr std::uint64_t kNs2Burst = 2;
  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t controller_window() const;
  std::uint64_t window() const;
  void restart_connection(double now_ms);
  // What an ACK told of the packets that are not acknowledged.
  struct News {
    double sent_ms;
    double received_ms;
    double rtt_ms;  // as measured
    std::uint64_t transmission_number;
    std::uint64_t first_before;
    std::uint64_t prior_in_flight;
    std::uint64_t acknowledged;
    std::uint64_t delivered;
    std::uint64_t marked;
    double feedback_packets;
    const Scoreboard::Transmission* newest;  // null where rates are not sampled
  };

  double exchanged_with_care(const Segment& segment, double received_ms, double now_ms,
                             PacketSink& sink);
  double exchanged_around_gap(const Segment& segment, double received_ms, double now_ms,
                              PacketSink& sink);
  template <bool kIsPlain>
  void take(News news, bool repeats_last, double now_ms, PacketSink& sink);
  void take_with_care(const News& news, bool repeats_last, double now_ms, PacketSink& sink);
  double measured_ms(double rtt_ms) {
    return rtt_ms + std::exchange(offset_ms_, settings_.rtt_offset_ms);
  }
  void look_for_exchanges();
  void end_exchanges();
  void send_in_order(std::uint64_t end, double now_ms, PacketSink& sink);
  void send_at_once(double now_ms, PacketSink& sink);
  void send_next(std::uint64_t packet, Scoreboard::Transmission& transmission, double now_ms,
                 PacketSink& sink);
  void restart_timer_at_progress(bool was_in_recovery, double now_ms);
  void tell_controller(const News& news, double now_ms);
  template <class Delivered>
  void acknowledge(const AckContent& content, Delivered delivered);
  void acknowledge_highest(const Segment& echo, const AckContent& content, double now_ms);
  bool takes_sample(std::uint64_t acknowledged, std::uint64_t delivered, bool is_in_recovery) const;
  std::uint64_t countable_duplicates() const;
  bool may_start_recovery_by_acks() const;
  // How many packets an ACK tells to be delivered.
  std::uint64_t count_duplicates(bool repeats_last, std::uint64_t acknowledged,
                                 std::uint64_t delivered);
  void sample_rate(const Scoreboard::Transmission& newest, AckEvent& ack);
  void start_recovery();
  void leave_recovery(std::uint64_t in_flight_before, double now_ms);
  // Tells the controller of a packet that was found to be lost.
  void notify(std::uint64_t packet, bool starts_recovery, std::uint64_t in_flight_before,
              double now_ms);
  void find_losses(std::uint64_t in_flight_before, double now_ms);
  void find_losses_without_sack(bool is_partial, std::uint64_t in_flight_before, double now_ms);
  void found_lost(std::uint64_t packet, std::uint64_t in_flight_before, double now_ms);
  void restart_timer(bool was_in_recovery, double now_ms);
  void timer_expired(double now_ms);
  void reduce_in_proportion(std::uint64_t delivered);
  void describe(AckContent& content, const Segment& segment, double received_ms);
  void send_what_may_leave(double now_ms, PacketSink& sink);
  void send_packet(bool is_repetition, double now_ms, PacketSink& sink);

  TcpSettings settings_;
  std::unique_ptr<CongestionController> controller_;
  // Packets and ACKs may be taken together: in order, around gaps, and without a thought to
  // anything but RFC 5681, 6298 and 6675.
  bool exchanges_;
  bool exchanges_gaps_;
  bool reads_whole_acks_;
  bool is_plain_;
  // What is next for the receiver, and the first that the sender waits for, where neither misses
  // any; else endless. The one of a plain transport with a usual timer, the other of one that is
  // not plain.
  std::uint64_t exchangeable_ = kEndless;
  std::uint64_t exchangeable_with_care_ = kEndless;
  AckEvent brief_ack_;  // of those who need not read whole ones

  // The sender.
  Scoreboard scoreboard_;
  RetransmissionTimer timer_;
  bool has_started_ = false;
  std::uint64_t connection_start_ = 0;  // the first packet of this connection
  std::uint64_t data_end_ = 0;          // behind the last packet that may be sent
  std::uint64_t next_serial_ = 0;
  std::uint64_t resolved_ = 0;  // received or lost of this connection, where nothing is repaired
  Segment next_;                // to leave, but for its time and numbers
  double last_send_ms_ = -std::numeric_limits<double>::infinity();
  double offset_ms_ = 0;       // of the next RTT
  double pacing_ms_ = kNever;  // when a packet may leave for which there is room

  Phase phase_ = Phase::kOpen;
  std::uint64_t recovery_end_ = 0;
  // The lowest lost packet leaves at once, window or not (RFC 5681, section 3.2).
  bool must_repeat_ = false;
  std::uint64_t duplicates_ = 0;   // ACKs that say a packet has left, but not which
  bool is_first_partial_ = false;  // no partial ACK has come yet in this recovery
  bool timed_out_again_ = false;
  std::uint64_t halving_window_ = 0;  // of ns-2's Linux agent
  // Of the proportional rate reduction.
  bool is_reducing_ = false;
  std::uint64_t reduction_start_packets_ = 0;  // RecoverFS
  std::uint64_t reduction_delivered_ = 0;
  std::uint64_t reduction_sent_ = 0;
  std::uint64_t reduction_window_ = 0;
  // Transmissions of lost packets, in the order of serials.
  struct Repetition {
    std::uint64_t packet;
    std::uint64_t transmission_number;
  };
  std::deque<Repetition> repetitions_;
  std::uint64_t newest_serial_ = 0;  // of those known to be received

  // Delivery.
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
  double delivered_ms_ = 0;
  double first_sent_ms_ = 0;
  std::uint64_t application_limited_until_ = 0;  // delivered_ by then
  std::uint64_t window_limited_end_ = 0;  // packets before left with the window full, or since

  // The receiver. Lags behind exchanges, and is not needed where these go around gaps.
  Reassembly reassembly_;
  double time_stamp_ms_ = 0;
  // Packets that wait for an ACK, how many of them are marked, the last of them, and until when.
  std::uint32_t unacknowledged_ = 0;
  std::uint32_t unacknowledged_marks_ = 0;
  Segment waiting_;
  double waiting_since_ms_ = 0;
  double ack_due_ms_ = kNever;
};

}  // namespace remy
