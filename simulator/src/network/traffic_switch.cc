#include "network/traffic_switch.h"

#include <algorithm>
#include <optional>

namespace remy {

TrafficSwitch::TrafficSwitch(std::vector<NetworkSender>& senders, EventSchedule& events,
                             double packet_bytes)
    : events_(events), packet_bytes_(packet_bytes) {
  for (NetworkSender& sender : senders) {
    events_.set_switch(sender.index, sender.schedule.begins_ms(0, 0));
    if (sender.barrier_pause_ms < kNever) {
      barriers_[sender.barrier].senders.push_back(sender.index);
    }
  }
}

void TrafficSwitch::switch_on(NetworkSender& sender, double now_ms, PacketSink& sink) {
  sender.share_at_on_ms = share_.integral_ms(now_ms);
  share_.sender_on();
  sender.on_since_ms = now_ms;
  SenderResults& results = sender.results.totals;
  results.first_on_ms = std::min(results.first_on_ms, now_ms);
  sender.flow.next_period();
  sender.sent_before_period = static_cast<std::uint32_t>(results.packets_sent);
  std::optional<std::uint64_t> packets;
  double off_ms = kNever;
  if (sender.schedule.by_time()) {
    sender.mode = NetworkSender::Mode::kOnForTime;
    off_ms = sender.schedule.ends_ms(sender.period, now_ms);
  } else {
    sender.mode = NetworkSender::Mode::kOnForPackets;
    packets = sender.schedule.on_packets(sender.period, packet_bytes_);
    sender.flow_packets = *packets;
  }
  ++sender.period;
  events_.set_switch(sender.index, off_ms);
  sender.endpoint->switch_on(packets, now_ms, sink);
}

void TrafficSwitch::switch_off(NetworkSender& sender, double now_ms) {
  if (sender.mode == NetworkSender::Mode::kOnForPackets) {
    sender.results.flows.push_back(
        {sender.flow_packets, now_ms - sender.schedule.arrival_ms(sender.on_since_ms)});
  }
  count_on_time(sender, now_ms);
  share_.sender_off();
  sender.mode = NetworkSender::Mode::kOff;
  sender.endpoint->switch_off(now_ms);
  events_.set_switch(sender.index, sender.schedule.begins_ms(sender.period, now_ms));
  if (sender.barrier_pause_ms < kNever) {
    end_at_barrier(sender, now_ms);
  }
}

void TrafficSwitch::count_on_time(NetworkSender& sender, double now_ms) {
  SenderResults& results = sender.results.totals;
  results.on_ms += now_ms - sender.on_since_ms;
  results.share_ms += share_.integral_ms(now_ms) - sender.share_at_on_ms;
}

double TrafficSwitch::next_switch_ms(NetworkSender& sender, double now_ms) {
  switch (sender.mode) {
    case NetworkSender::Mode::kOff:
      return sender.schedule.begins_ms(sender.period, now_ms);
    case NetworkSender::Mode::kOnForTime:
      return sender.schedule.ends_ms(sender.period, now_ms);
    case NetworkSender::Mode::kOnForPackets:
      break;
  }
  return kNever;
}

// The last sender that ends lets all of the barrier start again after a pause.
void TrafficSwitch::end_at_barrier(const NetworkSender& sender, double now_ms) {
  BarrierState& barrier = barriers_[sender.barrier];
  if (++barrier.ended < barrier.senders.size()) {
    return;
  }
  barrier.ended = 0;
  for (const std::uint32_t each : barrier.senders) {
    events_.set_switch(each, now_ms + sender.barrier_pause_ms);
  }
}

}  // namespace remy
