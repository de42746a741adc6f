#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace remy {

// Counter-based random numbers: every draw is a function of a key and a counter, so that no draw
// depends on how many were made before it for another purpose.

// A bijection of 64-bit words in which every input bit affects every output bit.
constexpr std::uint64_t scramble(std::uint64_t word) {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  word ^= word >> 31;
  return word;
}

inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;

// A key for what `path` names under `seed`.
constexpr std::uint64_t derive_key(std::uint64_t seed, std::uint64_t name) {
  return scramble(scramble(seed + kGoldenRatio) ^ (name * kGoldenRatio + 0x2545f4914f6cdd1dULL));
}

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

// 53 uniform bits as a number in [0, 1).
constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// The same in (0, 1): the middle of one of 2^52 equal cells.
constexpr double open_unit_interval(std::uint64_t bits) {
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

// Standard normal variate number `counter` of the stream named by `key`.
double normal(std::uint64_t key, std::uint64_t counter);

// The same for several counters, at a fraction of the time each, in the same bits. `draws` is as
// long as `counters`.
void normals(std::uint64_t key, std::span<const std::uint64_t> counters, std::span<double> draws);

// What a stream of random numbers is for; part of its key.
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
