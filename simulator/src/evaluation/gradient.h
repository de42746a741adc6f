#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "evaluation/candidate.h"

namespace remy {

// Gradient samples from antithetic perturbations (docs/explanation/algorithm.md). The sample of a
// specimen is the noise of each rule's coordinates times the finite difference of scores.
struct PairSamples {
  std::uint64_t seed = 0;               // seed of the perturbation
  std::span<const std::uint64_t> keys;  // specimen keys
  std::span<const double> sizes;        // finite difference by specimen; NaN: no sample
  std::span<const std::uint8_t> used;   // masks of used rules by specimen, mask_bytes(rules) each
  std::size_t rules = 0;
};

// Statistics of samples. Each row has three coordinates.
struct Moments {
  std::vector<double> mean;  // mean of the samples
  // Sum of the samples' squares, divided by the square of their number.
  std::vector<double> squares;
};

// Returns statistics by rule, and by range of rules (first, end), where a range's sample is the sum
// of its rules' samples. An unused rule has a sample of 0. Sums are in the order of specimens and
// rules, so that rounding, and so the result, does not depend on the number of threads. Throws
// std::invalid_argument if sizes are inconsistent.
std::pair<Moments, Moments> gradient_moments(
    const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges,
    unsigned threads = 1);

}  // namespace remy
