#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_native, module) {
  module.doc() = "The simulator and evaluator of rule tables.";
  remy::bind_numbers(module);
  remy::bind_signals(module);
  remy::bind_tables(module);
  remy::bind_candidates(module);
  remy::bind_registries(module);
  remy::bind_networks(module);
  remy::bind_results(module);
  remy::bind_objectives(module);
  remy::bind_evaluation(module);
  remy::bind_recording(module);
}
