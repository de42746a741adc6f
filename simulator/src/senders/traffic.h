#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace remy {

// Where nothing says otherwise.
inline constexpr double kPacketBytes = 1500;

// On for an exponentially distributed time.
struct ExponentialTime {
  double mean_ms = 0;
};

// On for an exponentially distributed number of bytes.
struct ExponentialBytes {
  double mean_bytes = 0;
};

// On for min(scale * u^(-1 / shape) + shift, maximum) + extra bytes (TCP ex Machina, Figure 3).
struct ParetoBytes {
  double scale_bytes = 0;
  double shape = 0;
  double shift_bytes = 0;
  double extra_bytes = 0;
  double maximum_bytes = 0;
};

// A flow of this probability or less has so many bytes or fewer.
struct FlowQuantile {
  double probability = 0;
  double bytes = 0;
};
using FlowQuantiles = std::vector<FlowQuantile>;

// On for a number of bytes drawn from quantiles, linear in probability between two and constant
// beyond the first and the last, rounded to whole bytes; and extra bytes.
struct EmpiricalBytes {
  std::shared_ptr<const FlowQuantiles> quantiles;
  double extra_bytes = 0;
};

// On for always the same number of bytes.
struct ConstantBytes {
  double bytes = 0;
};

// On from the first time on to the end.
struct Always {};

struct Interval {
  double begin_ms = 0;
  double end_ms = 0;  // may be infinite
};

// On between given times.
struct Intervals {
  std::vector<Interval> intervals;
};

// When flows of bytes come that do not wait for an off time. Those that come while their sender is
// on wait in a queue of its own: senders in parallel are so many slots.
struct PoissonArrivals {
  double mean_interval_ms = 0;
};
struct PeriodicArrivals {
  double interval_ms = 0;
};

// All who share it begin at once, and again a pause after the last of them has ended.
struct Barrier {
  double pause_ms = 0;
};

// The load a sender offers (section 5.1, "Workloads").
struct Traffic {
  std::variant<ExponentialTime, ExponentialBytes, ParetoBytes, EmpiricalBytes, ConstantBytes,
               Always, Intervals>
      on;
  double mean_off_ms = 0;  // exponentially distributed, where nothing else says when it begins
  std::variant<std::monostate, PoissonArrivals, PeriodicArrivals, Barrier> arrivals = {};
  double first_off_factor = 1;  // of the first off time
};

// Throws std::invalid_argument with one sentence, about `field`, if a number is out of its range.
void validate(const Traffic& traffic, const std::string& field);

// The flow lengths that have a name. Throws std::invalid_argument for others.
//   icsi  What the paper's Figure 3 shows: lengths of flows at the International Computer Science
//         Institute, condensed to 201 quantiles (mean 106,575 bytes) from the list of 100,000
//         equally likely ones that the authors' ns-2 scripts draw from (hbatmit/ns2.35).
std::shared_ptr<const FlowQuantiles> flow_quantiles(std::string_view name);

// One sender's schedule. Every period's length is a draw of its own, which nothing that happened
// before can shift.
class Schedule {
 public:
  // first_on_ms: when it is first on; none: after an off time, or at once where there is none.
  Schedule(const Traffic& traffic, std::uint64_t key, std::optional<double> first_on_ms = {})
      : traffic_(traffic), key_(key), first_on_ms_(first_on_ms) {}

  bool by_time() const {
    return std::holds_alternative<ExponentialTime>(traffic_.on) ||
           std::holds_alternative<Always>(traffic_.on) ||
           std::holds_alternative<Intervals>(traffic_.on);
  }

  // When on period number `period`, from 0, begins, where the one before has ended at now_ms;
  // infinite if there is none, or if others have to end before. Of each period once, in order.
  double begins_ms(std::uint64_t period, double now_ms);
  // When on period number `period` of traffic by time ends, which begins at now_ms.
  double ends_ms(std::uint64_t period, double now_ms) const;
  // Length of on period number `period` of traffic by bytes, whole packets, at least one.
  std::uint64_t on_packets(std::uint64_t period, double packet_bytes = kPacketBytes) const;
  // When the flow came whose on period began at begin_ms: earlier, if it had to wait.
  double came_ms(double begin_ms) const { return waits_ ? came_ms_ : begin_ms; }

 private:
  double exponential_variate(double mean, std::uint64_t counter) const;

  Traffic traffic_;
  std::uint64_t key_;
  std::optional<double> first_on_ms_;
  bool waits_ = false;
  double came_ms_ = 0;  // the flow that begins next, or has begun
};

}  // namespace remy
