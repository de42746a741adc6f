#pragma once

#include <cstdint>

namespace remy {

// Names a sender and one of its on periods. On periods are counted modulo 2^18: no packet outlives
// so many.
class FlowTag {
 public:
  static constexpr unsigned kPeriodBits = 18;
  static constexpr std::uint32_t kMaximumSenders = 1U << (32 - kPeriodBits);

  constexpr FlowTag() = default;
  explicit constexpr FlowTag(std::uint32_t sender) : word_(sender << kPeriodBits) {}

  constexpr std::uint32_t sender() const { return word_ >> kPeriodBits; }
  constexpr std::uint32_t word() const { return word_; }
  constexpr void next_period() {
    constexpr std::uint32_t kPeriodMask = (1U << kPeriodBits) - 1;
    word_ = (word_ & ~kPeriodMask) | ((word_ + 1) & kPeriodMask);
  }

  friend constexpr bool operator==(FlowTag, FlowTag) = default;

 private:
  std::uint32_t word_ = 0;
};

// A packet under way. Sequence numbers count from 0 in every on period, modulo 2^32.
struct Packet {
  double sent_ms;
  std::uint32_t sequence;
  FlowTag flow;
};

// What the link's port writes into a packet, in-band network telemetry as in HPCC (Li et al. 2019,
// section 3.1): two of them tell how busy the link was in between.
struct Telemetry {
  std::uint32_t queue_packets = 0;  // that the packet found at the link, with the one in service
  std::uint64_t departures = 0;     // packets that have left the link, with this one
  double departed_ms = 0;           // when this one did
  double service_ms = 0;            // a packet's time on the link
  bool is_marked = false;           // congestion experienced (RFC 3168)
};

// What one sender got out of a simulation.
struct SenderResults {
  std::uint64_t packets_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;
  double on_ms = 0;         // time spent on
  double share_ms = 0;      // integral over the on time of dt / (number of senders on)
  double delay_sum_ms = 0;  // over the received packets, ACK time - sending time
  double first_on_ms = 0;   // when first on; the simulated time if never
};

}  // namespace remy
