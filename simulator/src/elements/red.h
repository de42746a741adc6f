#pragma once

#include <cstdint>

#include "core/ring.h"
#include "elements/queue.h"

namespace remy {

struct RedParameters {
  double minimum_packets = 5;  // average queue length below which nothing is marked (min_th)
  // Average queue length from which on every arrival is marked (max_th).
  double maximum_packets = 15;
  double maximum_probability = 0.02;  // marking probability just below max_th (max_p)
  double weight = 0.002;              // weight of an arrival in the average (w_q)
  // Between max_th and 2 max_th the probability rises linearly to 1, instead of jumping to 1.
  bool is_gentle = false;
  bool uses_ecn = true;  // false: drops instead of marking
};

// Random early detection (Floyd and Jacobson 1993): marks arrivals with a probability that grows
// with the average queue length. Segments that are not ECN-capable are dropped instead (RFC 3168,
// section 5).
//
// With a weight of 1 and both thresholds at K it is the switch that DCTCP requires (RFC 8257,
// section 3.1): an arrival is marked if K packets wait, that is, if more than K packets are present
// including the one in transmission.
class RedQueue final : public Queue {
 public:
  // `service_ms` is the transmission time of a typical packet, for the average's decay while the
  // link is idle. `key` is that of the random draws.
  RedQueue(const RedParameters& parameters, std::uint64_t limit_packets, double service_ms,
           std::uint64_t key)
      : parameters_(parameters),
        limit_packets_(limit_packets),
        service_ms_(service_ms),
        key_(key) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

  double average_packets() const { return average_packets_; }

 private:
  void update_average(double now_ms);
  bool should_mark();

  RedParameters parameters_;
  std::uint64_t limit_packets_;
  double service_ms_;
  std::uint64_t key_;
  Ring<Segment> waiting_;
  double average_packets_ = 0;
  double idle_since_ms_ = 0;
  bool is_link_idle_ = true;
  std::uint64_t arrivals_ = 0;
  // Arrivals since the last mark, between the thresholds (the paper's count).
  std::uint64_t count_since_mark_ = 0;
};

}  // namespace remy
