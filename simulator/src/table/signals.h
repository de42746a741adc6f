#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace remy {

// A congestion signal: one axis of a sender's memory (TCP ex Machina, section 4.1). The first six
// are in the order of the .dna format's axes, the others in that of docs/reference/signals.md.
enum class Signal : std::uint8_t {
  kSendEwma,
  kRecEwma,  // in scale-free rules this axis is another signal, age
  kRttRatio,
  kSlowRecEwma,
  kRttDiff,
  kQueueingDelay,
  kLossRate,
  kQueueLength,
  kUtilization,
  kEcnFraction,
  kRttsSinceLoss,
};

// Where a sender obtains the signal from.
enum class SignalOrigin : std::uint8_t {
  kAcks,
  kTelemetry,  // the bottleneck, by in-band network telemetry (INT)
  kMarks,      // a queue that marks packets (ECN)
};

// The divisor that turns an absolute value into the ratio for scale-free rules.
enum class Divisor : std::uint8_t {
  kNothing,
  kInterval,  // rec_ewma
  kSmallestRtt,
  kBdp,  // the BDP in packets: smallest RTT / rec_ewma
};

// A signal as absolute rules, or scale-free rules, look at it.
struct SignalForm {
  std::string_view name;  // as in enum Signal of rule_table.proto, in lower case, without SIGNAL_
  std::uint8_t number;    // its number in that enum
  std::string_view formula;  // Markdown, as docs/reference/signals.md prints it
  std::string_view unit = "1";
  // Unit of its thresholds in reports: ms, packets or %; empty: none.
  std::string_view printed_in = "";
  // True if a measured value may be 0, so that 0 does not mean that nothing is measured yet.
  bool can_stay_zero = false;
  double min_measured = 0;  // lower bound of measured values; 0: not known
  Divisor divisor = Divisor::kNothing;
  // A typical value on common networks, at which the fingerprint's tables split on this signal. 0:
  // no split, so the fingerprint covers the signal's values only.
  double typical_value = 0;
};

// The declaration of one signal.
struct SignalAxis {
  Signal signal;
  SignalForm absolute;
  // None: the absolute form has no unit and serves both kinds of rules.
  std::optional<SignalForm> scale_free = std::nullopt;
  std::string_view source;  // a section of TCP ex Machina, or another document
  SignalOrigin origin = SignalOrigin::kAcks;
  // Smallest possible value: lower end of the first bucket of memory summaries.
  double smallest_value = 0;
  // Searches split on signals with a lower number first, and in axis order among equal ones.
  std::uint8_t split_priority = 1;

  constexpr const SignalForm& form(bool is_scale_free) const {
    return is_scale_free && scale_free ? *scale_free : absolute;
  }
};

// Each signal is declared here, and measured in senders/remy_controller.h. In formulas, *a*(w, x)
// is the EWMA of x in which a new value has the weight w. The source R+ is
// docs/reference/signals.md.
inline constexpr SignalAxis kSignalAxes[] = {
    {
        .signal = Signal::kSendEwma,
        .absolute = {.name = "send_ewma",
                     .number = 1,
                     .formula = "*a*(1/8, time between the sending times that the last two ACKs "
                                "echo)",
                     .unit = "ms"},
        .scale_free = {{.name = "send_ratio",
                        .number = 5,
                        .formula = "over `rec_ewma`",
                        .divisor = Divisor::kInterval}},
        .source = "4.1",
    },
    {
        .signal = Signal::kRecEwma,
        .absolute = {.name = "rec_ewma",
                     .number = 2,
                     .formula = "*a*(1/8, time between the last two ACKs)",
                     .unit = "ms"},
        .scale_free =
            {{.name = "age",
              .number = 16,
              .formula =
                  "packets of this on period acknowledged after the first; 256 "
                  "more if the sender "
                  "[remembers](../explanation/scale-free-rules.md#age-and-memory) an earlier one",
              .unit = "packets",
              .printed_in = "packets",
              .min_measured = 1}},
        .source = "4.1",
    },
    {
        .signal = Signal::kRttRatio,
        .absolute = {.name = "rtt_ratio",
                     .number = 3,
                     .formula = "last RTT / smallest RTT of this on period",
                     .min_measured = 1},
        .source = "4.1",
        .smallest_value = 1,
        .split_priority = 0,
    },
    {
        .signal = Signal::kSlowRecEwma,
        .absolute = {.name = "slow_rec_ewma",
                     .number = 4,
                     .formula = "*a*(1/256, time between the last two ACKs)",
                     .unit = "ms"},
        // An EWMA of weight 1/256 is at least 1/32 of one of weight 1/8 of the same times.
        .scale_free = {{.name = "slow_rec_ratio",
                        .number = 6,
                        .formula = "over `rec_ewma`",
                        .min_measured = 1.0 / 32,
                        .divisor = Divisor::kInterval}},
        .source = "learnability study, 3.2",
    },
    {
        .signal = Signal::kRttDiff,
        .absolute = {.name = "rtt_diff",
                     .number = 7,
                     .formula = "last RTT - smallest RTT of this on period",
                     .unit = "ms",
                     .printed_in = "ms",
                     .can_stay_zero = true,
                     .typical_value = 8},
        .scale_free = {{.name = "rtt_diff_ratio",
                        .number = 12,
                        .formula = "over `rec_ewma`: the sender's own packets in the queue; "
                                   "Vegas' *diff* (Brakmo and Peterson 1995, section 3.2)",
                        .unit = "packets",
                        .printed_in = "packets",
                        .can_stay_zero = true,
                        .divisor = Divisor::kInterval,
                        .typical_value = 3}},
        .source = "`.dna` format",
    },
    {
        .signal = Signal::kQueueingDelay,
        .absolute = {.name = "queueing_delay",
                     .number = 8,
                     .formula =
                         "`rec_ewma` \u00d7 packets that the last ACK accounts for, received "
                         "or lost",
                     .unit = "ms",
                     .printed_in = "ms",
                     .typical_value = 12},
        .scale_free = {{.name = "queueing_delay_ratio",
                        .number = 13,
                        .formula = "over the smallest RTT",
                        .printed_in = "%",
                        .min_measured = 0x1p-20,
                        .divisor = Divisor::kSmallestRtt,
                        .typical_value = 0.05}},
        .source = "`.dna` format",
    },
    {
        .signal = Signal::kLossRate,
        .absolute = {.name = "loss_rate",
                     .number = 9,
                     .formula = "*a*(1/256, 1 for a lost packet, 0 for one received), packet by "
                                "packet",
                     .printed_in = "%",
                     .can_stay_zero = true,
                     .typical_value = 0.004},
        .source = "R+",
        .split_priority = 2,
    },
    {
        .signal = Signal::kQueueLength,
        .absolute = {.name = "queue_length",
                     .number = 10,
                     .formula = "*a*(1/8, packets that the acknowledged one found at the "
                                "bottleneck)",
                     .unit = "packets",
                     .printed_in = "packets",
                     .can_stay_zero = true,
                     .typical_value = 3},
        .scale_free = {{.name = "queue_ratio",
                        .number = 14,
                        .formula = "over the BDP, smallest RTT / `rec_ewma`",
                        .printed_in = "%",
                        .can_stay_zero = true,
                        .divisor = Divisor::kBdp,
                        .typical_value = 0.1}},
        .source = "INT; R+",
        .origin = SignalOrigin::kTelemetry,
    },
    {
        .signal = Signal::kUtilization,
        .absolute = {.name = "utilization",
                     .number = 11,
                     .formula =
                         "*a*(1/8, share of time that the bottleneck was busy since the last "
                         "acknowledged packet left it)",
                     .printed_in = "%",
                     .min_measured = 0x1p-20,
                     .typical_value = 0.6},
        .source = "INT; HPCC, 3.2; R+",
        .origin = SignalOrigin::kTelemetry,
    },
    {
        .signal = Signal::kEcnFraction,
        .absolute = {.name = "ecn_fraction",
                     .number = 15,
                     .formula = "*a*(1/16, share of the ACK's packets that were marked by a queue)",
                     .printed_in = "%",
                     .can_stay_zero = true,
                     .typical_value = 0.05},
        .source = "DCTCP (RFC 8257, 3.3); R+",
        .origin = SignalOrigin::kMarks,
    },
    {
        .signal = Signal::kRttsSinceLoss,
        .absolute = {.name = "rtts_since_loss",
                     .number = 17,
                     .formula =
                         "1 + time since the ACK that showed the last loss / smallest RTT; 0 "
                         "before any loss of this on period",
                     .can_stay_zero = true},
        .source = "CUBIC (RFC 9438, 4.2)",
        .split_priority = 2,
    },
};

inline constexpr std::size_t kSignals = std::size(kSignalAxes);
// The basic signals, which every sender's memory has. The others, the extended signals, are
// measured by senders whose tables look at any of them (AnyController).
inline constexpr std::size_t kBasicSignals = 4;

constexpr std::size_t axis_of(Signal signal) { return static_cast<std::size_t>(signal); }

// An array, by axis, of one property of the declarations. Evaluated at compile time, so that the
// other properties need not be linked.
template <class Get>
constexpr auto by_axis(const Get& get) {
  std::array<decltype(get(kSignalAxes[0])), kSignals> found{};
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    found[axis] = get(kSignalAxes[axis]);
  }
  return found;
}

static_assert(
    [] {
      for (std::size_t axis = 0; axis < kSignals; ++axis) {
        if (axis_of(kSignalAxes[axis].signal) != axis) {
          return false;
        }
      }
      return true;
    }(),
    "signals must be declared once each, in the order of their enum");

}  // namespace remy
