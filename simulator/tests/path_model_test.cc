#include "senders/path_model.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace remy {
namespace {

constexpr double kLargeWindow = 1e6;

// One part of the model at a time: rules see RTTs as they are, and nothing is sent beside them.
PathSettings plain_settings() {
  return {.base_rtt_rounds = 4,
          .tolerated_loss = 0.02,
          .loss_debt_packets = 6,
          .loss_window = 0.875,
          .least_window_packets = 2,
          .reference_rtt_ms = 0,
          .additive_packets = 0};
}

struct PathModelTest : testing::Test {
  // One ACK is a round trip, because it arrives much later than a smoothed RTT after the last.
  void round(double rtt_ms, std::uint32_t packets = 100) { ack_after(5000, rtt_ms, packets); }
  void rounds(int count, double rtt_ms, std::uint32_t packets = 100) {
    for (; count > 0; --count) {
      round(rtt_ms, packets);
    }
  }
  void ack_after(double wait_ms, double rtt_ms, std::uint32_t packets = 1) {
    now_ms += wait_ms;
    model.on_ack(now_ms, rtt_ms, packets);
  }
  void lose(std::uint32_t packets) { model.on_loss(now_ms, packets); }
  double window() const { return model.limit_window(kLargeWindow); }

  PathSettings settings = plain_settings();
  PathModel model{&settings};
  double now_ms = 0;
};

TEST_F(PathModelTest, SpuriousRecoveryDoesNotBringBackACapThatHasEnded) {
  rounds(3, 100, 10);
  lose(7);
  round(100, 10);
  lose(7);
  rounds(100, 100, 10);
  ASSERT_EQ(window(), kLargeWindow);
  lose(1);
  model.on_spurious_recovery();
  EXPECT_EQ(window(), kLargeWindow);
}

}  // namespace
}  // namespace remy
