#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/network.h"

namespace remy {
namespace {

// Networks on which public reports show other implementations to be wrong, with the right values.

struct Sample {
  double now_ms;
  double cwnd;
  double packets_in_order;
};

// One sender over one link, sampled every 10 ms.
struct OneSender {
  double rate_mbps = 100;
  double rtt_ms = 100;
  std::optional<std::uint32_t> buffer_packets = {};
  Choice protocol;
  Choice transport = {"tcp", "linux", {}};
  std::vector<Interval> on = {{0, std::numeric_limits<double>::infinity()}};
  double reordering_probability = 0;
  double reordering_delay_ms = 0;

  struct Result {
    std::vector<Sample> samples;
    NetworkSenderResults sender;

    double cwnd_at(double now_ms) const { return at(now_ms).cwnd; }
    // Between two times.
    double mbps(double from_ms, double until_ms) const {
      return (at(until_ms).packets_in_order - at(from_ms).packets_in_order) * 12 /
             (until_ms - from_ms);
    }
    const Sample& at(double now_ms) const {
      return *std::ranges::lower_bound(samples, now_ms - 1e-6, {}, &Sample::now_ms);
    }
  };

  Result run(double duration_ms) const {
    class Samples final : public Recorder {
     public:
      void sample(double now_ms, std::span<const SenderSample> senders,
                  std::span<const LinkSample>) override {
        all.push_back({now_ms, senders[0].pace.window_packets,
                       static_cast<double>(senders[0].counts.packets_in_order)});
      }
      std::vector<Sample> all;
    };
    NetworkDescription network;
    network.measurement.reordering_probability = reordering_probability;
    network.measurement.reordering_delay_ms = reordering_delay_ms;
    LinkDescription& link = network.links.emplace_back();
    link.rate_packets_per_ms = rate_mbps / 12;
    link.delay_ms = rtt_ms / 2;
    link.buffer_packets = buffer_packets;
    SenderDescription& sender = network.senders.emplace_back();
    sender.protocol = protocol;
    sender.transport = transport;
    sender.traffic.on = Intervals{on};
    sender.route.links = {0};
    sender.route.return_delay_ms = rtt_ms / 2;
    Samples samples;
    NetworkOptions options;
    options.recorder = &samples;
    options.record_every_ms = 10;
    NetworkResults results = run_network(network, {}, duration_ms, 1, options);
    return {std::move(samples.all), std::move(results.senders[0])};
  }
};

// draft-ietf-ccwg-bbr, section 4.1.2.4: a second of bulk, 14 bursts of a millisecond, and bulk
// again. The bursts are application-limited, and do not lower the bandwidth.
TEST(ReportedFaults, BurstsDoNotLowerTheBandwidthOfBbr) {
  for (const char* variant : {"v1", "v3"}) {
    for (const char* transport : {"rfc", "newreno", "linux", "ns-2", "ns-2-linux"}) {
      OneSender bursts{.rtt_ms = 50,
                       .buffer_packets = 2000,
                       .protocol = {"bbr", variant, {}},
                       .transport = {"tcp", transport, {{"keep_state", 1}}},
                       .on = {{0, 1000}}};
      for (double begin_ms = 1200; begin_ms <= 2500; begin_ms += 100) {
        bursts.on.push_back({begin_ms, begin_ms + 1});
      }
      bursts.on.push_back({2800, 1e9});
      const auto result = bursts.run(6000);
      EXPECT_GE(result.cwnd_at(2790), 0.95 * result.cwnd_at(1000)) << variant << " " << transport;
      EXPECT_GE(result.mbps(2900, 3800), 97) << variant << " " << transport;
    }
  }
}

// tcp_cwnd_restart() of Linux (RFC 2861): the RTO is some 305 ms.
TEST(ReportedFaults, AnIdleWindowIsHalvedOncePerTimeout) {
  for (const auto& [resumes_ms, window] : {std::pair{1000.0, 320.0}, {1300.0, 160.0}}) {
    const auto result = OneSender{.protocol = {"cubic", "linux", {{"hystart", 0}}},
                                  .transport = {"tcp", "linux", {{"keep_state", 1}}},
                                  .on = {{0, 550}, {resumes_ms, 1e9}}}
                            .run(2000);
    EXPECT_EQ(result.cwnd_at(resumes_ms - 10), 640);
    EXPECT_EQ(result.cwnd_at(resumes_ms), window);
  }
}

// RFC 8985, section 6.2: late packets are within the reordering window of a quarter of the minimum
// RTT, 25 ms. The buffer of 1,000 packets overflows every 10 to 20 s.
TEST(ReportedFaults, ReorderingCostsCubicNothing) {
  for (const double late_ms : {0.0, 1.0, 5.0, 20.0}) {
    const auto result = OneSender{.rate_mbps = 50,
                                  .buffer_packets = 1000,
                                  .protocol = {"cubic", "linux", {}},
                                  .reordering_probability = 0.005,
                                  .reordering_delay_ms = late_ms}
                            .run(60'000);
    EXPECT_GE(result.mbps(0, 59'990), 48) << late_ms;
    int reductions = 0;
    for (std::size_t i = 1; i < result.samples.size(); ++i) {
      reductions += result.samples[i].cwnd < 0.85 * result.samples[i - 1].cwnd ? 1 : 0;
    }
    EXPECT_LE(reductions, 5) << late_ms;
    EXPECT_EQ(result.sender.endpoint.timeouts, 0U) << late_ms;
  }
}

// NSDI 2015, section 2.2: PCC Allegro's equilibrium loses at most its threshold of 5 %, whatever
// the transport's way to find losses.
TEST(ReportedFaults, PccAllegroLosesFivePercentOnEachTransport) {
  for (const char* transport : {"rfc", "newreno", "linux"}) {
    const OneSender sender{.rate_mbps = 20,
                           .rtt_ms = 30,
                           .buffer_packets = 200,
                           .protocol = {"pcc-allegro", "safe", {}},
                           .transport = {"tcp", transport, {}}};
    // After the starting phase.
    const NetworkSenderResults before = sender.run(20'000).sender;
    const NetworkSenderResults after = sender.run(60'000).sender;
    const auto sent = static_cast<double>(after.totals.packets_sent - before.totals.packets_sent);
    const auto lost = static_cast<double>(after.totals.packets_lost - before.totals.packets_lost);
    EXPECT_LE(lost / sent, 0.06) << transport;
    EXPECT_GE((sent - lost) * 12 / 40'000, 0.95 * 20) << transport;
  }
}

}  // namespace
}  // namespace remy
