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
      .value("BDP", Divisor::kBdp);
  nb::class_<SignalForm>(module, "SignalForm",
                         "A signal as absolute rules, or scale-free rules, look at it.")
      .def_ro("name", &SignalForm::name)
      .def_ro("number", &SignalForm::number, "Value of the enum remy_farm.v1.Signal.")
      .def_ro("formula", &SignalForm::formula, "Markdown, as docs/reference/signals.md prints it.")
      .def_ro("unit", &SignalForm::unit, "ms or packets; 1 without a unit.")
      .def_ro("printed_in", &SignalForm::printed_in,
              "Unit of thresholds in reports: ms, packets or %; empty: none.")
      .def_ro("may_stay_0", &SignalForm::can_stay_zero,
              "True if a measured value may be 0, so that 0 does not mean nothing is measured yet.")
      .def_ro("least_measured", &SignalForm::min_measured,
              "Lower bound of measured values; 0 if not known.")
      .def_ro("per", &SignalForm::divisor, "The divisor of the absolute value.")
      .def_ro("usual_value", &SignalForm::typical_value,
              "A typical value, at which the fingerprint's tables split.");
  nb::class_<SignalAxis>(module, "SignalAxis",
                         "A signal and its forms for absolute and scale-free rules.")
      .def("form", &SignalAxis::form, "is_scale_free"_a)
      .def_prop_ro("has_one_form", [](const SignalAxis& axis) { return !axis.scale_free; })
      .def_ro("source", &SignalAxis::source)
      .def_ro("told_by", &SignalAxis::origin)
      .def_ro("turn", &SignalAxis::split_priority,
              "Searches split on signals with a lower number first, in axis order among equals.");
  module.attr("USUAL_AXES") = kBasicSignals;
  module.def(
      "signal_axes",
      [] { return std::vector<SignalAxis>(std::begin(kSignalAxes), std::end(kSignalAxes)); },
      "All signals, in the order of axes.");
}

}  // namespace remy
