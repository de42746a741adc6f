#include "transports/rtt_statistics.h"

#include <gtest/gtest.h>

namespace remy {
namespace {

TEST(RttStatistics, APacketCountsTheSampleBeforeItsOwn) {
  RttStatistics rtt;
  rtt.handed_on();  // before there is a sample: not counted
  rtt.sampled(100, 101);
  rtt.handed_on();
  rtt.handed_on();
  rtt.handed_on_and_sampled(400, 102);
  rtt.handed_on();
  EXPECT_DOUBLE_EQ(rtt.mean_ms(), (3 * 100 + 400) / 4.0);
  EXPECT_DOUBLE_EQ(rtt.last_ms(), 400);
}

TEST(RttStatistics, OverTimeTheLastOfEachStepThatBroughtNewsCounts) {
  RttStatistics rtt;
  rtt.sampled(100, 101);
  rtt.sampled(120, 104);  // the last from 100 to 105 ms
  rtt.sampled(300, 133);  // the only one from 130 to 135 ms; between them was no news
  rtt.sampled(300, 136);  // the same again, with other news
  rtt.sampled(500, 141);  // of a step that is not over
  EXPECT_DOUBLE_EQ(rtt.mean_over_time_ms(), (120 + 300 + 300) / 3.0);
}

TEST(RttStatistics, WithoutSamplesThereAreNone) {
  RttStatistics rtt;
  rtt.handed_on();
  EXPECT_EQ(rtt.mean_ms(), 0);
  EXPECT_EQ(rtt.mean_over_time_ms(), 0);
}

}  // namespace
}  // namespace remy
