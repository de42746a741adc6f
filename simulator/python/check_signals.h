#pragma once

#include <nanobind/nanobind.h>

namespace remy {

// Runs Python's signal handlers, so that Ctrl-C interrupts a caller that waits for the simulator.
// Python runs handlers only in the main thread, and only when asked to. Throws the handler's
// exception.
inline void check_signals() {
  const nanobind::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) {
    throw nanobind::python_error();
  }
}

}  // namespace remy
