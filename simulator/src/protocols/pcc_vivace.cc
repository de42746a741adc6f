#include <algorithm>
#include <array>
#include <cmath>

#include "core/elementary.h"
#include "protocols/connection_draws.h"
#include "protocols/pcc.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

// PCC Vivace (NSDI 2018, whose sections are cited): gradient ascent on a utility that is concave in
// the rate. A pair of trials above and below the rate measures the gradient.
class PccVivace final : public Pcc {
 public:
  PccVivace(const ParameterValues& values, std::uint64_t key)
      : t_(values["exponent"]),
        b_(values["slope_weight"]),
        c_(values["loss_weight"]),
        min_rtt_gradient_(values["least_slope"]),
        epsilon_(values["probe"]),
        theta0_(values["conversion"]),
        omega0_(values["bound"]),
        delta_(values["bound_growth"]),
        draws_(key) {}

 protected:
  void reset() override {
    draws_.start_connection();
    same_direction_steps_ = 0;
    was_up_ = true;
    boundary_hits_ = 0;
  }

  // 4.1: one RTT, and at least ten packets for a meaningful measurement.
  double interval_ms(double rate_per_ms) override {
    constexpr double kLeastPackets = 10;
    return std::max(kLeastPackets / rate_per_ms, srtt_ms());
  }

  // 3.1: x^t - b x dRTT/dT - c x L with the rate x in Mbit/s, t = 0.9, b = 900 and c = 11.35. 4.3:
  // an RTT gradient below 1 % counts as noise.
  double utility(const MonitorInterval& interval) override {
    const double rate = interval.rate_per_ms * kMbitPerPacket;
    const double measured = interval.rtt_slope();
    const double slope = std::fabs(measured) < min_rtt_gradient_ ? 0 : measured;
    return power(rate, t_) - b_ * rate * slope - c_ * rate * interval.loss_rate();
  }

  void start_decision() override { start_trials(); }

  Trial next_trial() override {
    if (next_trial_ < kTrials) {
      const int number = static_cast<int>(next_trial_++);
      return {rate_per_ms() * (1 + sign(number) * epsilon_), number};
    }
    return {rate_per_ms(), -1};
  }

  void on_result(const MonitorInterval& interval, double utility) override {
    if (interval.trial < 0) {
      return;
    }
    utilities_[static_cast<std::size_t>(interval.trial)] = utility;
    if (++results_ < kTrials) {
      return;
    }
    const double rate = rate_per_ms() * kMbitPerPacket;
    const double gradient = (utilities_[0] - utilities_[1]) * sign(0) / (2 * epsilon_ * rate);
    set_rate((rate + rate_change(rate, gradient)) / kMbitPerPacket);
    start_round();
    start_trials();
  }

 private:
  static constexpr std::size_t kTrials = 2;
  static constexpr double kMbitPerPacket = 1500 * 8 / 1e3;  // a packet per ms is 12 Mbit/s

  double sign(int trial) const { return (trial == 0) == is_up_first_ ? 1 : -1; }

  void start_trials() {
    next_trial_ = results_ = 0;
    is_up_first_ = draws_.next_bits() >> 63 != 0;
  }

  double rate_change(double rate, double gradient) {
    // 4.2, confidence amplifier: successive steps in the same direction grow, faster from the third
    // on.
    const bool is_up = gradient > 0;
    if (is_up != was_up_) {
      was_up_ = is_up;
      same_direction_steps_ = 0;
      boundary_hits_ = 0;
    }
    ++same_direction_steps_;
    const double steps = same_direction_steps_;
    const double amplifier = steps <= 3 ? steps : 2 * steps - 3;
    const double step = theta0_ * amplifier * gradient;
    // 4.2, dynamic change boundary omega: omega_0 (5 %) of the rate at first, and delta (5 %) more
    // each time that a step exceeds it.
    const double relative_step = std::fabs(step) / rate;
    if (relative_step > omega0_ + boundary_hits_ * delta_) {
      const double max_step = (omega0_ + boundary_hits_ * delta_) * rate;
      ++boundary_hits_;
      return is_up ? max_step : -max_step;
    }
    boundary_hits_ = std::max(std::ceil((relative_step - omega0_) / delta_), 0.0);
    return step;
  }

  const double t_;
  const double b_;
  const double c_;
  const double min_rtt_gradient_;
  const double epsilon_;
  const double theta0_;
  const double omega0_;
  const double delta_;
  ConnectionDraws draws_;

  std::size_t next_trial_ = 0;
  std::size_t results_ = 0;
  bool is_up_first_ = true;
  std::array<double, kTrials> utilities_{};
  bool was_up_ = true;
  double same_direction_steps_ = 0;
  double boundary_hits_ = 0;
};

}  // namespace

Protocol pcc_vivace() {
  return {
      .name = "pcc-vivace",
      .title = "PCC Vivace",
      .variants = {{
          .name = "latency",
          .source = "Dong et al., \"PCC Vivace: Online-Learning Congestion Control\", NSDI 2018",
          .parameters =
              {
                  {"exponent", "t: exponent of the rate in the utility", 0.9, 0.01, 0.99},
                  {"slope_weight", "b: weight of the RTT gradient; 0 ignores it", 900, 0, 1e6},
                  {"loss_weight", "c: weight of the loss rate", 11.35, 0, 1e6},
                  {"least_slope", "RTT gradient below which it counts as 0", 0.01, 0, 1},
                  {"probe", "epsilon: relative distance of trials from the rate", 0.05, 0.001, 0.5},
                  {"conversion", "theta_0: step in Mbit/s for a utility gradient of 1 per Mbit/s",
                   1, 1e-3, 1e3},
                  {"bound", "omega_0: initial bound of the relative change of the rate", 0.05,
                   0.001, 0.5},
                  {"bound_growth", "delta: growth of that bound each time it is exceeded", 0.05,
                   0.001, 0.5},
              },
      }},
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t key) -> std::unique_ptr<CongestionController> {
        return std::make_unique<PccVivace>(values, key);
      },
  };
}

}  // namespace remy
