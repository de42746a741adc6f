#pragma once

#include "network/network.h"

namespace remy {

// What senders get that know at once who else is on: an equal share of the link each, and no queue
// (Sivaraman et al., "An Experimental Study of the Learnability of Congestion Control", section 3).
// Nothing is simulated; it follows from the schedules alone, as in a fluid. Packets are those
// whose share was whole, each with the RTT of an idle link; an on period by packets ends that RTT
// after its last packet's share, when it has no share any more. All senders of the network are
// omniscient, and on one link. Throws Interrupted.
NetworkResults run_omniscient(const NetworkDescription& network, double duration_ms,
                              std::uint64_t seed, Interruption* interruption);

}  // namespace remy
