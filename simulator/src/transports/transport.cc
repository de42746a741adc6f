#include "transports/transport.h"

#include <algorithm>
#include <string>

#include "core/requirement.h"

namespace remy {

// Each is defined in the file of its endpoint.
Transport datagram();
Transport ns2();
Transport tcp();

std::span<const Transport> transports() {
  static const std::vector<Transport> kTransports = {
      datagram(),
      ns2(),
      tcp(),
  };
  return kTransports;
}

const Transport& find_transport(std::string_view name) {
  const auto found = std::ranges::find(transports(), name, &Transport::name);
  if (found == transports().end()) {
    refuse("there is no transport \"" + std::string(name) +
           "\"; there are: " + names_of(transports()));
  }
  return *found;
}

}  // namespace remy
