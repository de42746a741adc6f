#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace remy {

// Default size of a packet on the wire.
inline constexpr double kPacketBytes = 1500;

// On periods of exponentially distributed time.
struct ExponentialTime {
  double mean_ms = 0;
};

// Flows of an exponentially distributed number of bytes.
struct ExponentialBytes {
  double mean_bytes = 0;
};

// Flows of min(scale * u^(-1 / shape) + shift, maximum) + extra bytes, with u uniform in (0, 1)
// (TCP ex Machina, Figure 3).
struct ParetoBytes {
  double scale_bytes = 0;
  double shape = 0;
  double shift_bytes = 0;
  double extra_bytes = 0;
  double maximum_bytes = 0;
};

// A point of a distribution function: a flow has at most `bytes` with this probability.
struct FlowQuantile {
  double probability = 0;
  double bytes = 0;
};
using FlowQuantiles = std::vector<FlowQuantile>;

// Flows whose lengths are drawn from quantiles: interpolated linearly in probability, constant
// outside of the first and the last quantile, and rounded to whole bytes. Extra bytes are added.
struct EmpiricalBytes {
  std::shared_ptr<const FlowQuantiles> quantiles;
  double extra_bytes = 0;
};

// Flows of a constant number of bytes.
struct ConstantBytes {
  double bytes = 0;
};

// One on period until the end of the simulation.
struct Always {};

struct Interval {
  double begin_ms = 0;
  double end_ms = 0;  // may be infinite
};

// On periods at given times, in order.
struct Intervals {
  std::vector<Interval> intervals;
};

// Arrival processes of flows, which replace off times. A flow that arrives while its sender is on
// waits in the sender's queue of flows.
struct PoissonArrivals {
  double mean_interval_ms = 0;
};
struct PeriodicArrivals {
  double interval_ms = 0;
};

// Senders with the same barrier begin a flow together, and the next one a pause after the last of
// these flows has ended.
struct Barrier {
  double pause_ms = 0;
};

// The load a sender offers (section 5.1, "Workloads").
struct Traffic {
  std::variant<ExponentialTime, ExponentialBytes, ParetoBytes, EmpiricalBytes, ConstantBytes,
               Always, Intervals>
      on;
  double mean_off_ms = 0;  // mean of exponential off times; unused with arrivals or given times
  std::variant<std::monostate, PoissonArrivals, PeriodicArrivals, Barrier> arrivals = {};
  double first_off_factor = 1;  // multiplies the first off time
};

// Throws std::invalid_argument with one sentence, about `field`, if a number is out of its range.
void validate(const Traffic& traffic, const std::string& field);

// Returns a built-in distribution of flow lengths. Throws std::invalid_argument if there is none of
// this name.
//   icsi  Flow lengths at the International Computer Science Institute (TCP ex Machina, Figure 3):
//         201 quantiles, with a mean of 106,575 bytes, of the 100,000 equally likely lengths in the
//         authors' ns-2 scripts (hbatmit/ns2.35).
std::shared_ptr<const FlowQuantiles> flow_quantiles(std::string_view name);

// The times or lengths of one sender's on periods. The draw for a period depends on the key and the
// period's number only, so all candidates meet the same load.
class Schedule {
 public:
  // `first_on_ms` is when the first on period begins; none: after an off time, or at time 0 if the
  // traffic has no off times.
  Schedule(const Traffic& traffic, std::uint64_t key, std::optional<double> first_on_ms = {})
      : traffic_(traffic), key_(key), first_on_ms_(first_on_ms) {}

  // Returns true if on periods have a length in time, false if in bytes.
  bool by_time() const {
    return std::holds_alternative<ExponentialTime>(traffic_.on) ||
           std::holds_alternative<Always>(traffic_.on) ||
           std::holds_alternative<Intervals>(traffic_.on);
  }

  // Returns when on period number `period`, from 0, begins, given that the previous one ended at
  // now_ms. Infinity if there is none, or if it waits for a barrier. Call once per period, in
  // order.
  double begins_ms(std::uint64_t period, double now_ms);
  // Returns when an on period by time ends that begins at now_ms.
  double ends_ms(std::uint64_t period, double now_ms) const;
  // Returns the length of an on period by bytes, in whole packets, at least one.
  std::uint64_t on_packets(std::uint64_t period, double packet_bytes = kPacketBytes) const;
  // Returns the arrival time of the flow whose on period began at begin_ms. It is earlier than
  // begin_ms if the flow waited for the previous one.
  double arrival_ms(double begin_ms) const { return has_arrivals_ ? arrival_ms_ : begin_ms; }

 private:
  double exponential_variate(double mean, std::uint64_t counter) const;

  Traffic traffic_;
  std::uint64_t key_;
  std::optional<double> first_on_ms_;
  bool has_arrivals_ = false;
  double arrival_ms_ = 0;  // arrival of the flow that begins next, or is being sent
};

}  // namespace remy
