#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace remy {

// One sentence about a command line that cannot be run.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What `remy-farm simulate` takes, too.
struct Arguments {
  std::vector<std::string> remyccs;  // senders take them in turn
  std::uint32_t senders = 0;
  double link_mbps = 0;
  double rtt_ms = 0;
  double on_ms = 0;
  double off_ms = 0;
  std::optional<std::uint32_t> buffer_packets;
  double loss = 0;
  double jitter_ms = 0;  // mean of an exponential distribution
  double timestamp_resolution_ms = 0;
  double time_unit_ms = 1;  // of the .dna files
  double seconds = 0;
  std::uint64_t seed = 1;
  bool json = false;
  bool help = false;
};

extern const char* const kUsage;

// Throws UsageError.
Arguments parse_arguments(int argc, char** argv);

}  // namespace remy
