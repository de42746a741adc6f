#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "table/compiled_table.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remy {

// The integer part of `x` clamped to [low, high], without a branch. x is not NaN; the bounds fit.
inline std::int32_t truncate_between(double x, double low, double high) {
#if defined(__SSE2__)
  const __m128d clamped = _mm_min_sd(_mm_max_sd(_mm_set_sd(x), _mm_set_sd(low)), _mm_set_sd(high));
  return _mm_cvttsd_si32(clamped);
#else
  return static_cast<std::int32_t>(x < low ? low : (x > high ? high : x));
#endif
}

// A RemyCC at work (TCP ex Machina, sections 4.1 and 4.2): its memory, and the window and pacing
// that the rule for it sets.
class RemyController {
 public:
  explicit RemyController(const CompiledTable& table) : table_(&table) {}

  double intersend_ms() const { return intersend_ms_; }
  std::uint32_t window_packets() const { return window_packets_; }
  const double* memory() const { return memory_; }
  const CompiledTable& table() const { return *table_; }

  // An on period starts: "the memory starts in a well-known all-zeroes initial state". Returns the
  // rule that was used.
  std::uint32_t start() {
    std::fill(std::begin(memory_), std::end(memory_), 0.0);
    minimum_rtt_ms_ = kUnknown;
    window_packets_ = 0;
    return apply_rule();
  }

  // An ACK of this on period arrived.
  [[gnu::always_inline]] std::uint32_t acknowledge(double sent_ms, double received_ms,
                                                   double rtt_ms) {
    const double times_ms[2] = {sent_ms, received_ms};
    if (minimum_rtt_ms_ >= kUnknown) [[unlikely]] {
      // The first ACK of an on period only sets the references.
      minimum_rtt_ms_ = rtt_ms;
    } else {
      for (std::size_t axis = 0; axis < 2; ++axis) {
        memory_[axis] =
            kKeep[axis] * memory_[axis] + kWeight[axis] * (times_ms[axis] - last_ms_[axis]);
      }
      memory_[3] = (1 - kSlowWeight) * memory_[3] + kSlowWeight * (received_ms - last_ms_[1]);
      minimum_rtt_ms_ = std::min(minimum_rtt_ms_, rtt_ms);
      memory_[2] = rtt_ms / minimum_rtt_ms_;
    }
    last_ms_[0] = sent_ms;
    last_ms_[1] = received_ms;
    return apply_rule();
  }

  // An ACK of an earlier on period arrived: it does not touch the memory, but "each time a RemyCC
  // sender receives an ACK" the rule is looked up.
  std::uint32_t acknowledge_earlier_period() { return apply_rule(); }

 private:
  // Of send_ewma and rec_ewma, which are updated as one vector; in memory, as the compiler builds
  // constant vectors anew each time.
  alignas(16) static const double kWeight[2];
  alignas(16) static const double kKeep[2];
  static constexpr double kSlowWeight = 1.0 / 256;
  static constexpr double kMaximumWindow = 1e6;
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  [[gnu::always_inline]] std::uint32_t apply_rule() {
    const std::uint32_t rule = table_->find(memory_);
    const Action& action = table_->action(rule);
    const double window =
        static_cast<double>(static_cast<std::int32_t>(window_packets_)) * action.window_multiple +
        action.window_increment;
    window_packets_ = static_cast<std::uint32_t>(truncate_between(window, 0, kMaximumWindow));
    intersend_ms_ = action.intersend_ms;
    return rule;
  }

  alignas(64) double memory_[kSignals] = {};  // indexed by Signal
  alignas(16) double last_ms_[2] = {};  // when the last packet acknowledged was sent, received
  double minimum_rtt_ms_ = kUnknown;
  double intersend_ms_ = 0;
  const CompiledTable* table_;
  std::uint32_t window_packets_ = 0;
};

}  // namespace remy
