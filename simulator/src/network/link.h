#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "elements/fifo_link.h"
#include "elements/jitter_box.h"
#include "elements/link_conditions.h"
#include "elements/link_driver.h"
#include "elements/link_loss.h"
#include "elements/link_telemetry.h"
#include "elements/policer.h"
#include "elements/queue.h"
#include "network/delay_line.h"
#include "network/link_description.h"
#include "network/results.h"

namespace remy {

// The parts of a time-varying link: one whose rate, delay or loss is not constant, or that has a
// policer or a jitter box (!is_constant(LinkDescription)). A link that writes telemetry is
// simulated as one, too.
struct TimeVaryingLink {
  std::optional<LinkConditions> conditions;  // delay and loss over time
  std::unique_ptr<LinkDriver> driver;        // times of transmissions
  std::optional<FifoLink> fifo;              // see Link::fifo
  std::optional<TokenBucket> policer;
  std::optional<GilbertElliott> bursts;  // bursty loss
  std::optional<JitterBox> jitter_box;
  std::optional<LinkTelemetry> telemetry;  // which it writes into packets
  DelayLine* line_before = nullptr;        // holds the link's delay if it lies before the queue
  bool changes_loss = false;
  bool reorders = false;     // the jitter box lets segments overtake others
  bool only_drives = false;  // has a driver and a fifo, and no other part
  double jitter_box_timer_ms = std::numeric_limits<double>::infinity();
  std::uint64_t loss_key = 0;  // random-stream key
};

// A link with its queue.
struct Link {
  std::unique_ptr<Queue> queue;
  // Computes departures ahead, so that they need no events: if the queue is drop-tail by packets,
  // and the link is neither time-varying nor may be changed during the simulation.
  std::optional<FifoLink> fifo;
  double service_ms = 1;  // transmission time of a packet of NetworkDescription::packet_bytes
  bool is_busy = false;   // transmits, or has a departure event scheduled
  std::uint32_t index = 0;
  DelayLine* only_line = nullptr;  // the line behind the link if all routes have the same
  LinkResults results;
  LinkDescription description;
  std::unique_ptr<TimeVaryingLink> time_varying;  // null for a constant link without telemetry

  // The FifoLink that computes departures ahead; null if departures are events.
  FifoLink* computed() {
    std::optional<FifoLink>& either = time_varying ? time_varying->fifo : fifo;
    return either ? &*either : nullptr;
  }
};

}  // namespace remy
