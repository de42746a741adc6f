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

// The scoreboard (RFC 6675, section 3): the state of each packet from first(), the first that is
// not acknowledged, to end(), the next new one. A packet is sacked, lost and waiting for
// retransmission, or in flight. It counts once in in_flight() however often it was sent.
class Scoreboard {
 public:
  // The most recent transmission of a packet.
  struct Transmission {
    DeliverySnapshot snapshot;
    std::uint64_t transmission_number = 0;
  };

  Scoreboard() : transmissions_(kInitialPackets) {}

  std::uint64_t first() const {
    return first_;
  }  // first packet that is not acknowledged: HighACK + 1
  std::uint64_t end() const { return end_; }  // next new packet: HighData + 1
  bool is_empty() const { return first_ == end_; }
  std::uint64_t in_flight() const { return end_ - first_ - sacked_count_ - lost_count_; }
  bool has_lost() const { return lost_count_ > 0; }
  bool is_sacked(std::uint64_t packet) const { return sacked_.test(packet); }
  bool is_lost(std::uint64_t packet) const { return lost_.test(packet); }
  const Transmission& at(std::uint64_t packet) const { return transmissions_[packet & mask_]; }
  // Any packet is held by the receiver beyond a gap.
  bool has_sacked() const { return sacked_count_ > 0; }
  std::uint64_t sacked_count() const { return sacked_count_; }
  // All packets before this one are sacked or have been marked lost once.
  std::uint64_t loss_end() const { return std::max(first_, loss_end_); }

  // Sends the next new packet. Returns its transmission for the caller to fill.
  Transmission& send() {
    if (end_ - first_ > mask_) [[unlikely]] {
      grow();
    }
    return send_in_room();
  }
  // send() without growing, while fewer than room() packets are outstanding.
  std::uint64_t room() const { return mask_; }
  Transmission& send_in_room() { return transmissions_[end_++ & mask_]; }

  // Retransmits a lost packet. Returns its transmission for the caller to fill.
  Transmission& retransmit(std::uint64_t packet) {
    lost_.clear(packet);
    --lost_count_;
    lost_from_ = packet + 1;
    return transmissions_[packet & mask_];
  }

  // No packet is sacked or lost.
  bool is_in_order() const { return (sacked_count_ | lost_count_) == 0; }
  // Acknowledges all packets before `cumulative`, if is_in_order().
  void advance_to(std::uint64_t cumulative) { first_ = cumulative; }

  // The first lost packet. There must be one.
  std::uint64_t first_lost() {
    lost_from_ = lost_.find(std::max(lost_from_, first_), end_, true);
    return lost_from_;
  }

  // Processes the ACK that a receiver sends at once for a packet, if each of its ACKs arrives.
  // Returns whether the packet is newly delivered.
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

  // Processes a cumulative ACK. Calls `delivered` with each packet that is newly delivered and its
  // transmission.
  template <class Delivered>
  void acknowledge(std::uint64_t cumulative, Delivered delivered) {
    if (is_in_order()) [[likely]] {
      for (; first_ < cumulative; ++first_) {
        delivered(first_, at(first_));
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
      delivered(first_, at(first_));
    }
    sacked_.clear(first, cumulative);
    lost_.clear(first, cumulative);
  }

  // Processes a SACK block. Calls `delivered` as above. Ignores blocks without outstanding packets,
  // which are old.
  template <class Delivered>
  void acknowledge(const SackBlock& block, Delivered delivered) {
    const std::uint64_t first = std::max(block.first, first_);
    const std::uint64_t end = std::min(block.end, end_);
    if (first >= end) {
      return;
    }
    // Most blocks are as in an earlier ACK, or one packet longer.
    SackBlock& known = known_block(first);
    const std::uint64_t known_end = std::exchange(known.end, std::max(known.end, end));
    if (known_end >= end) {
      return;
    }
    sacked_.set(known_end, end, [this, &delivered](std::uint64_t packet) {
      ++sacked_count_;
      unmark_lost(packet);
      delivered(packet, at(packet));
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

  // Marks a packet in flight as lost.
  void mark_lost(std::uint64_t packet) {
    lost_.set(packet);
    ++lost_count_;
    lost_from_ = std::min(lost_from_, packet);
    loss_end_ = std::max(loss_end_, packet + 1);
  }

  // Marks all packets in flight as lost, and returns their number.
  std::uint64_t mark_all_lost();

  // Packets in flight, in order.
  std::vector<std::uint64_t> packets_in_flight() const;

  // Takes back all marks of lost packets, which are in flight again.
  void unmark_all_lost();

  // Forgets which packets are sacked or lost: all count as in flight again.
  void forget_received();

  // Forgets all outstanding packets.
  void clear();

 private:
  static constexpr std::size_t kInitialPackets = 256;

  void grow();

  // A packet that was marked lost has arrived.
  void unmark_lost(std::uint64_t packet) {
    if (lost_count_ > 0 && lost_.test(packet)) {
      lost_.clear(packet);
      --lost_count_;
    }
  }

  // Returns the known block that the packet is in or just behind, or a new one that starts with it.
  SackBlock& known_block(std::uint64_t packet) {
    SackBlock& last = known_[last_known_];
    return last.first <= packet && packet <= last.end ? last : another_block(packet);
  }
  SackBlock& another_block(std::uint64_t packet);

  void mark_lost_before(std::uint64_t edge, std::vector<std::uint64_t>& lost);

  std::vector<Transmission> transmissions_;  // by packet modulo the size, a power of two
  std::uint64_t mask_ = kInitialPackets - 1;
  PacketBits sacked_;
  PacketBits lost_;  // and not retransmitted yet
  // Blocks of sacked packets; parts before first_ are outdated.
  std::array<SackBlock, 4> known_;
  std::uint32_t next_known_ = 0;
  std::uint32_t last_known_ = 0;  // the block that grew last
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t sacked_count_ = 0;
  std::uint64_t lost_count_ = 0;
  std::uint64_t sacked_end_ = 0;  // end of the highest sacked packet
  std::uint64_t loss_end_ = 0;
  std::uint64_t lost_from_ = 0;  // no packet before it is lost
};

}  // namespace remy
