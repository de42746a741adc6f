#pragma once

// Templates that build a simulator from a path, a clock and a controller. Include only from the .cc
// files that instantiate one kind of rules.

#include <limits>
#include <type_traits>
#include <utility>

#include "core/random.h"
#include "elements/path.h"
#include "evaluation/simulation.h"
#include "network/dumbbell.h"
#include "senders/clock.h"
#include "senders/remy_controller.h"

namespace remy {
namespace {

template <class Controller>
struct Senders {
  std::vector<Controller> controllers;
  std::vector<Schedule> schedules;
};

template <class Controller>
Senders<Controller> make_senders(std::span<const CompiledTable> tables,
                                 const CompiledTable& candidate_table, const Specimen& specimen,
                                 std::uint64_t specimen_seed) {
  Senders<Controller> senders;
  std::uint64_t index = 0;
  for (const SenderGroup& group : specimen.senders) {
    const CompiledTable& table = group.table == 0 ? candidate_table : tables[group.table];
    for (std::uint32_t i = 0; i < group.count; ++i, ++index) {
      senders.controllers.emplace_back(table);
      senders.schedules.emplace_back(
          group.traffic,
          derive_key(specimen_seed, {static_cast<std::uint64_t>(Purpose::kTraffic), index}));
    }
  }
  return senders;
}

template <class Path, class Controller, class Clock, class Observer>
std::vector<SenderResults> run(const PathParameters& parameters, const Senders<Controller>& senders,
                               const Clock& clock, double duration_ms, Observer& observer,
                               Interruption* interruption) {
  return Dumbbell<Controller, Path, Clock, Observer>(
             parameters, senders.controllers, senders.schedules, clock, observer, interruption)
      .run(duration_ms);
}

template <class Controller, class Clock, class Observer>
std::vector<SenderResults> run(const Specimen& specimen, const Senders<Controller>& senders,
                               std::uint64_t specimen_seed, const Clock& clock, double duration_ms,
                               Observer& observer, Interruption* interruption) {
  PathParameters parameters;
  parameters.service_ms = 1 / specimen.link_rate_packets_per_ms;
  parameters.delay_ms = specimen.rtt_ms;
  parameters.buffer_packets = specimen.buffer_packets.value_or(0);
  parameters.loss_probability = specimen.loss_probability;
  parameters.loss_key = derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kLoss));
  const bool lossy = specimen.loss_probability > 0;
  const auto run_on = [&]<class Path>(std::type_identity<Path>) {
    return run<Path>(parameters, senders, clock, duration_ms, observer, interruption);
  };
  if constexpr (Controller::kExtendedSignals) {
    parameters.buffer_packets =
        specimen.buffer_packets.value_or(std::numeric_limits<std::uint32_t>::max());
    parameters.marking_threshold_packets =
        marking_threshold_packets(specimen).value_or(parameters.marking_threshold_packets);
    return run_on(std::type_identity<TelemetryPath>());
  } else if (specimen.buffer_packets.has_value()) {
    return lossy ? run_on(std::type_identity<Path<true, true>>())
                 : run_on(std::type_identity<Path<true, false>>());
  } else {
    return lossy ? run_on(std::type_identity<Path<false, true>>())
                 : run_on(std::type_identity<Path<false, false>>());
  }
}

}  // namespace

template <class Controller, class Observer>
std::vector<SenderResults> run_rules(std::span<const CompiledTable> tables,
                                     const CompiledTable& table, const Specimen& specimen,
                                     double duration_ms, std::uint64_t seed, Observer& observer,
                                     Interruption* interruption) {
  const std::uint64_t specimen_seed = derive_key(seed, specimen.key);
  const auto senders = make_senders<Controller>(tables, table, specimen, specimen_seed);
  const MeasurementNoise& noise = specimen.measurement;
  if (noise.is_exact()) {
    return run(specimen, senders, specimen_seed, ExactClock(), duration_ms, observer, interruption);
  }
  const NoisyClock clock(
      noise, derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kJitter)),
      derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kRttOffset)));
  return run(specimen, senders, specimen_seed, clock, duration_ms, observer, interruption);
}

}  // namespace remy

// Instantiates run_rules for a controller and an observer. Use inside namespace remy.
#define REMY_INSTANTIATE_RUN_RULES(Controller, Observer)                             \
  template std::vector<SenderResults> run_rules<Controller, Observer>(               \
      std::span<const CompiledTable>, const CompiledTable&, const Specimen&, double, \
      std::uint64_t, Observer&, Interruption*)
