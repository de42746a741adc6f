#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/interruption.h"
#include "evaluation/candidate.h"
#include "evaluation/memory_summary.h"
#include "evaluation/objective.h"
#include "evaluation/specimen.h"
#include "network/network.h"
#include "senders/packet.h"
#include "table/compiled_table.h"

namespace remy {

// What is recorded beside the senders' results: nothing, how often each rule was used, that and a
// summary of the memory values that triggered each, only whether it was used, or (summed over
// simulations) uses and memory as shares: each simulation's counts times share_weight of their sum.
enum class Recording { kNothing, kUses, kMemory, kUsed, kShares };

// What makes so many uses add up to about 2^36: a whole number, so that sums of shares are exact
// and come out the same in any order.
constexpr std::uint64_t share_weight(std::uint64_t uses) {
  return uses == 0 ? 0 : std::max<std::uint64_t>((std::uint64_t{1} << 36) / uses, 1);
}

// Every candidate (a change of the first table) is simulated on every specimen.
struct EvaluationRequest {
  std::vector<CompiledTable> tables;
  std::vector<Candidate> candidates;
  std::vector<Specimen> specimens;
  double duration_ms = 0;
  std::uint64_t seed = 0;
  Recording recording = Recording::kNothing;
};

// The memory values that triggered one rule.
struct RuleMemory {
  std::uint32_t rule = 0;
  std::vector<SignalSummary> signals;
};

// What happened on one specimen under one candidate.
struct SpecimenOutcome {
  std::vector<SenderResults> senders;
  std::vector<std::uint64_t> rule_uses;  // by rule of the first table; empty unless recorded
  std::vector<RuleMemory> rule_memory;   // used rules by increasing number; empty unless recorded
  // Beside `senders`, whose traffic is the same; empty where the specimen is plain.
  std::vector<NetworkSenderResults> network = {};
};

// A pure function of the request, bit for bit, whatever the number of threads. Candidate-major,
// specimens in the request's order. Throws std::invalid_argument for a request that makes no sense,
// and Interrupted.
std::vector<SpecimenOutcome> evaluate(const EvaluationRequest& request, unsigned threads,
                                      Interruption* interruption = nullptr);

// The same as a structure of arrays. Sums are of integers, so that an outcome is put together from
// those of parts of its request in any order.
struct OutcomeColumns {
  std::vector<std::uint64_t> packets_sent;  // by simulation
  // By simulation, where there is an objective; not a number where no sender could be scored.
  std::vector<double> scores;
  // One a sender, simulation by simulation, where there is no objective.
  std::vector<SenderResults> senders;
  // Likewise; empty where all specimens are plain.
  std::vector<NetworkSenderResults> network = {};
  // By rule of the first table, over all simulations.
  std::vector<std::uint64_t> rule_uses;
  // By specimen a bit a rule, the lowest first, in whole bytes: whether any candidate used it.
  std::vector<std::uint8_t> used_rules;
  // Counts over all simulations that are not 0, by place: of a bucket of an axis of a rule, at
  // (rule * kUsualSignals + axis) * memory_scale::kBuckets + bucket; behind all of these, likewise,
  // of the axes of other signals.
  std::vector<std::uint64_t> memory_places;
  std::vector<std::uint64_t> memory_counts;
};

// Simulates, and scores if there is an objective. Likewise a pure function of its arguments.
OutcomeColumns evaluate_columns(const EvaluationRequest& request,
                                const std::optional<Objective>& objective, unsigned threads,
                                Interruption* interruption = nullptr);

// What the general network says of a sender of the dumbbell.
NetworkSenderResults as_network_results(const SenderResults& sender);

// A 64-bit digest, as 16 hexadecimal digits, of every sender's exact results in order. Equal
// results have equal digests; it protects against accidents, not against malice.
std::string digest(const std::vector<SpecimenOutcome>& outcomes);

// Bytes that a mask of this many rules takes.
constexpr std::size_t mask_bytes(std::size_t rules) { return (rules + 7) / 8; }

}  // namespace remy
