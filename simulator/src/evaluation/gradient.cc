#include "evaluation/gradient.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "evaluation/candidate.h"
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

class Sums {
 public:
  explicit Sums(std::size_t rows) : totals_(rows * kCoordinates), squares_(rows * kCoordinates) {}

  void add(std::size_t place, double sample) {
    totals_[place] += sample;
    squares_[place] += sample * sample;
  }

  Moments moments(double count) && {
    for (double& total : totals_) {
      total /= count;
    }
    for (double& square : squares_) {
      square /= count * count;
    }
    return {std::move(totals_), std::move(squares_)};
  }

 private:
  std::vector<double> totals_;
  std::vector<double> squares_;
};

}  // namespace

std::pair<Moments, Moments> gradient_moments(
    const PairSamples& samples, std::span<const std::pair<std::size_t, std::size_t>> ranges) {
  validate(samples, ranges);
  Sums by_rule(samples.rules);
  Sums by_range(ranges.size());
  // Sums over the rules before each.
  std::vector<double> before((samples.rules + 1) * kCoordinates);
  // Of the rules that were used on a specimen.
  std::vector<std::uint64_t> places;
  std::vector<double> noise;
  std::size_t count = 0;
  for (std::size_t specimen = 0; specimen < samples.keys.size(); ++specimen) {
    const double size = samples.sizes[specimen];
    if (std::isnan(size)) {
      continue;
    }
    ++count;
    const auto mask = samples.used.subspan(specimen * mask_bytes(samples.rules));
    places.clear();
    for (std::size_t rule = 0; rule < samples.rules; ++rule) {
      if ((mask[rule / 8] >> rule % 8 & 1) != 0) {
        for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
          places.push_back(rule * kCoordinates + coordinate);
        }
      }
    }
    noise.resize(places.size());
    PerturbationNoise(samples.seed, samples.keys[specimen]).fill(places, noise);
    std::size_t next = 0;
    for (std::size_t place = 0; place < samples.rules * kCoordinates; ++place) {
      double sample = 0;
      if (next < places.size() && places[next] == place) {
        sample = noise[next++] * size;
        by_rule.add(place, sample);
      }
      before[place + kCoordinates] = before[place] + sample;
    }
    for (std::size_t range = 0; range < ranges.size(); ++range) {
      const auto& [first, behind] = ranges[range];
      for (std::size_t coordinate = 0; coordinate < kCoordinates; ++coordinate) {
        by_range.add(
            range * kCoordinates + coordinate,
            before[behind * kCoordinates + coordinate] - before[first * kCoordinates + coordinate]);
      }
    }
  }
  const auto samples_made = static_cast<double>(std::max<std::size_t>(count, 1));
  return {std::move(by_rule).moments(samples_made), std::move(by_range).moments(samples_made)};
}

}  // namespace remy
