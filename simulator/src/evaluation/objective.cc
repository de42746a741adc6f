#include "evaluation/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"

namespace remy {
namespace {

constexpr double kPacketMegabits = kPacketBytes * 8 / 1e6;

double alpha_fair_utility(double alpha, double x) {
  return alpha == 1 ? natural_logarithm(x) : power(x, 1 - alpha) / (1 - alpha);
}

template <class Score>
SenderScores scores(const Specimen& specimen, const std::vector<SenderResults>& senders,
                    double duration_ms, ThroughputMeasure measure, double minimum_on_ms,
                    Score score) {
  SenderScores result;
  result.reserve(senders.size());
  for (const SenderResults& sender : senders) {
    const auto measured = performance(sender, specimen, duration_ms, measure, minimum_on_ms);
    result.push_back(measured ? std::optional(score(*measured)) : std::nullopt);
  }
  return result;
}

}  // namespace

std::optional<Performance> performance(const SenderResults& sender, const Specimen& specimen,
                                       double duration_ms, ThroughputMeasure measure,
                                       double minimum_on_ms) {
  const double unloaded_rtt_ms = specimen.rtt_ms + 1 / specimen.link_rate_packets_per_ms;
  const double time_ms = measure == ThroughputMeasure::kEqualShare ? sender.share_ms : sender.on_ms;
  if (!(time_ms > 0) || sender.on_ms < minimum_on_ms ||
      sender.first_on_ms + unloaded_rtt_ms > duration_ms) {
    return std::nullopt;
  }
  if (sender.packets_received == 0) {
    return Performance{1 / time_ms, duration_ms - sender.first_on_ms};
  }
  const auto packets = static_cast<double>(sender.packets_received);
  return Performance{packets / time_ms, sender.delay_sum_ms / packets};
}

SenderScores objective_scores(const Objective& objective, const Specimen& specimen,
                              const std::vector<SenderResults>& senders, double duration_ms) {
  return scores(specimen, senders, duration_ms, objective.throughput, objective.minimum_on_ms,
                [&](const Performance& measured) {
                  const double throughput_mbps =
                      measured.throughput_packets_per_ms * kPacketMegabits * 1000;
                  const double utility = alpha_fair_utility(objective.alpha, throughput_mbps);
                  return objective.delta == 0
                             ? utility
                             : utility - objective.delta *
                                             alpha_fair_utility(objective.beta, measured.delay_ms);
                });
}

SenderScores normalized_scores(double minimum_on_ms, const Specimen& specimen,
                               const std::vector<SenderResults>& senders, double duration_ms) {
  return scores(specimen, senders, duration_ms, ThroughputMeasure::kEqualShare, minimum_on_ms,
                [&](const Performance& measured) {
                  return binary_logarithm(measured.throughput_packets_per_ms /
                                          specimen.link_rate_packets_per_ms) -
                         binary_logarithm(measured.delay_ms / specimen.rtt_ms);
                });
}

std::optional<double> specimen_score(const Objective& objective, const Specimen& specimen,
                                     const std::vector<SenderResults>& senders,
                                     double duration_ms) {
  std::vector<double> scored;
  for (const auto& score : objective_scores(objective, specimen, senders, duration_ms)) {
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
