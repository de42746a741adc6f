#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "transports/scoreboard.h"

namespace remy {

// Finds lost retransmissions by the order of transmissions: a packet is lost if one that was sent
// later has been delivered (RACK, RFC 8985, section 6.2, with a reordering window of transmissions
// in place of time). Packets that were sent once are left to RFC 6675.
class Rack {
 public:
  // A loss is assumed once a packet was delivered that was sent more than `threshold` transmissions
  // later; 0: any later one.
  explicit Rack(std::uint64_t threshold) : threshold_(threshold) {}

  void on_retransmission(std::uint64_t packet, std::uint64_t transmission_number) {
    retransmissions_.push_back({packet, transmission_number});
  }
  // RFC 8985, section 6.2, step 2: the most recently sent packet that was delivered.
  void on_delivered(std::uint64_t transmission_number) {
    newest_delivered_ = std::max(newest_delivered_, transmission_number);
  }
  void clear() { retransmissions_.clear(); }

  // RFC 8985, section 6.2, step 5: marks packets lost on the scoreboard and appends them to `lost`.
  void detect_losses(Scoreboard& scoreboard, std::vector<std::uint64_t>& lost) {
    while (!retransmissions_.empty() &&
           retransmissions_.front().transmission_number + threshold_ < newest_delivered_) {
      const auto [packet, number] = retransmissions_.front();
      retransmissions_.pop_front();
      if (packet >= scoreboard.first() && !scoreboard.is_sacked(packet) &&
          !scoreboard.is_lost(packet) && scoreboard.at(packet).transmission_number == number) {
        scoreboard.mark_lost(packet);
        lost.push_back(packet);
      }
    }
  }

 private:
  struct Retransmission {
    std::uint64_t packet;
    std::uint64_t transmission_number;
  };

  std::uint64_t threshold_;
  std::deque<Retransmission> retransmissions_;  // by transmission_number
  std::uint64_t newest_delivered_ = 0;
};

}  // namespace remy
