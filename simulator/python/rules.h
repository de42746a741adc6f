#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

#include "table/rule_table.h"

namespace remy {

// The Python type of actions, a named tuple. Set when the module is loaded, and never freed.
inline PyObject* action_type = nullptr;

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
