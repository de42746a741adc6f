#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>

#include "core/random.h"
#include "measured_row.h"
#include "network/network.h"
#include "table/dna.h"

namespace remy {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}
double deviation(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += (value - mean(values)) * (value - mean(values));
  }
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// A dumbbell of ns-2: one forward and one return link, with ACKs of 50 bytes.
NetworkDescription dumbbell(double link_mbps, double rtt_ms, std::optional<std::uint32_t> buffer,
                            double packet_bytes, const Choice& queue) {
  NetworkDescription network;
  network.packet_bytes = packet_bytes;
  network.ack_bytes = 50;
  LinkDescription link;
  link.rate_packets_per_ms = link_mbps * 125 / packet_bytes;
  link.delay_ms = rtt_ms / 2;
  link.buffer_packets = buffer;
  link.queue = queue;
  network.links = {link, link};
  return network;
}

SenderDescription sender(const Choice& transport, const Traffic& traffic) {
  SenderDescription sender;
  sender.transport = transport;
  sender.traffic = traffic;
  sender.route.links = {0};
  sender.route.return_links = {1};
  return sender;
}

// Skipped without the studies' figures, as it takes a minute.
constexpr const char* kNoReference = "REMY_REFERENCE_DIR names no folder with the studies' figures";
const char* reference_folder() { return std::getenv("REMY_REFERENCE_DIR"); }

constexpr double kSimulatedMs = 100'000;

// A comparison row for SIGCOMM 2013, Figure 4: eight senders at 15 Mbit/s and 150 ms with 1000
// packets of buffer; flows of 1 MB of payload on average, 0.5 s apart (hbatmit/ns2.35, branch remy,
// tcl/ex/congctrl: newreno, cubic, cubiccodel-avg1Moff.5; per sender and run, 128 runs).
struct Row {
  Choice protocol;
  Choice transport;
  Choice queue;
  double mean_mbps;
  double median_mbps;
  double deviation_mbps;
  double rtt_ms;
  double rtt_over_time_ms;
};

class Sigcomm2013 : public testing::TestWithParam<Row> {};

// Packets have 1210 bytes of payload, 1260 on the wire.
TEST_P(Sigcomm2013, MatchesThroughputAndDelayOfNs2) {
  constexpr double kWireBytes = 1260;
  constexpr double kMeanBytes = 1e6 * kWireBytes / 1210;
  constexpr std::uint64_t kRuns = 128;
  if (reference_folder() == nullptr) {
    GTEST_SKIP() << kNoReference;
  }
  const Row& row = GetParam();
  std::vector<double> mbps;
  std::vector<double> rtt_ms;
  std::vector<double> rtt_over_time_ms;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    NetworkDescription network = dumbbell(15, 150, 1000, kWireBytes, row.queue);
    network.key = run;
    for (int i = 0; i < 8; ++i) {
      SenderDescription each = sender(row.transport, {ExponentialBytes{kMeanBytes}, 500});
      each.protocol = row.protocol;
      each.traffic.first_off_factor = 0.5;
      network.senders.push_back(each);
    }
    for (const NetworkSenderResults& each : run_network(network, {}, kSimulatedMs, 1).senders) {
      mbps.push_back(static_cast<double>(each.endpoint.packets_in_order) * kWireBytes * 8 /
                     each.totals.on_ms / 1000);
      rtt_ms.push_back(each.endpoint.rtt.mean_ms());
      rtt_over_time_ms.push_back(each.endpoint.rtt.mean_over_time_ms());
    }
  }
  const std::string name = "`" + row.protocol.name + "` `" + row.protocol.variant + "` on `tcp` `" +
                           row.transport.variant + "`, `" + row.queue.name + "`";
  const auto record = [&name](const char* column, double ours, double theirs) {
    record_measured("ns-2", name, column, ours, theirs);
  };
  record("mean, Mbit/s", mean(mbps), row.mean_mbps);
  record("median", median(mbps), row.median_mbps);
  record("deviation", deviation(mbps), row.deviation_mbps);
  record("RTT by packets, ms", mean(rtt_ms), row.rtt_ms);
  record("by time", mean(rtt_over_time_ms), row.rtt_over_time_ms);
  EXPECT_NEAR(mean(mbps), row.mean_mbps, 0.05 * row.mean_mbps);
  EXPECT_NEAR(median(mbps), row.median_mbps, 0.1 * row.median_mbps);
  EXPECT_NEAR(deviation(mbps), row.deviation_mbps, std::max(0.15 * row.deviation_mbps, 0.03));
  EXPECT_NEAR(mean(rtt_ms), row.rtt_ms, 3);
  EXPECT_NEAR(mean(rtt_over_time_ms), row.rtt_over_time_ms, 3);
}

INSTANTIATE_TEST_SUITE_P(Rows, Sigcomm2013,
                         testing::Values(Row{{"newreno", "ns-2", {}},
                                             {"tcp", "ns-2", {}},
                                             {"drop-tail", "", {}},
                                             1.775,
                                             1.400,
                                             1.206,
                                             198.42,
                                             200.85},
                                         Row{{"cubic", "linux-2.6.22", {}},
                                             {"tcp", "ns-2-linux", {}},
                                             {"drop-tail", "", {}},
                                             1.784,
                                             1.390,
                                             1.290,
                                             227.38,
                                             235.86},
                                         Row{{"cubic", "linux-2.6.22", {}},
                                             {"tcp", "ns-2-linux", {}},
                                             {"sfq-codel", "", {}},
                                             1.857,
                                             1.859,
                                             0.061,
                                             157.87,
                                             173.56}),
                         [](const auto& info) {
                           return info.param.protocol.name +
                                  (info.param.queue.name == "sfq-codel" ? "SfqCodel" : "");
                         });

// A point of a curve of "An Experimental Study of the Learnability of Congestion Control".
struct Point {
  std::string table;
  double link_mbps = 0;
  double rtt_ms = 150;
  std::uint32_t senders = 2;
  std::optional<std::uint32_t> buffer;
  double mbps = 0;
  double delay_ms = 0;
};

// Sets the parameters of a point at x on the curve in `file`. Buffers are one packet smaller than
// ns-2's limits, because its drop-tail queue drops the packet that would reach the limit.
Point with_x(Point point, const std::string& file, double x) {
  if (file == "fig2-link-rate.csv") {
    point.link_mbps = x;
    point.buffer = static_cast<std::uint32_t>(5 * x * 148 / 10) - 1;
  } else if (file == "fig4-rtt.csv") {
    point.link_mbps = std::sqrt(1000);
    point.rtt_ms = x;
    point.buffer = static_cast<std::uint32_t>(5 * point.link_mbps * x / 10) - 1;
  } else {
    point.link_mbps = 15;
    point.senders = static_cast<std::uint32_t>(x);
    if (file == "fig3-senders-buffer-5bdp.csv") {
      point.buffer = 1125 - 1;
    }
  }
  return point;
}

// Every `step`th of the points with a RemyCC.
std::vector<Point> points(const std::string& reference, const std::string& file, int step) {
  std::ifstream in(reference + "/learnability/" + file);
  std::vector<Point> points;
  std::string line;
  for (int number = 0; std::getline(in, line);) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream fields(line);
    double x = 0;
    std::string protocol;
    Point point;
    if (fields >> x >> protocol >> point.mbps >> point.delay_ms &&
        protocol.starts_with("remycc:") && number++ % step == 0) {
      point.table = protocol.substr(7);
      points.push_back(with_x(point, file, x));
    }
  }
  return points;
}

// Mean over senders and runs of the in-order throughput while on.
double measured_mbps(const Point& point, const CompiledTable& table, std::uint64_t runs) {
  std::vector<double> mbps;
  for (std::uint64_t run = 0; run < runs; ++run) {
    NetworkDescription network =
        dumbbell(point.link_mbps, point.rtt_ms, point.buffer, 1250, {"drop-tail", "", {}});
    network.key = run;
    for (std::uint32_t i = 0; i < point.senders; ++i) {
      network.senders.push_back(sender({"ns2", "", {}}, {ExponentialTime{1000}, 1000}));
      network.senders.back().table = 0;
    }
    for (const NetworkSenderResults& each :
         run_network(network, std::span(&table, 1), kSimulatedMs, 2).senders) {
      mbps.push_back(static_cast<double>(each.endpoint.packets_in_order) * 10 / each.totals.on_ms);
    }
  }
  return mean(mbps);
}

// Includes points with overflowing buffers. Deviations above a tenth are at points with little
// in-order delivery.
TEST(Learnability, RemyCCsOnTheNs2TransportReproduceFigures2To4) {
  const char* const reference = reference_folder();
  if (reference == nullptr) {
    GTEST_SKIP() << kNoReference;
  }
  std::map<std::string, CompiledTable> tables;
  std::vector<double> errors;
  for (const auto& [file, step] : {std::pair{"fig2-link-rate.csv", 70},
                                   {"fig3-senders-buffer-5bdp.csv", 9},
                                   {"fig3-senders-buffer-infinite.csv", 9},
                                   {"fig4-rtt.csv", 12}}) {
    for (const Point& point : points(reference, file, step)) {
      if (point.link_mbps > 100) {
        continue;  // takes minutes
      }
      auto table = tables.find(point.table);
      if (table == tables.end()) {
        std::ifstream in(std::string(reference) + "/remyccs/" + point.table, std::ios::binary);
        std::stringstream bytes;
        bytes << in.rdbuf();
        table = tables.emplace(point.table, read_dna(bytes.str()).table).first;
      }
      const double mbps = measured_mbps(point, table->second, 4);
      errors.push_back(std::fabs(mbps / point.mbps - 1));
      RecordProperty(point.table + " " + std::to_string(point.link_mbps) + " Mbit/s " +
                         std::to_string(point.rtt_ms) + " ms " + std::to_string(point.senders),
                     std::to_string(mbps / point.mbps));
    }
  }
  ASSERT_GT(errors.size(), 60U);
  const auto within = [&errors](double bound) {
    return static_cast<double>(
               std::ranges::count_if(errors, [bound](double error) { return error <= bound; })) /
           static_cast<double>(errors.size());
  };
  EXPECT_GE(within(0.2), 0.95);
  EXPECT_GE(within(0.1), 0.9);
  EXPECT_LE(median(errors), 0.02);
}

}  // namespace
}  // namespace remy
