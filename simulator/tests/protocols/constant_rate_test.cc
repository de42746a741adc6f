#include <gtest/gtest.h>

#include "protocols/one_link.h"

namespace remy {
namespace {

TEST(ConstantRate, SendsAtItsRateDespiteLosses) {
  for (const double rate : {0.5, 4.0}) {
    OneLinkRun run({.rate_packets_per_ms = 1, .rtt_ms = 50, .buffer_packets = 20});
    run.link().loss_probability = 0.1;
    run.add({"constant-rate", "", {{"rate_packets_per_ms", rate}}});
    run.run_until(1000);
    const auto counts = run.run_until(11000);
    const auto sent = static_cast<double>(counts[0].delivered + counts[0].lost);
    EXPECT_NEAR(sent / 10000, rate, 0.01 * rate);
    EXPECT_NEAR(static_cast<double>(counts[0].delivered) / 10000, 0.9 * std::min(rate, 1.0),
                0.03 * rate);
  }
}

}  // namespace
}  // namespace remy
