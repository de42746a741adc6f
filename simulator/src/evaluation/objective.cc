#include "evaluation/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"

namespace remy {
namespace {

double alpha_fair_utility(double alpha, double x) {
  return alpha == 1 ? natural_logarithm(x) : power(x, 1 - alpha) / (1 - alpha);
}

template <class Score>
SenderScores scores(const Specimen& specimen, const std::vector<SenderResults>& senders,
                    std::span<const Tally> tallies, double duration_ms, ThroughputMeasure measure,
                    double minimum_on_ms, Score score) {
  SenderScores result;
  result.reserve(senders.size());
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const std::uint64_t received = senders[i].packets_received;
    const Tally tally = tallies.empty() ? Tally{received, received} : tallies[i];
    const auto measured =
        performance(senders[i], tally, specimen, duration_ms, measure, minimum_on_ms);
    result.push_back(measured ? std::optional(score(*measured)) : std::nullopt);
  }
  return result;
}

}  // namespace

std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders) {
  std::vector<Tally> result;
  for (const NetworkSenderResults& sender : senders) {
    result.push_back({sender.throughput_packets, sender.delay_samples});
  }
  return result;
}

std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       ThroughputMeasure measure, double minimum_on_ms) {
  const double unloaded_rtt_ms = specimen.rtt_ms + 1 / specimen.link_rate_packets_per_ms;
  const double time_ms = measure == ThroughputMeasure::kEqualShare ? sender.share_ms : sender.on_ms;
  if (!(time_ms > 0) || sender.on_ms < minimum_on_ms ||
      sender.first_on_ms + unloaded_rtt_ms > duration_ms) {
    return std::nullopt;
  }
  if (tally.throughput_packets == 0 || tally.delay_samples == 0) {
    return Performance{1 / time_ms, duration_ms - sender.first_on_ms};
  }
  return Performance{static_cast<double>(tally.throughput_packets) / time_ms,
                     sender.delay_sum_ms / static_cast<double>(tally.delay_samples)};
}

SenderScores objective_scores(const Objective& objective, const Specimen& specimen,
                              const std::vector<SenderResults>& senders, double duration_ms,
                              std::span<const Tally> tallies) {
  const double packet_bytes =
      specimen.bottleneck.has_value() ? specimen.bottleneck->packet_bytes : kPacketBytes;
  const double packet_megabits = packet_bytes * 8 / 1e6;
  return scores(specimen, senders, tallies, duration_ms, objective.throughput,
                objective.minimum_on_ms, [&](const Performance& measured) {
                  const double throughput_mbps =
                      measured.throughput_packets_per_ms * packet_megabits * 1000;
                  const double utility = alpha_fair_utility(objective.alpha, throughput_mbps);
                  return objective.delta == 0
                             ? utility
                             : utility - objective.delta *
                                             alpha_fair_utility(objective.beta, measured.delay_ms);
                });
}

SenderScores normalized_scores(double minimum_on_ms, const Specimen& specimen,
                               const std::vector<SenderResults>& senders, double duration_ms,
                               std::span<const Tally> tallies) {
  return scores(specimen, senders, tallies, duration_ms, ThroughputMeasure::kEqualShare,
                minimum_on_ms, [&](const Performance& measured) {
                  return binary_logarithm(measured.throughput_packets_per_ms /
                                          specimen.link_rate_packets_per_ms) -
                         binary_logarithm(measured.delay_ms / specimen.rtt_ms);
                });
}

std::optional<double> specimen_score(const Objective& objective, const Specimen& specimen,
                                     const std::vector<SenderResults>& senders, double duration_ms,
                                     std::span<const Tally> tallies) {
  std::vector<double> scored;
  for (const auto& score : objective_scores(objective, specimen, senders, duration_ms, tallies)) {
    if (score.has_value()) {
      scored.push_back(*score);
    }
  }
  if (scored.empty()) {
    return std::nullopt;
  }
  const double mean = exact_sum(scored) / static_cast<double>(scored.size());
  return std::isfinite(mean) ? mean : std::numeric_limits<double>::infinity();
}

}  // namespace remy
