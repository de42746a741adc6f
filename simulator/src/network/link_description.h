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

// A link that delivers when a recording or a model says so.
struct TraceDescription {
  OpportunitySource source;
  TraceSemantics semantics = TraceSemantics::kMahimahi;
  bool ends = false;  // a recording; else it begins again
};

// A link with the queue before it (docs/reference/networks.md). What arrives meets the policer, the
// queue, the link, the jitter box, the loss and the delay, in this order.
struct LinkDescription {
  // Of packets of NetworkDescription::packet_bytes; unused where there is a trace.
  double rate_packets_per_ms = 1;
  double delay_ms = 0;  // behind it; before its queue in Cellsim's semantics
  std::optional<std::uint32_t> buffer_packets;  // that wait; none: infinite
  Choice queue = {"drop-tail", "", {}};         // elements/queues.h
  // Of every packet.
  double loss_probability = 0;
  std::optional<TraceDescription> trace = {};
  std::optional<GilbertElliottLoss> gilbert_elliott = {};  // in place of the probability
  // What becomes of rate, delay and loss. A segment has the delay and the loss of when it has left
  // the link, and does not overtake others when the delay falls.
  std::optional<LinkChanges> changes = {};
  std::optional<Policer> policer = {};
  std::optional<JitterBoxDescription> jitter_box = {};
};

// Whether it has a rate, a delay and a loss, and nothing else to it.
bool is_constant(const LinkDescription& link);

// Whether its delay lies before its queue.
bool delays_before(const LinkDescription& link);

// Over the long run, of packets of so many bytes. What routers are told that ask for a capacity.
double mean_rate_packets_per_ms(const LinkDescription& link, double packet_bytes);

// Throws std::invalid_argument with one sentence if there can be no such link. `field` is what the
// sentence calls it.
void validate(const LinkDescription& link, const std::string& field);

}  // namespace remy
