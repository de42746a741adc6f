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

// Where segments of a route are lost with a constant probability, or delayed if only_delays.
struct LossyHop {
  std::uint16_t behind_hop;  // Segment::hop behind the link
  bool only_delays;
  double probability;
  std::uint64_t key;  // random-stream key
};

// The way from a sender to its receiver, or of ACKs back over links.
struct Route {
  const Hop* hops = nullptr;
  std::uint32_t length = 0;
  std::vector<LossyHop> lossy_hops;
  DelayLine* reordering_line = nullptr;  // for packets that are delayed, not lost

  // Draws when the segment is sent where it will be lost. `counter` names the draw, so that it does
  // not depend on other segments.
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
