#pragma once

#include <cstdint>

namespace remy {

// Two means of a sender's RTT samples. mean_ms() averages the latest sample over all deliveries in
// order. mean_over_time_ms() averages the latest sample over all intervals of 5 ms with an ACK of
// new data, so that long RTTs have more weight.
class RttStatistics {
 public:
  void handed_on() {
    sum_ms_ += last_ms_;
    count_ += last_ms_ > 0 ? 1 : 0;
  }
  // Adds a sample, or the last one again at an ACK that yields none.
  void sampled(double rtt_ms, double now_ms) {
    if (now_ms >= next_step_ms_) {
      end_step(now_ms);
    }
    last_ms_ = rtt_ms;
  }
  // handed_on(), then sampled().
  [[gnu::always_inline]] void handed_on_and_sampled(double rtt_ms, double now_ms) {
    if (last_ms_ > 0) [[likely]] {
      sum_ms_ += last_ms_;
      ++count_;
    }
    sampled(rtt_ms, now_ms);
  }

  double last_ms() const { return last_ms_; }  // 0 before the first sample
  double mean_ms() const { return count_ > 0 ? sum_ms_ / static_cast<double>(count_) : 0; }
  double mean_over_time_ms() const {
    return count_over_time_ > 0 ? sum_over_time_ms_ / static_cast<double>(count_over_time_) : 0;
  }

 private:
  static constexpr double kStepMs = 5;

  void end_step(double now_ms) {
    sum_over_time_ms_ += last_ms_;
    count_over_time_ += last_ms_ > 0 ? 1 : 0;
    next_step_ms_ = kStepMs * static_cast<double>(static_cast<std::int64_t>(now_ms / kStepMs) + 1);
  }

  double last_ms_ = 0;
  double sum_ms_ = 0;
  std::uint64_t count_ = 0;
  double next_step_ms_ = 0;  // start of the next interval to be counted
  double sum_over_time_ms_ = 0;
  std::uint64_t count_over_time_ = 0;
};

}  // namespace remy
