#pragma once

#include <cstdint>
#include <string>
#include <variant>

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

// The load a sender offers (section 5.1, "Workloads").
struct Traffic {
  std::variant<ExponentialTime, ExponentialBytes, ParetoBytes> on;
  double mean_off_ms = 0;
};

// Throws std::invalid_argument with one sentence, about `field`, if a number is out of its range.
void validate(const Traffic& traffic, const std::string& field);

// One sender's schedule. Every period's length is a draw of its own, which nothing that happened
// before can shift.
class Schedule {
 public:
  Schedule(const Traffic& traffic, std::uint64_t key) : traffic_(traffic), key_(key) {}

  bool by_time() const { return std::holds_alternative<ExponentialTime>(traffic_.on); }

  // Length of off period number `period`, from 0 (a sender starts off), ms.
  double off_ms(std::uint64_t period) const;
  // Length of on period number `period` of traffic by time, ms.
  double on_ms(std::uint64_t period) const;
  // Length of on period number `period` of traffic by bytes, whole packets, at least one.
  std::uint64_t on_packets(std::uint64_t period, double packet_bytes = kPacketBytes) const;

 private:
  double exponential_variate(double mean, std::uint64_t counter) const;

  Traffic traffic_;
  std::uint64_t key_;
};

}  // namespace remy
