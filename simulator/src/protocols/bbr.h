#pragma once

#include <cstdint>
#include <memory>

#include "core/choice.h"
#include "senders/congestion_controller.h"

namespace remy {

// The two versions of BBR, each in its own file.
Variant bbr_v1_variant();
std::unique_ptr<CongestionController> make_bbr_v1(const ParameterValues& values, std::uint64_t key);
Variant bbr_v3_variant();
std::unique_ptr<CongestionController> make_bbr_v3(const ParameterValues& values, std::uint64_t key);

}  // namespace remy
