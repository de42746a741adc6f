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

// What can change on a link while it is used.
struct LinkCondition {
  double rate_packets_per_ms = 1;  // 0: an outage
  double delay_ms = 0;
  double loss_probability = 0;
};

// From a time on; what is none stays as it is.
struct LinkStep {
  double at_ms = 0;
  std::optional<double> rate_packets_per_ms = {};
  std::optional<double> delay_ms = {};
  std::optional<double> loss_probability = {};
};

// Changes at given times.
struct LinkSchedule {
  std::vector<LinkStep> steps;                 // by time
  std::optional<double> repeat_after_ms = {};  // it begins again; none: never
};

struct LinkRange {
  double least = 0;
  double most = 0;
};

// What is drawn anew in equal steps of time, from time 0 on; what is none is constant.
struct LinkWalk {
  double every_ms = 5000;
  std::optional<LinkRange> rate_packets_per_ms = {};
  std::optional<LinkRange> delay_ms = {};
  std::optional<LinkRange> loss_probability = {};
  // How far a step goes at most, as a share of the range, from whose ends it is reflected; 0:
  // anywhere, whatever was before (as in PCC, NSDI 2015, Figure 11).
  double step = 0;
};

using LinkChanges = std::variant<LinkSchedule, LinkWalk>;

// A link's condition as time goes by.
class LinkConditions {
 public:
  // `first` holds until something changes it. `key` is of what a walk draws. After end_ms nothing
  // changes any more.
  LinkConditions(const LinkCondition& first, const LinkChanges& changes, std::uint64_t key,
                 double end_ms);

  // Times never run backwards. A change counts from its time on.
  const LinkCondition& at(double time_ms) {
    while (next_change_ms_ <= std::min(time_ms, end_ms_)) [[unlikely]] {
      change();
    }
    return now_;
  }
  // When something can be begun that is ready at a time: then, or after the outage.
  double begins_ms(double ready_ms) {
    while (at(ready_ms).rate_packets_per_ms == 0) {
      if (next_change_ms_ > end_ms_) {
        return std::numeric_limits<double>::infinity();
      }
      ready_ms = next_change_ms_;
    }
    return ready_ms;
  }

 private:
  void change();
  void apply(const LinkStep& step);
  double walk(const LinkRange& range, double from, std::uint64_t what) const;

  LinkCondition now_;
  LinkChanges changes_;
  std::uint64_t key_;
  double end_ms_;
  double next_change_ms_ = 0;
  std::size_t next_step_ = 0;
  std::uint64_t changed_ = 0;  // rounds of a schedule, steps of a walk
};

// Over the long run: of a schedule over one round, or from its last step on; of a walk the middle.
// `first` is the rate until something changes it.
double mean_rate_packets_per_ms(double first, const LinkChanges& changes);

// Throws std::invalid_argument with one sentence if steps are not in order, a number is out of its
// range, or an outage never ends. `field` is what the sentence calls them.
void validate(const LinkChanges& changes, const std::string& field);

// Whether they say anything of the rate, or the delay, or the loss.
bool change_rate(const LinkChanges& changes);
bool change_delay(const LinkChanges& changes);
bool change_loss(const LinkChanges& changes);

}  // namespace remy
