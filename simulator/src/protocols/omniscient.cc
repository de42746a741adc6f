#include "protocols/protocol.h"

namespace remy {

// The papers' bound, which needs no controller.
Protocol omniscient() {
  return {
      .name = "omniscient",
      .title = "Omniscient",
      .variants = {{
          .name = "equal-share",
          .source = "An Experimental Study of the Learnability of Congestion Control, section 3",
          .parameters = {},
      }},
      .needs = {},
      .is_omniscient = true,
  };
}

}  // namespace remy
