#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "elements/fifo_link.h"
#include "elements/jitter_box.h"
#include "elements/link_conditions.h"
#include "elements/link_driver.h"
#include "elements/link_loss.h"
#include "elements/opportunities.h"
#include "elements/policer.h"
#include "network/network.h"
#include "network_cases.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::shared_ptr<const Trace> trace_of(std::vector<double> times_ms) {
  return std::make_shared<const Trace>(std::move(times_ms));
}

std::vector<double> take(Opportunities& opportunities, std::size_t count) {
  std::vector<double> times_ms;
  while (times_ms.size() < count) {
    times_ms.push_back(opportunities.next_ms());
    opportunities.use();
  }
  return times_ms;
}

TEST(Opportunities, RepeatFromTheLastOpportunity) {
  Opportunities opportunities(trace_of({0, 2, 2, 5}), false, 0);
  EXPECT_EQ(take(opportunities, 9), (std::vector<double>{0, 2, 2, 5, 5, 7, 7, 10, 10}));
}

TEST(Opportunities, EndAfterTheLastOpportunityIfTheyDoNotRepeat) {
  Opportunities opportunities(trace_of({0, 2}), true, 0);
  EXPECT_EQ(take(opportunities, 4), (std::vector<double>{0, 2, kNever, kNever}));
}

TEST(Opportunities, SkippingManyRepetitionsEqualsSkippingEach) {
  for (const double time_ms : {0.0, 1.5, 5.0, 10.0, 1e9, 1e9 + 2}) {
    Opportunities before(trace_of({0.5, 2, 5}), false, 0);
    before.skip_before(time_ms);
    EXPECT_GE(before.next_ms(), time_ms);
    EXPECT_LE(before.next_ms(), time_ms + 3);
    Opportunities until(trace_of({0.5, 2, 5}), false, 0);
    until.skip_until(time_ms);
    EXPECT_GT(until.next_ms(), time_ms);
    EXPECT_EQ(until.next_ms() > before.next_ms(), before.next_ms() == time_ms);
  }
}

TEST(Generator, IsAFunctionOfItsKeyUnlessItHasASeed) {
  const auto first = [](const TraceGenerator& generator, std::uint64_t key) {
    Opportunities opportunities(generator, false, key);
    return take(opportunities, 1000);
  };
  TraceGenerator generator;
  EXPECT_EQ(first(generator, 1), first(generator, 1));
  EXPECT_NE(first(generator, 1), first(generator, 2));
  generator.seed = 7;
  EXPECT_EQ(first(generator, 1), first(generator, 2));
}

TEST(Generator, HasRatesFromZeroToItsMaximumAndOutages) {
  TraceGenerator generator;
  generator.volatility_packets_per_s = 400;
  double opportunities_per_s = 0;
  double longest_gap_ms = 0;
  constexpr int kSeeds = 20;
  constexpr double kDurationMs = 2e5;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Opportunities opportunities(generator, false, seed);
    std::vector<std::size_t> by_second(static_cast<std::size_t>(kDurationMs / 1000) + 1);
    for (double last_ms = 0; last_ms < kDurationMs;) {
      const double time_ms = opportunities.next_ms();
      opportunities.use();
      EXPECT_GE(time_ms, last_ms);
      longest_gap_ms = std::max(longest_gap_ms, time_ms - last_ms);
      last_ms = time_ms;
      if (time_ms < kDurationMs) {
        ++by_second[static_cast<std::size_t>(time_ms / 1000)];
        opportunities_per_s += 1000 / kDurationMs / kSeeds;
      }
    }
    // Five standard deviations of the change in a second, at the maximum.
    EXPECT_LE(*std::ranges::max_element(by_second), 1000 + 5 * std::sqrt(1000.0));
  }
  // The mean rate is half the maximum, less the time in outages.
  EXPECT_GT(opportunities_per_s, 150);
  EXPECT_LT(opportunities_per_s, 450);
  EXPECT_GT(longest_gap_ms, 1000);
}

// Returns the departures of segments with the given sizes and arrival times.
std::vector<double> departures(LinkDriver& driver,
                               const std::vector<std::pair<double, std::uint32_t>>& arrivals) {
  FifoLink link(1000);
  std::vector<double> times_ms;
  for (const auto& [now_ms, bytes] : arrivals) {
    times_ms.push_back(link.accept(now_ms, driver, bytes).value_or(-1));
  }
  return times_ms;
}

TEST(Ns2Trace, TransmitsAPacketOfAnySizeAtEachOpportunity) {
  const auto driver =
      trace_driver(TraceSemantics::kNs2, Opportunities(trace_of({1, 3, 3, 4, 9, 20}), true, 0));
  // A packet that arrives at the time of an opportunity uses it; opportunities without a waiting
  // packet are lost.
  EXPECT_EQ(departures(*driver, {{0, 40}, {0, 9000}, {3, 1500}, {9, 1}, {9, 1}, {9, 1}}),
            (std::vector<double>{1, 3, 3, 9, 20, kNever}));
}

TEST(MahimahiTrace, CountsBytesIncludingTheTunnelHeader) {
  const auto driver = [](std::vector<double> times_ms) {
    return trace_driver(TraceSemantics::kMahimahi,
                        Opportunities(trace_of(std::move(times_ms)), true, 0));
  };
  // Full-size packets use one opportunity each, but not one at the time of their arrival.
  EXPECT_EQ(departures(*driver({1, 3, 3, 4, 9}), {{0, 1500}, {0, 1500}, {3, 1500}, {4, 1500}}),
            (std::vector<double>{1, 3, 4, 9}));
  // A packet of 376 bytes, with header, is a quarter of 1504.
  EXPECT_EQ(departures(*driver({1, 2, 3}), {{0, 372}, {0, 372}, {0, 372}, {0, 372}, {0, 372}}),
            (std::vector<double>{1, 1, 1, 1, 2}));
  // 3000 bytes and the header need two opportunities, and leave four bytes of the second.
  EXPECT_EQ(departures(*driver({1, 2, 3}), {{0, 3000}, {0, 0}, {0, 1}}),
            (std::vector<double>{2, 2, 3}));
  // Unused bytes of an opportunity are lost if nothing waits.
  EXPECT_EQ(departures(*driver({1, 2, 3}), {{0, 100}, {1, 100}}), (std::vector<double>{1, 2}));
}

TEST(CellsimTrace, CountsBytesWithoutAHeaderAndUsesASimultaneousOpportunity) {
  const auto driver =
      trace_driver(TraceSemantics::kCellsim, Opportunities(trace_of({1, 3, 4, 9}), true, 0));
  EXPECT_EQ(departures(*driver, {{1, 1500}, {2, 750}, {2, 750}, {3, 1501}, {8, 1499}}),
            (std::vector<double>{1, 3, 3, 9, 9}));
}

TEST(RateDriver, ASegmentInTransmissionKeepsItsTime) {
  const LinkSchedule schedule = {{{10, 1, {}, {}}, {20, 0, {}, {}}, {30, 4, {}, {}}}, {}};
  const auto driver =
      rate_driver(LinkConditions({0.25, 0, 0}, LinkChanges(schedule), 0, 1000), 1500);
  // One transmission keeps the earlier rate from 8 to 12; one starts at 19.5 and ends during the
  // outage.
  EXPECT_EQ(departures(*driver, {{8, 1500}, {9, 1500}, {19.5, 1500}, {19.5, 1500}, {31, 3000}}),
            (std::vector<double>{12, 13, 20.5, 30.25, 31.5}));
}

TEST(LinkConditions, SchedulesRepeat) {
  const LinkSchedule schedule = {{{0, 1, 5, {}}, {10, 2, {}, 0.5}}, 30};
  LinkConditions conditions({9, 9, 0}, LinkChanges(schedule), 0, 1000);
  const std::vector<std::tuple<double, double, double, double>> expected = {
      {0, 1, 5, 0},    {9.9, 1, 5, 0},  {10, 2, 5, 0.5},
      {29, 2, 5, 0.5}, {30, 1, 5, 0.5}, {40, 2, 5, 0.5}};
  for (const auto& [time_ms, rate, delay_ms, loss] : expected) {
    EXPECT_EQ(conditions.at(time_ms).rate_packets_per_ms, rate) << time_ms;
    EXPECT_EQ(conditions.at(time_ms).delay_ms, delay_ms) << time_ms;
    EXPECT_EQ(conditions.at(time_ms).loss_probability, loss) << time_ms;
  }
  EXPECT_EQ(mean_rate_packets_per_ms(9, LinkChanges(schedule)), (10 * 1 + 20 * 2) / 30.0);
}

TEST(LinkConditions, WalksStayInTheirRangesAndLimitTheirSteps) {
  for (const double step : {0.0, 0.1}) {
    LinkWalk walk;
    walk.every_ms = 10;
    walk.rate_packets_per_ms = LinkRange{1, 5};
    walk.delay_ms = LinkRange{20, 40};
    walk.step = step;
    LinkConditions conditions({1, 0, 0.25}, LinkChanges(walk), 3, 1e6);
    double sum = 0;
    double farthest = 0;
    double before = conditions.at(0).rate_packets_per_ms;
    for (int i = 0; i < 10'000; ++i) {
      const LinkCondition& now = conditions.at(10 * i);
      EXPECT_GE(now.rate_packets_per_ms, 1);
      EXPECT_LE(now.rate_packets_per_ms, 5);
      EXPECT_GE(now.delay_ms, 20);
      EXPECT_LE(now.delay_ms, 40);
      EXPECT_EQ(now.loss_probability, 0.25);
      farthest = std::max(farthest, std::fabs(now.rate_packets_per_ms - before));
      before = now.rate_packets_per_ms;
      sum += before;
    }
    EXPECT_NEAR(sum / 10'000, 3, step == 0 ? 0.1 : 0.5);
    EXPECT_LE(farthest, step == 0 ? 4 : 0.4 + 1e-12);
    EXPECT_GE(farthest, step == 0 ? 3 : 0.39);
  }
}

TEST(GilbertElliott, LosesInBurstsOfTheMeanLength) {
  GilbertElliott loss({0.01, 0.25, 0, 1}, 5);
  constexpr int kPackets = 1'000'000;
  int lost = 0;
  int bursts = 0;
  bool was_lost = false;
  for (int i = 0; i < kPackets; ++i) {
    const bool is_lost = loss.loses_next();
    lost += is_lost ? 1 : 0;
    bursts += is_lost && !was_lost ? 1 : 0;
    was_lost = is_lost;
  }
  EXPECT_NEAR(lost / static_cast<double>(kPackets), 0.01 / 0.26, 0.001);
  EXPECT_NEAR(static_cast<double>(lost) / bursts, 4, 0.1);
}

TEST(TokenBucket, AdmitsABurstAndThenItsRate) {
  TokenBucket bucket({0.5, 3}, 1500);
  int admitted = 0;
  for (int now_ms = 0; now_ms < 100; ++now_ms) {
    for (int packet = 0; packet < 5; ++packet) {
      admitted += bucket.admits(now_ms, 1500) ? 1 : 0;
    }
  }
  EXPECT_EQ(admitted, 3 + 49);
  EXPECT_TRUE(bucket.admits(1000, 4500));
  EXPECT_FALSE(bucket.admits(1000, 1));
}

// Returns when segments with the given departures from the link are released.
std::vector<double> releases(const JitterBoxDescription& description,
                             const std::vector<double>& departures_ms) {
  JitterBox box(description, 11);
  std::vector<double> times_ms(departures_ms.size(), -1);
  const auto release = [&times_ms](const Segment& segment, double release_ms, double) {
    times_ms[segment.transmission_number] = release_ms;
  };
  for (std::size_t i = 0; i < departures_ms.size(); ++i) {
    Segment segment;
    segment.transmission_number = i;
    box.put(segment, departures_ms[i], 0, i, release);
  }
  if (box.next_ms() < kNever) {
    box.tick(release);
  }
  return times_ms;
}

TEST(JitterBox, ReleasesAtMultiplesOfThePeriod) {
  EXPECT_EQ(releases(PeriodicRelease{10}, {0, 1, 9.5, 10, 25}),
            (std::vector<double>{0, 10, 10, 10, 30}));
}

TEST(JitterBox, ReleasesBatchesThatAreFullOrHaveWaited) {
  EXPECT_EQ(releases(BatchRelease{3, 5}, {1, 2, 3, 4, 8, 9, 9.5, 20}),
            (std::vector<double>{3, 3, 3, 9, 9, 9, 14.5, 25}));
}

TEST(JitterBox, ReordersOnlyIfEnabled) {
  std::vector<double> departures_ms(2000);
  for (std::size_t i = 0; i < departures_ms.size(); ++i) {
    departures_ms[i] = static_cast<double>(i);
  }
  const std::vector<double> in_order = releases(RandomRelease{10, 0.5, false}, departures_ms);
  EXPECT_TRUE(std::ranges::is_sorted(in_order));
  const std::vector<double> reordered = releases(RandomRelease{10, 0.5, true}, departures_ms);
  EXPECT_FALSE(std::ranges::is_sorted(reordered));
  int held = 0;
  for (std::size_t i = 0; i < departures_ms.size(); ++i) {
    EXPECT_GE(reordered[i], departures_ms[i]);
    EXPECT_LT(reordered[i], departures_ms[i] + 10);
    EXPECT_GE(in_order[i], reordered[i]);
    held += reordered[i] > departures_ms[i] ? 1 : 0;
  }
  EXPECT_NEAR(held, 1000, 100);
}

// Two RemyCCs that send on ACKs, at times that are multiples of a quarter ms.
NetworkDescription window_network(std::optional<std::uint32_t> buffer_packets) {
  NetworkDescription network;
  LinkDescription link;
  link.rate_packets_per_ms = 4;
  link.delay_ms = 40;
  link.buffer_packets = buffer_packets;
  network.links.push_back(link);
  for (const double first_on_ms : {0.0, 3.5}) {
    SenderDescription sender;
    sender.table = 0;
    sender.transport.name = "datagram";
    sender.traffic = {ExponentialTime{1e9}, 1};
    sender.first_on_ms = first_on_ms;
    sender.route.links = {0};
    network.senders.push_back(sender);
  }
  return network;
}

CompiledTable growing_table() {
  return CompiledTable(RuleTable({Signal::kRttRatio}, {Node{{}, {1, 1, 0}}}));
}

void expect_same_bits(const NetworkResults& one, const NetworkResults& other) {
  ASSERT_EQ(one.senders.size(), other.senders.size());
  for (std::size_t i = 0; i < one.senders.size(); ++i) {
    const SenderResults& first = one.senders[i].totals;
    const SenderResults& second = other.senders[i].totals;
    EXPECT_GT(first.packets_received, 500U);
    EXPECT_EQ(first.packets_sent, second.packets_sent);
    EXPECT_EQ(first.packets_received, second.packets_received);
    EXPECT_EQ(first.packets_lost, second.packets_lost);
    EXPECT_EQ(first.delay_sum_ms, second.delay_sum_ms);
    EXPECT_EQ(first.on_ms, second.on_ms);
  }
}

TEST(TraceOfEqualGaps, EqualsTheConstantLinkToTheBit) {
  const CompiledTable table = growing_table();
  // A link of constant rate transmits a segment that, on a link that counts bytes, still waits.
  for (const auto& [semantics, buffer, more] :
       {std::tuple{TraceSemantics::kMahimahi, 100U, 1U}, {TraceSemantics::kMahimahi, 7U, 1U}}) {
    NetworkDescription network = window_network(buffer);
    const NetworkResults constant = run_network(network, {&table, 1}, 2000, 1);
    network.links[0].trace = {trace_of({0.25, 0.5, 0.75}), semantics, false};
    network.links[0].buffer_packets = buffer + more;
    expect_same_bits(constant, run_network(network, {&table, 1}, 2000, 1));
    // Also with a queue other than drop-tail, which is simulated with events.
    network.links[0].queue = {"drop-tail", "bytes", {{"limit_bytes", 1e12}}};
    expect_same_bits(constant, run_network(network, {&table, 1}, 2000, 1));
  }
}

TEST(ScheduleOfOneRate, EqualsTheConstantLinkToTheBit) {
  const CompiledTable table = growing_table();
  NetworkDescription network = window_network(20);
  const NetworkResults constant = run_network(network, {&table, 1}, 2000, 1);
  network.links[0].changes = LinkSchedule{{{0, 4, 40, {}}, {50, 4, 40, {}}}, 100};
  expect_same_bits(constant, run_network(network, {&table, 1}, 2000, 1));
  network.links[0].changes.reset();
  network.links[0].policer = {1e6, 1e9};
  expect_same_bits(constant, run_network(network, {&table, 1}, 2000, 1));
}

TEST(ParkingLot, WithAnIdleLinkEqualsTheDumbbellToTheBit) {
  const CompiledTable table = growing_table();
  NetworkDescription network = window_network(20);
  const NetworkResults dumbbell = run_network(network, {&table, 1}, 2000, 1);
  LinkDescription idle;
  for (const bool has_trace : {false, true}) {
    if (has_trace) {
      idle.trace = {TraceGenerator(), TraceSemantics::kMahimahi, false};
    }
    network.links.resize(1);
    network.links.push_back(idle);
    expect_same_bits(dumbbell, run_network(network, {&table, 1}, 2000, 1));
    // Also with the idle link first.
    std::swap(network.links[0], network.links[1]);
    for (SenderDescription& sender : network.senders) {
      sender.route.links = {1};
    }
    expect_same_bits(dumbbell, run_network(network, {&table, 1}, 2000, 1));
    std::swap(network.links[0], network.links[1]);
    for (SenderDescription& sender : network.senders) {
      sender.route.links = {0};
    }
  }
}

TEST(FallingDelay, DoesNotReorder) {
  const CompiledTable table = growing_table();
  NetworkDescription network = window_network({});
  network.links[0].changes = LinkSchedule{{{0, {}, 200, {}}, {500, {}, 1, {}}}, {}};
  const NetworkResults results = run_network(network, {&table, 1}, 2000, 1);
  EXPECT_EQ(results.senders[0].totals.packets_lost, 0U);
  EXPECT_GT(results.senders[0].totals.packets_received, 500U);
}

struct InvalidCase {
  std::function<void(LinkDescription&)> spoil;
  const char* sentence;
};

TEST(Links, ErrorMessagesAreSentences) {
  const std::vector<InvalidCase> refusals = {
      {[](auto& link) { link.trace = TraceDescription{}; },
       "link.trace has no trace but must have one"},
      {[](auto& link) { link.trace = {TraceGenerator{0.5}, TraceSemantics::kNs2, false}; },
       "link.trace.maximum_packets_per_s is 0.500000 but must be a number from 1 to 10000000"},
      {[](auto& link) {
         link.trace = {trace_of({1, 2}), TraceSemantics::kMahimahi, false};
         link.buffer_packets = 0;
       },
       "link.buffer_packets is 0.000000 but must be at least 1, as packets wait for the next "
       "opportunity"},
      {[](auto& link) { link.changes = LinkSchedule{}; },
       "link.changes.steps is empty but must have at least one step"},
      {[](auto& link) { link.changes = LinkSchedule{{{5, 1, {}, {}}, {5, 2, {}, {}}}, {}}; },
       "link.changes.steps[1].at_ms is 5.000000 but must be later than the step before it"},
      {[](auto& link) { link.changes = LinkSchedule{{{5, 0, {}, {}}}, {}}; },
       "link.changes ends in an outage but must have a rate above 0 after it"},
      {[](auto& link) { link.changes = LinkWalk{}; },
       "link.changes has no range but must have one for the rate, the delay or the loss"},
      {[](auto& link) {
         link.loss_probability = 0.1;
         link.gilbert_elliott.emplace();
       },
       "link has a loss probability beside Gilbert-Elliott loss but must have one of them"},
      {[](auto& link) {
         link.trace = {trace_of({1, 2}), TraceSemantics::kNs2, false};
         link.changes = LinkSchedule{{{5, 1, {}, {}}}, {}};
       },
       "link follows a trace but changes its rate"},
      {[](auto& link) { link.policer = {1, 0.5}; },
       "link.policer.burst_packets is 0.500000 but must be a number from 1 to 1000000000"},
      {[](auto& link) { link.jitter_box = BatchRelease{0, 1}; },
       "link.jitter_box.packets is 0.000000 but must be at least 1"},
  };
  for (const InvalidCase& refusal : refusals) {
    LinkDescription link;
    refusal.spoil(link);
    try {
      validate(link, "link");
      ADD_FAILURE() << "not refused: " << refusal.sentence;
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), refusal.sentence);
    }
  }
}

TEST(Trace, ErrorMessagesAreSentences) {
  const std::vector<std::pair<std::vector<double>, const char*>> refusals = {
      {{}, "a trace has no opportunities but must have at least one"},
      {{3, 2},
       "a trace has an opportunity at 2.000000 ms after one at 3.000000 ms, but times must "
       "not decrease"},
      {{0, 0},
       "a trace's last opportunity is 0.000000 but must be at least a millionth of a ms for "
       "each opportunity"},
  };
  for (const auto& [times_ms, sentence] : refusals) {
    try {
      const Trace trace(times_ms);
      ADD_FAILURE() << "not refused: " << sentence;
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), sentence);
    }
  }
}

}  // namespace
}  // namespace remy
