#pragma once

#include <nanobind/nanobind.h>

namespace remy {

// Each binds the types and functions of the source file of the same name.
void bind_candidates(nanobind::module_& module);
void bind_evaluation(nanobind::module_& module);
void bind_networks(nanobind::module_& module);
void bind_numbers(nanobind::module_& module);
void bind_objectives(nanobind::module_& module);
void bind_recording(nanobind::module_& module);
void bind_registries(nanobind::module_& module);
void bind_results(nanobind::module_& module);
void bind_signals(nanobind::module_& module);
void bind_tables(nanobind::module_& module);

}  // namespace remy
