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

// Packets lost over packets sent, retransmissions included; 0 if none was sent.
double loss_of(const SenderResults& sender) {
  return sender.packets_sent == 0
             ? 0
             : static_cast<double>(sender.packets_lost) / static_cast<double>(sender.packets_sent);
}

double utility(const Objective& objective, const Performance& measured, double loss,
               double packet_bytes) {
  const double packet_megabits = packet_bytes * 8 / 1e6;
  const double throughput = objective.throughput->counts_flows
                                ? measured.throughput_packets_per_ms * 1000
                                : measured.throughput_packets_per_ms * packet_megabits * 1000;
  const double gained = alpha_fair_utility(objective.alpha, throughput);
  const double without_price =
      objective.delta == 0
          ? gained
          : gained - objective.delta * alpha_fair_utility(objective.beta, measured.delay_ms);
  return objective.loss_price == 0 ? without_price : without_price - objective.loss_price * loss;
}

// The group of each sender; null if the specimen lists no groups.
std::vector<const SenderGroup*> groups_of(const Specimen& specimen, std::size_t senders) {
  std::vector<const SenderGroup*> groups;
  groups.reserve(senders);
  for (const SenderGroup& group : specimen.senders) {
    groups.insert(groups.end(), group.count, &group);
  }
  groups.resize(senders, nullptr);
  return groups;
}

// Weighted scores of one group, or of all senders.
struct WeightedScores {
  std::vector<double> values;  // scores times weights
  std::vector<double> weights;

  void add(double score, double weight) {
    values.push_back(weight == 1 ? score : score * weight);
    weights.push_back(weight);
  }
  double mean() const { return exact_sum(values) / exact_sum(weights); }
};

Tally tally_of(const SenderResults& sender, std::span<const Tally> tallies, std::size_t index) {
  return tallies.empty() ? Tally{sender.packets_received, sender.packets_received, 0}
                         : tallies[index];
}

template <class Score>
SenderScores scores(const Specimen& specimen, const std::vector<SenderResults>& senders,
                    std::span<const Tally> tallies, double duration_ms,
                    const ThroughputMeasure& measure, double minimum_on_ms, Score score) {
  SenderScores result;
  result.reserve(senders.size());
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const auto measured = performance(senders[i], tally_of(senders[i], tallies, i), specimen,
                                      duration_ms, measure, minimum_on_ms);
    result.push_back(measured ? std::optional(score(*measured)) : std::nullopt);
  }
  return result;
}

}  // namespace

std::vector<Tally> tallies(std::span<const NetworkSenderResults> senders) {
  std::vector<Tally> result;
  for (const NetworkSenderResults& sender : senders) {
    result.push_back({sender.throughput_packets, sender.delay_samples, sender.flows.size()});
  }
  return result;
}

std::optional<Performance> performance(const SenderResults& sender, const Tally& tally,
                                       const Specimen& specimen, double duration_ms,
                                       const ThroughputMeasure& measure, double minimum_on_ms) {
  const double unloaded_rtt_ms = specimen.rtt_ms + 1 / specimen.link_rate_packets_per_ms;
  const double time_ms = sender.*measure.time_ms;
  if (!(time_ms > 0) || sender.on_ms < minimum_on_ms ||
      sender.first_on_ms + unloaded_rtt_ms > duration_ms) {
    return std::nullopt;
  }
  return measure.performance(sender, tally, time_ms, duration_ms);
}

SenderScores objective_scores(const Objective& objective, const Specimen& specimen,
                              const std::vector<SenderResults>& senders, double duration_ms,
                              std::span<const Tally> tallies) {
  const double packet_bytes =
      specimen.bottleneck.has_value() ? specimen.bottleneck->packet_bytes : kPacketBytes;
  const auto groups = groups_of(specimen, senders.size());
  SenderScores result;
  result.reserve(senders.size());
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const bool has_group_objective = groups[i] != nullptr && groups[i]->objective.has_value();
    const Objective& sender_objective = has_group_objective ? *groups[i]->objective : objective;
    const auto measured =
        performance(senders[i], tally_of(senders[i], tallies, i), specimen, duration_ms,
                    *sender_objective.throughput, sender_objective.minimum_on_ms);
    result.push_back(measured ? std::optional(utility(sender_objective, *measured,
                                                      loss_of(senders[i]), packet_bytes))
                              : std::nullopt);
  }
  return result;
}

SenderScores normalized_scores(double minimum_on_ms, const Specimen& specimen,
                               const std::vector<SenderResults>& senders, double duration_ms,
                               std::span<const Tally> tallies) {
  return scores(specimen, senders, tallies, duration_ms, throughput_measure("equal_share"),
                minimum_on_ms, [&](const Performance& measured) {
                  return binary_logarithm(measured.throughput_packets_per_ms /
                                          specimen.link_rate_packets_per_ms) -
                         binary_logarithm(measured.delay_ms / specimen.rtt_ms);
                });
}

std::optional<double> specimen_score(const Objective& objective, const Specimen& specimen,
                                     const std::vector<SenderResults>& senders, double duration_ms,
                                     std::span<const Tally> tallies) {
  const auto scores = objective_scores(objective, specimen, senders, duration_ms, tallies);
  const auto groups = groups_of(specimen, senders.size());
  const bool uses_minimum = objective.over_groups == GroupAggregate::kMinimum;
  WeightedScores all;
  std::optional<double> minimum;
  for (std::size_t first = 0; first < senders.size();) {
    const SenderGroup* const group = groups[first];
    const double weight = group == nullptr ? 1 : group->weight;
    WeightedScores own;
    for (; first < senders.size() && groups[first] == group; ++first) {
      if (scores[first].has_value() && weight > 0) {
        (uses_minimum ? own : all).add(*scores[first], weight);
      }
    }
    if (!own.values.empty()) {
      const double mean = weight * own.mean();
      minimum = std::min(minimum.value_or(mean), mean);
    }
  }
  if (uses_minimum ? !minimum.has_value() : all.values.empty()) {
    return std::nullopt;
  }
  const double score = uses_minimum ? *minimum : all.mean();
  return std::isfinite(score) ? score : std::numeric_limits<double>::infinity();
}

}  // namespace remy
