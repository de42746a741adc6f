#pragma once

#include <cstdint>
#include <limits>

namespace remy {

// What the transport knew when it sent a packet, for samples of the delivery rate
// (draft-cheng-iccrg-delivery-rate-estimation, section 3).
struct SendState {
  double sent_ms = 0;
  std::uint64_t delivered = 0;  // packets known to be delivered by then
  double delivered_ms = 0;      // when the last of them was known
  double first_sent_ms = 0;     // when the first of the flight was sent that is measured
  std::uint64_t in_flight = 0;  // with this packet
  std::uint64_t lost = 0;       // packets known to be lost by then
  bool is_application_limited = false;
};

// A packet leaves.
struct Sent {
  double now_ms = 0;
  std::uint64_t serial = 0;     // of the transmission
  std::uint64_t in_flight = 0;  // with it
  bool is_repetition = false;
};

// An ACK came.
struct Ack {
  double now_ms = 0;
  double sent_ms = 0;      // the transmission that caused it: when it left,
  double received_ms = 0;  // and when it was received (the clocks agree)
  double rtt_ms = 0;       // now_ms - sent_ms
  std::uint64_t serial = 0;
  std::uint64_t acknowledged = 0;     // packets by which the cumulative ACK moved
  std::uint64_t delivered = 0;        // packets known now, and not before, to be delivered
  std::uint64_t marked = 0;           // of these, how many routers have marked
  std::uint64_t total_delivered = 0;  // with these
  std::uint64_t total_lost = 0;
  std::uint64_t prior_in_flight = 0;
  std::uint64_t in_flight = 0;
  bool in_recovery = false;        // until all is acknowledged that was sent when a loss was found
  bool is_window_limited = false;  // the window was full when the packet was sent, or since
  SendState packet = {};           // of the newest packet delivered
  // Packets a ms between that packet's sending and now; 0 if it cannot be told.
  double delivery_rate_per_ms = 0;
  double delivery_interval_ms = 0;
  double feedback_packets = 0;  // what XCP's routers grant
};

// A packet is found to be lost.
struct Loss {
  double now_ms = 0;
  std::uint64_t serial = 0;
  std::uint64_t in_flight = 0;   // before it was found
  bool starts_recovery = false;  // the first of a window: one signal of congestion
  SendState packet;
};

// The retransmission timer expired; all in flight is taken for lost.
struct Timeout {
  double now_ms = 0;
  std::uint64_t in_flight = 0;  // before
  bool is_first = false;        // since the last ACK of new data
};

// What a controller is told. Who needs less saves the transport the reckoning of it.
struct ControllerNeeds {
  // sent() is called.
  bool hears_of_sending = true;
  // Every ACK comes with all that an Ack has; else one of the next packet alone, with nothing
  // missing, may come as progressed(), and others have now_ms, rtt_ms, acknowledged, delivered,
  // in_recovery and is_window_limited at least.
  bool reads_whole_acks = true;
};

// Congestion control on the transport body (senders/transport.h), which says what was sent,
// acknowledged and lost, sends again what was lost, and keeps to window and pacing. One is made for
// a sender; what it draws is named by a key. Times are simulated ms, windows packets.
class Controller {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit Controller(const ControllerNeeds& needs = {}) : needs_(needs) {}
  virtual ~Controller() = default;

  // An on period starts with nothing known: the first, or each one where no state is kept.
  virtual void start(double now_ms) = 0;
  virtual void acknowledged(const Ack& ack) = 0;
  // The same, outside recovery, of an ACK for one packet by which nothing was found to be missing.
  virtual void progressed(double /*now_ms*/, double /*rtt_ms*/, bool /*is_window_limited*/) {}
  // Once for each packet, before the ACK that showed it.
  virtual void lost(const Loss& loss) = 0;
  virtual void timed_out(const Timeout& timeout) = 0;
  virtual void sent(const Sent&) {}
  // A packet leaves when none is in flight; before sent().
  virtual void resumed(double /*now_ms*/) {}
  // Nothing has been in flight for a retransmission timeout (RFC 5681, section 4.1).
  virtual void idled(double) {}
  // The controller acts of itself, at next_tick_ms().
  virtual void tick(double) {}
  // Of the packet that leaves next, for XCP's routers: what the sender asks for.
  virtual double wanted_packets() const { return 0; }

  // Packets that may be in flight, rounded down; at least one is sent.
  double window_packets() const { return window_packets_; }
  // Least time between two packets; 0: none.
  double intersend_ms() const { return intersend_ms_; }
  double next_tick_ms() const { return next_tick_ms_; }
  const ControllerNeeds& needs() const { return needs_; }

 protected:
  double window_packets_ = 1;
  double intersend_ms_ = 0;
  double next_tick_ms_ = kNever;

 private:
  ControllerNeeds needs_;
};

}  // namespace remy
