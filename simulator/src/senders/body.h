#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "senders/rtt_statistics.h"
#include "senders/segment.h"

namespace remy {

// Packets from first up to, and without, end that a receiver holds beyond what is in order (RFC
// 2018).
struct SackBlock {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

// What an ACK says. Its segment's sent_ms, sequence and serial are those of the packet that caused
// it, which it echoes.
struct AckContent {
  double received_ms = 0;        // when that packet was
  double time_stamp_ms = 0;      // when the packet left that last moved what is in order (RFC 7323)
  std::uint64_t cumulative = 0;  // all packets before are received
  std::uint32_t packets = 1;     // how many it stands for
  std::uint32_t marked = 0;      // how many of these were marked
  double feedback_packets = 0;   // XCP's
  std::uint32_t blocks = 0;
  std::array<SackBlock, 3> sacks;  // the newest first
};

// Where a sender's packets go. Called while one of the body's functions runs; the body is not
// called again before it returns.
class Outlet {
 public:
  // A packet of the body's sender, on no link yet.
  virtual void send(const Segment& segment, double now_ms) = 0;

 protected:
  ~Outlet() = default;
};

// What a sender and its receiver have counted.
struct BodyResults {
  std::uint64_t packets_sent = 0;      // transmissions
  std::uint64_t packets_received = 0;  // that reached the receiver, copies counted too
  std::uint64_t packets_in_order = 0;  // that the receiver could hand on: goodput
  std::uint64_t packets_repeated = 0;  // transmissions of what had been sent before
  std::uint64_t packets_marked = 0;    // received with a mark
  std::uint64_t timeouts = 0;
  RttStatistics rtt;  // none where the body takes no samples
};

// What a sender keeps to, for recordings.
struct Pace {
  double window_packets = 0;
  double intersend_ms = 0;
};

// A sender with its receiver, without the network between them: what carries a controller. It
// decides what an ACK means, what is sent again, and what outlasts an off period.
class Body {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  virtual ~Body() = default;

  // The sender.

  // An on period starts: of so many packets, or for a time.
  virtual void switch_on(std::optional<std::uint64_t> packets, double now_ms, Outlet& outlet) = 0;
  // An on period by time is over: no new data is sent.
  virtual void switch_off(double now_ms) = 0;
  // An ACK arrived; `echo` is its segment.
  virtual void acknowledged(const Segment& echo, const AckContent& content, double now_ms,
                            Outlet& outlet) = 0;
  // A data packet arrived, at the receiver at received_ms, and its ACK arrives now: received() and
  // acknowledged() in one, and what next_ms() is then. kDeclined, and nothing is done, where these
  // are to be called. Who calls it for one packet calls it for all.
  static constexpr double kDeclined = -1;
  virtual double exchanged(const Segment&, double /*received_ms*/, double /*now_ms*/, Outlet&) {
    return kDeclined;
  }
  // When the body wants to send, or has a timer that expires; and that.
  virtual double next_ms() const = 0;
  virtual void act(double now_ms, Outlet& outlet) = 0;
  // The on period by packets is over, as the body counts; the network then switches it off.
  virtual bool is_done() const = 0;
  virtual Pace pace() const = 0;
  // A data packet is lost on its way: where that counts, though no sender is told.
  virtual void lost(const Segment&, double) {}

  // The receiver.

  // A data packet arrived; none if it is not acknowledged, or not yet.
  virtual std::optional<AckContent> received(const Segment& segment, double now_ms) = 0;
  // When an ACK leaves that was kept back for a second packet, and that; its segment is that of the
  // packet which waits.
  virtual double next_ack_ms() const { return kNever; }
  virtual std::optional<std::pair<Segment, AckContent>> delayed_ack(double) { return {}; }

  const BodyResults& results() const { return results_; }

 protected:
  BodyResults results_;
};

}  // namespace remy
