#include "evaluation/evaluator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "evaluation/simulation.h"
#include "senders/remy_controller.h"

namespace remy {

namespace {

bool has_extended_signals(std::span<const CompiledTable> tables, const Specimen& specimen) {
  return std::any_of(
      specimen.senders.begin(), specimen.senders.end(),
      [&](const SenderGroup& group) { return tables[group.table].has_extended_signals(); });
}

// Simulates a plain specimen. Senders of table 0 use `table` instead.
template <class Observer>
std::vector<SenderResults> run(std::span<const CompiledTable> tables, const CompiledTable& table,
                               const Specimen& specimen, double duration_ms, std::uint64_t seed,
                               Observer& observer, Interruption* interruption) {
  const bool is_absolute = std::all_of(
      specimen.senders.begin(), specimen.senders.end(),
      [&](const SenderGroup& group) { return tables[group.table].rules() == Rules::kAbsolute; });
  const bool has_path_model =
      std::any_of(specimen.senders.begin(), specimen.senders.end(),
                  [&](const SenderGroup& group) { return tables[group.table].path().has_value(); });
  const auto run_with = has_extended_signals(tables, specimen) ? run_rules<AnyController, Observer>
                        : has_path_model                       ? run_rules<PathController, Observer>
                        : is_absolute ? run_rules<AbsoluteController, Observer>
                                      : run_rules<BasicController, Observer>;
  return run_with(tables, table, specimen, duration_ms, seed, observer, interruption);
}

// Adapts an observer of the dumbbell to the general network's interface.
template <class Observer>
class NetworkObserver final : public RuleObserver {
 public:
  explicit NetworkObserver(Observer& observer) : observer_(observer) {}

  void used(std::uint32_t sender, const AnyController& controller, std::uint32_t rule) override {
    observer_.used(sender, controller, rule);
  }

 private:
  Observer& observer_;
};

template <class Observer>
std::vector<NetworkSenderResults> run_general(std::span<const CompiledTable> tables,
                                              const Specimen& specimen, double duration_ms,
                                              std::uint64_t seed, bool distributions,
                                              Observer& observer, Interruption* interruption) {
  NetworkObserver<Observer> network_observer(observer);
  NetworkOptions options;
  options.observer = &network_observer;
  options.interruption = interruption;
  options.measures_distributions = distributions;
  return run_network(describe(specimen), tables, duration_ms, seed, options).senders;
}

std::vector<RuleMemory> summarize(const MemoryRecorder& recorder) {
  std::vector<RuleMemory> rules;
  for (std::uint32_t rule = 0; rule < recorder.summaries().size(); ++rule) {
    const auto& memory = recorder.summaries()[rule];
    if (memory == nullptr) {
      continue;
    }
    RuleMemory summary{rule, {}};
    for (std::size_t axis = 0; axis < memory->axes(); ++axis) {
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

std::vector<NetworkSenderResults> with_distributions(
    std::span<const SenderResults> senders,
    std::span<DistributionRecorder::Distributions> distributions) {
  std::vector<NetworkSenderResults> results;
  for (std::size_t sender = 0; sender < senders.size(); ++sender) {
    results.push_back(as_network_results(senders[sender]));
    results.back().rtts = std::move(distributions[sender].rtts);
    results.back().flows = std::move(distributions[sender].flows);
  }
  return results;
}

// Simulates one candidate on one specimen with the simulator that fits it. The arguments must be
// valid. Throws Interrupted.
SpecimenOutcome simulate(std::span<const CompiledTable> tables, const Candidate& candidate,
                         const Specimen& specimen, double duration_ms, std::uint64_t seed,
                         Recording recording, bool distributions, Interruption* interruption) {
  const bool plain = is_plain(specimen) || (marking_threshold_packets(specimen).has_value() &&
                                            has_extended_signals(tables, specimen));
  // The general network takes all tables; the dumbbell needs only the changed one.
  std::vector<CompiledTable> changed(tables.begin(), plain ? tables.begin() + 1 : tables.end());
  if (!changed.empty()) {
    apply(candidate, specimen.key, changed.front());
  }
  const CompiledTable* const table = changed.empty() ? nullptr : changed.data();
  const std::size_t rules = table == nullptr ? 0 : table->rule_count();
  SpecimenOutcome outcome;
  const auto run_with = [&](auto& observer) {
    if (plain) {
      return run(tables, *table, specimen, duration_ms, seed, observer, interruption);
    }
    outcome.network =
        run_general(changed, specimen, duration_ms, seed, distributions, observer, interruption);
    std::vector<SenderResults> senders;
    for (const NetworkSenderResults& sender : outcome.network) {
      senders.push_back(sender.totals);
    }
    return senders;
  };
  if (distributions && plain) {
    DistributionRecorder observer(table, rules, sender_count(specimen));
    outcome.senders = run_with(observer);
    outcome.network = with_distributions(outcome.senders, observer.senders());
    if (!is_plain(specimen)) {
      // Without distributions this path records no flows, and equal networks have equal digests.
      for (NetworkSenderResults& sender : outcome.network) {
        sender.flows.clear();
      }
    }
    if (recording != Recording::kNothing) {
      outcome.rule_uses = observer.uses();
    }
    return outcome;
  }
  switch (recording) {
    case Recording::kNothing: {
      NoObserver observer;
      outcome.senders = run_with(observer);
      break;
    }
    case Recording::kUses:
    case Recording::kUsed: {
      UseCounter observer(table, rules);
      outcome.senders = run_with(observer);
      outcome.rule_uses = observer.uses();
      break;
    }
    case Recording::kMemory:
    case Recording::kShares: {
      MemoryRecorder observer(table, rules);
      outcome.senders = run_with(observer);
      outcome.rule_uses = observer.uses();
      outcome.rule_memory = summarize(observer);
      break;
    }
  }
  return outcome;
}

void validate(const EvaluationRequest& request) {
  const auto has_table = [](const SenderGroup& group) { return !group.protocol.has_value(); };
  if (request.tables.empty() &&
      std::ranges::any_of(request.specimens, [&](const Specimen& specimen) {
        return std::ranges::any_of(specimen.senders, has_table);
      })) {
    throw std::invalid_argument("an evaluation needs at least one rule table");
  }
  if (!(request.duration_ms > 0) || !std::isfinite(request.duration_ms)) {
    throw std::invalid_argument("duration_ms is " + std::to_string(request.duration_ms) +
                                " but must be a positive number");
  }
  if (request.distributions &&
      (request.recording == Recording::kMemory || request.recording == Recording::kShares)) {
    throw std::invalid_argument("distributions cannot be recorded together with memory");
  }
  for (const Specimen& specimen : request.specimens) {
    validate(specimen, request.tables.size());
  }
  for (const Candidate& candidate : request.candidates) {
    validate(candidate, request.tables.empty() ? 0 : request.tables.front().rule_count());
  }
}

// Orders simulations by decreasing duration, so that no thread is left with a long one at the end.
// Does not affect results.
std::vector<std::size_t> work_order(const EvaluationRequest& request) {
  std::vector<std::size_t> order(request.candidates.size() * request.specimens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rate = [&](std::size_t task) {
    return request.specimens[task % request.specimens.size()].link_rate_packets_per_ms;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rate(a) > rate(b); });
  return order;
}

// Calls on_outcome(number, outcome) for every simulation, on any thread and in any order. The
// request must be valid.
template <class OnOutcome>
void simulate_all(const EvaluationRequest& request, unsigned threads, Interruption* interruption,
                  const OnOutcome& on_outcome) {
  const std::vector<std::size_t> order = work_order(request);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  const auto work = [&] {
    try {
      for (std::size_t turn = next++; turn < order.size(); turn = next++) {
        const std::size_t task = order[turn];
        const Candidate& candidate = request.candidates[task / request.specimens.size()];
        const Specimen& specimen = request.specimens[task % request.specimens.size()];
        on_outcome(task,
                   simulate(request.tables, candidate, specimen, request.duration_ms, request.seed,
                            request.recording, request.distributions, interruption));
      }
    } catch (...) {
      const std::scoped_lock lock(failure_mutex);
      if (!failure) {
        failure = std::current_exception();
      }
      if (interruption != nullptr) {
        interruption->stop();
      }
      next = order.size();
    }
  };
  {
    const std::size_t workers = std::min<std::size_t>(std::max(threads, 1U), order.size());
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < workers; ++i) {
      pool.emplace_back(work);
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

std::uint64_t packets_sent(const SpecimenOutcome& outcome) {
  std::uint64_t packets = 0;
  for (const SenderResults& sender : outcome.senders) {
    packets += sender.packets_sent;
  }
  return packets;
}

// Sums of the recordings of all outcomes.
class RecordingSums {
 public:
  RecordingSums(const EvaluationRequest& request)
      : recording_(request.recording),
        rules_(request.tables.empty() ? 0 : request.tables.front().rule_count()),
        uses_(recording_ == Recording::kUses || records_memory() ? rules_ : 0),
        used_(recording_ == Recording::kUsed ? request.specimens.size() * mask_bytes(rules_) : 0),
        memory_(records_memory() ? rules_ : 0) {}

  void add(std::size_t specimen, const SpecimenOutcome& outcome) {
    const std::uint64_t weight =
        recording_ == Recording::kShares
            ? share_weight(std::accumulate(outcome.rule_uses.begin(), outcome.rule_uses.end(),
                                           std::uint64_t{0}))
            : 1;
    for (std::size_t rule = 0; rule < uses_.size(); ++rule) {
      uses_[rule] += outcome.rule_uses[rule] * weight;
    }
    if (recording_ == Recording::kUsed) {
      std::uint8_t* const mask = used_.data() + specimen * mask_bytes(rules_);
      for (std::size_t rule = 0; rule < rules_; ++rule) {
        mask[rule / 8] |= static_cast<std::uint8_t>((outcome.rule_uses[rule] > 0) << rule % 8);
      }
    }
    for (const RuleMemory& rule : outcome.rule_memory) {
      auto& sum = memory_[rule.rule];
      if (sum == nullptr) {
        sum = std::make_unique<MemoryCounts>(rule.signals.size());
      }
      for (const SignalSummary& signal : rule.signals) {
        for (std::size_t i = 0; i < signal.buckets.size(); ++i) {
          sum->add(signal.signal, signal.buckets[i], signal.counts[i] * weight);
        }
      }
    }
  }

  void move_to(OutcomeColumns& columns) {
    columns.rule_uses = std::move(uses_);
    columns.used_rules = std::move(used_);
    add_memory(0, kBasicSignals, columns);
    add_memory(kBasicSignals, kSignals, columns);
  }

 private:
  // Appends the counts of a range of axes.
  void add_memory(std::size_t first_axis, std::size_t end, OutcomeColumns& columns) const {
    for (std::size_t rule = 0; rule < memory_.size(); ++rule) {
      const std::size_t last = memory_[rule] == nullptr ? 0 : std::min(end, memory_[rule]->axes());
      for (std::size_t axis = first_axis; axis < last; ++axis) {
        const auto counts = memory_[rule]->counts(static_cast<Signal>(axis));
        const std::size_t row =
            rules_ * first_axis + rule * (end - first_axis) + (axis - first_axis);
        for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
          if (counts[bucket] > 0) {
            columns.memory_places.push_back(row * counts.size() + bucket);
            columns.memory_counts.push_back(counts[bucket]);
          }
        }
      }
    }
  }

  bool records_memory() const {
    return recording_ == Recording::kMemory || recording_ == Recording::kShares;
  }

  Recording recording_;
  std::size_t rules_;
  std::vector<std::uint64_t> uses_;
  std::vector<std::uint8_t> used_;
  std::vector<std::unique_ptr<MemoryCounts>> memory_;  // null for unused rules
};

class Digest {
 public:
  void add(std::uint64_t word) { state_ = scramble(state_ ^ scramble(word + kGoldenRatio)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }

  std::string hexadecimal() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
      digits += "0123456789abcdef"[state_ >> shift & 15U];
    }
    return digits;
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

std::vector<SpecimenOutcome> evaluate(const EvaluationRequest& request, unsigned threads,
                                      Interruption* interruption) {
  validate(request);
  std::vector<SpecimenOutcome> outcomes(request.candidates.size() * request.specimens.size());
  std::uint64_t packets = 0;
  simulate_all(request, threads, interruption, [&](std::size_t task, SpecimenOutcome outcome) {
    outcomes[task] = std::move(outcome);
  });
  for (const SpecimenOutcome& outcome : outcomes) {
    packets += packets_sent(outcome);
  }
  if (interruption != nullptr) {
    interruption->finish(packets);
  }
  return outcomes;
}

OutcomeColumns evaluate_columns(const EvaluationRequest& request,
                                const std::optional<Objective>& objective, unsigned threads,
                                Interruption* interruption) {
  validate(request);
  const std::size_t simulations = request.candidates.size() * request.specimens.size();
  OutcomeColumns columns;
  columns.packets_sent.resize(simulations);
  columns.scores.resize(objective.has_value() ? simulations : 0);
  // Index of each simulation's first sender.
  std::vector<std::size_t> first_sender(simulations);
  if (!objective.has_value()) {
    std::size_t senders = 0;
    for (std::size_t task = 0; task < simulations; ++task) {
      first_sender[task] = senders;
      senders += sender_count(request.specimens[task % request.specimens.size()]);
    }
    columns.senders.resize(senders);
    const bool has_network =
        request.distributions || !std::ranges::all_of(request.specimens, is_plain);
    columns.has_distributions = request.distributions;
    columns.network.resize(has_network ? senders : 0);
  }
  RecordingSums sums(request);
  std::mutex sums_mutex;
  simulate_all(request, threads, interruption,
               [&](std::size_t task, const SpecimenOutcome& outcome) {
                 const std::size_t specimen = task % request.specimens.size();
                 columns.packets_sent[task] = packets_sent(outcome);
                 if (objective.has_value()) {
                   columns.scores[task] =
                       specimen_score(*objective, request.specimens[specimen], outcome.senders,
                                      request.duration_ms, tallies(outcome.network))
                           .value_or(std::numeric_limits<double>::quiet_NaN());
                 } else {
                   const auto first = static_cast<std::ptrdiff_t>(first_sender[task]);
                   std::ranges::copy(outcome.senders, columns.senders.begin() + first);
                   if (!outcome.network.empty()) {
                     std::ranges::copy(outcome.network, columns.network.begin() + first);
                   } else if (!columns.network.empty()) {
                     std::ranges::transform(outcome.senders, columns.network.begin() + first,
                                            as_network_results);
                   }
                 }
                 const std::scoped_lock lock(sums_mutex);
                 sums.add(specimen, outcome);
               });
  sums.move_to(columns);
  if (interruption != nullptr) {
    interruption->finish(std::accumulate(columns.packets_sent.begin(), columns.packets_sent.end(),
                                         std::uint64_t{0}));
  }
  return columns;
}

NetworkSenderResults as_network_results(const SenderResults& sender) {
  NetworkSenderResults results;
  results.totals = sender;
  results.endpoint.packets_sent = sender.packets_sent;
  results.endpoint.packets_received = sender.packets_received;
  results.delay_samples = sender.packets_received;
  results.throughput_packets = sender.packets_received;
  return results;
}

std::string digest(const std::vector<SpecimenOutcome>& outcomes) {
  Digest digest;
  for (const SpecimenOutcome& outcome : outcomes) {
    digest.add(std::uint64_t{outcome.senders.size()});
    for (const SenderResults& sender : outcome.senders) {
      digest.add(sender.packets_received);
      digest.add(sender.packets_sent);
      digest.add(sender.packets_lost);
      digest.add(sender.on_ms);
      digest.add(sender.share_ms);
      digest.add(sender.delay_sum_ms);
      digest.add(sender.first_on_ms);
    }
    for (const NetworkSenderResults& sender : outcome.network) {
      digest.add(sender.endpoint.packets_in_order);
      digest.add(sender.endpoint.packets_retransmitted);
      digest.add(sender.endpoint.packets_marked);
      digest.add(sender.endpoint.timeouts);
      digest.add(sender.throughput_packets);
      digest.add(sender.delay_samples);
      digest.add(std::uint64_t{sender.flows.size()});
      for (const FlowCompletion& flow : sender.flows) {
        digest.add(flow.packets);
        digest.add(flow.time_ms);
      }
    }
  }
  return digest.hexadecimal();
}

}  // namespace remy
