#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace remy {

// The constants of a path model (senders/path_model.h), which a table's specification sets.
// kPathFields has their ranges, and the order in messages.
struct PathSettings {
  double base_rtt_rounds = 16;       // round trips in an epoch of the base RTT
  double tolerated_loss = 0.02;      // fraction of packets whose loss causes no debt
  double loss_debt_packets = 6;      // debt at which the window is capped
  double loss_window = 7.0 / 8;      // of the last round's delivery, to which it is capped
  double least_window_packets = 1;   // in flight at least
  double reference_rtt_ms = 50;      // RTT at which a queue looks as it does without the model
  double additive_packets = 0.5;     // per RTT, sent beyond the rules' pace
  double flight_bound = 1.75;        // of a recent round trip's delivery, in flight at most
  double competition_rtt_ratio = 0;  // RTT over base RTT that suggests competitors; 0: never

  friend bool operator==(const PathSettings&, const PathSettings&) = default;
};

// One of the constants: where it is, and the values that it may have.
struct PathField {
  std::string_view name;
  double PathSettings::* value;
  double least;
  double most;
  bool exceeds_least = false;  // `least` itself is not allowed
};

// In the order of the numbers in the message PathModel, from 1.
inline constexpr std::array<PathField, 9> kPathFields = {{
    {"base_rtt_rounds", &PathSettings::base_rtt_rounds, 1, 10'000},
    {"tolerated_loss", &PathSettings::tolerated_loss, 0, 0.999},
    {"loss_debt_packets", &PathSettings::loss_debt_packets, 1, 1000},
    {"loss_window", &PathSettings::loss_window, 0, 1, true},
    {"least_window_packets", &PathSettings::least_window_packets, 1, 100},
    {"reference_rtt_ms", &PathSettings::reference_rtt_ms, 0, 10'000},
    {"additive_packets", &PathSettings::additive_packets, 0, 100},
    {"flight_bound", &PathSettings::flight_bound, 1, 1e6},
    {"competition_rtt_ratio", &PathSettings::competition_rtt_ratio, 0, 100},
}};

}  // namespace remy
