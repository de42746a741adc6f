#pragma once

#include <memory>

#include "elements/queues.h"

namespace remy {

// The queue disciplines once more, as their RFCs and papers write them down: deques in maps, found
// by scanning, computed anew every time. Slow, and the yardstick for those in elements/.
std::unique_ptr<Queue> slow_queue(const Choice& choice, const QueueSetting& setting);

}  // namespace remy
