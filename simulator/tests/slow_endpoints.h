#pragma once

#include <memory>
#include <string_view>

#include "core/choice.h"
#include "transports/transport.h"

namespace remy {

// Makes a second, simple implementation of an endpoint, which tests compare with the real one. It
// keeps every packet that is not acknowledged in order in a map, and counts anew whenever it needs
// a number. Null if there is none: for TCP's ns-2 variants, noisy clocks, delayed ACKs, and
// protocols without retransmission. Congestion controllers and RemyCC memories are the real ones.
std::unique_ptr<Endpoint> slow_endpoint(const Choice& choice, EndpointSetting setting);

}  // namespace remy
