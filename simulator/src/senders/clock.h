#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "core/elementary.h"
#include "core/random.h"
#include "senders/packet.h"

namespace remy {

// A sender sees an ACK later than it came, by an exponentially distributed time.
struct ExponentialJitter {
  double mean_ms = 0;
};

// The same, uniformly distributed from 0.
struct UniformJitter {
  double maximum_ms = 0;
};

// How what senders measure departs from what happens.
struct MeasurementNoise {
  // A resolution finer than a nanosecond is none.
  static constexpr double kFinestResolutionMs = 1e-6;

  std::variant<ExponentialJitter, UniformJitter> jitter;
  double timestamp_resolution_ms = 0;  // 0: exact

  bool has_jitter() const {
    const auto* const exponential = std::get_if<ExponentialJitter>(&jitter);
    return exponential != nullptr ? exponential->mean_ms > 0
                                  : std::get<UniformJitter>(jitter).maximum_ms > 0;
  }
  bool has_resolution() const { return timestamp_resolution_ms >= kFinestResolutionMs; }
};

// What an ACK tells the memory of its sender.
struct AckTimes {
  double sent_ms;
  double received_ms;
  double rtt_ms;
};

// Clocks, by which a dumbbell is composed, read the times of an ACK that came at now_ms. Neither
// changes when anything happens. A Reader is what a clock keeps for a sender.

// Sees what happens.
class ExactClock {
 public:
  struct Reader {
    void start() {}
  };

  AckTimes read(Reader&, double sent_ms, std::uint32_t, FlowTag, double now_ms) const {
    return {sent_ms, now_ms, now_ms - sent_ms};
  }
};

// Sees ACKs late, and times in whole ticks.
class NoisyClock {
 public:
  struct Reader {
    // An on period starts.
    void start() { last_ms = -std::numeric_limits<double>::infinity(); }

    double last_ms = 0;  // when the last ACK of this on period was seen
  };

  // `key` names the jitter's draws.
  NoisyClock(const MeasurementNoise& noise, std::uint64_t key) : noise_(noise), key_(key) {}

  AckTimes read(Reader& reader, double sent_ms, std::uint32_t sequence, FlowTag flow,
                double now_ms) const {
    // A clock does not run backwards.
    reader.last_ms = std::max(reader.last_ms, now_ms + jitter_ms(sequence, flow));
    const double received_ms = reader.last_ms;
    if (!noise_.has_resolution()) {
      return {sent_ms, received_ms, received_ms - sent_ms};
    }
    const double tick_ms = noise_.timestamp_resolution_ms;
    const double sent_ticks = std::floor(sent_ms / tick_ms);
    const double received_ticks = std::floor(received_ms / tick_ms);
    // Less than a tick is known to be no nearer than this, and a ratio needs a number above 0.
    const double rtt_ticks = std::max(received_ticks - sent_ticks, 0.5);
    return {sent_ticks * tick_ms, received_ticks * tick_ms, rtt_ticks * tick_ms};
  }

 private:
  // Drawn by flow and sequence number, so that candidates share it whatever they send.
  double jitter_ms(std::uint32_t sequence, FlowTag flow) const {
    const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sequence;
    const double u = open_unit_interval(random_bits(key_, name));
    const auto* const exponential = std::get_if<ExponentialJitter>(&noise_.jitter);
    return exponential != nullptr ? -exponential->mean_ms * natural_logarithm(u)
                                  : std::get<UniformJitter>(noise_.jitter).maximum_ms * u;
  }

  MeasurementNoise noise_;
  std::uint64_t key_;
};

}  // namespace remy
