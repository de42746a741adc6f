#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/windowed_filter.h"
#include "senders/competitive_mode.h"
#include "table/path_settings.h"

namespace remy {

// Models a sender's path beside the rules of its table (docs/explanation/path-model.md). It
// corrects the RTT that rules compare with the base RTT, and limits the window and the intersend
// time that they set:
//   base RTT       The least RTT of two epochs of some round trips, so that it expires when the
//                  path gets longer. A base RTT that rises is tested by a drain: for one round trip
//                  less is in flight, so that a queue of one's own shows itself.
//   loss debt      Losses beyond a tolerated fraction add up; at a limit they cap the window, which
//                  then grows back. It needs no rule that looks at losses.
//   floor          The window has a least size, and a packet is sent at least once per RTT.
//   reference RTT  Rules see a queueing delay enlarged on a long path and reduced on a short one,
//                  so that senders with different RTTs give way to the same queue.
//   additive pace  Some packets per RTT are sent beyond the rules' pace, which is multiplicative,
//                  so that small shares grow more than large ones.
//   held ACKs      ACKs that arrive in bunches look like a queue. While they do, the least of the
//                  recent RTTs counts.
//   flight bound   What is in flight, and what a round trip sends, is at most a multiple of what a
//                  recent round trip delivered. Rules whose unit is the time between two ACKs would
//                  else send without bound when ACKs arrive all at once.
//   competition    Beside senders that fill queues, CompetitiveMode sets the window.
//   start          A sender that sees no queue for some round trips starts faster than its rules,
//                  and its flight bound is larger.
// Transports report ACKs, losses and timeouts; times are the sender's own.
class PathModel {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // `settings`, which may be null, outlives the model.
  explicit PathModel(const PathSettings* settings = nullptr);

  // Returns false if the table has no path model; nothing else may be called then.
  bool is_on() const { return settings_ != nullptr; }

  // An on period starts. `remembered_rtt_ms` is the base RTT of an earlier one, or infinity.
  void start(double remembered_rtt_ms);

  // An ACK of `packets` packets arrives. Losses that it reveals are reported first. Returns the RTT
  // as rules see it.
  [[gnu::always_inline]] double on_ack(double now_ms, double rtt_ms, std::uint32_t packets) {
    smoothed_rtt_ms_ += (rtt_ms - smoothed_rtt_ms_) / 8;
    delivered_packets_ += packets;
    longest_gap_ms_ = std::max(longest_gap_ms_, now_ms - last_ack_ms_);
    last_ack_ms_ = now_ms;
    if (rtt_ms < round_rtt_ms_) [[unlikely]] {
      round_rtt_ms_ = rtt_ms;
      if (rtt_ms < base_rtt_ms_) {
        set_base_rtt(rtt_ms);
      }
    }
    if (now_ms >= next_event_ms_) [[unlikely]] {
      rtt_ms = on_event(now_ms, rtt_ms, packets);
    }
    return base_rtt_ms_ + (rtt_ms - base_rtt_ms_) * queue_factor_;
  }

  // Packets are found lost.
  void on_loss(double now_ms, std::uint32_t packets);
  // The retransmission timer expires, and packets count as lost.
  void on_timeout(double now_ms, std::uint32_t packets);
  // The last losses were none: packets had only been reordered or delayed. A cap of more than a few
  // round trips ago stays.
  void on_spurious_recovery();

  double base_rtt_ms() const { return base_rtt_ms_; }
  CompetitiveMode::State competition() const { return competition_.state(); }
  // Returns false while ACKs arrive at the pace of a drain, which says nothing about the path.
  bool measures_rate(double now_ms) const { return now_ms >= drain_passed_ms_; }
  // The window for a window of the rules.
  std::uint32_t limit_window(std::uint32_t packets) const {
    return std::max(std::min(packets, most_packets_), least_packets_);
  }
  // The intersend time for an intersend time of the rules. The additive packets are sent beside
  // the rules' pace: 1 / result = 1 / ms + additive_packets / smoothed RTT.
  double limit_intersend(double ms) const {
    ms = ms / (start_divisor_ + additive_per_ms_ * ms);
    return std::min(std::max(ms, least_intersend_ms_), most_intersend_ms_);
  }

 private:
  // A rise of the RTT that may be the path's own.
  struct Jump {
    double rtt_ms = 0;              // of the path, if it has changed; 0: no jump is suspected
    std::uint32_t steady = 0;       // rounds since the RTT last changed
    std::uint32_t changes = 0;      // of the RTT since the jump
    std::uint32_t test_rounds = 0;  // left of the test by a drain
  };

  // Packets that the round trip has delivered so far.
  double delivered_in_round() const {
    return static_cast<double>(delivered_packets_ - delivered_before_round_);
  }
  void measure_first(double now_ms, double rtt_ms);
  void set_base_rtt(double rtt_ms);
  // The path has changed, or an old base RTT holds again: forgets the epochs.
  void adopt_base_rtt(double rtt_ms);
  // Returns the RTT that counts: the ACK's own, or the least of the recent ones.
  double on_event(double now_ms, double rtt_ms, std::uint32_t packets);
  void end_round(double now_ms, double rtt_ms);
  void end_epoch(double now_ms);
  void watch_for_jump(double now_ms);
  void update_competition(double now_ms);
  void grow_cap(double now_ms);
  void watch_for_held_acks(double now_ms, double rtt_ms);
  void begin_drain(double now_ms);
  void update_limits();

  const PathSettings* settings_;
  CompetitiveMode competition_;
  double smoothed_rtt_ms_ = 0;  // as in RFC 6298; 0 before the first ACK
  double base_rtt_ms_ = kInfinite;
  double queue_factor_ = 1;   // by which rules see a queueing delay enlarged
  double start_divisor_ = 1;  // of the rules' intersend time
  std::uint32_t most_packets_ = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t least_packets_ = 0;
  double least_intersend_ms_ = 0;
  double most_intersend_ms_ = kInfinite;
  double additive_per_ms_ = 0;

  // The round trip: it ends at the first ACK after a smoothed RTT.
  double next_event_ms_ = -kInfinite;  // the end of the round or of the drain, or the next ACK
  double round_begin_ms_ = 0;
  double round_end_ms_ = 0;
  double round_rtt_ms_ = kInfinite;  // least of the round
  double last_round_rtt_ms_ = 0;
  std::uint64_t delivered_packets_ = 0;       // in the on period
  std::uint64_t delivered_before_round_ = 0;  // of these, before the round began
  double last_delivered_packets_ = 0;         // in the last round
  double before_last_delivered_packets_ = 0;  // and in the one before
  std::uint32_t rounds_ = 0;                  // of the on period
  bool is_measured_ = false;                  // an ACK has arrived
  bool has_seen_queue_ = false;

  // The base RTT.
  double epoch_rtt_ms_ = kInfinite;           // least of the epoch
  double previous_epoch_rtt_ms_ = kInfinite;  // and of the epoch before
  double tested_rtt_ms_ = kInfinite;          // least since the last drain
  std::uint32_t epoch_rounds_ = 0;
  double drain_end_ms_ = kInfinite;
  double drain_packets_ = kInfinite;
  double drain_passed_ms_ = -kInfinite;  // when the last ACK of the last drain has arrived
  Jump jump_;

  // Losses.
  double debt_packets_ = 0;           // at the last loss
  std::uint64_t debt_counts_to_ = 0;  // delivered packets that the debt contains
  double cap_packets_ = kInfinite;
  double growth_packets_ = 0;      // of the cap in the last round
  double deaf_until_ms_ = 0;       // losses until then belong to those that lowered the cap
  double cap_before_packets_ = 0;  // before the last losses; 0: there were none
  std::uint32_t cap_round_ = 0;    // in which the last losses lowered the cap

  // Held ACKs.
  double last_ack_ms_ = 0;
  double longest_gap_ms_ = 0;        // between ACKs, in the round
  std::array<double, 3> gaps_ms_{};  // longest gaps of the last rounds
  double held_ms_ = 0;               // gap that each of the last rounds had; 0: ACKs are not held
  WindowedMin recent_rtt_ms_;
};

}  // namespace remy
