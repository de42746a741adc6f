#include "network/live_simulation.h"

namespace remy {

LiveSender LiveSimulation::sender(std::uint32_t index) const {
  const NetworkSender& sender = simulation_.topology().senders()[index];
  const SenderResults& totals = sender.results.totals;
  LiveSender live;
  live.is_on = sender.mode != NetworkSender::Mode::kOff;
  live.pace = sender.endpoint->pace();
  live.rtt_ms = sender.rtt_ms;
  live.in_flight = totals.packets_sent - totals.packets_received - totals.packets_lost;
  live.received = totals.packets_received;
  live.lost = totals.packets_lost;
  live.delay_sum_ms = totals.delay_sum_ms;
  return live;
}

LiveLink LiveSimulation::link(std::uint32_t index) const {
  const Link& link = simulation_.topology().links()[index];
  return {link.queue->packets(), link.results.dropped, link.results.lost};
}

}  // namespace remy
