#include "senders/datagram.h"

#include <algorithm>

namespace remy {

DatagramBody::DatagramBody(const BodySetting& setting)
    : controller_(*setting.table),
      observer_(setting.observer),
      sender_(setting.sender),
      packet_bytes_(static_cast<std::uint32_t>(setting.packet_bytes)) {}

void DatagramBody::switch_on(std::optional<std::uint64_t> packets, double now_ms, Outlet& outlet) {
  is_on_ = true;
  // Everything sent earlier counts as delivered.
  period_begin_ = results_.packets_sent;
  acknowledged_end_ = period_begin_;
  last_send_ms_ = kLongAgo;
  is_counted_ = packets.has_value();
  unresolved_ = packets.value_or(0);
  flow_end_ = period_begin_ + unresolved_;
  used(controller_.start());
  open_window();
  send_what_may_leave(now_ms, outlet);
}

void DatagramBody::switch_off(double) {
  is_on_ = false;
  is_counted_ = false;
  next_ms_ = kNever;
}

void DatagramBody::acknowledged(const Segment& echo, const AckContent& content, double now_ms,
                                Outlet& outlet) {
  // Nothing that an off sender learns outlasts the start of its next period.
  if (!is_on_) {
    return;
  }
  if (is_of_this_period(echo)) {
    acknowledged_end_ = echo.serial + 1;
    used(controller_.acknowledge(echo.sent_ms, now_ms, now_ms - echo.sent_ms, content.packets));
  } else {
    used(controller_.acknowledge_earlier_period());
  }
  open_window();
  send_what_may_leave(now_ms, outlet);
}

void DatagramBody::act(double now_ms, Outlet& outlet) { send_what_may_leave(now_ms, outlet); }

Pace DatagramBody::pace() const {
  return {static_cast<double>(controller_.window_packets()), controller_.intersend_ms()};
}

void DatagramBody::lost(const Segment& segment, double) { resolve(segment); }

std::optional<AckContent> DatagramBody::received(const Segment& segment, double now_ms) {
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  resolve(segment);
  AckContent content;
  content.received_ms = now_ms;
  content.marked = segment.is_marked ? 1 : 0;
  return content;
}

void DatagramBody::used(std::uint32_t rule) {
  if (observer_ != nullptr) {
    observer_->used(sender_, controller_, rule);
  }
}

void DatagramBody::resolve(const Segment& segment) {
  if (is_counted_ && is_of_this_period(segment)) {
    --unresolved_;
  }
}

void DatagramBody::open_window() {
  window_end_ = acknowledged_end_ + controller_.window_packets();
  if (is_counted_) {
    window_end_ = std::min(window_end_, flow_end_);
  }
}

// "If the number of outstanding packets is [less] than cwnd, the sender will transmit segments to
// close the window, but no faster than one segment every r milliseconds" (TCP ex Machina, section
// 4.2).
void DatagramBody::send_what_may_leave(double now_ms, Outlet& outlet) {
  while (results_.packets_sent < window_end_) {
    const double next_ms = last_send_ms_ + controller_.intersend_ms();
    if (next_ms > now_ms) {
      next_ms_ = next_ms;
      return;
    }
    Segment segment;
    segment.sent_ms = now_ms;
    segment.sequence = results_.packets_sent;
    segment.serial = results_.packets_sent++;
    segment.bytes = packet_bytes_;
    last_send_ms_ = now_ms;
    outlet.send(segment, now_ms);
  }
  next_ms_ = kNever;
}

BodyKind datagram() {
  return {
      .name = "datagram",
      .title = "Datagrams",
      .variants = {{
          .name = "remy",
          .source = "TCP ex Machina, section 4",
          .parameters = {},
      }},
      .carries_tables = true,
      .takes_noise = false,
      .counts_every_packet = true,
      .make = [](const Chosen&, BodySetting setting) -> std::unique_ptr<Body> {
        return std::make_unique<DatagramBody>(setting);
      },
  };
}

}  // namespace remy
