#include <algorithm>
#include <array>

#include "core/elementary.h"
#include "core/random.h"
#include "protocols/pcc.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

enum class Utility { kSafe, kLatency, kLossResilient };

// PCC Allegro: two pairs of trials a little above and below its rate decide on a direction, in
// which the rate then moves faster and faster until utility falls. Sections are the paper's.
class PccAllegro final : public Pcc {
 public:
  PccAllegro(const Chosen& chosen, Utility utility, std::uint64_t key)
      : key_(key),
        utility_(utility),
        sigmoid_slope_(chosen["sigmoid_slope"]),
        loss_limit_(chosen["loss_limit"]),
        least_step_(chosen["least_step"]),
        largest_step_(chosen["largest_step"]) {}

 protected:
  void reset() override { last_rtt_ms_ = 0; }

  // 3.1: ten packets at least, and from 1.7 to 2.2 RTTs at random, lest two senders keep in step.
  double interval_ms(double rate_per_ms) override {
    constexpr double kLeastPackets = 10;
    const double rtts = 1.7 + 0.5 * unit_interval(random_bits(key_, draws_++));
    return std::max(kLeastPackets / rate_per_ms, rtts * smoothed_rtt_ms());
  }

  double utility(const MonitorInterval& interval) override {
    const double loss = interval.loss();
    const double rate = interval.rate_per_ms;
    const double throughput = rate * (1 - loss);
    const double rtt_ms = interval.mean_rtt_ms();
    const double last_rtt_ms = last_rtt_ms_ == 0 ? rtt_ms : last_rtt_ms_;
    if (rtt_ms > 0) {
      last_rtt_ms_ = rtt_ms;
    }
    switch (utility_) {
      case Utility::kSafe:
        // 2.2: throughput while less than 5 % is lost, and less what is lost.
        return throughput * sigmoid(loss) - rate * loss;
      case Utility::kLatency:
        // 4.4.1: the same over the RTT, and less where the RTT grows.
        return rtt_ms == 0
                   ? -rate * loss
                   : (throughput * sigmoid(loss) * last_rtt_ms / rtt_ms - rate * loss) / rtt_ms;
      case Utility::kLossResilient:
        // 4.4.2.
        return throughput * (1 - loss);
    }
    return 0;
  }

  void begin() override {
    step_ = least_step_;
    decide();
  }

  Trial next_trial() override {
    if (is_deciding_) {
      if (next_trial_ < kTrials) {
        const int number = static_cast<int>(next_trial_++);
        return {rate_per_ms() * (1 + sign(number) * step_), number};
      }
      return {rate_per_ms(), -1};
    }
    if (is_waiting_for_trials()) {
      return {rate_per_ms(), -1};
    }
    // 3.2: r(n) = r(n - 1) (1 + n x the least step), up or down.
    const double step = std::min(static_cast<double>(++moves_) * least_step_, kFastest);
    set_rate(rate_per_ms() * (1 + direction_ * step));
    return {rate_per_ms(), moves_};
  }

  void learnt(const MonitorInterval& interval, double utility) override {
    if (interval.trial < 0) {
      return;
    }
    if (is_deciding_) {
      utilities_[static_cast<std::size_t>(interval.trial)] = utility;
      if (++known_ == kTrials) {
        conclude();
      }
      return;
    }
    if (utility < last_utility_) {
      // 3.2: back to the rate before, to decide anew.
      set_rate(last_rate_per_ms_);
      step_ = least_step_;
      begin_round();
      decide();
      return;
    }
    last_utility_ = utility;
    last_rate_per_ms_ = interval.rate_per_ms;
  }

 private:
  static constexpr std::size_t kTrials = 4;
  static constexpr double kFastest = 0.5;

  // 2.2: 1 / (1 + exp(a (loss - 5 %))).
  double sigmoid(double loss) const {
    return 1 / (1 + exponential(sigmoid_slope_ * (loss - loss_limit_)));
  }

  // Whether a trial is above or below the rate: one of each in a pair, in random order.
  double sign(int trial) const {
    const bool is_first = trial % 2 == 0;
    const bool is_up_first = ((order_ >> (trial / 2)) & 1) != 0;
    return is_first == is_up_first ? 1 : -1;
  }

  void decide() {
    is_deciding_ = true;
    next_trial_ = known_ = 0;
    order_ = random_bits(key_, draws_++) >> 62;
  }

  // 3.2: where both pairs agree the rate moves; else it stays, and the next trials are farther off.
  void conclude() {
    std::array<double, 2> direction{};
    for (int pair = 0; pair < 2; ++pair) {
      const auto first = static_cast<std::size_t>(2 * pair);
      const double difference = (utilities_[first] - utilities_[first + 1]) * sign(2 * pair);
      direction[static_cast<std::size_t>(pair)] = difference > 0 ? 1 : difference < 0 ? -1 : 0;
    }
    begin_round();
    if (direction[0] != direction[1] || direction[0] == 0) {
      step_ = std::min(step_ + least_step_, largest_step_);
      decide();
      return;
    }
    direction_ = direction[0];
    is_deciding_ = false;
    moves_ = 0;
    last_utility_ = 0;
    for (int trial = 0; trial < static_cast<int>(kTrials); ++trial) {
      if (sign(trial) == direction_) {
        last_utility_ += utilities_[static_cast<std::size_t>(trial)] / 2;
      }
    }
    set_rate(rate_per_ms() * (1 + direction_ * step_));
    last_rate_per_ms_ = rate_per_ms();
  }

  const std::uint64_t key_;
  const Utility utility_;
  const double sigmoid_slope_;
  const double loss_limit_;
  const double least_step_;
  const double largest_step_;
  std::uint64_t draws_ = 0;

  double last_rtt_ms_ = 0;
  double step_ = 0.01;
  bool is_deciding_ = true;
  std::size_t next_trial_ = 0;
  std::size_t known_ = 0;
  std::uint64_t order_ = 0;
  std::array<double, kTrials> utilities_{};
  double direction_ = 1;
  int moves_ = 0;
  double last_utility_ = 0;
  double last_rate_per_ms_ = 0;
};

constexpr std::string_view kSource =
    "Dong et al., \"PCC: Re-architecting Congestion Control for Consistent High Performance\", "
    "NSDI "
    "2015";

}  // namespace

Protocol pcc_allegro() {
  const std::vector<Parameter> parameters = {
      {"sigmoid_slope", "how sharply utility ends at the loss limit; 2.2 (senders - 1) at least",
       100, 1, 1e4},
      {"loss_limit", "share of lost packets that ends utility", 0.05, 0.001, 0.5},
      {"least_step", "first distance of trials from the rate, and unit of its moves", 0.01, 1e-4,
       0.1},
      {"largest_step", "largest distance of trials from the rate", 0.05, 1e-3, 0.5},
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
      .make = [](const Chosen& chosen, std::uint64_t key) -> std::unique_ptr<CongestionController> {
        const Utility utility = chosen.variant() == "safe"      ? Utility::kSafe
                                : chosen.variant() == "latency" ? Utility::kLatency
                                                                : Utility::kLossResilient;
        return std::make_unique<PccAllegro>(chosen, utility, key);
      },
  };
}

}  // namespace remy
