#include "table/rule_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "random_cases.h"
#include "table/compiled_table.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<Signal> kPaperSignals{Signal::kSendEwma, Signal::kRecEwma, Signal::kRttRatio};

Node rule(double increment) { return {{}, {1, increment, 3}}; }

std::string refusal(const std::vector<Signal>& signals, const std::vector<Node>& nodes,
                    double domain_upper = RuleTable::kDefaultDomainUpper) {
  try {
    const RuleTable table(signals, nodes, domain_upper);
  } catch (const InvalidTable& error) {
    return error.what();
  }
  return "accepted";
}

// Split on rtt_ratio and, above that, on send_ewma. The lower part is split again on the lower
// bound of its region, as in the published tables of 2013.
RuleTable table_with_an_empty_rule() {
  return RuleTable(kPaperSignals, {Node{{{Signal::kRttRatio, 1.0}}, {}}, rule(0),
                                   Node{{{Signal::kRttRatio, 1.0}, {Signal::kSendEwma, 5.0}}, {}},
                                   rule(1), rule(2), rule(3), rule(4)});
}

MemoryPoint everywhere(double value) {
  MemoryPoint point;
  point.fill(value);
  return point;
}

MemoryPoint random_point(RandomCase& random, const RuleTable& table) {
  MemoryPoint point{};
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    const Region& region =
        table.region(random.integer(0, static_cast<std::uint32_t>(table.rule_count()) - 1));
    point[axis] = random.chance(0.5) ? region.lower[axis] : random.uniform(0, 10);
  }
  return point;
}

TEST(RuleTable, OneRuleCoversMemorySpace) {
  const RuleTable table = RuleTable::single_rule(kPaperSignals, {0.5, 2, 1});
  EXPECT_EQ(table.rule_count(), 1U);
  EXPECT_EQ(table.action(0), (Action{0.5, 2, 1}));
  EXPECT_EQ(table.region(0).lower, MemoryPoint{});
  EXPECT_EQ(table.region(0).upper, everywhere(163840));
}

TEST(RuleTable, ChildBitsSelectTheSideOfEachThreshold) {
  const RuleTable table(kPaperSignals,
                        {Node{{{Signal::kRttRatio, 2.0}, {Signal::kSendEwma, 7.0}}, {}}, rule(0),
                         rule(1), rule(2), rule(3)});
  EXPECT_EQ(table.find({6, 0, 1, 0}), 0U);
  EXPECT_EQ(table.find({6, 0, 2, 0}), 1U);
  EXPECT_EQ(table.find({7, 0, 1, 0}), 2U);
  EXPECT_EQ(table.find({7, 0, 2, 0}), 3U);
  EXPECT_EQ(table.region(2).lower, (MemoryPoint{7, 0, 0, 0}));
  MemoryPoint upper = everywhere(163840);
  upper[2] = 2;
  EXPECT_EQ(table.region(2).upper, upper);
}

TEST(RuleTable, ClampsMemoryOutsideTheDomain) {
  const RuleTable table(kPaperSignals, {Node{{{Signal::kRecEwma, 3.0}}, {}}, rule(0), rule(1)}, 8);
  EXPECT_EQ(table.find({-1, -kInfinity, -5, -0.0}), 0U);
  EXPECT_EQ(table.find({8, 8, 8, 8}), 1U);
  EXPECT_EQ(table.find({kInfinity, kInfinity, 1e300, 9}), 1U);
}

TEST(RuleTable, ARuleBelowAThresholdOnTheLowerBoundIsNeverFound) {
  const RuleTable table = table_with_an_empty_rule();
  EXPECT_EQ(table.find({0, 0, 0.5, 0}), 0U);
  EXPECT_EQ(table.find({0, 0, 1, 0}), 2U);
  EXPECT_EQ(table.find({9, 0, 1, 0}), 4U);
  EXPECT_EQ(table.region(1).lower[2], table.region(1).upper[2]);
}

TEST(RuleTable, EveryPointIsInExactlyTheRegionThatFindReturns) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomCase random(seed);
    const RuleTable table = random.table();
    for (int i = 0; i < 20; ++i) {
      const MemoryPoint point = random_point(random, table);
      std::vector<std::size_t> containing;
      for (std::size_t rule = 0; rule < table.rule_count(); ++rule) {
        const Region& region = table.region(rule);
        bool inside = true;
        for (std::size_t axis = 0; axis < kSignals; ++axis) {
          inside = inside && region.lower[axis] <= point[axis] && point[axis] < region.upper[axis];
        }
        if (inside) {
          containing.push_back(rule);
        }
      }
      EXPECT_EQ(containing, std::vector<std::size_t>{table.find(point)}) << "seed " << seed;
    }
  }
}

TEST(RuleTable, TheCompiledTableFindsTheSameRules) {
  std::vector<RuleTable> tables{table_with_an_empty_rule()};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    tables.push_back(RandomCase(seed).table());
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const CompiledTable compiled(tables[i]);
    RandomCase random(i);
    for (int j = 0; j < 100; ++j) {
      alignas(16) MemoryPoint point = random_point(random, tables[i]);
      if (random.chance(0.2)) {
        point[random.integer(0, 3)] = random.chance(0.5) ? -1.0 : 1e9;
      }
      EXPECT_EQ(compiled.find(point.data()), tables[i].find(point)) << "table " << i;
    }
  }
}

TEST(RuleTable, SplitCopiesTheActionAndKeepsOtherRules) {
  const Threshold first{Signal::kSendEwma, 4};
  const RuleTable halves = RuleTable::single_rule(kPaperSignals, {0.5, 2, 1}).split(0, {{first}});
  RuleTable changed = halves;
  changed.set_action(1, {0.25, 3, 2});
  const RuleTable split =
      changed.split(1, std::vector<Threshold>{{Signal::kSendEwma, 8}, {Signal::kRttRatio, 1.5}});

  ASSERT_EQ(split.rule_count(), 5U);
  EXPECT_EQ(split.action(0), (Action{0.5, 2, 1}));
  for (std::size_t rule = 1; rule < 5; ++rule) {
    EXPECT_EQ(split.action(rule), (Action{0.25, 3, 2}));
    EXPECT_GE(split.region(rule).lower[0], 4);
  }
  EXPECT_EQ(halves.action(1), (Action{0.5, 2, 1})) << "the table that was copied is unchanged";
}

TEST(RuleTable, SplitRejectsThresholdsNotStrictlyInside) {
  const RuleTable table = RuleTable::single_rule(kPaperSignals, {});
  const auto refusal_of = [&](const std::vector<Threshold>& thresholds) -> std::string {
    try {
      table.split(0, thresholds);
    } catch (const InvalidTable& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(
      refusal_of({{Signal::kSendEwma, 0}}),
      "Rule 0 cannot be split on send_ewma at 0, the lower bound of its region; the threshold "
      "must lie above it.");
  EXPECT_EQ(refusal_of({{Signal::kSendEwma, 163840}}),
            "Node 0 divides on send_ewma at 163840; the threshold must be at least 0 and below "
            "163840, the bounds of its region.");
  EXPECT_EQ(refusal_of({}), "Rule 0 cannot be split without a threshold; at least one is needed.");
  EXPECT_EQ(refusal_of(std::vector<Threshold>(70, {Signal::kSendEwma, 1})),
            "Node 0 divides on send_ewma twice; a node must divide on each signal at most once.");
}

TEST(RuleTable, RejectedActionChangesNothing) {
  RuleTable table = RuleTable::single_rule(kPaperSignals, {0.5, 2, 1});
  EXPECT_THROW(table.set_action(0, {-0.1, 2, 1}), InvalidTable);
  EXPECT_THROW(table.set_action(0, {kInfinity, 2, 1}), InvalidTable);
  EXPECT_THROW(table.set_action(0, {1, kNan, 1}), InvalidTable);
  EXPECT_THROW(table.set_action(0, {1, 2, -1}), InvalidTable);
  EXPECT_THROW(table.set_action(0, {1, 2, kNan}), InvalidTable);
  EXPECT_EQ(table.action(0), (Action{0.5, 2, 1}));
}

TEST(RuleTable, IgnoresTheActionOfAnInnerNode) {
  const std::vector<Threshold> thresholds{{Signal::kSendEwma, 1}};
  const RuleTable a(kPaperSignals, {Node{thresholds, {}}, rule(0), rule(1)});
  const RuleTable b(kPaperSignals, {Node{thresholds, {kNan, 0, 0}}, rule(0), rule(1)});
  EXPECT_EQ(a, b);
}

TEST(RuleTable, ReportsInvalidSignals) {
  EXPECT_EQ(refusal({}, {rule(0)}), "The table has no signals; it must have at least one.");
  EXPECT_EQ(refusal({Signal::kRttRatio, Signal::kRecEwma}, {rule(0)}),
            "Signal rec_ewma follows rtt_ratio; signals must be listed once each, in the order " +
                signal_names(Rules::kAbsolute) + ".");
  EXPECT_TRUE(signal_names(Rules::kAbsolute).starts_with("send_ewma, rec_ewma, rtt_ratio, slow"));
  EXPECT_TRUE(signal_names(Rules::kScaleFree).starts_with("send_ratio, age, rtt_ratio, slow"));
  const std::string last(signal_name(static_cast<Signal>(kSignals - 1), Rules::kAbsolute));
  EXPECT_EQ(refusal({static_cast<Signal>(99)}, {rule(0)}),
            "Signal number 99 does not exist; the last is " + std::to_string(kSignals - 1) + ", " +
                last + ".");
  EXPECT_EQ(refusal({Signal::kRecEwma}, {Node{{{Signal::kSendEwma, 1}}, {}}, rule(0), rule(1)}),
            "Node 0 divides on send_ewma, which is not one of the table's signals.");
  EXPECT_EQ(refusal(kPaperSignals, {Node{{{static_cast<Signal>(99), 1}}, {}}, rule(0), rule(1)}),
            "Node 0 divides on signal number 99, which is not one of the table's signals.");
}

TEST(RuleTable, ReportsInvalidDomains) {
  for (const auto& [upper, name] : std::vector<std::pair<double, std::string>>{
           {0, "0"}, {-1, "-1"}, {kInfinity, "inf"}, {kNan, "nan"}}) {
    EXPECT_EQ(refusal(kPaperSignals, {rule(0)}, upper),
              "The upper end of the domain is " + name + "; it must be a finite number above 0.");
  }
}

TEST(RuleTable, ReportsInvalidTrees) {
  const Node inner{{{Signal::kSendEwma, 1}}, {}};
  EXPECT_EQ(refusal(kPaperSignals, {}), "The table has no nodes; it must have at least one rule.");
  EXPECT_EQ(refusal(kPaperSignals, {inner, rule(0)}),
            "Node 0 has 1 children; it must have 2, one for each combination of sides of its "
            "thresholds.");
  EXPECT_EQ(refusal(kPaperSignals, {inner, rule(0), rule(1), rule(2)}),
            "Node 3 lies outside the tree, which is complete with the node before it.");
  EXPECT_EQ(refusal(kPaperSignals, {inner, Node{{}, {1, 1, kInfinity}}, rule(1)}),
            "Node 1 has intersend_ms inf; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(kPaperSignals,
                    {inner, Node{{{Signal::kSendEwma, kNan}}, {}}, rule(0), rule(1), rule(2)}),
            "Node 1 divides on send_ewma at nan; the threshold must be at least 0 and below 1, the "
            "bounds of its region.");
}

// A chain of inner nodes, each of which is child 0 of its predecessor.
std::vector<Node> chain(std::size_t depth) {
  std::vector<Node> nodes;
  for (std::size_t level = 0; level < depth; ++level) {
    nodes.push_back({{{Signal::kSendEwma, std::ldexp(1.0, -static_cast<int>(level))}}, {}});
  }
  nodes.insert(nodes.end(), depth + 1, rule(0));
  return nodes;
}

TEST(RuleTable, IsAtMost64LevelsDeep) {
  EXPECT_EQ(refusal(kPaperSignals, chain(64)), "accepted");
  EXPECT_EQ(refusal(kPaperSignals, chain(65)),
            "The children of node 64 lie more than 64 levels below the root, the most allowed.");
}

// Appends a tree whose inner nodes halve their region on all basic signals.
void append_halvings(std::vector<Node>& nodes, const Region& region, int levels) {
  if (levels == 0) {
    nodes.push_back(rule(0));
    return;
  }
  Node inner;
  for (std::size_t axis = 0; axis < kBasicSignals; ++axis) {
    const double middle = (region.lower[axis] + region.upper[axis]) / 2;
    inner.thresholds.push_back({static_cast<Signal>(axis), middle});
  }
  nodes.push_back(inner);
  for (unsigned child = 0; child < 1U << kBasicSignals; ++child) {
    Region half = region;
    for (std::size_t axis = 0; axis < kBasicSignals; ++axis) {
      const bool above = (child >> axis & 1U) != 0;
      (above ? half.lower : half.upper)[axis] = inner.thresholds[axis].value;
    }
    append_halvings(nodes, half, levels - 1);
  }
}

TEST(RuleTable, HasAtMostAMillionRules) {
  std::vector<Node> nodes;
  append_halvings(nodes, {{0, 0, 0, 0}, {1, 1, 1, 1}}, 5);
  EXPECT_EQ(refusal({Signal::kSendEwma, Signal::kRecEwma, Signal::kRttRatio, Signal::kSlowRecEwma},
                    nodes, 1),
            "The table has more than 1000000 rules, the most allowed.");
}

}  // namespace
}  // namespace remy
