#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "evaluation/candidate.h"

namespace remy {

// Samples of the gradient from antithetic perturbations (docs/explanation/algorithm.md): on each
// specimen, the noise that moved the rules' coordinates times the size of what came of it.
struct PairSamples {
  std::uint64_t seed = 0;               // of the perturbation
  std::span<const std::uint64_t> keys;  // of the specimens
  std::span<const double> sizes;        // by specimen; not a number: it has no sample
  std::span<const std::uint8_t> used;   // by specimen, mask_bytes(rules) each
  std::size_t rules = 0;
};

// Three coordinates a row.
struct Moments {
  std::vector<double> mean;     // of the samples
  std::vector<double> squares;  // sum of the samples' squares over the square of their number
};

// By rule, and by range of rules (first, first behind): a range's sample is the sum of its rules'.
// A rule that was not used has a sample of 0. Sums are made in the order of the specimens and
// rules, since floating-point addition is not associative: they are the same with any number of
// threads. Throws std::invalid_argument for sizes that do not fit one another.
std::pair<Moments, Moments> gradient_moments(
    const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges,
    unsigned threads = 1);

}  // namespace remy
