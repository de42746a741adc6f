#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "network/delay_line.h"
#include "network/link.h"
#include "senders/segment.h"

namespace remy {

// One step of a route: across a link, then along a delay line.
struct Hop {
  Link* link;
  DelayLine* line;
};

// A hop at which segments are lost with a constant probability, or reordered if only_delays.
struct LossyHop {
  std::uint16_t behind_hop;  // Segment::hop behind the link
  bool only_delays;          // true: delays segments instead of losing them
  double probability;
  std::uint64_t key;  // random-stream key
};

// The hops from a sender to its receiver, or those of its ACKs back to it.
struct Route {
  const Hop* hops = nullptr;
  std::uint32_t length = 0;
  std::vector<LossyHop> lossy_hops;
  DelayLine* reordering_line = nullptr;  // holds packets that are reordered

  // Draws the hop at which a segment that is being sent will be lost or delayed. `counter`
  // identifies the draw, so that it does not depend on other segments.
  void draw_loss(std::uint64_t counter, Segment& segment) const {
    for (const LossyHop& lossy : lossy_hops) {
      if (unit_interval(random_bits(lossy.key, counter)) < lossy.probability) {
        segment.lost_behind_hop = lossy.behind_hop;
        segment.is_late = lossy.only_delays;
        return;
      }
    }
  }
};

}  // namespace remy
