#pragma once

#include <cstdint>

namespace remy {

// Identifies a sender and one of its on periods. On periods are counted modulo 2^18, which is
// unambiguous because no packet is in flight for so many on periods.
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

// A packet in flight. Sequence numbers count from 0 in every on period, modulo 2^32.
struct Packet {
  double sent_ms;
  std::uint32_t sequence;
  FlowTag flow;
};

// Results of one sender in a simulation.
struct SenderResults {
  std::uint64_t packets_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;
  double on_ms = 0;         // time spent on
  double share_ms = 0;      // integral over the on time of dt / (number of senders on)
  double delay_sum_ms = 0;  // sum over the received packets of ACK time - sending time
  double first_on_ms = 0;   // start of the first on period; the simulation's duration if none
};

}  // namespace remy
