#include "protocols/pcc.h"

#include <algorithm>

namespace remy {

double MonitorInterval::rtt_slope() const {
  const double spread = rtt_count * time_square_sum - time_sum_ms * time_sum_ms;
  return rtt_count < 2 || spread <= 0
             ? 0
             : (rtt_count * time_rtt_sum - time_sum_ms * rtt_sum_ms) / spread;
}

void Pcc::start(double) {
  intervals_.clear();
  last_acked_ = 0;
  srtt_ms_ = 0;
  round_ = 0;
  must_start_interval_ = false;
  in_starting_phase_ = true;
  has_start_rate_ = false;
  best_start_utility_.reset();
  // The first two packets measure the RTT. The initial rate is two packets per RTT.
  cwnd_ = kInitialWindow;
  rate_per_ms_ = 0;
  pacing_interval_ms_ = 0;
  reset();
}

void Pcc::set_rate(double rate_per_ms) {
  const double least = std::min(kInitialWindow / srtt_ms_, kMaxRatePerMs);
  rate_per_ms_ = std::clamp(rate_per_ms, least, kMaxRatePerMs);
}

MonitorInterval* Pcc::find_interval(std::uint64_t serial) {
  for (auto interval = intervals_.rbegin(); interval != intervals_.rend(); ++interval) {
    if (serial >= interval->first_transmission) {
      return &*interval;
    }
  }
  return nullptr;
}

void Pcc::on_ack(const AckEvent& ack) {
  if (srtt_ms_ == 0) {
    srtt_ms_ = ack.rtt_ms;
    cwnd_ = kUnlimitedWindow;
    set_rate(kInitialWindow / ack.rtt_ms);
    pacing_interval_ms_ = 1 / rate_per_ms_;
    must_start_interval_ = true;
    return;
  }
  srtt_ms_ += (ack.rtt_ms - srtt_ms_) / 8;
  if (MonitorInterval* const interval = find_interval(ack.transmission_number);
      interval != nullptr) {
    // An ACK reports the transmission that it echoes, even an unnecessary one. It can report more
    // only of transmissions since the last one echoed, whose ACKs were delayed or lost: without
    // SACK, what a retransmission makes the cumulative ACK cover was received long before.
    const std::uint64_t since_last =
        ack.transmission_number - std::min(ack.transmission_number, last_acked_);
    const std::uint64_t packets =
        std::max<std::uint64_t>(std::min(ack.newly_delivered, since_last), 1);
    interval->acked = std::min(interval->acked + packets, interval->sent);
    const double time_ms = ack.sent_ms - interval->start_ms;
    interval->rtt_count += 1;
    interval->rtt_sum_ms += ack.rtt_ms;
    interval->time_sum_ms += time_ms;
    interval->time_square_sum += time_ms * time_ms;
    interval->time_rtt_sum += time_ms * ack.rtt_ms;
  }
  last_acked_ = std::max(last_acked_, ack.transmission_number);
  process_finished_intervals(ack.sent_ms);
}

void Pcc::on_loss(const LossEvent& loss) {
  if (MonitorInterval* const interval = find_interval(loss.transmission_number);
      interval != nullptr) {
    interval->lost = std::min(interval->lost + 1, interval->sent);
  }
}

// No ACK has arrived for a long time. What is in flight may arrive nevertheless.
void Pcc::on_timeout(const TimeoutEvent& timeout) {
  process_finished_intervals(timeout.now_ms - srtt_ms_);
}

// The results of an interval are complete when all its packets are acknowledged or lost, or when a
// packet is acknowledged that was sent an RTT after the interval. What is not acknowledged by then
// is lost, even if the transport does not know it yet: a lost retransmission without RACK, or any
// loss but the first of a window without SACK.
void Pcc::process_finished_intervals(double acknowledged_sent_ms) {
  while (!intervals_.empty() && intervals_.front().is_over) {
    MonitorInterval interval = intervals_.front();
    if (interval.acked + interval.lost < interval.sent &&
        acknowledged_sent_ms < interval.end_ms + srtt_ms_) {
      return;
    }
    intervals_.pop_front();
    interval.lost = interval.sent - interval.acked;
    const double value = utility(interval);
    if (interval.round != round_) {
      continue;
    }
    // An interval with much less data than its rate allows says nothing about that rate.
    const double planned = interval.rate_per_ms * (interval.end_ms - interval.start_ms);
    if (static_cast<double>(interval.sent) < 0.5 * planned) {
      if (in_starting_phase_ && interval.trial >= 0) {
        // Repeats the rate. Otherwise a series of timeouts, each with one packet, would double it
        // without limit.
        has_start_rate_ = false;
      } else if (interval.trial >= 0) {
        start_round();
        start_decision();
      }
      continue;
    }
    if (in_starting_phase_) {
      on_starting_result(interval, value);
    } else {
      on_result(interval, value);
    }
  }
}

bool Pcc::is_waiting_for_trials() const {
  // The latest interval has only just ended and cannot have results.
  const auto earlier = intervals_.empty() ? intervals_.end() : intervals_.end() - 1;
  return std::any_of(intervals_.begin(), earlier, [&](const MonitorInterval& interval) {
    return interval.round == round_ && interval.trial >= 0;
  });
}

void Pcc::on_sent(const SendEvent& sent) {
  if (srtt_ms_ == 0) {
    return;
  }
  if (intervals_.empty() || must_start_interval_ || sent.now_ms >= intervals_.back().end_ms) {
    start_interval(sent);
  }
  ++intervals_.back().sent;
}

void Pcc::start_interval(const SendEvent& sent) {
  if (!intervals_.empty()) {
    intervals_.back().is_over = true;
    intervals_.back().end_ms = sent.now_ms;
  }
  must_start_interval_ = false;
  const Trial trial = in_starting_phase_ ? next_doubling() : next_trial();
  MonitorInterval interval;
  interval.rate_per_ms = trial.rate_per_ms;
  interval.start_ms = sent.now_ms;
  interval.end_ms = sent.now_ms + interval_ms(trial.rate_per_ms);
  interval.first_transmission = sent.transmission_number;
  interval.round = round_;
  interval.trial = trial.number;
  intervals_.push_back(interval);
  pacing_interval_ms_ = 1 / trial.rate_per_ms;
}

// Starting phase (NSDI 2015, section 3.2): doubles the rate in each interval until utility falls.
Pcc::Trial Pcc::next_doubling() {
  if (is_waiting_for_trials()) {
    return {rate_per_ms_, -1};
  }
  if (has_start_rate_) {
    set_rate(2 * rate_per_ms_);
  }
  has_start_rate_ = true;
  return {rate_per_ms_, 0};
}

void Pcc::on_starting_result(const MonitorInterval& interval, double utility) {
  if (interval.trial < 0) {
    return;
  }
  if (best_start_utility_ && utility < *best_start_utility_) {
    set_rate(best_start_rate_per_ms_);
    in_starting_phase_ = false;
    start_round();
    start_decision();
    return;
  }
  best_start_utility_ = utility;
  best_start_rate_per_ms_ = interval.rate_per_ms;
}

}  // namespace remy
