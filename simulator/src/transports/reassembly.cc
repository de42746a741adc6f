#include "transports/reassembly.h"

#include <algorithm>

namespace remy {

bool Reassembly::add_out_of_order(std::uint64_t packet) {
  if (packet < in_order_end_) {
    return false;
  }
  const std::uint64_t end = std::max(end_, packet + 1);
  here_.make_room(in_order_end_, end_, end);
  if (packet == end_ && has_gap() && recent_[0].end == packet) [[likely]] {
    // The block reported last becomes longer, and no other changes.
    here_.set(packet);
    recent_[0].end = end_ = end;
    return true;
  }
  end_ = end;
  const bool is_new = !here_.test(packet);
  here_.set(packet);
  const SackBlock block = {here_.find_last(in_order_end_, packet, false),
                           here_.find(packet, end_, false)};
  if (block.first == in_order_end_) {
    here_.clear(in_order_end_, block.end);
    in_order_end_ = block.end;
  }
  // The blocks reported before that are not part of this one, and still beyond a gap.
  std::array<SackBlock, 3> recent;
  std::uint32_t count = 0;
  if (block.end > in_order_end_) {
    recent[count++] = block;
  }
  for (std::uint32_t old = 0; old < recent_count_ && count < recent.size(); ++old) {
    const bool is_part = recent_[old].first >= block.first && recent_[old].end <= block.end;
    if (!is_part && recent_[old].first >= in_order_end_) {
      recent[count++] = recent_[old];
    }
  }
  recent_ = recent;
  recent_count_ = count;
  return is_new;
}

void Reassembly::start_at(std::uint64_t packet) {
  here_.clear(in_order_end_, end_);
  in_order_end_ = packet;
  end_ = packet;
  recent_count_ = 0;
}

}  // namespace remy
