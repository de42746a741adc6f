#pragma once

#include <functional>

namespace remy {

// The best of the samples of a moving window, in constant time and space (Nichols's filter of
// three samples, as Linux's lib/win_minmax.c describes it). It keeps the best sample, the best
// since that one, and the best since the second; when the best leaves the window the others move
// up. The result is exact while samples keep coming; of a window without any, it is the last.
template <class IsAtLeastAsGood>
class WindowedBest {
 public:
  double value() const { return best_.value; }

  // Times and windows share a unit, ms or rounds; times never run backwards.
  double update(double window, double now, double value) {
    const Sample sample{now, value};
    if (is_empty_ || is_as_good_(value, best_.value) || now - third_.time > window) {
      reset(now, value);
      return value;
    }
    if (is_as_good_(value, second_.value)) {
      second_ = third_ = sample;
    } else if (is_as_good_(value, third_.value)) {
      third_ = sample;
    }
    if (now - best_.time > window) {
      move_up(sample);
      if (now - best_.time > window) {
        move_up(sample);
      }
    } else if (second_.time == best_.time && now - best_.time > window / 4) {
      // A quarter of the window without a second best: one is taken, lest there be none at its end.
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

  void move_up(const Sample& sample) {
    best_ = second_;
    second_ = third_;
    third_ = sample;
  }

  Sample best_, second_, third_;
  bool is_empty_ = true;
  [[no_unique_address]] IsAtLeastAsGood is_as_good_;
};

using WindowedMax = WindowedBest<std::greater_equal<>>;
using WindowedMin = WindowedBest<std::less_equal<>>;

}  // namespace remy
