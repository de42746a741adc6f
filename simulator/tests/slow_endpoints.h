#pragma once

#include <memory>
#include <string_view>

#include "core/choice.h"
#include "transports/transport.h"

namespace remy {

// The endpoints once more, as plainly as they can be written: every packet that is not acknowledged
// in order is kept in a map with what is known of it, and counted anew when a number is asked for.
// None if this endpoint and variant is not written twice (those of ns-2, clocks that are noisy,
// delayed ACKs, what repairs nothing); controllers and memories of RemyCCs are not.
std::unique_ptr<Endpoint> slow_endpoint(const Choice& choice, EndpointSetting setting);

}  // namespace remy
