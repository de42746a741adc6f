#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/choice.h"
#include "elements/jitter_box.h"
#include "elements/link_conditions.h"
#include "elements/link_driver.h"
#include "elements/link_loss.h"
#include "elements/opportunities.h"
#include "elements/policer.h"

namespace remy {

// The delivery opportunities of a link: a recording or a model.
struct TraceDescription {
  OpportunitySource source;
  TraceSemantics semantics = TraceSemantics::kMahimahi;
  bool ends = false;  // the recording is not repeated
};

// A link with its queue (docs/reference/networks.md). A packet passes the policer, the queue, the
// link, the jitter box, the loss and the delay, in this order.
struct LinkDescription {
  // Packets of NetworkDescription::packet_bytes; unused if there is a trace.
  double rate_packets_per_ms = 1;
  double delay_ms = 0;  // behind the link; before its queue in Cellsim's semantics
  std::optional<std::uint32_t> buffer_packets;  // that may wait; nullopt: infinite
  Choice queue = {"drop-tail", "", {}};         // elements/queues.h
  // Of each packet, independently.
  double loss_probability = 0;
  std::optional<TraceDescription> trace = {};
  std::optional<GilbertElliottLoss> gilbert_elliott = {};  // replaces loss_probability
  // How rate, delay and loss change. The delay and loss of a segment are those of the time when it
  // leaves the link. It does not overtake others when the delay falls.
  std::optional<LinkChanges> changes = {};
  std::optional<Policer> policer = {};
  std::optional<JitterBoxDescription> jitter_box = {};
};

// Whether the link has only a rate, a delay and a loss probability, all constant.
bool is_constant(const LinkDescription& link);

// Whether the delay is before the queue.
bool delays_before(const LinkDescription& link);

// The long-run mean rate in packets of this size, which queues use as the link's capacity.
double mean_rate_packets_per_ms(const LinkDescription& link, double packet_bytes);

// Throws std::invalid_argument if such a link is impossible. `field` is its name in the message.
void validate(const LinkDescription& link, const std::string& field);

}  // namespace remy
