#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "evaluation/specimen.h"
#include "library_kind.h"
#include "table/path_settings.h"
#include "table/rule_table.h"

namespace remy {

// Number of seeds of a comparison: fewer under sanitizers, where a case takes ten to thirty times
// as long and errors do not depend on rare numbers.
inline std::uint64_t random_cases(std::uint64_t released, std::uint64_t sanitized) {
  return library_is_sanitized() ? sanitized : released;
}

// Small random networks and tables, determined by the seed.
class RandomCase {
 public:
  explicit RandomCase(std::uint64_t seed) : key_(derive_key(seed, 0x7e57)) {}

  double uniform(double low, double high) {
    return low + (high - low) * unit_interval(random_bits(key_, next_++));
  }
  std::uint32_t integer(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random_bits(key_, next_++) % (high - low + 1));
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }

  Action action() {
    return {chance(0.2) ? 0 : uniform(0.3, 1.05), static_cast<double>(integer(0, 12)) - 1,
            chance(0.2) ? 0 : uniform(0.05, 5)};
  }

  Action relative_action() {
    return {chance(0.2) ? 0 : uniform(0.3, 1.05), static_cast<double>(integer(0, 120)) - 5,
            chance(0.1) ? 0 : uniform(0.02, 3)};
  }

  // A table of up to a few dozen rules over a random subset of the first signals.
  RuleTable table(Rules rules = Rules::kAbsolute, std::size_t axes = kBasicSignals) {
    const bool is_scale_free = remy::is_scale_free(rules);
    std::vector<Signal> signals;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const auto signal = static_cast<Signal>(axis);
      if (chance(axis < kBasicSignals ? 0.7 : 0.4)) {
        signals.push_back(signal);
      }
    }
    if (signals.empty()) {
      signals.push_back(Signal::kRttRatio);
    }
    RuleTable table(signals, {Node{{}, action()}}, RuleTable::kDefaultDomainUpper, rules);
    for (std::uint32_t splits = integer(0, 4); splits > 0; --splits) {
      const std::size_t rule = integer(0, static_cast<std::uint32_t>(table.rule_count() - 1));
      std::vector<Threshold> thresholds;
      for (const Signal signal : signals) {
        const auto axis = static_cast<std::size_t>(signal);
        const bool is_share = kSignalAxes[axis].form(is_scale_free).printed_in == "%";
        const double value = is_share                                      ? uniform(0.01, 1)
                             : is_scale_free && signal == Signal::kRecEwma ? uniform(1, 300)
                             : is_scale_free                               ? uniform(0.01, 2)
                             : signal == Signal::kRttRatio                 ? uniform(1, 2.5)
                                                                           : uniform(0.01, 8);
        if (value > table.region(rule).lower[axis] && value < table.region(rule).upper[axis]) {
          thresholds.push_back({signal, value});
        }
      }
      if (!thresholds.empty()) {
        table = table.split(rule, thresholds);
      }
    }
    for (std::size_t rule = 0; rule < table.rule_count(); ++rule) {
      table.set_action(rule, is_scale_free ? relative_action() : action());
    }
    return table;
  }

  // A path model whose states short simulations reach.
  PathSettings path_settings() {
    PathSettings settings;
    settings.base_rtt_rounds = chance(0.5) ? integer(1, 20) : uniform(1, 10);
    settings.tolerated_loss = chance(0.2) ? 0 : uniform(0, 0.1);
    settings.loss_debt_packets = uniform(1, 10);
    settings.loss_window = chance(0.2) ? 1 : uniform(0.2, 1);
    settings.least_window_packets = chance(0.5) ? integer(1, 5) : uniform(1, 5);
    settings.reference_rtt_ms = chance(0.3) ? 0 : uniform(1, 200);
    settings.additive_packets = chance(0.3) ? 0 : uniform(0, 3);
    settings.flight_bound = chance(0.3) ? 1e6 : chance(0.2) ? uniform(1, 30) : uniform(1, 3);
    settings.competition_rtt_ratio = chance(0.5) ? uniform(1.01, 1.3) : 0;
    return settings;
  }

  Specimen specimen() {
    Specimen specimen;
    specimen.key = random_bits(key_, next_++);
    specimen.link_rate_packets_per_ms = uniform(0.2, 4);
    specimen.rtt_ms = uniform(1, 120);
    if (chance(0.5)) {
      specimen.buffer_packets = integer(0, 60);
    }
    if (chance(0.4)) {
      specimen.loss_probability = uniform(0, 0.2);
    }
    for (std::uint32_t groups = integer(1, 3); groups > 0; --groups) {
      SenderGroup& group = specimen.senders.emplace_back();
      group.count = integer(1, 6);
      group.traffic = traffic(300, 800);
    }
    if (chance(0.5)) {
      specimen.measurement = measurement();
    }
    return specimen;
  }

  // Traffic of any kind without common barriers.
  Traffic traffic(double longest_off_ms, double longest_on_ms) {
    Traffic traffic;
    traffic.mean_off_ms = uniform(1, longest_off_ms);
    switch (integer(0, 8)) {
      case 0:
      case 1:
        traffic.on = ExponentialTime{uniform(1, longest_on_ms)};
        break;
      case 2:
        traffic.on = ParetoBytes{147, 0.5, -40, 16384, 1e6};
        break;
      case 3:
        traffic.on = EmpiricalBytes{flow_quantiles("icsi"), uniform(0, 20'000)};
        break;
      case 4:
        traffic.on = ConstantBytes{uniform(1, 100'000)};
        break;
      case 5:
        traffic.on = Always{};
        break;
      case 6: {
        Intervals on;
        double at_ms = 0;
        for (std::uint32_t left = integer(1, 4); left > 0; --left) {
          const double begin_ms = at_ms + (chance(0.3) ? 0 : uniform(0, longest_off_ms));
          at_ms = begin_ms + uniform(1, longest_on_ms);
          on.intervals.push_back({begin_ms, at_ms});
        }
        if (chance(0.3)) {
          on.intervals.back().end_ms = std::numeric_limits<double>::infinity();
        }
        traffic.on = on;
        break;
      }
      default:
        traffic.on = ExponentialBytes{uniform(1, 200'000)};
    }
    traffic.first_off_factor = chance(0.5) ? 1 : 0.5;
    const bool is_by_bytes = !Schedule(traffic, 0).by_time();
    if (is_by_bytes && chance(0.3)) {
      traffic.arrivals = PoissonArrivals{uniform(1, longest_off_ms)};
    } else if (is_by_bytes && chance(0.3)) {
      traffic.arrivals = PeriodicArrivals{uniform(1, longest_off_ms)};
    }
    return traffic;
  }

  // Measurement noise. Timestamp resolutions, jitter and ACK delays range from far below a
  // transmission time to above an RTT.
  MeasurementNoise measurement() {
    MeasurementNoise noise;
    if (const double size_ms = uniform(0, 1) * uniform(0, 1) * 20; chance(0.5)) {
      noise.jitter = UniformJitter{size_ms};
    } else if (chance(0.6)) {
      noise.jitter = ExponentialJitter{size_ms};
    }
    if (chance(0.5)) {
      noise.timestamp_resolution_ms = chance(0.2) ? uniform(1, 200) : uniform(0.001, 2);
    }
    if (chance(0.3)) {
      const double median_ms = uniform(0.001, 1) * uniform(0.001, 1) * 20;
      noise.jitter = LogNormalJitter{median_ms, median_ms * uniform(1, 10)};
    }
    if (chance(0.6)) {
      noise.bunch_packets = chance(0.5) ? 1U << integer(0, 2) : integer(1, 40);
    }
    if (chance(0.6)) {
      noise.delayed_ack_ms = chance(0.5) ? 1 : uniform(0, 100);
    }
    if (chance(0.3)) {
      noise.rtt_offset_maximum_ms = uniform(0, 10);
    }
    return noise;
  }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 0;
};

}  // namespace remy
