#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/windowed_filter.h"
#include "table/path_settings.h"

namespace remy {

// A second, slow implementation of the path model (senders/path_model.h), to compare it with. It
// keeps all ACKs, losses and round trips of the on period, and derives from this history what the
// model updates: the base RTT is the least RTT of the ACKs that count, the debt is added up anew
// from the losses and ACKs since it was last zero, and a cap grows anew round trip by round trip.
// Sums have the model's order of operations, so that results have the same bits.
class SlowPathModel {
 public:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // Counts of the states that the on periods so far have reached, by name.
  using Reached = std::map<std::string, std::uint64_t>;

  explicit SlowPathModel(const PathSettings& settings) : settings_(settings) {}

  const Reached& reached() const { return reached_; }

  void start(double remembered_rtt_ms) {
    const Reached reached = reached_;
    *this = SlowPathModel(settings_);
    reached_ = reached;
    remembered_rtt_ms_ = remembered_rtt_ms;
  }

  double on_ack(double now_ms, double rtt_ms, std::uint32_t packets) {
    const double last_ms = smoothed_rtt_ms();
    const double smoothed_ms = acks_.empty() ? rtt_ms : last_ms + (rtt_ms - last_ms) / 8;
    acks_.push_back({now_ms, rtt_ms, smoothed_ms, packets});
    if (acks_.size() == 1) {
      clear_debt();
      epoch_rtts_since_drain_ms_ = {base_rtt_ms()};
      limits_set_at_ = 0;
      round_end_ms_ = now_ms + rtt_ms;
    } else {
      const double seen_ms = rtt_by_held_acks();
      if (drained_window() < kInfinite && now_ms >= drains_.back().end_ms) {
        drains_.back().is_over = true;
        limits_set_at_ = acks_.size() - 1;
      }
      if (now_ms >= round_end_ms_) {
        end_round();
        limits_set_at_ = acks_.size() - 1;
      }
      rtt_ms = seen_ms;
    }
    const double factor =
        settings_.reference_rtt_ms > 0 ? std::sqrt(base_rtt_ms() / settings_.reference_rtt_ms) : 1;
    return base_rtt_ms() + (rtt_ms - base_rtt_ms()) * factor;
  }

  // Timeouts are losses, too.
  void on_loss(double now_ms, std::uint32_t packets) {
    if (rounds_.empty()) {
      return;
    }
    if (!lowerings_.empty() && now_ms < lowerings_.back().deaf_until_ms) {
      ++reached_["ignored losses"];
      return;
    }
    debts_.push_back(-settings_.tolerated_loss * delivered_since(debt_counts_to_));
    debts_.push_back((1 - settings_.tolerated_loss) * packets);
    debt_counts_to_ = acks_.size();
    if (debt() < settings_.loss_debt_packets) {
      return;
    }
    const double last = rounds_.back().delivered_packets;
    const double in_flight = std::max(last, delivered_since(round_begin()));
    const double before = cap();
    ++reached_[before < kInfinite ? "lowered caps" : "caps"];
    const double least = settings_.least_window_packets;
    const double first = std::max(least, settings_.loss_window * std::min(in_flight, before));
    lowerings_.push_back({first, before, now_ms + smoothed_rtt_ms(), rounds_.size(), true});
    returned_ = {};
    clear_debt();
    limits_set_at_ = acks_.size() - 1;
  }

  void on_spurious_recovery() {
    clear_debt();
    if (!lowerings_.empty() && lowerings_.back().can_be_undone &&
        rounds_.size() <= lowerings_.back().round + 3) {
      lowerings_.back().can_be_undone = false;
      if (lowerings_.back().before_packets > cap()) {
        returned_ = {lowerings_.back().before_packets, rounds_.size(), true};
        ++reached_["returned caps"];
      }
      limits_set_at_ = acks_.size() - 1;
    }
  }

  // The least RTT of two epochs: the ACKs from the last round trip before the last complete epoch
  // on. Until the first epoch is complete, the remembered one counts.
  double base_rtt_ms() const {
    double least_ms = is_remembered() ? remembered_rtt_ms_ : kInfinite;
    for (std::size_t ack = base_begin_; ack < acks_.size(); ++ack) {
      least_ms = std::min(least_ms, acks_[ack].rtt_ms);
    }
    return least_ms;
  }

  bool measures_rate(double now_ms) const {
    return drains_.empty() || now_ms >= drains_.back().passed_ms;
  }
  bool is_draining() const { return drained_window() < kInfinite; }

  std::uint32_t limit_window(std::uint32_t packets) const {
    const double least = acks_.empty() ? 0 : settings_.least_window_packets;
    const double most = std::min({1.0 * packets, cap(), drained_window(), flight_bound()});
    return static_cast<std::uint32_t>(std::max(least, most));
  }

  double limit_intersend(double ms) const {
    if (acks_.empty()) {
      return ms;
    }
    const double smoothed_ms = acks_[limits_set_at_].smoothed_rtt_ms;
    ms = ms / ((is_fast_start() ? 1.2 : 1) + settings_.additive_packets / smoothed_ms * ms);
    ms = std::max(ms, smoothed_ms / std::min(1.1 * cap(), flight_bound()));
    return std::min(ms, smoothed_ms);
  }

 private:
  struct Ack {
    double now_ms;
    double rtt_ms;
    double smoothed_rtt_ms;
    std::uint32_t packets;
  };
  struct Round {
    std::size_t begin;   // its first ACK
    std::size_t end;     // its last ACK
    double rtt_ms;       // least
    double base_rtt_ms;  // when it ended, before it could raise the base RTT
    double delivered_packets;
    double longest_gap_ms;
    bool has_cap;
  };
  struct Drain {
    double end_ms;
    double passed_ms;
    double packets;
    bool is_over;
  };
  // Losses that lowered the cap.
  struct Lowering {
    double packets;
    double before_packets;
    double deaf_until_ms;
    std::size_t round;  // the first that may raise the cap
    bool can_be_undone;
  };
  // The cap that a spurious recovery gave back.
  struct Returned {
    double packets = 0;
    std::size_t round = 0;
    bool is_valid = false;
  };
  enum class Verdict { kNone, kTest, kAdopt, kRefute, kAbandon };

  double smoothed_rtt_ms() const { return acks_.empty() ? 0 : acks_.back().smoothed_rtt_ms; }
  bool is_remembered() const { return epochs_ == 0; }
  // The first ACK begins the measurement. It belongs to the first epoch, and to no round trip.
  std::size_t round_begin() const { return rounds_.empty() ? 1 : rounds_.back().end + 1; }

  double delivered_since(std::size_t ack) const {
    double packets = 0;
    for (; ack < acks_.size(); ++ack) {
      packets += acks_[ack].packets;
    }
    return packets;
  }

  void clear_debt() {
    debts_.clear();
    debt_counts_to_ = acks_.size();
  }

  double debt() const {
    double packets = 0;
    for (const double change : debts_) {
      packets = std::max(0.0, packets + change);
    }
    return packets;
  }

  // The k-th round trip after the losses' own raises the cap by k eighths of a packet. A cap of
  // four times what a round trip delivers, but at least 64 packets, ends.
  double cap() const {
    if (lowerings_.empty()) {
      return kInfinite;
    }
    const Lowering& lowering = lowerings_.back();
    double packets = lowering.packets;
    double growth = 0;
    for (std::size_t i = lowering.round; i <= rounds_.size(); ++i) {
      if (returned_.is_valid && returned_.round == i) {
        packets = returned_.packets;
      }
      if (i == rounds_.size() || packets == kInfinite) {
        break;
      }
      if (acks_[rounds_[i].end].now_ms < lowering.deaf_until_ms) {
        continue;
      }
      growth += 1.0 / 8;
      packets += growth;
      if (packets > 64 && packets > 4 * rounds_[i].delivered_packets) {
        packets = kInfinite;
      }
    }
    return packets;
  }

  double drained_window() const {
    return drains_.empty() || drains_.back().is_over ? kInfinite : drains_.back().packets;
  }

  bool has_seen_queue() const {
    return std::ranges::any_of(rounds_, [this](const Round& round) {
      return round.rtt_ms > 1.03 * round.base_rtt_ms ||
             acks_[round.end].smoothed_rtt_ms > 1.1 * round.base_rtt_ms || round.has_cap;
    });
  }
  // Whether the start is faster than the rules: three round trips have passed, and none saw a
  // queue.
  bool is_fast_start() const { return rounds_.size() >= 3 && !has_seen_queue(); }

  // Returns the most packets in flight, which is also the most that a round trip sends. It is a
  // multiple of the better of the last two deliveries, which count as 16 packets at least. Before
  // the first ACK, it is four times that number.
  double flight_bound() const {
    if (acks_.empty()) {
      return 16 * std::max(4.0, settings_.flight_bound);
    }
    double packets = 16;
    for (std::size_t i = rounds_.size(); i > 0 && i + 2 > rounds_.size(); --i) {
      packets = std::max(packets, rounds_[i - 1].delivered_packets);
    }
    const double most = settings_.flight_bound;
    return (has_seen_queue() ? most : std::max(most, 16.0)) * packets;
  }

  // The gap that each of three round trips had, the last of which is `last`, if it is large: 0.3
  // RTTs. Otherwise 0.
  double held_ms(std::size_t last) const {
    if (last + 1 < 3) {
      return 0;
    }
    const double gap_ms =
        std::min({rounds_[last - 2].longest_gap_ms, rounds_[last - 1].longest_gap_ms,
                  rounds_[last].longest_gap_ms});
    return gap_ms > 0.3 * acks_[rounds_[last].end].smoothed_rtt_ms ? gap_ms : 0;
  }

  // The RTT that counts for the last ACK: its own or, while ACKs are held, the least of 1.2 gaps.
  // The filter of three samples is that of other protocols, and runs over all ACKs since they are
  // held.
  double rtt_by_held_acks() {
    const double own_ms = acks_.back().rtt_ms;
    std::size_t first = rounds_.size();
    while (first > 0 && held_ms(first - 1) > 0) {
      --first;
    }
    if (first == rounds_.size()) {
      return own_ms;
    }
    const Ack& begin = acks_[rounds_[first].end];
    WindowedMin least;
    least.reset(begin.now_ms, begin.rtt_ms);
    for (std::size_t round = first; round < rounds_.size(); ++round) {
      const std::size_t end =
          round + 1 < rounds_.size() ? rounds_[round + 1].end : acks_.size() - 1;
      for (std::size_t ack = rounds_[round].end + 1; ack <= end; ++ack) {
        least.update(1.2 * held_ms(round), acks_[ack].now_ms, acks_[ack].rtt_ms);
      }
    }
    ++reached_["held acks"];
    reached_["held acks below their rtt"] += least.value() < own_ms ? 1 : 0;
    return least.value();
  }

  void end_round() {
    Round round = {.begin = round_begin(),
                   .end = acks_.size() - 1,
                   .rtt_ms = kInfinite,
                   .base_rtt_ms = base_rtt_ms(),
                   .delivered_packets = delivered_since(round_begin()),
                   .longest_gap_ms = 0,
                   .has_cap = false};
    for (std::size_t ack = round.begin; ack <= round.end; ++ack) {
      round.rtt_ms = std::min(round.rtt_ms, acks_[ack].rtt_ms);
      round.longest_gap_ms =
          std::max(round.longest_gap_ms, acks_[ack].now_ms - acks_[ack - 1].now_ms);
    }
    const double cap_before = cap();
    rounds_.push_back(round);
    rounds_.back().has_cap = cap() < kInfinite;
    reached_["ended caps"] += cap_before < kInfinite && cap() == kInfinite ? 1 : 0;
    reached_["fast rounds"] += is_fast_start() ? 1 : 0;
    round_end_ms_ = acks_.back().now_ms + smoothed_rtt_ms();
    judge(jump());
    if (static_cast<double>(rounds_.size() - epoch_first_round_) >= settings_.base_rtt_rounds) {
      end_epoch();
    }
  }

  void judge(Verdict verdict) {
    switch (verdict) {
      case Verdict::kTest:
        ++reached_["jump drains"];
        begin_drain();
        break;
      case Verdict::kAdopt:
        // This round trip is all that is known of the path.
        ++reached_["adopted jumps"];
        ++epochs_;
        base_begin_ = epoch_begin_ = rounds_.back().begin;
        epoch_first_round_ = rounds_.size() - 1;
        epoch_rtts_since_drain_ms_ = {rounds_.back().rtt_ms};
        break;
      case Verdict::kRefute:
        ++reached_["refuted jumps"];
        break;
      case Verdict::kAbandon:
        ++reached_["abandoned jumps"];
        break;
      case Verdict::kNone:
        break;
    }
  }

  // Decides at the last round trip whether the RTT has jumped, from all round trips of the on
  // period. A jump is a rise
  // by 5 % in a round trip. It is tested once three round trips are within 3 % of it, and adopted
  // after two more if none falls below. If the RTT moves before, it starts to be steady again, but
  // at most six times.
  Verdict jump() const {
    enum class State { kCalm, kMoving, kTested };
    State state = State::kCalm;
    double level_ms = 0;
    int steady = 0;
    int moves = 0;
    int tested = 0;
    Verdict verdict = Verdict::kNone;
    for (std::size_t i = 1; i < rounds_.size(); ++i) {
      const double rtt_ms = rounds_[i].rtt_ms;
      const double base_ms = rounds_[i].base_rtt_ms;
      verdict = Verdict::kNone;
      if (state == State::kCalm) {
        if (rtt_ms > 1.05 * rounds_[i - 1].rtt_ms && rtt_ms > 1.05 * base_ms) {
          state = State::kMoving;
          level_ms = rtt_ms;
          steady = moves = 0;
        }
      } else if (state == State::kTested) {
        ++tested;
        if (rtt_ms < level_ms * (1 - 0.03)) {
          state = State::kCalm;
          verdict = Verdict::kRefute;
        } else if (tested == 2) {
          state = State::kCalm;
          verdict = Verdict::kAdopt;
        }
      } else if (rtt_ms <= base_ms * (1 + 0.03)) {
        state = State::kCalm;
      } else if (rtt_ms <= level_ms * (1 + 0.03) && rtt_ms >= level_ms * (1 - 0.03)) {
        if (++steady == 3) {
          state = State::kTested;
          tested = 0;
          verdict = Verdict::kTest;
        }
      } else if (++moves > 6) {
        state = State::kCalm;
        verdict = Verdict::kAbandon;
      } else {
        level_ms = rtt_ms;
        steady = 0;
      }
    }
    return verdict;
  }

  // An epoch begins with the last round trip of the one before. If its least RTT is more than 1/32
  // above the least since the last drain of an epoch, it is tested.
  void end_epoch() {
    double epoch_rtt_ms = kInfinite;
    for (std::size_t ack = epoch_begin_; ack < acks_.size(); ++ack) {
      epoch_rtt_ms = std::min(epoch_rtt_ms, acks_[ack].rtt_ms);
    }
    if (epoch_rtt_ms > std::ranges::min(epoch_rtts_since_drain_ms_) * (1 + 1.0 / 32)) {
      ++reached_["epoch drains"];
      begin_drain();
      epoch_rtts_since_drain_ms_.clear();
    }
    epoch_rtts_since_drain_ms_.push_back(epoch_rtt_ms);
    const double base_before_ms = base_rtt_ms();
    ++epochs_;
    base_begin_ = epoch_begin_;
    epoch_begin_ = rounds_.back().begin;
    epoch_first_round_ = rounds_.size();
    reached_["expired bases"] += base_rtt_ms() > base_before_ms ? 1 : 0;
  }

  void begin_drain() {
    const double end_ms = acks_.back().now_ms + smoothed_rtt_ms();
    drains_.push_back(
        {end_ms, end_ms + smoothed_rtt_ms(),
         std::max(settings_.least_window_packets, rounds_.back().delivered_packets / 2), false});
  }

  PathSettings settings_;
  Reached reached_;
  double remembered_rtt_ms_ = kInfinite;

  std::vector<Ack> acks_;
  std::vector<Round> rounds_;      // complete ones
  double round_end_ms_ = 0;        // the earliest end of the current round trip
  std::size_t limits_set_at_ = 0;  // ACK whose smoothed RTT paces a capped sender

  // Epochs: how many are complete, the first ACK of the current one, its first round trip but the
  // one that it has from the epoch before, and the first ACK of the base RTT.
  std::size_t epochs_ = 0;
  std::size_t epoch_begin_ = 0;
  std::size_t epoch_first_round_ = 0;
  std::size_t base_begin_ = 0;
  std::vector<double> epoch_rtts_since_drain_ms_;

  std::vector<Drain> drains_;
  std::vector<Lowering> lowerings_;
  Returned returned_;
  std::vector<double> debts_;       // changes of the debt since it was set to 0
  std::size_t debt_counts_to_ = 0;  // the first ACK that it does not contain
};

}  // namespace remy
