#pragma once

#include <cstdint>

#include "core/random.h"

namespace remy {

// Bursty loss (Gilbert 1960, "Capacity of a Burst-Noise Channel"; Elliott 1963): a Markov chain of
// two states. Each packet is lost with the probability of the current state, and then the chain
// makes a step. The fraction of packets in the bad state is good_to_bad / (good_to_bad +
// bad_to_good), and bursts last 1 / bad_to_good packets on average.
struct GilbertElliottLoss {
  double good_to_bad = 0.01;
  double bad_to_good = 0.3;
  double loss_in_good = 0;
  double loss_in_bad = 1;
};

class GilbertElliott {
 public:
  // `key` is that of its random draws. The chain starts in the good state.
  GilbertElliott(const GilbertElliottLoss& parameters, std::uint64_t key)
      : parameters_(parameters), key_(key) {}

  // Returns true if the next packet is lost.
  bool loses_next() {
    const std::uint64_t draw = 2 * packets_++;
    const bool is_lost = unit_interval(random_bits(key_, draw)) <
                         (is_bad_ ? parameters_.loss_in_bad : parameters_.loss_in_good);
    const bool changes = unit_interval(random_bits(key_, draw + 1)) <
                         (is_bad_ ? parameters_.bad_to_good : parameters_.good_to_bad);
    is_bad_ = is_bad_ != changes;
    return is_lost;
  }

 private:
  GilbertElliottLoss parameters_;
  std::uint64_t key_;
  std::uint64_t packets_ = 0;
  bool is_bad_ = false;
};

}  // namespace remy
