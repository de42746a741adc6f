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
        "a gradient needs a key, a size and a mask of its used rules for each specimen");
  }
  if (std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return range.first > range.second || range.second > samples.rules;
      })) {
    throw std::invalid_argument("a range of rules does not lie within the table's");
  }
}

// Specimens whose samples are held at a time: by one thread what its cache holds, by several so
// many that they seldom wait for one another.
constexpr std::size_t kBlock = 64;
constexpr std::size_t kSharedBlock = 512;
// A thread for fewer specimens would cost more than it saves.
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

// The samples of one specimen after another: a row of those by rule, then of those by range.
class Rows {
 public:
  Rows(const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges)
      : samples_(samples),
        ranges_(ranges),
        before_((samples.rules + 1) * kCoordinates),
        places_((samples.rules + 1) * kCoordinates),
        noise_(samples.rules * kCoordinates) {}

  void write(std::size_t specimen, std::span<double> row) {
    const std::size_t width = samples_.rules * kCoordinates;
    const auto mask = samples_.used.subspan(specimen * mask_bytes(samples_.rules));
    std::size_t used = 0;
    for (std::size_t rule = 0; rule < samples_.rules; ++rule) {
      for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
        places_[used + coordinate] = rule * kCoordinates + coordinate;
      }
      used += kCoordinates * (mask[rule / 8] >> rule % 8 & 1);
    }
    const std::span places = std::span(places_).first(used);
    const std::span noise = std::span(noise_).first(used);
    PerturbationNoise(samples_.seed, samples_.keys[specimen]).fill(places, noise);
    std::fill_n(row.begin(), width, 0.0);
    for (std::size_t i = 0; i < used; ++i) {
      row[places[i]] = noise[i] * samples_.sizes[specimen];
    }
    for (std::size_t place = 0; place < width; ++place) {
      before_[place + kCoordinates] = before_[place] + row[place];
    }
    std::size_t place = width;
    for (const auto& [first, behind] : ranges_) {
      for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
        row[place++] = before_[behind * kCoordinates + coordinate] -
                       before_[first * kCoordinates + coordinate];
      }
    }
  }

 private:
  const PairSamples& samples_;
  std::span<const std::pair<std::size_t, std::size_t>> ranges_;
  // Sums over the rules before each.
  std::vector<double> before_;
  // Of the rules that were used on a specimen.
  std::vector<std::uint64_t> places_;
  std::vector<double> noise_;
};

REMY_WIDE_CLONES
void add(std::span<const double> row, std::span<double> totals, std::span<double> squares) {
  const std::size_t size = row.size();
  for (std::size_t place = 0; place < size; ++place) {
    const double sample = row[place];
    totals[place] += sample;
    squares[place] += sample * sample;
  }
}

Moments moments(const std::vector<double>& totals, const std::vector<double>& squares,
                std::size_t first, std::size_t behind, double count) {
  Moments found;
  for (std::size_t place = first; place < behind; ++place) {
    found.mean.push_back(totals[place] / count);
    found.squares.push_back(squares[place] / (count * count));
  }
  return found;
}

}  // namespace

// Threads share the specimens of a block to draw samples, and the columns to add them up: each
// column is summed in the order of the specimens, whatever the number of threads.
std::pair<Moments, Moments> gradient_moments(
    const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges,
    unsigned threads) {
  validate(samples, ranges);
  const std::vector<std::size_t> specimens = specimens_with_samples(samples);
  const std::size_t width = (samples.rules + ranges.size()) * kCoordinates;
  const std::size_t helpers =
      std::clamp<std::size_t>(specimens.size() / kSpecimensPerThread, 1, std::max(threads, 1U));
  const std::size_t block = helpers == 1 ? kBlock : kSharedBlock;
  std::vector<double> rows(std::min(block, specimens.size()) * width);
  std::vector<double> totals(width);
  std::vector<double> squares(width);
  std::vector<Rows> writers(helpers, Rows(samples, ranges));
  std::barrier turn(static_cast<std::ptrdiff_t>(helpers));
  const auto help = [&](std::size_t helper) {
    for (std::size_t first = 0; first < specimens.size(); first += block) {
      const std::size_t size = std::min(block, specimens.size() - first);
      for (std::size_t i = size * helper / helpers; i < size * (helper + 1) / helpers; ++i) {
        writers[helper].write(specimens[first + i], std::span(rows).subspan(i * width, width));
      }
      turn.arrive_and_wait();
      const std::size_t first_column = width * helper / helpers;
      const std::size_t columns = width * (helper + 1) / helpers - first_column;
      for (std::size_t i = 0; i < size; ++i) {
        add(std::span(rows).subspan(i * width + first_column, columns),
            std::span(totals).subspan(first_column, columns),
            std::span(squares).subspan(first_column, columns));
      }
      turn.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t helper = 1; helper < helpers; ++helper) {
      pool.emplace_back(help, helper);
    }
    help(0);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(specimens.size(), 1));
  const std::size_t rules = samples.rules * kCoordinates;
  return {moments(totals, squares, 0, rules, count), moments(totals, squares, rules, width, count)};
}

}  // namespace remy
