#include "elements/link_conditions.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "core/requirement.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kFastestPerMs = 1e6;
constexpr double kShortestStepMs = 0.01;
constexpr std::size_t kMaxSteps = 100'000;

// Random streams of a walk.
constexpr std::uint64_t kRate = 0;
constexpr std::uint64_t kDelay = 1;
constexpr std::uint64_t kLoss = 2;

void validate_rate(double value, const std::string& field) {
  require(value >= 0 && value <= kFastestPerMs, field, value, "a number from 0 to 1000000");
}

void validate_delay(double value, const std::string& field) {
  require(is_not_negative(value), field, value, kNotNegative);
}

void validate_loss(double value, const std::string& field) {
  require(value >= 0 && value < 1, field, value, "at least 0 and below 1");
}

void validate_schedule(const LinkSchedule& schedule, const std::string& field) {
  if (schedule.steps.empty()) {
    refuse(field + ".steps is empty but must have at least one step");
  }
  require(schedule.steps.size() <= kMaxSteps, "the number of " + field + ".steps",
          static_cast<double>(schedule.steps.size()), "at most 100000");
  double last_ms = -1;
  bool ends_in_outage = false;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const LinkStep& step = schedule.steps[i];
    const std::string name = field + ".steps[" + std::to_string(i) + "]";
    require(is_not_negative(step.at_ms) && step.at_ms > last_ms, name + ".at_ms", step.at_ms,
            i == 0 ? std::string(kNotNegative) : "later than the step before it");
    last_ms = step.at_ms;
    if (step.rate_packets_per_ms) {
      validate_rate(*step.rate_packets_per_ms, name + ".rate_packets_per_ms");
      ends_in_outage = *step.rate_packets_per_ms == 0;
    }
    if (step.delay_ms) {
      validate_delay(*step.delay_ms, name + ".delay_ms");
    }
    if (step.loss_probability) {
      validate_loss(*step.loss_probability, name + ".loss_probability");
    }
  }
  if (schedule.repeat_after_ms) {
    require(is_positive(*schedule.repeat_after_ms) && *schedule.repeat_after_ms > last_ms &&
                *schedule.repeat_after_ms >= kShortestStepMs,
            field + ".repeat_after_ms", *schedule.repeat_after_ms,
            "later than the last step, and at least 0.01");
    ends_in_outage =
        change_rate(schedule) && std::ranges::none_of(schedule.steps, [](const LinkStep& step) {
          return step.rate_packets_per_ms.value_or(0) > 0;
        });
  }
  if (ends_in_outage) {
    refuse(field + " ends in an outage but must have a rate above 0 after it");
  }
}

void validate_walk(const LinkWalk& walk, const std::string& field) {
  require(is_positive(walk.every_ms) && walk.every_ms >= kShortestStepMs, field + ".every_ms",
          walk.every_ms, "a number of at least 0.01");
  require(walk.step >= 0 && walk.step <= 1, field + ".step", walk.step, "a number from 0 to 1");
  const auto check = [&field](const std::optional<LinkRange>& range, const char* name,
                              auto validate_end) {
    if (range) {
      const std::string path = field + "." + name;
      validate_end(range->least, path + ".least");
      validate_end(range->most, path + ".most");
      require(range->least <= range->most, path + ".least", range->least,
              "no more than " + path + ".most");
    }
  };
  check(walk.rate_packets_per_ms, "rate_packets_per_ms", validate_rate);
  check(walk.delay_ms, "delay_ms", validate_delay);
  check(walk.loss_probability, "loss_probability", validate_loss);
  if (walk.rate_packets_per_ms) {
    require(walk.rate_packets_per_ms->most > 0, field + ".rate_packets_per_ms.most", 0, kPositive);
  }
  if (!walk.rate_packets_per_ms && !walk.delay_ms && !walk.loss_probability) {
    refuse(field + " has no range but must have one for the rate, the delay or the loss");
  }
}

// Returns true if any step of a schedule, or the walk, has the property.
template <class Step, class Walk>
bool affects(const LinkChanges& changes, Step step, Walk walk) {
  if (const auto* const schedule = std::get_if<LinkSchedule>(&changes)) {
    return std::ranges::any_of(schedule->steps,
                               [&](const LinkStep& each) { return (each.*step).has_value(); });
  }
  return (std::get<LinkWalk>(changes).*walk).has_value();
}

}  // namespace

LinkConditions::LinkConditions(const LinkCondition& first, const LinkChanges& changes,
                               std::uint64_t key, double end_ms)
    : current_(first), changes_(changes), key_(key), end_ms_(end_ms) {
  if (const auto* const schedule = std::get_if<LinkSchedule>(&changes_)) {
    next_change_ms_ = schedule->steps.front().at_ms;
  }
}

void LinkConditions::apply_next_change() {
  if (const auto* const walk_of = std::get_if<LinkWalk>(&changes_)) {
    if (walk_of->rate_packets_per_ms) {
      current_.rate_packets_per_ms =
          next_value(*walk_of->rate_packets_per_ms, current_.rate_packets_per_ms, kRate);
    }
    if (walk_of->delay_ms) {
      current_.delay_ms = next_value(*walk_of->delay_ms, current_.delay_ms, kDelay);
    }
    if (walk_of->loss_probability) {
      current_.loss_probability =
          next_value(*walk_of->loss_probability, current_.loss_probability, kLoss);
    }
    next_change_ms_ = static_cast<double>(++changed_) * walk_of->every_ms;
    return;
  }
  const LinkSchedule& schedule = std::get<LinkSchedule>(changes_);
  const LinkStep& step = schedule.steps[next_step_];
  current_.rate_packets_per_ms = step.rate_packets_per_ms.value_or(current_.rate_packets_per_ms);
  current_.delay_ms = step.delay_ms.value_or(current_.delay_ms);
  current_.loss_probability = step.loss_probability.value_or(current_.loss_probability);
  if (++next_step_ == schedule.steps.size()) {
    next_step_ = 0;
    ++changed_;
    if (!schedule.repeat_after_ms) {
      next_change_ms_ = kNever;
      return;
    }
  }
  next_change_ms_ = static_cast<double>(changed_) * schedule.repeat_after_ms.value_or(0) +
                    schedule.steps[next_step_].at_ms;
}

double LinkConditions::next_value(const LinkRange& range, double from, std::uint64_t stream) const {
  const double size = range.most - range.least;
  const double draw = unit_interval(random_bits(derive_key(key_, stream), changed_));
  const double step = std::get<LinkWalk>(changes_).step;
  if (step == 0 || changed_ == 0) {
    return range.least + size * draw;
  }
  const double to = from + size * step * (2 * draw - 1);
  const double reflected = to < range.least  ? 2 * range.least - to
                           : to > range.most ? 2 * range.most - to
                                             : to;
  return std::clamp(reflected, range.least, range.most);
}

double mean_rate_packets_per_ms(double first, const LinkChanges& changes) {
  if (const auto* const walk = std::get_if<LinkWalk>(&changes)) {
    return walk->rate_packets_per_ms
               ? (walk->rate_packets_per_ms->least + walk->rate_packets_per_ms->most) / 2
               : first;
  }
  const LinkSchedule& schedule = std::get<LinkSchedule>(changes);
  double rate = first;
  for (const LinkStep& step : schedule.steps) {
    rate = step.rate_packets_per_ms.value_or(rate);
  }
  if (!schedule.repeat_after_ms) {
    return rate;
  }
  // A repetition starts with the rate at which the previous one ends.
  double packets = 0;
  double since_ms = 0;
  for (const LinkStep& step : schedule.steps) {
    packets += rate * (step.at_ms - since_ms);
    since_ms = step.at_ms;
    rate = step.rate_packets_per_ms.value_or(rate);
  }
  packets += rate * (*schedule.repeat_after_ms - since_ms);
  return packets / *schedule.repeat_after_ms;
}

void validate(const LinkChanges& changes, const std::string& field) {
  if (const auto* const schedule = std::get_if<LinkSchedule>(&changes)) {
    validate_schedule(*schedule, field);
  } else {
    validate_walk(std::get<LinkWalk>(changes), field);
  }
}

bool change_rate(const LinkChanges& changes) {
  return affects(changes, &LinkStep::rate_packets_per_ms, &LinkWalk::rate_packets_per_ms);
}

bool change_delay(const LinkChanges& changes) {
  return affects(changes, &LinkStep::delay_ms, &LinkWalk::delay_ms);
}

bool change_loss(const LinkChanges& changes) {
  return affects(changes, &LinkStep::loss_probability, &LinkWalk::loss_probability);
}

}  // namespace remy
