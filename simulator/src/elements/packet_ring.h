#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "senders/packet.h"

namespace remy {

// A FIFO queue of packets that grows as needed, up to kMaximumPackets.
class PacketRing {
 public:
  // A sender's window is at most 1e6 packets; a longer queue would only waste memory.
  static constexpr std::size_t kMaximumPackets = (std::size_t{1} << 20) - 1;

  PacketRing() { adopt(std::vector<Packet>(kInitialSlots), 0); }
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  static constexpr std::size_t kMaxBatch = 4096;

  bool empty() const { return head_ == tail_; }
  const Packet& front() const { return *head_; }

  // Removes the first packet. Calls `on_batch` from time to time with the number of packets removed
  // since the last call, at most kMaxBatch.
  template <class OnBatch>
  [[gnu::always_inline]] void pop(OnBatch on_batch) {
    if (++head_ == batch_end_) [[unlikely]] {
      on_batch(start_next_batch());
    }
  }
  void pop() {
    pop([](std::size_t) {});
  }

  // The `count`th packet from the back, where 1 is the last.
  const Packet& from_back(std::size_t count) const {
    const auto slot = static_cast<std::size_t>(tail_ - packets_.data());
    return packets_[slot >= count ? slot - count : slot + packets_.size() - count];
  }

  // Returns false if the queue has kMaximumPackets.
  [[gnu::always_inline]] bool push(double sent_ms, std::uint32_t sequence, FlowTag flow) {
    Packet* const slot = tail_;
    Packet* next = tail_ + 1;
    if (next == end_) [[unlikely]] {
      next = packets_.data();
    }
    // One slot stays free, since a full ring would look empty.
    if (next == head_) [[unlikely]] {
      return grow_and_push({sent_ms, sequence, flow});
    }
    slot->sent_ms = sent_ms;
    slot->sequence = sequence;
    slot->flow = flow;
    tail_ = next;
    return true;
  }

 private:
  static constexpr std::size_t kInitialSlots = 256;

  // Called when head_ reaches batch_end_, which may be end_. Starts the next batch and returns the
  // size of the finished one.
  [[gnu::noinline]] std::size_t start_next_batch() {
    if (head_ == end_) {
      head_ = packets_.data();
    }
    batch_end_ = head_ + std::min<std::ptrdiff_t>(kMaxBatch, end_ - head_);
    return std::exchange(batch_size_, static_cast<std::size_t>(batch_end_ - head_));
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
    batch_size_ = std::min(kMaxBatch, packets_.size());
    batch_end_ = head_ + batch_size_;
  }

  std::vector<Packet> packets_;
  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;
  Packet* end_ = nullptr;
  // End of the current batch of removals, and its size in slots.
  Packet* batch_end_ = nullptr;
  std::size_t batch_size_ = 0;
};

}  // namespace remy
