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

void XcpRouter::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  if (control_end_ms_ == kNever) {
    start_timers(now_ms);
  }
  const double size = static_cast<double>(segment.bytes) / packet_bytes_;
  input_packets_ += size;
  const CongestionHeader& header = segment.congestion;
  if (!segment.is_ack && header.rtt_ms > 0) {
    const double rtt_by_cwnd = header.rtt_ms * size / header.window_packets;
    sum_rtt_by_cwnd_ += rtt_by_cwnd;
    sum_rtt_square_by_cwnd_ += std::min(header.rtt_ms, kMaxIntervalMs) * rtt_by_cwnd;
  }
  if (packets() >= limit_packets_) {
    drops.on_drop(segment, now_ms);
    return;
  }
  Segment& kept = waiting_.push();
  kept = segment;
  kept.queued_ms = now_ms;
  count_enqueued(segment);
}

Segment* XcpRouter::dequeue(double, DropListener&) {
  if (waiting_.empty()) {
    return nullptr;
  }
  Segment& departing = waiting_.pop();
  count_dequeued(departing);
  min_queue_packets_ = std::min(min_queue_packets_, queue_packets());
  if (!departing.is_ack) {
    write_feedback(departing);
  }
  return &departing;
}

void XcpRouter::start_timers(double now_ms) {
  mean_rtt_ms_ = parameters_.initial_interval_ms;
  control_start_ms_ = now_ms;
  control_end_ms_ = now_ms + mean_rtt_ms_;
  persistent_queue_packets_ = 0;
  min_queue_packets_ = 0;
  queue_interval_end_ms_ = now_ms + mean_rtt_ms_;
  schedule_timer();
}

void XcpRouter::tick(double now_ms) {
  if (queue_interval_end_ms_ <= now_ms) {
    end_queue_interval(now_ms);
  }
  if (control_end_ms_ <= now_ms) {
    end_control_interval(now_ms);
  }
  schedule_timer();
}

// Section 3.5.3: the persistent queue is the minimum queue over half the mean RTT without queueing.
void XcpRouter::end_queue_interval(double now_ms) {
  persistent_queue_packets_ = min_queue_packets_;
  min_queue_packets_ = queue_packets();
  const double wait_ms = queue_packets() / rate_packets_per_ms_;
  queue_interval_end_ms_ = now_ms + std::max(kMinQueueIntervalMs, (mean_rtt_ms_ - wait_ms) / 2);
}

void XcpRouter::end_control_interval(double now_ms) {
  // The mean RTT of packets, each weighted by RTT x size / window (section 3.5.1).
  mean_rtt_ms_ = sum_rtt_by_cwnd_ > 0 ? sum_rtt_square_by_cwnd_ / sum_rtt_by_cwnd_
                                      : parameters_.initial_interval_ms;
  mean_rtt_ms_ = std::clamp(mean_rtt_ms_, kMinIntervalMs, kMaxIntervalMs);
  xi_pos_ = 0;
  xi_neg_ = 0;
  residue_pos_ = 0;
  residue_neg_ = 0;
  if (input_packets_ == 0 && packets() == 0) {
    control_end_ms_ = kNever;
    queue_interval_end_ms_ = kNever;
    return;
  }
  if (input_packets_ > 0) {
    const double input_per_ms = input_packets_ / (now_ms - control_start_ms_);
    // Section 3.5.1: phi = alpha d S - beta Q, with the mean RTT d, spare bandwidth S and
    // persistent queue Q.
    const double feedback_packets =
        parameters_.alpha * mean_rtt_ms_ * (rate_packets_per_ms_ - input_per_ms) -
        parameters_.beta * persistent_queue_packets_;
    // Section 3.5.2: traffic that is shuffled so that rates converge even if no bandwidth is spare.
    const double shuffled_traffic = std::max(
        0.0, parameters_.gamma * input_per_ms * mean_rtt_ms_ - std::fabs(feedback_packets));
    residue_pos_ = (shuffled_traffic + std::max(0.0, feedback_packets)) / mean_rtt_ms_;
    residue_neg_ = (shuffled_traffic + std::max(0.0, -feedback_packets)) / mean_rtt_ms_;
    // Positive feedback is equal for all flows; negative feedback is proportional to a flow's rate.
    if (sum_rtt_by_cwnd_ > 0) {
      xi_pos_ = residue_pos_ / sum_rtt_by_cwnd_;
    }
    xi_neg_ = residue_neg_ / input_packets_;
  }
  input_packets_ = 0;
  sum_rtt_by_cwnd_ = 0;
  sum_rtt_square_by_cwnd_ = 0;
  control_start_ms_ = now_ms;
  control_end_ms_ = now_ms + mean_rtt_ms_;
}

void XcpRouter::write_feedback(Segment& segment) {
  CongestionHeader& header = segment.congestion;
  if (header.rtt_ms <= 0) {
    header.feedback_packets = 0;
    return;
  }
  const double size = static_cast<double>(segment.bytes) / packet_bytes_;
  const double rtt_ms = header.rtt_ms;
  double positive =
      std::min(xi_pos_ * rtt_ms * rtt_ms * size / header.window_packets, residue_pos_ * rtt_ms);
  double negative = std::min(xi_neg_ * rtt_ms * size, residue_neg_ * rtt_ms);
  const double feedback = positive - negative;
  if (header.feedback_packets >= feedback) {
    header.feedback_packets = feedback;
  } else {
    // Another router, or the sender's demand, limits the feedback. The rest is left for other
    // flows.
    negative = std::min(negative + (feedback - header.feedback_packets), residue_neg_ * rtt_ms);
    positive = std::max(0.0, header.feedback_packets + negative);
  }
  residue_pos_ = std::max(0.0, residue_pos_ - positive / rtt_ms);
  residue_neg_ = std::max(0.0, residue_neg_ - negative / rtt_ms);
}

QueueDiscipline xcp_router() {
  const XcpParameters defaults;
  return {
      .name = "xcp",
      .title = "XCP router",
      .variants = {{"katabi2002",
                    "Katabi, Handley and Rohrs 2002",
                    {{"alpha", "fraction of the spare bandwidth in the aggregate feedback",
                      defaults.alpha, 0, 2},
                     {"beta", "fraction of the persistent queue in the aggregate feedback",
                      defaults.beta, 0, 2},
                     {"gamma", "fraction of the traffic that is shuffled", defaults.gamma, 0, 1},
                     {"initial_interval_ms", "control interval before an RTT is known",
                      defaults.initial_interval_ms, 1, 1000}}}},
      .is_xcp_router = true,
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        return std::make_unique<XcpRouter>(
            XcpParameters{.alpha = values["alpha"],
                          .beta = values["beta"],
                          .gamma = values["gamma"],
                          .initial_interval_ms = values["initial_interval_ms"]},
            limit_packets("xcp", setting), setting.rate_packets_per_ms, setting.packet_bytes);
      },
  };
}

}  // namespace remy
