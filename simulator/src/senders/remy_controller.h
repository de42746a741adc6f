#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "senders/path_model.h"
#include "senders/telemetry.h"
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

// The content of an ACK, besides its times. The extended signals are computed from it.
struct Feedback {
  std::uint32_t received = 0;      // packets that it reports received for the first time
  std::uint32_t marked = 0;        // packets with a CE mark (RFC 3168) that it reports
  std::optional<PathUsage> usage;  // since the last ACK; nullopt: the ACK has no new telemetry
};

// Losses of an on period, from which signals are computed.
struct LossMemory {
  double rate = 0;                                            // the signal loss_rate
  double last_ms = -std::numeric_limits<double>::infinity();  // the last ACK that showed a loss
  std::uint32_t pending = 0;  // packets found lost since the last ACK
};

// State of an on period that extended signals need beyond the signals.
struct SignalMemory {
  bool has_ack = false;  // its first ACK has arrived
  LossMemory losses;
  // A second count of losses, which ignores those since the last recovery began. It replaces
  // `losses` if the recovery was spurious. nullopt: no recovery has begun.
  std::optional<LossMemory> losses_before_recovery;
};

// A sender's congestion control by a RemyCC (TCP ex Machina, sections 4.1 and 4.2): the memory of
// congestion signals, and the window and intersend time that the matching rule sets.
//   kAnyRules  True: absolute or scale-free rules. False: absolute rules only, which is faster.
//   kExtended  True: computes the extended signals (docs/reference/signals.md), if the table has
//              any.
//   kPath      True: has a path model, if the table has one.
template <bool kAnyRules, bool kExtended = false, bool kPath = false>
class RemyController {
 public:
  static constexpr bool kExtendedSignals = kExtended;
  static constexpr bool kHasPathModel = kPath;

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
  // The values, indexed by Signal, by which the last rule was looked up. axes() is their number.
  const double* memory() const {
    if constexpr (kAnyRules) {
      return is_scale_free() ? ratios_ : memory_;
    }
    return memory_;
  }
  std::size_t axes() const { return has_extended_signals() ? kSignals : kBasicSignals; }
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
    if constexpr (kExtended) {
      signals_ = {};
    }
    if constexpr (kPath) {
      if (path_.is_on()) {
        path_.start(minimum_rtt_ms_);
      }
    }
    return apply_rule();
  }

  // An ACK of this on period arrives. It acknowledges `packets` packets, so the time since the last
  // ACK counts as that many equal intervals. `feedback()` returns its Feedback, and is called if
  // the table has extended signals. Returns the rule that was used.
  [[gnu::always_inline]] std::uint32_t acknowledge(double sent_ms, double received_ms,
                                                   double rtt_ms, std::uint32_t packets)
    requires(!kExtended)
  {
    return acknowledge(sent_ms, received_ms, rtt_ms, packets, [] { return Feedback(); });
  }
  template <class GetFeedback>
  [[gnu::always_inline]] std::uint32_t acknowledge(double sent_ms, double received_ms,
                                                   double rtt_ms, std::uint32_t packets,
                                                   const GetFeedback& feedback) {
    const double now_ms = sent_ms + rtt_ms;
    if constexpr (kPath) {
      if (path_.is_on()) {
        rtt_ms = path_.on_ack(now_ms, rtt_ms, packets);
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
        if (!measures_rate(now_ms)) [[unlikely]] {
          // The averages stay.
        } else if (table_->looks_at_age() && age() < kAgeOfFullAverages) [[unlikely]] {
          average_from_start(times_ms, packets);
        } else {
          average(times_ms, packets);
        }
      } else {
        average(times_ms, packets);
      }
      update_minimum_rtt(rtt_ms);
      memory_[kRttRatio] = rtt_ms / minimum_rtt_ms_;
    }
    last_ms_[0] = sent_ms;
    last_ms_[1] = received_ms;
    if constexpr (kExtended) {
      if (has_extended_signals()) [[unlikely]] {
        update_extended_signals(rtt_ms, feedback());
        return apply_extended_rule();
      }
    }
    return apply_basic_rule();
  }

  // An ACK of an earlier on period arrives. It does not change the memory, but a rule is applied
  // "each time a RemyCC sender receives an ACK". Returns the rule that was used.
  std::uint32_t acknowledge_earlier_period() { return apply_rule(); }

  // Loss recovery begins: on_spurious_recovery() refers to losses from now on.
  void on_recovery()
    requires kExtended
  {
    signals_.losses_before_recovery = signals_.losses;
  }
  // Packets are found lost. Losses that an ACK reveals are reported before it.
  void on_loss(double now_ms, std::uint32_t packets)
    requires kPath
  {
    if constexpr (kExtended) {
      signals_.losses.pending += packets;
    }
    if (path_.is_on()) {
      path_.on_loss(now_ms, packets);
      limit();
    }
  }
  // The retransmission timer expires, and packets count as lost.
  void on_timeout(double now_ms, std::uint32_t packets)
    requires kPath
  {
    if constexpr (kExtended) {
      signals_.losses.pending += packets;
    }
    if (path_.is_on()) {
      path_.on_timeout(now_ms, packets);
      limit();
    }
  }
  // The losses since the last recovery began were none. Reported before the ACK that shows it.
  void on_spurious_recovery()
    requires kPath
  {
    if constexpr (kExtended) {
      signals_.losses = signals_.losses_before_recovery.value_or(signals_.losses);
      memory_[kRttsSinceLoss] = signals_.losses.last_ms > LossMemory().last_ms ? 1 : 0;
    }
    if (path_.is_on()) {
      path_.on_spurious_recovery();
      limit();
    }
  }

 private:
  static constexpr std::size_t kAxes = kExtended ? kSignals : kBasicSignals;
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

  bool measures_rate([[maybe_unused]] double now_ms) const {
    if constexpr (kPath) {
      return path_.measures_rate(now_ms);
    }
    return true;
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
#if defined(__SSE2__)
    // Whether the compiler would make vectors of the loop below depends on the code around it.
    const __m128d intervals_ms =
        _mm_div_pd(_mm_sub_pd(_mm_loadu_pd(times_ms), _mm_load_pd(last_ms_)), _mm_set1_pd(packets));
    _mm_store_pd(memory_,
                 _mm_add_pd(_mm_mul_pd(_mm_load_pd(EwmaWeights::kKeep), _mm_load_pd(memory_)),
                            _mm_mul_pd(_mm_load_pd(EwmaWeights::kNew), intervals_ms)));
    const double received_ms = _mm_cvtsd_f64(_mm_unpackhi_pd(intervals_ms, intervals_ms));
#else
    for (std::size_t axis = 0; axis < 2; ++axis) {
      memory_[axis] = EwmaWeights::kKeep[axis] * memory_[axis] +
                      EwmaWeights::kNew[axis] * ((times_ms[axis] - last_ms_[axis]) / packets);
    }
    const double received_ms = (times_ms[1] - last_ms_[1]) / packets;
#endif
    memory_[kSlowRecEwma] = (1 - kSlowWeight) * memory_[kSlowRecEwma] + kSlowWeight * received_ms;
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

  [[gnu::always_inline]] bool has_extended_signals() const {
    if constexpr (kExtended) {
      return table_->has_extended_signals();
    }
    return false;
  }

  // The ACK resolves the packets that it reports received, and those found lost since the last one.
  [[gnu::noinline]] void update_extended_signals(double rtt_ms, const Feedback& feedback)
    requires kExtended
  {
    auto& [has_ack, losses, losses_before_recovery] = signals_;
    if (!std::exchange(has_ack, true)) {
      // The first ACK of an on period only sets the references.
      losses = {};
      losses_before_recovery.reset();
      return;
    }
    const double received_ms = last_ms_[1];
    const std::uint32_t resolved = feedback.received + losses.pending;
    memory_[kRttDiff] = rtt_ms - minimum_rtt_ms_;
    // An ACK of a packet that was received before resolves none.
    if (resolved > 0) {
      memory_[kQueueingDelay] = memory_[kRecEwma] * resolved;
    }
    // Packets that were received before may be marked.
    if (const std::uint32_t packets = std::max(feedback.received, feedback.marked); packets > 0) {
      memory_[kEcnFraction] = (1 - kMarkWeight) * memory_[kEcnFraction] +
                              kMarkWeight * (static_cast<double>(feedback.marked) / packets);
    }
    if (losses.pending > 0) {
      memory_[kRttsSinceLoss] = 1;
    } else if (memory_[kRttsSinceLoss] > 0) {
      memory_[kRttsSinceLoss] = 1 + (received_ms - losses.last_ms) / minimum_rtt_ms_;
    }
    count_losses(losses, resolved, received_ms);
    if (losses_before_recovery) {
      count_losses(*losses_before_recovery, resolved, received_ms);
    }
    memory_[kLossRate] = losses.rate;
    if (feedback.usage) {
      memory_[kQueueLength] =
          (1 - kWeight) * memory_[kQueueLength] + kWeight * feedback.usage->queue_packets;
      memory_[kUtilization] =
          (1 - kWeight) * memory_[kUtilization] + kWeight * feedback.usage->utilization;
    }
  }

  // Counts `resolved` packets: the pending losses as lost, and the others as received.
  static void count_losses(LossMemory& losses, std::uint32_t resolved, double received_ms) {
    if (losses.pending > 0) {
      losses.last_ms = received_ms;
    }
    for (std::uint32_t lost = losses.pending; lost > 0; --lost) {
      losses.rate = (1 - kSlowWeight) * losses.rate + kSlowWeight;
    }
    for (std::uint32_t received = resolved - losses.pending; received > 0; --received) {
      losses.rate = (1 - kSlowWeight) * losses.rate;
    }
    losses.pending = 0;
  }

  [[gnu::always_inline]] std::uint32_t apply_rule() {
    if constexpr (kExtended) {
      if (has_extended_signals()) [[unlikely]] {
        return apply_extended_rule();
      }
    }
    return apply_basic_rule();
  }

  [[gnu::noinline]] std::uint32_t apply_extended_rule()
    requires kExtended
  {
    if (is_scale_free() && memory_[kRecEwma] > 0) [[likely]] {
      set_basic_ratios();
      ratios_[kRttDiff] = memory_[kRttDiff] / memory_[kRecEwma];
      ratios_[kQueueingDelay] = memory_[kQueueingDelay] / minimum_rtt_ms_;
      ratios_[kLossRate] = memory_[kLossRate];
      // Divided by the BDP.
      ratios_[kQueueLength] = memory_[kQueueLength] * memory_[kRecEwma] / minimum_rtt_ms_;
      ratios_[kUtilization] = memory_[kUtilization];
      ratios_[kEcnFraction] = memory_[kEcnFraction];
      ratios_[kRttsSinceLoss] = memory_[kRttsSinceLoss];
      return apply_relative(table_->find_extended(ratios_));
    }
    return is_scale_free() ? apply_start_rule() : apply_absolute(table_->find_extended(memory_));
  }

  [[gnu::always_inline]] std::uint32_t apply_basic_rule() {
    if constexpr (kAnyRules) {
      if (is_scale_free()) {
        if (memory_[kRecEwma] > 0) [[likely]] {
          set_basic_ratios();
          return apply_relative(table_->find(ratios_));
        }
        return apply_start_rule();
      }
    }
    return apply_absolute(table_->find(memory_));
  }

  [[gnu::always_inline]] std::uint32_t apply_absolute(std::uint32_t rule) {
    const Action& action = table_->action(rule);
    set(action, action.window_increment, action.intersend_ms);
    return rule;
  }

  [[gnu::always_inline]] void set_basic_ratios() {
    const double scale_ms = memory_[kRecEwma];
    ratios_[kSendEwma] = memory_[kSendEwma] / scale_ms;
    ratios_[kAge] = table_->looks_at_age() ? age() : 1;
    ratios_[kRttRatio] = memory_[kRttRatio];
    ratios_[kSlowRecEwma] = memory_[kSlowRecEwma] / scale_ms;
  }

  [[gnu::always_inline]] std::uint32_t apply_relative(std::uint32_t rule) {
    const Action& action = table_->action(rule);
    // The order of operations avoids multiplying 0 by infinity.
    set(action, action.window_increment * minimum_rtt_ms_ / (100 * unit_ms()),
        action.intersend_ms * unit_ms());
    return rule;
  }

  // Before anything is measured, the actions of scale-free rules are absolute.
  [[gnu::noinline]] std::uint32_t apply_start_rule() {
    std::fill(std::begin(ratios_), std::end(ratios_), 0.0);
    return apply_absolute(has_extended_signals() ? table_->find_extended(ratios_)
                                                 : table_->find(ratios_));
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
  [[no_unique_address]] std::conditional_t<kExtended, SignalMemory, Nothing> signals_;
};

// A RemyCC with absolute rules on the basic signals, which is faster than one with any rules.
using AbsoluteController = RemyController<false>;
// A RemyCC with any rules on the basic signals.
using BasicController = RemyController<true>;
// A RemyCC with any rules on the basic signals, and with a path model if its table has one.
using PathController = RemyController<true, false, true>;
// A RemyCC with any table: any rules on any signals, and with a path model if its table has one.
using AnyController = RemyController<true, true, true>;

// Is notified of every rule that a sender of a network uses.
class RuleObserver {
 public:
  virtual void used(std::uint32_t sender, const AnyController& controller, std::uint32_t rule) = 0;

 protected:
  ~RuleObserver() = default;
};

}  // namespace remy
