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

}  // namespace remy
