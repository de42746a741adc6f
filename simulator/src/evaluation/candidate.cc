#include "evaluation/candidate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/elementary.h"
#include "core/random.h"

namespace remy {
namespace {

// Keeps the coordinate of the largest multiple finite.
constexpr double kMultipleMargin = 0.03;
constexpr double kIncrementMargin = 1;
constexpr std::uint32_t kCoordinates = 3;

std::uint64_t stream_key(std::uint64_t seed, std::uint64_t specimen_key, Purpose purpose) {
  return derive_key(seed, {specimen_key, static_cast<std::uint64_t>(purpose)});
}

void perturb(const Perturbation& perturbation, std::uint64_t specimen_key, CompiledTable& table) {
  std::vector<double> noise(table.rule_count() * kCoordinates);
  PerturbationNoise(perturbation.seed, specimen_key).fill(noise);
  const std::uint64_t rounding = stream_key(perturbation.seed, specimen_key, Purpose::kRounding);
  const ActionBounds& bounds = perturbation.bounds;
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    const double* const epsilon = &noise[std::size_t{rule} * kCoordinates];
    Coordinates x = to_coordinates(table.action(rule), bounds);
    x.window_multiple += perturbation.scale * epsilon[0];
    x.window_increment += perturbation.scale * epsilon[1];
    x.intersend += perturbation.scale * epsilon[2];
    Action action = to_action(x, bounds);
    if (table.rules() == Rules::kAbsolute) {
      action.window_increment = std::clamp(
          std::floor(action.window_increment + unit_interval(random_bits(rounding, rule))),
          std::ceil(bounds.window_increment_minimum), std::floor(bounds.window_increment_maximum));
    }
    table.set_action(rule, action);
  }
}

}  // namespace

Coordinates to_coordinates(const Action& action, const ActionBounds& bounds) {
  const double multiple = std::clamp(action.window_multiple, bounds.window_multiple_minimum,
                                     bounds.window_multiple_maximum);
  const double increment = std::clamp(action.window_increment, bounds.window_increment_minimum,
                                      bounds.window_increment_maximum);
  const double intersend_ms =
      std::clamp(action.intersend_ms, bounds.intersend_minimum_ms, bounds.intersend_maximum_ms);
  return {natural_logarithm(bounds.window_multiple_maximum - multiple + kMultipleMargin),
          natural_logarithm(increment - bounds.window_increment_minimum + kIncrementMargin),
          natural_logarithm(intersend_ms)};
}

Action to_action(const Coordinates& coordinates, const ActionBounds& bounds) {
  return {
      std::clamp(bounds.window_multiple_maximum + kMultipleMargin -
                     exponential(coordinates.window_multiple),
                 bounds.window_multiple_minimum, bounds.window_multiple_maximum),
      std::clamp(exponential(coordinates.window_increment) - kIncrementMargin +
                     bounds.window_increment_minimum,
                 bounds.window_increment_minimum, bounds.window_increment_maximum),
      std::clamp(exponential(coordinates.intersend), bounds.intersend_minimum_ms,
                 bounds.intersend_maximum_ms),
  };
}

PerturbationNoise::PerturbationNoise(std::uint64_t seed, std::uint64_t specimen_key)
    : key_(stream_key(seed, specimen_key, Purpose::kPerturbation)) {}

double PerturbationNoise::operator()(std::uint32_t rule, std::uint32_t coordinate) const {
  return sign(std::uint64_t{rule} * kCoordinates + coordinate);
}

// Each draw supplies the bits of 64 coordinates.
double PerturbationNoise::sign(std::uint64_t coordinate) const {
  return (random_bits(key_, coordinate / 64) >> coordinate % 64 & 1) != 0 ? 1.0 : -1.0;
}

void PerturbationNoise::fill(std::span<double> noise) const {
  std::vector<std::uint64_t> coordinates(noise.size());
  std::iota(coordinates.begin(), coordinates.end(), std::uint64_t{0});
  fill(coordinates, noise);
}

void PerturbationNoise::fill(std::span<const std::uint64_t> coordinates,
                             std::span<double> noise) const {
  for (std::size_t i = 0; i < noise.size(); ++i) {
    noise[i] = sign(coordinates[i]);
  }
}

void validate(const Candidate& candidate, std::size_t rules) {
  if (const auto* const actions = std::get_if<ActionChanges>(&candidate)) {
    for (const auto& [rule, action] : actions->changes) {
      if (rule >= rules) {
        throw std::invalid_argument("candidate changes rule " + std::to_string(rule) +
                                    ", but the table has only " + std::to_string(rules) + " rules");
      }
      if (!std::isfinite(action.window_multiple) || !std::isfinite(action.window_increment) ||
          !std::isfinite(action.intersend_ms) || action.window_multiple < 0 ||
          action.intersend_ms < 0) {
        throw std::invalid_argument(
            "candidate sets an action that is not finite, or has a negative multiple or intersend");
      }
    }
  } else if (const auto* const perturbation = std::get_if<Perturbation>(&candidate)) {
    const ActionBounds& bounds = perturbation->bounds;
    if (!std::isfinite(perturbation->scale) ||
        !(bounds.window_multiple_minimum >= 0 &&
          bounds.window_multiple_minimum <= bounds.window_multiple_maximum &&
          std::ceil(bounds.window_increment_minimum) <=
              std::floor(bounds.window_increment_maximum) &&
          bounds.intersend_minimum_ms > 0 &&
          bounds.intersend_minimum_ms <= bounds.intersend_maximum_ms) ||
        !std::isfinite(bounds.window_multiple_maximum) ||
        !std::isfinite(bounds.window_increment_maximum - bounds.window_increment_minimum) ||
        !std::isfinite(bounds.intersend_maximum_ms)) {
      throw std::invalid_argument(
          "a perturbation needs a finite scale, and finite, ordered bounds with a positive "
          "intersend and a whole window increment");
    }
  }
}

void apply(const Candidate& candidate, std::uint64_t specimen_key, CompiledTable& table) {
  if (const auto* const actions = std::get_if<ActionChanges>(&candidate)) {
    for (const auto& [rule, action] : actions->changes) {
      table.set_action(rule, action);
    }
  } else if (const auto* const perturbation = std::get_if<Perturbation>(&candidate)) {
    perturb(*perturbation, specimen_key, table);
  }
}

}  // namespace remy
