#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "dna_builder.h"
#include "table/dna.h"

namespace remy {
namespace {

using namespace dna_builder;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string refusal(const std::string& file) {
  try {
    read_dna(file);
  } catch (const InvalidTable& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DnaRefusals, NodesHaveEitherChildrenOrALeaf) {
  EXPECT_EQ(refusal(""),
            "The tree's root has neither children nor a leaf; a node must have one of them.");
  EXPECT_EQ(refusal(two_halves() + leaf(1)),
            "The tree's root has both children and a leaf; a node must have one of them.");
  EXPECT_EQ(refusal(child(lower_half()) + child(domain({}, {}))),
            "children[1] has neither children nor a leaf; a node must have one of them.");
}

TEST(DnaRefusals, FieldsHaveTheirTypeAndAppearOnce) {
  EXPECT_EQ(refusal(integer(1, 0) + leaf(1)), "domain has wire type 0; it must have wire type 2.");
  EXPECT_EQ(refusal(child(number(3, 1))),
            "children[0].leaf has wire type 1; it must have wire type 2.");
  EXPECT_EQ(refusal(bytes(3, number(31, 1))),
            "leaf.window_increment has wire type 1; it must have wire type 0.");
  EXPECT_EQ(refusal(bytes(3, integer(31, 1ULL << 32))),
            "leaf.window_increment does not fit in 32 bits; it must be of type sint32.");
  EXPECT_EQ(refusal(leaf(1) + integer(5, 1)),
            "optimizer has wire type 0; it must have wire type 2.");
  EXPECT_EQ(refusal(leaf(1) + leaf(1)),
            "leaf appears more than once; it must appear at most once in its message.");
  EXPECT_EQ(refusal(bytes(3, number(33, 1) + number(33, 1))),
            "leaf.intersend appears more than once; it must appear at most once in its message.");
  EXPECT_EQ(refusal(leaf(1) + '\x0b'),
            "The tree's root holds field 1 with wire type 3; wire types are 0, 1, 2 and 5.");
}

TEST(DnaRefusals, ReportsWhereATruncatedFileEnds) {
  EXPECT_EQ(refusal(two_halves() + '\x12'), "The tree's root ends in the middle of a field.");
  EXPECT_EQ(refusal(child(bytes(1, bytes(12, number(23, 1).substr(0, 5))))),
            "children[0].domain.upper ends in the middle of a field.");
}

TEST(DnaRefusals, BoundsAreFiniteNotNegativeAndNotInverted) {
  EXPECT_EQ(refusal(domain({}, {1, 1, kNan}) + leaf(1)),
            "domain.upper.rtt_ratio is nan; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(domain({0, -1}, {}) + leaf(1)),
            "domain.lower.rec_rec_ewma is -1; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(domain({}, {1, 1, 1, kInfinity}) + leaf(1)),
            "domain.upper.slow_rec_rec_ewma is inf; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(child(domain({3}, {2}) + leaf(1))),
            "children[0].domain.upper.rec_send_ewma is 2; it must be at least the lower bound, 3.");
}

TEST(DnaRefusals, TheDomainStartsAt0AndIsNotEmpty) {
  EXPECT_EQ(refusal(domain({0, 0, 1}, {}) + leaf(1)),
            "The tree's root has the lower bound 1 on RTT_RATIO; it must be 0 on every axis.");
  EXPECT_EQ(refusal(domain({}, {8, 8, 9}) + leaf(1)), "accepted");
  EXPECT_EQ(refusal(domain({}, {8, 0, 9}) + leaf(1)),
            "The tree's root has the upper bound 0 on REC_EWMA; it must be above 0.");
  EXPECT_EQ(refusal(domain({}, {0, 0, 0}) + leaf(1)),
            "The tree's root has the upper bound 0 on SEND_EWMA; it must be above 0.");
  EXPECT_EQ(refusal(domain({}, {1, 8, 9}, {1}) + leaf(1)), "accepted");
}

TEST(DnaRefusals, AxesAreThoseOfTheFormat) {
  EXPECT_EQ(refusal(domain({}, {}, {0, 4}) + leaf(1)), "accepted");
  EXPECT_EQ(refusal(domain({}, {}, {5}) + leaf(1)), "accepted");
  EXPECT_EQ(refusal(domain({}, {}, {6}) + leaf(1)),
            "domain.active_axis holds axis number 6, which is not supported; the last is 5, "
            "QUEUEING_DELAY.");
  EXPECT_EQ(refusal(child(domain({}, {1}, {0}) + leaf(1)) + child(domain({1}, {}, {0}) + leaf(1)) +
                    domain({}, {}, {0, 1})),
            "children[0].domain.active_axis lists other axes than the root; they must be the same "
            "at every node.");
}

TEST(DnaRefusals, NodesSplitOnActiveAxesOnly) {
  const auto halves = [](std::size_t axis, const std::vector<std::uint64_t>& active) {
    std::vector<double> lower(6, 0);
    std::vector<double> upper(6, 163840);
    lower[axis] = upper[axis] = 2;
    return domain({}, {}, active) + child(domain({}, upper, active) + leaf(1)) +
           child(domain(lower, {}, active) + leaf(2));
  };
  EXPECT_EQ(refusal(halves(1, {0, 1})), "accepted");
  EXPECT_EQ(refusal(halves(1, {0})),
            "The tree's root is divided on REC_EWMA at 2, which is not one of its active axes.");
  EXPECT_EQ(refusal(halves(4, {0})),
            "The tree's root is divided on RTT_DIFF at 2, which is not one of its active axes.");
}

TEST(DnaRefusals, ChildrenCoverTheirParentOnce) {
  const std::string gap = domain({0, 0, 3}, {16384, 16384, 16384}) + leaf(2);
  EXPECT_EQ(refusal(whole_domain() + child(lower_half()) + child(gap)),
            "children[1] goes from 3 to 16384 on RTT_RATIO; it must go from 0 to 2 or from 2 to "
            "16384, so that the children neither overlap nor leave gaps.");
  EXPECT_EQ(refusal(whole_domain() + child(lower_half()) + child(lower_half())),
            "children[1] has the same domain as the child with index 0; the children of a node "
            "must not overlap.");
  EXPECT_EQ(
      refusal(whole_domain() + child(lower_half())),
      "The tree's root is divided on 1 axis but not into 2 children, one for each combination "
      "of sides; it has 1.");
  EXPECT_EQ(refusal(whole_domain() + child(whole_domain() + leaf(1))),
            "The tree's root is divided into children that all have its own domain; they must "
            "divide it.");
}

TEST(DnaRefusals, EmptyCellsDoNotHideGaps) {
  const std::string empty = child(domain({0, 0, 0}, {16384, 16384, 0}) + leaf(3));
  const std::string gap = domain({0, 0, 3}, {16384, 16384, 16384}) + leaf(2);
  EXPECT_NE(refusal(whole_domain() + empty + child(lower_half()) + child(gap)), "accepted");
  EXPECT_NE(refusal(whole_domain() + empty + child(lower_half())), "accepted");
  EXPECT_NE(refusal(whole_domain() + empty + empty), "accepted");
}

TEST(DnaRefusals, ThresholdsLieInsideTheParent) {
  const std::string outside = domain({0, 0, 0}, {16384, 16384, 20000}) + leaf(2);
  EXPECT_EQ(
      refusal(whole_domain() + child(outside) + child(lower_half())),
      "The tree's root is divided on RTT_RATIO at 20000; the threshold must be at least 0 and "
      "below 16384, the bounds of its domain.");
}

TEST(DnaRefusals, ANodeHasAtMost64Children) {
  std::string many;
  for (int i = 0; i < 65; ++i) {
    many += child(lower_half());
  }
  EXPECT_EQ(refusal(many), "The tree's root has more than 64 children, the most allowed.");
}

TEST(DnaRefusals, ActionsAreFiniteAndNotNegative) {
  EXPECT_EQ(refusal(leaf(1, kNan)),
            "leaf.window_multiple is nan; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(leaf(1, -0.5)),
            "leaf.window_multiple is -0.5; it must be a finite number not below 0.");
  EXPECT_EQ(refusal(leaf(1, 1, kInfinity)),
            "leaf.intersend is inf; it must be a finite number not below 0.");
}

TEST(DnaRefusals, ALeafHasTheDomainOfItsNode) {
  EXPECT_EQ(refusal(whole_domain() + child(lower_half()) +
                    child(domain({0, 0, 2}, {16384, 16384, 16384}) +
                          leaf(1, 1, 3, bytes(12, memory({1, 1, 1}))))),
            "children[1].leaf.domain differs from the domain of its node; it must be the same or "
            "absent.");
}

}  // namespace
}  // namespace remy
