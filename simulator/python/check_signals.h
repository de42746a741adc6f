#pragma once

#include <nanobind/nanobind.h>

namespace remy {

// Ctrl-C reaches a caller that waits for the simulator: Python's handlers run in the main thread,
// and only when they are let.
inline void check_signals() {
  const nanobind::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) {
    throw nanobind::python_error();
  }
}

}  // namespace remy
