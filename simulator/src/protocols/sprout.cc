#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "protocols/protocol.h"
#include "protocols/sprout_forecaster.h"

namespace remy {

namespace {

// Sprout (NSDI 2013, whose sections are cited): sends what the link will deliver within 100 ms with
// a probability of 95 %, according to a forecast from packet arrivals.
//
// The paper's receiver makes the forecast and sends it back. Here the sender does: it learns
// arrival times from ACKs, and it processes a receiver's tick when an ACK sent at the end of the
// tick would arrive.
//
// One difference from the paper: a tick counts as an observation of the link only for the time in
// which packets waited for the link. The paper skips ticks in which the sender has announced no
// packet and counts all others in full. A flight that is split between two ticks then looks like a
// slow link, and a small window stays small.
class Sprout final : public CongestionController {
 public:
  explicit Sprout(const ParameterValues& values)
      : risk_(values["risk"]),
        look_ahead_ticks_(static_cast<std::size_t>(std::floor(values["look_ahead_ticks"]))) {}

  void start(double) override {
    forecaster_.reset();
    tick_end_ms_ = kNever;
    min_forward_delay_ms_ = min_return_delay_ms_ = kNever;
    arrivals_ = 0;
    waited_ms_ = 0;
    waited_until_ms_ = 0;
    outstanding_.clear();
    resolved_end_ = next_transmission_;
    update_forecast();
    schedule_tick();
  }

  void on_sent(const SendEvent& sent) override {
    next_transmission_ = sent.transmission_number + 1;
    if (outstanding_.empty() && tick_end_ms_ != kNever) {
      skip_idle_ticks(sent.now_ms);
    }
    outstanding_.push_back({sent.transmission_number, sent.now_ms});
    schedule_tick();
  }

  void on_ack(const AckEvent& ack) override {
    min_forward_delay_ms_ = std::min(min_forward_delay_ms_, ack.received_ms - ack.sent_ms);
    min_return_delay_ms_ = std::min(min_return_delay_ms_, ack.now_ms - ack.received_ms);
    if (tick_end_ms_ == kNever) {
      // The receiver's ticks start with the first packet.
      tick_end_ms_ = ack.received_ms + kTickMs;
    }
    arrivals_ += static_cast<std::size_t>(ack.newly_delivered);
    add_waiting_time(ack.sent_ms, ack.received_ms);
    // 3.4: packets sent before it have been received or lost.
    resolved_end_ = std::max(resolved_end_, ack.transmission_number + 1);
    while (!outstanding_.empty() && outstanding_.front().transmission_number < resolved_end_) {
      outstanding_.pop_front();
    }
    set_window();
    schedule_tick();
  }

  void on_loss(const LossEvent&) override {}

  // Everything in flight is lost.
  void on_timeout(const TimeoutEvent&) override {
    outstanding_.clear();
    resolved_end_ = next_transmission_;
    set_window();
    schedule_tick();
  }

  // 3.2: a tick of the receiver ends.
  void on_tick(double) override {
    forecaster_.evolve();
    if (!outstanding_.empty()) {
      add_waiting_time(outstanding_.front().sent_ms, tick_end_ms_);
    }
    forecaster_.observe(arrivals_, waited_ms_);
    waited_ms_ = 0;
    arrivals_ = 0;
    tick_end_ms_ += kTickMs;
    update_forecast();
    schedule_tick();
  }

 private:
  static constexpr double kTickMs = SproutForecaster::kTickMs;

  struct OutstandingPacket {
    std::uint64_t transmission_number = 0;
    double sent_ms = 0;
  };

  // Advances the model over ticks without packets, in which the rate may have changed unobserved.
  void skip_idle_ticks(double now_ms) {
    constexpr int kMaxTicks = 250;  // after these the belief is about uniform
    for (int ticks = 0; tick_end_ms_ + min_return_delay_ms_ < now_ms; ++ticks) {
      if (ticks == kMaxTicks) {
        tick_end_ms_ +=
            std::ceil((now_ms - min_return_delay_ms_ - tick_end_ms_) / kTickMs) * kTickMs;
        break;
      }
      forecaster_.evolve();
      tick_end_ms_ += kTickMs;
    }
    update_forecast();
  }

  // Adds to waited_ms_ the part of the tick until now_ms in which a packet sent at sent_ms waited
  // for the link, that is, beyond its propagation delay.
  void add_waiting_time(double sent_ms, double now_ms) {
    const double tick_start_ms = tick_end_ms_ - kTickMs;
    const double since_ms =
        std::max({sent_ms + min_forward_delay_ms_, waited_until_ms_, tick_start_ms});
    waited_ms_ += std::max(now_ms - since_ms, 0.0);
    waited_until_ms_ = std::max(waited_until_ms_, now_ms);
  }

  void schedule_tick() {
    next_tick_ms_ =
        outstanding_.empty() && arrivals_ == 0 ? kNever : tick_end_ms_ + min_return_delay_ms_;
  }

  void update_forecast() {
    forecast_ = forecaster_.forecast(look_ahead_ticks_, risk_);
    resolved_at_forecast_ = resolved_end_;
    set_window();
  }

  // 3.5: the packets in flight must leave the queue within the look-ahead time: the forecast, less
  // what has been received since it was made.
  void set_window() {
    const auto resolved_since = static_cast<double>(resolved_end_ - resolved_at_forecast_);
    cwnd_ = std::max(static_cast<double>(forecast_) - resolved_since, 1.0);
  }

  const double risk_;
  const std::size_t look_ahead_ticks_;

  SproutForecaster forecaster_;
  double tick_end_ms_ = kNever;           // by the receiver's clock
  double min_forward_delay_ms_ = kNever;  // minimum delays from sender to receiver, and back
  double min_return_delay_ms_ = kNever;
  std::size_t arrivals_ = 0;    // packets received in the current tick
  double waited_ms_ = 0;        // part of the tick in which packets waited
  double waited_until_ms_ = 0;  // time up to which waited_ms_ is known, by the receiver's clock
  std::deque<OutstandingPacket> outstanding_;  // packets sent and neither received nor lost
  std::uint64_t next_transmission_ = 0;
  std::uint64_t resolved_end_ = 0;
  std::uint64_t resolved_at_forecast_ = 0;
  std::size_t forecast_ = 0;
};

}  // namespace

Protocol sprout() {
  return {
      .name = "sprout",
      .title = "Sprout",
      .variants = {{
          .name = "paper",
          .source = "Winstein, Sivaraman and Balakrishnan, \"Stochastic Forecasts Achieve High "
                    "Throughput and Low Delay over Cellular Networks\", NSDI 2013",
          .parameters =
              {
                  {"risk", "probability that the link delivers less than the forecast", 0.05, 0.001,
                   0.999},
                  {"look_ahead_ticks", "ticks of 20 ms within which packets are to be delivered", 5,
                   1, 8},
              },
      }},
      .needs = {},
      .make = [](const ParameterValues& values, std::uint64_t)
          -> std::unique_ptr<CongestionController> { return std::make_unique<Sprout>(values); },
  };
}

}  // namespace remy
