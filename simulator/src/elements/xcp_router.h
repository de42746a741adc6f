#pragma once

#include <algorithm>
#include <cstdint>

#include "elements/queue.h"
#include "elements/ring.h"

namespace remy {

struct XcpParameters {
  double alpha = 0.4;   // of the spare bandwidth that is handed out
  double beta = 0.226;  // of the standing queue that is taken back
  double gamma = 0.1;   // of the traffic that is moved from those who have to those who have not
  double initial_interval_ms = 50;  // of control, while no RTT is known
};

// The router of XCP (Katabi, Handley and Rohrs 2002, section 3.5): a drop-tail queue that writes
// into each packet how its sender's window shall change. Once a control interval, which is the mean
// RTT of the senders, the efficiency controller says by how much all together; the fairness
// controller deals that out, additive increase alike for all flows and multiplicative decrease in
// proportion to what they have. It needs the link's exact rate.
//
// Packets count, of `packet_bytes`; smaller segments count as parts. The clock runs from an arrival
// until nothing has arrived for a control interval.
class XcpRouter final : public Queue {
 public:
  XcpRouter(const XcpParameters& parameters, std::uint64_t limit_packets,
            double rate_packets_per_ms, double packet_bytes);

  void accept(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* depart(double now_ms, DropListener& drops) override;
  void tick(double now_ms) override;

 private:
  // As in ns-2.
  static constexpr double kShortestIntervalMs = 1;
  static constexpr double kLongestIntervalMs = 1000;
  static constexpr double kShortestQueueIntervalMs = 2;

  void start_clock(double now_ms);
  void set_clock() { next_ms_ = std::min(interval_end_ms_, queue_interval_end_ms_); }
  void control(double now_ms);
  void measure_queue(double now_ms);
  void grant(Segment& segment);
  double queue_packets() const { return static_cast<double>(bytes()) / packet_bytes_; }

  XcpParameters parameters_;
  std::uint64_t limit_packets_;
  double rate_packets_per_ms_;
  double packet_bytes_;
  Ring<Segment> waiting_;

  // Of the control interval that runs.
  double interval_start_ms_ = 0;
  double interval_end_ms_ = kNever;
  double input_packets_ = 0;
  double sum_rtt_by_rate_ = 0;         // of RTT x size / window, over the packets
  double sum_rtt_square_by_rate_ = 0;  // of RTT x RTT x size / window

  // What the last one decided.
  double mean_rtt_ms_;
  double positive_share_ = 0;  // xi p
  double negative_share_ = 0;  // xi n
  // What is left of that to deal out, packets a ms.
  double positive_left_ = 0;
  double negative_left_ = 0;

  // The queue that stays: its minimum over an interval of its own.
  double queue_interval_end_ms_ = kNever;
  double standing_queue_packets_ = 0;
  double minimum_queue_packets_ = 0;
};

}  // namespace remy
