#include "transports/ns2_endpoint.h"

#include <algorithm>
#include <bit>

#include "core/random.h"

namespace remy {

namespace {

// RTO = srtt + max(0.1 s, 4 rttvar), at least 0.2 s; 1 s before the first sample; doubled without a
// limit. ns-2's agent stores the distance of a sample from the smoothed RTT, in seconds, as an
// integer: if RTTs differ by less than a second, rttvar decays to 0.
constexpr RetransmissionTimeouts kTimeouts = {.initial_ms = 1000,
                                              .minimum_ms = 200,
                                              .maximum_ms = 1e300,
                                              .granularity_ms = 100,
                                              .is_minimum_of_variation = false,
                                              .varies_by_seconds = true};

// ACKs of ns-2's Agent/TCPSink/Sack1 have packetSize_ bytes, and 8 more for each SACK block.
constexpr std::uint32_t kAckBytes = 40;
constexpr std::uint32_t kBlockBytes = 8;

// The times of a packet that the memory is updated with. ns-2 adds up seconds hop by hop, and its
// rounding errors matter: some published rules have thresholds of the RTT ratio within 1e-13 of 1.
// This is one sum, and the rounding of the others is drawn: with probability 3/16 the last bit is
// incremented. It was fitted to half of 38 points of Figure 4's table for 10 to 280 ms, and fits
// the others as well.
AckTimes by_clock_in_seconds(double sent_ms, double rtt_ms, std::uint64_t transmission_number) {
  const double sent_s = sent_ms / 1000;
  double received_s = sent_s + rtt_ms / 1000;
  if (scramble(transmission_number + kGoldenRatio) % 16 < 3) {
    received_s = std::bit_cast<double>(std::bit_cast<std::uint64_t>(received_s) + 1);
  }
  return {sent_s * 1000, received_s * 1000, received_s * 1000 - sent_s * 1000};
}

}  // namespace

Ns2Endpoint::Ns2Endpoint(const EndpointSetting& setting)
    : controller_(*setting.table),
      observer_(setting.observer),
      telemetry_(setting.telemetry),
      sender_(setting.sender),
      timer_(kTimeouts),
      usual_offset_ms_(rtt_offset_ms(setting.measurement, setting.rtt_offset_key, setting.sender)) {
  outgoing_.sender = setting.sender;
  outgoing_.bytes = static_cast<std::uint32_t>(setting.packet_bytes);
  outgoing_.is_ecn_capable = setting.is_ecn_capable;
}

void Ns2Endpoint::switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) {
  data_end_ = packets ? next_sequence_ + *packets : kEndless;
  reset_controller();
  set_send_timer(now_ms);
  act(now_ms, sink);
}

// Retransmissions continue, by the rule of a new memory: the study's application resets the agent
// when it stops, and again when it starts.
void Ns2Endpoint::switch_off(double now_ms) {
  data_end_ = next_sequence_;
  reset_controller();
  set_send_timer(now_ms);
}

// ACKs of packets that were sent before do not change the memory.
void Ns2Endpoint::reset_controller() {
  period_begin_ = results_.packets_sent;
  offset_ms_ = 0;
  last_send_ms_ = -kNever;
  used(controller_.start());
}

void Ns2Endpoint::on_ack(const Segment& echo, const AckContent& content, double now_ms,
                         PacketSink& sink) {
  latest_serial_end_ = std::max(latest_serial_end_, echo.transmission_number + 1);
  const double rtt_ms = now_ms - echo.sent_ms;
  results_.rtt.sampled(rtt_ms, now_ms);
  // The first ACK after an expiry restarts the timer with the doubled timeout; only the sample that
  // follows computes it anew. The timer runs on if all is acknowledged but not all is sent.
  if (content.cumulative > acknowledged_end_) {
    acknowledged_end_ = content.cumulative;
    if (is_done()) {
      timer_.stop();
    } else {
      timer_.restart(now_ms);
    }
  }
  timer_.sample(rtt_ms + offset_ms_);
  find_missing(echo.sequence, now_ms);
  if (echo.transmission_number >= period_begin_) {
    const AckTimes seen = by_clock_in_seconds(echo.sent_ms, rtt_ms, echo.transmission_number);
    used(controller_.acknowledge(
        seen.sent_ms, seen.received_ms, seen.rtt_ms + offset_ms_, 1, [&]() -> Feedback {
          return {1, content.marked, usage_since_last_ack(telemetry_, echo.transmission_number)};
        }));
    offset_ms_ = usual_offset_ms_;
  } else {
    used(controller_.acknowledge_earlier_period());
  }
  set_send_timer(now_ms);
  act(now_ms, sink);
}

// A packet beyond all received ones shows which packets before it are missing. Each is
// retransmitted once.
void Ns2Endpoint::find_missing(std::uint64_t sequence, double now_ms) {
  for (std::uint64_t packet = std::max(received_end_, acknowledged_end_); packet < sequence;
       ++packet) {
    missing_.insert(missing_.end(), packet);
    controller_.on_loss(now_ms, 1);
    if (losses_ != nullptr) {
      losses_->on_loss_found(packet, now_ms);
    }
  }
  received_end_ = std::max(received_end_, sequence + 1);
}

// The next send opportunity is one intersend time after the last transmission.
void Ns2Endpoint::set_send_timer(double now_ms) {
  next_send_ms_ = has_room() && has_something()
                      ? std::max(now_ms, last_send_ms_ + controller_.intersend_ms())
                      : kNever;
}

void Ns2Endpoint::act(double now_ms, PacketSink& sink) {
  if (timer_.expiry_ms() <= now_ms) {
    if (acknowledged_end_ == next_sequence_) {
      timer_.stop();
    } else {
      // The first packet that is not acknowledged is sent at once, whatever the window, and even if
      // it waits for its retransmission. The next send opportunity does not change.
      ++results_.timeouts;
      if (losses_ != nullptr) {
        losses_->on_loss_found(acknowledged_end_, now_ms);
      }
      controller_.on_timeout(now_ms, 1);
      timer_.back_off();
      timer_.restart(now_ms);
      send(acknowledged_end_, now_ms, sink);
    }
  }
  // One packet per opportunity; without pacing the next opportunity is at once.
  while (next_send_ms_ <= now_ms) {
    if (has_room() && has_something()) {
      send_next(now_ms, sink);
    }
    set_send_timer(now_ms);
  }
}

void Ns2Endpoint::send_next(double now_ms, PacketSink& sink) {
  if (missing_.empty()) {
    send(next_sequence_, now_ms, sink);
    return;
  }
  const std::uint64_t packet = *missing_.begin();
  missing_.erase(missing_.begin());
  send(packet, now_ms, sink);
}

void Ns2Endpoint::send(std::uint64_t sequence, double now_ms, PacketSink& sink) {
  if (sequence == next_sequence_) {
    ++next_sequence_;
  } else {
    ++results_.packets_retransmitted;
  }
  outgoing_.sent_ms = now_ms;
  outgoing_.sequence = sequence;
  outgoing_.transmission_number = results_.packets_sent++;
  last_send_ms_ = now_ms;
  if (!timer_.is_running()) {
    timer_.restart(now_ms);
  }
  sink.send(outgoing_, now_ms);
}

Pace Ns2Endpoint::pace() const {
  return {static_cast<double>(controller_.window_packets()), controller_.intersend_ms()};
}

std::optional<AckContent> Ns2Endpoint::on_data(const Segment& segment, double now_ms) {
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  const std::uint64_t in_order = reassembly_.in_order_end();
  reassembly_.add(segment.sequence);
  AckContent content;
  content.received_ms = now_ms;
  content.cumulative = reassembly_.in_order_end();
  content.marked = segment.is_marked ? 1 : 0;
  content.bytes = kAckBytes + kBlockBytes * static_cast<std::uint32_t>(reassembly_.blocks().size());
  if (content.cumulative > in_order) {
    results_.packets_in_order += content.cumulative - in_order;
    results_.rtt.handed_on();
  }
  return content;
}

void Ns2Endpoint::used(std::uint32_t rule) {
  if (observer_ != nullptr) {
    observer_->used(sender_, controller_, rule);
  }
}

Transport ns2() {
  return {
      .name = "ns2",
      .title = "RemyCC in ns-2",
      .variants = {{
          .name = "learnability",
          .source = "ns-2 as used for \"An Experimental Study of the Learnability of Congestion "
                    "Control\"",
          .parameters = {},
      }},
      .runs_tables = true,
      .make = [](const ParameterValues&, EndpointSetting setting) -> std::unique_ptr<Endpoint> {
        return std::make_unique<Ns2Endpoint>(setting);
      },
  };
}

}  // namespace remy
