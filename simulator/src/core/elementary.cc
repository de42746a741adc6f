#include "core/elementary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/clones.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts; the first has 32 significant bits, so that its product with an exponent is
// exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;

struct Parts {
  double exponent;
  double fraction;  // in [sqrt(1/2), sqrt(2))
};

Parts split(double x) {
  double exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1022);
  double fraction = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3fe0000000000000ULL);
  if (fraction < kSqrtHalf) {
    fraction *= 2;
    exponent -= 1;
  }
  return {exponent, fraction};
}

// log(fraction) = 2 artanh(s) with s = (fraction - 1) / (fraction + 1), |s| < 0.172. Written as
// f - (h - s (h + r)) with f = fraction - 1 and h = f^2 / 2, which keeps the leading term exact.
inline double logarithm_of_fraction(double fraction) {
  const double f = fraction - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  double r = 2.0 / 21;
  r = r * z + 2.0 / 19;
  r = r * z + 2.0 / 17;
  r = r * z + 2.0 / 15;
  r = r * z + 2.0 / 13;
  r = r * z + 2.0 / 11;
  r = r * z + 2.0 / 9;
  r = r * z + 2.0 / 7;
  r = r * z + 2.0 / 5;
  r = r * z + 2.0 / 3;
  r = r * z;
  const double h = 0.5 * f * f;
  return f - (h - s * (h + r));
}

// Handles x that is not a positive finite number: sets the logarithm and returns true.
bool is_special(double x, double& result) {
  if (x > 0 && x < kInfinity) {
    return false;
  }
  result = x == 0 ? -kInfinity : (x > 0 ? kInfinity : kNotANumber);
  return true;
}

}  // namespace

double natural_logarithm(double x) {
  double special = 0;
  if (is_special(x, special)) {
    return special;
  }
  const auto [exponent, fraction] = split(x);
  return exponent * kLn2High + (exponent * kLn2Low + logarithm_of_fraction(fraction));
}

// Branch-free, so that the compiler vectorizes the loop.
REMY_WIDE_CLONES
void natural_logarithms(std::span<const double> numbers, std::span<double> logarithms) {
  // A double of this exponent has whole numbers in its lowest bits.
  constexpr double kWholeNumbers = 0x1p52;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(numbers[i]);
    const double whole =
        std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(kWholeNumbers));
    const double half =
        std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3fe0000000000000ULL);
    const bool is_small = half < kSqrtHalf;
    const double fraction = is_small ? 2 * half : half;
    const double exponent = whole - (kWholeNumbers + 1022) - (is_small ? 1.0 : 0.0);
    logarithms[i] = exponent * kLn2High + (exponent * kLn2Low + logarithm_of_fraction(fraction));
  }
}

double binary_logarithm(double x) {
  double special = 0;
  if (is_special(x, special)) {
    return special;
  }
  const auto [exponent, fraction] = split(x);
  return exponent + logarithm_of_fraction(fraction) * kInverseLn2;
}

double exponential(double x) {
  if (!(x < 709.78)) {
    return x > 0 ? kInfinity : kNotANumber;
  }
  if (x < -708.39) {
    return 0;
  }
  const double k = std::floor(x * kInverseLn2 + 0.5);
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  // exp(r) - 1 by its series; |r| < 0.347, the first term left out is below 2^-58.
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r * r + (high - low);
  // 2^k may exceed the largest double although the product does not.
  const double half = std::floor(k / 2);
  const auto power_of_two = [](double e) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(e) + 1023)
                                 << 52);
  };
  return (1 + p) * power_of_two(half) * power_of_two(k - half);
}

double power(double x, double y) { return exponential(y * natural_logarithm(x)); }

double normal_distribution(double x) {
  // Beyond this bound the tail is smaller than the permitted error.
  constexpr double kFar = 8;
  if (!(std::fabs(x) < kFar)) {
    return std::isnan(x) ? x : x < 0 ? 0 : 1;
  }
  // Marsaglia 2004, "Evaluating the Normal Distribution": x + x^3/3 + x^5/(3 x 5) + ...
  constexpr double kLogarithmOfRootOfTwoPi = 0x1.d67f1c864beb4p-1;
  double sum = x;
  double term = x;
  for (double odd = 3; sum + term != sum; odd += 2) {
    term *= x * x / odd;
    sum += term;
  }
  return std::clamp(0.5 + sum * exponential(-0.5 * x * x - kLogarithmOfRootOfTwoPi), 0.0, 1.0);
}

double cube_root(double x) {
  if (x == 0 || !std::isfinite(x)) {
    return x;
  }
  double magnitude = std::fabs(x);
  std::int64_t scale = 0;
  if (magnitude < std::numeric_limits<double>::min()) {
    magnitude *= 0x1p54;
    scale = -18;
  }
  auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  // The exponent divided by 3, rounded towards minus infinity; the remaining fraction is in [1, 8).
  const std::int64_t third = (exponent + 1023) / 3 - 341;
  bits -= static_cast<std::uint64_t>(third * 3) << 52;
  const double fraction = std::bit_cast<double>(bits);
  // Dividing the bits by 3 and adding two thirds of the exponent bias gives the root within 4 %.
  double root = std::bit_cast<double>(bits / 3 + 0x2a9f789300000000ULL);
  // Two Halley iterations, each of which triples the number of correct digits, and one Newton step,
  // whose correction is so small that only the final sum is rounded.
  for (int step = 0; step < 2; ++step) {
    const double cube = root * root * root;
    root = root * ((cube + 2 * fraction) / (2 * cube + fraction));
  }
  root -= (root - fraction / (root * root)) / 3;
  const double power_of_two =
      std::bit_cast<double>(static_cast<std::uint64_t>(third + scale + 1023) << 52);
  return (x < 0 ? -root : root) * power_of_two;
}

double exact_sum(std::span<const double> values) {
  // Non-overlapping numbers of increasing magnitude, whose exact sum is the sum so far.
  std::vector<double> parts;
  for (double value : values) {
    std::size_t kept = 0;
    for (double part : parts) {
      if (std::fabs(value) < std::fabs(part)) {
        std::swap(value, part);
      }
      const double sum = value + part;
      const double rest = part - (sum - value);
      if (rest != 0) {
        parts[kept++] = rest;
      }
      value = sum;
    }
    if (!std::isfinite(value)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    parts.resize(kept);
    if (value != 0) {
      parts.push_back(value);
    }
  }
  if (parts.empty()) {
    return 0;
  }
  // Adds from the largest until a sum is inexact.
  double sum = parts.back();
  double rest = 0;
  std::size_t left = parts.size() - 1;
  while (left > 0 && rest == 0) {
    const double before = sum;
    const double part = parts[--left];
    sum = before + part;
    rest = part - (sum - before);
  }
  // If the remainder is exactly half a unit, the next smaller part decides the direction of
  // rounding.
  if (left > 0 && ((rest < 0 && parts[left - 1] < 0) || (rest > 0 && parts[left - 1] > 0))) {
    const double twice = 2 * rest;
    const double other = sum + twice;
    if (other - sum == twice) {
      sum = other;
    }
  }
  return sum;
}

}  // namespace remy
