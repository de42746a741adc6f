#pragma once

#include <memory>

#include "elements/queues.h"

namespace remy {

// Reference implementations of the queue disciplines, written as in their RFCs and papers: deques
// in maps, searched by scanning, recomputed every time. Slow; elements/ is tested against them.
std::unique_ptr<Queue> reference_queue(const Choice& choice, const QueueSetting& setting);

}  // namespace remy
