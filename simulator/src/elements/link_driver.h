#pragma once

#include <cstdint>
#include <memory>

#include "elements/link_conditions.h"
#include "elements/opportunities.h"

namespace remy {

// Determines when a link transmits. A link takes the next segment from its queue at times that its
// driver gives, and the driver says how long the transmission takes. The driver does not depend on
// how the link is simulated: with events, or computed in advance (elements/fifo_link.h).
class LinkDriver {
 public:
  struct Transmission {
    double departs_ms;     // when the segment has left the link
    double next_start_ms;  // when the link takes the next segment
  };

  virtual ~LinkDriver() = default;

  // Returns when an idle link takes a segment that arrives at its empty queue now.
  virtual double next_start_ms(double now_ms) = 0;
  // Transmits a segment that the link took at start_ms.
  virtual Transmission transmit(double start_ms, std::uint32_t bytes) = 0;
};

// A link with a rate, constant or time-varying. A segment that is being transmitted when the rate
// changes keeps its transmission time, as in ns-2 and ns-3, which schedule the end of a
// transmission at its start. No transmission starts in an outage.
std::unique_ptr<LinkDriver> rate_driver(double rate_packets_per_ms, double packet_bytes);
std::unique_ptr<LinkDriver> rate_driver(LinkConditions conditions, double packet_bytes);

// What a delivery opportunity of a trace transmits.
enum class TraceSemantics : std::uint8_t {
  // One packet of any size, which the link takes from the queue beforehand, as soon as the previous
  // one has left. A packet that arrives at the time of an opportunity can use it (TraceLink in the
  // ns-2 of Winstein and Balakrishnan 2013).
  kNs2,
  // 1504 bytes; every packet has 4 more bytes for a tunnel header. Packets are taken at
  // opportunities. A packet that does not fit continues at the next one, and unused bytes are lost
  // if the queue is empty. A packet that arrives at the time of an opportunity waits for the next
  // one (Netravali et al. 2015, "Mahimahi").
  kMahimahi,
  // Like kMahimahi, but 1500 bytes without tunnel headers, and a packet that arrives at the time of
  // an opportunity can use it (Cellsim in Winstein, Sivaraman and Balakrishnan 2013).
  kCellsim,
};

std::unique_ptr<LinkDriver> trace_driver(TraceSemantics semantics, Opportunities opportunities);

// Long-term rate in packets per ms, given a rate of opportunities.
double packets_per_ms(TraceSemantics semantics, double opportunities_per_ms, double packet_bytes);

}  // namespace remy
