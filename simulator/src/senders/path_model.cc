#include "senders/path_model.h"

#include <cmath>

namespace remy {

namespace {

// The base RTT: a rise of an epoch's least RTT that calls for a drain, and what is in flight then,
// of the packets that the last round trip delivered.
constexpr double kDrainRise = 1.0 / 32;
constexpr double kDrainFraction = 0.5;

// A jump of the path's RTT: it rises by this factor within a round trip, and is then within a
// tolerance for some round trips. A queue that others fill rises in many steps.
constexpr double kJumpFactor = 1.05;
constexpr double kJumpTolerance = 0.03;
constexpr std::uint32_t kSteadyRounds = 3;
constexpr std::uint32_t kMostChanges = 6;
constexpr std::uint32_t kTestRounds = 2;

// Losses: the cap grows by k times this in its k-th round trip, is sent at this pace, and ends when
// it exceeds this multiple of what a round trip delivers.
constexpr double kGrowthPackets = 0.125;
constexpr double kCapPace = 1.1;
constexpr double kCapEnd = 4;
constexpr double kLeastCapEnd = 64;
// A recovery that is found spurious later than this was not the one of the last losses.
constexpr std::uint32_t kRoundsToUndo = 3;

// The flight bound treats a round trip that delivered fewer packets than this as if it had
// delivered so many. Before the first ACK, the bound is kFirstFlight times this number.
constexpr double kLeastDelivered = 16;
constexpr double kFirstFlight = 4;

// The flight bound of a start. A round trip lies between the packets that are counted and those
// that are bounded, so that a start can have four times the pace in each round trip.
constexpr double kStartFlight = 16;

// The gap between ACKs, in RTTs, from which they count as held, and the gaps over which the least
// RTT then counts.
constexpr double kHeldGap = 0.3;
constexpr double kHeldWindow = 1.2;

// The start: rules' pace is raised by this factor after some round trips without a queue, which is
// an RTT above these multiples of the base RTT.
constexpr double kStartPace = 1.2;
constexpr std::uint32_t kStartRounds = 3;
constexpr double kQueueInRound = 1.03;
constexpr double kQueueOnAverage = 1.1;

// The whole packets of a limit, which may be infinite.
std::uint32_t whole(double packets) { return static_cast<std::uint32_t>(std::min(packets, 1e9)); }

}  // namespace

PathModel::PathModel(const PathSettings* settings)
    : settings_(settings),
      competition_(settings == nullptr ? 0 : settings->competition_rtt_ratio) {}

void PathModel::start(double remembered_rtt_ms) {
  *this = PathModel(settings_);
  base_rtt_ms_ = remembered_rtt_ms;
  most_packets_ = whole(kLeastDelivered * std::max(kFirstFlight, settings_->flight_bound));
}

// The first ACK begins the first round trip, and does not belong to it.
void PathModel::measure_first(double now_ms, double rtt_ms) {
  is_measured_ = true;
  smoothed_rtt_ms_ = rtt_ms;
  set_base_rtt(std::min(base_rtt_ms_, rtt_ms));
  epoch_rtt_ms_ = rtt_ms;
  previous_epoch_rtt_ms_ = tested_rtt_ms_ = base_rtt_ms_;
  round_rtt_ms_ = kInfinite;
  longest_gap_ms_ = 0;
  debt_counts_to_ = delivered_before_round_ = delivered_packets_;
  round_begin_ms_ = now_ms;
  round_end_ms_ = next_event_ms_ = now_ms + rtt_ms;
  competition_.on_path_change(base_rtt_ms_);
  update_limits();
}

void PathModel::set_base_rtt(double rtt_ms) {
  base_rtt_ms_ = rtt_ms;
  queue_factor_ =
      settings_->reference_rtt_ms > 0 ? std::sqrt(rtt_ms / settings_->reference_rtt_ms) : 1;
}

void PathModel::adopt_base_rtt(double rtt_ms) {
  previous_epoch_rtt_ms_ = epoch_rtt_ms_ = tested_rtt_ms_ = rtt_ms;
  epoch_rounds_ = 0;
  set_base_rtt(rtt_ms);
}

// Before the first round trip has ended, there is no delivery to cap the window to.
void PathModel::on_loss(double now_ms, std::uint32_t packets) {
  if (rounds_ == 0) {
    return;
  }
  if (competition_.is_on()) {
    competition_.on_loss(now_ms, smoothed_rtt_ms_);
    if (competition_.is_competing()) {
      update_limits();
      return;
    }
  }
  if (now_ms < deaf_until_ms_) {
    return;
  }
  const auto paid = static_cast<double>(delivered_packets_ - debt_counts_to_);
  debt_packets_ = std::max(0.0, debt_packets_ - settings_->tolerated_loss * paid) +
                  (1 - settings_->tolerated_loss) * packets;
  debt_counts_to_ = delivered_packets_;
  if (debt_packets_ < settings_->loss_debt_packets) {
    return;
  }
  const double in_flight = std::max(last_delivered_packets_, delivered_in_round());
  cap_before_packets_ = cap_packets_;
  cap_round_ = rounds_;
  cap_packets_ = std::max(settings_->least_window_packets,
                          settings_->loss_window * std::min(in_flight, cap_packets_));
  growth_packets_ = 0;
  deaf_until_ms_ = now_ms + smoothed_rtt_ms_;
  debt_packets_ = 0;
  update_limits();
}

void PathModel::on_timeout(double now_ms, std::uint32_t packets) {
  if (competition_.is_competing()) {
    competition_.on_timeout(now_ms, smoothed_rtt_ms_);
    update_limits();
  } else {
    on_loss(now_ms, packets);
  }
}

void PathModel::on_spurious_recovery() {
  if (competition_.is_competing()) {
    competition_.on_spurious_recovery();
    update_limits();
  }
  debt_packets_ = 0;
  debt_counts_to_ = delivered_packets_;
  if (cap_before_packets_ > 0 && rounds_ <= cap_round_ + kRoundsToUndo) {
    // The cap may have grown beyond it, or ended.
    cap_packets_ = std::max(cap_packets_, cap_before_packets_);
    cap_before_packets_ = 0;
    update_limits();
  }
}

double PathModel::on_event(double now_ms, double rtt_ms, std::uint32_t packets) {
  if (!is_measured_) {
    measure_first(now_ms, rtt_ms);
    return rtt_ms;
  }
  if (held_ms_ > 0) {
    rtt_ms = recent_rtt_ms_.update(kHeldWindow * held_ms_, now_ms, rtt_ms);
  }
  if (competition_.is_competing()) {
    competition_.on_ack(now_ms, rtt_ms, packets, smoothed_rtt_ms_);
    if (!competition_.is_competing()) {
      adopt_base_rtt(competition_.base_rtt_ms());
    }
    update_limits();
  }
  if (now_ms >= std::min(round_end_ms_, drain_end_ms_)) {
    if (now_ms >= drain_end_ms_) {
      drain_end_ms_ = drain_packets_ = kInfinite;
    }
    if (now_ms >= round_end_ms_) {
      end_round(now_ms, rtt_ms);
    }
    update_limits();
  }
  const bool needs_all_acks = held_ms_ > 0 || competition_.is_competing();
  next_event_ms_ = needs_all_acks ? -kInfinite : std::min(round_end_ms_, drain_end_ms_);
  return rtt_ms;
}

void PathModel::end_round(double now_ms, double rtt_ms) {
  ++rounds_;
  before_last_delivered_packets_ = last_delivered_packets_;
  epoch_rtt_ms_ = std::min(epoch_rtt_ms_, round_rtt_ms_);
  if (competition_.is_on()) {
    update_competition(now_ms);
  }
  round_begin_ms_ = now_ms;
  grow_cap(now_ms);
  watch_for_held_acks(now_ms, rtt_ms);
  has_seen_queue_ |= round_rtt_ms_ > kQueueInRound * base_rtt_ms_ ||
                     smoothed_rtt_ms_ > kQueueOnAverage * base_rtt_ms_ || cap_packets_ < kInfinite;
  start_divisor_ = !has_seen_queue_ && rounds_ >= kStartRounds ? kStartPace : 1;
  if (!competition_.is_competing()) {
    watch_for_jump(now_ms);
  }
  last_delivered_packets_ = delivered_in_round();
  delivered_before_round_ = delivered_packets_;
  last_round_rtt_ms_ = round_rtt_ms_;
  round_rtt_ms_ = kInfinite;
  round_end_ms_ = now_ms + smoothed_rtt_ms_;
  if (++epoch_rounds_ >= settings_->base_rtt_rounds) {
    end_epoch(now_ms);
  }
}

// The next epoch starts with the last round's RTT, so that the base RTT is always a measured one.
void PathModel::end_epoch(double now_ms) {
  if (epoch_rtt_ms_ > tested_rtt_ms_ * (1 + kDrainRise)) {
    tested_rtt_ms_ = epoch_rtt_ms_;
    if (!competition_.is_competing()) {
      begin_drain(now_ms);
    }
  }
  tested_rtt_ms_ = std::min(tested_rtt_ms_, epoch_rtt_ms_);
  previous_epoch_rtt_ms_ = epoch_rtt_ms_;
  epoch_rtt_ms_ = last_round_rtt_ms_;
  epoch_rounds_ = 0;
  set_base_rtt(std::min(previous_epoch_rtt_ms_, epoch_rtt_ms_));
}

// A path that changes at once need not wait for the end of two epochs: after a jump of the RTT and
// some steady round trips, a drain tells whether it is the path's own.
void PathModel::watch_for_jump(double now_ms) {
  const double rtt_ms = round_rtt_ms_;
  const bool is_above = rtt_ms > jump_.rtt_ms * (1 + kJumpTolerance);
  const bool is_below = rtt_ms < jump_.rtt_ms * (1 - kJumpTolerance);
  if (jump_.rtt_ms == 0) {
    if (last_round_rtt_ms_ > 0 && rtt_ms > kJumpFactor * last_round_rtt_ms_ &&
        rtt_ms > kJumpFactor * base_rtt_ms_) {
      jump_ = {.rtt_ms = rtt_ms};
    }
  } else if (jump_.test_rounds > 0) {
    if (is_below) {
      jump_ = {};
    } else if (--jump_.test_rounds == 0) {
      adopt_base_rtt(rtt_ms);
      competition_.on_path_change(rtt_ms);
      jump_ = {};
    }
  } else if (rtt_ms <= base_rtt_ms_ * (1 + kJumpTolerance)) {
    jump_ = {};
  } else if (is_above || is_below) {
    jump_.rtt_ms = ++jump_.changes > kMostChanges ? 0 : rtt_ms;
    jump_.steady = 0;
  } else if (++jump_.steady >= kSteadyRounds) {
    jump_.test_rounds = kTestRounds;
    last_delivered_packets_ = delivered_in_round();
    begin_drain(now_ms);
  }
}

void PathModel::begin_drain(double now_ms) {
  drain_end_ms_ = now_ms + smoothed_rtt_ms_;
  drain_passed_ms_ = drain_end_ms_ + smoothed_rtt_ms_;
  drain_packets_ =
      std::max(settings_->least_window_packets, kDrainFraction * last_delivered_packets_);
}

// A competing sender neither drains nor looks for jumps, and its losses cause no debt.
void PathModel::update_competition(double now_ms) {
  const bool was_competing = competition_.is_competing();
  competition_.on_round({.now_ms = now_ms,
                         .length_ms = now_ms - round_begin_ms_,
                         .rtt_ms = round_rtt_ms_,
                         .smoothed_rtt_ms = smoothed_rtt_ms_,
                         .delivered_packets = delivered_in_round()});
  if (was_competing && !competition_.is_competing()) {
    adopt_base_rtt(competition_.base_rtt_ms());
  } else if (!was_competing && competition_.is_competing()) {
    cap_packets_ = drain_packets_ = drain_end_ms_ = kInfinite;
    cap_before_packets_ = debt_packets_ = 0;
    jump_ = {};
  }
}

void PathModel::grow_cap(double now_ms) {
  if (cap_packets_ == kInfinite || now_ms < deaf_until_ms_) {
    return;
  }
  growth_packets_ += kGrowthPackets;
  cap_packets_ += growth_packets_;
  if (cap_packets_ > std::max(kCapEnd * delivered_in_round(), kLeastCapEnd)) {
    cap_packets_ = kInfinite;
  }
}

void PathModel::watch_for_held_acks(double now_ms, double rtt_ms) {
  gaps_ms_ = {gaps_ms_[1], gaps_ms_[2], longest_gap_ms_};
  longest_gap_ms_ = 0;
  const double gap_ms = std::ranges::min(gaps_ms_);
  const bool were_held = held_ms_ > 0;
  held_ms_ = gap_ms > kHeldGap * smoothed_rtt_ms_ ? gap_ms : 0;
  if (held_ms_ > 0 && !were_held) {
    recent_rtt_ms_.reset(now_ms, rtt_ms);
  }
}

void PathModel::update_limits() {
  if (competition_.is_competing()) {
    most_packets_ = least_packets_ = whole(competition_.window_packets());
    least_intersend_ms_ = most_intersend_ms_ =
        smoothed_rtt_ms_ / (CompetitiveMode::kPace * competition_.window_packets());
    return;
  }
  least_packets_ = whole(settings_->least_window_packets);
  const double delivered =
      std::max({kLeastDelivered, last_delivered_packets_, before_last_delivered_packets_});
  const double most = settings_->flight_bound;
  const double bound = (has_seen_queue_ ? most : std::max(most, kStartFlight)) * delivered;
  most_packets_ = whole(std::min({cap_packets_, drain_packets_, bound}));
  least_intersend_ms_ = smoothed_rtt_ms_ / std::min(kCapPace * cap_packets_, bound);
  most_intersend_ms_ = smoothed_rtt_ms_;
  additive_per_ms_ = settings_->additive_packets / smoothed_rtt_ms_;
}

}  // namespace remy
