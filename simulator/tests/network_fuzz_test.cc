#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "network/network.h"
#include "network_cases.h"

namespace remy {
namespace {

std::string name_of(const Choice& choice) { return choice.name + ":" + choice.variant; }

std::string describe(const NetworkDescription& network) {
  std::string text;
  for (const LinkDescription& link : network.links) {
    text += name_of(link.queue) + describe_kind(link) + " ";
  }
  for (const SenderDescription& sender : network.senders) {
    text += "| " + (sender.table ? "remycc" : name_of(sender.protocol)) + " on " +
            name_of(sender.transport) + " ";
  }
  return text;
}

// Checks that the numbers of each sample and each memory are finite and in bounds, and that times
// increase.
class BoundsChecker : public Recorder, public RuleObserver {
 public:
  void used(std::uint32_t, const AnyController& controller, std::uint32_t) override {
    // Intervals between reordered packets may be negative, and so are the signals of intervals.
    if (controller.axes() == kSignals) {
      for (const Signal signal :
           {Signal::kRttDiff, Signal::kLossRate, Signal::kQueueLength, Signal::kUtilization,
            Signal::kEcnFraction, Signal::kRttsSinceLoss}) {
        const double value = controller.memory()[axis_of(signal)];
        EXPECT_TRUE(std::isfinite(value)) << "signal " << axis_of(signal);
        EXPECT_GE(value, 0) << "signal " << axis_of(signal);
      }
      for (const Signal share : {Signal::kLossRate, Signal::kUtilization, Signal::kEcnFraction}) {
        EXPECT_LE(controller.memory()[axis_of(share)], 1 + 1e-6) << "signal " << axis_of(share);
      }
    }
  }
  void sample(double now_ms, std::span<const SenderSample> senders,
              std::span<const LinkSample>) override {
    EXPECT_GT(now_ms, last_ms_);
    last_ms_ = now_ms;
    for (const SenderSample& sender : senders) {
      EXPECT_GE(sender.pace.window_packets, 0);
      EXPECT_LE(sender.pace.window_packets, 1e7);
      EXPECT_GE(sender.pace.intersend_ms, 0);
      EXPECT_LE(sender.pace.intersend_ms, 1e9);
      EXPECT_TRUE(std::isfinite(sender.rtt_ms));
      EXPECT_GE(sender.rtt_ms, 0);
    }
  }

 private:
  double last_ms_ = -1;
};

class AnyNetwork : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyNetwork, AccountsForEveryPacket) {
  RandomNetwork random(GetParam());
  RuleTable rules = random.random().table();
  const NetworkDescription network = random.network();
  if (GetParam() % 3 == 2) {
    rules = random.random().table(Rules::kScaleFree, kSignals);
  }
  if (GetParam() % 2 == 1) {
    rules = rules.with_path(random.random().path_settings());
  }
  const CompiledTable table(rules);
  SCOPED_TRACE(describe(network));
  BoundsChecker checker;
  NetworkOptions options;
  options.recorder = &checker;
  options.observer = &checker;
  options.record_every_ms = 7;
  const NetworkResults results = run_network(network, {&table, 1}, 3000, GetParam(), options);
  std::uint64_t left = 0;
  std::uint64_t ended = 0;
  for (std::size_t i = 0; i < results.senders.size(); ++i) {
    const NetworkSenderResults& sender = results.senders[i];
    const SenderResults& totals = sender.totals;
    EXPECT_EQ(sender.endpoint.packets_sent, totals.packets_sent) << i;
    EXPECT_EQ(sender.endpoint.packets_received, totals.packets_received) << i;
    EXPECT_LE(totals.packets_received + totals.packets_lost, totals.packets_sent) << i;
    EXPECT_LE(sender.endpoint.packets_in_order, totals.packets_received) << i;
    EXPECT_LE(sender.endpoint.packets_retransmitted, totals.packets_sent) << i;
    EXPECT_LE(sender.endpoint.packets_marked, totals.packets_received) << i;
    EXPECT_LE(sender.throughput_packets, totals.packets_received) << i;
    EXPECT_LE(totals.share_ms, totals.on_ms + 1e-9) << i;
    EXPECT_LE(totals.on_ms, 3000 + 1e-9) << i;
    const bool is_over_links = !network.senders[i].route.return_links.empty();
    EXPECT_LE(sender.delay_samples, is_over_links ? sender.acks_sent : totals.packets_received)
        << i;
    for (const FlowCompletion& flow : sender.flows) {
      EXPECT_GE(flow.packets, 1U);
      EXPECT_GE(flow.time_ms, 0);
    }
    left += totals.packets_sent + sender.acks_sent;
    ended += totals.packets_received + (is_over_links ? sender.delay_samples : 0);
  }
  for (const LinkResults& link : results.links) {
    ended += link.dropped + link.lost + link.waiting + link.under_way;
  }
  EXPECT_EQ(left, ended);
}

TEST_P(AnyNetwork, IsDeterministic) {
  RandomNetwork random(GetParam());
  const CompiledTable table = random.random().table(Rules::kAbsolute, kSignals);
  const NetworkDescription network = random.network();
  const NetworkResults once = run_network(network, {&table, 1}, 1000, GetParam());
  const NetworkResults again = run_network(network, {&table, 1}, 1000, GetParam());
  for (std::size_t i = 0; i < once.senders.size(); ++i) {
    EXPECT_EQ(once.senders[i].totals.packets_sent, again.senders[i].totals.packets_sent);
    EXPECT_EQ(once.senders[i].totals.delay_sum_ms, again.senders[i].totals.delay_sum_ms);
  }
}

// Scale-free rules must not stop a sender, although its own pacing feeds back into the rate that it
// measures. The buffer holds at least a few packets.
TEST_P(AnyNetwork, KeepsDeliveringPacketsOfATableOverTcp) {
  RandomCase random(GetParam() + 20'000);
  const CompiledTable table = random.table(Rules::kScaleFree);
  NetworkDescription network;
  LinkDescription& link = network.links.emplace_back();
  link.rate_packets_per_ms = std::exp2(random.uniform(-4, 1));
  link.delay_ms = random.uniform(1, 200);
  link.buffer_packets = random.integer(4, 20);
  link.loss_probability = random.uniform(0, 0.02);
  SenderDescription& sender = network.senders.emplace_back();
  sender.table = 0;
  sender.transport = {"tcp", random.chance(0.5) ? "linux" : "rfc", {}};
  sender.traffic.on = Always{};
  sender.route.links = {0};
  const auto delivered = [&](double duration_ms) {
    return run_network(network, {&table, 1}, duration_ms, GetParam()).senders[0].throughput_packets;
  };
  // At least one packet per two seconds, ten times the minimum retransmission timeout.
  EXPECT_GE(delivered(40'000), delivered(20'000) + 10)
      << link.rate_packets_per_ms << " per ms, " << link.delay_ms << " ms, " << *link.buffer_packets
      << " packets, loss " << link.loss_probability;
}

// Each sender has one flow over TCP. Losses, queues and other senders may delay it but not stop it.
TEST_P(AnyNetwork, CompletesEveryFlow) {
  RandomNetwork random(GetParam() + 10'000);
  const CompiledTable table = random.random().table();
  NetworkDescription network = random.network();
  for (LinkDescription& link : network.links) {
    if (link.trace) {
      link.trace->ends = false;
    }
  }
  for (SenderDescription& sender : network.senders) {
    const bool retransmits = sender.table || find_protocol(sender.protocol.name).needs.retransmits;
    if (sender.transport.name != "tcp" || !retransmits) {
      sender.table.reset();
      sender.protocol = {"newreno", "", {}};
      sender.transport = {"tcp", "", {}};
    }
    sender.first_on_ms = random.random().uniform(0, 1000);
    sender.traffic = {ExponentialBytes{random.random().uniform(1, 300'000)}, 1e15};
  }
  SCOPED_TRACE(describe(network));
  const NetworkResults results = run_network(network, {&table, 1}, 1e6, GetParam());
  for (std::size_t i = 0; i < results.senders.size(); ++i) {
    const NetworkSenderResults& sender = results.senders[i];
    ASSERT_EQ(sender.flows.size(), 1U) << i;
    // Each packet is delivered exactly once.
    EXPECT_EQ(sender.endpoint.packets_in_order, sender.flows[0].packets) << i;
    EXPECT_NEAR(sender.totals.on_ms, sender.flows[0].time_ms, 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyNetwork,
                         testing::Range<std::uint64_t>(0, random_cases(200, 100)));

}  // namespace
}  // namespace remy
