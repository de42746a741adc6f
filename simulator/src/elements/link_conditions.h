#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace remy {

// The properties of a link that can vary over time.
struct LinkCondition {
  double rate_packets_per_ms = 1;  // 0: an outage
  double delay_ms = 0;
  double loss_probability = 0;
};

// A change at a time. Properties without a value stay as they are.
struct LinkStep {
  double at_ms = 0;
  std::optional<double> rate_packets_per_ms = {};
  std::optional<double> delay_ms = {};
  std::optional<double> loss_probability = {};
};

// A time-varying link with changes at given times.
struct LinkSchedule {
  std::vector<LinkStep> steps;                 // in order of time
  std::optional<double> repeat_after_ms = {};  // period of the schedule; none: it is not repeated
};

struct LinkRange {
  double least = 0;
  double most = 0;
};

// A time-varying link whose properties are drawn at times 0, every_ms, 2 every_ms, ... Properties
// without a range are constant.
struct LinkWalk {
  double every_ms = 5000;
  std::optional<LinkRange> rate_packets_per_ms = {};
  std::optional<LinkRange> delay_ms = {};
  std::optional<LinkRange> loss_probability = {};
  // Largest change in a step, as a fraction of the range, with reflection at its ends. 0: each
  // value is drawn independently of the last (as in PCC, NSDI 2015, Figure 11).
  double step = 0;
};

using LinkChanges = std::variant<LinkSchedule, LinkWalk>;

// Tracks the condition of a time-varying link.
class LinkConditions {
 public:
  // `first` is the condition before the first change. `key` is that of a walk's random draws. There
  // are no changes after end_ms.
  LinkConditions(const LinkCondition& first, const LinkChanges& changes, std::uint64_t key,
                 double end_ms);

  // Returns the condition at a time. Times must not decrease. A change applies from its own time
  // on.
  const LinkCondition& at(double time_ms) {
    while (next_change_ms_ <= std::min(time_ms, end_ms_)) [[unlikely]] {
      apply_next_change();
    }
    return current_;
  }
  // Returns the first time from ready_ms on at which the link is not in an outage.
  double next_up_ms(double ready_ms) {
    while (at(ready_ms).rate_packets_per_ms == 0) {
      if (next_change_ms_ > end_ms_) {
        return std::numeric_limits<double>::infinity();
      }
      ready_ms = next_change_ms_;
    }
    return ready_ms;
  }

 private:
  void apply_next_change();
  void apply(const LinkStep& step);
  double next_value(const LinkRange& range, double from, std::uint64_t stream) const;

  LinkCondition current_;
  LinkChanges changes_;
  std::uint64_t key_;
  double end_ms_;
  double next_change_ms_ = 0;
  std::size_t next_step_ = 0;
  std::uint64_t changed_ = 0;  // repetitions of a schedule, or steps of a walk
};

// Long-term mean rate. For a schedule: the mean over one repetition, or the rate after its last
// step if it is not repeated. For a walk: the middle of its range. `first` is the rate before the
// first change.
double mean_rate_packets_per_ms(double first, const LinkChanges& changes);

// Throws std::invalid_argument if steps are out of order, a number is out of range, or an outage
// never ends. `field` names the changes in the message.
void validate(const LinkChanges& changes, const std::string& field);

// Return true if the changes affect the rate, the delay or the loss.
bool change_rate(const LinkChanges& changes);
bool change_delay(const LinkChanges& changes);
bool change_loss(const LinkChanges& changes);

}  // namespace remy
