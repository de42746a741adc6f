#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "evaluation/specimen.h"
#include "network/network.h"
#include "senders/packet.h"

namespace remy {

// Throughput and delay of a sender as every objective sees them.
//
// A sender that was never on, was on for less than minimum_on_ms, or was first on less than an
// unloaded RTT before the end (and so could not have received anything) has none, and is left out
// of every score. One that could have received a packet but did not is treated as if its first had
// arrived when time ran out: one packet, delayed since the sender was first on.
struct Performance {
  double throughput_packets_per_ms = 0;  // flows per ms where flows are what counts
  double delay_ms = 0;
};

// What a sender's throughput and delay are counted over: packets that count as throughput, and
// delays that delay_sum_ms is the sum of. On the dumbbell both are the packets received.
struct Tally {
  std::uint64_t throughput_packets = 0;
  std::uint64_t delay_samples = 0;
  std::uint64_t flows = 0;  // by bytes, completed; the dumbbell counts none
};

// Of a network's senders; none of a dumbbell's.
std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders);

std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       ThroughputMeasure measure, double minimum_on_ms);

// One entry a sender, by its group's objective where that has one. Where there are no tallies, all
// senders are those of a dumbbell.
using SenderScores = std::vector<std::optional<double>>;

SenderScores objective_scores(const Objective& objective, const Specimen& specimen,
                              const std::vector<SenderResults>& senders, double duration_ms,
                              std::span<const Tally> tallies = {});

// log2(equal-share throughput / link rate) - log2(delay / RTT): the reference tool's normalized
// score.
SenderScores normalized_scores(double minimum_on_ms, const Specimen& specimen,
                               const std::vector<SenderResults>& senders, double duration_ms,
                               std::span<const Tally> tallies = {});

// What the objective makes of the scored senders of groups that have a weight, sums exactly
// rounded; none if no sender is scored. Infinite where it is not a finite number.
std::optional<double> specimen_score(const Objective& objective, const Specimen& specimen,
                                     const std::vector<SenderResults>& senders, double duration_ms,
                                     std::span<const Tally> tallies = {});

}  // namespace remy
