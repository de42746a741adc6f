#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// The Protocol Buffers wire format: a message is a sequence of numbered, typed fields.
namespace remy::wire {

enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A malformed message. what() is a predicate: "ends in the middle of a field".
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One field of a message. Its views point into the message.
struct Field {
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t integer = 0;  // value of kVarint, bits of kFixed64 and kFixed32
  std::string_view bytes;     // value of kBytes
  std::string_view encoded;   // the entire field, tag included
};

// Removes and returns the first field of a message, which must not be empty. Does not allocate.
// Throws Malformed.
Field take_field(std::string_view& message);

// Removes and returns the first varint of packed values, which must not be empty. Throws Malformed.
std::uint64_t take_varint(std::string_view& values);

void append_varint(std::string& message, std::uint32_t number, std::uint64_t value);
void append_double(std::string& message, std::uint32_t number, double value);
void append_bytes(std::string& message, std::uint32_t number, std::string_view value);

// ZigZag encoding of signed integers (type sint32): 0, -1, 1, -2, ... map to 0, 1, 2, 3, ...
std::uint32_t zigzag(std::int32_t value);
std::int32_t unzigzag(std::uint32_t value);

}  // namespace remy::wire
