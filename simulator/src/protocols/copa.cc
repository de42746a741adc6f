#include <algorithm>

#include "protocols/protocol.h"
#include "protocols/windowed_filter.h"

namespace remy {

namespace {

// Copa: aims at 1 / (delta x queueing delay) packets a ms, by which n senders keep n / delta
// packets in the queue, and empty it every five RTTs (Arun and Balakrishnan, NSDI 2018). Sections
// are the paper's.
class Copa final : public CongestionController {
 public:
  Copa(const Chosen& chosen, bool switches_modes)
      : default_delta_(chosen["delta"]),
        initial_window_packets_(chosen["initial_window_packets"]),
        min_rtt_window_ms_(chosen["min_rtt_window_ms"]),
        switches_modes_(switches_modes) {}

  void start(double now_ms) override {
    min_rtt_.clear();
    standing_rtt_.clear();
    max_rtt_.clear();
    smoothed_rtt_ms_ = 0;
    delta_ = default_delta_;
    is_slow_start_ = true;
    velocity_ = 1;
    rounds_in_direction_ = 0;
    direction_ = 0;
    round_start_ms_ = last_empty_ms_ = now_ms;
    is_loss_in_round_ = false;
    cwnd_ = round_window_packets_ = initial_window_packets_;
    pacing_interval_ms_ = 0;
  }

  void on_ack(const AckEvent& ack) override {
    smoothed_rtt_ms_ =
        smoothed_rtt_ms_ == 0 ? ack.rtt_ms : smoothed_rtt_ms_ + (ack.rtt_ms - smoothed_rtt_ms_) / 8;
    // 2.1: the path's RTT is the least of 10 s; the standing RTT the least of half an RTT, so that
    // jitter and compressed ACKs do not count.
    const double min_rtt_ms = min_rtt_.update(min_rtt_window_ms_, ack.now_ms, ack.rtt_ms);
    const double standing_rtt_ms =
        standing_rtt_.update(smoothed_rtt_ms_ / 2, ack.now_ms, ack.rtt_ms);
    const double queueing_ms = standing_rtt_ms - min_rtt_ms;
    if (switches_modes_) {
      choose_mode(ack, queueing_ms, min_rtt_ms);
    }
    if (ack.now_ms >= round_start_ms_ + smoothed_rtt_ms_) {
      end_round(ack.now_ms);
    }
    // 2.1: window / standing RTT against 1 / (delta x queueing delay), which is infinite without
    // one.
    const bool is_below_target = cwnd_ * delta_ * queueing_ms <= standing_rtt_ms;
    const auto acknowledged = static_cast<double>(ack.newly_delivered);
    if (is_slow_start_ && is_below_target) {
      // 2.2: doubles once an RTT up to the target.
      cwnd_ += acknowledged;
    } else {
      is_slow_start_ = false;
      turn(is_below_target ? 1 : -1);
      // As genericCC: no faster than slow start.
      const double step = acknowledged * std::min(velocity_ / (delta_ * cwnd_), 1.0);
      cwnd_ += is_below_target ? step : -step;
    }
    cwnd_ = std::clamp(cwnd_, kMinimumWindow, kMaximumWindow);
    // 2.1: at twice the rate of the window, to fill the bottleneck and send no bursts.
    pacing_interval_ms_ = standing_rtt_ms / (2 * cwnd_);
  }

  // 2.2: losses count in the competitive mode only, once a round.
  void on_loss(const LossEvent& loss) override {
    is_loss_in_round_ = is_loss_in_round_ || loss.starts_recovery;
  }

  // The paper is silent; what is in flight is gone, so the window is found anew.
  void on_timeout(const TimeoutEvent&) override {
    cwnd_ = round_window_packets_ = kMinimumWindow;
    is_slow_start_ = true;
    is_loss_in_round_ = true;
    velocity_ = 1;
    rounds_in_direction_ = 0;
  }

 private:
  static constexpr double kMinimumWindow = 2;
  static constexpr double kMaximumWindow = 1e6;
  static constexpr int kRoundsBeforeDoubling = 3;

  // 2.2: where all are Copas the queue is nearly empty at least every five RTTs: below a tenth of
  // the largest queueing delay of four. If it is not, others fill it, and the sender competes.
  void choose_mode(const AckEvent& ack, double queueing_ms, double min_rtt_ms) {
    const double max_rtt_ms = max_rtt_.update(4 * smoothed_rtt_ms_, ack.now_ms, ack.rtt_ms);
    if (queueing_ms <= 0.1 * (max_rtt_ms - min_rtt_ms)) {
      last_empty_ms_ = ack.now_ms;
    }
    is_competing_ = ack.now_ms > last_empty_ms_ + 5 * smoothed_rtt_ms_;
    if (!is_competing_) {
      delta_ = default_delta_;
    }
  }

  // 2.1: once an RTT; v doubles when the window went in one direction for three RTTs.
  void end_round(double now_ms) {
    const int direction = cwnd_ > round_window_packets_ ? 1 : -1;
    if (!is_slow_start_ && direction == direction_) {
      if (++rounds_in_direction_ >= kRoundsBeforeDoubling) {
        velocity_ *= 2;
      }
    } else {
      velocity_ = 1;
      rounds_in_direction_ = 0;
      direction_ = direction;
    }
    // 2.2: 1 / delta grows by one an RTT and halves at a loss, as TCP's window does.
    if (is_competing_) {
      const double share = is_loss_in_round_ ? 0.5 / delta_ : 1 / delta_ + 1;
      delta_ = std::min(default_delta_, 1 / share);
    }
    is_loss_in_round_ = false;
    round_start_ms_ = now_ms;
    round_window_packets_ = cwnd_;
  }

  // A change of direction is a new search.
  void turn(int direction) {
    if (direction != direction_ && velocity_ > 1) {
      direction_ = direction;
      velocity_ = 1;
      rounds_in_direction_ = 0;
    }
  }

  const double default_delta_;
  const double initial_window_packets_;
  const double min_rtt_window_ms_;
  const bool switches_modes_;

  WindowedMin min_rtt_;
  WindowedMin standing_rtt_;
  WindowedMax max_rtt_;
  double smoothed_rtt_ms_ = 0;
  double delta_ = 0.5;
  bool is_slow_start_ = true;
  bool is_competing_ = false;
  double velocity_ = 1;
  int direction_ = 0;  // of the window in the last rounds
  int rounds_in_direction_ = 0;
  double round_start_ms_ = 0;
  double round_window_packets_ = 0;
  double last_empty_ms_ = 0;
  bool is_loss_in_round_ = false;
};

}  // namespace

Protocol copa() {
  const std::vector<Parameter> parameters = {
      {"delta", "1 over the packets that a sender keeps in the queue", 0.5, 0.001, 10},
      {"initial_window_packets", "window at the start", 10, 1, 1000},
      {"min_rtt_window_ms", "age at which the minimum RTT is forgotten", 10000, 1, 1e6},
  };
  return {
      .name = "copa",
      .title = "Copa",
      .variants =
          {
              {.name = "paper",
               .source = "Arun and Balakrishnan, \"Copa: Practical Delay-Based Congestion Control "
                         "for the Internet\", NSDI 2018",
               .parameters = parameters},
              {.name = "no-mode-switch",
               .source = "the paper's default mode alone, as mvfst runs it (with a delta of 0.05)",
               .parameters = parameters},
          },
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Copa>(chosen, chosen.variant() == "paper");
      },
  };
}

}  // namespace remy
