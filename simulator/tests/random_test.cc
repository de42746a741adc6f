#include "core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace remy {
namespace {

constexpr int kDraws = 200'000;

TEST(UnitInterval, HasTheMomentsOfAUniformDistribution) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = unit_interval(random_bits(1, static_cast<std::uint64_t>(i)));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  // Five standard errors.
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kDraws));
}

TEST(Normal, HasTheMomentsOfANormalDistribution) {
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  double fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = normal(2, static_cast<std::uint64_t>(i));
    sum += z;
    squares += z * z;
    cubes += z * z * z;
    fourths += z * z * z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(cubes / kDraws, 0, 5 * std::sqrt(15.0 / kDraws));
  EXPECT_NEAR(fourths / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(Normals, HaveTheSameBitsAsSingleCalls) {
  std::vector<std::uint64_t> counters;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    counters.push_back(i % 3 == 0 ? i : random_bits(4, i));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, counters.size()}) {
    std::vector<double> draws(size);
    normals(3, std::span(counters).first(size), draws);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(draws[i], normal(3, counters[i])) << counters[i];
    }
  }
}

TEST(Streams, AreUncorrelated) {
  double product = 0;
  for (int i = 0; i < kDraws; ++i) {
    const auto counter = static_cast<std::uint64_t>(i);
    product += (unit_interval(random_bits(derive_key(1, {1}), counter)) - 0.5) *
               (unit_interval(random_bits(derive_key(1, {2}), counter)) - 0.5);
  }
  EXPECT_NEAR(product / kDraws, 0, 5.0 / 12 / std::sqrt(kDraws));
}

TEST(DeriveKey, GivesDifferentKeysToDifferentPaths) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) {
      keys.insert(derive_key(1, {a, b}));
      keys.insert(derive_key(1, {a, b, 0}));
    }
    keys.insert(derive_key(1, a));
  }
  EXPECT_EQ(keys.size(), 100U * 100 * 2 + 100);
}

// Literal bits, as in elementary_test.cc.
TEST(Streams, AreBitIdenticalOnEveryMachine) {
  EXPECT_EQ(random_bits(derive_key(1, {2, 3}), 4), 0xb2dbf8213ed270d1U);
}

}  // namespace
}  // namespace remy
