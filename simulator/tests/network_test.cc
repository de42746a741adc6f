#include "network/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/evaluator.h"
#include "evaluation/simulation.h"
#include "network_cases.h"

namespace remy {
namespace {

class MemoryObserver : public RuleObserver {
 public:
  explicit MemoryObserver(const CompiledTable& table) : recorder_(&table, table.rule_count()) {}
  void used(std::uint32_t sender, const AnyController& controller, std::uint32_t rule) override {
    recorder_.used(sender, controller, rule);
  }

  const std::vector<std::uint64_t>& uses() const { return recorder_.uses(); }
  // By rule: how often a signal's values were in each bucket.
  std::map<std::uint32_t, std::uint64_t> counts(std::uint32_t rule, Signal signal) const {
    std::map<std::uint32_t, std::uint64_t> counts;
    const auto all = recorder_.summaries()[rule]->counts(signal);
    for (std::uint32_t bucket = 0; bucket < all.size(); ++bucket) {
      if (all[bucket] > 0) {
        counts[bucket] = all[bucket];
      }
    }
    return counts;
  }

 private:
  MemoryRecorder recorder_;
};

class AgainstTheDumbbell
    : public testing::TestWithParam<std::tuple<Rules, std::size_t, std::uint64_t>> {};

TEST_P(AgainstTheDumbbell, SameBits) {
  const auto [rules, axes, seed] = GetParam();
  RandomCase random(seed + 1000);
  RuleTable table = random.table(rules, axes);
  Specimen specimen = random.specimen();
  if (seed % 2 == 1) {
    table = table.with_path(random.path_settings());
  }
  std::vector<Choice> queues = {{"drop-tail", "packets", {}},
                                {"drop-tail", "bytes", {{"limit_bytes", 1e12}}}};
  const CompiledTable compiled(table);
  if (compiled.looks_at(Signal::kEcnFraction) && specimen.buffer_packets != 0U) {
    const double packets = random.integer(0, 20);
    queues = {{"threshold-marking", "", {{"threshold_packets", packets}}}};
    specimen.bottleneck = {.queue = queues[0]};
  }
  const double duration_ms = 3000;
  const SpecimenOutcome dumbbell =
      evaluate({{table}, {Unchanged{}}, {specimen}, duration_ms, seed, Recording::kMemory}, 1)
          .front();
  EXPECT_TRUE(dumbbell.network.empty());
  // A queue limited in packets computes each departure when the packet arrives; others make each
  // departure an event.
  NetworkDescription network = as_network(specimen);
  for (const Choice& queue : queues) {
    network.links[0].queue = queue;
    SCOPED_TRACE(queue.name + " " + queue.variant);
    MemoryObserver observer(compiled);
    NetworkOptions options;
    options.observer = &observer;
    const NetworkResults general = run_network(network, {&compiled, 1}, duration_ms, seed, options);
    ASSERT_EQ(general.senders.size(), dumbbell.senders.size());
    for (std::size_t i = 0; i < dumbbell.senders.size(); ++i) {
      const SenderResults& expected = dumbbell.senders[i];
      const SenderResults& found = general.senders[i].totals;
      EXPECT_EQ(found.packets_received, expected.packets_received) << "sender " << i;
      EXPECT_EQ(found.packets_sent, expected.packets_sent) << "sender " << i;
      EXPECT_EQ(found.packets_lost, expected.packets_lost) << "sender " << i;
      EXPECT_EQ(found.on_ms, expected.on_ms) << "sender " << i;
      EXPECT_EQ(found.share_ms, expected.share_ms) << "sender " << i;
      EXPECT_EQ(found.delay_sum_ms, expected.delay_sum_ms) << "sender " << i;
      EXPECT_EQ(found.first_on_ms, expected.first_on_ms) << "sender " << i;
      EXPECT_EQ(general.senders[i].endpoint.packets_sent, expected.packets_sent);
      EXPECT_EQ(general.senders[i].endpoint.packets_received, expected.packets_received);
      EXPECT_EQ(general.senders[i].throughput_packets, expected.packets_received);
    }
    EXPECT_EQ(observer.uses(), dumbbell.rule_uses);
    for (const RuleMemory& rule : dumbbell.rule_memory) {
      for (const SignalSummary& summary : rule.signals) {
        if (!compiled.looks_at(summary.signal)) {
          continue;
        }
        std::map<std::uint32_t, std::uint64_t> expected;
        for (std::size_t i = 0; i < summary.buckets.size(); ++i) {
          expected[summary.buckets[i]] = summary.counts[i];
        }
        EXPECT_EQ(observer.counts(rule.rule, summary.signal), expected)
            << "rule " << rule.rule << ", " << signal_name(summary.signal, rules);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstTheDumbbell,
                         testing::Combine(testing::Values(Rules::kAbsolute, Rules::kScaleFree,
                                                          Rules::kScaleFreeRemembering),
                                          testing::Values(kBasicSignals, kSignals),
                                          testing::Range<std::uint64_t>(0, random_cases(300, 60))));

// A table's memory does not depend on the tables of other senders.
TEST(Dumbbell, RecordsTheSameSignalsBesideATableOfOthers) {
  RandomCase random(7);
  const RuleTable table = random.table(Rules::kScaleFree);
  const RuleTable other = random.table(Rules::kScaleFree, kSignals);
  ASSERT_TRUE(other.has_extended_signals());
  Specimen specimen = random.specimen();
  specimen.senders = {{2, 0, {ExponentialTime{500}, 500}}, {1, 1, {ExponentialTime{500}, 500}}};
  const SpecimenOutcome outcome =
      evaluate({{table, other}, {Unchanged{}}, {specimen}, 3000, 1, Recording::kMemory}, 1).front();
  ASSERT_FALSE(outcome.rule_memory.empty());
  for (const RuleMemory& rule : outcome.rule_memory) {
    EXPECT_EQ(rule.signals.size(), kBasicSignals);
  }
}

NetworkDescription one_link(double rate_packets_per_ms, double delay_ms) {
  NetworkDescription network;
  LinkDescription link;
  link.rate_packets_per_ms = rate_packets_per_ms;
  link.delay_ms = delay_ms;
  network.links.push_back(link);
  return network;
}

SenderDescription sender_of(const char* protocol, const Traffic& traffic) {
  SenderDescription sender;
  sender.protocol.name = protocol;
  sender.transport.name = "tcp";
  sender.traffic = traffic;
  sender.route.links = {0};
  return sender;
}

const Traffic kAlwaysOn = {ExponentialTime{1e12}, 1e-3};

// n senders, each on half of the time: the mean throughput while on is (2 - 2^(1-n)) / n of the
// link rate.
TEST(Omniscient, SharesTheLinkEquallyAtAllTimes) {
  for (const std::uint32_t count : {1U, 2U, 3U, 5U, 11U}) {
    NetworkDescription network = one_link(1.5, 150);
    network.senders.assign(count, sender_of("omniscient", {ExponentialTime{1000}, 1000}));
    const NetworkResults results = run_network(network, {}, 1e7, 1);
    double packets = 0;
    double on_ms = 0;
    for (const NetworkSenderResults& sender : results.senders) {
      packets += static_cast<double>(sender.throughput_packets);
      on_ms += sender.totals.on_ms;
      EXPECT_NEAR(sender.totals.delay_sum_ms / static_cast<double>(sender.delay_samples),
                  150 + 1 / 1.5, 1e-9);
    }
    const double expected = 1.5 * (2 - std::ldexp(2, -static_cast<int>(count))) / count;
    EXPECT_NEAR(packets / on_ms, expected, 0.02 * expected) << count;
  }
}

TEST(Omniscient, FlowCompletionTimeIsTransmissionTimePlusOneRtt) {
  NetworkDescription network = one_link(2, 50);
  network.senders.assign(1, sender_of("omniscient", {ExponentialBytes{1e5}, 100}));
  const NetworkResults results = run_network(network, {}, 1e5, 1);
  ASSERT_GT(results.senders.front().flows.size(), 100U);
  for (const FlowCompletion& flow : results.senders.front().flows) {
    EXPECT_NEAR(flow.time_ms, static_cast<double>(flow.packets) / 2 + 50.5, 1e-6);
  }
}

std::string refusal(const NetworkDescription& network) {
  try {
    run_network(network, {}, 1000, 1);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Network, RefusesNetworksThatCannotBeSimulated) {
  NetworkDescription good = one_link(1, 100);
  good.senders = {sender_of("newreno", kAlwaysOn), sender_of("cubic", kAlwaysOn)};
  ASSERT_EQ(refusal(good), "");
  const auto with = [&good](auto change) {
    NetworkDescription network = good;
    change(network);
    return refusal(network);
  };
  using N = NetworkDescription;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with([](N& n) { n.senders.clear(); }),
            "the number of senders is 0.000000 but must be from 1 to 16383");
  EXPECT_EQ(with([](N& n) { n.senders[1].route.links = {}; }),
            "senders[1].route.links is empty but must have a link");
  EXPECT_EQ(with([](N& n) { n.senders[1].route.links = {0, 1}; }),
            "senders[1].route.links has link 1 but link numbers are from 0 to 0");
  EXPECT_EQ(with([](N& n) { n.senders[0].route.return_links = {7}; }),
            "senders[0].route.return_links has link 7 but link numbers are from 0 to 0");
  EXPECT_EQ(with([](N& n) { n.packet_bytes = 1260.5; }),
            "packet_bytes is 1260.500000 but must be a whole number from 1 to 1000000");
  EXPECT_EQ(with([](N& n) { n.ack_bytes = -1; }),
            "ack_bytes is -1.000000 but must be a whole number from 0 to 1000000");
  for (const double bad : {0.0, -1.0, 1e7, nan}) {
    EXPECT_TRUE(with([bad](N& n) {
                  n.links[0].rate_packets_per_ms = bad;
                }).starts_with("links[0].rate_packets_per_ms is "));
  }
  EXPECT_TRUE(
      with([nan](N& n) { n.links[0].delay_ms = nan; }).starts_with("links[0].delay_ms is "));
  EXPECT_TRUE(with([](N& n) {
                n.links[0].loss_probability = 1;
              }).starts_with("links[0].loss_probability is "));
  EXPECT_TRUE(with([](N& n) {
                n.links[0].queue.name = "no-such";
              }).starts_with("there is no queue \"no-such\"; there are: "));
  EXPECT_TRUE(with([](N& n) {
                n.links[0].queue.variant = "no-such";
              }).starts_with("queue drop-tail has no variant \"no-such\"; there are: "));
  EXPECT_TRUE(with([](N& n) {
                n.senders[0].protocol.name = "no-such";
              }).starts_with("there is no protocol \"no-such\"; there are: "));
  EXPECT_TRUE(with([](N& n) {
                n.senders[0].transport.name = "no-such";
              }).starts_with("there is no transport \"no-such\"; there are: "));
  EXPECT_EQ(with([](N& n) { n.senders[0].transport.name = "datagram"; }),
            "senders[0] runs a protocol but the transport \"datagram\" runs RemyCCs only");
  EXPECT_EQ(with([](N& n) { n.senders[0].table = 0; }),
            "senders[0] runs table 0 but there are no tables");
  EXPECT_EQ(
      with([](N& n) { n.measurement.timestamp_resolution_ms = 1; }),
      "senders[0] has the transport \"tcp\", for which measurement noise may have only RTT offsets "
      "and reordering");
  EXPECT_EQ(with([](N& n) { n.measurement.reordering_probability = 1.5; }),
            "measurement.reordering_probability is 1.500000 but must be from 0 to 1");
  EXPECT_TRUE(with([](N& n) {
                n.measurement.reordering_delay_ms = -1;
              }).starts_with("measurement.reordering_delay_ms is "));
  EXPECT_TRUE(with([nan](N& n) {
                n.measurement.rtt_offset_maximum_ms = nan;
              }).starts_with("measurement.rtt_offset_maximum_ms is "));
  EXPECT_TRUE(
      with([](N& n) { n.senders[1].rtt_offset_ms = -1; }).starts_with("senders[1].rtt_offset_ms"));
  EXPECT_TRUE(with([](N& n) {
                n.senders[1].traffic.mean_off_ms = 0;
              }).starts_with("senders[1].traffic.mean_off_ms is "));
  EXPECT_TRUE(
      with([](N& n) { n.senders[1].first_on_ms = -1; }).starts_with("senders[1].first_on_ms is "));
  EXPECT_TRUE(with([](N& n) {
                n.senders[1].route.delay_ms = -1;
              }).starts_with("senders[1].route.delay_ms is "));
  EXPECT_EQ(with([](N& n) { n.senders[1].protocol.name = "omniscient"; }),
            "senders[0] is not omniscient but others are; all senders must be, or none");
  EXPECT_EQ(with([](N& n) { n.senders[1].protocol.name = "xcp"; }),
            "senders[1] runs xcp, which needs an XCP router at every link of its route, but link 0 "
            "has the queue \"drop-tail\"");
  EXPECT_TRUE(with([](N& n) {
                n.senders.assign(1, sender_of("omniscient", kAlwaysOn));
                n.links[0].loss_probability = 0.1;
              }).starts_with("senders[0] is omniscient, so the network must be one link "));
}

TEST(Network, TcpRetransmitsReorderedPacketsSpuriously) {
  NetworkDescription network = one_link(1, 50);
  network.senders = {sender_of("newreno", kAlwaysOn)};
  const NetworkResults in_order = run_network(network, {}, 20'000, 1);
  EXPECT_EQ(in_order.senders[0].endpoint.packets_retransmitted, 0U);
  network.measurement.reordering_probability = 0.01;
  // Two overtaking packets cause two duplicate ACKs, too few for a retransmission; ten suffice.
  network.measurement.reordering_delay_ms = 2.5;
  const NetworkResults nearly = run_network(network, {}, 20'000, 1);
  EXPECT_EQ(nearly.senders[0].endpoint.packets_retransmitted, 0U);
  network.measurement.reordering_delay_ms = 10;
  const NetworkResults overtaken = run_network(network, {}, 20'000, 1);
  EXPECT_EQ(overtaken.senders[0].totals.packets_lost, 0U);
  EXPECT_EQ(overtaken.links[0].lost, 0U);
  EXPECT_GT(overtaken.senders[0].endpoint.packets_retransmitted, 20U);
  EXPECT_LT(overtaken.senders[0].throughput_packets,
            in_order.senders[0].throughput_packets * 9 / 10);
}

TEST(Network, ReorderedDatagramsCountWhenTheyArrive) {
  const CompiledTable table = RuleTable::single_rule({Signal::kSendEwma}, {0, 20, 0});
  NetworkDescription network = one_link(1, 50);
  SenderDescription sender = sender_of("", kAlwaysOn);
  sender.table = 0;
  sender.transport.name = "datagram";
  network.senders = {sender};
  const SenderResults in_order = run_network(network, {&table, 1}, 20'000, 1).senders[0].totals;
  network.measurement.reordering_probability = 0.1;
  network.measurement.reordering_delay_ms = 30;
  const SenderResults late = run_network(network, {&table, 1}, 20'000, 1).senders[0].totals;
  EXPECT_EQ(late.packets_lost, 0U);
  // Reordering hardly reduces throughput, because the window follows the latest acknowledged
  // packet.
  EXPECT_GT(late.packets_received, in_order.packets_received * 9 / 10);
  const auto mean_ms = [](const SenderResults& results) {
    return results.delay_sum_ms / static_cast<double>(results.packets_received);
  };
  EXPECT_NEAR(mean_ms(late) - mean_ms(in_order), 3, 1.5);
}

// Arun, Alizadeh and Balakrishnan, SIGCOMM 2022: a sender whose smallest RTT is too small by 1 ms
// takes this millisecond for queueing delay.
TEST(Network, SenderWithATooSmallMinimumRttGetsLess) {
  NetworkDescription network = one_link(4, 32);
  network.senders = {sender_of("vegas", kAlwaysOn), sender_of("vegas", kAlwaysOn)};
  const auto throughput = [&network] {
    return run_network(network, {}, 60'000, 1).senders[0].throughput_packets;
  };
  const std::uint64_t exact = throughput();
  network.senders[0].rtt_offset_ms = 1;
  EXPECT_LT(throughput() * 3 / 2, exact);
}

class SampleCounter : public Recorder {
 public:
  void sample(double now_ms, std::span<const SenderSample> senders,
              std::span<const LinkSample> links) override {
    times_ms.push_back(now_ms);
    last_senders.assign(senders.begin(), senders.end());
    last_links.assign(links.begin(), links.end());
    longest_queue = std::max(longest_queue, links[0].waiting_packets);
  }

  std::vector<double> times_ms;
  std::vector<SenderSample> last_senders;
  std::vector<LinkSample> last_links;
  std::size_t longest_queue = 0;
};

TEST(Network, RecordsItsStateAtEqualIntervals) {
  const CompiledTable table = RuleTable::single_rule({Signal::kSendEwma}, {0, 60, 0});
  NetworkDescription network = one_link(1, 50);
  network.links[0].buffer_packets = 5;
  SenderDescription sender = sender_of("", kAlwaysOn);
  sender.table = 0;
  sender.transport.name = "datagram";
  network.senders = {sender};
  SampleCounter recorder;
  NetworkOptions options;
  options.recorder = &recorder;
  options.record_every_ms = 25;
  const NetworkResults recorded = run_network(network, {&table, 1}, 10'000, 1, options);
  // Samples at 0, 25, ..., 10,000 ms, both ends included.
  ASSERT_EQ(recorder.times_ms.size(), 401U);
  EXPECT_EQ(recorder.times_ms.front(), 0);
  EXPECT_EQ(recorder.times_ms.back(), 10'000);
  EXPECT_EQ(recorder.longest_queue, 5U);
  EXPECT_TRUE(recorder.last_senders[0].is_on);
  EXPECT_EQ(recorder.last_senders[0].pace.window_packets, 60);
  EXPECT_GE(recorder.last_senders[0].rtt_ms, 51);
  EXPECT_LE(recorder.last_senders[0].rtt_ms, 56);
  EXPECT_EQ(recorder.last_senders[0].counts.packets_sent, recorded.senders[0].totals.packets_sent);
  EXPECT_EQ(recorder.last_links[0].dropped, recorded.links[0].dropped);
  EXPECT_GT(recorded.links[0].dropped, 0U);
  // Recording does not affect results.
  const NetworkResults alone = run_network(network, {&table, 1}, 10'000, 1);
  EXPECT_EQ(alone.senders[0].totals.delay_sum_ms, recorded.senders[0].totals.delay_sum_ms);
  EXPECT_EQ(alone.senders[0].totals.packets_sent, recorded.senders[0].totals.packets_sent);
}

// With a window of one packet there is no queueing.
TEST(Network, RttIsTheSumOfTheRoutesDelaysAndTransmissions) {
  const CompiledTable table = RuleTable::single_rule({Signal::kSendEwma}, {0, 1, 0});
  NetworkDescription network = one_link(1, 10);
  network.links.push_back(network.links[0]);
  network.links[1].rate_packets_per_ms = 0.5;
  network.links[1].delay_ms = 20;
  network.ack_bytes = 150;
  SenderDescription sender = sender_of("", kAlwaysOn);
  sender.table = 0;
  sender.transport.name = "datagram";
  sender.route.links = {0, 1};
  sender.route.delay_ms = 5;
  sender.route.return_delay_ms = 7;
  const auto mean_rtt_ms = [&] {
    network.senders = {sender};
    const NetworkSenderResults result =
        run_network(network, {&table, 1}, 10'000, 1).senders.front();
    EXPECT_GT(result.delay_samples, 100U);
    return result.totals.delay_sum_ms / static_cast<double>(result.delay_samples);
  };
  EXPECT_NEAR(mean_rtt_ms(), 1 + 10 + 2 + 20 + 5 + 7, 1e-9);
  // An ACK of a tenth of a packet's size takes a tenth of its transmission time.
  sender.route.return_links = {1, 0};
  EXPECT_NEAR(mean_rtt_ms(), 1 + 10 + 2 + 20 + 5 + 0.2 + 20 + 0.1 + 10 + 7, 1e-9);
  network.ack_bytes = 0;
  EXPECT_NEAR(mean_rtt_ms(), 1 + 10 + 2 + 20 + 5 + 20 + 10 + 7, 1e-9);
}

TEST(Network, LossOnEachLinkIsIndependent) {
  const CompiledTable table = RuleTable::single_rule({Signal::kSendEwma}, {0, 200, 0.5});
  NetworkDescription network = one_link(10, 20);
  network.links[0].loss_probability = 0.1;
  network.links.push_back(network.links[0]);
  network.links.push_back(network.links[0]);
  network.links[1].loss_probability = 0.2;
  network.links[2].loss_probability = 0.3;
  SenderDescription sender = sender_of("", kAlwaysOn);
  sender.table = 0;
  sender.transport.name = "datagram";
  sender.route.links = {0, 1};
  sender.route.return_links = {2};
  network.senders = {sender};
  const NetworkResults results = run_network(network, {&table, 1}, 100'000, 1);
  const SenderResults& totals = results.senders[0].totals;
  const auto sent = static_cast<double>(totals.packets_sent);
  ASSERT_GT(sent, 1e5);
  // Five standard deviations.
  const auto received = static_cast<double>(totals.packets_received);
  EXPECT_NEAR(received / sent, 0.9 * 0.8, 5 * std::sqrt(0.72 * 0.28 / sent));
  EXPECT_NEAR(static_cast<double>(results.senders[0].delay_samples) / received, 0.7,
              5 * std::sqrt(0.7 * 0.3 / received));
  EXPECT_EQ(results.links[0].lost + results.links[1].lost, totals.packets_lost);
}

// Runs a sender on a network of one link. Its scale-free rules speed up until the RTT is a fifth
// above its base, and then slow down.
NetworkResults run_until_it_queues(NetworkDescription network, bool has_path_model) {
  const RuleTable table(
      {Signal::kRttRatio},
      {Node{{{Signal::kRttRatio, 1.2}}, {}}, Node{{}, {0, 200, 0.7}}, Node{{}, {0, 200, 1.1}}},
      RuleTable::kDefaultDomainUpper, Rules::kScaleFree,
      has_path_model ? std::optional(PathSettings{}) : std::nullopt);
  SenderDescription sender = sender_of("", {Always{}});
  sender.table = 0;
  sender.transport.name = "datagram";
  network.senders = {sender};
  const CompiledTable compiled(table);
  return run_network(network, {&compiled, 1}, 60'000, 1);
}

TEST(PathModelInANetwork, KeepsTheLinkBusyOnAPathThatGetsLonger) {
  NetworkDescription network = one_link(1, 100);
  network.links[0].changes = LinkSchedule{{{.at_ms = 10'000, .delay_ms = 150}}};
  const auto utilization = [&network](bool has_path_model) {
    const NetworkResults results = run_until_it_queues(network, has_path_model);
    return static_cast<double>(results.senders[0].throughput_packets) / 60'000;
  };
  EXPECT_LT(utilization(false), 0.3) << "from 10 s on, the rules see a queue that never ends";
  EXPECT_GT(utilization(true), 0.8);
}

TEST(PathModelInANetwork, LosesLessAtAPolicer) {
  NetworkDescription network = one_link(4, 50);
  network.links[0].policer = {1, 20};
  const auto loss = [&network](bool has_path_model) {
    const NetworkResults results = run_until_it_queues(network, has_path_model);
    const SenderResults& totals = results.senders[0].totals;
    EXPECT_GT(totals.packets_received, 60'000U * 9 / 10);
    return static_cast<double>(totals.packets_lost) / static_cast<double>(totals.packets_sent);
  };
  const double without = loss(false);
  EXPECT_GT(without, 0.25) << "no queue tells of the policer";
  EXPECT_LT(loss(true), without / 4);
}

TEST(Network, SummarizesCompletionTimes) {
  EXPECT_EQ(summarize({}).flows, 0U);
  std::vector<FlowCompletion> flows;
  for (int i = 200; i > 0; --i) {
    flows.push_back({1, static_cast<double>(i)});
  }
  const CompletionSummary summary = summarize(flows);
  EXPECT_EQ(summary.flows, 200U);
  EXPECT_EQ(summary.mean_ms, 100.5);
  EXPECT_EQ(summary.median_ms, 100.5);
  EXPECT_EQ(summary.percentile_99_ms, 198);
}

TEST(Network, CanBeInterrupted) {
  NetworkDescription network = one_link(1, 100);
  network.senders = {sender_of("newreno", kAlwaysOn)};
  Interruption limit(nullptr, 10'000);
  NetworkOptions options;
  options.interruption = &limit;
  EXPECT_THROW(run_network(network, {}, 1e9, 1, options), Interrupted);
}

}  // namespace
}  // namespace remy
