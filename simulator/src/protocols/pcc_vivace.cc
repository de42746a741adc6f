#include <algorithm>
#include <array>
#include <cmath>

#include "core/elementary.h"
#include "core/random.h"
#include "protocols/pcc.h"
#include "protocols/protocol.h"

namespace remy {

namespace {

// PCC Vivace: climbs the slope of a utility that is concave in the rate, measured by a pair of
// trials above and below it. Sections are the paper's.
class PccVivace final : public Pcc {
 public:
  PccVivace(const Chosen& chosen, std::uint64_t key)
      : key_(key),
        exponent_(chosen["exponent"]),
        slope_weight_(chosen["slope_weight"]),
        loss_weight_(chosen["loss_weight"]),
        least_slope_(chosen["least_slope"]),
        probe_(chosen["probe"]),
        conversion_(chosen["conversion"]),
        bound_(chosen["bound"]),
        bound_growth_(chosen["bound_growth"]) {}

 protected:
  void reset() override {
    confidence_ = 0;
    is_up_ = true;
    excesses_ = 0;
  }

  // 4.1: an RTT; ten packets at least, or there is nothing to measure.
  double interval_ms(double rate_per_ms) override {
    constexpr double kLeastPackets = 10;
    return std::max(kLeastPackets / rate_per_ms, smoothed_rtt_ms());
  }

  // 3.1: x^0.9 - 900 x dRTT/dT - 11.35 x L with the rate x in Mbit/s; 4.3: where slopes of less
  // than 1 % are noise.
  double utility(const MonitorInterval& interval) override {
    const double rate = interval.rate_per_ms * kMbitPerPacket;
    const double measured = interval.rtt_slope();
    const double slope = std::fabs(measured) < least_slope_ ? 0 : measured;
    return power(rate, exponent_) - slope_weight_ * rate * slope -
           loss_weight_ * rate * interval.loss();
  }

  void begin() override { probe(); }

  Trial next_trial() override {
    if (next_trial_ < kTrials) {
      const int number = static_cast<int>(next_trial_++);
      return {rate_per_ms() * (1 + sign(number) * probe_), number};
    }
    return {rate_per_ms(), -1};
  }

  void learnt(const MonitorInterval& interval, double utility) override {
    if (interval.trial < 0) {
      return;
    }
    utilities_[static_cast<std::size_t>(interval.trial)] = utility;
    if (++known_ < kTrials) {
      return;
    }
    const double rate = rate_per_ms() * kMbitPerPacket;
    const double gradient = (utilities_[0] - utilities_[1]) * sign(0) / (2 * probe_ * rate);
    set_rate((rate + change(rate, gradient)) / kMbitPerPacket);
    begin_round();
    probe();
  }

 private:
  static constexpr std::size_t kTrials = 2;
  static constexpr double kMbitPerPacket = 1500 * 8 / 1e3;  // a packet a ms is 12 Mbit/s

  double sign(int trial) const { return (trial == 0) == is_up_first_ ? 1 : -1; }

  void probe() {
    next_trial_ = known_ = 0;
    is_up_first_ = random_bits(key_, draws_++) >> 63 != 0;
  }

  double change(double rate, double gradient) {
    // 4.2: steps in one direction grow with their number, the more from the third on.
    const bool is_up = gradient > 0;
    if (is_up != is_up_) {
      is_up_ = is_up;
      confidence_ = 0;
      excesses_ = 0;
    }
    ++confidence_;
    const double confidence = confidence_;
    const double amplifier = confidence <= 3 ? confidence : 2 * confidence - 3;
    const double step = conversion_ * amplifier * gradient;
    // 4.2: within 5 % of the rate at first, and 5 % more each time that this bound was met.
    const double wanted = std::fabs(step) / rate;
    if (wanted > bound_ + excesses_ * bound_growth_) {
      const double most = (bound_ + excesses_ * bound_growth_) * rate;
      ++excesses_;
      return is_up ? most : -most;
    }
    excesses_ = std::max(std::ceil((wanted - bound_) / bound_growth_), 0.0);
    return step;
  }

  const std::uint64_t key_;
  const double exponent_;
  const double slope_weight_;
  const double loss_weight_;
  const double least_slope_;
  const double probe_;
  const double conversion_;
  const double bound_;
  const double bound_growth_;
  std::uint64_t draws_ = 0;

  std::size_t next_trial_ = 0;
  std::size_t known_ = 0;
  bool is_up_first_ = true;
  std::array<double, kTrials> utilities_{};
  bool is_up_ = true;
  double confidence_ = 0;
  double excesses_ = 0;
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
                  {"exponent", "of the rate in the utility", 0.9, 0.01, 0.99},
                  {"slope_weight", "what a growing RTT costs; 0: nothing", 900, 0, 1e6},
                  {"loss_weight", "what a share of lost packets costs", 11.35, 0, 1e6},
                  {"least_slope", "dRTT/dT below which it counts as 0", 0.01, 0, 1},
                  {"probe", "distance of trials from the rate", 0.05, 0.001, 0.5},
                  {"conversion", "Mbit/s for a utility of 1 a Mbit/s", 1, 1e-3, 1e3},
                  {"bound", "largest first change of the rate", 0.05, 0.001, 0.5},
                  {"bound_growth", "by which that grows each time it was met", 0.05, 0.001, 0.5},
              },
      }},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t key) -> std::unique_ptr<CongestionController> {
        return std::make_unique<PccVivace>(chosen, key);
      },
  };
}

}  // namespace remy
