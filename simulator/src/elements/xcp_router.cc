#include "elements/xcp_router.h"

#include <algorithm>
#include <cmath>

#include "elements/queues.h"

namespace remy {

XcpRouter::XcpRouter(const XcpParameters& parameters, std::uint64_t limit_packets,
                     double rate_packets_per_ms, double packet_bytes)
    : parameters_(parameters),
      limit_packets_(limit_packets),
      rate_packets_per_ms_(rate_packets_per_ms),
      packet_bytes_(packet_bytes),
      mean_rtt_ms_(parameters.initial_interval_ms) {}

void XcpRouter::accept(const Segment& segment, double now_ms, DropListener& drops) {
  if (interval_end_ms_ == kNever) {
    start_clock(now_ms);
  }
  const double size = static_cast<double>(segment.bytes) / packet_bytes_;
  input_packets_ += size;
  const CongestionHeader& header = segment.congestion;
  if (!segment.is_ack && header.rtt_ms > 0) {
    const double rtt_by_rate = header.rtt_ms * size / header.window_packets;
    sum_rtt_by_rate_ += rtt_by_rate;
    sum_rtt_square_by_rate_ += std::min(header.rtt_ms, kLongestIntervalMs) * rtt_by_rate;
  }
  if (packets() >= limit_packets_) {
    drops.dropped(segment, now_ms);
    return;
  }
  Segment& kept = waiting_.push();
  kept = segment;
  kept.queued_ms = now_ms;
  joined(segment);
}

Segment* XcpRouter::depart(double, DropListener&) {
  if (waiting_.empty()) {
    return nullptr;
  }
  Segment& departing = waiting_.pop();
  left(departing);
  minimum_queue_packets_ = std::min(minimum_queue_packets_, queue_packets());
  if (!departing.is_ack) {
    grant(departing);
  }
  return &departing;
}

void XcpRouter::start_clock(double now_ms) {
  mean_rtt_ms_ = parameters_.initial_interval_ms;
  interval_start_ms_ = now_ms;
  interval_end_ms_ = now_ms + mean_rtt_ms_;
  standing_queue_packets_ = 0;
  minimum_queue_packets_ = 0;
  queue_interval_end_ms_ = now_ms + mean_rtt_ms_;
  set_clock();
}

void XcpRouter::tick(double now_ms) {
  if (queue_interval_end_ms_ <= now_ms) {
    measure_queue(now_ms);
  }
  if (interval_end_ms_ <= now_ms) {
    control(now_ms);
  }
  set_clock();
}

// Section 3.5.3: the queue that stays is the least seen in the time that a packet takes to come
// back, less what it waits here.
void XcpRouter::measure_queue(double now_ms) {
  standing_queue_packets_ = minimum_queue_packets_;
  minimum_queue_packets_ = queue_packets();
  const double wait_ms = queue_packets() / rate_packets_per_ms_;
  queue_interval_end_ms_ =
      now_ms + std::max(kShortestQueueIntervalMs, (mean_rtt_ms_ - wait_ms) / 2);
}

void XcpRouter::control(double now_ms) {
  // The mean RTT over packets, each counted by the time that it stands for.
  mean_rtt_ms_ = sum_rtt_by_rate_ > 0 ? sum_rtt_square_by_rate_ / sum_rtt_by_rate_
                                      : parameters_.initial_interval_ms;
  mean_rtt_ms_ = std::clamp(mean_rtt_ms_, kShortestIntervalMs, kLongestIntervalMs);
  positive_share_ = 0;
  negative_share_ = 0;
  positive_left_ = 0;
  negative_left_ = 0;
  if (input_packets_ == 0 && packets() == 0) {
    interval_end_ms_ = kNever;
    queue_interval_end_ms_ = kNever;
    return;
  }
  if (input_packets_ > 0) {
    const double input_per_ms = input_packets_ / (now_ms - interval_start_ms_);
    // Section 3.5.1: the aggregate feedback is a part of the spare bandwidth of an RTT, less a part
    // of the queue that stays.
    const double feedback_packets =
        parameters_.alpha * mean_rtt_ms_ * (rate_packets_per_ms_ - input_per_ms) -
        parameters_.beta * standing_queue_packets_;
    // Section 3.5.2: so much traffic is shuffled, that shares converge where nothing is spare.
    const double shuffled_packets = std::max(
        0.0, parameters_.gamma * input_per_ms * mean_rtt_ms_ - std::fabs(feedback_packets));
    positive_left_ = (shuffled_packets + std::max(0.0, feedback_packets)) / mean_rtt_ms_;
    negative_left_ = (shuffled_packets + std::max(0.0, -feedback_packets)) / mean_rtt_ms_;
    // A flow's positive share is the same for all flows; its negative share goes with its rate.
    if (sum_rtt_by_rate_ > 0) {
      positive_share_ = positive_left_ / sum_rtt_by_rate_;
    }
    negative_share_ = negative_left_ / input_packets_;
  }
  input_packets_ = 0;
  sum_rtt_by_rate_ = 0;
  sum_rtt_square_by_rate_ = 0;
  interval_start_ms_ = now_ms;
  interval_end_ms_ = now_ms + mean_rtt_ms_;
}

void XcpRouter::grant(Segment& segment) {
  CongestionHeader& header = segment.congestion;
  if (header.rtt_ms <= 0) {
    header.feedback_packets = 0;
    return;
  }
  const double size = static_cast<double>(segment.bytes) / packet_bytes_;
  const double rtt_ms = header.rtt_ms;
  double positive = std::min(positive_share_ * rtt_ms * rtt_ms * size / header.window_packets,
                             positive_left_ * rtt_ms);
  double negative = std::min(negative_share_ * rtt_ms * size, negative_left_ * rtt_ms);
  const double feedback = positive - negative;
  if (header.feedback_packets >= feedback) {
    header.feedback_packets = feedback;
  } else {
    // Another router grants less, or the sender wants less: the rest is others'.
    negative = std::min(negative + (feedback - header.feedback_packets), negative_left_ * rtt_ms);
    positive = std::max(0.0, header.feedback_packets + negative);
  }
  positive_left_ = std::max(0.0, positive_left_ - positive / rtt_ms);
  negative_left_ = std::max(0.0, negative_left_ - negative / rtt_ms);
}

QueueDiscipline xcp_router() {
  const XcpParameters usual;
  return {
      .name = "xcp",
      .title = "XCP router",
      .variants = {{"katabi2002",
                    "Katabi, Handley and Rohrs 2002",
                    {{"alpha", "of the spare bandwidth, handed out", usual.alpha, 0, 2},
                     {"beta", "of the standing queue, taken back", usual.beta, 0, 2},
                     {"gamma", "of the traffic, shuffled", usual.gamma, 0, 1},
                     {"initial_interval_ms", "of control, while no RTT is known",
                      usual.initial_interval_ms, 1, 1000}}}},
      .is_xcp_router = true,
      .make = [](const Chosen& chosen, const QueueSetting& setting) -> std::unique_ptr<Queue> {
        return std::make_unique<XcpRouter>(
            XcpParameters{.alpha = chosen["alpha"],
                          .beta = chosen["beta"],
                          .gamma = chosen["gamma"],
                          .initial_interval_ms = chosen["initial_interval_ms"]},
            limit_packets("xcp", setting), setting.rate_packets_per_ms, setting.packet_bytes);
      },
  };
}

}  // namespace remy
