#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "network/live.h"
#include "network/network.h"

namespace remy {

// Expects that the senders of a live network have the results of a whole run.
inline void expect_same_senders(const LiveNetwork& live, const NetworkResults& whole) {
  for (std::uint32_t i = 0; i < whole.senders.size(); ++i) {
    const SenderResults& expected = whole.senders[i].totals;
    const LiveSender found = live.sender(i);
    EXPECT_EQ(found.received, expected.packets_received) << "sender " << i;
    EXPECT_EQ(found.lost, expected.packets_lost) << "sender " << i;
    EXPECT_EQ(found.delay_sum_ms, expected.delay_sum_ms) << "sender " << i;
  }
}

}  // namespace remy
