#include "table/signals.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <iterator>
#include <vector>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {

void bind_signals(nb::module_& module) {
  nb::enum_<SignalOrigin>(module, "ToldBy")
      .value("ACKS", SignalOrigin::kAcks)
      .value("TELEMETRY", SignalOrigin::kTelemetry)
      .value("MARKS", SignalOrigin::kMarks);
  nb::enum_<Divisor>(module, "Per")
      .value("NOTHING", Divisor::kNothing)
      .value("INTERVAL", Divisor::kInterval)
      .value("SMALLEST_RTT", Divisor::kSmallestRtt)
      .value("PATH", Divisor::kPath);
  nb::class_<SignalForm>(module, "SignalForm", "A signal as rules of one kind look at it.")
      .def_ro("name", &SignalForm::name)
      .def_ro("number", &SignalForm::number, "That of the message's enum.")
      .def_ro("formula", &SignalForm::formula, "Markdown, as docs/reference/signals.md prints it.")
      .def_ro("unit", &SignalForm::unit, "ms, packets, or 1 for what has none.")
      .def_ro("printed_in", &SignalForm::printed_in,
              "In which reports print its thresholds: ms, packets or %; empty: bare.")
      .def_ro("may_stay_0", &SignalForm::can_stay_zero,
              "Whether it may be 0 for ever, so that 0 does not tell who has measured nothing.")
      .def_ro("least_measured", &SignalForm::min_measured,
              "No measured value lies below; 0 where none is known.")
      .def_ro("per", &SignalForm::divisor, "What divides the absolute value.")
      .def_ro("usual_value", &SignalForm::typical_value,
              "Divides what senders measure on usual networks.");
  nb::class_<SignalAxis>(module, "SignalAxis", "A signal, and how rules of either kind look at it.")
      .def("form", &SignalAxis::form, "is_scale_free"_a)
      .def_prop_ro("has_one_form", [](const SignalAxis& axis) { return !axis.scale_free; })
      .def_ro("source", &SignalAxis::source)
      .def_ro("told_by", &SignalAxis::origin)
      .def_ro("turn", &SignalAxis::split_priority,
              "Searches divide on signals of a lower turn first, in the order of axes within one.");
  module.attr("USUAL_AXES") = kBasicSignals;
  module.def(
      "signal_axes",
      [] { return std::vector<SignalAxis>(std::begin(kSignalAxes), std::end(kSignalAxes)); },
      "All signals, in the order of axes.");
}

}  // namespace remy
