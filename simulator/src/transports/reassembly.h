#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "transports/endpoint.h"
#include "transports/packet_bits.h"

namespace remy {

// What a receiver holds: all packets before a sequence number, and some beyond it.
class Reassembly {
 public:
  std::uint64_t in_order_end() const { return in_order_end_; }
  // Something is missing before a packet that is here.
  bool has_gap() const { return end_ > in_order_end_; }

  // All packets before this one came, and nothing is missing.
  void advance_to(std::uint64_t packet) { end_ = in_order_end_ = packet; }

  // A packet came. False if it had come before.
  bool add(std::uint64_t packet) {
    if (packet == in_order_end_ && !has_gap()) [[likely]] {
      advance_to(packet + 1);
      return true;
    }
    return add_out_of_order(packet);
  }

  // The blocks that an ACK carries: that of the packet which came last, then those reported last
  // (RFC 2018, section 4).
  std::span<const SackBlock> blocks() const {
    return {recent_.data(), has_gap() ? recent_count_ : 0};
  }
  void report(AckContent& content) const {
    content.blocks = static_cast<std::uint32_t>(blocks().size());
    std::ranges::copy(blocks(), content.sacks.begin());
  }

  // A new connection: what was sent before `packet` is of no interest.
  void start_at(std::uint64_t packet);

 private:
  bool add_out_of_order(std::uint64_t packet);

  std::uint64_t in_order_end_ = 0;
  std::uint64_t end_ = 0;  // behind the highest packet here
  PacketBits here_;        // of [in_order_end_, end_)
  std::uint32_t recent_count_ = 0;
  std::array<SackBlock, 3> recent_;
};

}  // namespace remy
