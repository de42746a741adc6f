#include "table/compiled_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "random_cases.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A random valid table: thresholds anywhere in their regions, also on the lower bound (which leaves
// unused rules), any order of signals within a node, and any size of the domain.
class RandomTree {
 public:
  explicit RandomTree(std::uint64_t seed, std::size_t axes = kBasicSignals)
      : random_(seed), axes_(axes) {}

  RuleTable table() {
    for (std::size_t axis = 0; axis < axes_; ++axis) {
      if (random_.chance(0.7)) {
        signals_.push_back(static_cast<Signal>(axis));
      }
    }
    if (signals_.empty()) {
      signals_.push_back(Signal::kSlowRecEwma);
    }
    Region region;
    domain_upper_ = random_.chance(0.5) ? RuleTable::kDefaultDomainUpper : random_.uniform(0.5, 9);
    region.upper.fill(domain_upper_);
    add(region, 0);
    return {signals_, nodes_, domain_upper_};
  }

 private:
  void add(const Region& region, int depth) {
    std::vector<Threshold> thresholds;
    if (random_.chance(depth == 0 ? 0.95 : 0.5 - 0.1 * depth)) {
      for (const Signal signal : signals_) {
        const auto axis = static_cast<std::size_t>(signal);
        const double lower = region.lower[axis];
        if (random_.chance(axes_ > kBasicSignals ? 0.3 : 0.6)) {
          const double width = std::min(region.upper[axis] - lower, 10.0);
          const double value = random_.chance(0.2) ? lower : lower + width * random_.uniform(0, 1);
          if (value < region.upper[axis]) {
            thresholds.push_back({signal, value});
          }
        }
      }
    }
    if (random_.chance(0.5)) {
      std::reverse(thresholds.begin(), thresholds.end());
    }
    nodes_.push_back({thresholds, random_.action()});
    if (thresholds.empty()) {
      return;
    }
    for (std::size_t child = 0; child < std::size_t{1} << thresholds.size(); ++child) {
      Region part = region;
      for (std::size_t j = 0; j < thresholds.size(); ++j) {
        const auto axis = static_cast<std::size_t>(thresholds[j].signal);
        ((child >> j & 1U) != 0 ? part.lower : part.upper)[axis] = thresholds[j].value;
      }
      add(part, depth + 1);
    }
  }

  RandomCase random_;
  std::size_t axes_;
  std::vector<Signal> signals_;
  std::vector<Node> nodes_;
  double domain_upper_ = 0;
};

// A value on a bound, next to one, in between, or outside the domain.
MemoryPoint random_point(RandomCase& random, const RuleTable& table) {
  MemoryPoint point{};
  const auto last_rule = static_cast<std::uint32_t>(table.rule_count()) - 1;
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    const Region& region = table.region(random.integer(0, last_rule));
    const double bound = random.chance(0.5) ? region.lower[axis] : region.upper[axis];
    switch (random.integer(0, 6)) {
      case 0:
        point[axis] = bound;
        break;
      case 1:
        point[axis] = std::nextafter(bound, -kInfinity);
        break;
      case 2:
        point[axis] = std::nextafter(bound, kInfinity);
        break;
      case 3:
        point[axis] = random.uniform(0, 10);
        break;
      case 4:
        point[axis] = random.chance(0.5) ? -kInfinity : kInfinity;
        break;
      case 5:
        point[axis] = random.chance(0.5) ? -random.uniform(0, 1e9) : table.domain_upper();
        break;
      default:
        point[axis] = table.domain_upper() * random.uniform(1, 1e6);
    }
  }
  return point;
}

class CompiledTableAgainstRuleTable : public testing::TestWithParam<std::uint64_t> {};

TEST_P(CompiledTableAgainstRuleTable, FindsTheSameRulesWithAnySignals) {
  for (const std::size_t axes : {kBasicSignals, kSignals}) {
    const RuleTable table = RandomTree(GetParam(), axes).table();
    const CompiledTable compiled(table);
    EXPECT_EQ(compiled.has_extended_signals(), table.has_extended_signals());
    RandomCase random(GetParam());
    for (int i = 0; i < 100; ++i) {
      alignas(16) const MemoryPoint point = random_point(random, table);
      ASSERT_EQ(compiled.find_extended(point.data()), table.find(point));
    }
  }
}

TEST_P(CompiledTableAgainstRuleTable, FindsTheSameRules) {
  const RuleTable table = RandomTree(GetParam()).table();
  const CompiledTable compiled(table);
  RandomCase random(GetParam());
  for (int i = 0; i < 500; ++i) {
    alignas(16) const MemoryPoint point = random_point(random, table);
    ASSERT_EQ(compiled.find(point.data()), table.find(point))
        << point[0] << " " << point[1] << " " << point[2] << " " << point[3];
  }
}

TEST_P(CompiledTableAgainstRuleTable, HasTheSameActions) {
  const RuleTable table = RandomTree(GetParam()).table();
  const CompiledTable compiled(table);
  ASSERT_EQ(compiled.rule_count(), table.rule_count());
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    EXPECT_EQ(compiled.action(rule), table.action(rule));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CompiledTableAgainstRuleTable,
                         testing::Range<std::uint64_t>(0, 300));

TEST(CompiledTable, SettingAnActionChangesOneRule) {
  const RuleTable table = RandomTree(2).table();
  CompiledTable compiled(table);
  ASSERT_GT(compiled.rule_count(), 3U);
  compiled.set_action(2, {0.125, 9, 0.5});
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    EXPECT_EQ(compiled.action(rule), rule == 2 ? (Action{0.125, 9, 0.5}) : table.action(rule));
  }
}

}  // namespace
}  // namespace remy
