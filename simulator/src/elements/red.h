#pragma once

#include <cstdint>

#include "elements/queue.h"
#include "elements/ring.h"

namespace remy {

struct RedParameters {
  double minimum_packets = 5;         // of the average, below which nothing is marked
  double maximum_packets = 15;        // from which on everything is
  double maximum_probability = 0.02;  // of a mark, just below the maximum
  double weight = 0.002;              // of one arrival in the average
  // Between one and two times the maximum the probability goes on growing, instead of all at once.
  bool is_gentle = false;
  bool uses_ecn = true;  // else what would be marked is dropped
};

// Random early detection (Floyd and Jacobson 1993): arrivals are marked with a probability that
// grows with the average length of the queue. Marked means dropped where a segment is not capable
// of ECN (RFC 3168, section 5).
//
// With a weight of 1 and both thresholds at K it is what DCTCP wants of a switch (RFC 8257, section
// 3.1): an arrival is marked when more than K packets are there with the one that the link
// transmits, that is, when K wait.
class RedQueue final : public Queue {
 public:
  // `service_ms` of a typical packet, in which an idle link would have sent it. `key` names the
  // draws.
  RedQueue(const RedParameters& parameters, std::uint64_t limit_packets, double service_ms,
           std::uint64_t key)
      : parameters_(parameters),
        limit_packets_(limit_packets),
        service_ms_(service_ms),
        key_(key) {}

  void accept(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* depart(double now_ms, DropListener& drops) override;

  double average_packets() const { return average_packets_; }

 private:
  void update_average(double now_ms);
  bool is_chosen();

  RedParameters parameters_;
  std::uint64_t limit_packets_;
  double service_ms_;
  std::uint64_t key_;
  Ring<Segment> waiting_;
  double average_packets_ = 0;
  double idle_since_ms_ = 0;
  bool is_link_idle_ = true;
  std::uint64_t arrivals_ = 0;
  std::uint64_t since_mark_ = 0;  // arrivals between the thresholds that have not been marked
};

}  // namespace remy
