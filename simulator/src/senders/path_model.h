#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/windowed_filter.h"
#include "table/path_settings.h"

namespace remy {

// What a sender knows about its path besides the signals of its rules: the base RTT, which expires;
// a response to loss; and a floor below which the sender does not fall. It is the same on every
// transport.
class PathModel {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // `settings`, which may be null, outlives the model.
  explicit PathModel(const PathSettings* settings = nullptr) : settings_(settings) {}

  bool is_on() const { return settings_ != nullptr; }

  // An on period starts, with the base RTT of an earlier one, or infinity.
  void start(double remembered_rtt_ms) {
    *this = PathModel(settings_);
    base_rtt_ms_ = remembered_rtt_ms;
  }

  void on_ack(double now_ms, double rtt_ms, std::uint32_t packets);
  void on_loss(double now_ms, double packets);
  void on_timeout(double now_ms, double packets);
  void on_spurious_recovery();
  double base_rtt_ms() const { return base_rtt_ms_; }
  double rtt_ms() const { return rtt_ms_; }
  double limit_window(double packets) const;
  double limit_intersend(double ms) const;

 private:
  void begin(double now_ms, double rtt_ms);
  void on_event(double now_ms);
  void end_round(double now_ms);
  void end_epoch(double now_ms);
  void update_limits();

  const PathSettings* settings_;
  double smoothed_rtt_ms_ = 0;
  double rtt_ms_ = 0;
  double base_rtt_ms_ = kInfinite;
  double epoch_rtt_ms_ = kInfinite;
  double previous_epoch_rtt_ms_ = kInfinite;
  double round_rtt_ms_ = kInfinite;
  double event_ms_ = 0;      // the earlier of the ends of the round and of the drain
  double round_end_ms_ = 0;
  double drain_end_ms_ = kInfinite;
  double rounds_ = 0;
  double delivered_ = 0;
  double last_delivered_ = 0;
  double debt_packets_ = 0;
  double quiet_until_ms_ = 0;
  double cap_ = kInfinite;
  double cap_before_ = 0;
  double growth_ = 0;
  double drain_cap_ = kInfinite;
  double most_packets_ = kInfinite;
  double least_intersend_ms_ = 0;
  double most_intersend_ms_ = kInfinite;
  double last_ack_ms_ = 0;
  double longest_gap_ms_ = 0;
  double gaps_ms_[3] = {0, 0, 0};
  double held_ms_ = 0;
  double x_[24] = {};
  WindowedMin recent_rtt_ms_;
};

}  // namespace remy
