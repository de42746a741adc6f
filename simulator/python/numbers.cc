#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "bindings.h"
#include "columns.h"
#include "core/elementary.h"
#include "core/random.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

std::uint64_t derive_path(std::uint64_t seed, const nb::args& path) {
  for (const auto name : path) {
    seed = derive_key(seed, nb::cast<std::uint64_t>(name));
  }
  return seed;
}

}  // namespace

void bind_numbers(nb::module_& module) {
  module.def("log", &natural_logarithm, "x"_a,
             "Natural logarithm, the same bits on every machine; -inf at 0, NaN below.");
  module.def("log2", &binary_logarithm, "x"_a,
             "Logarithm to base 2, the same bits on every machine.");
  module.def("exp", &exponential, "x"_a, "e to the x, the same bits on every machine.");
  module.def("power", &power, "x"_a, "y"_a,
             "x to the y for x > 0, the same bits on every machine.");
  module.def(
      "mix", [](std::uint64_t seed, const nb::args& path) { return derive_path(seed, path); },
      "seed"_a, "path"_a, "Derives a 64-bit key from a seed and a path of integers.");
  module.def(
      "uniform",
      [](std::uint64_t seed, const nb::args& path) {
        return unit_interval(random_bits(derive_path(seed, path), 0));
      },
      "seed"_a, "path"_a,
      "A uniform number in [0, 1), a pure function of the seed and the path of integers.");
  module.def(
      "mixed",
      [](std::uint64_t seed, std::uint64_t first, std::size_t count, std::uint64_t name) {
        std::vector<std::uint64_t> keys(count);
        for (std::size_t i = 0; i < count; ++i) {
          keys[i] = derive_key(seed, {first + i, name});
        }
        return column(keys);
      },
      "seed"_a, "first"_a, "count"_a, "name"_a,
      "A column of mix(seed, index, name) for `count` indices from `first`.");
  module.def(
      "uniforms",
      [](std::uint64_t seed, std::uint64_t first, std::size_t count, std::uint64_t name) {
        std::vector<double> draws(count);
        for (std::size_t i = 0; i < count; ++i) {
          draws[i] = unit_interval(random_bits(derive_key(seed, {first + i, name}), 0));
        }
        return draws;
      },
      "seed"_a, "first"_a, "count"_a, "name"_a,
      "uniform(seed, index, name) for `count` indices from `first`.");
  module.def(
      "shuffled",
      [](std::size_t count, std::uint64_t seed, const nb::args& path) {
        const std::uint64_t key = derive_path(seed, path);
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t last = count; last-- > 1;) {
          const double draw = unit_interval(random_bits(derive_key(key, last), 0));
          std::swap(order[last],
                    order[static_cast<std::size_t>(draw * static_cast<double>(last + 1))]);
        }
        return order;
      },
      "count"_a, "seed"_a, "path"_a,
      "0 to count - 1 in random order (Fisher and Yates), each exchange drawn by "
      "uniform(seed, *path, index).");
  module.def(
      "normal",
      [](std::uint64_t seed, const nb::args& path) { return normal(derive_path(seed, path), 0); },
      "seed"_a, "path"_a,
      "A standard normal number, a pure function of the seed and the path of integers.");
  module.def(
      "exact_sum", [](const std::vector<double>& values) { return exact_sum(values); }, "values"_a,
      "The correctly rounded sum; NaN if an intermediate sum overflows.");
}

}  // namespace remy
