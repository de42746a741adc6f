#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/choice.h"
#include "core/ring.h"
#include "elements/queue.h"

namespace remy {

// The initial drop count when CoDel enters the dropping state again soon after it has left it.
enum class CoDelReentry : std::uint8_t {
  // RFC 8289 and Linux: count - lastcount if the last drop was less than 16 intervals ago, else 1.
  kRfc8289,
  // Nichols' code for ns-2: count - 2 if the last drop was less than 8 intervals ago, else 1.
  kNs2,
};

struct CoDelParameters {
  double target_ms = 5;
  double interval_ms = 100;
  CoDelReentry reentry = CoDelReentry::kRfc8289;
  bool uses_ecn = false;  // ECN-capable segments are marked instead of dropped
};

// The CoDel state of one queue (Controlled Delay, RFC 8289). When the sojourn time has stayed above
// the target for an interval, segments are dropped from the head at increasing rate until a sojourn
// time is below the target. Square roots are exact; Linux uses a 16-bit approximation.
class CoDel {
 public:
  // Returns the next segment to leave `supply`, or null. A supply has
  //     take():      removes and returns its first segment; null if it is empty.
  //     is_short():  returns true if the backlog is at most one packet, too short to drop from.
  template <class PacketSupply>
  [[gnu::always_inline]] Segment* dequeue(const CoDelParameters& parameters, PacketSupply supply,
                                          double now_ms, DropListener& drops) {
    Segment* departing = supply.take();
    const bool ok_to_drop = update_first_above_time(parameters, supply, departing, now_ms);
    if (departing == nullptr || (!is_dropping_ && !ok_to_drop)) [[likely]] {
      return departing;
    }
    return drop(parameters, supply, departing, ok_to_drop, now_ms, drops);
  }

  // Leaves the dropping state, as the queue has become inactive.
  void stop_dropping() { is_dropping_ = false; }

 private:
  static constexpr double kNotAbove = std::numeric_limits<double>::infinity();

  template <class PacketSupply>
  [[gnu::noinline]] Segment* drop(const CoDelParameters& parameters, PacketSupply supply,
                                  Segment* departing, bool ok_to_drop, double now_ms,
                                  DropListener& drops) {
    // RFC 8289, section 5.5: in the dropping state the next drop is at drop_next. A sojourn time
    // below the target leaves the state.
    if (is_dropping_) {
      is_dropping_ = ok_to_drop;
      while (is_dropping_ && now_ms >= drop_next_ms_) {
        if (marks(parameters, *departing)) {
          set_drop_next(parameters, drop_next_ms_, count_ + 1);
          break;
        }
        drops.on_drop(*departing, now_ms);
        departing = supply.take();
        is_dropping_ = update_first_above_time(parameters, supply, departing, now_ms);
        if (is_dropping_) {
          set_drop_next(parameters, drop_next_ms_, count_ + 1);
        }
      }
    } else {
      is_dropping_ = true;
      if (!marks(parameters, *departing)) {
        // take() does not return null here: ok_to_drop is false for a short supply.
        drops.on_drop(*departing, now_ms);
        departing = supply.take();
        update_first_above_time(parameters, supply, departing, now_ms);
      }
      set_drop_next(parameters, now_ms, initial_count(parameters, now_ms));
      last_count_ = count_;
    }
    return departing;
  }

  // RFC 8289, section 5.6 (dodequeue): updates first_above_time for a segment that was just taken.
  // Returns ok_to_drop: whether the sojourn time has been above the target for an interval.
  template <class PacketSupply>
  bool update_first_above_time(const CoDelParameters& parameters, const PacketSupply& supply,
                               const Segment* segment, double now_ms) {
    if (segment == nullptr || now_ms - segment->queued_ms < parameters.target_ms ||
        supply.is_short()) {
      first_above_time_ms_ = kNotAbove;
      return false;
    }
    if (first_above_time_ms_ == kNotAbove) {
      first_above_time_ms_ = now_ms + parameters.interval_ms;
      return false;
    }
    return now_ms >= first_above_time_ms_;
  }

  static bool marks(const CoDelParameters& parameters, Segment& segment) {
    if (!parameters.uses_ecn || !segment.is_ecn_capable) {
      return false;
    }
    segment.is_marked = true;
    return true;
  }

  std::uint64_t initial_count(const CoDelParameters& parameters, double now_ms) const {
    const double since_ms = now_ms - drop_next_ms_;
    if (parameters.reentry == CoDelReentry::kNs2) {
      return count_ > 2 && since_ms < 8 * parameters.interval_ms ? count_ - 2 : 1;
    }
    const std::uint64_t delta = count_ - last_count_;
    return delta > 1 && since_ms < 16 * parameters.interval_ms ? delta : 1;
  }

  // RFC 8289, section 3.3, control law: the time between drops is inversely proportional to the
  // square root of their number.
  void set_drop_next(const CoDelParameters& parameters, double from_ms, std::uint64_t count) {
    count_ = count;
    drop_next_ms_ = from_ms + parameters.interval_ms / std::sqrt(static_cast<double>(count));
  }

  // RFC 8289 first_above_time: when the sojourn time will have been above the target for an
  // interval.
  double first_above_time_ms_ = kNotAbove;
  double drop_next_ms_ = 0;
  std::uint64_t count_ = 0;  // drops in this dropping state; sets the drop rate
  // RFC 8289 lastcount: count_ at the start of the last dropping state.
  std::uint64_t last_count_ = 0;
  bool is_dropping_ = false;
};

// The CoDel parameters of queue disciplines that use CoDel, without and with marking of packets.
std::vector<Parameter> codel_parameters();
std::vector<Parameter> codel_parameters_with_ecn();

// A single queue managed by CoDel.
class CoDelQueue final : public Queue {
 public:
  // `largest_bytes` is the size of the largest segment (RFC 8289 maxpacket). CoDel does not drop if
  // the backlog is at most this.
  CoDelQueue(const CoDelParameters& parameters, std::uint64_t limit_packets,
             std::uint32_t largest_bytes)
      : parameters_(parameters), limit_packets_(limit_packets), largest_bytes_(largest_bytes) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override;
  Segment* dequeue(double now_ms, DropListener& drops) override;

 private:
  struct PacketSupply {
    CoDelQueue& queue;
    Segment* take() {
      if (queue.waiting_.empty()) {
        return nullptr;
      }
      Segment& segment = queue.waiting_.pop();
      queue.count_dequeued(segment);
      return &segment;
    }
    bool is_short() const { return queue.bytes() <= queue.largest_bytes_; }
  };

  void accept_without_room(const Segment& segment, double now_ms, DropListener& drops);

  CoDelParameters parameters_;
  std::uint64_t limit_packets_;
  std::uint64_t capacity_packets_ = 0;  // arrivals up to this length need no growth of the ring
  std::uint32_t largest_bytes_;
  Ring<Segment> waiting_;
  CoDel codel_;
};

}  // namespace remy
