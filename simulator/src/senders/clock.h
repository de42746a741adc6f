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

// Exponentially distributed jitter, the time from an ACK's arrival until its sender reads the
// clock.
struct ExponentialJitter {
  double mean_ms = 0;
};

// Jitter that is uniformly distributed from 0.
struct UniformJitter {
  double maximum_ms = 0;
};

// Log-normally distributed jitter.
struct LogNormalJitter {
  double median_ms = 0;
  double percentile_99_ms = 0;
};

// Deviations from ideal measurement, where clocks are exact, every packet is sent and acknowledged
// by itself, and packets arrive in order.
struct MeasurementNoise {
  // A finer resolution counts as exact.
  static constexpr double kFinestResolutionMs = 1e-6;

  std::variant<ExponentialJitter, UniformJitter, LogNormalJitter> jitter;
  double timestamp_resolution_ms = 0;  // 0: exact
  std::uint32_t bunch_packets = 1;     // largest number of packets that a sender sends at once
  double delayed_ack_ms = 0;           // longest time that an ACK waits for a second packet
  // A sender adds its offset to all RTTs of an on period but the first, so that its smallest RTT is
  // too small (Arun, Alizadeh and Balakrishnan, SIGCOMM 2022). Each sender's offset is drawn,
  // uniform from 0 to the maximum, unless rtt_offset_ms gives it.
  double rtt_offset_maximum_ms = 0;
  std::optional<double> rtt_offset_ms = {};
  // With this probability a packet is delayed further, so that later packets overtake it.
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
  // Returns true for noise that only the datagram transport models (Transport::takes_noise).
  bool needs_datagrams() const {
    return has_jitter() || has_resolution() || delays_acks() || bunch_packets != 1;
  }
  // Returns true if ExactClock suffices. Packets may still be reordered.
  bool is_exact() const { return !needs_datagrams() && !has_rtt_offset(); }
};

// Throws std::invalid_argument with one sentence, about `field`, if a number is out of its range.
void validate(const MeasurementNoise& noise, const std::string& field);

// Returns a sender's RTT offset: the given one, or else a draw from the random stream `key`.
double rtt_offset_ms(const MeasurementNoise& noise, std::uint64_t key, std::uint32_t sender);

// The times of an ACK as its sender measures them.
struct AckTimes {
  double sent_ms;
  double received_ms;
  double rtt_ms;
};

// A clock is a template parameter of the dumbbell. read() gives the times that a sender measures
// for an ACK that arrived at now_ms. The state that the clock keeps for a sender's on period is a
// Reader.

// Measures exactly. Every packet is sent by itself and has its own ACK.
class ExactClock {
 public:
  static constexpr bool kIsExact = true;
  struct Reader {};

  AckTimes read(Reader&, double sent_ms, std::uint32_t, FlowTag, double now_ms) const {
    return {sent_ms, now_ms, now_ms - sent_ms};
  }
};

// Measures with jitter, limited resolution and an RTT offset. Its noise() also tells how packets
// are bunched and ACKs delayed.
class NoisyClock {
 public:
  static constexpr bool kIsExact = false;
  struct Reader {
    double last_ms = -std::numeric_limits<double>::infinity();  // reading for the last ACK
    std::uint32_t bunch = 1;                                    // packets in the last bunch sent
    bool has_unacknowledged = false;  // a received packet's ACK is delayed
    Packet unacknowledged{};
  };

  // The keys name the random streams of jitter and of RTT offsets.
  NoisyClock(const MeasurementNoise& noise, std::uint64_t key, std::uint64_t rtt_offset_key = 0)
      : noise_(noise), key_(key), rtt_offset_key_(rtt_offset_key) {
    if (const auto* const log_normal = std::get_if<LogNormalJitter>(&noise.jitter)) {
      log_deviation_ = natural_logarithm(log_normal->percentile_99_ms / log_normal->median_ms) /
                       kNormalPercentile99;
    }
  }

  const MeasurementNoise& noise() const { return noise_; }

  // Returns how many packets are sent at once, given the window's room. Returns 0 until the room
  // suffices for a bunch, for a third of the window, or for all `unsent` packets of the flow.
  std::uint32_t bunch(std::int32_t room, std::uint32_t window, std::uint64_t unsent) const {
    if (room <= 0) {
      return 0;
    }
    const auto packets = static_cast<std::uint32_t>(room);
    const std::uint32_t least = std::min(noise_.bunch_packets, window / kTsoWinDivisor);
    return packets < least && packets < unsent ? 0 : std::min(packets, noise_.bunch_packets);
  }

  AckTimes read(Reader& reader, double sent_ms, std::uint32_t sequence, FlowTag flow,
                double now_ms) const {
    double offset_ms = 0;
    if (noise_.has_rtt_offset() && std::isfinite(reader.last_ms)) {
      offset_ms = rtt_offset_ms(noise_, rtt_offset_key_, flow.sender());
    }
    // ACKs stay in order, so a reading is never before the previous one.
    reader.last_ms = std::max(reader.last_ms, now_ms + jitter_ms(sequence, flow));
    const double received_ms = reader.last_ms;
    if (!noise_.has_resolution()) {
      return {sent_ms, received_ms, received_ms - sent_ms + offset_ms};
    }
    const double tick_ms = noise_.timestamp_resolution_ms;
    const double sent_ticks = std::floor(sent_ms / tick_ms);
    const double received_ticks = std::floor(received_ms / tick_ms);
    // An RTT within one tick counts as half a tick, because rtt_ratio divides by it.
    const double rtt_ticks = std::max(received_ticks - sent_ticks, 0.5);
    return {sent_ticks * tick_ms, received_ticks * tick_ms, rtt_ticks * tick_ms + offset_ms};
  }

 private:
  // Drawn by flow and sequence number, so that all candidates meet the same jitter.
  double jitter_ms(std::uint32_t sequence, FlowTag flow) const {
    const std::uint64_t name = std::uint64_t{flow.word()} << 32 | sequence;
    if (const auto* const log_normal = std::get_if<LogNormalJitter>(&noise_.jitter)) {
      return log_normal->median_ms * exponential(log_deviation_ * normal(key_, name));
    }
    const double u = open_unit_interval(random_bits(key_, name));
    const auto* const uniform = std::get_if<UniformJitter>(&noise_.jitter);
    return uniform != nullptr
               ? uniform->maximum_ms * u
               : -std::get<ExponentialJitter>(noise_.jitter).mean_ms * natural_logarithm(u);
  }

  static constexpr double kNormalPercentile99 = 2.3263478740408408;  // standard normal
  static constexpr std::uint32_t kTsoWinDivisor = 3;  // Linux: net.ipv4.tcp_tso_win_divisor

  MeasurementNoise noise_;
  std::uint64_t key_;
  std::uint64_t rtt_offset_key_;
  double log_deviation_ = 0;  // standard deviation of the logarithm of a log-normal jitter
};

}  // namespace remy
