#include "core/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/random.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Error in units in the last place of the expected value, which has the 64 bits of long double.
double error_in_ulp(double value, long double expected) {
  const double rounded = static_cast<double>(expected);
  const double ulp = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(value) - expected)) / ulp;
}

// Values of all magnitudes, and values close to 1, where logarithms cancel.
double sample(std::uint64_t i) {
  const double u = unit_interval(random_bits(1, i));
  return i % 2 == 0 ? std::ldexp(1 + u, static_cast<int>(i / 2 % 2000) - 1000) : 0.5 + 1.5 * u;
}

TEST(NaturalLogarithm, IsWithinTwoUnitsInTheLastPlace) {
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = sample(i);
    ASSERT_LT(error_in_ulp(natural_logarithm(x), std::log(static_cast<long double>(x))), 2) << x;
  }
}

TEST(NaturalLogarithms, HaveTheSameBitsAsSingleCalls) {
  std::vector<double> numbers = {0x1p-1022,
                                 0.5,
                                 0x1.6a09e667f3bccp-1,
                                 0x1.6a09e667f3bcdp-1,
                                 1,
                                 2,
                                 std::numeric_limits<double>::max()};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    numbers.push_back(sample(i));
  }
  std::vector<double> logarithms(numbers.size());
  natural_logarithms(numbers, logarithms);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(logarithms[i], natural_logarithm(numbers[i])) << numbers[i];
  }
}

TEST(BinaryLogarithm, IsWithinTwoUnitsInTheLastPlace) {
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = sample(i);
    ASSERT_LT(error_in_ulp(binary_logarithm(x), std::log2(static_cast<long double>(x))), 2) << x;
  }
}

TEST(BinaryLogarithm, IsExactAtPowersOfTwo) {
  for (int e = -1022; e < 1024; ++e) {
    EXPECT_EQ(binary_logarithm(std::ldexp(1.0, e)), e);
  }
}

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = (unit_interval(random_bits(2, i)) - 0.5) * (i % 2 == 0 ? 1400 : 2);
    if (x > -708) {
      ASSERT_LT(error_in_ulp(exponential(x), std::exp(static_cast<long double>(x))), 2) << x;
    }
  }
}

TEST(CubeRoot, IsWithinTwoUnitsInTheLastPlace) {
  double largest = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = sample(i);
    const double error = error_in_ulp(cube_root(x), std::cbrt(static_cast<long double>(x)));
    largest = std::max(largest, error);
    ASSERT_LT(error, 2) << x;
    ASSERT_EQ(cube_root(-x), -cube_root(x));
  }
  RecordProperty("largest_error_in_ulp", std::to_string(largest));
}

TEST(CubeRoot, HandlesSpecialValues) {
  EXPECT_EQ(cube_root(0), 0);
  EXPECT_EQ(cube_root(kInfinity), kInfinity);
  EXPECT_EQ(cube_root(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(cube_root(std::nan(""))));
  EXPECT_EQ(cube_root(std::numeric_limits<double>::denorm_min()), 0x1p-358);
  EXPECT_LT(error_in_ulp(cube_root(std::numeric_limits<double>::max()),
                         std::cbrt(static_cast<long double>(std::numeric_limits<double>::max()))),
            2);
  for (int e = -300; e < 300; ++e) {
    EXPECT_EQ(cube_root(std::ldexp(1.0, 3 * e)), std::ldexp(1.0, e));
  }
  EXPECT_EQ(cube_root(27), 3);
}

TEST(NormalDistribution, IsWithinTheDocumentedError) {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double x = (unit_interval(random_bits(3, i)) - 0.5) * 20;
    const long double exact =
        0.5L * std::erfc(-static_cast<long double>(x) / std::sqrt(static_cast<long double>(2)));
    ASSERT_NEAR(normal_distribution(x), static_cast<double>(exact), 2e-15) << x;
  }
  EXPECT_EQ(normal_distribution(0), 0.5);
  EXPECT_EQ(normal_distribution(kInfinity), 1);
  EXPECT_EQ(normal_distribution(-kInfinity), 0);
  EXPECT_TRUE(std::isnan(normal_distribution(std::nan(""))));
}

TEST(ElementaryFunctions, HandleSpecialValues) {
  EXPECT_EQ(natural_logarithm(0), -kInfinity);
  EXPECT_EQ(natural_logarithm(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(natural_logarithm(-1)));
  EXPECT_TRUE(std::isnan(natural_logarithm(std::nan(""))));
  EXPECT_EQ(natural_logarithm(1), 0);
  EXPECT_NEAR(natural_logarithm(std::numeric_limits<double>::denorm_min()), -744.4400719213812,
              1e-12);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(1000), kInfinity);
  EXPECT_EQ(exponential(-1000), 0);
  EXPECT_TRUE(std::isnan(exponential(std::nan(""))));
  EXPECT_NEAR(power(2, 10), 1024, 1e-11);
}

// Literal bits: any other result on a compiler or processor would break reproducibility.
TEST(ElementaryFunctions, AreBitIdenticalOnEveryMachine) {
  EXPECT_EQ(natural_logarithm(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(exponential(1), 0x1.5bf0a8b14576ap+1);
  EXPECT_EQ(binary_logarithm(3), 0x1.95c01a39fbd69p+0);
  EXPECT_EQ(cube_root(10), 0x1.13c484138704fp+1);
  EXPECT_EQ(cube_root(0.1), 0x1.db4c7760bcff3p-2);
  EXPECT_EQ(normal_distribution(1), 0x1.aec4bd120d37ep-1);
}

}  // namespace
}  // namespace remy
