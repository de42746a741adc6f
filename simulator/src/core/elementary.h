#pragma once

#include <span>

namespace remy {

// Elementary functions built from IEEE 754 additions, multiplications and divisions only. The
// system's mathematical library chooses among variants by CPU type, and their last bits differ.
// Each is within 2 units in the last place over its whole range (tests/elementary_test.cc).

// Natural logarithm; -infinity at 0, NaN below.
double natural_logarithm(double x);

// The same of several numbers that are positive, finite and not subnormal, at a fraction of the
// time each, in the same bits. `logarithms` is at least as long.
void natural_logarithms(std::span<const double> numbers, std::span<double> logarithms);

// Logarithm to base 2, likewise; exact at powers of two.
double binary_logarithm(double x);

// e to the x; 0 and infinity beyond the range of double. Results are never subnormal.
double exponential(double x);

// x to the y for x > 0: exponential(y * natural_logarithm(x)). The relative error grows with the
// logarithm of the result.
double power(double x, double y);

// Cube root; odd, so that of a negative number it is negative.
double cube_root(double x);

// Probability that a standard normal variate is at most x; within 2e-15 of it, not in proportion.
double normal_distribution(double x);

// The sum as if it had been computed exactly and then rounded once to nearest, ties to even; not a
// number if an intermediate sum is not finite (Shewchuk 1997, "Adaptive Precision Floating-Point
// Arithmetic").
double exact_sum(std::span<const double> values);

}  // namespace remy
