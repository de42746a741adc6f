#include <cstddef>
#include <cstdint>

#include "dna_round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  remy::dna_round_trips({reinterpret_cast<const char*>(data), size});
  return 0;
}
