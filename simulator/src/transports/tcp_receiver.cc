#include "transports/tcp_receiver.h"

#include <algorithm>

namespace remy {

void TcpReceiver::start_connection(std::uint64_t first_packet) {
  reassembly_.start_at(first_packet);
  time_stamp_ms_ = 0;
  unacked_packets_ = 0;
  unacked_marks_ = 0;
  delayed_ack_due_ms_ = kNever;
}

std::optional<AckContent> TcpReceiver::on_data(const Segment& segment, double now_ms,
                                               EndpointResults& results) {
  // The returned object itself, so that it is not copied.
  std::optional<AckContent> content;
  const std::uint64_t in_order_before = reassembly_.in_order_end();
  // RFC 7323, section 4.3, rule 2: "SEG.SEQ <= Last.ACK.sent".
  if (segment.sequence <= in_order_before) {
    time_stamp_ms_ = std::max(time_stamp_ms_, segment.sent_ms);
  }
  if (!delivers_in_order_) {
    ++results.packets_in_order;
    results.rtt.handed_on();
    content.emplace();
    content->received_ms = now_ms;
    content->marked = segment.is_marked ? 1 : 0;
    return content;
  }
  const bool is_new = reassembly_.add(segment.sequence);
  const std::uint64_t newly_in_order = reassembly_.in_order_end() - in_order_before;
  if (newly_in_order > 0) {
    results.packets_in_order += newly_in_order;
    results.rtt.handed_on();
  }
  ++unacked_packets_;
  unacked_marks_ += segment.is_marked ? 1 : 0;
  // RFC 5681, section 4.2: "an ACK SHOULD be generated for at least every second full-sized
  // segment", and at once if a segment is out of order or fills a gap.
  if (delayed_ack_ms_ > 0 && unacked_packets_ < 2 && newly_in_order == 1 &&
      !reassembly_.has_gap()) {
    delayed_packet_ = segment;
    delayed_packet_received_ms_ = now_ms;
    delayed_ack_due_ms_ = now_ms + delayed_ack_ms_;
    return content;
  }
  fill_ack(content.emplace(), segment, now_ms);
  content->is_duplicate = !is_new;
  return content;
}

std::pair<Segment, AckContent> TcpReceiver::take_delayed_ack() {
  std::pair<Segment, AckContent> ack{delayed_packet_, {}};
  fill_ack(ack.second, delayed_packet_, delayed_packet_received_ms_);
  return ack;
}

void TcpReceiver::fill_ack(AckContent& content, const Segment& segment, double received_ms) {
  content.received_ms = received_ms;
  content.time_stamp_ms = time_stamp_ms_;
  content.cumulative = reassembly_.in_order_end();
  content.packets = std::exchange(unacked_packets_, 0);
  content.marked = std::exchange(unacked_marks_, 0);
  content.feedback_packets = segment.congestion.feedback_packets;
  delayed_ack_due_ms_ = kNever;
  if (sends_sacks_) {
    reassembly_.report(content);
  }
}

}  // namespace remy
