#include "table/dna.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "dna_builder.h"
#include "random_cases.h"

namespace remy {
namespace {

using namespace dna_builder;

const std::vector<Signal> kPaperSignals{Signal::kSendEwma, Signal::kRecEwma, Signal::kRttRatio};

Node rule(double increment) { return {{}, {1, increment, 3}}; }

std::vector<Signal> signals_of(const RuleTable& table) {
  return {table.signals().begin(), table.signals().end()};
}

TEST(Dna, RoundTripsTables) {
  const std::string metadata = bytes(4, "config") + bytes(5, "") + bytes(6, "vector");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RuleTable table = RandomCase(seed).table();
    const DnaFile file = read_dna(write_dna(table, metadata));
    EXPECT_EQ(file.table, table) << "seed " << seed;
    EXPECT_EQ(file.metadata, metadata);
  }
}

TEST(Dna, WritesAllFieldsThatOtherReadersNeed) {
  const std::vector<double> zeros{0, 0, 0, 0};
  const std::vector<double> eights{8, 8, 8, 8};
  const std::string range = bytes(11, memory(zeros)) + bytes(12, memory(eights)) + integer(13, 2);
  const RuleTable table = RuleTable::single_rule({Signal::kRttRatio}, {0.5, -2, 0.1}, 8);
  EXPECT_EQ(write_dna(table), bytes(1, range) + leaf(-2, 0.5, 0.1, range));
}

TEST(Dna, KeepsTheOrderOfTheThresholds) {
  const RuleTable table(kPaperSignals, {Node{{{Signal::kRttRatio, 2}, {Signal::kSendEwma, 7}}, {}},
                                        rule(0), rule(1), rule(2), rule(3)});
  EXPECT_EQ(read_dna(write_dna(table)).table, table);
}

TEST(Dna, KeepsRulesThatAreNeverUsed) {
  const RuleTable table(kPaperSignals, {Node{{{Signal::kRttRatio, 1}}, {}}, rule(0),
                                        Node{{{Signal::kRttRatio, 1}, {Signal::kSendEwma, 5}}, {}},
                                        rule(1), rule(2), rule(3), rule(4)});
  EXPECT_EQ(read_dna(write_dna(table)).table, table);
}

TEST(Dna, SupportsIncrementsOf32Bits) {
  const auto written = [](double increment) {
    const RuleTable table = RuleTable::single_rule(kPaperSignals, {1, increment, 3});
    return read_dna(write_dna(table)).table.action(0).window_increment;
  };
  EXPECT_EQ(written(2), 2);
  EXPECT_EQ(written(-0.0), 0);
  EXPECT_EQ(written(-1), -1);
  EXPECT_EQ(written(2147483647), 2147483647);
  EXPECT_EQ(written(-2147483648), -2147483648);
}

TEST(Dna, RejectsIncrementsThatDoNotFit) {
  for (const auto& [increment, shown] :
       {std::pair{3e9, "3e+09"}, std::pair{-2147483649.0, "-2147483649"}, std::pair{1.5, "1.5"}}) {
    try {
      write_dna(RuleTable::single_rule(kPaperSignals, {1, increment, 3}));
      ADD_FAILURE() << "accepted " << shown;
    } catch (const InvalidTable& error) {
      EXPECT_EQ(std::string(error.what()), std::string("Rule 0 has window_increment ") + shown +
                                               "; a .dna file holds whole increments from "
                                               "-2147483648 to 2147483647.");
    }
  }
}

TEST(Dna, DropsEmptyCellsIfTheRestDividesTheirParent) {
  const auto cell = [](double low, double high, std::int32_t increment) {
    return child(domain({0, 0, low}, {16384, 16384, high}) + leaf(increment));
  };
  const std::string halves = cell(0, 2, 1) + cell(2, 16384, 2);
  const RuleTable expected = read_dna(whole_domain() + halves).table;
  for (const std::string& file : {cell(0, 0, 3) + halves, halves + cell(2, 2, 3),
                                  cell(0, 0, 3) + halves + cell(16384, 16384, 4)}) {
    EXPECT_EQ(read_dna(whole_domain() + file).table, expected);
  }
  // A single remaining child replaces its parent.
  const std::string alone = whole_domain() + leaf(1);
  EXPECT_EQ(read_dna(whole_domain() + child(alone) + cell(0, 0, 3) + cell(5, 5, 3)).table,
            read_dna(alone).table);
  // A split at the lower edge is valid: its empty cells stay, and so do the rules' numbers.
  EXPECT_EQ(read_dna(whole_domain() + cell(0, 0, 1) + cell(0, 16384, 2)).table.rule_count(), 2U);
}

TEST(Dna, DomainEndsAtTheLargestBound) {
  const auto halves = [](double upper) {
    return domain({}, {8, 9, upper}) + child(domain({}, {8, 9, 2}) + leaf(1)) +
           child(domain({0, 0, 2}, {8, 9, upper}) + leaf(2));
  };
  const RuleTable table = read_dna(halves(5)).table;
  EXPECT_EQ(table.domain_upper(), 9);
  EXPECT_EQ(table.find({8.5, 0, 1.9, 0}), 0U);
  EXPECT_EQ(table.find({0, 100, 7, 0}), 1U);
}

TEST(Dna, TimesAreInTheGivenUnit) {
  const std::string file = domain({}, {100, 100, 100}) +
                           child(domain({}, {4, 100, 100}) + leaf(1, 0.5, 3)) +
                           child(domain({4}, {100, 100, 100}) + leaf(2, 0.5, 30));
  const RuleTable tenths = read_dna(file, 0.5).table;
  EXPECT_EQ(tenths.region(0).upper[0], 2);
  EXPECT_EQ(tenths.action(0), (Action{0.5, 1, 1.5}));
  EXPECT_EQ(tenths.action(1), (Action{0.5, 2, 15}));
  EXPECT_EQ(tenths.domain_upper(), 100);  // rtt_ratio has no unit
  EXPECT_EQ(read_dna(file, 2).table.domain_upper(), 200);
  EXPECT_EQ(read_dna(two_halves(), 0.5).table.nodes()[0].thresholds[0].value, 2);
  for (const double unit_ms : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(read_dna(file, unit_ms), InvalidTable);
  }
}

TEST(Dna, RejectsInvalidMetadata) {
  const RuleTable table = RuleTable::single_rule(kPaperSignals, {});
  EXPECT_THROW(write_dna(table, leaf(1)), InvalidTable);
  EXPECT_THROW(write_dna(table, integer(4, 1)), InvalidTable);
  EXPECT_THROW(write_dna(table, bytes(4, "config").substr(0, 3)), InvalidTable);
}

TEST(Dna, FilesWithoutActiveAxesHaveTheSignalsOfThePaper) {
  const DnaFile file = read_dna(two_halves());
  EXPECT_EQ(signals_of(file.table), kPaperSignals);
  EXPECT_EQ(file.table.domain_upper(), 16384);
  EXPECT_EQ(file.table.action(file.table.find({0, 0, 1.9, 0})).window_increment, 1);
  EXPECT_EQ(file.table.action(file.table.find({0, 0, 2.0, 0})).window_increment, 2);
}

TEST(Dna, FilesWithoutActiveAxesHaveTheFourthSignalIfTheySplitOnIt) {
  const DnaFile file = read_dna(child(domain({}, {163840, 163840, 163840, 9}) + leaf(1)) +
                                child(domain({0, 0, 0, 9}, {}) + leaf(2)));
  EXPECT_EQ(signals_of(file.table), (std::vector<Signal>{Signal::kSendEwma, Signal::kRecEwma,
                                                         Signal::kRttRatio, Signal::kSlowRecEwma}));
}

TEST(Dna, SupportsTheOtherTwoSignalsOfTheFormatIfListed) {
  const std::vector<Signal> signals{Signal::kRttRatio, Signal::kRttDiff, Signal::kQueueingDelay};
  RuleTable table = RuleTable::single_rule(signals, {0.5, 2, 1});
  table =
      table.split(0, std::vector<Threshold>{{Signal::kRttDiff, 4}, {Signal::kQueueingDelay, 2}});
  EXPECT_EQ(read_dna(write_dna(table)).table, table);
  const RuleTable in_seconds = read_dna(write_dna(table), 1000).table;
  EXPECT_EQ(in_seconds.find({0, 0, 0, 0, 3999, 2000}), 2U);
  EXPECT_EQ(in_seconds.find({0, 0, 0, 0, 4000, 1999}), 1U);
}

TEST(Dna, RejectsSignalsThatTheFormatDoesNotHave) {
  const auto table = RuleTable::single_rule({Signal::kRttRatio, Signal::kUtilization}, {});
  try {
    write_dna(table);
    ADD_FAILURE();
  } catch (const InvalidTable& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "it looks at utilization, but the .dna format does not have this signal; keep it as .json");
  }
}

TEST(Dna, ActiveAxesMayComeInAnyOrderAndPacked) {
  const std::string bounds = bytes(11, "") + bytes(12, "");
  for (const std::string& axes :
       {integer(13, 2) + integer(13, 0), bytes(13, std::string("\x00\x02", 2)),
        integer(13, 0) + integer(13, 2) + integer(13, 0)}) {
    const DnaFile file = read_dna(bytes(1, bounds + axes) + leaf(1));
    EXPECT_EQ(signals_of(file.table), (std::vector<Signal>{Signal::kSendEwma, Signal::kRttRatio}));
  }
}

TEST(Dna, MissingFieldsHaveTheirDefaults) {
  const DnaFile file = read_dna(bytes(3, ""));
  EXPECT_EQ(file.table.domain_upper(), 163840);
  EXPECT_EQ(file.table.action(0), (Action{0, 0, 0}));
}

TEST(Dna, FieldsAndMetadataMayComeInAnyOrderAndUnknownFieldsAreSkipped) {
  const DnaFile file =
      read_dna(bytes(6, "b") + integer(99, 7) + child(upper_half()) + bytes(4, "a") +
               child(integer(7, 1) + lower_half()) + number(15, 0.5) + whole_domain());
  const DnaFile expected = read_dna(two_halves());
  EXPECT_EQ(file.table, expected.table);
  EXPECT_EQ(file.metadata, bytes(6, "b") + bytes(4, "a"));
}

TEST(Dna, OrderOfChildrenDoesNotMatter) {
  std::vector<std::string> children;
  for (unsigned c = 0; c < 8; ++c) {
    std::vector<double> lower(3, 0);
    std::vector<double> upper(3, 16384);
    for (unsigned axis = 0; axis < 3; ++axis) {
      ((c >> axis & 1U) != 0 ? lower : upper)[axis] = axis + 1;
    }
    children.push_back(child(domain(lower, upper) + leaf(static_cast<std::int32_t>(c))));
  }
  const auto file = [&] {
    std::string message = whole_domain();
    for (const std::string& node : children) {
      message += node;
    }
    return read_dna(message);
  };
  const RuleTable sorted = file().table;
  EXPECT_EQ(sorted.action(5).window_increment, 5);

  std::rotate(children.begin(), children.begin() + 3, children.end());
  EXPECT_EQ(file().table, sorted);

  std::reverse(children.begin(), children.end());
  const RuleTable reversed = file().table;
  EXPECT_EQ(reversed.action(reversed.find({0, 5, 5, 0})), sorted.action(sorted.find({0, 5, 5, 0})));
}

TEST(Dna, RejectsEveryTruncatedFile) {
  const std::string whole =
      write_dna(RuleTable::single_rule(kPaperSignals, {})
                    .split(0, std::vector<Threshold>{{Signal::kRttRatio, 2}}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(read_dna(std::string_view(whole).substr(0, length)), InvalidTable) << length;
  }
}

// A tree in which every node is a rule, except the first child of each node.
std::string chain(int depth, double upper) {
  if (depth == 0) {
    return domain({}, {upper}) + leaf(1);
  }
  return domain({}, {upper}) + child(chain(depth - 1, upper / 2)) +
         child(domain({upper / 2}, {upper}) + leaf(2));
}

TEST(Dna, IsAtMost64LevelsDeep) {
  EXPECT_EQ(read_dna(chain(64, 163840)).table.rule_count(), 65U);
  try {
    read_dna(chain(65, 163840));
    FAIL() << "accepted";
  } catch (const InvalidTable& error) {
    EXPECT_NE(std::string(error.what())
                  .find("children[0] has children more than 64 levels below the root"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace remy
