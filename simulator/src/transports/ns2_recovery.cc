#include "transports/ns2_recovery.h"

#include <algorithm>

namespace remy {

void Ns2LinuxRecovery::start_connection(std::uint64_t first_packet) {
  LossRecovery::start_connection(first_packet);
  retransmissions_.clear();
}

std::optional<std::uint64_t> Ns2LinuxRecovery::exit_recovery() {
  state_ = State::kOpen;
  must_retransmit_ = false;
  duplicates_ = 0;
  window_floor_ = 0;
  scoreboard_.forget_received();
  retransmissions_.clear();
  return std::nullopt;
}

std::span<const std::uint64_t> Ns2LinuxRecovery::detect_losses(const AckOfRecovery& ack) {
  lost_.clear();
  scoreboard_.detect_losses_by_distance(duplicate_threshold_ + 1, lost_);
  newest_delivered_ = std::max(newest_delivered_, ack.transmission_number);
  detect_lost_retransmissions();
  return lost_;
}

void Ns2LinuxRecovery::detect_lost_retransmissions() {
  while (!retransmissions_.empty() &&
         retransmissions_.front().transmission_number + kRetransmissionThreshold <
             newest_delivered_) {
    const auto [packet, number] = retransmissions_.pop();
    if (packet >= scoreboard_.first() && !scoreboard_.is_sacked(packet) &&
        !scoreboard_.is_lost(packet) && scoreboard_.at(packet).transmission_number == number) {
      scoreboard_.mark_lost(packet);
      lost_.push_back(packet);
    }
  }
}

void Ns2LinuxRecovery::on_timeout() {
  LossRecovery::on_timeout();
  retransmissions_.clear();
}

void Ns2LinuxRecovery::on_retransmission(std::uint64_t packet, std::uint64_t number) {
  LossRecovery::on_retransmission(packet, number);
  retransmissions_.push({packet, number});
}

void Ns2LinuxRecovery::enter_recovery(std::uint64_t cwnd_packets) {
  LossRecovery::enter_recovery(cwnd_packets);
  must_retransmit_ = false;
  window_floor_ = cwnd_packets;
}

void Ns2LinuxRecovery::before_sending(std::uint64_t in_flight) {
  window_floor_ = std::min(window_floor_, in_flight + 1);
}

void Ns2LinuxRecovery::after_sending(std::uint64_t in_flight) {
  window_floor_ = std::min(window_floor_, std::max<std::uint64_t>(in_flight, 2) - 1);
}

}  // namespace remy
