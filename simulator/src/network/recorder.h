#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/endpoint.h"

namespace remy {

// The state of a sender at one time.
struct SenderSample {
  bool is_on = false;
  Pace pace;
  double rtt_ms = 0;  // of the last ACK; 0 before the first
  EndpointResults counts;
};

// The state of a link at one time.
struct LinkSample {
  std::size_t waiting_packets = 0;
  std::size_t waiting_bytes = 0;
  std::uint64_t dropped = 0;  // since the beginning
};

// Receives samples of a network's state at equal intervals of simulated time.
class Recorder {
 public:
  virtual void sample(double now_ms, std::span<const SenderSample> senders,
                      std::span<const LinkSample> links) = 0;

 protected:
  ~Recorder() = default;
};

}  // namespace remy
