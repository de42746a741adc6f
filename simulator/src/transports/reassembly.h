#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "transports/endpoint.h"
#include "transports/packet_bits.h"

namespace remy {

// The packets that a receiver holds: all before a sequence number, and some beyond a gap.
class Reassembly {
 public:
  std::uint64_t in_order_end() const { return in_order_end_; }
  // Whether packets beyond a gap are held.
  bool has_gap() const { return end_ > in_order_end_; }

  // All packets before this one have arrived, without a gap.
  void advance_to(std::uint64_t packet) { end_ = in_order_end_ = packet; }

  // Adds a packet that arrives. Returns false for a duplicate.
  bool add(std::uint64_t packet) {
    if (packet == in_order_end_ && !has_gap()) [[likely]] {
      advance_to(packet + 1);
      return true;
    }
    return add_out_of_order(packet);
  }

  // The SACK blocks of the next ACK (RFC 2018, section 4): the block of the packet that arrived
  // last, then those reported most recently.
  std::span<const SackBlock> blocks() const {
    return {recent_.data(), has_gap() ? recent_count_ : 0};
  }
  void report(AckContent& content) const {
    content.blocks = static_cast<std::uint32_t>(blocks().size());
    std::ranges::copy(blocks(), content.sacks.begin());
  }

  // Starts a connection whose first packet is `packet`.
  void start_at(std::uint64_t packet);

 private:
  bool add_out_of_order(std::uint64_t packet);

  std::uint64_t in_order_end_ = 0;
  std::uint64_t end_ = 0;  // end of the highest packet held
  PacketBits here_;        // packets held of [in_order_end_, end_)
  std::uint32_t recent_count_ = 0;
  std::array<SackBlock, 3> recent_;
};

}  // namespace remy
