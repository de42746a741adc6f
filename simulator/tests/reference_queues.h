#pragma once

#include <memory>

#include "elements/queues.h"

namespace remy {

// Slow reference implementations of the queue disciplines, written as in their RFCs and papers,
// with which those of elements/ are compared. Nothing is cached: sums and searches scan all
// packets.
std::unique_ptr<Queue> reference_queue(const Choice& choice, const QueueSetting& setting);

}  // namespace remy
