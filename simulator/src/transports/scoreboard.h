#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "senders/congestion_controller.h"
#include "transports/endpoint.h"
#include "transports/packet_bits.h"

namespace remy {

// What a sender knows of its packets that are not yet acknowledged in order (RFC 6675, section 3):
// received beyond a gap, lost and waiting to be sent again, or in flight. A packet is in flight
// once however often it was sent.
class Scoreboard {
 public:
  // The last transmission of a packet.
  struct Transmission {
    DeliverySnapshot snapshot;
    std::uint64_t transmission_number = 0;
  };

  Scoreboard() : transmissions_(kInitialPackets) {}

  std::uint64_t first() const { return first_; }  // not yet acknowledged
  std::uint64_t end() const { return end_; }      // the next that is new
  bool is_empty() const { return first_ == end_; }
  std::uint64_t in_flight() const { return end_ - first_ - sacked_count_ - lost_count_; }
  bool has_lost() const { return lost_count_ > 0; }
  bool is_sacked(std::uint64_t packet) const { return sacked_.test(packet); }
  bool is_lost(std::uint64_t packet) const { return lost_.test(packet); }
  const Transmission& at(std::uint64_t packet) const { return transmissions_[packet & mask_]; }
  // Anything beyond a gap.
  bool has_sacked() const { return sacked_count_ > 0; }
  // All packets before, but for those received, have once been found to be lost.
  std::uint64_t loss_end() const { return std::max(first_, loss_end_); }

  // The next new packet is sent, in a transmission for the caller to describe.
  Transmission& send() {
    if (end_ - first_ > mask_) [[unlikely]] {
      grow();
    }
    return send_in_room();
  }
  // The same where there is room: so many packets may be outstanding, or more.
  std::uint64_t room() const { return mask_; }
  Transmission& send_in_room() { return transmissions_[end_++ & mask_]; }

  // A lost packet is sent again, likewise.
  Transmission& retransmit(std::uint64_t packet) {
    lost_.clear(packet);
    --lost_count_;
    lost_from_ = packet + 1;
    return transmissions_[packet & mask_];
  }

  // Nothing was received beyond a gap, and nothing waits to be sent again.
  bool is_in_order() const { return (sacked_count_ | lost_count_) == 0; }
  // All before `cumulative` are received, where that is so.
  void advance_to(std::uint64_t cumulative) { first_ = cumulative; }

  // The lowest of the lost packets, which there must be.
  std::uint64_t first_lost() {
    lost_from_ = lost_.find(std::max(lost_from_, first_), end_, true);
    return lost_from_;
  }

  // A packet is received, and an ACK tells of that at once and of nothing else that is news.
  // Whether that itself is.
  bool on_received(std::uint64_t packet) {
    if (packet > first_) [[likely]] {
      SackBlock& known = known_block(packet);
      if (packet < known.end || sacked_.test(packet)) {
        return false;
      }
      known.end = packet + 1;
      sacked_.set(packet);
      ++sacked_count_;
      sacked_end_ = std::max(sacked_end_, packet + 1);
      unmark_lost(packet);
      return true;
    }
    if (packet < first_) {
      return false;
    }
    unmark_lost(packet);
    first_ = sacked_count_ > 0 ? sacked_.find(packet + 1, sacked_end_, false) : packet + 1;
    sacked_count_ -= first_ - packet - 1;
    sacked_.clear(packet + 1, first_);
    return true;
  }

  // All before `cumulative` are received. Calls `delivered` for each of which that is news.
  template <class Delivered>
  void acknowledge(std::uint64_t cumulative, Delivered delivered) {
    if (is_in_order()) [[likely]] {
      for (; first_ < cumulative; ++first_) {
        delivered(at(first_));
      }
      return;
    }
    const std::uint64_t first = first_;
    for (; first_ < cumulative; ++first_) {
      if (sacked_.test(first_)) {
        --sacked_count_;
        continue;
      }
      lost_count_ -= lost_.test(first_) ? 1 : 0;
      delivered(at(first_));
    }
    sacked_.clear(first, cumulative);
    lost_.clear(first, cumulative);
  }

  // The packets of a block are received. Calls `delivered` for each of which that is news. Blocks
  // that say nothing about what is outstanding are old.
  template <class Delivered>
  void acknowledge(const SackBlock& block, Delivered delivered) {
    const std::uint64_t first = std::max(block.first, first_);
    const std::uint64_t end = std::min(block.end, end_);
    if (first >= end) {
      return;
    }
    // Most are as an ACK before had them, or a packet longer.
    SackBlock& known = known_block(first);
    const std::uint64_t known_end = std::exchange(known.end, std::max(known.end, end));
    if (known_end >= end) {
      return;
    }
    sacked_.set(known_end, end, [this, &delivered](std::uint64_t packet) {
      ++sacked_count_;
      unmark_lost(packet);
      delivered(at(packet));
    });
    sacked_end_ = std::max(sacked_end_, end);
  }

  // False if detect_losses() would find none, which is so for most ACKs: either fewer packets than
  // the threshold are sacked, or the last block of sacked packets has grown at its end, and all
  // before it was looked at.
  bool may_detect_losses(std::uint64_t threshold) {
    if (sacked_count_ < threshold) [[likely]] {
      return false;
    }
    const SackBlock& top = known_[last_known_];
    if (top.end == sacked_end_ && top.first + threshold <= top.end && top.first <= loss_end())
        [[likely]] {
      loss_end_ = std::max(loss_end_, top.end - threshold);
      return false;
    }
    return true;
  }
  // Marks packets lost that at least `threshold` sacked packets lie beyond (RFC 6675, section 4,
  // IsLost()), and appends them to `lost`. No packet is marked twice.
  void detect_losses(std::uint64_t threshold, std::vector<std::uint64_t>& lost);

  // Marks packets lost that lie at least `distance` before the highest sacked packet, whatever lies
  // between (FACK, Mathis and Mahdavi 1996), and appends them to `lost`.
  void detect_losses_by_distance(std::uint64_t distance, std::vector<std::uint64_t>& lost) {
    if (sacked_count_ > 0 && sacked_end_ > loss_end() + distance) {
      mark_lost_before(sacked_end_ - distance, lost);
    }
  }

  // A packet in flight is lost.
  void mark_lost(std::uint64_t packet) {
    lost_.set(packet);
    ++lost_count_;
    lost_from_ = std::min(lost_from_, packet);
    loss_end_ = std::max(loss_end_, packet + 1);
  }

  // Everything in flight is lost. How many these are.
  std::uint64_t mark_all_lost();

  // What was received beyond gaps, or lost, is in flight again, as far as is known.
  void forget_received();

  // Everything outstanding is gone.
  void clear();

 private:
  static constexpr std::size_t kInitialPackets = 256;

  void grow();

  // A packet is not lost, if it was taken for that.
  void unmark_lost(std::uint64_t packet) {
    if (lost_count_ > 0 && lost_.test(packet)) {
      lost_.clear(packet);
      --lost_count_;
    }
  }

  // Of those kept, the block that the packet lies in, or just behind; else a new one from there.
  SackBlock& known_block(std::uint64_t packet) {
    SackBlock& last = known_[last_known_];
    return last.first <= packet && packet <= last.end ? last : another_block(packet);
  }
  SackBlock& another_block(std::uint64_t packet);

  void mark_lost_before(std::uint64_t edge, std::vector<std::uint64_t>& lost);

  std::vector<Transmission> transmissions_;  // by sequence number modulo its size, a power of two
  std::uint64_t mask_ = kInitialPackets - 1;
  PacketBits sacked_;
  PacketBits lost_;  // and not yet sent again
  // Received all; before first_ that no longer counts.
  std::array<SackBlock, 4> known_;
  std::uint32_t next_known_ = 0;
  std::uint32_t last_known_ = 0;  // the one that grew last
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t sacked_count_ = 0;
  std::uint64_t lost_count_ = 0;
  std::uint64_t sacked_end_ = 0;  // behind the highest that was received
  std::uint64_t loss_end_ = 0;
  std::uint64_t lost_from_ = 0;  // none is lost before
};

}  // namespace remy
