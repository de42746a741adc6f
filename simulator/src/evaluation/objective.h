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

// Of a network's senders; none of a dumbbell's.
std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders);

// A sender's throughput and delay as every objective sees them.
//
// One that was never on, was on for less than minimum_on_ms, or was first on less than an unloaded
// RTT before the end (and so could not have received anything) has none, and is left out of every
// score. One that could have received a packet but did not is treated as if its first had arrived
// when time ran out: one packet, delayed since the sender was first on.
std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       const ThroughputMeasure& measure, double minimum_on_ms);

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
