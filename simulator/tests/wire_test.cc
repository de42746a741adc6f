#include "table/wire.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <string_view>

namespace remy::wire {
namespace {

using namespace std::string_view_literals;

Field only_field(std::string_view message) {
  const Field field = take_field(message);
  EXPECT_TRUE(message.empty());
  return field;
}

std::string refusal(std::string_view message) {
  try {
    take_field(message);
  } catch (const Malformed& error) {
    return error.what();
  }
  return "accepted";
}

// The examples of the format's public documentation.
TEST(Wire, EncodesTheExamplesOfTheFormat) {
  std::string message;
  append_varint(message, 1, 150);
  EXPECT_EQ(message, "\x08\x96\x01"sv);

  message.clear();
  append_bytes(message, 2, "testing");
  EXPECT_EQ(message, "\x12\x07testing"sv);

  message.clear();
  append_double(message, 22, 1.0);
  EXPECT_EQ(message, "\xb1\x01\x00\x00\x00\x00\x00\x00\xf0\x3f"sv);
}

TEST(Wire, RoundTripsVarintsOfEveryLength) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t value :
         {std::uint64_t{1} << bits, (std::uint64_t{1} << bits) - 1, ~std::uint64_t{0} >> bits}) {
      std::string message;
      append_varint(message, 536870911, value);
      const Field field = only_field(message);
      EXPECT_EQ(field.number, 536870911U);
      EXPECT_EQ(field.type, Type::kVarint);
      EXPECT_EQ(field.integer, value);
    }
  }
}

TEST(Wire, RoundTripsEveryBitOfADouble) {
  for (const double value : {0.0, -0.0, 0.1, 5e-324, std::numeric_limits<double>::max(),
                             -std::numeric_limits<double>::infinity()}) {
    std::string message;
    append_double(message, 23, value);
    const Field field = only_field(message);
    EXPECT_EQ(field.type, Type::kFixed64);
    EXPECT_EQ(field.integer, std::bit_cast<std::uint64_t>(value));
  }
}

TEST(Wire, TakesFieldsOneByOne) {
  const std::string_view whole = "\x0d\x04\x03\x02\x01\x12\x02hi\x18\x05"sv;
  std::string_view rest = whole;

  const Field fixed = take_field(rest);
  EXPECT_EQ(fixed.type, Type::kFixed32);
  EXPECT_EQ(fixed.integer, 0x01020304U);

  const Field bytes = take_field(rest);
  EXPECT_EQ(bytes.number, 2U);
  EXPECT_EQ(bytes.bytes, "hi");
  EXPECT_EQ(bytes.encoded, "\x12\x02hi"sv);

  EXPECT_EQ(take_field(rest).integer, 5U);
  EXPECT_TRUE(rest.empty());
}

TEST(Wire, AcceptsOverlongVarints) {
  EXPECT_EQ(only_field("\x08\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv).integer, 5U);
}

TEST(Wire, RejectsTruncatedMessages) {
  for (const std::string_view message :
       {"\x80"sv, "\x08"sv, "\x08\x80"sv, "\x09\x01\x02\x03\x04\x05\x06\x07"sv,
        "\x0d\x01\x02\x03"sv, "\x12"sv, "\x12\x01"sv,
        "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01.."sv}) {
    EXPECT_EQ(refusal(message), "ends in the middle of a field");
  }
}

TEST(Wire, RejectsVarintsOfMoreThan64Bits) {
  EXPECT_EQ(refusal("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv),
            "holds a varint of more than 64 bits");
  EXPECT_EQ(refusal("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv),
            "holds a varint of more than 64 bits");
}

TEST(Wire, RejectsInvalidFieldNumbers) {
  EXPECT_EQ(refusal("\x00\x00"sv), "holds field number 0; field numbers go from 1 to 536870911");
  EXPECT_EQ(refusal("\x80\x80\x80\x80\x10\x00"sv),
            "holds field number 536870912; field numbers go from 1 to 536870911");
}

TEST(Wire, RejectsGroupsAndUnknownTypes) {
  EXPECT_EQ(refusal("\x0b"sv), "holds field 1 with wire type 3; wire types are 0, 1, 2 and 5");
  EXPECT_EQ(refusal("\x17"sv), "holds field 2 with wire type 7; wire types are 0, 1, 2 and 5");
}

TEST(Wire, ZigzagAlternatesSigns) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(-2), 3U);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int32_t>::max()), 0xFFFFFFFEU);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int32_t>::min()), 0xFFFFFFFFU);
  for (const std::int32_t value :
       {0, -1, 1, -32768, 32767, std::numeric_limits<std::int32_t>::min(),
        std::numeric_limits<std::int32_t>::max()}) {
    EXPECT_EQ(unzigzag(zigzag(value)), value);
  }
}

}  // namespace
}  // namespace remy::wire
