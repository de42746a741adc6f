#pragma once

#include <cstdint>

namespace remy {

// Two means of the samples of the RTT that a sender takes: over the times when a receiver hands
// something on in order, of the latest sample by then; and over time, of the latest in every 5 ms
// that brought news, where what is long in coming weighs more.
class RttStatistics {
 public:
  void handed_on() {
    sum_ms_ += last_ms_;
    count_ += last_ms_ > 0 ? 1 : 0;
  }
  // A new sample, or the last one again with other news.
  void sampled(double rtt_ms, double now_ms) {
    if (const double steps = now_ms / kStepMs; steps >= next_step_) {
      sum_over_time_ms_ += last_ms_;
      count_over_time_ += last_ms_ > 0 ? 1 : 0;
      next_step_ = static_cast<double>(static_cast<std::int64_t>(steps) + 1);
    }
    last_ms_ = rtt_ms;
  }

  double last_ms() const { return last_ms_; }  // 0: none yet
  double mean_ms() const { return count_ > 0 ? sum_ms_ / static_cast<double>(count_) : 0; }
  double mean_over_time_ms() const {
    return count_over_time_ > 0 ? sum_over_time_ms_ / static_cast<double>(count_over_time_) : 0;
  }

 private:
  static constexpr double kStepMs = 5;

  double last_ms_ = 0;
  double sum_ms_ = 0;
  std::uint64_t count_ = 0;
  double next_step_ = 0;  // the first whose news are not yet counted
  double sum_over_time_ms_ = 0;
  std::uint64_t count_over_time_ = 0;
};

}  // namespace remy
