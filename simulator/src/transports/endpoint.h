#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "senders/segment.h"
#include "transports/rtt_statistics.h"

namespace remy {

// Packets [first, end) that a receiver holds beyond a gap (RFC 2018).
struct SackBlock {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

// The contents of an ACK. Its segment echoes sent_ms, sequence and transmission_number of the data
// packet that triggered it.
struct AckContent {
  double received_ms = 0;          // when the receiver got that data packet
  double time_stamp_ms = 0;        // sent_ms of the packet that last advanced the ACK (RFC 7323)
  std::uint64_t cumulative = 0;    // the receiver has all packets before this one
  std::uint32_t packets = 1;       // data packets that this ACK acknowledges, 2 if it was delayed
  std::uint32_t marked = 0;        // of these, packets with a CE mark (RFC 3168)
  bool is_duplicate = false;       // the receiver had that packet already (DSACK, RFC 2883)
  double feedback_packets = 0;     // window change that XCP routers grant
  std::uint32_t blocks = 0;        // valid entries of `sacks`
  std::uint32_t bytes = 0;         // on the wire; 0: the network's ack_bytes
  std::array<SackBlock, 3> sacks;  // most recent first
};

// Takes the packets that an endpoint sends. It is called from within functions of the endpoint and
// does not call the endpoint back.
class PacketSink {
 public:
  virtual void send(const Segment& segment, double now_ms) = 0;

 protected:
  ~PacketSink() = default;
};

// Counters of a sender and its receiver since the beginning of the simulation.
struct EndpointResults {
  std::uint64_t packets_sent = 0;           // transmissions, retransmissions included
  std::uint64_t packets_received = 0;       // arrivals at the receiver, duplicates included
  std::uint64_t packets_in_order = 0;       // packets delivered in order: goodput
  std::uint64_t packets_retransmitted = 0;  // transmissions after a packet's first
  std::uint64_t packets_marked = 0;         // arrivals with a CE mark (RFC 3168)
  std::uint64_t timeouts = 0;
  RttStatistics rtt;  // empty if the endpoint samples no RTTs
};

// Which packets an ACK acknowledges.
enum class AckMeaning : std::uint8_t {
  kContent,         // those that its content names: all before `cumulative`, and its SACK blocks
  kContentAndEcho,  // the packet that it echoes as well
  kEcho,            // this one alone; the content names none
};

// Hears what a sender concludes about its packets.
class LossListener {
 public:
  // A packet is found lost.
  virtual void on_loss_found(std::uint64_t sequence, double now_ms) = 0;
  // A packet is found lost because the retransmission timer expires.
  virtual void on_timeout(std::uint64_t sequence, double now_ms) = 0;

 protected:
  ~LossListener() = default;
};

// The state of a sender's loss recovery, as qlog reports it.
struct RecoveryState {
  std::uint64_t first = 0;      // packets before it are acknowledged or given up
  std::uint64_t in_flight = 0;  // packets, by the sender's own account
  double smoothed_rtt_ms = 0;   // 0 before the first sample
  double rtt_variation_ms = 0;
  // At least 1e9 if the congestion controller has no slow-start threshold.
  double ssthresh_packets = std::numeric_limits<double>::infinity();
};

// A sender's congestion window and pacing interval.
struct Pace {
  double window_packets = 0;
  double intersend_ms = 0;
};

// Both ends of a connection, without the network between them. An endpoint runs a congestion
// controller: it turns ACKs into the controller's events, sends what the controller's window
// allows, and retransmits what its transport retransmits. The network calls it for every event and
// carries its packets.
class Endpoint {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~Endpoint() = default;

  // The sender.

  // Starts an on period of a number of packets; nullopt: until switch_off().
  virtual void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) = 0;
  // Ends an on period: no new data is sent.
  virtual void switch_off(double now_ms) = 0;
  // An ACK arrives. `echo` is its segment.
  virtual void on_ack(const Segment& echo, const AckContent& content, double now_ms,
                      PacketSink& sink) = 0;
  // Handles both on_data() at received_ms and on_ack() of its ACK at now_ms, and returns
  // next_act_ms(). An endpoint may do this faster than in two calls. It returns kDeclined, and has
  // changed nothing, if the caller must make the two calls. The caller uses this function either
  // for all packets of an endpoint or for none.
  static constexpr double kDeclined = -1;
  virtual double on_round_trip(const Segment&, double /*received_ms*/, double /*now_ms*/,
                               PacketSink&) {
    return kDeclined;
  }
  // The earliest time at which act() must be called; kNever if there is none.
  virtual double next_act_ms() const = 0;
  // Sends packets whose pacing time has come, and handles timers that have expired.
  virtual void act(double now_ms, PacketSink& sink) = 0;
  // Whether all packets of an on period with a number of packets are acknowledged.
  virtual bool is_done() const = 0;
  virtual Pace pace() const = 0;
  virtual RecoveryState recovery_state() const { return {}; }
  virtual AckMeaning ack_meaning() const { return AckMeaning::kContent; }
  // `listener` outlives the endpoint.
  virtual void report_losses_to(LossListener* listener) { losses_ = listener; }
  // The network has lost a data packet. No real sender learns this: endpoints use it only to count
  // packets that will never arrive.
  virtual void on_packet_lost(const Segment&, double /*now_ms*/) {}

  // The receiver.

  // A data packet arrives. Returns its ACK, or nullopt if none is sent now.
  virtual std::optional<AckContent> on_data(const Segment& segment, double now_ms) = 0;
  // When the delayed ACK must be sent (RFC 5681, section 4.2); kNever if none waits.
  virtual double delayed_ack_due_ms() const { return kNever; }
  // Returns the delayed ACK with the data packet that it echoes.
  virtual std::optional<std::pair<Segment, AckContent>> take_delayed_ack(double /*now_ms*/) {
    return {};
  }

  virtual const EndpointResults& results() const { return results_; }

 protected:
  EndpointResults results_;
  LossListener* losses_ = nullptr;  // null in most simulations
};

}  // namespace remy
