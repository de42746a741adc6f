#include "senders/path_model.h"

namespace remy {

void PathModel::begin(double now_ms, double rtt_ms) {
  smoothed_rtt_ms_ = rtt_ms_ = rtt_ms;
  base_rtt_ms_ = std::min(base_rtt_ms_, rtt_ms);
  epoch_rtt_ms_ = rtt_ms;
  previous_epoch_rtt_ms_ = base_rtt_ms_;
  last_ack_ms_ = now_ms;
  debt_packets_ = 0;
  round_end_ms_ = event_ms_ = now_ms + rtt_ms;
  update_limits();
}

void PathModel::on_loss(double now_ms, double packets) {
  if (now_ms < quiet_until_ms_ || !(smoothed_rtt_ms_ > 0)) {
    return;
  }
  debt_packets_ += packets * (1 - settings_->tolerated_loss);
  if (debt_packets_ < settings_->loss_debt_packets) {
    return;
  }
  const double in_flight = std::max(last_delivered_, delivered_);
  cap_before_ = cap_;
  cap_ = std::max(settings_->least_window_packets,
                  settings_->loss_window * std::min(in_flight, cap_));
  growth_ = 0;
  quiet_until_ms_ = now_ms + smoothed_rtt_ms_;
  debt_packets_ = 0;
  update_limits();
}

void PathModel::on_event(double now_ms) {
  if (now_ms >= drain_end_ms_) {
    drain_end_ms_ = drain_cap_ = kInfinite;
  }
  if (now_ms >= round_end_ms_) {
    end_round(now_ms);
  }
  event_ms_ = std::min(round_end_ms_, drain_end_ms_);
  update_limits();
}

void PathModel::end_round(double now_ms) {
  if (cap_ < kInfinite && now_ms >= quiet_until_ms_) {
    growth_ += settings_->growth_packets;
    cap_ += growth_;
    if (cap_ > 4 * std::max(delivered_, 16.0)) {
      cap_ = kInfinite;
    }
  }
  gaps_ms_[0] = gaps_ms_[1];
  gaps_ms_[1] = gaps_ms_[2];
  gaps_ms_[2] = longest_gap_ms_;
  longest_gap_ms_ = 0;
  const double gap_ms = std::min({gaps_ms_[0], gaps_ms_[1], gaps_ms_[2]});
  const bool was_held = held_ms_ > 0;
  held_ms_ = gap_ms > settings_->held_ack_rtts * smoothed_rtt_ms_ ? gap_ms : 0;
  if (held_ms_ > 0 && !was_held) {
    recent_rtt_ms_.reset(now_ms, rtt_ms_);
  }
  if (settings_->standing_rtt > 0 && round_rtt_ms_ > settings_->standing_rtt * base_rtt_ms_ &&
      drain_end_ms_ == kInfinite) {
    drain_end_ms_ = now_ms + smoothed_rtt_ms_;
    drain_cap_ = std::max(settings_->least_window_packets, settings_->standing_fraction * delivered_);
  }
  last_delivered_ = delivered_;
  delivered_ = 0;
  round_rtt_ms_ = kInfinite;
  round_end_ms_ = now_ms + smoothed_rtt_ms_;
  if (++rounds_ >= settings_->epoch_rounds) {
    rounds_ = 0;
    end_epoch(now_ms);
  }
}

void PathModel::end_epoch(double now_ms) {
  if (x_[0] == 0) x_[0] = previous_epoch_rtt_ms_;
  const double anchor = settings_->xc > 0 ? x_[0] : previous_epoch_rtt_ms_;
  x_[0] = std::min(x_[0], epoch_rtt_ms_);
  if (epoch_rtt_ms_ > anchor * (1 + settings_->drain_rise)) {
    x_[0] = epoch_rtt_ms_;
    drain_end_ms_ = now_ms + smoothed_rtt_ms_;
    drain_cap_ = std::max(settings_->least_window_packets,
                          settings_->drain_fraction * last_delivered_);
  }
  previous_epoch_rtt_ms_ = epoch_rtt_ms_;
  epoch_rtt_ms_ = rtt_ms_;
  base_rtt_ms_ = std::min(previous_epoch_rtt_ms_, epoch_rtt_ms_);
}

void PathModel::update_limits() {
  most_packets_ = std::min(cap_, drain_cap_);
  least_intersend_ms_ = cap_ < kInfinite ? smoothed_rtt_ms_ / (settings_->paced_share * cap_) : 0;
  most_intersend_ms_ = smoothed_rtt_ms_;
}

void PathModel::on_ack(double now_ms, double rtt_ms, std::uint32_t packets) {
  if (!(smoothed_rtt_ms_ > 0)) [[unlikely]] {
    begin(now_ms, rtt_ms);
    return;
  }
  smoothed_rtt_ms_ += (rtt_ms - smoothed_rtt_ms_) / 8;
  delivered_ += packets;
  debt_packets_ = std::max(0.0, debt_packets_ - settings_->tolerated_loss * packets);
  base_rtt_ms_ = std::min(base_rtt_ms_, rtt_ms);
  epoch_rtt_ms_ = std::min(epoch_rtt_ms_, rtt_ms);
  round_rtt_ms_ = std::min(round_rtt_ms_, rtt_ms);
  longest_gap_ms_ = std::max(longest_gap_ms_, now_ms - last_ack_ms_);
  last_ack_ms_ = now_ms;
  rtt_ms_ = rtt_ms;
  if (held_ms_ > 0) [[unlikely]] {
    rtt_ms_ = recent_rtt_ms_.update(settings_->held_ack_window * held_ms_, now_ms, rtt_ms);
  }
  if (now_ms >= event_ms_) [[unlikely]] {
    on_event(now_ms);
  }
  if (settings_->reference_ms > 0) {
    const double scale = base_rtt_ms_ / settings_->reference_ms;
    const double factor = settings_->reference_mode == 1 ? scale : settings_->reference_mode == 0.5 ? std::sqrt(scale) : std::sqrt(scale)*std::sqrt(std::sqrt(scale));
    rtt_ms_ = base_rtt_ms_ + (rtt_ms_ - base_rtt_ms_) * factor;
  }
}


void PathModel::on_spurious_recovery() {
  debt_packets_ = 0;
  if (cap_before_ > 0) {
    cap_ = cap_before_;
    cap_before_ = 0;
    update_limits();
  }
}


double PathModel::limit_window(double packets) const {
  return std::max(std::min(packets + (smoothed_rtt_ms_>0?settings_->xa:0), most_packets_), settings_->least_window_packets);
}
double PathModel::limit_intersend(double ms) const {
  if (settings_->xb > 0 && smoothed_rtt_ms_ > 0) ms = ms * smoothed_rtt_ms_ / (smoothed_rtt_ms_ + settings_->xb * ms);
  return std::min(std::max(ms, least_intersend_ms_), most_intersend_ms_);
}


void PathModel::on_timeout(double now_ms, double packets) { on_loss(now_ms, packets); }

}  // namespace remy
