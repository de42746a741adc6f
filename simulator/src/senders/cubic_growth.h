#pragma once

#include <algorithm>

#include "core/elementary.h"

namespace remy {

// Congestion avoidance of RFC 9438 (Cubic): how a window grows after a congestion event, and what a
// congestion event leaves of it. Sections and names are the RFC's; windows are packets.
class CubicGrowth {
 public:
  CubicGrowth(double c, double beta, bool has_fast_convergence)
      : c_(c),
        beta_cubic_(beta),
        has_fast_convergence_(has_fast_convergence),
        // Section 4.3: the alpha with which AIMD(alpha, beta) has Reno's average window.
        alpha_cubic_(3 * (1 - beta) / (1 + beta)) {}

  // Multiplies C, and the growth of W_est, as they were at the beginning, by `scale`.
  void set_scale(double scale) { scale_ = scale; }
  // Forgets all congestion events, and keeps the scale.
  void reset() {
    const double scale = scale_;
    *this = CubicGrowth(c_, beta_cubic_, has_fast_convergence_);
    scale_ = scale;
  }

  // Returns the window after ACKs of `packets` packets outside recovery.
  [[gnu::always_inline]] double increase(double cwnd, double now_ms, double packets,
                                         double srtt_ms) {
    if (!in_epoch_) [[unlikely]] {
      start_epoch(cwnd, now_ms);
    }
    const double t_s = (now_ms - epoch_start_ms_) / 1000;
    // Section 4.2: target = W_cubic(t + RTT), limited to [cwnd, 1.5 cwnd].
    const double target = std::clamp(w_cubic(t_s + srtt_ms / 1000), cwnd, 1.5 * cwnd);
    // Section 4.3: W_est += alpha_cubic * segments_acked / cwnd, with alpha_cubic = 1 once W_est
    // reaches cwnd_prior.
    double growth = packets * scale_;
    if (w_est_ < cwnd_prior_) [[likely]] {
      growth *= alpha_cubic_;
    }
    w_est_ += growth / cwnd;
    // Sections 4.4 and 4.5: cwnd += (target - cwnd) / cwnd per acknowledged packet. An ACK for more
    // packets than cwnd does not overshoot the target.
    const double grown = cwnd + (target - cwnd) * std::min(packets / cwnd, 1.0);
    return w_cubic(t_s) < w_est_ ? std::max(grown, w_est_) : grown;
  }

  // A congestion event. Returns ssthresh, which is the window of fast recovery.
  double reduce(double cwnd) {
    // Section 4.7, fast convergence: a flow that did not reach its last W_max releases bandwidth.
    w_max_ = has_fast_convergence_ && cwnd < w_max_ ? cwnd * (1 + beta_cubic_) / 2 : cwnd;
    cwnd_prior_ = cwnd;
    in_epoch_ = false;
    had_loss_ = true;
    return std::max(cwnd * beta_cubic_, 2.0);
  }

  // Section 4.8: the first congestion avoidance after a timeout starts with K = 0.
  void on_timeout() { in_epoch_ = had_loss_ = false; }

  // Section 5.8: time in which the sender is not limited by its window does not count.
  void delay_epoch(double ms) { epoch_start_ms_ += ms; }

 private:
  [[gnu::noinline]] void start_epoch(double cwnd, double now_ms) {
    in_epoch_ = true;
    epoch_start_ms_ = now_ms;
    // Section 4.2: K is the time in which W_cubic reaches W_max. Without an earlier loss, or after
    // a timeout, K = 0 and W_max = cwnd (section 4.8).
    if (had_loss_) {
      k_s_ = cube_root((w_max_ - cwnd) / (c_ * scale_));
    } else {
      k_s_ = 0;
      w_max_ = cwnd;
    }
    w_est_ = cwnd;
  }

  // Section 4.2, figure 1: W_cubic(t) = C (t - K)^3 + W_max.
  double w_cubic(double t_s) const {
    const double since_k_s = t_s - k_s_;
    return c_ * scale_ * since_k_s * since_k_s * since_k_s + w_max_;
  }

  double c_;
  double beta_cubic_;
  bool has_fast_convergence_;
  double alpha_cubic_;
  double scale_ = 1;
  double w_max_ = 0;
  double cwnd_prior_ = 0;
  double w_est_ = 0;
  double k_s_ = 0;
  double epoch_start_ms_ = 0;
  bool in_epoch_ = false;
  bool had_loss_ = false;
};

}  // namespace remy
