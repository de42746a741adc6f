#include "protocols/bbr.h"

#include "protocols/protocol.h"

namespace remy {

Protocol bbr() {
  return {
      .name = "bbr",
      .title = "BBR",
      .variants = {bbr_v1_variant(), bbr_v3_variant()},
      .needs = {.needs_rate_samples = true},
      .make =
          [](const ParameterValues& values, std::uint64_t key) {
            return values.variant() == "v1" ? make_bbr_v1(values, key) : make_bbr_v3(values, key);
          },
  };
}

}  // namespace remy
