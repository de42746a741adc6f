#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "protocols/one_bottleneck.h"
#include "protocols/one_link.h"

namespace remy {
namespace {

// Both variants behave in the same way if the sender always has data and the buffer holds the queue
// that they aim at.
const Choice kPaper = {"copa", "paper", {}};
const Choice kCopa = {"copa", "validated", {}};

double mean_backlog(OneLinkRun& run, double end_ms) {
  double sum = 0;
  std::uint64_t samples = 0;
  for (double ms = run.now_ms() + 1; ms <= end_ms; ms += 1) {
    run.run_until(ms);
    // The packet in transmission is not queued.
    const std::size_t backlog = run.backlog();
    sum += backlog > 0 ? static_cast<double>(backlog - 1) : 0;
    ++samples;
  }
  return sum / static_cast<double>(samples);
}

struct Equilibrium {
  const char* variant;
  std::size_t senders = 1;
  double delta = 0.5;
};

class CopaEquilibrium : public testing::TestWithParam<Equilibrium> {};

TEST_P(CopaEquilibrium, KeepsOneOverDeltaPacketsPerSenderInTheQueue) {
  const auto [variant, senders, delta] = GetParam();
  OneLinkRun run({.rate_packets_per_ms = 4, .rtt_ms = 50});
  for (std::size_t i = 0; i < senders; ++i) {
    run.add({"copa", variant, {{"delta", delta}}}, 500.0 * static_cast<double>(i));
  }
  run.run_until(20000);
  const double expected = static_cast<double>(senders) / delta;
  EXPECT_NEAR(mean_backlog(run, 40000), expected, 0.5 * expected);
  std::uint64_t delivered = 0;
  for (const auto& counts : run.run_until(60000)) {
    delivered += counts.delivered;
    EXPECT_NEAR(static_cast<double>(counts.delivered) / 20000, 4.0 / static_cast<double>(senders),
                0.15 * 4.0 / static_cast<double>(senders));
  }
  EXPECT_GT(static_cast<double>(delivered) / 20000, 0.95 * 4);
}

// With more senders, which oscillate out of phase, the paper's mode detection sometimes errs.
INSTANTIATE_TEST_SUITE_P(
    Shares, CopaEquilibrium,
    testing::Values(Equilibrium{"validated", 1, 0.5}, Equilibrium{"validated", 2, 0.5},
                    Equilibrium{"validated", 1, 0.1}, Equilibrium{"validated", 2, 0.1},
                    Equilibrium{"paper", 1, 0.5}, Equilibrium{"paper", 2, 0.5},
                    Equilibrium{"paper", 1, 0.1}, Equilibrium{"paper", 2, 0.1},
                    Equilibrium{"no-mode-switch", 2, 0.5}, Equilibrium{"no-mode-switch", 4, 0.5},
                    Equilibrium{"no-mode-switch", 8, 0.5}));

// Tests the rule alone: the rate 1 / (delta dq) separates growth from decrease.
TEST(Copa, GrowsBelowItsTargetAndShrinksAboveIt) {
  for (const double delta : {0.5, 0.1}) {
    for (const double queueing_ms : {1.0, 5.0, 20.0}) {
      const Protocol& protocol = find_protocol("copa");
      const Choice choice = {"copa", "no-mode-switch", {{"delta", delta}}};
      const auto controller =
          protocol.make(ParameterValues("protocol", protocol.variants, choice), 1);
      controller->start(0);
      std::uint64_t delivered = 0;
      double now_ms = 100;
      const auto acknowledge = [&](double rtt_ms) {
        AckEvent ack;
        ack.now_ms = now_ms;
        ack.rtt_ms = rtt_ms;
        ack.newly_acked = ack.newly_delivered = 1;
        ack.total_delivered = ++delivered;
        controller->on_ack(ack);
      };
      acknowledge(100);
      // Long after the start, so that slow start has reached the target.
      for (; now_ms < 60 * 100; now_ms += 0.5) {
        acknowledge(100 + 1e-9 * now_ms);
        if (controller->cwnd() > 4 * (100 + queueing_ms) / (delta * queueing_ms)) {
          break;
        }
      }
      double sum = 0;
      int samples = 0;
      for (const double end_ms = now_ms + 9000; now_ms < end_ms; now_ms += 0.5) {
        acknowledge(100 + queueing_ms);
        if (now_ms > end_ms - 3000) {
          sum += controller->cwnd();
          ++samples;
        }
      }
      const double rate = sum / samples / (100 + queueing_ms);
      EXPECT_NEAR(rate, 1 / (delta * queueing_ms), 0.1 / (delta * queueing_ms));
    }
  }
}

TEST(Copa, OscillatesWithAPeriodOfFiveRtts) {
  OneLinkRun run({.rate_packets_per_ms = 4, .rtt_ms = 100});
  run.add(kCopa);
  run.run_until(20000);
  // The queue is empty once in five RTTs.
  std::vector<double> empties;
  bool was_empty = true;
  double longest = 0;
  for (double ms = run.now_ms() + 1; ms < 40000; ms += 1) {
    run.run_until(ms);
    const std::size_t backlog = run.backlog();
    longest = std::max(longest, static_cast<double>(backlog));
    if (backlog <= 1 && !was_empty) {
      empties.push_back(ms);
    }
    was_empty = backlog <= 1 || (was_empty && backlog < 3);
  }
  ASSERT_GE(empties.size(), 5U);
  const double period_ms =
      (empties.back() - empties.front()) / static_cast<double>(empties.size() - 1);
  EXPECT_NEAR(period_ms / 100, 5, 1);
  EXPECT_LE(longest, 2.5 / 0.5 + 3);
}

TEST(Copa, SlowStartDoublesEachRttUpToTheTarget) {
  OneLinkRun run({.rate_packets_per_ms = 10, .rtt_ms = 100});
  run.add(kCopa);
  run.run_until(99);
  EXPECT_EQ(run.controller(0).cwnd(), 10);
  run.run_until(199);
  EXPECT_NEAR(run.controller(0).cwnd(), 20, 1);
  run.run_until(299);
  EXPECT_NEAR(run.controller(0).cwnd(), 40, 2);
  run.run_until(399);
  EXPECT_NEAR(run.controller(0).cwnd(), 80, 6);
  // Paces at twice cwnd / RTT.
  EXPECT_NEAR(run.controller(0).pacing_interval_ms(), 100 / (2 * run.controller(0).cwnd()), 0.05);
}

TEST(Copa, IgnoresRandomLoss) {
  for (const Choice& choice : {kPaper, kCopa}) {
    OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 60, .buffer_packets = 500});
    run.link().loss_probability = 0.02;
    run.add(choice);
    run.run_until(5000);
    EXPECT_GT(static_cast<double>(run.run_until(35000)[0].delivered) / 30000, 0.9 * 0.98 * 2)
        << choice.variant;
  }
}

// A buffer shorter than the n / delta = 8 packets that four senders aim at: their queueing delay
// never reaches the target. The loss tolerance is that of mvfst's Copa2, whose loss rate is twice
// that and what its growth in an RTT loses.
TEST(Copa, HeedsLossesWhereTheBufferIsShorterThanItsTarget) {
  for (const double buffer : {2.0, 5.0}) {
    for (const double rtt_ms : {10.0, 50.0}) {
      const auto loss_rate = [&](const char* variant) {
        OneBottleneck bottleneck;
        bottleneck.protocol = {"copa", variant, {}};
        bottleneck.transport = {"tcp", "linux", {}};
        bottleneck.link.rate_packets_per_ms = 4;
        bottleneck.link.buffer_packets = static_cast<std::uint32_t>(buffer);
        bottleneck.rtt_ms = rtt_ms;
        bottleneck.starts_ms = {0, 100, 200, 300};
        const NetworkResults results = bottleneck.run(60'000);
        double sent = 0;
        double received = 0;
        for (const NetworkSenderResults& sender : results.senders) {
          sent += static_cast<double>(sender.endpoint.packets_sent);
          received += static_cast<double>(sender.endpoint.packets_received);
        }
        EXPECT_GT(received / 60'000, 0.8 * 4) << variant << " " << buffer << " " << rtt_ms;
        return 1 - received / sent;
      };
      EXPECT_LT(loss_rate("validated"), 0.17) << buffer << " " << rtt_ms;
    }
  }
}

// Against a buffer-filling sender, Copa gets its share with mode switching and starves without.
TEST(Copa, CompetesWithBufferFillingSenders) {
  for (const char* rival : {"newreno", "cubic"}) {
    const auto share = [&](const char* variant) {
      OneLinkRun run({.rate_packets_per_ms = 2, .rtt_ms = 60, .buffer_packets = 120});
      run.add({"copa", variant, {}});
      run.add({rival, "", {}}, 1000);
      run.run_until(20000);
      const auto counts = run.run_until(120000);
      return static_cast<double>(counts[0].delivered) /
             static_cast<double>(counts[0].delivered + counts[1].delivered);
    };
    for (const char* variant : {"paper", "validated"}) {
      const double with_modes = share(variant);
      EXPECT_GT(with_modes, 0.3) << variant << " " << rival;
      EXPECT_LT(with_modes, 0.75) << variant << " " << rival;
    }
    EXPECT_LT(share("no-mode-switch"), 0.15) << rival;
  }
}

TEST(Copa, StaysInDefaultModeAmongCopas) {
  OneLinkRun run({.rate_packets_per_ms = 4, .rtt_ms = 50, .buffer_packets = 400});
  run.add(kCopa);
  run.add(kCopa, 300);
  run.run_until(10000);
  const auto counts = run.run_until(40000);
  for (const auto& flow : counts) {
    EXPECT_LT(flow.mean_rtt_ms(), 50 + 4);
    EXPECT_EQ(flow.lost, 0U);
  }
}

}  // namespace
}  // namespace remy
