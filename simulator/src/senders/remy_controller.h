#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "senders/packet.h"
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

// Of send_ewma and rec_ewma, which are updated as one vector; in memory, as the compiler builds
// constant vectors anew each time.
struct EwmaWeights {
  alignas(16) static const double kNew[2];
  alignas(16) static const double kKeep[2];
};

// What scale-free rules need beside the signals.
struct PeriodMemory {
  std::uint32_t age = 0;  // packets of this on period acknowledged after its first
  double first_received_ms = 0;
  double minimum_rtt_ms = 0;  // of this on period alone
  // Of the last on period that was long enough: its time between two packets, and its smallest RTT.
  double remembered_interval_ms = 0;
  double remembered_rtt_ms = 0;
};

// What more than the usual signals need between two ACKs.
struct SignalMemory {
  std::uint32_t sequence = 0;
  std::uint32_t marked = 0;  // packets received with a mark, modulo 2^32
  Telemetry telemetry;
};

// A RemyCC at work (TCP ex Machina, sections 4.1 and 4.2): its memory, and the window and pacing
// that the rule for it sets. Composed at compile time for absolute rules alone, or for any; and
// where a table looks at more than the usual signals (docs/reference/signals.md), for all of them.
template <bool kAnyRules, bool kMore = false>
class RemyController {
 public:
  static constexpr bool kMoreSignals = kMore;
  static constexpr std::size_t kAxes = kMore ? kSignals : kBasicSignals;

  explicit RemyController(const CompiledTable& table) : table_(&table) {}

  double intersend_ms() const { return intersend_ms_; }
  std::uint32_t window_packets() const { return window_packets_; }
  // What the last rule was looked up by.
  const double* memory() const {
    if constexpr (kAnyRules) {
      return is_scale_free() ? ratios_ : memory_;
    }
    return memory_;
  }
  const CompiledTable& table() const { return *table_; }

  // An on period starts: "the memory starts in a well-known all-zeroes initial state", or in that
  // which the last one left. Returns the rule that was used.
  std::uint32_t start() {
    std::fill(std::begin(memory_), std::end(memory_), 0.0);
    minimum_rtt_ms_ = kUnknown;
    window_packets_ = 0;
    if constexpr (kAnyRules) {
      remember();
      last_ms_[1] = kUnknown;
    }
    return apply_rule();
  }

  // A packet of this on period was received, which the next ACK is for, if none follows before.
  void received(std::uint32_t sequence, const Telemetry& telemetry)
    requires kMore
  {
    newest_ = {sequence, newest_.marked + (telemetry.is_marked ? 1 : 0), telemetry};
  }

  // An ACK of this on period arrived, for the last `packets` received: times between packets are
  // those between ACKs over their number.
  [[gnu::always_inline]] std::uint32_t acknowledge(double sent_ms, double received_ms,
                                                   double rtt_ms, std::uint32_t packets) {
    const double times_ms[2] = {sent_ms, received_ms};
    if (is_first_of_period()) [[unlikely]] {
      // The first ACK of an on period only sets the references.
      minimum_rtt_ms_ = std::min(minimum_rtt_ms_, rtt_ms);
      if constexpr (kAnyRules) {
        period_.first_received_ms = received_ms;
        period_.minimum_rtt_ms = rtt_ms;
        if (memory_[1] > 0) {
          memory_[2] = rtt_ms / minimum_rtt_ms_;
        }
      }
    } else {
      if constexpr (kAnyRules) {
        period_.age += packets;
        period_.minimum_rtt_ms = std::min(period_.minimum_rtt_ms, rtt_ms);
        if (table_->looks_at_age() && age() < kGrownAge) [[unlikely]] {
          average_young(times_ms, packets);
        } else {
          average(times_ms, packets);
        }
      } else {
        average(times_ms, packets);
      }
      minimum_rtt_ms_ = std::min(minimum_rtt_ms_, rtt_ms);
      memory_[2] = rtt_ms / minimum_rtt_ms_;
      if constexpr (kMore) {
        update_more_signals(received_ms, rtt_ms, packets);
      }
    }
    if constexpr (kMore) {
      last_ = newest_;
    }
    last_ms_[0] = sent_ms;
    last_ms_[1] = received_ms;
    return apply_rule();
  }

  // An ACK of an earlier on period arrived: it does not touch the memory, but "each time a RemyCC
  // sender receives an ACK" the rule is looked up.
  std::uint32_t acknowledge_earlier_period() { return apply_rule(); }

 private:
  static constexpr double kWeight = 1.0 / 8;
  static constexpr double kSlowWeight = 1.0 / 256;
  static constexpr double kMarkWeight = 1.0 / 16;
  static constexpr double kMaximumWindow = 1e6;
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // Packets from which on averages of a table that looks at age are what they are without it.
  static constexpr std::uint32_t kGrownAge = 256;
  // An on period of fewer packets tells no rate that is worth remembering.
  static constexpr std::uint32_t kLeastRemembered = 16;

  // Whether the next ACK is. The smallest RTT is at hand, but may be of an earlier on period.
  bool is_first_of_period() const {
    return (kAnyRules ? last_ms_[1] : minimum_rtt_ms_) >= kUnknown;
  }

  bool is_scale_free() const { return remy::is_scale_free(table_->rules()); }
  // Whether this on period began with the memory of another.
  bool remembers() const { return period_.remembered_interval_ms > 0; }
  std::uint32_t age() const { return remembers() ? period_.age + kGrownAge : period_.age; }

  // The on period before this one ends: what is kept of it, if it was long enough, and of the one
  // before it otherwise.
  void remember()
    requires kAnyRules
  {
    if (table_->rules() != Rules::kScaleFreeRemembering) {
      period_.age = 0;
      return;
    }
    if (period_.age >= kLeastRemembered) {
      period_.remembered_interval_ms = (last_ms_[1] - period_.first_received_ms) / period_.age;
      period_.remembered_rtt_ms = period_.minimum_rtt_ms;
    }
    period_.age = 0;
    if (remembers()) {
      memory_[0] = memory_[1] = memory_[3] = period_.remembered_interval_ms;
      minimum_rtt_ms_ = period_.remembered_rtt_ms;
    }
  }

  [[gnu::always_inline]] void average(const double* times_ms, std::uint32_t packets) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      memory_[axis] = EwmaWeights::kKeep[axis] * memory_[axis] +
                      EwmaWeights::kNew[axis] * ((times_ms[axis] - last_ms_[axis]) / packets);
    }
    memory_[3] =
        (1 - kSlowWeight) * memory_[3] + kSlowWeight * ((times_ms[1] - last_ms_[1]) / packets);
  }

  // Averages that know the age are means while they are young, in place of averages with 0.
  [[gnu::noinline]] void average_young(const double* times_ms, std::uint32_t packets)
    requires kAnyRules
  {
    const double share = static_cast<double>(packets) / age();
    const double weight = std::max(kWeight, share);
    const double slow_weight = std::max(kSlowWeight, share);
    const double received_ms = (times_ms[1] - last_ms_[1]) / packets;
    memory_[0] = (1 - weight) * memory_[0] + weight * ((times_ms[0] - last_ms_[0]) / packets);
    memory_[1] = (1 - weight) * memory_[1] + weight * received_ms;
    memory_[3] = (1 - slow_weight) * memory_[3] + slow_weight * received_ms;
  }

  // The ACK is for `packets` of those sent since the packet that the last one was for. As nothing
  // overtakes, the others are lost.
  void update_more_signals(double received_ms, double rtt_ms, std::uint32_t packets)
    requires kMore
  {
    const std::uint32_t resolved = newest_.sequence - last_.sequence;
    memory_[4] = rtt_ms - minimum_rtt_ms_;
    memory_[5] = memory_[1] * resolved;
    memory_[9] = (1 - kMarkWeight) * memory_[9] +
                 kMarkWeight * (static_cast<double>(newest_.marked - last_.marked) / packets);
    if (resolved > packets) {
      heard_of_loss_ms_ = received_ms;
      memory_[10] = 1;
    } else if (memory_[10] > 0) {
      memory_[10] = 1 + (received_ms - heard_of_loss_ms_) / minimum_rtt_ms_;
    }
    for (std::uint32_t lost = resolved - packets; lost > 0; --lost) {
      memory_[6] = (1 - kSlowWeight) * memory_[6] + kSlowWeight;
    }
    for (; packets > 0; --packets) {
      memory_[6] = (1 - kSlowWeight) * memory_[6];
    }
    const Telemetry& now = newest_.telemetry;
    const double busy_ms =
        static_cast<double>(now.departures - last_.telemetry.departures) * now.service_ms;
    memory_[7] = (1 - kWeight) * memory_[7] + kWeight * now.queue_packets;
    memory_[8] = (1 - kWeight) * memory_[8] +
                 kWeight * (busy_ms / (now.departed_ms - last_.telemetry.departed_ms));
  }

  [[gnu::always_inline]] std::uint32_t find(const double* memory) const {
    if constexpr (kMore) {
      return table_->find_extended(memory);
    } else {
      return table_->find(memory);
    }
  }

  [[gnu::always_inline]] std::uint32_t apply_rule() {
    if constexpr (kAnyRules) {
      if (is_scale_free()) {
        if (memory_[1] > 0) [[likely]] {
          return apply_scale_free_rule();
        }
        return apply_start_rule();
      }
    }
    const std::uint32_t rule = find(memory_);
    const Action& action = table_->action(rule);
    set(action, action.window_increment, action.intersend_ms);
    return rule;
  }

  [[gnu::always_inline]] std::uint32_t apply_scale_free_rule() {
    const double scale_ms = memory_[1];
    ratios_[0] = memory_[0] / scale_ms;
    ratios_[1] = table_->looks_at_age() ? age() : 1;
    ratios_[2] = memory_[2];
    ratios_[3] = memory_[3] / scale_ms;
    if constexpr (kMore) {
      ratios_[4] = memory_[4] / scale_ms;
      ratios_[5] = memory_[5] / minimum_rtt_ms_;
      ratios_[6] = memory_[6];
      // Over the packets that the smallest RTT holds at the measured rate.
      ratios_[7] = memory_[7] * scale_ms / minimum_rtt_ms_;
      ratios_[8] = memory_[8];
      ratios_[9] = memory_[9];
      ratios_[10] = memory_[10];
    }
    const std::uint32_t rule = find(ratios_);
    const Action& action = table_->action(rule);
    // In an order that makes no NaN of 0 and infinity.
    set(action, action.window_increment * minimum_rtt_ms_ / (100 * unit_ms()),
        action.intersend_ms * unit_ms());
    return rule;
  }

  // Nothing is measured yet.
  [[gnu::noinline]] std::uint32_t apply_start_rule() {
    std::fill(std::begin(ratios_), std::end(ratios_), 0.0);
    const std::uint32_t rule = find(ratios_);
    const Action& action = table_->action(rule);
    set(action, action.window_increment, action.intersend_ms);
    return rule;
  }

  // The measured time between two packets, which scale-free actions are relative to.
  double unit_ms() const { return memory_[1]; }

  [[gnu::always_inline]] void set(const Action& action, double increment, double intersend_ms) {
    const double window =
        static_cast<double>(static_cast<std::int32_t>(window_packets_)) * action.window_multiple +
        increment;
    window_packets_ = static_cast<std::uint32_t>(truncate_between(window, 0, kMaximumWindow));
    intersend_ms_ = intersend_ms;
  }

  alignas(64) double memory_[kAxes] = {};  // indexed by Signal
  alignas(16) double last_ms_[2] = {};     // when the last packet acknowledged was sent, received
  double minimum_rtt_ms_ = kUnknown;
  double intersend_ms_ = 0;
  const CompiledTable* table_;
  std::uint32_t window_packets_ = 0;
  // The memory in units of rec_ewma, as scale-free rules look at it; indexed by Signal.
  alignas(16) double ratios_[kAnyRules ? kAxes : 1] = {};
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<kAnyRules, PeriodMemory, Nothing> period_;
  // Of the newest packet received, and of that which the last ACK was for.
  [[no_unique_address]] std::conditional_t<kMore, SignalMemory, Nothing> newest_;
  [[no_unique_address]] std::conditional_t<kMore, SignalMemory, Nothing> last_;
  // When the ACK that told of the last loss was received.
  [[no_unique_address]] std::conditional_t<kMore, double, Nothing> heard_of_loss_ms_{};
};

// A RemyCC with absolute rules on the basic signals, which is faster than one with any rules.
using AbsoluteController = RemyController<false>;
// A RemyCC with any rules on the basic signals.
using BasicController = RemyController<true>;
// A RemyCC with any rules on any signals.
using SignalController = RemyController<true, true>;

// Sees every look-up of senders in a network.
class RuleObserver {
 public:
  virtual void used(std::uint32_t sender, const BasicController& controller,
                    std::uint32_t rule) = 0;

 protected:
  ~RuleObserver() = default;
};

}  // namespace remy
