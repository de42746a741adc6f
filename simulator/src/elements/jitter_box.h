#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>

#include "core/random.h"
#include "core/ring.h"
#include "senders/segment.h"

namespace remy {

// Releases segments at multiples of a period, as a link does that transmits in periodic slots.
struct PeriodicRelease {
  double period_ms = 10;
};

// Releases segments in batches: when `packets` are held, or when the first has waited for the
// longest time, as links do that aggregate frames.
struct BatchRelease {
  std::uint32_t packets = 8;
  double longest_wait_ms = 10;
};

// Holds a random subset of the packets for a time that is uniform from 0 to longest_hold_ms.
struct RandomRelease {
  double longest_hold_ms = 10;
  double probability = 1;
  bool reorders = false;  // true: later packets overtake held ones; false: they wait behind them
};

// How segments are delayed after they have left a link. They stay in order unless
// RandomRelease::reorders.
using JitterBoxDescription = std::variant<PeriodicRelease, BatchRelease, RandomRelease>;

// Delays segments as described. put() is called in the order of departures from the link, when a
// departure time is known.
class JitterBox {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // `key` is that of its random draws.
  JitterBox(const JitterBoxDescription& description, std::uint64_t key)
      : description_(description), key_(key) {}

  // When the held batch is released, unless it is full earlier.
  double next_ms() const { return held_.empty() ? kNever : release_ms_; }
  // Number of held segments whose release time is not known yet.
  std::size_t size() const { return held_.size(); }

  // Takes a segment that leaves the link at departure_ms and is delayed by delay_ms after its
  // release. `name` identifies the segment for random draws. Calls `release(segment, release_ms,
  // delay_ms)` for each segment whose release time is now known.
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
      // Rounding must not give a release before the departure.
      const double slot_ms = std::ceil(departure_ms / periodic->period_ms) * periodic->period_ms;
      release(segment, std::max(slot_ms, departure_ms), delay_ms);
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

  // Called at next_ms().
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
  Ring<Held> held_;        // the current batch
  double release_ms_ = 0;  // latest release time of the batch, or release time of the last segment
};

}  // namespace remy
