#pragma once

#include <cstddef>

namespace remy {

// Integrates the fair share of time: 1 / (number of senders on), over the times when any is on. The
// difference over an on period says which part of the network a sender could fairly have had.
class FairShare {
 public:
  // Up to now_ms; times never decrease.
  double integral_ms(double now_ms) {
    if (senders_on_ > 0) {
      integral_ms_ += (now_ms - until_ms_) / static_cast<double>(senders_on_);
    }
    until_ms_ = now_ms;
    return integral_ms_;
  }
  // Both need integral_ms() to be up to date.
  void sender_on() { ++senders_on_; }
  void sender_off() { --senders_on_; }

 private:
  std::size_t senders_on_ = 0;
  double integral_ms_ = 0;
  double until_ms_ = 0;
};

}  // namespace remy
