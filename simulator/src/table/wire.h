#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// The Protocol Buffers wire format: messages as sequences of numbered, typed fields.
namespace remy::wire {

enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// What is wrong with a message, as the predicate of a sentence: "ends in the middle of a field".
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One field of a message; the views point into the message.
struct Field {
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t integer = 0;  // the value of kVarint, the bits of kFixed64 and kFixed32
  std::string_view bytes;     // the value of kBytes
  std::string_view encoded;   // the whole field with its tag
};

// Takes the first field off a message that is not empty. Allocates nothing. Throws Malformed.
Field take_field(std::string_view& message);

// Takes a varint off packed values that are not empty. Throws Malformed.
std::uint64_t take_varint(std::string_view& values);

void append_varint(std::string& message, std::uint32_t number, std::uint64_t value);
void append_double(std::string& message, std::uint32_t number, double value);
void append_bytes(std::string& message, std::uint32_t number, std::string_view value);

// The order of signed values on the wire (type sint32): 0, -1, 1, -2, ...
std::uint32_t zigzag(std::int32_t value);
std::int32_t unzigzag(std::uint32_t value);

}  // namespace remy::wire
