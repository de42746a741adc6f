#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
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

// The same, log-normally distributed.
struct LogNormalJitter {
  double median_ms = 0;
  double percentile_99_ms = 0;
};

// How senders depart from ones that measure exactly, and hear of every packet by itself, in order.
struct MeasurementNoise {
  // A resolution finer than a nanosecond is none.
  static constexpr double kFinestResolutionMs = 1e-6;

  std::variant<ExponentialJitter, UniformJitter, LogNormalJitter> jitter;
  double timestamp_resolution_ms = 0;  // 0: exact
  std::uint32_t bunch_packets = 1;     // that leave together
  double delayed_ack_ms = 0;           // the longest that an ACK waits for a second packet
  // A sender's own offset is uniform from 0: all RTTs that it measures are longer by it, but the
  // first of an on period, which makes its smallest RTT too small (Arun, Alizadeh and Balakrishnan,
  // SIGCOMM 2022).
  double rtt_offset_maximum_ms = 0;
  std::optional<double> rtt_offset_ms = {};  // of the one sender that this is about: not drawn
  // A packet comes later than it would have, by so much and with this probability, and those behind
  // overtake it.
  double reordering_probability = 0;
  double reordering_delay_ms = 0;

  bool has_jitter() const {
    if (const auto* const exponential = std::get_if<ExponentialJitter>(&jitter)) {
      return exponential->mean_ms > 0;
    }
    const auto* const uniform = std::get_if<UniformJitter>(&jitter);
    return uniform == nullptr || uniform->maximum_ms > 0;
  }
  bool has_resolution() const { return timestamp_resolution_ms >= kFinestResolutionMs; }
  bool delays_acks() const { return delayed_ack_ms > 0; }
  bool reorders() const { return reordering_probability > 0 && reordering_delay_ms > 0; }
  bool has_rtt_offset() const { return rtt_offset_maximum_ms > 0 || rtt_offset_ms.has_value(); }
  // Which datagrams alone have (Transport::takes_noise).
  bool is_of_datagrams() const {
    return has_jitter() || has_resolution() || delays_acks() || bunch_packets != 1;
  }
  // Whether clocks are; packets may come out of order.
  bool is_exact() const { return !is_of_datagrams() && !has_rtt_offset(); }
};

// Throws std::invalid_argument with one sentence, about `field`, if a number is out of its range.
void validate(const MeasurementNoise& noise, const std::string& field);

// The sender's own, which is drawn by `key` unless it is given.
double rtt_offset_ms(const MeasurementNoise& noise, std::uint64_t key, std::uint32_t sender);

// What an ACK tells the memory of its sender.
struct AckTimes {
  double sent_ms;
  double received_ms;
  double rtt_ms;
};

// Clocks, by which a dumbbell is composed, read the times of an ACK that came at now_ms; one that
// is not exact also says which packets leave together, and which share an ACK. A Reader is what a
// clock keeps for an on period of a sender.

// Sees what happens. Every packet leaves by itself, and has an ACK.
class ExactClock {
 public:
  static constexpr bool kIsExact = true;
  struct Reader {};

  AckTimes read(Reader&, double sent_ms, std::uint32_t, FlowTag, double now_ms) const {
    return {sent_ms, now_ms, now_ms - sent_ms};
  }
};

// Sees ACKs late, and times in whole ticks.
class NoisyClock {
 public:
  static constexpr bool kIsExact = false;
  struct Reader {
    double last_ms = -std::numeric_limits<double>::infinity();  // when the last ACK was seen
    std::uint32_t bunch = 1;                                    // packets that left together last
    bool has_unacknowledged = false;  // a packet was received for which no ACK has left yet
    Packet unacknowledged{};
  };

  // `key` names the draws of jitter, `rtt_offset_key` of offsets.
  NoisyClock(const MeasurementNoise& noise, std::uint64_t key, std::uint64_t rtt_offset_key = 0)
      : noise_(noise), key_(key), rtt_offset_key_(rtt_offset_key) {
    if (const auto* const log_normal = std::get_if<LogNormalJitter>(&noise.jitter)) {
      deviation_ = natural_logarithm(log_normal->percentile_99_ms / log_normal->median_ms) /
                   kNormalPercentile99;
    }
  }

  const MeasurementNoise& noise() const { return noise_; }

  // How many of the packets for which the window has room leave together: none where the sender
  // waits for more room, until there is some for a bunch or a third of the window. `unsent` is what
  // the sender has left to send.
  std::uint32_t bunch(std::int32_t room, std::uint32_t window, std::uint64_t unsent) const {
    if (room <= 0) {
      return 0;
    }
    const auto packets = static_cast<std::uint32_t>(room);
    const std::uint32_t least = std::min(noise_.bunch_packets, window / kLeastShareOfWindow);
    return packets < least && packets < unsent ? 0 : std::min(packets, noise_.bunch_packets);
  }

  AckTimes read(Reader& reader, double sent_ms, std::uint32_t sequence, FlowTag flow,
                double now_ms) const {
    double offset_ms = 0;
    if (noise_.has_rtt_offset() && std::isfinite(reader.last_ms)) {
      offset_ms = rtt_offset_ms(noise_, rtt_offset_key_, flow.sender());
    }
    // A clock does not run backwards.
    reader.last_ms = std::max(reader.last_ms, now_ms + jitter_ms(sequence, flow));
    const double received_ms = reader.last_ms;
    if (!noise_.has_resolution()) {
      return {sent_ms, received_ms, received_ms - sent_ms + offset_ms};
    }
    const double tick_ms = noise_.timestamp_resolution_ms;
    const double sent_ticks = std::floor(sent_ms / tick_ms);
    const double received_ticks = std::floor(received_ms / tick_ms);
    // Less than a tick is known to be no nearer than this, and a ratio needs a number above 0.
    const double rtt_ticks = std::max(received_ticks - sent_ticks, 0.5);
    return {sent_ticks * tick_ms, received_ticks * tick_ms, rtt_ticks * tick_ms + offset_ms};
  }

 private:
  // Drawn by flow and sequence number, so that candidates share it whatever they send.
  double jitter_ms(std::uint32_t sequence, FlowTag flow) const {
    const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sequence;
    if (const auto* const log_normal = std::get_if<LogNormalJitter>(&noise_.jitter)) {
      return log_normal->median_ms * exponential(deviation_ * normal(key_, name));
    }
    const double u = open_unit_interval(random_bits(key_, name));
    const auto* const uniform = std::get_if<UniformJitter>(&noise_.jitter);
    return uniform != nullptr
               ? uniform->maximum_ms * u
               : -std::get<ExponentialJitter>(noise_.jitter).mean_ms * natural_logarithm(u);
  }

  // Of the standard normal distribution.
  static constexpr double kNormalPercentile99 = 2.3263478740408408;
  // As in Linux (net.ipv4.tcp_tso_win_divisor).
  static constexpr std::uint32_t kLeastShareOfWindow = 3;

  MeasurementNoise noise_;
  std::uint64_t key_;
  std::uint64_t rtt_offset_key_;
  double deviation_ = 0;  // of the logarithm of a log-normal jitter
};

}  // namespace remy
