#include "protocols/pcc.h"

#include <algorithm>

namespace remy {

double MonitorInterval::rtt_slope() const {
  const double spread = rtts * squared_times - times_ms * times_ms;
  return rtts < 2 || spread <= 0 ? 0 : (rtts * times_by_rtts - times_ms * rtts_ms) / spread;
}

void Pcc::start(double) {
  intervals_.clear();
  smoothed_rtt_ms_ = 0;
  round_ = 0;
  is_realigning_ = false;
  is_starting_ = true;
  has_doubled_ = false;
  start_utility_.reset();
  // Two packets show the RTT, of which the first rate is two packets.
  cwnd_ = kFirstWindow;
  rate_per_ms_ = 0;
  pacing_interval_ms_ = 0;
  reset();
}

void Pcc::set_rate(double rate_per_ms) {
  const double least = std::min(kFirstWindow / smoothed_rtt_ms_, kLargestRatePerMs);
  rate_per_ms_ = std::clamp(rate_per_ms, least, kLargestRatePerMs);
}

MonitorInterval* Pcc::find(std::uint64_t serial) {
  for (auto interval = intervals_.rbegin(); interval != intervals_.rend(); ++interval) {
    if (serial >= interval->first_serial) {
      return &*interval;
    }
  }
  return nullptr;
}

void Pcc::on_ack(const AckEvent& ack) {
  if (smoothed_rtt_ms_ == 0) {
    smoothed_rtt_ms_ = ack.rtt_ms;
    cwnd_ = kWindow;
    set_rate(kFirstWindow / ack.rtt_ms);
    pacing_interval_ms_ = 1 / rate_per_ms_;
    is_realigning_ = true;
    return;
  }
  smoothed_rtt_ms_ += (ack.rtt_ms - smoothed_rtt_ms_) / 8;
  if (MonitorInterval* const interval = find(ack.transmission_number); interval != nullptr) {
    interval->acknowledged =
        std::min(interval->acknowledged + ack.newly_delivered, interval->sent - interval->lost);
    const double time_ms = ack.sent_ms - interval->start_ms;
    interval->rtts += 1;
    interval->rtts_ms += ack.rtt_ms;
    interval->times_ms += time_ms;
    interval->squared_times += time_ms * time_ms;
    interval->times_by_rtts += time_ms * ack.rtt_ms;
  }
  finish(ack.sent_ms);
}

void Pcc::on_loss(const LossEvent& loss) {
  if (MonitorInterval* const interval = find(loss.transmission_number); interval != nullptr) {
    interval->lost = std::min(interval->lost + 1, interval->sent - interval->acknowledged);
  }
}

void Pcc::on_timeout(const TimeoutEvent&) {
  for (MonitorInterval& interval : intervals_) {
    interval.lost = interval.sent - interval.acknowledged;
  }
  finish(0);
}

// All packets of an interval are known when each is acknowledged or lost; or, where ACKs were lost,
// when one is acknowledged that left an RTT after it.
void Pcc::finish(double acknowledged_sent_ms) {
  while (!intervals_.empty() && intervals_.front().is_over) {
    const MonitorInterval interval = intervals_.front();
    if (interval.acknowledged + interval.lost < interval.sent &&
        acknowledged_sent_ms < interval.end_ms + smoothed_rtt_ms_) {
      return;
    }
    intervals_.pop_front();
    const double value = utility(interval);
    if (interval.round != round_) {
      continue;
    }
    // An interval that had less to send than its rate shows nothing of it.
    const double planned = interval.rate_per_ms * (interval.end_ms - interval.start_ms);
    if (static_cast<double>(interval.sent) < 0.5 * planned) {
      if (is_starting_ && interval.trial >= 0) {
        // Its rate is tried again: timeouts, each with a packet, must not double it without end.
        has_doubled_ = false;
      } else if (interval.trial >= 0) {
        begin_round();
        begin();
      }
      continue;
    }
    if (is_starting_) {
      learnt_at_start(interval, value);
    } else {
      learnt(interval, value);
    }
  }
}

bool Pcc::is_waiting_for_trials() const {
  // Of the interval that is just over nothing can be known yet.
  const auto earlier = intervals_.empty() ? intervals_.end() : intervals_.end() - 1;
  return std::any_of(intervals_.begin(), earlier, [&](const MonitorInterval& interval) {
    return interval.round == round_ && interval.trial >= 0;
  });
}

void Pcc::on_sent(const SendEvent& sent) {
  if (smoothed_rtt_ms_ == 0) {
    return;
  }
  if (intervals_.empty() || is_realigning_ || sent.now_ms >= intervals_.back().end_ms) {
    open(sent);
  }
  ++intervals_.back().sent;
}

void Pcc::open(const SendEvent& sent) {
  if (!intervals_.empty()) {
    intervals_.back().is_over = true;
    intervals_.back().end_ms = sent.now_ms;
  }
  is_realigning_ = false;
  const Trial trial = is_starting_ ? next_doubling() : next_trial();
  MonitorInterval interval;
  interval.rate_per_ms = trial.rate_per_ms;
  interval.start_ms = sent.now_ms;
  interval.end_ms = sent.now_ms + interval_ms(trial.rate_per_ms);
  interval.first_serial = sent.transmission_number;
  interval.round = round_;
  interval.trial = trial.number;
  intervals_.push_back(interval);
  pacing_interval_ms_ = 1 / trial.rate_per_ms;
}

// NSDI 2015, section 3.2: twice the rate in each interval, until utility falls.
Pcc::Trial Pcc::next_doubling() {
  if (is_waiting_for_trials()) {
    return {rate_per_ms_, -1};
  }
  if (has_doubled_) {
    set_rate(2 * rate_per_ms_);
  }
  has_doubled_ = true;
  return {rate_per_ms_, 0};
}

void Pcc::learnt_at_start(const MonitorInterval& interval, double utility) {
  if (interval.trial < 0) {
    return;
  }
  if (start_utility_ && utility < *start_utility_) {
    set_rate(start_rate_per_ms_);
    is_starting_ = false;
    begin_round();
    begin();
    return;
  }
  start_utility_ = utility;
  start_rate_per_ms_ = interval.rate_per_ms;
}

}  // namespace remy
