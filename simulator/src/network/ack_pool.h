#pragma once

#include <cstdint>
#include <vector>

#include "transports/endpoint.h"

namespace remy {

// The contents of ACKs that are on their way over links. A segment refers to its ACK's contents by
// Segment::ack_slot.
class AckPool {
 public:
  std::uint32_t put(const AckContent& content) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(contents_.size()));
      contents_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    contents_[slot] = content;
    return slot;
  }
  // Returns the contents by value, because the next put() may reuse the slot.
  AckContent take(std::uint32_t slot) {
    free_.push_back(slot);
    return contents_[slot];
  }
  // Frees the slot of a lost ACK.
  void discard(std::uint32_t slot) { free_.push_back(slot); }

 private:
  std::vector<AckContent> contents_;  // by slot
  std::vector<std::uint32_t> free_;
};

}  // namespace remy
