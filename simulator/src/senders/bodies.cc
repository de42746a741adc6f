#include "senders/bodies.h"

#include <algorithm>
#include <string>

#include "core/requirement.h"

namespace remy {

// One a file of this folder.
BodyKind datagram();
BodyKind ns2();
BodyKind tcp();

std::span<const BodyKind> body_kinds() {
  static const std::vector<BodyKind> kKinds = {
      datagram(),
      ns2(),
      tcp(),
  };
  return kKinds;
}

const BodyKind& find_body_kind(std::string_view name) {
  const auto found = std::ranges::find(body_kinds(), name, &BodyKind::name);
  if (found == body_kinds().end()) {
    refuse("there is no transport \"" + std::string(name) +
           "\"; there are: " + names_of(body_kinds()));
  }
  return *found;
}

}  // namespace remy
