#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace remy {

// A congestion signal: one axis of a sender's memory (TCP ex Machina, section 4.1). The order is
// that of the .dna format's axes, then that of docs/reference/signals.md.
enum class Signal : std::uint8_t {
  kSendEwma,
  kRecEwma,  // of scale-free rules: age
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

// What tells a sender of the signal.
enum class ToldBy : std::uint8_t {
  kAcks,
  kTelemetry,  // the bottleneck, by in-band network telemetry (INT)
  kMarks,      // a queue that marks packets (ECN)
};

// What divides an absolute value into the ratio that scale-free rules look at.
enum class Per : std::uint8_t {
  kNothing,
  kInterval,  // rec_ewma
  kSmallestRtt,
  kPath,  // packets that the smallest RTT holds at the measured rate, smallest RTT / rec_ewma
};

// A signal as rules of one kind look at it.
struct SignalForm {
  std::string_view name;     // SIGNAL_SEND_EWMA of rule_table.proto is send_ewma
  std::uint8_t number;       // that of the enum Signal of rule_table.proto
  std::string_view formula;  // Markdown, as docs/reference/signals.md prints it
  std::string_view unit = "1";
  std::string_view printed_in = "";  // of its thresholds in reports: ms, packets, %; else bare
  // Whether it may be 0 for ever, so that 0 does not tell who has measured nothing.
  bool may_stay_0 = false;
  double least_measured = 0;  // no measured value lies below; 0: none is known
  Per per = Per::kNothing;
  // Divides what senders measure on usual networks, for the fingerprint of tables that look at it;
  // 0: only what they measure is in the fingerprint.
  double usual_value = 0;
};

// All that there is to say of one signal.
struct SignalAxis {
  Signal signal;
  SignalForm absolute;
  // None: the absolute form has no unit, and is for all rules.
  std::optional<SignalForm> scale_free = std::nullopt;
  std::string_view source;  // a section of TCP ex Machina, or another
  ToldBy told_by = ToldBy::kAcks;
  double smallest = 0;  // from where summaries of memory tell values apart
  // Searches divide on signals of a lower turn first, and in the order of axes within one.
  std::uint8_t turn = 1;

  constexpr const SignalForm& form(bool is_scale_free) const {
    return is_scale_free && scale_free ? *scale_free : absolute;
  }
};

// Each signal is declared here, and measured in senders/remy_controller.h.
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
                        .per = Per::kInterval}},
        .source = "4.1",
    },
    {
        .signal = Signal::kRecEwma,
        .absolute = {.name = "rec_ewma",
                     .number = 2,
                     .formula = "*a*(1/8, time between the last two ACKs)",
                     .unit = "ms"},
        .scale_free = {{.name = "age",
                        .number = 16,
                        .formula =
                            "packets of this on period acknowledged after the first; 256 "
                            "more for who "
                            "[remembers](../explanation/scale-free-rules.md#age-and-memory) another",
                        .unit = "packets",
                        .printed_in = "packets",
                        .least_measured = 1}},
        .source = "4.1",
    },
    {
        .signal = Signal::kRttRatio,
        .absolute = {.name = "rtt_ratio",
                     .number = 3,
                     .formula = "last RTT / smallest RTT of this on period",
                     .least_measured = 1},
        .source = "4.1",
        .smallest = 1,
        .turn = 0,
    },
    {
        .signal = Signal::kSlowRecEwma,
        .absolute = {.name = "slow_rec_ewma",
                     .number = 4,
                     .formula = "*a*(1/256, time between the last two ACKs)",
                     .unit = "ms"},
        // No EWMA of weight 1/256 is below 1/32 of one of weight 1/8 of the same times.
        .scale_free = {{.name = "slow_rec_ratio",
                        .number = 6,
                        .formula = "over `rec_ewma`",
                        .least_measured = 1.0 / 32,
                        .per = Per::kInterval}},
        .source = "learnability study, 3.2",
    },
    {
        .signal = Signal::kRttDiff,
        .absolute = {.name = "rtt_diff",
                     .number = 7,
                     .formula = "last RTT - smallest RTT of this on period",
                     .unit = "ms",
                     .printed_in = "ms",
                     .may_stay_0 = true,
                     .usual_value = 8},
        .scale_free = {{.name = "rtt_diff_ratio",
                        .number = 12,
                        .formula = "over `rec_ewma`, packets of its own that a sender waits for; "
                                   "Vegas' *diff* (Brakmo and Peterson 1995, section 3.2)",
                        .unit = "packets",
                        .printed_in = "packets",
                        .may_stay_0 = true,
                        .per = Per::kInterval,
                        .usual_value = 3}},
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
                     .usual_value = 12},
        .scale_free = {{.name = "queueing_delay_ratio",
                        .number = 13,
                        .formula = "over the smallest RTT",
                        .printed_in = "%",
                        .least_measured = 0x1p-20,
                        .per = Per::kSmallestRtt,
                        .usual_value = 0.05}},
        .source = "`.dna` format",
    },
    {
        .signal = Signal::kLossRate,
        .absolute = {.name = "loss_rate",
                     .number = 9,
                     .formula = "*a*(1/256, 1 for a lost packet, 0 for one received), packet by "
                                "packet",
                     .printed_in = "%",
                     .may_stay_0 = true,
                     .usual_value = 0.004},
        .source = "R+",
        .turn = 2,
    },
    {
        .signal = Signal::kQueueLength,
        .absolute = {.name = "queue_length",
                     .number = 10,
                     .formula = "*a*(1/8, packets that the acknowledged one found at the "
                                "bottleneck)",
                     .unit = "packets",
                     .printed_in = "packets",
                     .may_stay_0 = true,
                     .usual_value = 3},
        .scale_free = {{.name = "queue_ratio",
                        .number = 14,
                        .formula = "times `rec_ewma` / smallest RTT, what the path holds at the "
                                   "measured rate",
                        .printed_in = "%",
                        .may_stay_0 = true,
                        .per = Per::kPath,
                        .usual_value = 0.1}},
        .source = "INT; R+",
        .told_by = ToldBy::kTelemetry,
    },
    {
        .signal = Signal::kUtilization,
        .absolute = {.name = "utilization",
                     .number = 11,
                     .formula =
                         "*a*(1/8, share of the time since the last acknowledged packet left "
                         "the bottleneck for which it was busy)",
                     .printed_in = "%",
                     .least_measured = 0x1p-20,
                     .usual_value = 0.6},
        .source = "INT; HPCC, 3.2; R+",
        .told_by = ToldBy::kTelemetry,
    },
    {
        .signal = Signal::kEcnFraction,
        .absolute = {.name = "ecn_fraction",
                     .number = 15,
                     .formula =
                         "*a*(1/16, share of the packets that the ACK is for which the queue "
                         "marked)",
                     .printed_in = "%",
                     .may_stay_0 = true,
                     .usual_value = 0.05},
        .source = "DCTCP (RFC 8257, 3.3); R+",
        .told_by = ToldBy::kMarks,
    },
    {
        .signal = Signal::kRttsSinceLoss,
        .absolute = {.name = "rtts_since_loss",
                     .number = 17,
                     .formula =
                         "1 + time since the ACK that told of the last loss / smallest RTT; 0 "
                         "before any loss of this on period",
                     .may_stay_0 = true},
        .source = "CUBIC (RFC 9438, 4.2)",
        .turn = 2,
    },
};

inline constexpr std::size_t kSignals = std::size(kSignalAxes);
// Those that every sender's memory has. Tables that look at others have a simulator of their own.
inline constexpr std::size_t kUsualSignals = 4;

constexpr std::size_t axis_of(Signal signal) { return static_cast<std::size_t>(signal); }

// By axis, one thing that is declared of it. What is evaluated when it is compiled leaves all else
// out of what is linked.
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
