#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/ring.h"
#include "senders/segment.h"

namespace remy {

struct Link;

// The segments in a constant propagation delay before or behind a link, in order of arrival. All
// routes with the same delay share a line.
struct DelayLine {
  struct InFlight {
    double arrives_ms;
    Segment segment;
  };
  Ring<InFlight> in_flight;
  double delay_ms = 0;
  Link* link = nullptr;     // the link that the line is before or behind
  std::uint32_t index = 0;  // position in the order of simultaneous arrivals

  // Adds a segment that will have crossed `hop` links when it arrives, at arrives_ms. A segment
  // that may not overtake arrives no earlier than the last one in the line. Returns true if the
  // added segment is the next to arrive.
  bool add(const Segment& segment, std::uint32_t hop, double arrives_ms, bool may_overtake) {
    if (!may_overtake && !in_flight.empty()) {
      arrives_ms = std::max(arrives_ms, in_flight.back().arrives_ms);
    }
    InFlight& added = in_flight.push();
    added.arrives_ms = arrives_ms;
    added.segment = segment;
    added.segment.hop = static_cast<std::uint16_t>(hop);
    std::size_t position = in_flight.size() - 1;
    for (; position > 0 && in_flight.at(position - 1).arrives_ms > arrives_ms; --position) {
      std::swap(in_flight.at(position - 1), in_flight.at(position));
    }
    return position == 0;
  }
};

}  // namespace remy
