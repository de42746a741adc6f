#include "evaluation/gradient.h"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <thread>

#include "core/clones.h"
#include "evaluation/evaluator.h"

namespace remy {
namespace {

constexpr std::size_t kCoordinates = 3;

void validate(const PairSamples& samples,
              std::span<const std::pair<std::size_t, std::size_t>> ranges) {
  if (samples.sizes.size() != samples.keys.size() ||
      samples.used.size() != samples.keys.size() * mask_bytes(samples.rules)) {
    throw std::invalid_argument(
        "a gradient needs a key, a size and a mask of used rules for each specimen");
  }
  if (std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return range.first > range.second || range.second > samples.rules;
      })) {
    throw std::invalid_argument("a range of rules must lie within the rules of the table");
  }
}

// Specimens per block with one thread: their samples fit into its cache.
constexpr std::size_t kBlock = 64;
// Specimens per block with several threads: enough that they rarely wait for one another.
constexpr std::size_t kThreadedBlock = 512;
// With fewer specimens per thread, starting the thread would cost more than it saves.
constexpr std::size_t kSpecimensPerThread = 1024;

std::vector<std::size_t> specimens_with_samples(const PairSamples& samples) {
  std::vector<std::size_t> specimens;
  specimens.reserve(samples.sizes.size());
  for (std::size_t specimen = 0; specimen < samples.sizes.size(); ++specimen) {
    if (!std::isnan(samples.sizes[specimen])) {
      specimens.push_back(specimen);
    }
  }
  return specimens;
}

// Computes a row of samples per specimen: first by rule, then by range.
class SampleRows {
 public:
  SampleRows(const PairSamples& samples,
             std::span<const std::pair<std::size_t, std::size_t>> ranges)
      : samples_(samples),
        ranges_(ranges),
        prefix_sums_((samples.rules + 1) * kCoordinates),
        coordinates_((samples.rules + 1) * kCoordinates),
        noise_(samples.rules * kCoordinates) {}

  void write(std::size_t specimen, std::span<double> row) {
    const std::size_t width = samples_.rules * kCoordinates;
    const auto mask = samples_.used.subspan(specimen * mask_bytes(samples_.rules));
    std::size_t used = 0;
    for (std::size_t rule = 0; rule < samples_.rules; ++rule) {
      for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
        coordinates_[used + coordinate] = rule * kCoordinates + coordinate;
      }
      used += kCoordinates * (mask[rule / 8] >> rule % 8 & 1);
    }
    const std::span coordinates = std::span(coordinates_).first(used);
    const std::span noise = std::span(noise_).first(used);
    PerturbationNoise(samples_.seed, samples_.keys[specimen]).fill(coordinates, noise);
    std::fill_n(row.begin(), width, 0.0);
    for (std::size_t i = 0; i < used; ++i) {
      row[coordinates[i]] = noise[i] * samples_.sizes[specimen];
    }
    for (std::size_t column = 0; column < width; ++column) {
      prefix_sums_[column + kCoordinates] = prefix_sums_[column] + row[column];
    }
    std::size_t column = width;
    for (const auto& [first, end] : ranges_) {
      for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
        row[column++] = prefix_sums_[end * kCoordinates + coordinate] -
                        prefix_sums_[first * kCoordinates + coordinate];
      }
    }
  }

 private:
  const PairSamples& samples_;
  std::span<const std::pair<std::size_t, std::size_t>> ranges_;
  // Prefix sums over the rules.
  std::vector<double> prefix_sums_;
  // Coordinates, and their noise, of the rules that were used on a specimen.
  std::vector<std::uint64_t> coordinates_;
  std::vector<double> noise_;
};

REMY_WIDE_CLONES
void accumulate(std::span<const double> row, std::span<double> totals, std::span<double> squares) {
  const std::size_t size = row.size();
  for (std::size_t column = 0; column < size; ++column) {
    const double sample = row[column];
    totals[column] += sample;
    squares[column] += sample * sample;
  }
}

Moments moments(const std::vector<double>& totals, const std::vector<double>& squares,
                std::size_t first, std::size_t end, double count) {
  Moments result;
  for (std::size_t column = first; column < end; ++column) {
    result.mean.push_back(totals[column] / count);
    result.squares.push_back(squares[column] / (count * count));
  }
  return result;
}

}  // namespace

// For each block, threads first compute the rows of some specimens each, then add up some columns
// each. Every column is summed in the order of specimens, whatever the number of threads.
std::pair<Moments, Moments> gradient_moments(
    const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges,
    unsigned threads) {
  validate(samples, ranges);
  const std::vector<std::size_t> specimens = specimens_with_samples(samples);
  const std::size_t width = (samples.rules + ranges.size()) * kCoordinates;
  const std::size_t workers =
      std::clamp<std::size_t>(specimens.size() / kSpecimensPerThread, 1, std::max(threads, 1U));
  const std::size_t block = workers == 1 ? kBlock : kThreadedBlock;
  std::vector<double> rows(std::min(block, specimens.size()) * width);
  std::vector<double> totals(width);
  std::vector<double> squares(width);
  std::vector<SampleRows> writers(workers, SampleRows(samples, ranges));
  std::barrier phase(static_cast<std::ptrdiff_t>(workers));
  const auto work = [&](std::size_t worker) {
    for (std::size_t first = 0; first < specimens.size(); first += block) {
      const std::size_t size = std::min(block, specimens.size() - first);
      for (std::size_t i = size * worker / workers; i < size * (worker + 1) / workers; ++i) {
        writers[worker].write(specimens[first + i], std::span(rows).subspan(i * width, width));
      }
      phase.arrive_and_wait();
      const std::size_t first_column = width * worker / workers;
      const std::size_t columns = width * (worker + 1) / workers - first_column;
      for (std::size_t i = 0; i < size; ++i) {
        accumulate(std::span(rows).subspan(i * width + first_column, columns),
                   std::span(totals).subspan(first_column, columns),
                   std::span(squares).subspan(first_column, columns));
      }
      phase.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t worker = 1; worker < workers; ++worker) {
      pool.emplace_back(work, worker);
    }
    work(0);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(specimens.size(), 1));
  const std::size_t rules = samples.rules * kCoordinates;
  return {moments(totals, squares, 0, rules, count), moments(totals, squares, rules, width, count)};
}

}  // namespace remy
