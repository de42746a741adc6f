#include "transports/scoreboard.h"

namespace remy {

std::uint64_t Scoreboard::mark_all_lost() {
  const std::uint64_t in_flight_before = in_flight();
  for (std::uint64_t packet = first_; packet < end_; ++packet) {
    if (!sacked_.test(packet) && !lost_.test(packet)) {
      mark_lost(packet);
    }
  }
  loss_end_ = end_;
  return in_flight_before;
}

void Scoreboard::detect_losses(std::uint64_t threshold, std::vector<std::uint64_t>& lost) {
  std::uint64_t edge = sacked_end_;
  for (std::uint64_t count = 0; count < threshold; ++count) {
    edge = sacked_.find_last(loss_end(), edge, true);
    if (edge == loss_end()) {
      return;
    }
    --edge;
  }
  mark_lost_before(edge, lost);
}

void Scoreboard::mark_lost_before(std::uint64_t edge, std::vector<std::uint64_t>& lost) {
  for (std::uint64_t packet = loss_end();; ++packet) {
    packet = sacked_.find(packet, edge, false);
    if (packet >= edge) {
      break;
    }
    mark_lost(packet);
    lost.push_back(packet);
  }
  loss_end_ = edge;
}

std::vector<std::uint64_t> Scoreboard::packets_in_flight() const {
  std::vector<std::uint64_t> packets;
  for (std::uint64_t packet = first_; packet < end_; ++packet) {
    if (!sacked_.test(packet) && !lost_.test(packet)) {
      packets.push_back(packet);
    }
  }
  return packets;
}

void Scoreboard::unmark_all_lost() {
  lost_.clear(first_, end_);
  lost_count_ = 0;
}

void Scoreboard::forget_received() {
  sacked_.clear(first_, end_);
  lost_.clear(first_, end_);
  sacked_count_ = 0;
  lost_count_ = 0;
  sacked_end_ = 0;
  loss_end_ = 0;
  known_.fill({});
}

void Scoreboard::clear() {
  forget_received();
  first_ = end_;
}

SackBlock& Scoreboard::another_block(std::uint64_t packet) {
  for (std::uint32_t i = 0; i < known_.size(); ++i) {
    if (known_[i].first <= packet && packet <= known_[i].end) {
      last_known_ = i;
      return known_[i];
    }
  }
  last_known_ = next_known_++ % known_.size();
  known_[last_known_] = {packet, packet};
  return known_[last_known_];
}

void Scoreboard::grow() {
  std::vector<Transmission> larger(2 * transmissions_.size());
  for (std::uint64_t packet = first_; packet < end_; ++packet) {
    larger[packet & (larger.size() - 1)] = at(packet);
  }
  transmissions_.swap(larger);
  mask_ = transmissions_.size() - 1;
  sacked_.make_room(first_, end_, first_ + transmissions_.size());
  lost_.make_room(first_, end_, first_ + transmissions_.size());
}

}  // namespace remy
