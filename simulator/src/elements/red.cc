#include "elements/red.h"

#include <cmath>

#include "core/random.h"
#include "core/requirement.h"
#include "elements/queues.h"

namespace remy {

namespace {

// Exponentiation by squaring, with the same bits on every machine.
double whole_power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      result *= base;
    }
    base *= base;
  }
  return result;
}

}  // namespace

// Section 4 of the paper: while the link was idle, the average decays as if the packets that the
// link could have sent had arrived at an empty queue.
void RedQueue::update_average(double now_ms) {
  if (is_link_idle_) {
    const double idle_packets = std::floor((now_ms - idle_since_ms_) / service_ms_);
    constexpr double kMaxIdlePackets = 0x1p53;
    average_packets_ *=
        whole_power(1 - parameters_.weight,
                    static_cast<std::uint64_t>(idle_packets < kMaxIdlePackets ? idle_packets
                                                                              : kMaxIdlePackets));
    idle_since_ms_ = now_ms;
  }
  average_packets_ += parameters_.weight * (static_cast<double>(packets()) - average_packets_);
}

bool RedQueue::should_mark() {
  ++arrivals_;
  const auto& [minimum, maximum, maximum_probability, weight, is_gentle, uses_ecn] = parameters_;
  if (average_packets_ < minimum) {
    count_since_mark_ = 0;
    return false;
  }
  if (average_packets_ >= (is_gentle ? 2 * maximum : maximum)) {
    count_since_mark_ = 0;
    return true;
  }
  const double probability =
      average_packets_ < maximum
          ? maximum_probability * (average_packets_ - minimum) / (maximum - minimum)
          : maximum_probability + (1 - maximum_probability) * (average_packets_ / maximum - 1);
  // Section 7: makes the number of packets between marks uniform rather than geometric.
  const double so_far = static_cast<double>(count_since_mark_) * probability;
  const double draw = unit_interval(random_bits(key_, arrivals_));
  if (so_far >= 1 || draw < probability / (1 - so_far)) {
    count_since_mark_ = 0;
    return true;
  }
  ++count_since_mark_;
  return false;
}

void RedQueue::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  update_average(now_ms);
  const bool is_chosen = should_mark();
  const bool is_marked = is_chosen && parameters_.uses_ecn && segment.is_ecn_capable;
  if (packets() >= limit_packets_ || (is_chosen && !is_marked)) {
    drops.on_drop(segment, now_ms);
    return;
  }
  Segment& kept = waiting_.push();
  kept = segment;
  kept.queued_ms = now_ms;
  kept.is_marked = segment.is_marked || is_marked;
  is_link_idle_ = false;
  count_enqueued(segment);
}

Segment* RedQueue::dequeue(double now_ms, DropListener&) {
  if (waiting_.empty()) {
    is_link_idle_ = true;
    idle_since_ms_ = now_ms;
    return nullptr;
  }
  Segment& departing = waiting_.pop();
  count_dequeued(departing);
  return &departing;
}

QueueDiscipline red() {
  const RedParameters defaults;
  const std::vector<Parameter> parameters = {
      {"minimum_packets", "average queue length from which on some arrivals are marked",
       defaults.minimum_packets, 0, 1e9},
      {"maximum_packets", "average queue length from which on all arrivals are marked",
       defaults.maximum_packets, 0, 1e9},
      {"maximum_probability", "marking probability just below maximum_packets",
       defaults.maximum_probability, 0, 1},
      {"weight", "weight of an arrival in the average", defaults.weight, 1e-9, 1},
      {"ecn", "1: marks ECN-capable packets instead of dropping them", 1, 0, 1},
  };
  return {
      .name = "red",
      .title = "RED",
      .variants = {{"floyd1993", "Floyd and Jacobson 1993", parameters},
                   {"gentle", "Floyd 2000, Recommendation on using the gentle variant of RED",
                    parameters}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        const RedParameters parameters{.minimum_packets = values["minimum_packets"],
                                       .maximum_packets = values["maximum_packets"],
                                       .maximum_probability = values["maximum_probability"],
                                       .weight = values["weight"],
                                       .is_gentle = values.variant() == "gentle",
                                       .uses_ecn = values["ecn"] != 0};
        if (parameters.minimum_packets > parameters.maximum_packets) {
          refuse("queue red: minimum_packets is " + std::to_string(parameters.minimum_packets) +
                 " but must be at most maximum_packets, " +
                 std::to_string(parameters.maximum_packets));
        }
        return std::make_unique<RedQueue>(parameters, limit_packets("red", setting),
                                          1 / setting.rate_packets_per_ms, setting.key);
      },
  };
}

QueueDiscipline threshold_marking() {
  return {
      .name = "threshold-marking",
      .title = "Threshold marking",
      .variants = {{"dctcp",
                    "RFC 8257; Alizadeh et al. 2010, section 3.1",
                    {{"threshold_packets", "waiting packets from which on an arrival is marked", 65,
                      0, 1e9}}}},
      .is_xcp_router = false,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        return std::make_unique<RedQueue>(
            RedParameters{.minimum_packets = values["threshold_packets"],
                          .maximum_packets = values["threshold_packets"],
                          .maximum_probability = 1,
                          .weight = 1},
            limit_packets("threshold-marking", setting), 1 / setting.rate_packets_per_ms,
            setting.key);
      },
  };
}

}  // namespace remy
