#pragma once

#include <cstdint>

#include "core/random.h"

namespace remy {

// The random draws of a sender. Each connection has a part of the stream of its own, so that what
// it draws does not depend on how much earlier connections have drawn.
class ConnectionDraws {
 public:
  explicit ConnectionDraws(std::uint64_t key) : key_(key) {}

  void start_connection() { next_ = connections_++ << 32; }
  std::uint64_t next_bits() { return random_bits(key_, next_++); }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 0;
  std::uint64_t connections_ = 0;
};

}  // namespace remy
