#pragma once

#include <cstdint>
#include <limits>

namespace remy {

// The connection's delivery state at the time when a packet was sent: the variables P.* of
// draft-ietf-ccwg-bbr, section 4.1, from which the delivery rate is sampled.
struct DeliverySnapshot {
  double sent_ms = 0;
  std::uint64_t delivered = 0;  // packets delivered so far
  double delivered_ms = 0;      // time of the ACK that `delivered` was last updated by
  double first_sent_ms = 0;     // start of the sampling interval: its first packet's sending time
  std::uint64_t tx_in_flight = 0;  // packets in flight, this one included
  std::uint64_t lost = 0;          // packets found lost so far
  bool is_app_limited = false;
  bool is_retransmission = false;  // the packet had been sent before; known with RACK alone
};

// A packet is sent.
struct SendEvent {
  double now_ms = 0;
  std::uint64_t transmission_number = 0;  // counts transmissions, retransmissions included
  std::uint64_t in_flight = 0;            // this packet included
  bool is_retransmission = false;
};

// An ACK arrives. All counts are packets.
struct AckEvent {
  double now_ms = 0;
  // When the transmission that triggered the ACK was sent and received. Clocks are synchronous.
  double sent_ms = 0;
  double received_ms = 0;
  double rtt_ms = 0;                      // now_ms - sent_ms
  std::uint64_t transmission_number = 0;  // of the transmission that triggered the ACK
  std::uint64_t newly_acked = 0;          // by how much the cumulative ACK advances
  std::uint64_t newly_delivered = 0;      // first reported delivered by this ACK, SACKs included
  std::uint64_t newly_marked = 0;         // delivered packets with a CE mark (RFC 3168)
  std::uint64_t total_delivered = 0;      // C.delivered, newly_delivered included
  std::uint64_t total_lost = 0;
  std::uint64_t prior_in_flight = 0;  // before this ACK
  std::uint64_t in_flight = 0;        // after this ACK
  bool in_recovery = false;           // RFC 6675: until all sent before the first loss is acked
  bool is_cwnd_limited = false;     // the window was full when the acked packet was sent, or later
  DeliverySnapshot packet = {};     // of the most recently sent packet that is newly delivered
  double delivery_rate_per_ms = 0;  // RS.delivery_rate in packets per ms; 0 without a sample
  double delivery_interval_ms = 0;  // RS.interval
  double xcp_feedback_packets = 0;  // window change that XCP routers grant
};

// A packet is found lost.
struct LossEvent {
  double now_ms = 0;
  std::uint64_t transmission_number = 0;  // of the lost transmission
  std::uint64_t in_flight = 0;            // before the loss was found
  bool starts_recovery = false;           // the first loss of a window of data: a congestion event
  DeliverySnapshot packet;
};

// The retransmission timer expires. Packets in flight are considered lost: all of them, or with
// RACK those that were sent long enough ago (RFC 8985, section 6.3).
struct TimeoutEvent {
  double now_ms = 0;
  std::uint64_t in_flight = 0;   // before the timeout
  std::uint64_t newly_lost = 0;  // of these
  bool is_first = false;         // no earlier timeout since new data was acknowledged
  bool starts_recovery = false;  // no packet was known to be missing
};

// Events that a controller needs. The transport skips the work for those that it does not need.
struct ControllerNeeds {
  bool on_sent = true;  // on_sent() is called
  // True: every ACK is reported by on_ack() with all fields set. False: an in-order ACK of one
  // packet outside recovery is reported by on_in_order_ack(). For other ACKs on_ack() sets only
  // now_ms, rtt_ms, newly_acked, newly_delivered, in_recovery and is_cwnd_limited.
  bool full_acks = true;
};

// The congestion control of one connection. The transport (transports/tcp_sender.h) reports events;
// the controller answers with a congestion window, a pacing interval and a timer. The transport
// detects and retransmits losses. Times are simulated ms, windows are packets.
class CongestionController {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit CongestionController(const ControllerNeeds& needs = {}) : needs_(needs) {}
  virtual ~CongestionController() = default;

  // Resets all state: a connection starts.
  virtual void start(double now_ms) = 0;
  // An ACK arrives. Losses that it reveals are reported first, by on_loss().
  virtual void on_ack(const AckEvent& ack) = 0;
  // Replaces on_ack() for an in-order ACK of one packet, unless needs().full_acks.
  virtual void on_in_order_ack(double /*now_ms*/, double /*rtt_ms*/, bool /*is_cwnd_limited*/) {}
  // A packet is found lost. Called once for each packet.
  virtual void on_loss(const LossEvent& loss) = 0;
  // The retransmission timer expires.
  virtual void on_timeout(const TimeoutEvent& timeout) = 0;
  // A packet is sent. Called only if needs().on_sent.
  virtual void on_sent(const SendEvent&) {}
  // A packet is about to be sent while none is in flight. Called before on_sent().
  virtual void on_transmit_start(double /*now_ms*/) {}
  // Nothing has been in flight for one retransmission timeout (RFC 5681, section 4.1). Not called
  // by transports that validate the window.
  virtual void on_idle_timeout(double /*now_ms*/) {}
  // The sender does not use all of its window: cwnd becomes `packets`, and ssthresh at least three
  // quarters of the old cwnd. Called only by transports that validate the window (RFC 7661).
  // Controllers that model the path, such as BBR, ignore it, as in Linux.
  virtual void lower_unused_window(double /*packets*/) {}
  // The last recovery or timeout was spurious, since nothing was lost: window and ssthresh become
  // at least what they were before (RFC 4015).
  virtual void on_spurious_recovery() {}
  // cwnd is below ssthresh.
  virtual bool is_in_slow_start() const { return false; }
  // The controller's own timer expires: next_tick_ms() is reached.
  virtual void on_tick(double /*now_ms*/) {}
  // Window change in packets that the next packet requests from XCP routers.
  virtual double xcp_demand_packets() const { return 0; }

  // Slow-start threshold in packets (RFC 5681's ssthresh); at least 1e9 if there is none.
  virtual double slow_start_threshold() const { return kNever; }

  // Congestion window in packets. The transport rounds it down, to at least 1.
  double cwnd() const { return cwnd_; }
  // Least time between two transmissions; 0 disables pacing.
  double pacing_interval_ms() const { return pacing_interval_ms_; }
  double next_tick_ms() const { return next_tick_ms_; }
  const ControllerNeeds& needs() const { return needs_; }

 protected:
  double cwnd_ = 1;
  double pacing_interval_ms_ = 0;
  double next_tick_ms_ = kNever;

 private:
  ControllerNeeds needs_;
};

}  // namespace remy
