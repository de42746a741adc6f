#pragma once

#include <cstdint>

namespace remy {

// What one sender got out of a simulation.
struct SenderResults {
  std::uint64_t packets_received = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_lost = 0;
  double on_ms = 0;         // time spent on
  double share_ms = 0;      // integral over the on time of dt / (number of senders on)
  double delay_sum_ms = 0;  // over the received packets, ACK time - sending time
  double first_on_ms = 0;   // when first on; the simulated time if never
};

}  // namespace remy
