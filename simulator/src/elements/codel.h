#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/choice.h"
#include "elements/queue.h"
#include "elements/ring.h"

namespace remy {

// Where CoDel's count of drops begins when it drops again soon after it has stopped.
enum class CoDelReentry : std::uint8_t {
  // RFC 8289 and Linux: by how much it had grown, if the last drop is within 16 intervals.
  kRfc8289,
  // Nichols' code for ns-2: two less than it was, if the last drop is within 8 intervals.
  kNs2,
};

struct CoDelParameters {
  double target_ms = 5;
  double interval_ms = 100;
  CoDelReentry reentry = CoDelReentry::kRfc8289;
  bool uses_ecn = false;  // segments that are capable of ECN are marked instead of dropped
};

// Controlled delay (RFC 8289): when no segment has waited for less than a target for an interval,
// segments are dropped from the head, ever faster until one waits for less. This is what CoDel
// knows of one queue. Square roots are exact, where Linux has 16 bits of them.
class CoDel {
 public:
  // The segment that leaves `source` next, if any does. A source has
  //   take():      its first segment, taken from it; null if it is empty.
  //   is_short():  what is left is too little to drop from.
  template <class Source>
  [[gnu::always_inline]] Segment* depart(const CoDelParameters& parameters, Source source,
                                         double now_ms, DropListener& drops) {
    Segment* departing = source.take();
    const bool may_drop = may_be_dropped(parameters, source, departing, now_ms);
    if (departing == nullptr || (!is_dropping_ && !may_drop)) [[likely]] {
      return departing;
    }
    return drop(parameters, source, departing, may_drop, now_ms, drops);
  }

  // The queue has become inactive: it does not drop when it starts again.
  void stop_dropping() { is_dropping_ = false; }

 private:
  static constexpr double kNotAbove = std::numeric_limits<double>::infinity();

  template <class Source>
  [[gnu::noinline]] Segment* drop(const CoDelParameters& parameters, Source source,
                                  Segment* departing, bool may_drop, double now_ms,
                                  DropListener& drops) {
    // RFC 8289, section 5.5: while dropping, the next drop is due at a set time; one segment that
    // waited for less than the target ends it.
    if (is_dropping_) {
      is_dropping_ = may_drop;
      while (is_dropping_ && now_ms >= next_drop_ms_) {
        if (marks(parameters, *departing)) {
          set_next_drop(parameters, next_drop_ms_, count_ + 1);
          break;
        }
        drops.dropped(*departing, now_ms);
        departing = source.take();
        is_dropping_ = may_be_dropped(parameters, source, departing, now_ms);
        if (is_dropping_) {
          set_next_drop(parameters, next_drop_ms_, count_ + 1);
        }
      }
    } else {
      is_dropping_ = true;
      if (!marks(parameters, *departing)) {
        // There is another one: dropping from a short source is not allowed.
        drops.dropped(*departing, now_ms);
        departing = source.take();
        may_be_dropped(parameters, source, departing, now_ms);
      }
      set_next_drop(parameters, now_ms, first_count(parameters, now_ms));
      first_count_ = count_;
    }
    return departing;
  }

  // RFC 8289, section 5.6: whether the segment, just taken, may be dropped: none waited for less
  // than the target for an interval now.
  template <class Source>
  bool may_be_dropped(const CoDelParameters& parameters, const Source& source,
                      const Segment* segment, double now_ms) {
    if (segment == nullptr || now_ms - segment->queued_ms < parameters.target_ms ||
        source.is_short()) {
      above_since_interval_ms_ = kNotAbove;
      return false;
    }
    if (above_since_interval_ms_ == kNotAbove) {
      above_since_interval_ms_ = now_ms + parameters.interval_ms;
      return false;
    }
    return now_ms >= above_since_interval_ms_;
  }

  static bool marks(const CoDelParameters& parameters, Segment& segment) {
    if (!parameters.uses_ecn || !segment.is_ecn_capable) {
      return false;
    }
    segment.is_marked = true;
    return true;
  }

  std::uint64_t first_count(const CoDelParameters& parameters, double now_ms) const {
    const double since_ms = now_ms - next_drop_ms_;
    if (parameters.reentry == CoDelReentry::kNs2) {
      return count_ > 2 && since_ms < 8 * parameters.interval_ms ? count_ - 2 : 1;
    }
    const std::uint64_t grown = count_ - first_count_;
    return grown > 1 && since_ms < 16 * parameters.interval_ms ? grown : 1;
  }

  // RFC 8289, section 3.3: the time between drops falls with the square root of their number.
  void set_next_drop(const CoDelParameters& parameters, double from_ms, std::uint64_t count) {
    count_ = count;
    next_drop_ms_ = from_ms + parameters.interval_ms / std::sqrt(static_cast<double>(count));
  }

  // When segments have waited for the target, or longer, for an interval.
  double above_since_interval_ms_ = kNotAbove;
  double next_drop_ms_ = 0;
  std::uint64_t count_ = 0;        // of drops since dropping began, on which the rate depends
  std::uint64_t first_count_ = 0;  // what it was when dropping began last
  bool is_dropping_ = false;
};

// What disciplines with CoDel in them can be told of it.
std::vector<Parameter> codel_parameters(bool has_ecn);

// One queue under CoDel.
class CoDelQueue final : public Queue {
 public:
  // `largest_bytes` of a segment: no fewer bytes are left waiting.
  CoDelQueue(const CoDelParameters& parameters, std::uint64_t limit_packets,
             std::uint32_t largest_bytes)
      : parameters_(parameters), limit_packets_(limit_packets), largest_bytes_(largest_bytes) {}

  void accept(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* depart(double now_ms, DropListener& drops) override;

 private:
  struct Source {
    CoDelQueue& queue;
    Segment* take() {
      if (queue.waiting_.empty()) {
        return nullptr;
      }
      Segment& segment = queue.waiting_.pop();
      queue.left(segment);
      return &segment;
    }
    bool is_short() const { return queue.bytes() <= queue.largest_bytes_; }
  };

  void accept_at_full(const Segment& segment, double now_ms, DropListener& drops);

  CoDelParameters parameters_;
  std::uint64_t limit_packets_;
  std::uint64_t room_packets_ = 0;  // of which there are places for so many
  std::uint32_t largest_bytes_;
  Ring<Segment> waiting_;
  CoDel codel_;
};

}  // namespace remy
