#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "senders/cubic_growth.h"

namespace remy {

// A round trip of the path model: it ends at the first ACK after a smoothed RTT.
struct RoundTrip {
  double now_ms = 0;  // when it ended
  double length_ms = 0;
  double rtt_ms = 0;  // least
  double smoothed_rtt_ms = 0;
  double delivered_packets = 0;
};

// Decides whether other senders hold a queue that the sender's own rules would have drained
// (docs/explanation/path-model.md, "Competitive mode").
//   A queue stands if the least RTT of each of several round trips is above a threshold, which is a
//   multiple of the path's least RTT. Senders with equal tables hold a queue, too; each false alarm
//   raises the threshold above the queue that caused it.
//   A spike is an RTT that rises fast and falls back. It shows that another sender of the same kind
//   has tested for competitors and found none, and counts as a false alarm.
//   Late losses are losses behind a queue while the sender is slow. In front of short buffers, a
//   queue does not stand.
class CompetitorDetector {
 public:
  // `rtt_ratio`: the lowest threshold, in multiples of the least RTT.
  explicit CompetitorDetector(double rtt_ratio) : rtt_ratio_(rtt_ratio), threshold_(rtt_ratio) {}

  // A round trip without competition ends. Returns true if there are competitors.
  bool on_round(const RoundTrip& round, double base_rtt_ms);
  // A congestion event.
  void on_loss(double base_rtt_ms);
  // Competition begins. Returns the RTT of the queue that stands.
  double begin_competition();
  // Competition ends. Until `known_until_ms`, fewer round trips suffice to begin it again.
  void end_competition(double known_until_ms);
  // There were no competitors, although the RTT stood at `rtt_ms`.
  void on_false_alarm(double rtt_ms, double base_rtt_ms);

 private:
  static constexpr std::size_t kSpikeRise = 3;  // round trips in which a spike rises

  bool watch_for_spike(const RoundTrip& round, double base_rtt_ms);

  double rtt_ratio_;
  double threshold_;
  double rounds_needed_ = 0;  // 0: not drawn yet
  double known_until_ms_ = 0;
  double standing_rtt_ms_ = 0;                    // least of the round trips above the threshold
  std::uint32_t standing_rounds_ = 0;             // their number
  std::uint32_t rounds_ = 0;                      // since competition was possible
  std::array<double, kSpikeRise + 1> rtts_ms_{};  // of the last round trips, the newest first
  double rtt_before_spike_ms_ = 0;
  std::uint32_t spike_rounds_ = 0;  // 0: no spike
  double rate_per_ms_ = 0;          // of the last round trip
  double highest_rate_per_ms_ = 0;
  double late_losses_ = 0;
};

// Competes with senders that fill queues, which would leave nothing to rules that drain them
// (docs/explanation/path-model.md, "Competitive mode"). While it competes, it sets the window in
// place of the rules:
//   kAlone    There are no competitors. The rules set the window.
//   kRamp     The window grows by a packet per packet ACKed, until a loss, or until it is larger
//             than that of the others together.
//   kCompete  The window grows and shrinks as Cubic's.
//   kProbe    For somewhat more than a round trip, the window is as small as it would be without a
//             queue. What the RTT becomes tells the others' window. If they hold nothing, the
//             sender is alone.
class CompetitiveMode {
 public:
  enum class State : std::uint8_t { kAlone, kRamp, kCompete, kProbe };

  // Packets are sent at this multiple of the window per smoothed RTT.
  static constexpr double kPace = 1.2;

  // `rtt_ratio`: see CompetitorDetector. 0: the mode is off, and always alone.
  explicit CompetitiveMode(double rtt_ratio = 0) : is_on_(rtt_ratio > 0), detector_(rtt_ratio) {}

  bool is_on() const { return is_on_; }
  State state() const { return state_; }
  bool is_competing() const { return state_ != State::kAlone; }
  // While it competes: the window.
  double window_packets() const { return state_ == State::kProbe ? probe_packets_ : cwnd_; }
  // The least RTT since the path last changed, or infinity before the first ACK. Unlike the path
  // model's base RTT it does not expire, because a queue of competitors may stand for long.
  double base_rtt_ms() const { return base_rtt_ms_; }

  // The path has changed, or is measured for the first time.
  void on_path_change(double rtt_ms) { base_rtt_ms_ = rtt_ms; }
  void on_round(const RoundTrip& round);
  // An ACK arrives. Needed only while it competes.
  void on_ack(double now_ms, double rtt_ms, double packets, double smoothed_rtt_ms);
  void on_loss(double now_ms, double smoothed_rtt_ms);
  void on_timeout(double now_ms, double smoothed_rtt_ms);
  // The last losses were none. Needed only while it competes.
  void on_spurious_recovery();

 private:
  static constexpr double kFirstRest = 20;  // rounds

  static CubicGrowth cubic();
  void begin(const RoundTrip& round);
  void end(double now_ms);
  void end_after_false_alarm(double now_ms, double smoothed_rtt_ms);
  void set_window(double packets);
  void begin_cubic(double probe_at_ms);
  void end_ramp_beside_others(const RoundTrip& round);
  bool is_above_ceiling(const RoundTrip& round) const;
  bool must_probe(const RoundTrip& round) const;
  void begin_probe(const RoundTrip& round);
  void end_probe(double now_ms, double smoothed_rtt_ms);

  bool is_on_;
  State state_ = State::kAlone;
  CompetitorDetector detector_;
  double base_rtt_ms_ = std::numeric_limits<double>::infinity();
  double rest_until_ms_ = 0;         // does not compete before
  double rest_rounds_ = kFirstRest;  // of the next rest

  // This competition.
  double begin_ms_ = 0;
  double first_rtt_ms_ = 0;        // of the queue that stood when it began
  double first_loss_rtt_ms_ = 0;   // 0: there was no loss
  double rtt_ms_ = 0;              // least of the last round trip
  double rate_per_ms_ = 0;         // of the last round trip
  double shared_rate_per_ms_ = 0;  // at the last measurement of the others' window

  // The window.
  double cwnd_ = 0;
  CubicGrowth cubic_ = cubic();
  double deaf_until_ms_ = 0;  // losses until then belong to the last congestion event
  struct Undo {
    double cwnd = 0;  // 0: nothing to undo
    CubicGrowth cubic = CompetitiveMode::cubic();
  } undo_;

  // The ramp.
  double ramp_packets_ = 0;  // in flight when it began
  double ramp_rtt_ms_ = 0;   // when it began
  double last_cwnd_ = 0;     // a round trip ago

  // Probes.
  double probe_at_ms_ = 0;
  double probe_interval_ms_ = 0;
  bool is_first_probe_ = false;
  double probe_begin_ms_ = 0;
  double probe_end_ms_ = 0;
  double probe_packets_ = 0;
  double cwnd_before_probe_ = 0;
  double rtt_before_probe_ms_ = 0;
  double least_rtt_ms_ = 0;  // in the probe
  double highest_rtt_ms_ = 0;
};

}  // namespace remy
