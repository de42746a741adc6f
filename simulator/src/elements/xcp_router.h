#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ring.h"
#include "elements/queue.h"

namespace remy {

struct XcpParameters {
  double alpha = 0.4;   // fraction of the spare bandwidth that is added to the aggregate feedback
  double beta = 0.226;  // fraction of the persistent queue that is subtracted from it
  double gamma = 0.1;   // fraction of the traffic that is shuffled between flows
  double initial_interval_ms = 50;  // control interval before an RTT is known
};

// The router of XCP (Katabi, Handley and Rohrs 2002, section 3.5): a drop-tail queue that writes
// into each packet by how much its sender's window shall change. Once per control interval (the
// mean RTT of the senders) the efficiency controller computes the aggregate feedback. The fairness
// controller divides it among flows: additive increase is equal for all flows, multiplicative
// decrease is proportional to their rates. It needs the link's exact rate.
//
// Quantities are in packets of `packet_bytes`; smaller segments count as fractions. The timers
// start with an arrival and stop after a control interval without arrivals.
class XcpRouter final : public Queue {
 public:
  XcpRouter(const XcpParameters& parameters, std::uint64_t limit_packets,
            double rate_packets_per_ms, double packet_bytes);

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;
  void tick(double now_ms) override;

 private:
  // Values of ns-2.
  static constexpr double kMinIntervalMs = 1;
  static constexpr double kMaxIntervalMs = 1000;
  static constexpr double kMinQueueIntervalMs = 2;

  void start_timers(double now_ms);
  void schedule_timer() { next_ms_ = std::min(control_end_ms_, queue_interval_end_ms_); }
  void end_control_interval(double now_ms);
  void end_queue_interval(double now_ms);
  void write_feedback(Segment& segment);
  double queue_packets() const { return static_cast<double>(bytes()) / packet_bytes_; }

  XcpParameters parameters_;
  std::uint64_t limit_packets_;
  double rate_packets_per_ms_;
  double packet_bytes_;
  Ring<Segment> waiting_;

  // Measurements of the current control interval.
  double control_start_ms_ = 0;
  double control_end_ms_ = kNever;
  double input_packets_ = 0;
  double sum_rtt_by_cwnd_ = 0;         // sum of RTT x size / window over the packets
  double sum_rtt_square_by_cwnd_ = 0;  // sum of RTT^2 x size / window

  // Decisions at the end of the last control interval.
  double mean_rtt_ms_;
  double xi_pos_ = 0;
  double xi_neg_ = 0;
  // Feedback not yet allocated, in packets per ms (the paper's residue_pos and residue_neg).
  double residue_pos_ = 0;
  double residue_neg_ = 0;

  // The persistent queue: the minimum over a queue interval.
  double queue_interval_end_ms_ = kNever;
  double persistent_queue_packets_ = 0;
  double min_queue_packets_ = 0;
};

}  // namespace remy
