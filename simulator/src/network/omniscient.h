#pragma once

#include "core/interruption.h"
#include "network/description.h"
#include "network/results.h"

namespace remy {

// Computes the results of omniscient senders: each always has an equal share of the link, without a
// queue (Sivaraman et al., "An Experimental Study of the Learnability of Congestion Control",
// section 3). The computation is a fluid model of the schedules, not a simulation of packets. A
// packet counts once its share is complete and has the RTT of an idle link. An on period of a
// number of packets gives up its share after its last packet, and ends one RTT later. All senders
// of the network must be omniscient and on one link. Throws Interrupted.
NetworkResults run_omniscient(const NetworkDescription& network, double duration_ms,
                              std::uint64_t seed, Interruption* interruption);

}  // namespace remy
