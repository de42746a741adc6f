#include "evaluation/candidate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "random_cases.h"

namespace remy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kSpecimen = 77;

// A table with `rules` rules that have the same action.
CompiledTable table_of(std::size_t rules, const Action& action) {
  RuleTable table = RuleTable::single_rule({Signal::kSendEwma}, action, 1);
  for (std::size_t rule = 1; rule < rules; ++rule) {
    table = table.split(
        rule - 1,
        std::vector<Threshold>{{Signal::kSendEwma, 1 - std::ldexp(1, -static_cast<int>(rule))}});
  }
  return CompiledTable(table);
}

CompiledTable perturbed(CompiledTable table, const Perturbation& perturbation,
                        std::uint64_t specimen = kSpecimen) {
  apply(perturbation, specimen, table);
  return table;
}

Action random_action(RandomCase& random, const ActionBounds& bounds) {
  return {random.uniform(bounds.window_multiple_minimum, bounds.window_multiple_maximum),
          random.uniform(bounds.window_increment_minimum, bounds.window_increment_maximum),
          random.uniform(bounds.intersend_minimum_ms, bounds.intersend_maximum_ms)};
}

bool is_inside(const Action& action, const ActionBounds& bounds) {
  return action.window_multiple >= bounds.window_multiple_minimum &&
         action.window_multiple <= bounds.window_multiple_maximum &&
         action.window_increment >= bounds.window_increment_minimum &&
         action.window_increment <= bounds.window_increment_maximum &&
         action.intersend_ms >= bounds.intersend_minimum_ms &&
         action.intersend_ms <= bounds.intersend_maximum_ms;
}

std::string refusal(const Candidate& candidate, std::size_t rules = 4) {
  try {
    validate(candidate, rules);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Coordinates, ConvertBackToTheAction) {
  const ActionBounds bounds{0.1, 1.2, -3, 256, 0.002, 50};
  RandomCase random(1);
  for (int i = 0; i < 10'000; ++i) {
    const Action action = random_action(random, bounds);
    const Action back = to_action(to_coordinates(action, bounds), bounds);
    ASSERT_NEAR(back.window_multiple, action.window_multiple, 1e-14);
    ASSERT_NEAR(back.window_increment, action.window_increment, 1e-12);
    ASSERT_NEAR(back.intersend_ms, action.intersend_ms, 1e-13);
  }
}

TEST(Coordinates, AreTheDocumentedLogarithms) {
  const ActionBounds bounds{0, 1, 2, 256, 0.25, 10};
  const Coordinates x = to_coordinates({0.6, 12, 1.5}, bounds);
  EXPECT_NEAR(x.window_multiple, std::log(1 - 0.6 + 0.03), 1e-15);
  EXPECT_NEAR(x.window_increment, std::log(12 - 2 + 1), 1e-15);
  EXPECT_NEAR(x.intersend, std::log(1.5), 1e-15);
}

TEST(Coordinates, AreFiniteOnAndBeyondTheBounds) {
  const ActionBounds bounds;
  for (const double multiple : {-1.0, 0.0, 1.0, 7.0}) {
    for (const double increment : {-9.0, 0.0, 256.0, 1e9}) {
      for (const double intersend : {0.0, 0.25, 10.0, 1e9}) {
        const Coordinates x = to_coordinates({multiple, increment, intersend}, bounds);
        EXPECT_TRUE(std::isfinite(x.window_multiple));
        EXPECT_TRUE(std::isfinite(x.window_increment));
        EXPECT_TRUE(std::isfinite(x.intersend));
      }
    }
  }
}

TEST(Coordinates, OfAnyMagnitudeConvertToActionsWithinTheBounds) {
  const ActionBounds bounds{0.2, 0.9, 1, 30, 0.5, 4};
  for (const double x : {-kInfinity, -1e6, -10.0, 0.0, 10.0, 1e6, kInfinity}) {
    EXPECT_TRUE(is_inside(to_action({x, x, x}, bounds), bounds)) << x;
  }
}

TEST(Perturbation, MovesEachCoordinateByScaleTimesItsNoise) {
  const ActionBounds bounds{0, 1, 0, 1e6, 1e-6, 1e6};
  const Action action{0.5, 1000, 3};
  const Coordinates x = to_coordinates(action, bounds);
  const double scale = 0.01;
  const CompiledTable table = perturbed(table_of(40, action), {5, scale, bounds});
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    const Coordinates moved = to_coordinates(table.action(rule), bounds);
    const auto noise = [&](std::uint32_t coordinate) {
      return PerturbationNoise(5, kSpecimen)(rule, coordinate);
    };
    EXPECT_NEAR((moved.window_multiple - x.window_multiple) / scale, noise(0), 1e-10);
    EXPECT_NEAR((moved.intersend - x.intersend) / scale, noise(2), 1e-10);
    // Increments, of about 1000, are rounded to whole packets.
    EXPECT_NEAR((moved.window_increment - x.window_increment) / scale, noise(1), 0.11);
  }
}

TEST(Perturbation, SignsAreUnbiasedAndUncorrelated) {
  constexpr std::uint32_t kRules = 40'000;
  const PerturbationNoise noise(9, kSpecimen);
  const PerturbationNoise other_seed(10, kSpecimen);
  const PerturbationNoise other_specimen(9, kSpecimen + 1);
  std::vector<double> filled(3 * std::size_t{kRules});
  noise.fill(filled);
  double sum = 0;
  double coordinates = 0;
  double rules = 0;
  double words = 0;
  double seeds = 0;
  double specimens = 0;
  for (std::uint32_t rule = 0; rule < kRules; ++rule) {
    const double e = noise(rule, 0);
    EXPECT_EQ(std::abs(e), 1);
    EXPECT_EQ(filled[3 * std::size_t{rule}], e);
    sum += e;
    coordinates += e * noise(rule, 1);
    rules += e * noise(rule + 1, 0);
    words += e * noise(rule + 64, 0);  // the same bit of another draw
    seeds += e * other_seed(rule, 0);
    specimens += e * other_specimen(rule, 0);
  }
  const double tolerance = 5 / std::sqrt(kRules);
  for (const double total : {sum, coordinates, rules, words, seeds, specimens}) {
    EXPECT_NEAR(total / kRules, 0, tolerance);
  }
}

TEST(Perturbation, NoiseOfARuleDoesNotDependOnTheNumberOfRules) {
  const Perturbation perturbation{3, 0.4, {}};
  const CompiledTable small = perturbed(table_of(3, {0.7, 5.5, 2}), perturbation);
  const CompiledTable large = perturbed(table_of(40, {0.7, 5.5, 2}), perturbation);
  for (std::uint32_t rule = 0; rule < small.rule_count(); ++rule) {
    EXPECT_EQ(small.action(rule), large.action(rule));
  }
}

TEST(Perturbation, AntitheticPairIsSymmetricAboutTheTable) {
  const ActionBounds bounds{0, 1, 0, 256, 1e-3, 1e3};
  const Action action{0.5, 5.5, 2};
  const Coordinates x = to_coordinates(action, bounds);
  const CompiledTable plus = perturbed(table_of(30, action), {4, 0.05, bounds});
  const CompiledTable minus = perturbed(table_of(30, action), {4, -0.05, bounds});
  for (std::uint32_t rule = 0; rule < 30; ++rule) {
    const Coordinates up = to_coordinates(plus.action(rule), bounds);
    const Coordinates down = to_coordinates(minus.action(rule), bounds);
    EXPECT_NE(up.intersend, down.intersend);
    EXPECT_NEAR(up.window_multiple + down.window_multiple, 2 * x.window_multiple, 1e-12);
    EXPECT_NEAR(up.intersend + down.intersend, 2 * x.intersend, 1e-12);
  }
}

// An antithetic pair shares the draw for rounding: with a negligible perturbation both round alike.
TEST(Perturbation, AntitheticPairSharesItsRounding) {
  const CompiledTable table = table_of(45, {0.5, 5.5, 2});
  const CompiledTable plus = perturbed(table, {4, 1e-9, {}});
  const CompiledTable minus = perturbed(table, {4, -1e-9, {}});
  const CompiledTable elsewhere = perturbed(table, {4, 1e-9, {}}, kSpecimen + 1);
  std::size_t up = 0;
  std::size_t different_elsewhere = 0;
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    const double increment = plus.action(rule).window_increment;
    EXPECT_TRUE(increment == 5 || increment == 6);
    EXPECT_EQ(minus.action(rule).window_increment, increment);
    up += increment == 6 ? 1U : 0U;
    different_elsewhere += elsewhere.action(rule).window_increment == increment ? 0U : 1U;
  }
  EXPECT_GT(up, 5U);
  EXPECT_LT(up, 40U);
  EXPECT_GT(different_elsewhere, 5U);
}

TEST(Perturbation, RoundingIsUnbiased) {
  CompiledTable table = table_of(1, {0.5, 7.3, 2});
  constexpr std::uint64_t kDraws = 20'000;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    sum += perturbed(table, {seed, 0, {}}).action(0).window_increment;
  }
  EXPECT_NEAR(sum / kDraws, 7.3, 5 * std::sqrt(0.3 * 0.7 / kDraws));
}

TEST(Perturbation, ScaleZeroKeepsActionsWithWholeIncrements) {
  const Action action{0.75, 12, 2};
  const CompiledTable table = perturbed(table_of(20, action), {8, 0, {}});
  for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
    EXPECT_NEAR(table.action(rule).window_multiple, 0.75, 1e-14);
    EXPECT_NEAR(table.action(rule).intersend_ms, 2, 1e-14);
    EXPECT_EQ(table.action(rule).window_increment, 12);
  }
}

TEST(Perturbation, StaysInTheBoundsWithWholeIncrements) {
  const ActionBounds bounds{0.2, 0.9, 0.5, 30.5, 0.5, 4};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomCase random(seed);
    const double scale = random.uniform(-1, 1) * std::pow(10, random.uniform(-2, 5));
    const CompiledTable table =
        perturbed(table_of(10, random_action(random, bounds)), {seed, scale, bounds});
    for (std::uint32_t rule = 0; rule < table.rule_count(); ++rule) {
      const Action& action = table.action(rule);
      EXPECT_TRUE(is_inside(action, bounds)) << "seed " << seed;
      EXPECT_EQ(action.window_increment, std::floor(action.window_increment)) << "seed " << seed;
    }
  }
}

TEST(ActionChanges, SetOnlyTheirActions) {
  const Action before{0.5, 5, 2};
  CompiledTable table = table_of(4, before);
  apply(ActionChanges{{{2, {0.1, -7.5, 0}}, {0, {1, 1, 1}}}}, kSpecimen, table);
  EXPECT_EQ(table.action(0), (Action{1, 1, 1}));
  EXPECT_EQ(table.action(1), before);
  EXPECT_EQ(table.action(2), (Action{0.1, -7.5, 0}));
  EXPECT_EQ(table.action(3), before);
  apply(Unchanged{}, kSpecimen, table);
  EXPECT_EQ(table.action(1), before);
  EXPECT_EQ(table.action(2), (Action{0.1, -7.5, 0}));
}

TEST(Candidate, RejectsCandidatesThatCannotBeApplied) {
  EXPECT_EQ(refusal(Unchanged{}), "accepted");
  EXPECT_EQ(refusal(ActionChanges{{{3, {0.5, -1, 0}}}}), "accepted");
  EXPECT_EQ(refusal(ActionChanges{{{4, {0.5, 1, 1}}}}),
            "candidate changes rule 4, but the table has only 4 rules");
  for (const Action& action : {Action{kNan, 1, 1}, Action{1, kInfinity, 1}, Action{1, 1, kNan},
                               Action{-0.1, 1, 1}, Action{1, 1, -0.1}}) {
    EXPECT_NE(refusal(ActionChanges{{{0, action}}}).find("sets an action"), std::string::npos);
  }
}

TEST(Candidate, RejectsPerturbationsWithoutFiniteBounds) {
  const auto bounded = [](const ActionBounds& bounds) {
    return refusal(Perturbation{1, 0.1, bounds});
  };
  EXPECT_EQ(bounded({}), "accepted");
  EXPECT_EQ(bounded({0.5, 0.5, 3, 3, 1, 1}), "accepted");
  for (const ActionBounds& bounds :
       {ActionBounds{1, 0.5, 0, 256, 0.25, 10}, ActionBounds{0, kInfinity, 0, 256, 0.25, 10},
        ActionBounds{-1, 1, 0, 256, 0.25, 10}, ActionBounds{0, 1, 9, 8, 0.25, 10},
        ActionBounds{0, 1, -kInfinity, 256, 0.25, 10}, ActionBounds{0, 1, 0, kNan, 0.25, 10},
        ActionBounds{0, 1, 0, 256, 0, 10}, ActionBounds{0, 1, 0, 256, 2, 1},
        ActionBounds{0, 1, 0, 256, 0.25, kInfinity}}) {
    EXPECT_NE(bounded(bounds).find("perturbation needs"), std::string::npos);
  }
  EXPECT_NE(refusal(Perturbation{1, kInfinity, {}}).find("perturbation needs"), std::string::npos);
}

}  // namespace
}  // namespace remy
