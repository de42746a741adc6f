#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "protocols/protocol.h"
#include "protocols/sprout_forecaster.h"

namespace remy {

namespace {

// Sprout: sends what the link will deliver within 100 ms with a probability of 95 %, as its
// receiver forecasts from arrivals. Here sender and receiver are one: it learns from ACKs when
// packets were received, and of a tick of the receiver's when an ACK sent at its end would be back,
// as if every tick sent a forecast. Sections are the paper's. One thing is other than there: a tick
// shows of the link what came while packets waited for it, and of that time alone. The paper's
// receiver is told when to expect the next packet, leaves out ticks without any till then, and
// takes all others for whole; so a flight that two ticks cut apart looks like a slow link, and a
// window that is small stays so.
class Sprout final : public CongestionController {
 public:
  explicit Sprout(const Chosen& chosen)
      : risk_(chosen["risk"]),
        look_ahead_ticks_(static_cast<std::size_t>(std::floor(chosen["look_ahead_ticks"]))) {}

  void start(double) override {
    forecaster_.forget();
    tick_end_ms_ = kNever;
    forward_ms_ = return_ms_ = kNever;
    arrivals_ = 0;
    waited_ms_ = 0;
    seen_ms_ = 0;
    expected_.clear();
    received_end_ = next_serial_;
    make_forecast();
    set_tick();
  }

  void on_sent(const SendEvent& sent) override {
    next_serial_ = sent.transmission_number + 1;
    if (expected_.empty() && tick_end_ms_ != kNever) {
      skip_idle_ticks(sent.now_ms);
    }
    expected_.push_back({sent.transmission_number, sent.now_ms});
    set_tick();
  }

  void on_ack(const AckEvent& ack) override {
    forward_ms_ = std::min(forward_ms_, ack.received_ms - ack.sent_ms);
    return_ms_ = std::min(return_ms_, ack.now_ms - ack.received_ms);
    if (tick_end_ms_ == kNever) {
      // The receiver's clock starts with the first packet.
      tick_end_ms_ = ack.received_ms + kTickMs;
    }
    arrivals_ += static_cast<std::size_t>(ack.newly_delivered);
    wait(ack.sent_ms, ack.received_ms);
    // 3.4: what was sent before it is received or lost.
    received_end_ = std::max(received_end_, ack.transmission_number + 1);
    while (!expected_.empty() && expected_.front().serial < received_end_) {
      expected_.pop_front();
    }
    set_window();
    set_tick();
  }

  void on_loss(const LossEvent&) override {}

  // All that was expected is gone.
  void on_timeout(const TimeoutEvent&) override {
    expected_.clear();
    received_end_ = next_serial_;
    set_window();
    set_tick();
  }

  // 3.2: a tick of the receiver's is over.
  void on_tick(double) override {
    forecaster_.evolve();
    if (!expected_.empty()) {
      wait(expected_.front().sent_ms, tick_end_ms_);
    }
    forecaster_.observe(arrivals_, waited_ms_);
    waited_ms_ = 0;
    arrivals_ = 0;
    tick_end_ms_ += kTickMs;
    make_forecast();
    set_tick();
  }

 private:
  static constexpr double kTickMs = SproutForecaster::kTickMs;

  struct Expected {
    std::uint64_t serial = 0;
    double sent_ms = 0;
  };

  // Nothing is known of what passed without packets, except how far the rate may have wandered.
  void skip_idle_ticks(double now_ms) {
    constexpr int kMostTicks = 250;  // by then all rates are about as likely
    for (int ticks = 0; tick_end_ms_ + return_ms_ < now_ms; ++ticks) {
      if (ticks == kMostTicks) {
        tick_end_ms_ += std::ceil((now_ms - return_ms_ - tick_end_ms_) / kTickMs) * kTickMs;
        break;
      }
      forecaster_.evolve();
      tick_end_ms_ += kTickMs;
    }
    make_forecast();
  }

  // Of the tick, what a packet that left then has waited until now, beyond its way to the receiver.
  void wait(double sent_ms, double now_ms) {
    const double tick_start_ms = tick_end_ms_ - kTickMs;
    const double since_ms = std::max({sent_ms + forward_ms_, seen_ms_, tick_start_ms});
    waited_ms_ += std::max(now_ms - since_ms, 0.0);
    seen_ms_ = std::max(seen_ms_, now_ms);
  }

  void set_tick() {
    next_tick_ms_ = expected_.empty() && arrivals_ == 0 ? kNever : tick_end_ms_ + return_ms_;
  }

  void make_forecast() {
    forecast_ = forecaster_.forecast(look_ahead_ticks_, risk_);
    received_by_forecast_ = received_end_;
    set_window();
  }

  // 3.5: what is on its way, and is not yet forecast to be delivered, and what is sent now is to
  // leave the queue within the time ahead.
  void set_window() {
    const auto received_since = static_cast<double>(received_end_ - received_by_forecast_);
    cwnd_ = std::max(static_cast<double>(forecast_) - received_since, 1.0);
  }

  const double risk_;
  const std::size_t look_ahead_ticks_;

  SproutForecaster forecaster_;
  double tick_end_ms_ = kNever;  // on the receiver's clock
  double forward_ms_ = kNever;   // least delays seen
  double return_ms_ = kNever;
  std::size_t arrivals_ = 0;       // in the tick
  double waited_ms_ = 0;           // of the tick, in which packets waited
  double seen_ms_ = 0;             // until when that is known, on the receiver's clock
  std::deque<Expected> expected_;  // sent and neither received nor known to be lost
  std::uint64_t next_serial_ = 0;
  std::uint64_t received_end_ = 0;
  std::uint64_t received_by_forecast_ = 0;
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
                  {"risk", "probability of less than is forecast", 0.05, 0.001, 0.999},
                  {"look_ahead_ticks", "ticks of 20 ms in which all is to be delivered", 5, 1, 8},
              },
      }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Sprout>(chosen);
      },
  };
}

}  // namespace remy
