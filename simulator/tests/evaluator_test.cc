#include "evaluation/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "random_cases.h"
#include "senders/packet.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Several candidates of each kind on several networks, with a second table that candidates do not
// change.
EvaluationRequest random_request(std::uint64_t seed, Recording recording = Recording::kMemory) {
  RandomCase random(seed);
  EvaluationRequest request;
  request.tables = {random.table(), random.table()};
  const auto last_rule = static_cast<std::uint32_t>(request.tables.front().rule_count()) - 1;
  request.candidates = {Unchanged{}, Perturbation{seed, 0.3, {}}, Perturbation{seed, -0.3, {}},
                        ActionChanges{{{random.integer(0, last_rule), random.action()}}}};
  for (int i = 0; i < 5; ++i) {
    request.specimens.push_back(random.specimen());
    for (SenderGroup& group : request.specimens.back().senders) {
      group.table = random.integer(0, 1);
    }
  }
  request.duration_ms = 1500;
  request.seed = seed;
  request.recording = recording;
  return request;
}

bool same_memory(const RuleMemory& a, const RuleMemory& b) {
  return a.rule == b.rule &&
         std::equal(a.signals.begin(), a.signals.end(), b.signals.begin(), b.signals.end(),
                    [](const SignalSummary& x, const SignalSummary& y) {
                      return x.signal == y.signal && x.buckets == y.buckets && x.counts == y.counts;
                    });
}

void expect_same(const SpecimenOutcome& a, const SpecimenOutcome& b) {
  EXPECT_EQ(digest({a}), digest({b}));
  EXPECT_EQ(a.rule_uses, b.rule_uses);
  EXPECT_TRUE(std::equal(a.rule_memory.begin(), a.rule_memory.end(), b.rule_memory.begin(),
                         b.rule_memory.end(), same_memory));
}

void expect_same(const std::vector<SpecimenOutcome>& a, const std::vector<SpecimenOutcome>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_same(a[i], b[i]);
  }
}

std::string refusal(const EvaluationRequest& request) {
  try {
    evaluate(request, 1);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

class Evaluator : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Evaluator, ResultsDoNotDependOnTheNumberOfThreads) {
  const EvaluationRequest request = random_request(GetParam());
  const auto expected = evaluate(request, 1);
  for (unsigned threads = 2; threads <= 8; ++threads) {
    const auto outcomes = evaluate(request, threads);
    EXPECT_EQ(digest(outcomes), digest(expected)) << threads << " threads";
    expect_same(outcomes, expected);
  }
}

TEST_P(Evaluator, PartsGiveTheResultsOfTheWhole) {
  const EvaluationRequest whole = random_request(GetParam());
  const auto expected = evaluate(whole, 1);
  for (std::size_t candidate = 0; candidate < whole.candidates.size(); ++candidate) {
    EvaluationRequest part = whole;
    part.candidates = {whole.candidates[candidate]};
    const auto row = evaluate(part, 1);
    ASSERT_EQ(row.size(), whole.specimens.size());
    for (std::size_t specimen = 0; specimen < whole.specimens.size(); ++specimen) {
      part.specimens = {whole.specimens[specimen]};
      const auto alone = evaluate(part, 1);
      ASSERT_EQ(alone.size(), 1U);
      const auto& outcome = expected[candidate * whole.specimens.size() + specimen];
      expect_same(row[specimen], outcome);
      expect_same(alone.front(), outcome);
    }
  }
}

TEST_P(Evaluator, RecordingDoesNotAffectResults) {
  const auto nothing = evaluate(random_request(GetParam(), Recording::kNothing), 1);
  const auto uses = evaluate(random_request(GetParam(), Recording::kUses), 1);
  const auto memory = evaluate(random_request(GetParam(), Recording::kMemory), 1);
  EXPECT_EQ(digest(nothing), digest(uses));
  EXPECT_EQ(digest(nothing), digest(memory));
  for (std::size_t i = 0; i < nothing.size(); ++i) {
    EXPECT_TRUE(nothing[i].rule_uses.empty());
    EXPECT_TRUE(nothing[i].rule_memory.empty());
    EXPECT_TRUE(uses[i].rule_memory.empty());
    EXPECT_EQ(uses[i].rule_uses, memory[i].rule_uses);
  }
}

TEST_P(Evaluator, SummarizesTheMemoryOfExactlyTheRulesInUse) {
  for (const SpecimenOutcome& outcome : evaluate(random_request(GetParam()), 1)) {
    std::vector<std::uint64_t> summarized(outcome.rule_uses.size());
    for (const RuleMemory& memory : outcome.rule_memory) {
      ASSERT_EQ(memory.signals.size(), kBasicSignals);
      for (const SignalSummary& signal : memory.signals) {
        summarized[memory.rule] =
            std::accumulate(signal.counts.begin(), signal.counts.end(), std::uint64_t{0});
        EXPECT_EQ(summarized[memory.rule], outcome.rule_uses[memory.rule]);
      }
    }
    EXPECT_EQ(summarized, outcome.rule_uses);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Evaluator, testing::Range<std::uint64_t>(0, 12));

TEST(EvaluatorOrder, IsCandidateMajor) {
  EvaluationRequest request;
  request.tables = {RuleTable::single_rule({Signal::kSendEwma}, {1, 100, 1})};
  // Twice the intersend time gives half the packets. The second network has two senders.
  request.candidates = {Unchanged{}, ActionChanges{{{0, {1, 100, 2}}}}};
  const Traffic always{ExponentialTime{1e9}, 0.001};
  Specimen one;
  one.link_rate_packets_per_ms = 10;
  one.senders = {{1, 0, always}};
  Specimen two = one;
  two.senders = {{2, 0, always}};
  request.specimens = {one, two};
  request.duration_ms = 1000;
  const auto outcomes = evaluate(request, 1);
  ASSERT_EQ(outcomes.size(), 4U);
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    ASSERT_EQ(outcomes[i].senders.size(), i % 2 + 1);
    EXPECT_NEAR(static_cast<double>(outcomes[i].senders.back().packets_sent), i < 2 ? 1000 : 500,
                2);
  }
}

TEST(EvaluatorTables, OnlyTheFirstIsChangedAndCounted) {
  EvaluationRequest request;
  request.tables = {RuleTable::single_rule({Signal::kSendEwma}, {1, 100, 5}),
                    RuleTable::single_rule({Signal::kSendEwma}, {1, 100, 10})};
  request.candidates = {Unchanged{}, ActionChanges{{{0, {1, 100, 50}}}}};
  const Traffic always{ExponentialTime{1e9}, 0.001};
  Specimen specimen;
  specimen.link_rate_packets_per_ms = 10;
  specimen.senders = {{1, 0, always}, {1, 1, always}};
  request.specimens = {specimen};
  request.duration_ms = 1000;
  request.recording = Recording::kUses;
  const auto outcomes = evaluate(request, 1);
  const auto sent = [&](std::size_t outcome, std::size_t sender) {
    return outcomes[outcome].senders[sender].packets_sent;
  };
  EXPECT_GT(sent(0, 0), 5 * sent(1, 0));
  EXPECT_EQ(sent(0, 1), sent(1, 1));
  for (const SpecimenOutcome& outcome : outcomes) {
    // One look-up at the start, and one per received packet.
    EXPECT_EQ(outcome.rule_uses,
              std::vector<std::uint64_t>{outcome.senders[0].packets_received + 1});
  }
}

TEST(EvaluatorStreams, SpecimensOfEqualKeyShareTheirDraws) {
  EvaluationRequest request = random_request(3);
  request.candidates = {Unchanged{}};
  request.specimens.resize(1);
  request.specimens.push_back(request.specimens.front());
  request.specimens.push_back(request.specimens.front());
  ++request.specimens.back().key;
  const auto outcomes = evaluate(request, 1);
  EXPECT_EQ(digest({outcomes[0]}), digest({outcomes[1]}));
  EXPECT_NE(digest({outcomes[0]}), digest({outcomes[2]}));
}

TEST(EvaluatorRequests, WithoutCandidatesOrSpecimensHaveNoOutcomes) {
  EvaluationRequest request = random_request(1);
  request.candidates.clear();
  EXPECT_TRUE(evaluate(request, 3).empty());
  request = random_request(1);
  request.specimens.clear();
  EXPECT_TRUE(evaluate(request, 3).empty());
}

TEST(EvaluatorRequests, RejectsInvalidRequests) {
  const auto refused = [](auto change) {
    EvaluationRequest request = random_request(1);
    change(request);
    return refusal(request);
  };
  const auto specimen = [&](auto change) {
    return refused([&](EvaluationRequest& request) { change(request.specimens[2]); });
  };
  EXPECT_EQ(refusal(random_request(1)), "accepted");
  EXPECT_EQ(refused([](auto& request) { request.tables.clear(); }),
            "an evaluation needs at least one rule table");
  for (const double duration_ms : {0.0, -1.0, kInfinity, kNan}) {
    EXPECT_NE(refused([&](auto& request) {
                request.duration_ms = duration_ms;
              }).find("must be a positive number"),
              std::string::npos);
  }
  EXPECT_NE(refused([](auto& request) {
              request.candidates.push_back(ActionChanges{{{1'000'000, {}}}});
            }).find("candidate changes rule 1000000"),
            std::string::npos);
  for (const double bad : {0.0, -1.0, kInfinity, kNan}) {
    EXPECT_NE(specimen([&](Specimen& s) {
                s.link_rate_packets_per_ms = bad;
              }).find("specimen.link_rate_packets_per_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) { s.rtt_ms = bad; }).find("specimen.rtt_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.senders[0].traffic = {ExponentialTime{100}, bad};
              }).find("specimen.traffic.mean_off_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.senders[0].traffic.on = ExponentialTime{bad};
              }).find("specimen.traffic.mean_on_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.senders[0].traffic.on = ExponentialBytes{bad};
              }).find("specimen.traffic.mean_on_bytes is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.senders[0].traffic.on = ParetoBytes{147, bad, 0, 0, 1e6};
              }).find("specimen.traffic.shape is"),
              std::string::npos);
  }
  for (const double bad : {-0.1, 1.0, kNan}) {
    EXPECT_NE(specimen([&](Specimen& s) {
                s.loss_probability = bad;
              }).find("specimen.loss_probability is"),
              std::string::npos);
  }
  for (const double bad : {-0.1, kInfinity, kNan}) {
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.jitter = ExponentialJitter{bad};
              }).find("specimen.measurement.exponential_jitter_mean_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.jitter = UniformJitter{bad};
              }).find("specimen.measurement.uniform_jitter_maximum_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.timestamp_resolution_ms = bad;
              }).find("specimen.measurement.timestamp_resolution_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.jitter = LogNormalJitter{bad, 1};
              }).find("specimen.measurement.log_normal_jitter.median_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.jitter = LogNormalJitter{1, bad};
              }).find("specimen.measurement.log_normal_jitter.percentile_99_ms is"),
              std::string::npos);
    EXPECT_NE(specimen([&](Specimen& s) {
                s.measurement.delayed_ack_ms = bad;
              }).find("specimen.measurement.delayed_ack_ms is"),
              std::string::npos);
  }
  EXPECT_NE(specimen([](Specimen& s) {
              s.measurement.bunch_packets = 0;
            }).find("specimen.measurement.bunch_packets is"),
            std::string::npos);
  EXPECT_NE(specimen([](Specimen& s) { s.senders[0].table = 2; }).find("specimen.senders.table is"),
            std::string::npos);
  for (const std::uint32_t count : {0U, FlowTag::kMaximumSenders}) {
    EXPECT_NE(specimen([&](Specimen& s) {
                s.senders = {{count, 0, {ExponentialTime{1}, 1}}};
              }).find("specimen.senders.count is"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace remy
