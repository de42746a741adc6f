// Tests that senders on all transports and links measure the extended signals: each against what
// happens in the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live_results.h"
#include "network/live.h"
#include "network/network.h"
#include "network_cases.h"

namespace remy {
namespace {

using Memory = std::array<double, kSignals>;

// Records the memory of the first sender at each of its ACKs.
class MemoryLog final : public RuleObserver {
 public:
  void used(std::uint32_t sender, const AnyController& controller, std::uint32_t) override {
    if (sender == 0) {
      std::copy_n(controller.memory(), controller.axes(), memories.emplace_back().begin());
    }
  }

  // The mean of a signal over the later ACKs, when averages no longer know how they began.
  double mean(Signal signal) const {
    double sum = 0;
    const std::size_t begin = memories.size() / 4;
    for (std::size_t i = begin; i < memories.size(); ++i) {
      sum += memories[i][axis_of(signal)];
    }
    return sum / static_cast<double>(memories.size() - begin);
  }
  // Their median, which does not depend on a path model's few round trips with a smaller window.
  double median(Signal signal) const {
    std::vector<double> values;
    for (std::size_t i = memories.size() / 4; i < memories.size(); ++i) {
      values.push_back(memories[i][axis_of(signal)]);
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  }
  double last(Signal signal) const { return memories.back()[axis_of(signal)]; }

  std::vector<Memory> memories;
};

// A constant window and intersend time, and all extended signals.
RuleTable fixed_rule(double window, double intersend_ms = 0) {
  std::vector<Signal> signals = {Signal::kRttRatio};
  for (std::size_t axis = kBasicSignals; axis < kSignals; ++axis) {
    signals.push_back(static_cast<Signal>(axis));
  }
  return RuleTable(signals, {Node{{}, {0, window, intersend_ms}}});
}

// A path model that neither limits a window nor corrects an RTT.
PathSettings passive_path() {
  return {.base_rtt_rounds = 10'000,
          .tolerated_loss = 0.999,
          .loss_debt_packets = 1000,
          .loss_window = 1,
          .least_window_packets = 1,
          .reference_rtt_ms = 0,
          .additive_packets = 0};
}

// A sender that is always on.
SenderDescription sender_over(const Choice& transport) {
  SenderDescription sender;
  sender.table = 0;
  sender.transport = transport;
  sender.traffic = {ExponentialTime{1e12}, 1e-3};
  sender.route = {{0}, {}, 0, 40};
  return sender;
}

// One sender on a link of 1 packet per ms, with an RTT of 81 ms.
NetworkDescription network_over(const Choice& transport) {
  NetworkDescription network;
  network.links.emplace_back().delay_ms = 40;
  network.senders = {sender_over(transport)};
  return network;
}

constexpr double kDurationMs = 20'000;

struct Outcome {
  MemoryLog log;
  NetworkResults results;
};

Outcome run(const NetworkDescription& network, const RuleTable& table,
            double duration_ms = kDurationMs, Recorder* recorder = nullptr) {
  Outcome outcome;
  const CompiledTable compiled(table);
  NetworkOptions options;
  options.observer = &outcome.log;
  options.recorder = recorder;
  outcome.results = run_network(network, {&compiled, 1}, duration_ms, 1, options);
  return outcome;
}

// The first sender's, over all of run()'s default duration.
double packets_per_ms(const Outcome& outcome) {
  return static_cast<double>(outcome.results.senders[0].totals.packets_received) / kDurationMs;
}

struct Case {
  const char* transport;
  const char* variant;
  bool has_path_model;
};

class Transports : public testing::TestWithParam<Case> {
 protected:
  Choice transport() const { return {GetParam().transport, GetParam().variant, {}}; }
  NetworkDescription network() const { return network_over(transport()); }
  RuleTable table(double window, double intersend_ms = 0) const {
    const RuleTable rule = fixed_rule(window, intersend_ms);
    return GetParam().has_path_model ? rule.with_path(passive_path()) : rule;
  }
};

// Half of the window waits in the queue.
TEST_P(Transports, SeeTheQueueThatTheyFill) {
  const Outcome outcome = run(network(), table(162));
  EXPECT_NEAR(outcome.log.median(Signal::kQueueLength), 81, 1.5);
  EXPECT_NEAR(outcome.log.median(Signal::kUtilization), 1, 1e-9);
  EXPECT_NEAR(outcome.log.median(Signal::kRttDiff), 81, 1.5);
  EXPECT_NEAR(outcome.log.median(Signal::kQueueingDelay), 1, 0.01) << "one packet per ms";
  EXPECT_EQ(outcome.log.last(Signal::kLossRate), 0);
  EXPECT_EQ(outcome.log.last(Signal::kEcnFraction), 0);
  EXPECT_EQ(outcome.log.last(Signal::kRttsSinceLoss), 0);
}

// A packet per 4 ms; a path model may send somewhat faster.
TEST_P(Transports, SeeALinkThatIsBusyForAQuarterOfTheTime) {
  const Outcome outcome = run(network(), table(1000, 4));
  const double used = packets_per_ms(outcome);
  EXPECT_NEAR(used, 0.25, 0.06);
  EXPECT_NEAR(outcome.log.median(Signal::kUtilization), used, 0.005);
  EXPECT_NEAR(outcome.log.median(Signal::kQueueLength), 0, 1e-6);
  EXPECT_NEAR(outcome.log.median(Signal::kRttDiff), 0, 1e-6);
}

// All links of the route count, wherever the bottleneck is: the queue is at the second link.
TEST_P(Transports, SeeTheLargestQueueOfTheirRoute) {
  NetworkDescription narrow = network();
  narrow.links.resize(3, narrow.links[0]);
  for (LinkDescription& link : narrow.links) {
    link.delay_ms = 10;
    link.rate_packets_per_ms = 4;
  }
  narrow.links[1].rate_packets_per_ms = 1;
  narrow.senders[0].route.links = {0, 1, 2};
  const Outcome full = run(narrow, table(171.5));
  EXPECT_NEAR(full.log.median(Signal::kQueueLength), 100, 1.5);
  EXPECT_NEAR(full.log.median(Signal::kUtilization), 1, 1e-9);
  const Outcome paced = run(narrow, table(1000, 4));
  EXPECT_NEAR(paced.log.median(Signal::kUtilization), packets_per_ms(paced), 0.005);
}

// Marks begin at 20 waiting packets.
TEST_P(Transports, SeeMarksOfAQueueAboveItsThreshold) {
  NetworkDescription marking = network();
  marking.links[0].queue = {"threshold-marking", "", {{"threshold_packets", 20}}};
  const Outcome above = run(marking, table(162));
  EXPECT_NEAR(above.log.median(Signal::kEcnFraction), 1, 1e-5);
  EXPECT_EQ(above.results.senders[0].totals.packets_lost, 0U);
  const Outcome below = run(marking, table(95));
  EXPECT_NEAR(below.log.median(Signal::kEcnFraction), 0, 1e-5);
  EXPECT_EQ(below.results.senders[0].totals.packets_lost, 0U);
  // Together with another sender, whose on and off periods move the queue around the threshold.
  marking.senders.push_back(sender_over(transport()));
  marking.senders[1].traffic = {ExponentialTime{500}, 500};
  const Outcome sometimes = run(marking, table(70), 100'000);
  const EndpointResults& endpoint = sometimes.results.senders[0].endpoint;
  const double marked =
      static_cast<double>(endpoint.packets_marked) / static_cast<double>(endpoint.packets_received);
  EXPECT_GT(marked, 0.2);
  EXPECT_LT(marked, 0.8);
  EXPECT_NEAR(sometimes.log.mean(Signal::kEcnFraction), marked, 0.03);
}

// Queues that drop unless senders are ECN-capable mark packets of tables that look at marks only.
TEST_P(Transports, AreEcnCapableIfTheTableLooksAtMarks) {
  NetworkDescription marking = network();
  marking.links[0].queue = {"codel", "", {}};
  EXPECT_GT(run(marking, table(162)).results.senders[0].endpoint.packets_marked, 100U);
  RuleTable without({Signal::kRttRatio, Signal::kLossRate}, {Node{{}, {0, 162, 0}}});
  const Outcome dropped = run(marking, without);
  EXPECT_EQ(dropped.results.senders[0].endpoint.packets_marked, 0U);
  EXPECT_GT(dropped.results.senders[0].totals.packets_lost, 20U);
  EXPECT_GT(dropped.log.mean(Signal::kLossRate), 0);
}

TEST_P(Transports, MeasureTheLossRateOfALossyLink) {
  NetworkDescription lossy = network();
  lossy.links[0].loss_probability = 0.02;
  const Outcome outcome = run(lossy, table(40), 150'000);
  const SenderResults& totals = outcome.results.senders[0].totals;
  const double lost =
      static_cast<double>(totals.packets_lost) / static_cast<double>(totals.packets_sent);
  EXPECT_NEAR(lost, 0.02, 0.002);
  // Without RACK a lost retransmission is found by a timeout only. Then all packets in flight count
  // as lost, though most of them arrive.
  const std::string variant = GetParam().variant;
  const bool finds_each = GetParam().transport != std::string("tcp") || variant == "linux";
  const double measured = outcome.log.mean(Signal::kLossRate);
  EXPECT_GT(measured, 0.9 * lost);
  EXPECT_LT(measured, (finds_each ? 1.1 : 3) * lost);
}

// Between two losses the signal grows by one per RTT, from 1.
TEST_P(Transports, CountRoundTripsSinceTheLastLoss) {
  NetworkDescription lossy = network();
  lossy.links[0].loss_probability = 0.002;
  const Outcome outcome = run(lossy, table(20), 100'000);
  std::size_t losses = 0;
  std::size_t before = 0;
  double last = 0;
  for (const Memory& memory : outcome.log.memories) {
    const double now = memory[axis_of(Signal::kRttsSinceLoss)];
    before += losses == 0 && now == 0 ? 1 : 0;
    losses += now == 1 ? 1 : 0;
    EXPECT_TRUE(now == 0 ? losses == 0 : now >= 1);
    EXPECT_TRUE(now == 1 || now >= last);
    // With 20 packets per RTT an ACK comes every few ms, unless a timeout is needed.
    last = now;
  }
  EXPECT_GT(before, 10U);
  const auto lost = static_cast<double>(outcome.results.senders[0].totals.packets_lost);
  EXPECT_GT(lost, 20);
  EXPECT_NEAR(static_cast<double>(losses), lost, 0.2 * lost);
  const double sum = outcome.log.mean(Signal::kRttsSinceLoss);
  EXPECT_GT(sum, 3);
  EXPECT_LT(sum, 60);
}

INSTANTIATE_TEST_SUITE_P(All, Transports, testing::ValuesIn([] {
                           std::vector<Case> cases;
                           for (const bool has_path_model : {false, true}) {
                             for (const Transport& transport : transports()) {
                               for (const Variant& variant : transport.variants) {
                                 if (transport.runs_tables) {
                                   cases.push_back({transport.name.data(), variant.name.data(),
                                                    has_path_model});
                                 }
                               }
                             }
                           }
                           return cases;
                         }()),
                         [](const auto& each) {
                           std::string name = std::string(each.param.transport) + "_" +
                                              each.param.variant +
                                              (each.param.has_path_model ? "_with_path_model" : "");
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Records the queue of the first link.
class QueueLog final : public Recorder {
 public:
  void sample(double, std::span<const SenderSample>, std::span<const LinkSample> links) override {
    waiting.push_back(static_cast<double>(links[0].waiting_packets));
  }
  double mean() const {
    double sum = 0;
    for (std::size_t i = waiting.size() / 4; i < waiting.size(); ++i) {
      sum += waiting[i];
    }
    return sum / static_cast<double>(waiting.size() - waiting.size() / 4);
  }

  std::vector<double> waiting;
};

class LinkKinds : public testing::TestWithParam<int> {
 protected:
  static LinkDescription link() {
    LinkDescription link;
    link.delay_ms = 40;
    std::vector<double> times_ms;
    for (int i = 0; i < 100; ++i) {
      times_ms.push_back(i);
    }
    const auto trace = std::make_shared<const Trace>(std::move(times_ms));
    switch (GetParam()) {
      case 0:
      case 1:
      case 2:
        link.trace = {trace, static_cast<TraceSemantics>(GetParam()), false};
        break;
      case 3: {
        LinkSchedule changes;
        changes.steps = {{.at_ms = 300, .rate_packets_per_ms = 0.5}, {.at_ms = 600}};
        changes.steps[1].rate_packets_per_ms = 1;
        changes.repeat_after_ms = 1000;
        link.changes = changes;
        break;
      }
      case 4:
        link.changes = LinkWalk{.every_ms = 100, .rate_packets_per_ms = LinkRange{0.5, 1.5}};
        break;
      case 5:
        link.policer = {10, 1000};
        break;
      case 6:
        link.jitter_box = PeriodicRelease{7};
        break;
      case 7:
        link.queue = {"fq-codel", "", {}};
        break;
      case 8:
        link.queue = {"drop-tail", "bytes", {{"limit_bytes", 1e6}}};
        break;
      default:
        link.gilbert_elliott = {0.001, 0.5, 0, 0.5};
        break;
    }
    return link;
  }
};

// ACKs sample the queue that packets found, and the recorder the queue at regular times. Both see
// the same queue of a window that fills the link, and the link is busy all the time.
TEST_P(LinkKinds, TellPacketsOfTheirQueueAndUtilization) {
  NetworkDescription network = network_over({"datagram", "", {}});
  network.links[0] = link();
  QueueLog queue;
  const Outcome full = run(network, fixed_rule(250), 30'000, &queue);
  EXPECT_GT(queue.mean(), GetParam() == 7 ? 1 : 20);
  EXPECT_NEAR(full.log.mean(Signal::kQueueLength), queue.mean() + 1, 3 + 0.1 * queue.mean());
  EXPECT_NEAR(full.log.mean(Signal::kUtilization), 1, 0.01);
  // A sender that waits 100 ms after each packet leaves the link idle for most of the time.
  const Outcome idle = run(network, fixed_rule(250, 100), 30'000);
  EXPECT_LT(idle.log.mean(Signal::kUtilization), 0.1);
  EXPECT_LT(idle.log.mean(Signal::kQueueLength), 0.5);
}

INSTANTIATE_TEST_SUITE_P(All, LinkKinds, testing::Range(0, 10));

// The busier link counts, though the other one has the longer queue at times.
TEST(ExtendedSignals, TheMostUtilizedLinkOfARouteCounts) {
  NetworkDescription network = network_over({"datagram", "", {}});
  network.links.resize(2, network.links[0]);
  network.links[1].rate_packets_per_ms = 0.5;
  network.senders[0].route.links = {0, 1};
  const Outcome outcome = run(network, fixed_rule(1000, 4));
  EXPECT_NEAR(outcome.log.last(Signal::kUtilization), 0.5, 1e-6);
}

// A link counts the packets of all senders, and ACKs that cross it.
TEST(ExtendedSignals, OtherPacketsKeepALinkBusy) {
  NetworkDescription network = network_over({"datagram", "", {}});
  network.ack_bytes = 750;
  network.links.resize(2, network.links[0]);
  network.senders.push_back(network.senders[0]);
  network.senders[1].table = 1;
  network.senders[1].route = {{1}, {0}, 0, 0};
  const std::vector<CompiledTable> tables = {
      fixed_rule(1000, 4), RuleTable::single_rule({Signal::kRttRatio}, {0, 1000, 4})};
  MemoryLog log;
  NetworkOptions options;
  options.observer = &log;
  run_network(network, tables, 20'000, 1, options);
  EXPECT_NEAR(log.last(Signal::kUtilization), 0.25 + 0.125, 0.02);
}

// Packets that a timer or a gap finds lost, and arrive after all, do not count once TCP knows.
TEST(ExtendedSignals, ASpuriousRecoveryIsTakenBack) {
  for (const bool has_path_model : {false, true}) {
    NetworkDescription network = network_over({"tcp", "linux", {}});
    LinkSchedule changes;
    changes.steps = {{.at_ms = 5000, .delay_ms = 600}, {.at_ms = 5600, .delay_ms = 40}};
    network.links[0].changes = changes;
    RuleTable table = fixed_rule(20);
    if (has_path_model) {
      table = table.with_path(passive_path());
    }
    const Outcome linux = run(network, table, 9000);
    EXPECT_GT(linux.results.senders[0].endpoint.timeouts, 0U);
    EXPECT_EQ(linux.results.senders[0].totals.packets_lost, 0U);
    EXPECT_EQ(linux.log.last(Signal::kLossRate), 0);
    EXPECT_EQ(linux.log.last(Signal::kRttsSinceLoss), 0);
    network.senders[0].transport.variant = "rfc";
    const Outcome rfc = run(network, table, 9000);
    EXPECT_GT(rfc.log.last(Signal::kLossRate), 0);
    EXPECT_GT(rfc.log.last(Signal::kRttsSinceLoss), 1);
  }
}

// A path model gives the rules an RTT of its own, from which rtt_diff follows. Signals of losses,
// marks and telemetry are as they are.
TEST(ExtendedSignals, WithAPathModelDelaysAreThoseOfTheModel) {
  PathSettings settings = passive_path();
  settings.reference_rtt_ms = 81 * 4;
  const NetworkDescription network = network_over({"tcp", "linux", {}});
  const Outcome plain = run(network, fixed_rule(162));
  const Outcome modelled = run(network, fixed_rule(162).with_path(settings));
  EXPECT_NEAR(modelled.log.median(Signal::kRttDiff), plain.log.median(Signal::kRttDiff) / 2, 0.5);
  EXPECT_NEAR(modelled.log.median(Signal::kQueueLength), plain.log.median(Signal::kQueueLength),
              0.5);
}

// Departures that are events, as in a live network, have the results of those computed ahead.
class LiveWithExtendedSignals : public testing::TestWithParam<std::uint64_t> {};

TEST_P(LiveWithExtendedSignals, HaveTheResultsOfTheSimulation) {
  RandomNetwork random(GetParam() + 40'000);
  const NetworkDescription network = random.network();
  RuleTable rules =
      random.random().table(GetParam() % 2 == 0 ? Rules::kAbsolute : Rules::kScaleFree, kSignals);
  if (GetParam() % 3 == 0) {
    rules = rules.with_path(random.random().path_settings());
  }
  const CompiledTable table(rules);
  const NetworkResults whole = run_network(network, {&table, 1}, 2000, GetParam());
  const std::unique_ptr<LiveNetwork> live =
      make_live_network(network, {&table, 1}, GetParam(), nullptr);
  live->run_until(2000);
  expect_same_senders(*live, whole);
}

INSTANTIATE_TEST_SUITE_P(Random, LiveWithExtendedSignals, testing::Range<std::uint64_t>(0, 60));

// A packet per 2 ms keeps the link busy for half of the time, and then for an eighth.
TEST(ExtendedSignals, ALiveLinkThatWritesTelemetryCanBeChanged) {
  NetworkDescription network = network_over({"datagram", "", {}});
  const CompiledTable table(fixed_rule(1000, 2));
  MemoryLog log;
  const std::unique_ptr<LiveNetwork> live = make_live_network(network, {&table, 1}, 1, &log);
  live->run_until(10'000);
  EXPECT_NEAR(log.last(Signal::kUtilization), 0.5, 1e-6);
  LinkDescription faster = network.links[0];
  faster.rate_packets_per_ms = 4;
  live->change_link(0, faster);
  live->run_until(20'000);
  EXPECT_NEAR(log.last(Signal::kUtilization), 0.125, 1e-6);
  EXPECT_NEAR(log.last(Signal::kQueueLength), 0, 1e-6);
  for (const Memory& memory : log.memories) {
    EXPECT_LE(memory[axis_of(Signal::kUtilization)], 0.5 + 1e-9);
  }
}

}  // namespace
}  // namespace remy
