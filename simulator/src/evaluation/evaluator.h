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

// What is recorded in addition to the senders' results: nothing; how often each rule was used; uses
// and a summary of the memory values that triggered each rule; only whether each rule was used; or
// uses and memory as shares, which are each simulation's counts times the share_weight of their
// sum.
enum class Recording { kNothing, kUses, kMemory, kUsed, kShares };

// The weight with which `uses` add up to about 2^36. It is an integer, so that sums of shares are
// exact and independent of their order.
constexpr std::uint64_t share_weight(std::uint64_t uses) {
  return uses == 0 ? 0 : std::max<std::uint64_t>((std::uint64_t{1} << 36) / uses, 1);
}

// A request to simulate every candidate (a change of the first table) on every specimen.
struct EvaluationRequest {
  std::vector<CompiledTable> tables;
  std::vector<Candidate> candidates;
  std::vector<Specimen> specimens;
  double duration_ms = 0;
  std::uint64_t seed = 0;
  Recording recording = Recording::kNothing;
  // Record NetworkSenderResults::rtts and flows, for plain specimens too. Not with a recording of
  // memory.
  bool distributions = false;
};

// The memory values that triggered one rule.
struct RuleMemory {
  std::uint32_t rule = 0;
  std::vector<SignalSummary> signals;
};

// The outcome of one candidate on one specimen.
struct SpecimenOutcome {
  std::vector<SenderResults> senders;
  std::vector<std::uint64_t> rule_uses;  // by rule of the first table; empty unless recorded
  std::vector<RuleMemory> rule_memory;   // used rules in order; empty unless recorded
  // Results of the general network, for the same senders; empty for plain specimens without
  // distributions.
  std::vector<NetworkSenderResults> network = {};
};

// Simulates a request. A pure function, bit for bit, whatever the number of threads. Outcomes are
// candidate-major, with specimens in the request's order. Throws std::invalid_argument for an
// invalid request, and Interrupted.
std::vector<SpecimenOutcome> evaluate(const EvaluationRequest& request, unsigned threads,
                                      Interruption* interruption = nullptr);

// The outcomes of a request as a structure of arrays. Sums are of integers, so that outcomes of
// parts of a request can be combined in any order.
struct OutcomeColumns {
  std::vector<std::uint64_t> packets_sent;  // by simulation
  // By simulation, if there is an objective; NaN if no sender could be scored.
  std::vector<double> scores;
  // By simulation and sender, if there is no objective.
  std::vector<SenderResults> senders;
  // By simulation and sender; empty if all specimens are plain and have no distributions.
  std::vector<NetworkSenderResults> network = {};
  bool has_distributions = false;  // `network` has them
  // Uses by rule of the first table, summed over all simulations.
  std::vector<std::uint64_t> rule_uses;
  // By specimen, in whole bytes, one bit per rule (lowest first): whether any candidate used the
  // rule.
  std::vector<std::uint8_t> used_rules;
  // Non-zero memory counts over all simulations, by index. The index of a bucket of a basic signal
  // is (rule * kBasicSignals + axis) * memory_scale::kBuckets + bucket. Extended signals follow in
  // the same layout.
  std::vector<std::uint64_t> memory_places;
  std::vector<std::uint64_t> memory_counts;
};

// Simulates a request, and scores it if there is an objective. A pure function of its arguments.
OutcomeColumns evaluate_columns(const EvaluationRequest& request,
                                const std::optional<Objective>& objective, unsigned threads,
                                Interruption* interruption = nullptr);

// Converts the results of a sender on the dumbbell to those of the general network.
NetworkSenderResults as_network_results(const SenderResults& sender);

// Returns a 64-bit digest, as 16 hexadecimal digits, of the exact results of all senders. It
// detects accidental differences, not malicious ones.
std::string digest(const std::vector<SpecimenOutcome>& outcomes);

// Size in bytes of a mask of `rules` bits.
constexpr std::size_t mask_bytes(std::size_t rules) { return (rules + 7) / 8; }

}  // namespace remy
