#pragma once

#include <cstdint>
#include <memory>

#include "elements/link_conditions.h"
#include "elements/opportunities.h"

namespace remy {

// When a link gets packets across. A link asks its queue for the next segment at times that its
// driver names, and is told how long that one takes. Whether the queue is there to be asked, or all
// of it is computed beforehand (elements/fifo_link.h), is nothing to the driver.
class LinkDriver {
 public:
  struct Passage {
    double departs_ms;  // when the segment has left the link
    double asks_ms;     // when the link asks for the next one
  };

  virtual ~LinkDriver() = default;

  // When a link asks its queue that has found it empty before, and where something arrives now.
  virtual double asks_ms(double now_ms) = 0;
  // The queue, asked at asked_ms, gave a segment.
  virtual Passage take(double asked_ms, std::uint32_t bytes) = 0;
};

// At a rate, constant or not. A segment that is being transmitted when the rate changes keeps its
// time, as in ns-2 and ns-3, where the end of a transmission is scheduled when it begins. In an
// outage none is begun.
std::unique_ptr<LinkDriver> rate_driver(double rate_packets_per_ms, double packet_bytes);
std::unique_ptr<LinkDriver> rate_driver(LinkConditions conditions, double packet_bytes);

// What an opportunity is worth.
enum class TraceSemantics : std::uint8_t {
  // One packet of any size, which the link takes from the queue before: as soon as the one before
  // has left. One that arrives at the very time of an opportunity can use it (TraceLink in the ns-2
  // of Winstein and Balakrishnan 2013).
  kNs2,
  // 1504 bytes, of packets that are 4 bytes longer for the header of their tunnel. Packets are
  // taken
  // at opportunities; one that is not through goes on at the next, and what is left of one when the
  // queue is empty is lost. One that arrives at the time of an opportunity waits for the next
  // (Netravali et al. 2015, "Mahimahi").
  kMahimahi,
  // The same of 1500 bytes, without headers; one that arrives at the time of an opportunity can use
  // it (Cellsim in Winstein, Sivaraman and Balakrishnan 2013).
  kCellsim,
};

std::unique_ptr<LinkDriver> trace_driver(TraceSemantics semantics, Opportunities opportunities);

// Packets a ms over the long run where there are so many opportunities.
double packets_per_ms(TraceSemantics semantics, double opportunities_per_ms, double packet_bytes);

}  // namespace remy
