#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace remy {

// Counter-based random numbers: each draw is a pure function of a key and a counter, and so does
// not depend on draws for other purposes.

// A bijective mixing function: every input bit affects every output bit (SplitMix64).
constexpr std::uint64_t scramble(std::uint64_t word) {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  word ^= word >> 31;
  return word;
}

inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;

// Derives the key of a child stream from its parent's key.
constexpr std::uint64_t derive_key(std::uint64_t seed, std::uint64_t name) {
  return scramble(scramble(seed + kGoldenRatio) ^ (name * kGoldenRatio + 0x2545f4914f6cdd1dULL));
}

// Derives the key of a stream named by a path of numbers.
constexpr std::uint64_t derive_key(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  for (const std::uint64_t name : path) {
    seed = derive_key(seed, name);
  }
  return seed;
}

// Draw number `counter` of the stream named by `key`: 64 uniform bits.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  return scramble(key + (counter + 1) * kGoldenRatio);
}

// Converts random bits to a uniform number in [0, 1).
constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Converts random bits to a uniform number in (0, 1): the midpoint of one of 2^52 equal intervals.
constexpr double open_unit_interval(std::uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// Standard normal variate number `counter` of the stream named by `key`.
double normal(std::uint64_t key, std::uint64_t counter);

// Standard normal variates for several counters, bit-identical to normal() but several times
// faster. `draws` must be as long as `counters`.
void normals(std::uint64_t key, std::span<const std::uint64_t> counters, std::span<double> draws);

// The purpose of a random stream, which is part of its key.
enum class Purpose : std::uint64_t {
  kTraffic = 1,
  kLoss = 2,
  kPerturbation = 3,
  kRounding = 4,
  kJitter = 5,
  kController = 6,
  kQueue = 7,
  kLink = 8,
  kReordering = 9,
  kRttOffset = 10,
};

}  // namespace remy
