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
          [](const Chosen& chosen, std::uint64_t key) {
            return chosen.variant() == "v1" ? make_bbr_v1(chosen, key) : make_bbr_v3(chosen, key);
          },
  };
}

}  // namespace remy
