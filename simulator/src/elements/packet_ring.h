#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "senders/packet.h"

namespace remy {

// A first-in first-out queue of packets that grows as needed, to hold kMaximumPackets.
class PacketRing {
 public:
  // A sender's window ends at 1e6 packets; beyond this bound a flood can only waste memory.
  static constexpr std::size_t kMaximumPackets = (std::size_t{1} << 20) - 1;

  PacketRing() { adopt(std::vector<Packet>(kInitialPlaces), 0); }
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  static constexpr std::size_t kPause = 4096;

  bool empty() const { return head_ == tail_; }
  const Packet& front() const { return *head_; }

  // Removes the first. `paused` is called now and then, with a number of packets that have been
  // removed since: at most kPause.
  template <class Paused>
  [[gnu::always_inline]] void pop(Paused paused) {
    if (++head_ == pause_) [[unlikely]] {
      paused(pause());
    }
  }
  void pop() {
    pop([](std::size_t) {});
  }

  // Packet number `count`, counted from the last (1) backwards.
  const Packet& from_back(std::size_t count) const {
    const auto place = static_cast<std::size_t>(tail_ - packets_.data());
    return packets_[place >= count ? place - count : place + packets_.size() - count];
  }

  // False if there is no room left.
  [[gnu::always_inline]] bool push(double sent_ms, std::uint32_t sequence, FlowTag flow) {
    Packet* const place = tail_;
    Packet* next = tail_ + 1;
    if (next == end_) [[unlikely]] {
      next = packets_.data();
    }
    // One place stays free, or a full ring would look empty.
    if (next == head_) [[unlikely]] {
      return grow_and_push({sent_ms, sequence, flow});
    }
    place->sent_ms = sent_ms;
    place->sequence = sequence;
    place->flow = flow;
    tail_ = next;
    return true;
  }

 private:
  static constexpr std::size_t kInitialPlaces = 256;

  // The first place to be emptied lies behind a segment: it may be behind all of them. How long the
  // segment was.
  [[gnu::noinline]] std::size_t pause() {
    if (head_ == end_) {
      head_ = packets_.data();
    }
    pause_ = head_ + std::min<std::ptrdiff_t>(kPause, end_ - head_);
    return std::exchange(segment_, static_cast<std::size_t>(pause_ - head_));
  }

  [[gnu::noinline]] bool grow_and_push(const Packet& packet) {
    if (packets_.size() > kMaximumPackets) {
      return false;
    }
    std::vector<Packet> larger(2 * packets_.size());
    std::size_t count = 0;
    for (; !empty(); pop()) {
      larger[count++] = front();
    }
    larger[count++] = packet;
    adopt(std::move(larger), count);
    return true;
  }

  void adopt(std::vector<Packet> packets, std::size_t count) {
    packets_ = std::move(packets);
    head_ = packets_.data();
    tail_ = head_ + count;
    end_ = head_ + packets_.size();
    segment_ = std::min(kPause, packets_.size());
    pause_ = head_ + segment_;
  }

  std::vector<Packet> packets_;
  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;
  Packet* end_ = nullptr;
  // Where removing pauses, and how many places before that it began.
  Packet* pause_ = nullptr;
  std::size_t segment_ = 0;
};

}  // namespace remy
