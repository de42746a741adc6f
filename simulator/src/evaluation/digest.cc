#include "evaluation/digest.h"

#include <bit>

#include "core/random.h"

namespace remy {
namespace {

class Digest {
 public:
  void add(std::uint64_t word) { state_ = scramble(state_ ^ scramble(word + kGoldenRatio)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }

  std::string hexadecimal() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
      digits += "0123456789abcdef"[state_ >> shift & 15U];
    }
    return digits;
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace

std::string digest(const std::vector<SpecimenOutcome>& outcomes) {
  Digest digest;
  for (const SpecimenOutcome& outcome : outcomes) {
    digest.add(std::uint64_t{outcome.senders.size()});
    for (const SenderResults& sender : outcome.senders) {
      digest.add(sender.packets_received);
      digest.add(sender.packets_sent);
      digest.add(sender.packets_lost);
      digest.add(sender.on_ms);
      digest.add(sender.share_ms);
      digest.add(sender.delay_sum_ms);
      digest.add(sender.first_on_ms);
    }
  }
  return digest.hexadecimal();
}

}  // namespace remy
