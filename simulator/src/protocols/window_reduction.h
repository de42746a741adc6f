#pragma once

#include <algorithm>

namespace remy {

// The window and threshold from before the last reduction, which return if it was spurious
// (RFC 4015).
class WindowBeforeReduction {
 public:
  void remember(double cwnd, double ssthresh) {
    cwnd_ = cwnd;
    ssthresh_ = ssthresh;
  }
  void forget() { *this = {}; }
  // Raises window and threshold to what they were.
  void restore(double& cwnd, double& ssthresh) const {
    cwnd = std::max(cwnd, cwnd_);
    ssthresh = std::max(ssthresh, ssthresh_);
  }

 private:
  double cwnd_ = 0;  // 0: there was no reduction
  double ssthresh_ = 0;
};

// CongestionController::lower_unused_window() for a window and threshold of RFC 5681.
inline void lower_unused(double& cwnd, double& ssthresh, double packets) {
  ssthresh = std::max(ssthresh, 0.75 * cwnd);
  cwnd = packets;
}

}  // namespace remy
