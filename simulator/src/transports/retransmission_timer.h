#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace remy {

// The parameters of a RetransmissionTimer.
struct RetransmissionTimeouts {
  double initial_ms = 1000;  // before the first sample of the RTT (RFC 6298, section 2.1)
  double minimum_ms = 200;
  double maximum_ms = 60000;  // section 2.5
  double granularity_ms = 1;  // clock granularity G (section 2.3)
  // minimum_ms bounds the variation term, as in Linux; otherwise it bounds the sum.
  bool is_minimum_of_variation = false;
  // A sample below the smoothed RTT raises the variation by an eighth of the usual step, as in
  // Linux.
  bool damps_decreases = false;
  // Only end_back_off() ends the backoff, as in ns-2; otherwise each sample does.
  bool keeps_back_off = false;
  // The distance of a sample from the smoothed RTT is rounded down to whole seconds.
  bool varies_by_seconds = false;
};

// The retransmission timer (RFC 6298): estimates the RTT and its variation, computes the timeout
// (RTO) from both, and doubles it at every expiry.
class RetransmissionTimer {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit RetransmissionTimer(const RetransmissionTimeouts& timeouts) : timeouts_(timeouts) {
    reset();
  }

  // Forgets all samples and stops the timer.
  void reset() {
    has_sample_ = false;
    is_standard_ = false;
    smoothed_ms_ = 0;
    variation_ms_ = 0;
    base_ms_ = timeouts_.initial_ms;
    back_off_ = 1;
    expiry_ms_ = kNever;
  }

  void sample(double rtt_ms) {
    if (is_standard_) [[likely]] {
      update(rtt_ms);
      back_off_ = 1;
    } else {
      sample_nonstandard(rtt_ms);
    }
  }

  // The timer has a sample and computes by RFC 6298 without any of the options above.
  bool is_standard() const { return is_standard_; }

  // sample() and restart() in one, if is_standard() and no timeout has occurred since the last
  // sample.
  [[gnu::always_inline]] void sample_and_restart(double rtt_ms, double now_ms) {
    update(rtt_ms);
    expiry_ms_ = now_ms + std::min(base_ms_, timeouts_.maximum_ms);
  }

  // Section 5.5: doubles the timeout.
  void back_off() { back_off_ = timeout_ms() < timeouts_.maximum_ms ? 2 * back_off_ : back_off_; }
  void end_back_off() { back_off_ = 1; }

  void restart(double now_ms) { expiry_ms_ = now_ms + timeout_ms(); }
  void stop() { expiry_ms_ = kNever; }
  bool is_running() const { return expiry_ms_ < kNever; }

  double expiry_ms() const { return expiry_ms_; }
  double timeout_ms() const { return std::min(base_ms_ * back_off_, timeouts_.maximum_ms); }
  double smoothed_ms() const { return smoothed_ms_; }  // 0 before the first sample
  double variation_ms() const { return variation_ms_; }

 private:
  // Section 2.3: RTTVAR is updated first, with the old SRTT; alpha = 1/8, beta = 1/4.
  [[gnu::always_inline]] void update(double rtt_ms) {
    const double error = std::fabs(smoothed_ms_ - rtt_ms) - variation_ms_;
    variation_ms_ += error / 4;
    smoothed_ms_ += (rtt_ms - smoothed_ms_) / 8;
    base_ms_ = std::max(timeouts_.minimum_ms,
                        smoothed_ms_ + std::max(timeouts_.granularity_ms, 4 * variation_ms_));
  }

  [[gnu::noinline]] void sample_nonstandard(double rtt_ms) {
    if (!has_sample_) {
      // Section 2.2: SRTT = R, RTTVAR = R / 2.
      has_sample_ = true;
      is_standard_ = !timeouts_.is_minimum_of_variation && !timeouts_.damps_decreases &&
                     !timeouts_.keeps_back_off && !timeouts_.varies_by_seconds;
      smoothed_ms_ = rtt_ms;
      variation_ms_ = rtt_ms / 2;
    } else {
      double distance_ms = std::fabs(smoothed_ms_ - rtt_ms);
      if (timeouts_.varies_by_seconds) {
        distance_ms = std::floor(distance_ms / 1000) * 1000;
      }
      const double error = distance_ms - variation_ms_;
      const bool is_damped = timeouts_.damps_decreases && rtt_ms < smoothed_ms_ && error > 0;
      variation_ms_ += is_damped ? error / 32 : error / 4;
      smoothed_ms_ += (rtt_ms - smoothed_ms_) / 8;
    }
    const double variation = std::max(timeouts_.granularity_ms, 4 * variation_ms_);
    base_ms_ = timeouts_.is_minimum_of_variation
                   ? smoothed_ms_ + std::max(timeouts_.minimum_ms, variation)
                   : std::max(timeouts_.minimum_ms, smoothed_ms_ + variation);
    if (!timeouts_.keeps_back_off) {
      back_off_ = 1;
    }
  }

  RetransmissionTimeouts timeouts_;
  bool has_sample_ = false;
  bool is_standard_ = false;
  double smoothed_ms_ = 0;
  double variation_ms_ = 0;
  double base_ms_ = 0;
  double back_off_ = 1;
  double expiry_ms_ = kNever;
};

}  // namespace remy
