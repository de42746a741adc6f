#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "senders/packet.h"
#include "senders/path_model.h"
#include "table/compiled_table.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remy {

// Returns the integer part of x clamped to [low, high], without a branch. `x` must not be NaN, and
// the bounds must fit in 32 bits.
inline std::int32_t truncate_between(double x, double low, double high) {
#if defined(__SSE2__)
  const __m128d clamped = _mm_min_sd(_mm_max_sd(_mm_set_sd(x), _mm_set_sd(low)), _mm_set_sd(high));
  return _mm_cvttsd_si32(clamped);
#else
  return static_cast<std::int32_t>(x < low ? low : (x > high ? high : x));
#endif
}

// Weights of a new value and of the average in send_ewma and rec_ewma, which are updated as one
// vector. They are not constexpr, because the compiler would rebuild constant vectors at every use.
struct EwmaWeights {
  alignas(16) static const double kNew[2];
  alignas(16) static const double kKeep[2];
};

// State of an on period that scale-free rules need beyond the signals.
struct PeriodMemory {
  std::uint32_t age = 0;         // packets of this on period acknowledged after its first ACK
  double first_received_ms = 0;  // when the first ACK was received
  double minimum_rtt_ms = 0;     // smallest RTT of this on period only
  // Mean time between ACKed packets, and smallest RTT, of the last on period with at least
  // kLeastRemembered packets; 0 if there was none.
  double remembered_interval_ms = 0;
  double remembered_rtt_ms = 0;
};

// The latest received packet, from which the extended signals are computed.
struct SignalMemory {
  std::uint32_t sequence = 0;
  std::uint32_t marked = 0;  // marked packets received so far, modulo 2^32
  Telemetry telemetry;
};

// A sender's congestion control by a RemyCC (TCP ex Machina, sections 4.1 and 4.2): the memory of
// congestion signals, and the window and intersend time that the matching rule sets.
//   kAnyRules  True: absolute or scale-free rules. False: absolute rules only, which is faster.
//   kExtended  True: computes the extended signals (docs/reference/signals.md), too.
//   kPath      True: has a path model, if the table has one.
template <bool kAnyRules, bool kExtended = false, bool kPath = false>
class RemyController {
 public:
  static constexpr bool kExtendedSignals = kExtended;
  static constexpr bool kHasPathModel = kPath;
  static constexpr std::size_t kAxes = kExtended ? kSignals : kBasicSignals;

  explicit RemyController(const CompiledTable& table) : table_(&table) {
    if constexpr (kPath) {
      path_ = PathModel(table.path().has_value() ? &*table.path() : nullptr);
    }
  }

  // The window and the intersend time that the sender uses: the rule's, limited by the path model.
  double intersend_ms() const {
    if constexpr (kPath) {
      return limited_.intersend_ms;
    }
    return intersend_ms_;
  }
  std::uint32_t window_packets() const {
    if constexpr (kPath) {
      return limited_.window_packets;
    }
    return window_packets_;
  }
  // The values, indexed by Signal, by which the last rule was looked up.
  const double* memory() const {
    if constexpr (kAnyRules) {
      return is_scale_free() ? ratios_ : memory_;
    }
    return memory_;
  }
  const CompiledTable& table() const { return *table_; }

  // An on period starts: "the memory starts in a well-known all-zeroes initial state", or, with
  // remembering rules, at the rate of an earlier on period. Returns the rule that was used.
  std::uint32_t start() {
    std::fill(std::begin(memory_), std::end(memory_), 0.0);
    minimum_rtt_ms_ = kUnknown;
    window_packets_ = 0;
    if constexpr (kAnyRules) {
      remember();
      last_ms_[1] = kUnknown;
    }
    if constexpr (kPath) {
      if (path_.is_on()) {
        path_.start(minimum_rtt_ms_);
      }
    }
    return apply_rule();
  }

  // A packet of this on period was received. The next ACK acknowledges the latest one.
  void received(std::uint32_t sequence, const Telemetry& telemetry)
    requires kExtended
  {
    newest_ = {sequence, newest_.marked + (telemetry.is_marked ? 1 : 0), telemetry};
  }

  // An ACK of this on period arrives. It acknowledges `packets` packets, so the time since the last
  // ACK counts as that many equal intervals. Returns the rule that was used.
  [[gnu::always_inline]] std::uint32_t acknowledge(double sent_ms, double received_ms,
                                                   double rtt_ms, std::uint32_t packets) {
    if constexpr (kPath) {
      if (path_.is_on()) {
        rtt_ms = path_.on_ack(sent_ms + rtt_ms, rtt_ms, packets);
      }
    }
    const double times_ms[2] = {sent_ms, received_ms};
    if (is_first_of_period()) [[unlikely]] {
      // The first ACK of an on period only sets the references.
      minimum_rtt_ms_ = std::min(minimum_rtt_ms_, rtt_ms);
      if constexpr (kAnyRules) {
        period_.first_received_ms = received_ms;
        period_.minimum_rtt_ms = rtt_ms;
        if (memory_[kRecEwma] > 0) {
          memory_[kRttRatio] = rtt_ms / minimum_rtt_ms_;
        }
      }
    } else {
      if constexpr (kAnyRules) {
        period_.age += packets;
        if (table_->looks_at_age() && age() < kAgeOfFullAverages) [[unlikely]] {
          average_from_start(times_ms, packets);
        } else {
          average(times_ms, packets);
        }
      } else {
        average(times_ms, packets);
      }
      update_minimum_rtt(rtt_ms);
      memory_[kRttRatio] = rtt_ms / minimum_rtt_ms_;
      if constexpr (kExtended) {
        update_extended_signals(received_ms, rtt_ms, packets);
      }
    }
    if constexpr (kExtended) {
      last_ = newest_;
    }
    last_ms_[0] = sent_ms;
    last_ms_[1] = received_ms;
    return apply_rule();
  }

  // An ACK of an earlier on period arrives. It does not change the memory, but a rule is applied
  // "each time a RemyCC sender receives an ACK". Returns the rule that was used.
  std::uint32_t acknowledge_earlier_period() { return apply_rule(); }

  // Packets are found lost. Losses that an ACK reveals are reported before it.
  void on_loss(double now_ms, std::uint32_t packets)
    requires kPath
  {
    if (path_.is_on()) {
      path_.on_loss(now_ms, packets);
      limit();
    }
  }
  // The retransmission timer expires, and packets count as lost.
  void on_timeout(double now_ms, std::uint32_t packets)
    requires kPath
  {
    if (path_.is_on()) {
      path_.on_timeout(now_ms, packets);
      limit();
    }
  }
  // The last losses were none.
  void on_spurious_recovery()
    requires kPath
  {
    if (path_.is_on()) {
      path_.on_spurious_recovery();
      limit();
    }
  }

 private:
  // Indices of the signals in memory_ and ratios_.
  static constexpr std::size_t kSendEwma = axis_of(Signal::kSendEwma);
  static constexpr std::size_t kRecEwma = axis_of(Signal::kRecEwma);
  static constexpr std::size_t kRttRatio = axis_of(Signal::kRttRatio);
  static constexpr std::size_t kSlowRecEwma = axis_of(Signal::kSlowRecEwma);
  static constexpr std::size_t kRttDiff = axis_of(Signal::kRttDiff);
  static constexpr std::size_t kQueueingDelay = axis_of(Signal::kQueueingDelay);
  static constexpr std::size_t kLossRate = axis_of(Signal::kLossRate);
  static constexpr std::size_t kQueueLength = axis_of(Signal::kQueueLength);
  static constexpr std::size_t kUtilization = axis_of(Signal::kUtilization);
  static constexpr std::size_t kEcnFraction = axis_of(Signal::kEcnFraction);
  static constexpr std::size_t kRttsSinceLoss = axis_of(Signal::kRttsSinceLoss);
  static constexpr std::size_t kAge = kRecEwma;  // in ratios_

  static constexpr double kWeight = 1.0 / 8;
  static constexpr double kSlowWeight = 1.0 / 256;
  static constexpr double kMarkWeight = 1.0 / 16;
  static constexpr double kMaximumWindow = 1e6;
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  // From this age on, tables with the signal age have the same averages as those without.
  static constexpr std::uint32_t kAgeOfFullAverages = 256;
  // Shorter on periods are not remembered, because their rate is too uncertain.
  static constexpr std::uint32_t kLeastRemembered = 16;

  // Returns true if no ACK of this on period has arrived. With remembering rules minimum_rtt_ms_
  // does not tell, because it may be that of an earlier on period.
  bool is_first_of_period() const {
    return (kAnyRules ? last_ms_[1] : minimum_rtt_ms_) >= kUnknown;
  }

  bool is_scale_free() const { return remy::is_scale_free(table_->rules()); }
  // Returns true if this on period began at the rate of an earlier one.
  bool remembers() const { return period_.remembered_interval_ms > 0; }
  // The signal age, by which a remembered rate counts as kAgeOfFullAverages packets.
  std::uint32_t age() const { return remembers() ? period_.age + kAgeOfFullAverages : period_.age; }

  // Ends the previous on period. With remembering rules, records its rate and smallest RTT if it
  // was long enough, and starts the memory from the recorded values.
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
      memory_[kSendEwma] = memory_[kRecEwma] = memory_[kSlowRecEwma] =
          period_.remembered_interval_ms;
      minimum_rtt_ms_ = period_.remembered_rtt_ms;
    }
  }

  [[gnu::always_inline]] void update_minimum_rtt(double rtt_ms) {
    if constexpr (kPath) {
      if (path_.is_on()) [[likely]] {
        period_.minimum_rtt_ms = minimum_rtt_ms_ = path_.base_rtt_ms();
        return;
      }
    }
    minimum_rtt_ms_ = std::min(minimum_rtt_ms_, rtt_ms);
    if constexpr (kAnyRules) {
      period_.minimum_rtt_ms = std::min(period_.minimum_rtt_ms, rtt_ms);
    }
  }

  [[gnu::always_inline]] void average(const double* times_ms, std::uint32_t packets) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      memory_[axis] = EwmaWeights::kKeep[axis] * memory_[axis] +
                      EwmaWeights::kNew[axis] * ((times_ms[axis] - last_ms_[axis]) / packets);
    }
    memory_[kSlowRecEwma] = (1 - kSlowWeight) * memory_[kSlowRecEwma] +
                            kSlowWeight * ((times_ms[1] - last_ms_[1]) / packets);
  }

  // For tables that look at age: averages are plain means of the first values, instead of EWMAs
  // that start from 0.
  [[gnu::noinline]] void average_from_start(const double* times_ms, std::uint32_t packets)
    requires kAnyRules
  {
    const double share = static_cast<double>(packets) / age();
    const double weight = std::max(kWeight, share);
    const double slow_weight = std::max(kSlowWeight, share);
    const double received_ms = (times_ms[1] - last_ms_[1]) / packets;
    memory_[kSendEwma] =
        (1 - weight) * memory_[kSendEwma] + weight * ((times_ms[0] - last_ms_[0]) / packets);
    memory_[kRecEwma] = (1 - weight) * memory_[kRecEwma] + weight * received_ms;
    memory_[kSlowRecEwma] = (1 - slow_weight) * memory_[kSlowRecEwma] + slow_weight * received_ms;
  }

  // The ACK resolves all packets sent since the latest packet of the last ACK. `packets` of them
  // were received; the others are lost, because packets stay in order.
  void update_extended_signals(double received_ms, double rtt_ms, std::uint32_t packets)
    requires kExtended
  {
    const std::uint32_t resolved = newest_.sequence - last_.sequence;
    memory_[kRttDiff] = rtt_ms - minimum_rtt_ms_;
    memory_[kQueueingDelay] = memory_[kRecEwma] * resolved;
    memory_[kEcnFraction] =
        (1 - kMarkWeight) * memory_[kEcnFraction] +
        kMarkWeight * (static_cast<double>(newest_.marked - last_.marked) / packets);
    if (resolved > packets) {
      last_loss_ms_ = received_ms;
      memory_[kRttsSinceLoss] = 1;
    } else if (memory_[kRttsSinceLoss] > 0) {
      memory_[kRttsSinceLoss] = 1 + (received_ms - last_loss_ms_) / minimum_rtt_ms_;
    }
    for (std::uint32_t lost = resolved - packets; lost > 0; --lost) {
      memory_[kLossRate] = (1 - kSlowWeight) * memory_[kLossRate] + kSlowWeight;
    }
    for (; packets > 0; --packets) {
      memory_[kLossRate] = (1 - kSlowWeight) * memory_[kLossRate];
    }
    const Telemetry& now = newest_.telemetry;
    const double busy_ms =
        static_cast<double>(now.departures - last_.telemetry.departures) * now.service_ms;
    memory_[kQueueLength] = (1 - kWeight) * memory_[kQueueLength] + kWeight * now.queue_packets;
    memory_[kUtilization] = (1 - kWeight) * memory_[kUtilization] +
                            kWeight * (busy_ms / (now.departed_ms - last_.telemetry.departed_ms));
  }

  [[gnu::always_inline]] std::uint32_t find(const double* memory) const {
    if constexpr (kExtended) {
      return table_->find_extended(memory);
    } else {
      return table_->find(memory);
    }
  }

  [[gnu::always_inline]] std::uint32_t apply_rule() {
    if constexpr (kAnyRules) {
      if (is_scale_free()) {
        if (memory_[kRecEwma] > 0) [[likely]] {
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
    const double scale_ms = memory_[kRecEwma];
    ratios_[kSendEwma] = memory_[kSendEwma] / scale_ms;
    ratios_[kAge] = table_->looks_at_age() ? age() : 1;
    ratios_[kRttRatio] = memory_[kRttRatio];
    ratios_[kSlowRecEwma] = memory_[kSlowRecEwma] / scale_ms;
    if constexpr (kExtended) {
      ratios_[kRttDiff] = memory_[kRttDiff] / scale_ms;
      ratios_[kQueueingDelay] = memory_[kQueueingDelay] / minimum_rtt_ms_;
      ratios_[kLossRate] = memory_[kLossRate];
      // Divided by the BDP.
      ratios_[kQueueLength] = memory_[kQueueLength] * scale_ms / minimum_rtt_ms_;
      ratios_[kUtilization] = memory_[kUtilization];
      ratios_[kEcnFraction] = memory_[kEcnFraction];
      ratios_[kRttsSinceLoss] = memory_[kRttsSinceLoss];
    }
    const std::uint32_t rule = find(ratios_);
    const Action& action = table_->action(rule);
    // The order of operations avoids multiplying 0 by infinity.
    set(action, action.window_increment * minimum_rtt_ms_ / (100 * unit_ms()),
        action.intersend_ms * unit_ms());
    return rule;
  }

  // Before anything is measured, the actions of scale-free rules are absolute.
  [[gnu::noinline]] std::uint32_t apply_start_rule() {
    std::fill(std::begin(ratios_), std::end(ratios_), 0.0);
    const std::uint32_t rule = find(ratios_);
    const Action& action = table_->action(rule);
    set(action, action.window_increment, action.intersend_ms);
    return rule;
  }

  // The measured time between two packets, the unit of time of scale-free rules.
  double unit_ms() const { return memory_[kRecEwma]; }

  [[gnu::always_inline]] void set(const Action& action, double increment, double intersend_ms) {
    const double window =
        static_cast<double>(static_cast<std::int32_t>(window_packets_)) * action.window_multiple +
        increment;
    window_packets_ = static_cast<std::uint32_t>(truncate_between(window, 0, kMaximumWindow));
    intersend_ms_ = intersend_ms;
    if constexpr (kPath) {
      limit();
    }
  }

  // The rules' own window stays as it is, because the next rule changes it.
  [[gnu::always_inline]] void limit()
    requires kPath
  {
    if (path_.is_on()) [[likely]] {
      limited_ = {path_.limit_intersend(intersend_ms_), path_.limit_window(window_packets_)};
    } else {
      limited_ = {intersend_ms_, window_packets_};
    }
  }

  alignas(64) double memory_[kAxes] = {};  // indexed by Signal
  alignas(16) double last_ms_[2] = {};  // sending time echoed by the last ACK, and when it arrived
  double minimum_rtt_ms_ = kUnknown;
  double intersend_ms_ = 0;
  const CompiledTable* table_;
  std::uint32_t window_packets_ = 0;
  // The memory in the units of scale-free rules; indexed by Signal.
  alignas(16) double ratios_[kAnyRules ? kAxes : 1] = {};
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<kAnyRules, PeriodMemory, Nothing> period_;
  struct Limited {
    double intersend_ms = 0;
    std::uint32_t window_packets = 0;
  };
  [[no_unique_address]] std::conditional_t<kPath, PathModel, Nothing> path_;
  [[no_unique_address]] std::conditional_t<kPath, Limited, Nothing> limited_;
  // The latest packet received, and the latest one that the last ACK acknowledged.
  [[no_unique_address]] std::conditional_t<kExtended, SignalMemory, Nothing> newest_;
  [[no_unique_address]] std::conditional_t<kExtended, SignalMemory, Nothing> last_;
  // Arrival of the last ACK that revealed a loss.
  [[no_unique_address]] std::conditional_t<kExtended, double, Nothing> last_loss_ms_{};
};

// A RemyCC with absolute rules on the basic signals, which is faster than one with any rules.
using AbsoluteController = RemyController<false>;
// A RemyCC with any rules on the basic signals.
using BasicController = RemyController<true>;
// A RemyCC with any rules on any signals.
using SignalController = RemyController<true, true>;
// A RemyCC with any rules on the basic signals, and with a path model if its table has one.
using PathController = RemyController<true, false, true>;

// Is notified of every rule that a sender of a network uses.
class RuleObserver {
 public:
  virtual void used(std::uint32_t sender, const PathController& controller, std::uint32_t rule) = 0;

 protected:
  ~RuleObserver() = default;
};

}  // namespace remy
