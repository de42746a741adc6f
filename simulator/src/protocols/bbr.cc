#include "protocols/bbr.h"

#include "protocols/protocol.h"

namespace remy {

Protocol bbr() {
  return {
      .name = "bbr",
      .title = "BBR",
      .variants = {bbr_v1_variant()},
      .needs = {},
      .make = [](const Chosen& chosen, std::uint64_t key) { return make_bbr_v1(chosen, key); },
  };
}

}  // namespace remy
