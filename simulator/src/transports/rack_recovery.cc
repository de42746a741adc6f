#include "transports/rack_recovery.h"

#include <algorithm>

namespace remy {

void RackRecovery::start_connection(std::uint64_t first_packet) {
  LossRecovery::start_connection(first_packet);
  sent_.clear();
  sent_before_.clear();
  min_rtt_.clear();
  rack_number_ = 0;
  rack_rtt_ms_ = 0;
  fack_ = next_fack_ = first_packet;
  reordering_seen_ = false;
  reo_wnd_mult_ = 1;
  reo_wnd_persist_ = 0;
  dsack_round_.reset();
  first_retransmission_ms_ = kNever;
}

// Section 6.2, step 1.
void RackRecovery::on_rtt(double now_ms, double rtt_ms) {
  min_rtt_.update(kMinRttWindowMs, now_ms, rtt_ms);
}

void RackRecovery::on_sent(std::uint64_t packet, const Scoreboard::Transmission& transmission) {
  const DeliverySnapshot& sent = transmission.snapshot;
  sent_.push({packet, transmission.transmission_number, sent.sent_ms});
  // Outside of recovery it would be a tail loss probe.
  if (sent.is_retransmission && state_ != State::kOpen) {
    first_retransmission_ms_ = std::min(first_retransmission_ms_, sent.sent_ms);
  }
}

// Section 6.2, steps 2 and 3.
void RackRecovery::on_delivered(std::uint64_t packet, const Scoreboard::Transmission& transmission,
                                double time_stamp_ms, double now_ms) {
  const DeliverySnapshot& sent = transmission.snapshot;
  next_fack_ = std::max(next_fack_, packet + 1);
  reordering_seen_ |= packet < fack_ && !sent.is_retransmission;
  const double rtt_ms = now_ms - sent.sent_ms;
  // The original has arrived if the ACK has its time stamp, or comes less than min_RTT after the
  // retransmission.
  const bool is_original =
      sent.is_retransmission && (time_stamp_ms < sent.sent_ms || rtt_ms < min_rtt_.value());
  if (!is_original && transmission.transmission_number >= rack_number_) {
    rack_number_ = transmission.transmission_number + 1;
    rack_rtt_ms_ = rtt_ms;
  }
}

// RFC 3522: the ACK has the time stamp of a packet that was sent before the first retransmission.
// In recovery some of the packets may be lost nevertheless while retransmissions are outstanding.
bool RackRecovery::is_spurious(std::uint64_t newly_acked, double time_stamp_ms) const {
  if (state_ == State::kOpen || newly_acked == 0 || time_stamp_ms >= first_retransmission_ms_) {
    return false;
  }
  return state_ == State::kLoss || covers_recovery_point() || !has_retransmissions_out();
}

bool RackRecovery::has_retransmissions_out() const {
  for (std::uint64_t packet = scoreboard_.first(); packet < scoreboard_.end(); ++packet) {
    if (!scoreboard_.is_sacked(packet) && !scoreboard_.is_lost(packet) &&
        scoreboard_.at(packet).snapshot.is_retransmission) {
      return true;
    }
  }
  return false;
}

void RackRecovery::undo() {
  // A hole was filled by a late packet.
  reordering_seen_ |= state_ == State::kRecovery;
  leave_recovery();
  scoreboard_.unmark_all_lost();
  // What was marked lost may turn out to be so again.
  sent_before_.clear();
  for (std::uint64_t packet = scoreboard_.first(); packet < scoreboard_.end(); ++packet) {
    const Scoreboard::Transmission& transmission = scoreboard_.at(packet);
    if (!scoreboard_.is_sacked(packet) && transmission.transmission_number < rack_number_) {
      const Sent sent = {packet, transmission.transmission_number, transmission.snapshot.sent_ms};
      const auto later = std::ranges::upper_bound(sent_before_, sent.transmission_number, {},
                                                  &Sent::transmission_number);
      sent_before_.insert(later, sent);
    }
  }
}

void RackRecovery::leave_recovery() {
  state_ = State::kOpen;
  must_retransmit_ = false;
  first_retransmission_ms_ = kNever;
  // Section 6.2, step 4: RACK.reo_wnd_persist.
  if (reo_wnd_persist_ > 0 && --reo_wnd_persist_ == 0) {
    reo_wnd_mult_ = 1;
  }
}

// All packets from before the recovery are acknowledged. A loss since then is another congestion
// event, whether or not it has been retransmitted.
std::optional<std::uint64_t> RackRecovery::exit_recovery() {
  const double first_retransmission_ms = first_retransmission_ms_;
  leave_recovery();
  for (std::uint64_t packet = scoreboard_.first(); packet < scoreboard_.end(); ++packet) {
    const bool is_lost = scoreboard_.is_lost(packet);
    if (is_lost ||
        (!scoreboard_.is_sacked(packet) && scoreboard_.at(packet).snapshot.is_retransmission)) {
      enter_recovery(0);
      must_retransmit_ = is_lost;
      // Their ACKs must not pass for those of the originals (tcp_retrans_stamp_cleanup of Linux).
      if (has_retransmissions_out()) {
        first_retransmission_ms_ = first_retransmission_ms;
      }
      return packet;
    }
  }
  return std::nullopt;
}

std::span<const std::uint64_t> RackRecovery::detect_losses(const AckOfRecovery& ack) {
  fack_ = next_fack_;
  update_reordering_window(ack.is_duplicate);
  lost_.clear();
  mark_overdue(ack.now_ms, ack.smoothed_rtt_ms);
  return lost_;
}

std::span<const std::uint64_t> RackRecovery::on_reordering_timer(double now_ms,
                                                                 double smoothed_rtt_ms) {
  lost_.clear();
  mark_overdue(now_ms, smoothed_rtt_ms);
  return lost_;
}

// Section 6.2, step 4: each round trip with a DSACK widens the window.
void RackRecovery::update_reordering_window(bool is_duplicate) {
  if (dsack_round_ && scoreboard_.first() >= *dsack_round_) {
    dsack_round_.reset();
  }
  if (is_duplicate && !dsack_round_) {
    dsack_round_ = scoreboard_.end();
    ++reo_wnd_mult_;
    reo_wnd_persist_ = kReoWndPersist;
  }
}

double RackRecovery::reordering_window_ms(double smoothed_rtt_ms) const {
  if (!reordering_seen_ &&
      (state_ != State::kOpen || scoreboard_.sacked_count() >= duplicate_threshold_)) {
    return 0;
  }
  return std::min(static_cast<double>(reo_wnd_mult_) * min_rtt_.value() / 4, smoothed_rtt_ms);
}

// Section 6.2, step 5.
void RackRecovery::mark_overdue(double now_ms, double smoothed_rtt_ms) {
  for (; !sent_.empty() && sent_.front().transmission_number < rack_number_; sent_.pop()) {
    if (is_outstanding(sent_.front())) {
      sent_before_.push_back(sent_.front());
    }
  }
  const double timeout_ms = rack_rtt_ms_ + reordering_window_ms(smoothed_rtt_ms);
  double timer_ms = -kNever;
  std::erase_if(sent_before_, [&](const Sent& sent) {
    if (!is_outstanding(sent)) {
      return true;
    }
    // Packets sent together are lost together, and those due are lost when the timer expires,
    // however the sums are rounded.
    if (now_ms - sent.sent_ms >= timeout_ms || now_ms >= sent.sent_ms + timeout_ms) {
      scoreboard_.mark_lost(sent.packet);
      lost_.push_back(sent.packet);
      return true;
    }
    timer_ms = std::max(timer_ms, sent.sent_ms + timeout_ms);
    return false;
  });
  reordering_timer_ms_ = timer_ms > 0 ? timer_ms : kNever;
}

bool RackRecovery::is_outstanding(const Sent& sent) const {
  return sent.packet >= scoreboard_.first() && !scoreboard_.is_sacked(sent.packet) &&
         !scoreboard_.is_lost(sent.packet) &&
         scoreboard_.at(sent.packet).transmission_number == sent.transmission_number;
}

// Section 6.3: RACK_mark_losses_on_RTO().
std::uint64_t RackRecovery::mark_lost_on_timeout(double now_ms, double smoothed_rtt_ms) {
  const double timeout_ms = rack_rtt_ms_ + reordering_window_ms(smoothed_rtt_ms);
  const std::uint64_t in_flight_before = scoreboard_.in_flight();
  for (std::uint64_t packet = scoreboard_.first(); packet < scoreboard_.end(); ++packet) {
    if (scoreboard_.is_sacked(packet) || scoreboard_.is_lost(packet)) {
      continue;
    }
    if (packet == scoreboard_.first() ||
        now_ms - scoreboard_.at(packet).snapshot.sent_ms >= timeout_ms) {
      scoreboard_.mark_lost(packet);
    }
  }
  reordering_timer_ms_ = kNever;
  return in_flight_before - scoreboard_.in_flight();
}

}  // namespace remy
