#include "senders/competitive_mode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/random.h"

namespace remy {

namespace {

// The detector needs so many round trips in which a queue stands, and up to kRoundsSpread more.
// Each sender draws its own number, so that equal senders do not begin to compete at the same time.
constexpr double kRounds = 10;
constexpr double kRoundsSpread = 0.4;
constexpr double kRoundsIfKnown = 5;
// A long path needs fewer round trips, which last about this time.
constexpr double kStandingMs = 3000;
constexpr double kLeastRounds = 5;
// A smaller queue does not count. It is computed with the sender's highest rate so far.
constexpr double kLeastQueuePackets = 2;
// A sender does not compete above this multiple of the path's RTT.
constexpr double kMostRttRatio = 14;
// A false alarm raises the threshold to this multiple of the queue that stood. It falls back by
// this fraction in each round trip.
constexpr double kBeyondFalseAlarm = 1.15;
constexpr double kMostThreshold = 4;
constexpr double kForgotten = 1.0 / 8192;
// A spike: by how much the RTT rises, what it falls back to, and in how many round trips.
constexpr double kSpikeRatio = 1.6;
constexpr double kAfterSpikeRatio = 1.15;
constexpr std::uint32_t kMostSpikeRounds = 8;
constexpr std::uint32_t kStartRounds = 6;
// Losses are late below this fraction of the highest rate. So many call for competition; they are
// forgotten by this fraction in each round trip.
constexpr double kLateRate = 0.5;
constexpr double kMostLateLosses = 1.5;
constexpr double kLateLossesForgotten = 1.0 / 64;
// Fewer packets in a round trip do not measure a rate.
constexpr double kLeastRatePackets = 4;

// Cubic (RFC 9438) with C and beta. C, and the growth of W_est, are multiplied by the square root
// of the others' window over one's own, within limits, so that unequal windows approach each other.
constexpr double kC = 1.2;
constexpr double kBeta = 0.7;
constexpr double kLeastGrowth = 0.3;
constexpr double kMostGrowth = 2;
constexpr double kLeastWindow = 2;
// For so long after a competition with losses, competitors count as known.
constexpr double kKnownMs = 30'000;

// The ceiling of the RTT: a multiple of the one at the beginning, which doubles within this time,
// or of the one at the first loss.
constexpr double kCeiling = 2;
constexpr double kCeilingDoublesMs = 6000;
constexpr double kCeilingOfLoss = 1.5;
constexpr double kMostRestRounds = 320;
constexpr double kMostRestRoundRtts = 2;  // base RTTs that a round trip of a rest has at most
constexpr double kMostRestMs = 10'000;

// The others' window is estimated in a ramp once the window has grown by kRampGrowth of itself and
// the RTT by kRampRttGrowth of itself.
constexpr double kRampGrowth = 0.5;
constexpr double kRampRttGrowth = 0.02;

// Probes. One follows a ramp by so many round trips, the next ones by times that double.
constexpr double kRoundsAfterRamp = 2;
constexpr double kFirstIntervalMs = 5000;
constexpr double kMostIntervalMs = 40'000;
constexpr double kIntervalRounds = 30;
constexpr double kProbeRounds = 1.5;
// A rate of this multiple of the last shared one calls for a probe.
constexpr double kOthersLeft = 1.5;
// A probe begins only above this RTT over base RTT, because it needs a queue to measure.
constexpr double kQueueRatio = 1.1;
// A probe finds the queue empty up to this RTT over base RTT.
constexpr double kNoQueueRatio = 1.054;
// The following limits are of the others' window over the sender's own.
// With an empty queue and less than this, the sender is alone.
constexpr double kAlone = 0.2;
// Below this at the first probe, the others have given way without a loss, as only equal senders
// do.
constexpr double kGivenWay = 0.5;
// Above this the window ramps again.
constexpr double kFarBehind = 4;
// Up to this, and down to its inverse, the windows count as equal.
constexpr double kEqual = 1.5;
// After a probe the window is at most this multiple of the others', but at least this part of
// itself.
constexpr double kMostOfOthers = 1.5;
constexpr double kLeastOfOwn = 0.85;
// An RTT that moves by less than this part of itself in a probe is the path's own.
constexpr double kFlat = 0.01;
constexpr double kLeastDelayMs = 0.01;

}  // namespace

bool CompetitorDetector::on_round(const RoundTrip& round, double base_rtt_ms) {
  ++rounds_;
  std::shift_right(rtts_ms_.begin(), rtts_ms_.end(), 1);
  rtts_ms_.front() = round.rtt_ms;
  rate_per_ms_ = round.delivered_packets / round.length_ms;
  if (round.delivered_packets >= kLeastRatePackets) {
    highest_rate_per_ms_ = std::max(highest_rate_per_ms_, rate_per_ms_);
  }
  late_losses_ *= 1 - kLateLossesForgotten;
  threshold_ = std::max(rtt_ratio_, threshold_ * (1 - kForgotten));
  if (watch_for_spike(round, base_rtt_ms) || round.rtt_ms <= threshold_ * base_rtt_ms) {
    standing_rounds_ = 0;
  } else {
    standing_rtt_ms_ =
        standing_rounds_ == 0 ? round.rtt_ms : std::min(standing_rtt_ms_, round.rtt_ms);
    ++standing_rounds_;
  }
  if (rounds_needed_ == 0) {
    // Round trips of different senders end at different times.
    const double draw = unit_interval(scramble(std::bit_cast<std::uint64_t>(round.now_ms)));
    rounds_needed_ = kRounds * (1 + kRoundsSpread * draw);
  }
  const double needed =
      round.now_ms < known_until_ms_
          ? kRoundsIfKnown
          : std::min(rounds_needed_, std::max(kLeastRounds, kStandingMs / base_rtt_ms));
  if (rounds_ >= needed && late_losses_ > kMostLateLosses) {
    standing_rtt_ms_ = round.rtt_ms;
    return true;
  }
  return standing_rounds_ >= needed && standing_rtt_ms_ < kMostRttRatio * base_rtt_ms &&
         (standing_rtt_ms_ - base_rtt_ms) * highest_rate_per_ms_ > kLeastQueuePackets;
}

// Returns true during a spike.
bool CompetitorDetector::watch_for_spike(const RoundTrip& round, double base_rtt_ms) {
  if (spike_rounds_ == 0) {
    // The sender's own start makes a spike as well.
    if (rounds_ > kStartRounds && rtts_ms_.back() > 0 &&
        round.rtt_ms > kSpikeRatio * rtts_ms_.back()) {
      spike_rounds_ = 1;
      rtt_before_spike_ms_ = rtts_ms_.back();
    }
    return spike_rounds_ > 0;
  }
  ++spike_rounds_;
  const bool has_ended = round.rtt_ms <= kAfterSpikeRatio * rtt_before_spike_ms_;
  if (has_ended) {
    on_false_alarm(std::max(round.rtt_ms, rtt_before_spike_ms_), base_rtt_ms);
  }
  if (has_ended || spike_rounds_ > kMostSpikeRounds) {
    spike_rounds_ = 0;
  }
  return true;
}

void CompetitorDetector::on_loss(double base_rtt_ms) {
  if (rtts_ms_.front() > rtt_ratio_ * base_rtt_ms &&
      rate_per_ms_ < kLateRate * highest_rate_per_ms_) {
    ++late_losses_;
  }
}

double CompetitorDetector::begin_competition() {
  late_losses_ = 0;
  rounds_needed_ = 0;
  standing_rounds_ = spike_rounds_ = 0;
  return standing_rtt_ms_;
}

void CompetitorDetector::end_competition(double known_until_ms) {
  rounds_ = 0;
  rtts_ms_ = {};
  known_until_ms_ = known_until_ms;
}

void CompetitorDetector::on_false_alarm(double rtt_ms, double base_rtt_ms) {
  threshold_ =
      std::max(threshold_, std::min(kBeyondFalseAlarm * rtt_ms / base_rtt_ms, kMostThreshold));
}

CubicGrowth CompetitiveMode::cubic() { return {kC, kBeta, true}; }

void CompetitiveMode::on_round(const RoundTrip& round) {
  base_rtt_ms_ = std::min(base_rtt_ms_, round.rtt_ms);
  rtt_ms_ = round.rtt_ms;
  rate_per_ms_ = round.delivered_packets / round.length_ms;
  if (state_ == State::kAlone) {
    if (round.now_ms >= rest_until_ms_ && detector_.on_round(round, base_rtt_ms_)) {
      begin(round);
    }
    return;
  }
  if (state_ == State::kProbe) {
    return;
  }
  if (state_ == State::kRamp) {
    end_ramp_beside_others(round);
  }
  if (is_above_ceiling(round)) {
    end_after_false_alarm(round.now_ms, round.smoothed_rtt_ms);
  } else if (state_ == State::kCompete && must_probe(round)) {
    begin_probe(round);
  }
}

void CompetitiveMode::begin(const RoundTrip& round) {
  state_ = State::kRamp;
  begin_ms_ = round.now_ms;
  first_rtt_ms_ = std::min(round.rtt_ms, detector_.begin_competition());
  first_loss_rtt_ms_ = 0;
  undo_ = {};
  cubic_ = cubic();
  set_window(round.delivered_packets);
  ramp_packets_ = round.delivered_packets + 1;
  ramp_rtt_ms_ = round.rtt_ms;
  last_cwnd_ = ramp_packets_;
  is_first_probe_ = true;
  probe_interval_ms_ = kFirstIntervalMs;
}

void CompetitiveMode::end(double now_ms) {
  state_ = State::kAlone;
  detector_.end_competition(first_loss_rtt_ms_ > 0 ? now_ms + kKnownMs : 0);
}

// Rests for a time that doubles, so that senders of a kind do not compete again and again.
void CompetitiveMode::end_after_false_alarm(double now_ms, double smoothed_rtt_ms) {
  const double round_ms = std::min(smoothed_rtt_ms, kMostRestRoundRtts * base_rtt_ms_);
  rest_until_ms_ = now_ms + std::min(rest_rounds_ * round_ms, kMostRestMs);
  rest_rounds_ = std::min(2 * rest_rounds_, kMostRestRounds);
  if (first_loss_rtt_ms_ == 0) {
    detector_.on_false_alarm(first_rtt_ms_, base_rtt_ms_);
  }
  end(now_ms);
}

void CompetitiveMode::set_window(double packets) {
  cwnd_ = std::max(packets, kLeastWindow);
  cubic_.reset();
}

void CompetitiveMode::begin_cubic(double probe_at_ms) {
  state_ = State::kCompete;
  probe_at_ms_ = probe_at_ms;
}

// Ends the ramp once the window is larger than that of the others. The capacity of the path is the
// growth of the window up to a round trip ago over the rise of the RTT that it caused; what the
// path and its queue hold at this capacity, less the sender's own window, is the others'.
void CompetitiveMode::end_ramp_beside_others(const RoundTrip& round) {
  const double added_packets = last_cwnd_ - ramp_packets_;
  const double delay_ms = round.rtt_ms - ramp_rtt_ms_;
  const double window = last_cwnd_;
  last_cwnd_ = cwnd_;
  if (added_packets <= kRampGrowth * ramp_packets_ || delay_ms <= kRampRttGrowth * round.rtt_ms) {
    return;
  }
  const double others = added_packets / delay_ms * round.rtt_ms - window;
  if (window > others) {
    set_window(window);
    shared_rate_per_ms_ = cwnd_ / round.rtt_ms;
    begin_cubic(round.now_ms + kRoundsAfterRamp * round.smoothed_rtt_ms);
  }
}

// Returns true if the RTT is so high that there is no competitor: one would have lost packets.
bool CompetitiveMode::is_above_ceiling(const RoundTrip& round) const {
  const double growth = std::min(1.0, (round.now_ms - begin_ms_) / kCeilingDoublesMs);
  const double ceiling_ms = kCeiling * first_rtt_ms_ * (1 + growth);
  return round.rtt_ms > (first_loss_rtt_ms_ > 0
                             ? std::max(ceiling_ms, kCeilingOfLoss * first_loss_rtt_ms_)
                             : std::min(ceiling_ms, kMostRttRatio * base_rtt_ms_));
}

bool CompetitiveMode::must_probe(const RoundTrip& round) const {
  const bool have_others_left = rate_per_ms_ > kOthersLeft * shared_rate_per_ms_;
  return (round.now_ms >= probe_at_ms_ || have_others_left) && round.now_ms >= deaf_until_ms_ &&
         round.rtt_ms > kQueueRatio * base_rtt_ms_;
}

void CompetitiveMode::begin_probe(const RoundTrip& round) {
  state_ = State::kProbe;
  probe_begin_ms_ = round.now_ms;
  probe_end_ms_ = round.now_ms + kProbeRounds * round.smoothed_rtt_ms;
  rtt_before_probe_ms_ = least_rtt_ms_ = highest_rtt_ms_ = round.smoothed_rtt_ms;
  cwnd_before_probe_ = cwnd_;
  probe_packets_ = std::max(kLeastWindow, cwnd_ * base_rtt_ms_ / round.smoothed_rtt_ms);
}

// A probe takes packets out of the queue. The capacity of the path is their number over the fall of
// the RTT; what the path and its queue still hold, less the probe's window, is the others'.
void CompetitiveMode::end_probe(double now_ms, double smoothed_rtt_ms) {
  base_rtt_ms_ = std::min(base_rtt_ms_, least_rtt_ms_);
  if (highest_rtt_ms_ - least_rtt_ms_ < kFlat * least_rtt_ms_) {
    base_rtt_ms_ = least_rtt_ms_;
    end(now_ms);
    return;
  }
  const double capacity_per_ms = (cwnd_before_probe_ - probe_packets_) /
                                 std::max(rtt_before_probe_ms_ - least_rtt_ms_, kLeastDelayMs);
  const double others = std::max(capacity_per_ms * least_rtt_ms_ - probe_packets_, kLeastWindow);
  const double ratio = others / cwnd_;
  const bool had_loss = first_loss_rtt_ms_ > 0;
  if (std::exchange(is_first_probe_, false) && !had_loss && ratio < kGivenWay) {
    end_after_false_alarm(now_ms, smoothed_rtt_ms);
    return;
  }
  if (least_rtt_ms_ <= kNoQueueRatio * base_rtt_ms_ && ratio < kAlone) {
    if (!had_loss) {
      detector_.on_false_alarm(first_rtt_ms_, base_rtt_ms_);
    }
    end(now_ms);
    return;
  }
  // Without losses so far, nobody may be there who fills the queue.
  const double growth = std::clamp(std::sqrt(ratio), kLeastGrowth, had_loss ? kMostGrowth : 1);
  const double most = std::max(kMostOfOthers * others, kLeastOfOwn * cwnd_);
  if (most < cwnd_) {
    set_window(most);
  } else {
    cubic_.delay_epoch(now_ms - probe_begin_ms_);
  }
  cubic_.set_scale(growth);
  shared_rate_per_ms_ = cwnd_ / rtt_before_probe_ms_;
  const bool is_equal = ratio < kEqual && ratio > 1 / kEqual;
  probe_interval_ms_ =
      is_equal ? std::min(2 * probe_interval_ms_, kMostIntervalMs) : kFirstIntervalMs;
  begin_cubic(now_ms + std::max(probe_interval_ms_, kIntervalRounds * smoothed_rtt_ms));
  if (had_loss && ratio > kFarBehind) {
    state_ = State::kRamp;
    ramp_packets_ = last_cwnd_ = cwnd_;
    ramp_rtt_ms_ = rtt_ms_;
  }
}

void CompetitiveMode::on_ack(double now_ms, double rtt_ms, double packets, double smoothed_rtt_ms) {
  if (state_ == State::kProbe) {
    least_rtt_ms_ = std::min(least_rtt_ms_, rtt_ms);
    highest_rtt_ms_ = std::max(highest_rtt_ms_, rtt_ms);
    if (now_ms >= probe_end_ms_) {
      end_probe(now_ms, smoothed_rtt_ms);
    }
  } else if (now_ms >= deaf_until_ms_) {
    cwnd_ = state_ == State::kRamp ? cwnd_ + packets
                                   : cubic_.increase(cwnd_, now_ms, packets, smoothed_rtt_ms);
  }
}

void CompetitiveMode::on_loss(double now_ms, double smoothed_rtt_ms) {
  if (now_ms < deaf_until_ms_) {
    return;
  }
  deaf_until_ms_ = now_ms + smoothed_rtt_ms;
  if (state_ == State::kAlone) {
    detector_.on_loss(base_rtt_ms_);
    return;
  }
  undo_ = {cwnd_, cubic_};
  if (first_loss_rtt_ms_ == 0) {
    first_loss_rtt_ms_ = rtt_ms_;
    rest_rounds_ = kFirstRest;
  }
  cwnd_ = cubic_.reduce(cwnd_);
  if (state_ == State::kRamp) {
    shared_rate_per_ms_ = rate_per_ms_;
    begin_cubic(now_ms + kRoundsAfterRamp * smoothed_rtt_ms);
  }
}

void CompetitiveMode::on_timeout(double now_ms, double smoothed_rtt_ms) {
  if (state_ == State::kAlone) {
    return;
  }
  deaf_until_ms_ = 0;
  on_loss(now_ms, smoothed_rtt_ms);
  set_window(cwnd_ / 2);
}

void CompetitiveMode::on_spurious_recovery() {
  if (undo_.cwnd > cwnd_) {
    cwnd_ = undo_.cwnd;
    cubic_ = undo_.cubic;
  }
  undo_ = {};
}

}  // namespace remy
