#include "senders/remy_controller.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace remy {
namespace {

class RttsSinceLoss : public testing::TestWithParam<Rules> {};

// ACKs arrive every 25 ms, a quarter of the RTT.
TEST_P(RttsSinceLoss, CountFromTheAckThatRevealedTheLastLossOfTheOnPeriod) {
  const CompiledTable table(RuleTable({Signal::kRttRatio, Signal::kRttsSinceLoss}, {Node{}},
                                      RuleTable::kDefaultDomainUpper, GetParam()));
  SignalController controller(table);
  double now_ms = 0;
  const auto after = [&](std::uint32_t sequence) {
    now_ms += 25;
    Telemetry telemetry;
    telemetry.departed_ms = now_ms;
    controller.received(sequence, telemetry);
    controller.acknowledge(now_ms - 100, now_ms, 100, 1);
    return controller.memory()[axis_of(Signal::kRttsSinceLoss)];
  };
  controller.start();
  EXPECT_EQ(after(0), 0);
  EXPECT_EQ(after(1), 0);
  EXPECT_EQ(after(3), 1) << "packet 2 is lost";
  EXPECT_EQ(after(4), 1.25);
  EXPECT_EQ(after(5), 1.5);
  EXPECT_EQ(after(9), 1) << "packets 6, 7 and 8 are lost";
  EXPECT_EQ(after(10), 1.25);
  controller.start();
  EXPECT_EQ(after(0), 0);
  EXPECT_EQ(after(1), 0) << "losses of an earlier on period do not count";
}

INSTANTIATE_TEST_SUITE_P(Rules, RttsSinceLoss,
                         testing::Values(Rules::kAbsolute, Rules::kScaleFree,
                                         Rules::kScaleFreeRemembering));

}  // namespace
}  // namespace remy
