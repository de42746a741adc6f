#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "columns.h"
#include "evaluation/candidate.h"
#include "evaluation/gradient.h"
#include "rules.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

// Moments of a step's gradient samples.
struct GradientMoments {
  Moments by_rule;
  Moments by_range;
};

}  // namespace

void bind_candidates(nb::module_& module) {
  nb::class_<ActionBounds>(module, "ActionBounds")
      .def(nb::init<double, double, double, double, double, double>(), "window_multiple_minimum"_a,
           "window_multiple_maximum"_a, "window_increment_minimum"_a, "window_increment_maximum"_a,
           "intersend_minimum_ms"_a, "intersend_maximum_ms"_a);
  nb::class_<Unchanged>(module, "Unchanged").def(nb::init<>());
  nb::class_<ActionChanges>(module, "ActionChanges")
      .def(
          "__init__",
          [](ActionChanges* self, const std::vector<std::pair<std::uint32_t, Action>>& changes) {
            new (self) ActionChanges();
            for (const auto& [rule, action] : changes) {
              self->changes.emplace_back(rule, action);
            }
          },
          "changes"_a);
  nb::class_<Perturbation>(module, "Perturbation")
      .def(
          "__init__",
          [](Perturbation* self, std::uint64_t seed, double scale, const ActionBounds& bounds) {
            new (self) Perturbation{seed, scale, bounds};
          },
          "seed"_a, "scale"_a, "bounds"_a);
  module.def(
      "to_coordinates",
      [](const Action& action, const ActionBounds& bounds) {
        const Coordinates x = to_coordinates(action, bounds);
        return std::make_tuple(x.window_multiple, x.window_increment, x.intersend);
      },
      "action"_a, "bounds"_a, "The coordinates in which perturbations move an action.");
  module.def(
      "from_coordinates",
      [](const std::tuple<double, double, double>& coordinates, const ActionBounds& bounds) {
        const auto& [window_multiple, window_increment, intersend] = coordinates;
        return to_action(Coordinates{window_multiple, window_increment, intersend}, bounds);
      },
      "coordinates"_a, "bounds"_a, "Inverse of to_coordinates, clamped to the bounds.");
  module.def(
      "perturbation_noise",
      [](std::uint64_t seed, std::uint64_t specimen_key, std::uint32_t rules) {
        std::vector<double> noise(3 * std::size_t{rules});
        PerturbationNoise(seed, specimen_key).fill(noise);
        return noise;
      },
      "seed"_a, "specimen_key"_a, "rules"_a,
      "The epsilon of a perturbation on one specimen: three coordinates per rule.");

  nb::class_<Moments>(module, "Moments", "Columns with three numbers per row.")
      .def_prop_ro("mean", [](const Moments& moments) { return column(moments.mean); })
      .def_prop_ro("squares", [](const Moments& moments) { return column(moments.squares); });
  nb::class_<GradientMoments>(module, "GradientMoments")
      .def_ro("by_rule", &GradientMoments::by_rule)
      .def_ro("by_range", &GradientMoments::by_range);
  module.def(
      "gradient_moments",
      [](std::uint64_t seed, const nb::bytes& keys, const nb::bytes& sizes, const nb::bytes& used,
         std::size_t rules, const std::vector<std::pair<std::size_t, std::size_t>>& ranges,
         unsigned threads) {
        const auto key = from_column<std::uint64_t>(keys, "keys");
        const auto size = from_column<double>(sizes, "sizes");
        const auto mask = from_column<std::uint8_t>(used, "used");
        const nb::gil_scoped_release release;
        auto [by_rule, by_range] =
            gradient_moments({seed, key, size, mask, rules}, ranges, threads);
        return GradientMoments{std::move(by_rule), std::move(by_range)};
      },
      nb::kw_only(), "seed"_a, "keys"_a, "sizes"_a, "used"_a, "rules"_a, "ranges"_a, "threads"_a,
      "Moments of gradient samples; see remy_simulator.columns.gradient_moments. Raises "
      "ValueError.");
}

}  // namespace remy
