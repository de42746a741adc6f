#include "evaluation/simulation.h"

#include <utility>
#include <vector>

#include "core/random.h"
#include "elements/path.h"
#include "evaluation/observers.h"
#include "network/dumbbell.h"
#include "senders/clock.h"
#include "senders/remy_controller.h"

namespace remy {
namespace {

struct Senders {
  std::vector<RemyController> controllers;
  std::vector<Schedule> schedules;
};

Senders make_senders(std::span<const CompiledTable> tables, const CompiledTable& candidate_table,
                     const Specimen& specimen, std::uint64_t specimen_seed) {
  Senders senders;
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

template <class Path, class Clock, class Observer>
std::vector<SenderResults> run(const PathParameters& parameters, const Senders& senders,
                               const Clock& clock, double duration_ms, Observer& observer,
                               Interruption* interruption) {
  return Dumbbell<RemyController, Path, Clock, Observer>(
             parameters, senders.controllers, senders.schedules, clock, observer, interruption)
      .run(duration_ms);
}

template <class Clock, class Observer>
std::vector<SenderResults> run(const Specimen& specimen, const Senders& senders,
                               std::uint64_t specimen_seed, const Clock& clock, double duration_ms,
                               Observer& observer, Interruption* interruption) {
  PathParameters parameters;
  parameters.service_ms = 1 / specimen.link_rate_packets_per_ms;
  parameters.delay_ms = specimen.rtt_ms;
  parameters.buffer_packets = specimen.buffer_packets.value_or(0);
  parameters.loss_probability = specimen.loss_probability;
  parameters.loss_key = derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kLoss));
  const bool lossy = specimen.loss_probability > 0;
  if (specimen.buffer_packets.has_value()) {
    return lossy ? run<Path<true, true>>(parameters, senders, clock, duration_ms, observer,
                                         interruption)
                 : run<Path<true, false>>(parameters, senders, clock, duration_ms, observer,
                                          interruption);
  }
  return lossy ? run<Path<false, true>>(parameters, senders, clock, duration_ms, observer,
                                        interruption)
               : run<Path<false, false>>(parameters, senders, clock, duration_ms, observer,
                                         interruption);
}

template <class Observer>
std::vector<SenderResults> run(const Specimen& specimen, const Senders& senders,
                               std::uint64_t specimen_seed, double duration_ms, Observer& observer,
                               Interruption* interruption) {
  const MeasurementNoise& noise = specimen.measurement;
  if (!noise.has_jitter() && !noise.has_resolution()) {
    return run(specimen, senders, specimen_seed, ExactClock(), duration_ms, observer, interruption);
  }
  const NoisyClock clock(noise,
                         derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kJitter)));
  return run(specimen, senders, specimen_seed, clock, duration_ms, observer, interruption);
}

std::vector<RuleMemory> summarize(const MemoryRecorder& recorder) {
  std::vector<RuleMemory> rules;
  for (std::uint32_t rule = 0; rule < recorder.summaries().size(); ++rule) {
    const auto& memory = recorder.summaries()[rule];
    if (memory == nullptr) {
      continue;
    }
    RuleMemory summary{rule, {}};
    for (std::size_t axis = 0; axis < kSignals; ++axis) {
      SignalSummary signal{static_cast<Signal>(axis), {}, {}};
      const auto counts = memory->counts(signal.signal);
      for (std::uint32_t bucket = 0; bucket < counts.size(); ++bucket) {
        if (counts[bucket] > 0) {
          signal.buckets.push_back(bucket);
          signal.counts.push_back(counts[bucket]);
        }
      }
      summary.signals.push_back(std::move(signal));
    }
    rules.push_back(std::move(summary));
  }
  return rules;
}

}  // namespace

SpecimenOutcome simulate(std::span<const CompiledTable> tables, const Candidate& candidate,
                         const Specimen& specimen, double duration_ms, std::uint64_t seed,
                         Recording recording, Interruption* interruption) {
  CompiledTable table = tables.front();
  apply(candidate, specimen.key, table);
  const std::uint64_t specimen_seed = derive_key(seed, specimen.key);
  const Senders senders = make_senders(tables, table, specimen, specimen_seed);
  SpecimenOutcome outcome;
  switch (recording) {
    case Recording::kNothing: {
      NoObserver observer;
      outcome.senders = run(specimen, senders, specimen_seed, duration_ms, observer, interruption);
      break;
    }
    case Recording::kUses:
    case Recording::kUsed: {
      UseCounter observer(&table, table.rule_count());
      outcome.senders = run(specimen, senders, specimen_seed, duration_ms, observer, interruption);
      outcome.rule_uses = observer.uses();
      break;
    }
    case Recording::kMemory: {
      MemoryRecorder observer(&table, table.rule_count());
      outcome.senders = run(specimen, senders, specimen_seed, duration_ms, observer, interruption);
      outcome.rule_uses = observer.uses();
      outcome.rule_memory = summarize(observer);
      break;
    }
  }
  return outcome;
}

}  // namespace remy
