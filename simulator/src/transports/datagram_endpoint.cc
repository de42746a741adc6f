#include "transports/datagram_endpoint.h"

#include <algorithm>
#include <limits>

namespace remy {

DatagramEndpoint::DatagramEndpoint(const EndpointSetting& setting)
    : controller_(*setting.table),
      clock_(setting.measurement, setting.jitter_key, setting.rtt_offset_key),
      is_exact_(setting.measurement.is_exact()),
      flow_(setting.sender),
      observer_(setting.observer),
      telemetry_(setting.telemetry),
      sender_(setting.sender) {
  outgoing_.sender = setting.sender;
  outgoing_.bytes = static_cast<std::uint32_t>(setting.packet_bytes);
  outgoing_.is_ecn_capable = setting.is_ecn_capable;
}

void DatagramEndpoint::switch_on(std::optional<std::uint64_t> packets, double now_ms,
                                 PacketSink& sink) {
  is_on_ = true;
  flow_.next_period();
  // Packets of earlier periods count as delivered.
  period_begin_ = results_.packets_sent;
  acknowledged_end_ = period_begin_;
  last_send_ms_ = kLongAgo;
  is_counted_ = packets.has_value();
  unresolved_ = packets.value_or(0);
  flow_end_ = period_begin_ + unresolved_;
  used(controller_.start());
  open_window();
  send_what_may_leave(now_ms, sink);
}

void DatagramEndpoint::switch_off(double) {
  is_on_ = false;
  is_counted_ = false;
  next_ms_ = kNever;
  reader_ = {};
  unacknowledged_.reset();
  delayed_ack_due_ms_ = kNever;
}

void DatagramEndpoint::on_ack(const Segment& echo, const AckContent& content, double now_ms,
                              PacketSink& sink) {
  // The next on period starts with an empty memory.
  if (!is_on_) {
    return;
  }
  if (is_of_this_period(echo)) {
    const AckTimes seen = read(echo, now_ms);
    // Packets stay in order, so those between are lost.
    if (echo.transmission_number + 1 > acknowledged_end_ + content.packets) {
      controller_.on_loss(seen.sent_ms + seen.rtt_ms,
                          static_cast<std::uint32_t>(echo.transmission_number + 1 -
                                                     acknowledged_end_ - content.packets));
    }
    acknowledged_end_ = std::max(acknowledged_end_, echo.transmission_number + 1);
    used(controller_.acknowledge(
        seen.sent_ms, seen.received_ms, seen.rtt_ms, content.packets, [&]() -> Feedback {
          return {content.packets, content.marked,
                  usage_since_last_ack(telemetry_, echo.transmission_number)};
        }));
  } else {
    used(controller_.acknowledge_earlier_period());
  }
  open_window();
  send_what_may_leave(now_ms, sink);
}

void DatagramEndpoint::act(double now_ms, PacketSink& sink) { send_what_may_leave(now_ms, sink); }

Pace DatagramEndpoint::pace() const {
  return {static_cast<double>(controller_.window_packets()), controller_.intersend_ms()};
}

void DatagramEndpoint::on_packet_lost(const Segment& segment, double) { resolve(segment); }

std::optional<AckContent> DatagramEndpoint::on_data(const Segment& segment, double now_ms) {
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  resolve(segment);
  AckContent content;
  content.received_ms = now_ms;
  content.marked = segment.is_marked ? 1 : 0;
  // ACKs of packets from earlier on periods are never delayed.
  if (clock_.noise().delays_acks() && is_on_ && !is_done() && is_of_this_period(segment)) {
    if (!unacknowledged_) {
      unacknowledged_ = segment;
      delayed_ack_due_ms_ = now_ms + clock_.noise().delayed_ack_ms;
      return std::nullopt;
    }
    content.packets = 2;
    content.marked += unacknowledged_->is_marked ? 1 : 0;
    unacknowledged_.reset();
    delayed_ack_due_ms_ = kNever;
  }
  return content;
}

std::optional<std::pair<Segment, AckContent>> DatagramEndpoint::take_delayed_ack(double now_ms) {
  std::pair<Segment, AckContent> ack = {*unacknowledged_, {}};
  ack.second.received_ms = now_ms;
  ack.second.marked = ack.first.is_marked ? 1 : 0;
  unacknowledged_.reset();
  delayed_ack_due_ms_ = kNever;
  return ack;
}

void DatagramEndpoint::used(std::uint32_t rule) {
  if (observer_ != nullptr) {
    observer_->used(sender_, controller_, rule);
  }
}

void DatagramEndpoint::resolve(const Segment& segment) {
  if (is_counted_ && is_of_this_period(segment)) {
    --unresolved_;
  }
}

AckTimes DatagramEndpoint::read(const Segment& echo, double now_ms) {
  if (is_exact_) {
    return {echo.sent_ms, now_ms, now_ms - echo.sent_ms};
  }
  const auto sequence = static_cast<std::uint32_t>(echo.transmission_number - period_begin_);
  return clock_.read(reader_, echo.sent_ms, sequence, flow_, now_ms);
}

std::uint32_t DatagramEndpoint::bunch() const {
  if (results_.packets_sent >= window_end_) {
    return 0;
  }
  if (clock_.noise().bunch_packets == 1) {
    return 1;
  }
  const std::uint64_t unsent =
      is_counted_ ? flow_end_ - results_.packets_sent : std::numeric_limits<std::uint64_t>::max();
  return clock_.bunch(static_cast<std::int32_t>(window_end_ - results_.packets_sent),
                      controller_.window_packets(), unsent);
}

void DatagramEndpoint::open_window() {
  window_end_ = acknowledged_end_ + controller_.window_packets();
  if (is_counted_) {
    window_end_ = std::min(window_end_, flow_end_);
  }
}

// "If the number of outstanding packets is [less] than cwnd, the sender will transmit segments to
// close the window, but no faster than one segment every r milliseconds" (TCP ex Machina, section
// 4.2).
void DatagramEndpoint::send_what_may_leave(double now_ms, PacketSink& sink) {
  while (const std::uint32_t packets = bunch()) {
    // The pause after a bunch is one intersend time for each of its packets.
    const double next_ms = last_send_ms_ + controller_.intersend_ms() * reader_.bunch;
    if (next_ms > now_ms) {
      next_ms_ = next_ms;
      return;
    }
    last_send_ms_ = now_ms;
    reader_.bunch = packets;
    outgoing_.sent_ms = now_ms;
    for (std::uint32_t left = packets; left > 0; --left) {
      outgoing_.sequence = results_.packets_sent;
      outgoing_.transmission_number = results_.packets_sent++;
      sink.send(outgoing_, now_ms);
    }
  }
  next_ms_ = kNever;
}

Transport datagram() {
  return {
      .name = "datagram",
      .title = "Datagrams",
      .variants = {{
          .name = "remy",
          .source = "TCP ex Machina, section 4",
          .parameters = {},
      }},
      .runs_tables = true,
      .takes_noise = true,
      .counts_every_packet = true,
      .make = [](const ParameterValues&, EndpointSetting setting) -> std::unique_ptr<Endpoint> {
        return std::make_unique<DatagramEndpoint>(setting);
      },
  };
}

}  // namespace remy
