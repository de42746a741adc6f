#include "network/network.h"

#include <gtest/gtest.h>

#include "evaluation/evaluator.h"
#include "network_cases.h"

namespace remy {
namespace {

class Uses : public RuleObserver {
 public:
  explicit Uses(std::size_t rules) : uses(rules) {}
  void used(std::uint32_t, const RemyController<true>&, std::uint32_t rule) override {
    ++uses[rule];
  }

  std::vector<std::uint64_t> uses;
};

class AgainstTheDumbbell : public testing::TestWithParam<std::tuple<Rules, std::uint64_t>> {};

TEST_P(AgainstTheDumbbell, SameBits) {
  const auto [rules, seed] = GetParam();
  RandomCase random(seed + 1000);
  const RuleTable table = random.table(rules);
  const Specimen specimen = random.specimen();
  const double duration_ms = 3000;
  const SpecimenOutcome dumbbell =
      evaluate({{table}, {Unchanged{}}, {specimen}, duration_ms, seed, Recording::kUses}, 1)
          .front();
  const CompiledTable compiled(table);
  Uses uses(table.rule_count());
  NetworkOptions options;
  options.observer = &uses;
  const NetworkResults general =
      run_network(as_network(specimen), {&compiled, 1}, duration_ms, seed, options);
  ASSERT_EQ(general.senders.size(), dumbbell.senders.size());
  for (std::size_t i = 0; i < dumbbell.senders.size(); ++i) {
    const SenderResults& expected = dumbbell.senders[i];
    const SenderResults& found = general.senders[i].traffic;
    EXPECT_EQ(found.packets_received, expected.packets_received) << "sender " << i;
    EXPECT_EQ(found.packets_sent, expected.packets_sent) << "sender " << i;
    EXPECT_EQ(found.packets_lost, expected.packets_lost) << "sender " << i;
    EXPECT_EQ(found.on_ms, expected.on_ms) << "sender " << i;
    EXPECT_EQ(found.share_ms, expected.share_ms) << "sender " << i;
    EXPECT_EQ(found.delay_sum_ms, expected.delay_sum_ms) << "sender " << i;
    EXPECT_EQ(found.first_on_ms, expected.first_on_ms) << "sender " << i;
    EXPECT_EQ(general.senders[i].body.packets_sent, expected.packets_sent);
    EXPECT_EQ(general.senders[i].body.packets_received, expected.packets_received);
    EXPECT_EQ(general.senders[i].throughput_packets, expected.packets_received);
  }
  EXPECT_EQ(uses.uses, dumbbell.rule_uses);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstTheDumbbell,
                         testing::Combine(testing::Values(Rules::kAbsolute, Rules::kScaleFree),
                                          testing::Range<std::uint64_t>(0, 300)));

}  // namespace
}  // namespace remy
