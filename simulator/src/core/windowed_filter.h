#pragma once

#include <functional>

namespace remy {

// Tracks the maximum or minimum of the samples in a moving window, in constant time and space
// (Kathleen Nichols' filter of three samples, lib/win_minmax.c in Linux). It keeps the best sample,
// the best one after it, and the best one after the second. When the best leaves the window, the
// others move up. The result is exact if samples keep arriving; without any in the window, it is
// the last sample.
template <class IsAtLeastAsGood>
class WindowedBest {
 public:
  double value() const { return best_.value; }

  // Adds a sample and returns the best. Times and windows have the same unit, ms or rounds; times
  // must not decrease.
  double update(double window, double now, double value) {
    const Sample sample{now, value};
    if (is_empty_ || is_at_least_as_good_(value, best_.value) || now - third_.time > window) {
      reset(now, value);
      return value;
    }
    if (is_at_least_as_good_(value, second_.value)) {
      second_ = third_ = sample;
    } else if (is_at_least_as_good_(value, third_.value)) {
      third_ = sample;
    }
    if (now - best_.time > window) {
      drop_best(sample);
      if (now - best_.time > window) {
        drop_best(sample);
      }
    } else if (second_.time == best_.time && now - best_.time > window / 4) {
      // A quarter of the window has passed without a second-best sample. This one becomes it, so
      // that a candidate remains when the best expires.
      second_ = third_ = sample;
    } else if (third_.time == second_.time && now - best_.time > window / 2) {
      third_ = sample;
    }
    return best_.value;
  }

  void reset(double now, double value) {
    best_ = second_ = third_ = {now, value};
    is_empty_ = false;
  }

  void clear() { *this = {}; }

 private:
  struct Sample {
    double time = 0;
    double value = 0;
  };

  void drop_best(const Sample& sample) {
    best_ = second_;
    second_ = third_;
    third_ = sample;
  }

  Sample best_, second_, third_;
  bool is_empty_ = true;
  [[no_unique_address]] IsAtLeastAsGood is_at_least_as_good_;
};

using WindowedMax = WindowedBest<std::greater_equal<>>;
using WindowedMin = WindowedBest<std::less_equal<>>;

}  // namespace remy
