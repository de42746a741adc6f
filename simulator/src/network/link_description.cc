#include "network/link_description.h"

#include <variant>

#include "core/requirement.h"
#include "elements/queues.h"

namespace remy {
namespace {

// A simulated second would take too long.
constexpr double kFastestLinkPerMs = 1e6;

void validate_probability(double value, const std::string& field) {
  require(value >= 0 && value <= 1, field, value, "a number from 0 to 1");
}

void validate(const GilbertElliottLoss& loss, const std::string& field) {
  validate_probability(loss.good_to_bad, field + ".good_to_bad");
  require(loss.bad_to_good > 0 && loss.bad_to_good <= 1, field + ".bad_to_good", loss.bad_to_good,
          "above 0 and at most 1");
  validate_probability(loss.loss_in_bad, field + ".loss_in_bad");
  require(loss.loss_in_good >= 0 && loss.loss_in_good < 1, field + ".loss_in_good",
          loss.loss_in_good, "at least 0 and below 1");
}

void validate(const Policer& policer, const std::string& field) {
  require(policer.rate_packets_per_ms > 0 && policer.rate_packets_per_ms <= kFastestLinkPerMs,
          field + ".rate_packets_per_ms", policer.rate_packets_per_ms,
          "a positive number of at most 1000000");
  require(policer.burst_packets >= 1 && policer.burst_packets <= 1e9, field + ".burst_packets",
          policer.burst_packets, "a number from 1 to 1000000000");
}

void validate(const JitterBoxDescription& box, const std::string& field) {
  if (const auto* const periodic = std::get_if<PeriodicRelease>(&box)) {
    require(periodic->period_ms >= 0.001 && periodic->period_ms <= 1e9, field + ".period_ms",
            periodic->period_ms, "a number from 0.001 to 1000000000");
  } else if (const auto* const batch = std::get_if<BatchRelease>(&box)) {
    require(batch->packets >= 1, field + ".packets", batch->packets, "at least 1");
    require(is_positive(batch->longest_wait_ms), field + ".longest_wait_ms", batch->longest_wait_ms,
            kPositive);
  } else {
    const RandomRelease& random = std::get<RandomRelease>(box);
    require(is_not_negative(random.longest_hold_ms), field + ".longest_hold_ms",
            random.longest_hold_ms, kNotNegative);
    validate_probability(random.probability, field + ".probability");
  }
}

// Rejects fields that a kind of link does not use.
void validate_combination(const LinkDescription& link, const std::string& field) {
  if (link.gilbert_elliott && link.loss_probability > 0) {
    refuse(field +
           " has a loss probability beside Gilbert-Elliott loss but must have "
           "one of them");
  }
  if (link.gilbert_elliott && link.changes && change_loss(*link.changes)) {
    refuse(field + " has Gilbert-Elliott loss but changes its loss probability");
  }
  if (link.trace && link.changes && change_rate(*link.changes)) {
    refuse(field + " follows a trace but changes its rate");
  }
  if (delays_before(link) && link.changes && change_delay(*link.changes)) {
    refuse(field +
           " has Cellsim's semantics, in which the delay is constant, but "
           "changes it");
  }
  // Packets that arrive at such a link wait.
  if (link.trace && link.trace->semantics != TraceSemantics::kNs2) {
    require(link.buffer_packets != 0, field + ".buffer_packets", 0,
            "at least 1, as packets wait for the next opportunity");
  }
}

}  // namespace

bool is_constant(const LinkDescription& link) {
  return !link.trace && !link.gilbert_elliott && !link.changes && !link.policer && !link.jitter_box;
}

bool delays_before(const LinkDescription& link) {
  return link.trace && link.trace->semantics == TraceSemantics::kCellsim;
}

double mean_rate_packets_per_ms(const LinkDescription& link, double packet_bytes) {
  if (link.trace) {
    return packets_per_ms(link.trace->semantics, mean_rate_per_ms(link.trace->source),
                          packet_bytes);
  }
  return link.changes ? mean_rate_packets_per_ms(link.rate_packets_per_ms, *link.changes)
                      : link.rate_packets_per_ms;
}

void validate(const LinkDescription& link, const std::string& field) {
  if (link.trace) {
    validate(link.trace->source, field + ".trace");
  } else {
    require(link.rate_packets_per_ms > 0 && link.rate_packets_per_ms <= kFastestLinkPerMs,
            field + ".rate_packets_per_ms", link.rate_packets_per_ms,
            "a positive number of at most 1000000");
  }
  require(is_not_negative(link.delay_ms), field + ".delay_ms", link.delay_ms, kNotNegative);
  require(link.loss_probability >= 0 && link.loss_probability < 1, field + ".loss_probability",
          link.loss_probability, "at least 0 and below 1");
  ParameterValues("queue", find_queue_discipline(link.queue.name).variants, link.queue);
  if (link.gilbert_elliott) {
    validate(*link.gilbert_elliott, field + ".gilbert_elliott");
  }
  if (link.changes) {
    validate(*link.changes, field + ".changes");
  }
  if (link.policer) {
    validate(*link.policer, field + ".policer");
  }
  if (link.jitter_box) {
    validate(*link.jitter_box, field + ".jitter_box");
  }
  validate_combination(link, field);
}

}  // namespace remy
