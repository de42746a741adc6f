#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "elements/queue.h"
#include "network/link_description.h"
#include "senders/segment.h"

namespace remy {

// Reference implementation of all kinds of links. It is polled, one opportunity or transmission at
// a time, and searches its schedule from the start each time.
class ReferenceLink {
 public:
  // A segment in the jitter box, and its delay after release.
  struct Held {
    Segment segment;
    double delay_ms = 0;
    double release_ms = 0;
  };

  ReferenceLink(const LinkDescription& description, std::uint32_t index, double packet_bytes,
                std::uint64_t network_key, double duration_ms);

  Queue& queue() { return *queue_; }
  const Queue& queue() const { return *queue_; }

  // Returns true if the policer admits a segment to the queue.
  bool admits(const Segment& segment, double now_ms);
  // Returns true if the link has found its queue empty, so an arrival may be transmitted at once.
  bool is_idle() const { return is_idle_; }
  void arrived(double now_ms);
  // Starts the transmission of an arrival at an idle link.
  void begin(double now_ms, DropListener& drops);
  // Time of the link's next event, and its handler, which returns the segment that leaves the link,
  // if any.
  double next_ms() const;
  std::optional<Segment> poll(double now_ms, DropListener& drops);
  std::uint64_t transmitted() const { return transmitted_; }

  // The delay of a segment that leaves the link at departed_ms.
  double delay_ms(double departed_ms) const;
  void draw_loss(Segment& segment, double departed_ms);

  // Puts a segment into the jitter box.
  void hold(const Segment& segment, double now_ms, double delay_ms);
  // Removes and returns the segments whose release time is known.
  std::vector<Held> released();
  // The time at which release() must be called, which removes and returns the held batch.
  double next_release_ms() const;
  std::vector<Held> release(double now_ms);
  bool reorders() const;

 private:
  LinkCondition condition(double time_ms) const;
  // Returns the first time from time_ms on without an outage.
  double after_outage_ms(double time_ms) const;
  std::vector<std::pair<double, LinkCondition>> changes(double until_ms) const;
  std::uint64_t stream_key(std::uint64_t stream) const;
  void take_segment(double now_ms, DropListener& drops);
  bool counts_bytes() const;
  double opportunity_bytes() const;
  double header_bytes() const;

  LinkDescription description_;
  double packet_bytes_;
  double duration_ms_;
  std::uint64_t key_;
  std::unique_ptr<Queue> queue_;
  // All changes until the end.
  std::vector<std::pair<double, LinkCondition>> changes_;
  std::vector<double> opportunities_ms_;
  std::size_t opportunity_ = 0;     // index of the next opportunity
  bool is_idle_ = true;             // the link has found its queue empty
  std::optional<double> takes_ms_;  // when the link takes the next segment from the queue
  std::optional<Segment> in_service_;
  double ends_ms_ = 0;
  double missing_bytes_ = 0;  // bytes of the segment in transmission that are still to be sent
  double left_bytes_ = 0;     // unused bytes of the current opportunity
  double tokens_bytes_ = 0;
  double tokens_at_ms_ = 0;
  bool is_bad_ = false;
  std::uint64_t departures_ = 0;
  std::uint64_t transmitted_ = 0;
  std::vector<Held> box_;
  double opened_ms_ = 0;  // arrival of the first held segment
  double last_release_ms_ = 0;
};

}  // namespace remy
