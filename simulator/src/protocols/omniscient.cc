#include "protocols/protocol.h"

namespace remy {

// The omniscient protocol of the papers: an upper bound, computed without a controller.
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
