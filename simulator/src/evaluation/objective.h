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

// The packets, delay samples and flows counted for each sender of a general network. Empty for the
// dumbbell.
std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders);

// Computes a sender's throughput and delay.
//
// Returns none, and so no score, for a sender that was never on, was on for less than
// minimum_on_ms, or went on for the first time less than one unloaded RTT before the end, when it
// could not have received anything. A sender that could have received a packet but did not is
// treated as if its first packet arrived at the end: one packet, with the delay since the sender
// was first on.
std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       const ThroughputMeasure& measure, double minimum_on_ms);

// One entry per sender. A group's own objective takes precedence. Without tallies all senders are
// those of a dumbbell.
using SenderScores = std::vector<std::optional<double>>;

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
