#pragma once

#include <span>

namespace remy {

// Elementary functions that give the same bits on every machine: they use only IEEE 754 additions,
// multiplications and divisions. (The system's math library selects an implementation by CPU type,
// and the last bits differ.) Errors are at most 2 units in the last place
// (tests/elementary_test.cc).

// Natural logarithm; -infinity at 0, NaN below.
double natural_logarithm(double x);

// Natural logarithms of several numbers, bit-identical to natural_logarithm() but several times
// faster. The numbers must be positive, finite and not subnormal; `logarithms` must be at least as
// long.
void natural_logarithms(std::span<const double> numbers, std::span<double> logarithms);

// Logarithm to base 2; -infinity at 0, NaN below, exact at powers of two.
double binary_logarithm(double x);

// e to the power x. Overflow gives infinity; results that would be subnormal are 0.
double exponential(double x);

// x to the y for x > 0: exponential(y * natural_logarithm(x)). The relative error grows with the
// logarithm of the result.
double power(double x, double y);

// Cube root. The root of a negative number is negative.
double cube_root(double x);

// Probability that a standard normal variate is at most x, with an absolute error below 2e-15.
double normal_distribution(double x);

// The correctly rounded sum: computed exactly, then rounded once to nearest, ties to even (Shewchuk
// 1997, "Adaptive Precision Floating-Point Arithmetic"). NaN if an intermediate sum is not finite.
double exact_sum(std::span<const double> values);

}  // namespace remy
