#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "evaluation/specimen.h"
#include "evaluation/throughput.h"
#include "network/network.h"
#include "senders/packet.h"

namespace remy {

// Returns the packets, delay samples and flows that the general network counted for each sender.
std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders);

// Computes a sender's throughput and delay.
//
// Returns none, and so no score, for a sender that was never on, that was on for less than
// minimum_on_ms, or whose first packet could not have arrived, because it was first on less than
// one unloaded RTT before the end. A sender whose packets could have arrived but did not is treated
// as if its first packet arrived at the end: one packet, with the delay since the sender was first
// on.
std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       const ThroughputMeasure& measure, double minimum_on_ms);

// The score of each sender; none for a sender that is not scored.
using SenderScores = std::vector<std::optional<double>>;

// Scores each sender by its group's objective, or by `objective` if the group has none. In this and
// the following functions `tallies` is empty for results of the dumbbell, where a sender's tally
// follows from the packets that it received.
SenderScores objective_scores(const Objective& objective, const Specimen& specimen,
                              const std::vector<SenderResults>& senders, double duration_ms,
                              std::span<const Tally> tallies = {});

// The normalized score of the reference tool: log2(equal-share throughput / link rate) - log2(delay
// / RTT).
SenderScores normalized_scores(double minimum_on_ms, const Specimen& specimen,
                               const std::vector<SenderResults>& senders, double duration_ms,
                               std::span<const Tally> tallies = {});

// Combines the senders' scores by the weights of their groups, with correctly rounded sums. None if
// no sender is scored. Infinity marks a score that is not finite (also minus infinity and NaN).
std::optional<double> specimen_score(const Objective& objective, const Specimen& specimen,
                                     const std::vector<SenderResults>& senders, double duration_ms,
                                     std::span<const Tally> tallies = {});

}  // namespace remy
