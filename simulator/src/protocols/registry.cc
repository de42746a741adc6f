#include <algorithm>
#include <string>
#include <vector>

#include "core/requirement.h"
#include "protocols/protocol.h"

namespace remy {

// Each is defined in the file of the same name.
Protocol aimd();
Protocol bbr();
Protocol compound();
Protocol constant_rate();
Protocol copa();
Protocol cubic();
Protocol dctcp();
Protocol hybla();
Protocol illinois();
Protocol ledbat();
Protocol newreno();
Protocol omniscient();
Protocol pcc_allegro();
Protocol pcc_vivace();
Protocol remy_aimd();
Protocol sprout();
Protocol vegas();
Protocol xcp();

std::span<const Protocol> protocols() {
  static const std::vector<Protocol> kProtocols = {
      aimd(),        bbr(),        compound(),  constant_rate(), copa(),    cubic(),
      dctcp(),       hybla(),      illinois(),  ledbat(),        newreno(), omniscient(),
      pcc_allegro(), pcc_vivace(), remy_aimd(), sprout(),        vegas(),   xcp(),
  };
  return kProtocols;
}

const Protocol& find_protocol(std::string_view name) {
  const auto found = std::ranges::find(protocols(), name, &Protocol::name);
  if (found == protocols().end()) {
    refuse("there is no protocol \"" + std::string(name) +
           "\"; there are: " + names_of(protocols()));
  }
  return *found;
}

}  // namespace remy
