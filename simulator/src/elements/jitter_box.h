#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>

#include "core/random.h"
#include "elements/ring.h"
#include "senders/segment.h"

namespace remy {

// Everything at the next multiple of a time, as a link does that has its turn so often.
struct PeriodicRelease {
  double period_ms = 10;
};

// So many packets at once, or what there is when the first has waited for the longest time, as
// links do that aggregate frames.
struct BatchRelease {
  std::uint32_t packets = 8;
  double longest_wait_ms = 10;
};

// Some packets for a time that is uniform from 0.
struct RandomRelease {
  double longest_hold_ms = 10;
  double probability = 1;
  bool reorders = false;  // others overtake what is held; else they wait behind it
};

// What happens to segments that have left a link: they are held, and released in order unless it
// says otherwise.
using JitterBoxDescription = std::variant<PeriodicRelease, BatchRelease, RandomRelease>;

// One of them. Segments are put in as they leave the link, or before, when it is known when they
// will; never out of order.
class JitterBox {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // `key` is of its draws.
  JitterBox(const JitterBoxDescription& description, std::uint64_t key)
      : description_(description), key_(key) {}

  // When the oldest that wait are released unless a batch is full before.
  double next_ms() const { return held_.empty() ? kNever : release_ms_; }
  // How many wait whose time is not known yet.
  std::size_t size() const { return held_.size(); }

  // A segment that leaves the link at departure_ms, and goes on for delay_ms after its release.
  // `name` is the segment's own. Hands `release(segment, release_ms, delay_ms)` whatever is known
  // now to be released then.
  template <class Release>
  void put(const Segment& segment, double departure_ms, double delay_ms, std::uint64_t name,
           Release release) {
    if (const auto* const batch = std::get_if<BatchRelease>(&description_)) {
      if (!held_.empty() && departure_ms > release_ms_) {
        release_all(release_ms_, release);
      }
      if (held_.empty()) {
        release_ms_ = departure_ms + batch->longest_wait_ms;
      }
      held_.push({segment, delay_ms});
      if (held_.size() >= batch->packets) {
        release_all(departure_ms, release);
      }
      return;
    }
    if (const auto* const periodic = std::get_if<PeriodicRelease>(&description_)) {
      // Never before it came, whatever is lost in rounding.
      const double turn_ms = std::ceil(departure_ms / periodic->period_ms) * periodic->period_ms;
      release(segment, std::max(turn_ms, departure_ms), delay_ms);
      return;
    }
    const RandomRelease& random = std::get<RandomRelease>(description_);
    double at_ms = departure_ms;
    if (unit_interval(random_bits(key_, 2 * name)) < random.probability) {
      at_ms += random.longest_hold_ms * unit_interval(random_bits(key_, 2 * name + 1));
    }
    release_ms_ = random.reorders ? at_ms : std::max(release_ms_, at_ms);
    release(segment, release_ms_, delay_ms);
  }

  // It is next_ms().
  template <class Release>
  void tick(Release release) {
    release_all(release_ms_, release);
  }

 private:
  struct Held {
    Segment segment;
    double delay_ms;
  };

  template <class Release>
  void release_all(double release_ms, Release release) {
    while (!held_.empty()) {
      release(held_.front().segment, release_ms, held_.front().delay_ms);
      held_.pop();
    }
  }

  JitterBoxDescription description_;
  std::uint64_t key_;
  Ring<Held> held_;        // a batch
  double release_ms_ = 0;  // at the latest; or of the last that was
};

}  // namespace remy
