#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/ring.h"
#include "senders/telemetry.h"

namespace remy {

// Observes the segments at a link for the telemetry that the link writes into packets. A link of
// constant rate counts what it transmits. Any other link is busy while it holds a segment, even if
// it waits for an opportunity or for the end of an outage.
class LinkTelemetry {
 public:
  // A link that transmits a packet of `packet_bytes` in service_ms.
  LinkTelemetry(double service_ms, double packet_bytes)
      : unit_ms_(service_ms), packet_bytes_(packet_bytes) {}
  // A link whose transmission times vary.
  LinkTelemetry() = default;

  // A segment arrives while `waiting` others are in the queue. Returns how many the link holds.
  std::uint32_t on_arrival(double now_ms, std::size_t waiting) {
    while (!departures_ms_.empty() && departures_ms_.front() <= now_ms) {
      departures_ms_.pop();
    }
    const std::size_t held = waiting + departures_ms_.size();
    if (held == 0) {
      busy_since_ms_ = now_ms;
    }
    return static_cast<std::uint32_t>(held);
  }

  // A segment is taken from the queue, or would be if it were not computed ahead, and leaves the
  // link at departs_ms. Called in the order of departures.
  void on_departure(double departs_ms, std::uint32_t bytes, Telemetry& written) {
    if (packet_bytes_ > 0) {
      work_ += bytes / packet_bytes_;
    } else {
      work_ += departs_ms - std::max(last_departure_ms_, busy_since_ms_);
    }
    last_departure_ms_ = departs_ms;
    departures_ms_.push() = departs_ms;
    written.work = work_;
    written.unit_ms = unit_ms_;
    written.departed_ms = departs_ms;
  }

  // The link of constant rate has another one from now on. Its work so far stays the same in ms.
  void change_service(double service_ms) {
    work_ *= unit_ms_ / service_ms;
    unit_ms_ = service_ms;
  }

 private:
  double unit_ms_ = 1;
  double packet_bytes_ = 0;  // 0: transmission times vary
  double work_ = 0;
  double busy_since_ms_ = 0;
  double last_departure_ms_ = 0;
  Ring<double> departures_ms_;  // of segments that have not left, without those in the queue
};

}  // namespace remy
