#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "table/rule_table.h"

namespace remy {

// The Python type of actions, a named tuple. Set when the module is loaded, and never freed.
inline PyObject* action_type = nullptr;

// The Python type of path models, a named tuple. Set when the module is loaded, and never freed.
inline PyObject* path_model_type = nullptr;

// Converts an axis number to a signal. Throws InvalidTable.
Signal to_signal(std::uint8_t axis);

}  // namespace remy

// Converts an action to a named tuple, and any tuple of three numbers to an action.
template <>
struct nanobind::detail::type_caster<remy::Action> {
  using Numbers = std::tuple<double, double, double>;

  NB_TYPE_CASTER(remy::Action, io_name("tuple[float, float, float]", "Action"))

  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Numbers> caster;
    if (!caster.from_python(source, flags, cleanup)) {
      return false;
    }
    const Numbers numbers = caster.operator cast_t<Numbers>();
    value = {std::get<0>(numbers), std::get<1>(numbers), std::get<2>(numbers)};
    return true;
  }

  static handle from_cpp(const remy::Action& action, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    const object numbers = steal(make_caster<Numbers>::from_cpp(
        Numbers{action.window_multiple, action.window_increment, action.intersend_ms}, policy,
        cleanup));
    return numbers.is_valid() ? PyObject_Call(remy::action_type, numbers.ptr(), nullptr) : nullptr;
  }
};

// Converts the constants of a path model to a named tuple, and any sequence of as many numbers to
// constants.
template <>
struct nanobind::detail::type_caster<remy::PathSettings> {
  static constexpr std::size_t kFields = remy::kPathFields.size();
  using Numbers = std::array<double, kFields>;

  NB_TYPE_CASTER(remy::PathSettings, io_name("collections.abc.Sequence[float]", "PathModel"))

  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Numbers> caster;
    if (!caster.from_python(source, flags, cleanup)) {
      return false;
    }
    const Numbers numbers = caster.operator cast_t<Numbers>();
    for (std::size_t field = 0; field < kFields; ++field) {
      value.*remy::kPathFields[field].value = numbers[field];
    }
    return true;
  }

  static handle from_cpp(const remy::PathSettings& settings, rv_policy, cleanup_list*) noexcept {
    const object numbers = steal(PyTuple_New(kFields));
    if (!numbers.is_valid()) {
      return nullptr;
    }
    for (std::size_t field = 0; field < kFields; ++field) {
      PyObject* const number = PyFloat_FromDouble(settings.*remy::kPathFields[field].value);
      if (number == nullptr) {
        return nullptr;
      }
      NB_TUPLE_SET_ITEM(numbers.ptr(), static_cast<Py_ssize_t>(field), number);
    }
    return PyObject_Call(remy::path_model_type, numbers.ptr(), nullptr);
  }
};
