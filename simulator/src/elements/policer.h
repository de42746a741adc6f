#pragma once

#include <algorithm>
#include <cstdint>

namespace remy {

// A policer before a queue: a token bucket (RFC 2697 with one colour) that fills at a rate up to a
// burst size and starts full. A segment that exceeds the tokens is dropped.
struct Policer {
  double rate_packets_per_ms = 1;
  double burst_packets = 10;
};

class TokenBucket {
 public:
  TokenBucket(const Policer& policer, double packet_bytes)
      : bytes_per_ms_(policer.rate_packets_per_ms * packet_bytes),
        burst_bytes_(policer.burst_packets * packet_bytes),
        tokens_bytes_(burst_bytes_) {}

  // Returns true if a segment conforms, and takes its tokens.
  bool admits(double now_ms, std::uint32_t bytes) {
    tokens_bytes_ =
        std::min(burst_bytes_, tokens_bytes_ + (now_ms - last_fill_ms_) * bytes_per_ms_);
    last_fill_ms_ = now_ms;
    if (tokens_bytes_ < bytes) {
      return false;
    }
    tokens_bytes_ -= bytes;
    return true;
  }

 private:
  double bytes_per_ms_;
  double burst_bytes_;
  double tokens_bytes_;
  double last_fill_ms_ = 0;
};

}  // namespace remy
