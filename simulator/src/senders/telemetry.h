#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ring.h"

namespace remy {

// In-band network telemetry (INT) that a link writes into a packet, as in HPCC (Li et al. 2019,
// section 3.1). The telemetry of two packets gives the link's utilization between them.
struct Telemetry {
  std::uint32_t queue_packets = 0;  // queue length at arrival, the packet in transmission included
  // The link's work until this packet has left it, in units of unit_ms. A link of constant rate
  // counts packets, others count the time that they were busy.
  double work = 0;
  double unit_ms = 0;
  double departed_ms = 0;  // when this packet left the link
};

// The state of a path, computed from the telemetry of its links.
struct PathUsage {
  double queue_packets = 0;  // the largest queue that a packet found
  double utilization = 0;    // of the most utilized link since an earlier packet left it
};

// Returns the share of the time between the departures of two packets for which a link was busy.
inline double utilization(const Telemetry& before, const Telemetry& now) {
  const double passed_ms = now.departed_ms - before.departed_ms;
  // The rate of a live network's link may have changed.
  const double busy_ms = now.unit_ms == before.unit_ms
                             ? (now.work - before.work) * now.unit_ms
                             : now.work * now.unit_ms - before.work * before.unit_ms;
  // A link that sends two packets at once was busy with the first when it had the second.
  return passed_ms > 0 ? busy_ms / passed_ms : 1;
}

// The telemetry of one sender's packets on a path of several links. Links write it by transmission
// number while packets cross them, and the sender reads that of packets that are acknowledged.
class PathTelemetry {
 public:
  explicit PathTelemetry(std::size_t hops) : hops_(hops), last_(hops), before_(hops) {}

  // Returns the record into which the link at `hop` writes a packet's telemetry. Returns null if a
  // packet that was sent later is acknowledged already.
  Telemetry* at(std::uint64_t transmission, std::size_t hop);

  // A packet is acknowledged that has crossed all links. Returns what its telemetry says since the
  // last one; nullopt if a packet that was sent later is acknowledged already, or if the packets
  // have left a link in another order.
  std::optional<PathUsage> on_ack(std::uint64_t transmission);

 private:
  std::size_t hops_;
  Ring<Telemetry> records_;        // by transmission number, then by hop
  std::uint64_t first_ = 0;        // transmission number of the first record
  std::vector<Telemetry> last_;    // of the last acknowledged packet
  std::vector<Telemetry> before_;  // of the one before
};

// on_ack() of a sender's telemetry, which may be null.
std::optional<PathUsage> usage_since_last_ack(PathTelemetry* telemetry, std::uint64_t transmission);

}  // namespace remy
