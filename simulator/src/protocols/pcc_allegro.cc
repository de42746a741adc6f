#include <algorithm>
#include <array>

#include "core/elementary.h"
#include "core/random.h"
#include "protocols/connection_draws.h"
#include "protocols/pcc.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

enum class Utility { kSafe, kLatency, kLossResilient };

// PCC Allegro (NSDI 2015, whose sections are cited). In the decision-making state two pairs of
// trials, slightly above and below the rate, determine a direction. In the rate-adjusting state the
// rate moves in this direction in growing steps until utility falls.
class PccAllegro final : public Pcc {
 public:
  PccAllegro(const ParameterValues& values, Utility utility, std::uint64_t key)
      : utility_(utility),
        sigmoid_alpha_(values["sigmoid_slope"]),
        loss_limit_(values["loss_limit"]),
        epsilon_min_(values["least_step"]),
        epsilon_max_(values["largest_step"]),
        draws_(key) {}

 protected:
  void reset() override {
    draws_.start_connection();
    previous_rtt_ms_ = 0;
  }

  // 3.1: at least ten packets, and 1.7 to 2.2 RTTs, at random so that senders do not synchronize.
  double interval_ms(double rate_per_ms) override {
    constexpr double kLeastPackets = 10;
    const double rtts = 1.7 + 0.5 * unit_interval(draws_.next_bits());
    return std::max(kLeastPackets / rate_per_ms, rtts * srtt_ms());
  }

  double utility(const MonitorInterval& interval) override {
    const double loss_rate = interval.loss_rate();
    const double rate = interval.rate_per_ms;
    const double throughput = rate * (1 - loss_rate);
    const double rtt_ms = interval.mean_rtt_ms();
    const double previous_rtt_ms = previous_rtt_ms_ == 0 ? rtt_ms : previous_rtt_ms_;
    if (rtt_ms > 0) {
      previous_rtt_ms_ = rtt_ms;
    }
    switch (utility_) {
      case Utility::kSafe:
        // 2.2: T sigmoid(L - 0.05) - x L.
        return throughput * sigmoid(loss_rate) - rate * loss_rate;
      case Utility::kLatency:
        // 4.4.1: favours a short RTT that does not grow.
        return rtt_ms == 0 ? -rate * loss_rate
                           : (throughput * sigmoid(loss_rate) * previous_rtt_ms / rtt_ms -
                              rate * loss_rate) /
                                 rtt_ms;
      case Utility::kLossResilient:
        // 4.4.2: T (1 - L).
        return throughput * (1 - loss_rate);
    }
    return 0;
  }

  void start_decision() override {
    epsilon_ = epsilon_min_;
    start_trials();
  }

  Trial next_trial() override {
    if (in_decision_making_) {
      if (next_trial_ < kTrials) {
        const int number = static_cast<int>(next_trial_++);
        return {rate_per_ms() * (1 + sign(number) * epsilon_), number};
      }
      return {rate_per_ms(), -1};
    }
    if (is_waiting_for_trials()) {
      return {rate_per_ms(), -1};
    }
    // 3.2: r_n = r_(n-1) (1 + n epsilon_min direction).
    const double step = std::min(static_cast<double>(++adjustments_) * epsilon_min_, kMaxStep);
    set_rate(rate_per_ms() * (1 + direction_ * step));
    return {rate_per_ms(), adjustments_};
  }

  void on_result(const MonitorInterval& interval, double utility) override {
    if (interval.trial < 0) {
      return;
    }
    if (in_decision_making_) {
      utilities_[static_cast<std::size_t>(interval.trial)] = utility;
      if (++results_ == kTrials) {
        choose_direction();
      }
      return;
    }
    if (utility < previous_utility_) {
      // 3.2: returns to the previous rate and to the decision-making state.
      set_rate(previous_rate_per_ms_);
      epsilon_ = epsilon_min_;
      start_round();
      start_trials();
      return;
    }
    previous_utility_ = utility;
    previous_rate_per_ms_ = interval.rate_per_ms;
  }

 private:
  static constexpr std::size_t kTrials = 4;
  static constexpr double kMaxStep = 0.5;

  // 2.2: sigmoid(y) = 1 / (1 + exp(alpha y)).
  double sigmoid(double loss_rate) const {
    return 1 / (1 + exponential(sigmoid_alpha_ * (loss_rate - loss_limit_)));
  }

  // 1 if a trial is above the base rate, -1 if below. Each pair has one of both, in random order.
  double sign(int trial) const {
    const bool is_first = trial % 2 == 0;
    const bool is_up_first = ((pair_order_ >> (trial / 2)) & 1) != 0;
    return is_first == is_up_first ? 1 : -1;
  }

  void start_trials() {
    in_decision_making_ = true;
    next_trial_ = results_ = 0;
    pair_order_ = draws_.next_bits() >> 62;
  }

  // 3.2: if both pairs agree, the rate moves; otherwise it stays, and epsilon grows.
  void choose_direction() {
    std::array<double, 2> direction{};
    for (int pair = 0; pair < 2; ++pair) {
      const auto first = static_cast<std::size_t>(2 * pair);
      const double difference = (utilities_[first] - utilities_[first + 1]) * sign(2 * pair);
      direction[static_cast<std::size_t>(pair)] = difference > 0 ? 1 : difference < 0 ? -1 : 0;
    }
    start_round();
    if (direction[0] != direction[1] || direction[0] == 0) {
      epsilon_ = std::min(epsilon_ + epsilon_min_, epsilon_max_);
      start_trials();
      return;
    }
    direction_ = direction[0];
    in_decision_making_ = false;
    adjustments_ = 0;
    previous_utility_ = 0;
    for (int trial = 0; trial < static_cast<int>(kTrials); ++trial) {
      if (sign(trial) == direction_) {
        previous_utility_ += utilities_[static_cast<std::size_t>(trial)] / 2;
      }
    }
    set_rate(rate_per_ms() * (1 + direction_ * epsilon_));
    previous_rate_per_ms_ = rate_per_ms();
  }

  const Utility utility_;
  const double sigmoid_alpha_;
  const double loss_limit_;
  const double epsilon_min_;
  const double epsilon_max_;
  ConnectionDraws draws_;

  double previous_rtt_ms_ = 0;
  double epsilon_ = 0.01;
  bool in_decision_making_ = true;
  std::size_t next_trial_ = 0;
  std::size_t results_ = 0;
  std::uint64_t pair_order_ = 0;
  std::array<double, kTrials> utilities_{};
  double direction_ = 1;
  int adjustments_ = 0;
  double previous_utility_ = 0;
  double previous_rate_per_ms_ = 0;
};

constexpr std::string_view kSource =
    "Dong et al., \"PCC: Re-architecting Congestion Control for Consistent High Performance\", "
    "NSDI "
    "2015";

}  // namespace

Protocol pcc_allegro() {
  const std::vector<Parameter> parameters = {
      {"sigmoid_slope", "alpha: steepness of the sigmoid; at least 2.2 (senders - 1)", 100, 1, 1e4},
      {"loss_limit", "loss rate at which the sigmoid cuts off utility", 0.05, 0.001, 0.5},
      {"least_step",
       "epsilon_min: first relative distance of trials from the rate, and unit of its steps", 0.01,
       1e-4, 0.1},
      {"largest_step", "epsilon_max: largest relative distance of trials from the rate", 0.05, 1e-3,
       0.5},
  };
  return {
      .name = "pcc-allegro",
      .title = "PCC Allegro",
      .variants =
          {
              {.name = "safe", .source = kSource, .parameters = parameters},
              {.name = "latency", .source = kSource, .parameters = parameters},
              {.name = "loss-resilient", .source = kSource, .parameters = parameters},
          },
      .needs = {},
      .make = [](const ParameterValues& values,
                 std::uint64_t key) -> std::unique_ptr<CongestionController> {
        const Utility utility = values.variant() == "safe"      ? Utility::kSafe
                                : values.variant() == "latency" ? Utility::kLatency
                                                                : Utility::kLossResilient;
        return std::make_unique<PccAllegro>(values, utility, key);
      },
  };
}

}  // namespace remy
