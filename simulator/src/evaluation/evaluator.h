#pragma once

#include <cstdint>
#include <vector>

#include "evaluation/candidate.h"
#include "evaluation/memory_summary.h"
#include "evaluation/specimen.h"
#include "network/sender_results.h"
#include "rule_table/rule_table.h"

namespace remy {

// What is recorded beside the senders' results: nothing, how often each rule was used, or that and
// a summary of the memory values that triggered each.
enum class Recording { kNothing, kUses, kMemory };

// Every candidate (a change of the first table) is simulated on every specimen.
struct EvaluationRequest {
  std::vector<RuleTable> tables;
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
};

// A pure function of the request, bit for bit, whatever the number of threads. Candidate-major,
// specimens in the request's order. Throws std::invalid_argument for a request that makes no sense.
std::vector<SpecimenOutcome> evaluate(const EvaluationRequest& request, unsigned threads);

}  // namespace remy
