#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "network/event_schedule.h"
#include "network/fair_share.h"
#include "network/network_sender.h"
#include "transports/endpoint.h"

namespace remy {

// Switches senders on and off as their traffic says, and counts on times, fair shares and completed
// flows.
class TrafficSwitch {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Schedules the first on period of each sender. Senders and events outlive it.
  TrafficSwitch(std::vector<NetworkSender>& senders, EventSchedule& events, double packet_bytes);

  void switch_on(NetworkSender& sender, double now_ms, PacketSink& sink);
  void switch_off(NetworkSender& sender, double now_ms);
  // Counts the on period that lasts until now_ms.
  void count_on_time(NetworkSender& sender, double now_ms);
  // When the traffic of a sender switches it next; kNever if its endpoint ends the on period.
  static double next_switch_ms(NetworkSender& sender, double now_ms);

 private:
  struct BarrierState {
    std::vector<std::uint32_t> senders;
    std::size_t ended = 0;  // senders that have ended their on period since the last start
  };

  void end_at_barrier(const NetworkSender& sender, double now_ms);

  EventSchedule& events_;
  const double packet_bytes_;
  FairShare share_;
  std::map<std::uint32_t, BarrierState> barriers_;  // by Barrier's number
};

}  // namespace remy
