#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "measured_row.h"
#include "protocols/one_bottleneck.h"

namespace remy {

// A measurement of Linux 6.18 on an emulated link (docs/results/in-linux.md), and the deviation
// that is allowed to the simulator. The rate counts packets that arrive.
struct KernelFlows {
  const char* name;
  std::size_t flows;
  double loss_probability;
  double mbps;
  double rtt_ms;
  double mbps_tolerance;  // fractions
  double rtt_tolerance;
  double seconds = 30;
};

// Compares the mean of several runs of the protocol with the kernel's. The link has 15 Mbit/s, 150
// ms and 1,000 packets of buffer. Runs begin with the first flow's SYN; flows start 0.2 s apart,
// and their first packets leave an RTT later.
inline void expect_kernel(const Choice& protocol, const std::string& label,
                          const KernelFlows& kernel) {
  const double duration_ms = 1000 * kernel.seconds;
  constexpr std::uint64_t kRuns = 20;
  OneBottleneck bottleneck;
  bottleneck.protocol = protocol;
  bottleneck.transport = {"tcp", "linux", {}};
  bottleneck.link.rate_packets_per_ms = 1.25;
  bottleneck.link.buffer_packets = 1000;
  bottleneck.link.loss_probability = kernel.loss_probability;
  bottleneck.rtt_ms = 150;
  bottleneck.starts_ms.clear();
  for (std::size_t flow = 0; flow < kernel.flows; ++flow) {
    bottleneck.starts_ms.push_back(bottleneck.rtt_ms + 200 * static_cast<double>(flow));
  }
  double packets = 0;
  double rtt_ms = 0;
  for (std::uint64_t key = 1; key <= kRuns; ++key) {
    const NetworkResults results = bottleneck.run(duration_ms, key);
    for (const NetworkSenderResults& sender : results.senders) {
      packets += static_cast<double>(sender.totals.packets_received) / kRuns;
    }
    rtt_ms += mean_rtt_ms(results) / kRuns;
  }
  const double mbps = packets * 12'000 / duration_ms / 1000;
  const std::string row = label + ", " + kernel.name;
  record_measured("kernel", row, "Mbit/s", mbps, kernel.mbps);
  record_measured("kernel", row, "RTT, ms", rtt_ms, kernel.rtt_ms);
  EXPECT_NEAR(mbps / kernel.mbps, 1, kernel.mbps_tolerance);
  EXPECT_NEAR(rtt_ms / kernel.rtt_ms, 1, kernel.rtt_tolerance);
}

}  // namespace remy
