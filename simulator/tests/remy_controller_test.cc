#include "senders/remy_controller.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace remy {
namespace {

RuleTable table_of(std::vector<Signal> signals, Rules rules) {
  return RuleTable(std::move(signals), {Node{}}, RuleTable::kDefaultDomainUpper, rules);
}

// ACKs arrive every 25 ms, a quarter of the RTT.
class ExtendedController {
 public:
  explicit ExtendedController(const RuleTable& rules) : table(rules), controller(table) {
    controller.start();
  }

  // An ACK of one packet, or of another feedback.
  void ack(const Feedback& feedback = {.received = 1, .marked = 0, .usage = {}}) {
    now_ms += 25;
    controller.acknowledge(now_ms - 100, now_ms, 100, 1, [&] { return feedback; });
  }
  double ack_after_losses(std::uint32_t lost) {
    controller.on_loss(now_ms, lost);
    ack();
    return value(Signal::kRttsSinceLoss);
  }
  double value(Signal signal) const { return controller.memory()[axis_of(signal)]; }

  CompiledTable table;
  AnyController controller;
  double now_ms = 0;
};

class ExtendedSignals : public testing::TestWithParam<Rules> {
 protected:
  ExtendedController sender{table_of({Signal::kRttRatio, Signal::kRttsSinceLoss}, GetParam())};
};

TEST_P(ExtendedSignals, RttsCountFromTheAckThatRevealedTheLastLossOfTheOnPeriod) {
  EXPECT_EQ(sender.ack_after_losses(0), 0);
  EXPECT_EQ(sender.ack_after_losses(0), 0);
  EXPECT_EQ(sender.ack_after_losses(1), 1);
  EXPECT_EQ(sender.ack_after_losses(0), 1.25);
  EXPECT_EQ(sender.ack_after_losses(0), 1.5);
  EXPECT_EQ(sender.ack_after_losses(3), 1);
  EXPECT_EQ(sender.ack_after_losses(0), 1.25);
  sender.controller.start();
  EXPECT_EQ(sender.ack_after_losses(2), 0) << "the first ACK only sets the references";
  EXPECT_EQ(sender.ack_after_losses(0), 0) << "losses of an earlier on period do not count";
}

TEST_P(ExtendedSignals, TheLossRateCountsEachPacket) {
  sender.ack();
  double expected = 0;
  for (const std::uint32_t lost : {0U, 2U, 0U, 1U, 0U}) {
    sender.ack_after_losses(lost);
    for (std::uint32_t packet = 0; packet < lost; ++packet) {
      expected = expected * 255 / 256 + 1.0 / 256;
    }
    expected = expected * 255 / 256;
    EXPECT_NEAR(sender.value(Signal::kLossRate), expected, 1e-15);
  }
}

// The losses since recovery began are as if the packets had been received; earlier ones stay.
TEST_P(ExtendedSignals, ASpuriousRecoveryTakesItsLossesBack) {
  for (const bool is_early : {false, true}) {
    ExtendedController spurious(table_of({Signal::kRttRatio, Signal::kLossRate}, GetParam()));
    ExtendedController expected(table_of({Signal::kRttRatio, Signal::kLossRate}, GetParam()));
    for (ExtendedController* const each : {&spurious, &expected}) {
      each->ack();
      each->ack_after_losses(is_early ? 2 : 0);
      each->ack();
      each->controller.on_loss(each->now_ms, is_early ? 1 : 0);
    }
    spurious.controller.on_recovery();
    spurious.controller.on_loss(spurious.now_ms, 1);
    for (int i = 0; i < 3; ++i) {
      spurious.ack();
      expected.ack();
    }
    spurious.controller.on_timeout(spurious.now_ms, 4);
    EXPECT_GT(spurious.value(Signal::kLossRate), expected.value(Signal::kLossRate));
    spurious.controller.on_spurious_recovery();
    for (int i = 0; i < 2; ++i) {
      spurious.ack();
      expected.ack();
      // The packet that was found lost in the meantime counts as received once more.
      EXPECT_NEAR(spurious.value(Signal::kLossRate), expected.value(Signal::kLossRate) * 255 / 256,
                  1e-15);
      EXPECT_EQ(spurious.value(Signal::kRttsSinceLoss), expected.value(Signal::kRttsSinceLoss));
    }
  }
}

TEST_P(ExtendedSignals, AnAckThatReportsNoPacketLeavesItsSignalsAsTheyAre) {
  sender.ack();
  for (int i = 0; i < 30; ++i) {
    sender.ack({.received = 2, .marked = 1, .usage = PathUsage{3, 0.5}});
  }
  const double delay_ms = sender.value(Signal::kQueueingDelay);
  const double marks = sender.value(Signal::kEcnFraction);
  EXPECT_NEAR(marks, 0.5, 0.1);
  // The BDP is 4 packets.
  const double unit = GetParam() == Rules::kAbsolute ? 1 : 0.25;
  EXPECT_NEAR(sender.value(Signal::kQueueLength), 3 * unit, 0.1);
  EXPECT_NEAR(sender.value(Signal::kUtilization), 0.5, 0.02);
  sender.ack({.received = 0, .marked = 0, .usage = {}});
  EXPECT_EQ(sender.value(Signal::kQueueingDelay), delay_ms);
  EXPECT_EQ(sender.value(Signal::kEcnFraction), marks);
  EXPECT_NEAR(sender.value(Signal::kQueueLength), 3 * unit, 0.1);
  // A marked copy of a packet that was received before.
  sender.ack({.received = 0, .marked = 1, .usage = {}});
  EXPECT_EQ(sender.value(Signal::kEcnFraction), marks * 15 / 16 + 1.0 / 16);
}

INSTANTIATE_TEST_SUITE_P(Rules, ExtendedSignals,
                         testing::Values(Rules::kAbsolute, Rules::kScaleFree,
                                         Rules::kScaleFreeRemembering));

TEST(ControllerOfAnyTable, ComputesNoSignalsThatTheTableDoesNotLookAt) {
  ExtendedController sender(table_of({Signal::kRttRatio}, Rules::kAbsolute));
  sender.ack();
  sender.ack_after_losses(3);
  EXPECT_EQ(sender.controller.axes(), kBasicSignals);
  for (std::size_t axis = kBasicSignals; axis < kSignals; ++axis) {
    EXPECT_EQ(sender.controller.memory()[axis], 0);
  }
}

TEST(PathTelemetry, TellsTheLargestQueueAndTheMostUtilizedLinkSinceTheLastAck) {
  PathTelemetry telemetry(2);
  const auto write = [&](std::uint64_t packet, std::size_t hop, const Telemetry& written) {
    *telemetry.at(packet, hop) = written;
  };
  write(0, 0, {1, 10, 1, 100});
  write(0, 1, {7, 10, 2, 200});
  write(1, 0, {2, 11, 1, 101});
  write(3, 0, {3, 14, 1, 110});
  write(3, 1, {2, 13, 2, 208});
  EXPECT_EQ(telemetry.on_ack(0)->queue_packets, 7);
  const std::optional<PathUsage> usage = telemetry.on_ack(3);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->queue_packets, 3);
  EXPECT_EQ(usage->utilization, 0.75) << "6 of 8 ms, more than 4 of 10 ms";
  EXPECT_EQ(telemetry.on_ack(1), std::nullopt) << "it is late";
  EXPECT_EQ(telemetry.at(1, 1), nullptr);
  // Two packets that leave at once, and one that has left earlier than the last one.
  write(4, 0, {0, 15, 1, 110});
  write(4, 1, {0, 13.5, 2, 216});
  EXPECT_EQ(telemetry.on_ack(4)->utilization, 1);
  write(5, 0, {0, 16, 1, 109});
  write(5, 1, {0, 14, 2, 218});
  EXPECT_EQ(telemetry.on_ack(5), std::nullopt);
}

}  // namespace
}  // namespace remy
