#include "evaluation/specimen.h"

#include <string>

#include "core/requirement.h"
#include "senders/packet.h"

namespace remy {
namespace {

void require(bool condition, const char* field, double value, const char* allowed) {
  remy::require(condition, std::string("specimen.") + field, value, allowed);
}

}  // namespace

std::size_t sender_count(const Specimen& specimen) {
  std::size_t count = 0;
  for (const SenderGroup& group : specimen.senders) {
    count += group.count;
  }
  return count;
}

void validate(const Specimen& specimen, std::size_t tables) {
  require(is_positive(specimen.link_rate_packets_per_ms), "link_rate_packets_per_ms",
          specimen.link_rate_packets_per_ms, "a positive number");
  require(is_positive(specimen.rtt_ms), "rtt_ms", specimen.rtt_ms, "a positive number");
  require(specimen.loss_probability >= 0 && specimen.loss_probability < 1, "loss_probability",
          specimen.loss_probability, "at least 0 and below 1");
  validate(specimen.measurement, "specimen.measurement");
  for (const SenderGroup& group : specimen.senders) {
    require(group.table < tables, "senders.table", group.table, "the number of a table");
    validate(group.traffic, "specimen.traffic");
  }
  const std::size_t count = sender_count(specimen);
  require(count >= 1 && count < FlowTag::kMaximumSenders, "senders.count",
          static_cast<double>(count), "from 1 to 16383 in all");
}

}  // namespace remy
