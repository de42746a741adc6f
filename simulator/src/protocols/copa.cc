#include <algorithm>

#include "core/windowed_filter.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

// Copa (Arun and Balakrishnan, NSDI 2018): targets a rate of 1 / (delta x queueing delay), at which
// n senders keep n / delta packets in the queue and empty it every five RTTs. Sections are the
// paper's.
class Copa final : public CongestionController {
 public:
  struct Rules {
    bool switches_modes = true;
    // The paper assumes that there is always data to send, and buffers that hold n / delta packets.
    // If set, the window grows only while it is used, idle time counts for nothing, and excessive
    // loss reduces the window.
    bool validates_window = false;
  };

  Copa(const ParameterValues& values, const Rules& rules)
      : default_delta_(values["delta"]),
        initial_window_(values["initial_window_packets"]),
        min_rtt_window_ms_(values["min_rtt_window_ms"]),
        rules_(rules) {}

  void start(double now_ms) override {
    min_rtt_.clear();
    standing_rtt_.clear();
    max_rtt_.clear();
    srtt_ms_ = 0;
    delta_ = default_delta_;
    is_slow_start_ = true;
    is_competitive_ = false;
    reset_velocity(0);
    round_start_ms_ = last_nearly_empty_ms_ = last_ack_ms_ = now_ms;
    has_loss_in_round_ = used_window_in_round_ = false;
    loss_cycle_ = {.start_ms = now_ms};
    cwnd_ = round_start_cwnd_ = initial_window_;
    pacing_interval_ms_ = 0;
  }

  void on_ack(const AckEvent& ack) override {
    srtt_ms_ = srtt_ms_ == 0 ? ack.rtt_ms : srtt_ms_ + (ack.rtt_ms - srtt_ms_) / 8;
    // 2.1: RTTmin is the minimum over 10 s. RTTstanding is the minimum over srtt / 2, which filters
    // out jitter and ACK compression.
    const double min_rtt_ms = min_rtt_.update(min_rtt_window_ms_, ack.now_ms, ack.rtt_ms);
    const double standing_rtt_ms = standing_rtt_.update(srtt_ms_ / 2, ack.now_ms, ack.rtt_ms);
    const double dq_ms = standing_rtt_ms - min_rtt_ms;
    if (rules_.switches_modes) {
      update_mode(ack, dq_ms, min_rtt_ms);
    }
    used_window_in_round_ = used_window_in_round_ || ack.is_cwnd_limited;
    if (ack.now_ms >= round_start_ms_ + srtt_ms_) {
      end_round(ack.now_ms);
    }
    // 2.1: compares cwnd / RTTstanding with the target 1 / (delta x dq), without dividing by dq,
    // which may be 0.
    const bool is_below_target = cwnd_ * delta_ * dq_ms <= standing_rtt_ms;
    const bool may_grow = ack.is_cwnd_limited || !rules_.validates_window;
    const auto delivered = static_cast<double>(ack.newly_delivered);
    if (is_slow_start_ && is_below_target) {
      // 2.1: slow start doubles cwnd once per RTT until it reaches the target.
      cwnd_ += may_grow ? delivered : 0;
    } else {
      is_slow_start_ = false;
      set_direction(is_below_target ? 1 : -1);
      // The change is no faster than slow start, as in the authors' genericCC.
      const double step = delivered * std::min(velocity_ / (delta_ * cwnd_), 1.0);
      cwnd_ += !is_below_target ? -step : may_grow ? step : 0;
    }
    if (rules_.validates_window) {
      heed_losses(ack);
    }
    cwnd_ = std::clamp(cwnd_, kMinCwnd, kMaxCwnd);
    // 2.1: paces at 2 cwnd / RTTstanding.
    pacing_interval_ms_ = standing_rtt_ms / (2 * cwnd_);
    last_ack_ms_ = ack.now_ms;
  }

  // 2.2: only the competitive mode reacts to losses, at most once per RTT.
  void on_loss(const LossEvent& loss) override {
    has_loss_in_round_ = has_loss_in_round_ || loss.starts_recovery;
    ++loss_cycle_.lost;
  }

  // The paper does not cover timeouts. Slow start begins again.
  void on_timeout(const TimeoutEvent& timeout) override {
    loss_cycle_.lost += static_cast<double>(timeout.newly_lost);
    cwnd_ = round_start_cwnd_ = kMinCwnd;
    round_start_ms_ = last_ack_ms_ = timeout.now_ms;
    is_slow_start_ = true;
    has_loss_in_round_ = true;
    velocity_ = 1;
    rounds_in_direction_ = 0;
    pacing_interval_ms_ = srtt_ms_ / (2 * cwnd_);
  }

  // An idle time is no part of a round, of a loss cycle or of the five RTTs of update_mode().
  void on_transmit_start(double now_ms) override {
    if (rules_.validates_window) {
      const double idle_ms = now_ms - last_ack_ms_;
      round_start_ms_ += idle_ms;
      last_nearly_empty_ms_ += idle_ms;
      loss_cycle_.start_ms += idle_ms;
      last_ack_ms_ = now_ms;
    }
  }

 private:
  static constexpr double kMinCwnd = 2;
  static constexpr double kMaxCwnd = 1e6;
  static constexpr int kRoundsBeforeDoubling = 3;
  // As the lossy mode of mvfst's Copa2: more than 5 % lost of at least 2 / 5 % packets.
  static constexpr double kLossTolerance = 0.05;
  static constexpr double kLossCyclePackets = 2 / kLossTolerance;

  struct LossCycle {
    double start_ms = 0;
    double delivered = 0;
    double lost = 0;
  };

  // 2.2: if all flows run Copa, the queue is nearly empty at least once in five RTTs: dq is below a
  // tenth of RTTmax - RTTmin, with RTTmax over four RTTs. If it is not, the flow switches to the
  // competitive mode.
  void update_mode(const AckEvent& ack, double dq_ms, double min_rtt_ms) {
    const double max_rtt_ms = max_rtt_.update(4 * srtt_ms_, ack.now_ms, ack.rtt_ms);
    if (dq_ms <= 0.1 * (max_rtt_ms - min_rtt_ms)) {
      last_nearly_empty_ms_ = ack.now_ms;
    }
    is_competitive_ = ack.now_ms > last_nearly_empty_ms_ + 5 * srtt_ms_;
    if (!is_competitive_) {
      delta_ = default_delta_;
    }
  }

  // Where the buffer is too short for the target, RTTmin becomes the RTT of the full buffer, and
  // the window would grow without bound. A cycle lasts an RTT and kLossCyclePackets at least. After
  // one with more than the tolerated losses, the window is what the path delivered in an RTT.
  void heed_losses(const AckEvent& ack) {
    loss_cycle_.delivered += static_cast<double>(ack.newly_delivered);
    const double packets = loss_cycle_.delivered + loss_cycle_.lost;
    const double elapsed_ms = ack.now_ms - loss_cycle_.start_ms;
    if (elapsed_ms < srtt_ms_ || packets < kLossCyclePackets) {
      return;
    }
    if (loss_cycle_.lost > kLossTolerance * packets) {
      cwnd_ = std::min(cwnd_, loss_cycle_.delivered * srtt_ms_ / elapsed_ms);
      is_slow_start_ = false;
      reset_velocity(0);
    }
    loss_cycle_ = {.start_ms = ack.now_ms};
  }

  // 2.1: once per RTT. The velocity v doubles if cwnd has moved in one direction for three RTTs;
  // where the window is validated, not at a loss, and one that has not moved has no direction.
  void end_round(double now_ms) {
    const bool has_moved = cwnd_ != round_start_cwnd_ || !rules_.validates_window;
    const bool may_double = has_moved && !(has_loss_in_round_ && rules_.validates_window);
    const int direction = cwnd_ > round_start_cwnd_ ? 1 : has_moved ? -1 : 0;
    if (!is_slow_start_ && direction == direction_ && may_double) {
      if (++rounds_in_direction_ >= kRoundsBeforeDoubling) {
        velocity_ *= 2;
      }
    } else {
      reset_velocity(direction);
    }
    // 2.2: in the competitive mode 1 / delta follows AIMD: it grows by 1 per RTT and halves on
    // loss.
    const bool may_grow = used_window_in_round_ || !rules_.validates_window;
    if (is_competitive_ && (has_loss_in_round_ || may_grow)) {
      const double inverse_delta = has_loss_in_round_ ? 0.5 / delta_ : 1 / delta_ + 1;
      delta_ = std::min(default_delta_, 1 / inverse_delta);
    }
    has_loss_in_round_ = used_window_in_round_ = false;
    round_start_ms_ = now_ms;
    round_start_cwnd_ = cwnd_;
  }

  // Resets the velocity when the direction changes.
  void set_direction(int direction) {
    if (direction != direction_ && velocity_ > 1) {
      reset_velocity(direction);
    }
  }

  void reset_velocity(int direction) {
    velocity_ = 1;
    rounds_in_direction_ = 0;
    direction_ = direction;
  }

  const double default_delta_;
  const double initial_window_;
  const double min_rtt_window_ms_;
  const Rules rules_;

  WindowedMin min_rtt_;
  WindowedMin standing_rtt_;
  WindowedMax max_rtt_;
  double srtt_ms_ = 0;
  double delta_ = 0.5;
  bool is_slow_start_ = true;
  bool is_competitive_ = false;
  double velocity_ = 1;
  int direction_ = 0;  // of cwnd in the last rounds: 1 up, -1 down
  int rounds_in_direction_ = 0;
  double round_start_ms_ = 0;
  double round_start_cwnd_ = 0;
  double last_nearly_empty_ms_ = 0;
  double last_ack_ms_ = 0;
  bool has_loss_in_round_ = false;
  bool used_window_in_round_ = false;
  LossCycle loss_cycle_;
};

}  // namespace

Protocol copa() {
  const std::vector<Parameter> parameters = {
      {"delta", "inverse of the packets that a sender keeps in the queue", 0.5, 0.001, 10},
      {"initial_window_packets", "window at the start of a connection", 10, 1, 1000},
      {"min_rtt_window_ms", "window of the minimum RTT filter", 10000, 1, 1e6},
  };
  return {
      .name = "copa",
      .title = "Copa",
      .variants =
          {
              {.name = "validated",
               .source = "the paper's, with a window that grows only while it is used (RFC 9002, "
                         "section 7.8) and the loss tolerance of mvfst's Copa2",
               .parameters = parameters},
              {.name = "paper",
               .source = "Arun and Balakrishnan, \"Copa: Practical Delay-Based Congestion Control "
                         "for the Internet\", NSDI 2018",
               .parameters = parameters},
              {.name = "no-mode-switch",
               .source = "the paper's default mode alone, as mvfst runs it (with a delta of 0.05)",
               .parameters = parameters},
          },
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Copa>(
            values, Copa::Rules{.switches_modes = values.variant() != "no-mode-switch",
                                .validates_window = values.variant() == "validated"});
      },
  };
}

}  // namespace remy
