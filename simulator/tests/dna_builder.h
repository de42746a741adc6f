#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "table/wire.h"

// Builds messages of .dna files field by field, for files that our writer never writes.
namespace remy::dna_builder {

inline std::string number(std::uint32_t field, double value) {
  std::string message;
  wire::append_double(message, field, value);
  return message;
}

inline std::string integer(std::uint32_t field, std::uint64_t value) {
  std::string message;
  wire::append_varint(message, field, value);
  return message;
}

inline std::string bytes(std::uint32_t field, std::string_view value) {
  std::string message;
  wire::append_bytes(message, field, value);
  return message;
}

// A Memory message: values of send_ewma, rec_ewma, rtt_ratio and so on. Trailing values may be
// absent.
inline std::string memory(const std::vector<double>& values) {
  std::string message;
  for (std::size_t axis = 0; axis < values.size(); ++axis) {
    message += number(21 + static_cast<std::uint32_t>(axis), values[axis]);
  }
  return message;
}

// Field 1 of a node: its domain.
inline std::string domain(const std::vector<double>& lower, const std::vector<double>& upper,
                          const std::vector<std::uint64_t>& axes = {}) {
  std::string range = bytes(11, memory(lower)) + bytes(12, memory(upper));
  for (const std::uint64_t axis : axes) {
    range += integer(13, axis);
  }
  return bytes(1, range);
}

// Field 3 of a node: its action, with a domain if one is given.
inline std::string leaf(std::int32_t increment, double multiple = 1, double intersend = 3,
                        std::string_view own_domain = {}) {
  std::string whisker =
      integer(31, wire::zigzag(increment)) + number(32, multiple) + number(33, intersend);
  if (!own_domain.empty()) {
    whisker += bytes(34, own_domain);
  }
  return bytes(3, whisker);
}

inline std::string child(std::string_view node) { return bytes(2, node); }

// A node split on rtt_ratio at 2, as in files without active axes. The increment of the action
// tells which side a leaf is.
inline std::string lower_half() { return domain({0, 0, 0}, {16384, 16384, 2}) + leaf(1); }
inline std::string upper_half() { return domain({0, 0, 2}, {16384, 16384, 16384}) + leaf(2); }
inline std::string whole_domain() { return domain({0, 0, 0}, {16384, 16384, 16384}); }
inline std::string two_halves() {
  return whole_domain() + child(lower_half()) + child(upper_half());
}

}  // namespace remy::dna_builder
