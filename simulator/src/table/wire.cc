#include "table/wire.h"

#include <bit>
#include <limits>

namespace remy::wire {
namespace {

constexpr unsigned kTypeBits = 3;
constexpr std::size_t kLongestVarint = 10;

std::string_view take(std::string_view& message, std::uint64_t length) {
  if (length > message.size()) {
    throw Malformed("ends in the middle of a field");
  }
  const std::string_view taken = message.substr(0, static_cast<std::size_t>(length));
  message.remove_prefix(taken.size());
  return taken;
}

std::uint64_t take_little_endian(std::string_view& message, std::size_t length) {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char byte : take(message, length)) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return value;
}

void append_raw_varint(std::string& message, std::uint64_t value) {
  while (value >= 0x80) {
    message.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  message.push_back(static_cast<char>(value));
}

void append_tag(std::string& message, std::uint32_t number, Type type) {
  append_raw_varint(message, std::uint64_t{number} << kTypeBits | static_cast<unsigned>(type));
}

}  // namespace

std::uint64_t take_varint(std::string_view& values) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLongestVarint; ++i) {
    const std::uint64_t byte = take_little_endian(values, 1);
    if (i + 1 == kLongestVarint && byte > 1) {
      break;
    }
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      return value;
    }
  }
  throw Malformed("holds a varint of more than 64 bits");
}

Field take_field(std::string_view& message) {
  const std::string_view start = message;
  const std::uint64_t tag = take_varint(message);
  if (tag >> kTypeBits == 0 || tag > std::numeric_limits<std::uint32_t>::max()) {
    throw Malformed("holds field number " + std::to_string(tag >> kTypeBits) +
                    "; field numbers go from 1 to 536870911");
  }
  Field field;
  field.number = static_cast<std::uint32_t>(tag >> kTypeBits);
  field.type = static_cast<Type>(tag & ((1U << kTypeBits) - 1));
  switch (field.type) {
    case Type::kVarint:
      field.integer = take_varint(message);
      break;
    case Type::kFixed64:
      field.integer = take_little_endian(message, 8);
      break;
    case Type::kBytes:
      field.bytes = take(message, take_varint(message));
      break;
    case Type::kFixed32:
      field.integer = take_little_endian(message, 4);
      break;
    default:
      throw Malformed("holds field " + std::to_string(field.number) + " with wire type " +
                      std::to_string(static_cast<unsigned>(field.type)) +
                      "; wire types are 0, 1, 2 and 5");
  }
  field.encoded = start.substr(0, start.size() - message.size());
  return field;
}

void append_varint(std::string& message, std::uint32_t number, std::uint64_t value) {
  append_tag(message, number, Type::kVarint);
  append_raw_varint(message, value);
}

void append_double(std::string& message, std::uint32_t number, double value) {
  append_tag(message, number, Type::kFixed64);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (unsigned shift = 0; shift < 64; shift += 8) {
    message.push_back(static_cast<char>(bits >> shift & 0xFF));
  }
}

void append_bytes(std::string& message, std::uint32_t number, std::string_view value) {
  append_tag(message, number, Type::kBytes);
  append_raw_varint(message, value.size());
  message.append(value);
}

std::uint32_t zigzag(std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  return value < 0 ? ~(bits << 1) : bits << 1;
}

std::int32_t unzigzag(std::uint32_t value) {
  return static_cast<std::int32_t>((value >> 1) ^ (~(value & 1) + 1));
}

}  // namespace remy::wire
