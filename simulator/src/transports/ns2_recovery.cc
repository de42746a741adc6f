#include "transports/ns2_recovery.h"

#include <algorithm>

namespace remy {

std::optional<std::uint64_t> Ns2LinuxRecovery::exit_recovery() {
  state_ = State::kOpen;
  must_retransmit_ = false;
  duplicates_ = 0;
  window_floor_ = 0;
  scoreboard_.forget_received();
  if (rack_) {
    rack_->clear();
  }
  return std::nullopt;
}

void Ns2LinuxRecovery::detect_first_losses() {
  scoreboard_.detect_losses_by_distance(duplicate_threshold_ + 1, lost_);
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
