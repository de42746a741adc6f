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

// A kind of link once more, as plainly as it can be written: it is polled, one opportunity or
// transmission at a time, and looks its schedule up from the beginning whenever it needs it.
class SlowLink {
 public:
  // What waits in a jitter box, and for how long it travels behind it.
  struct Held {
    Segment segment;
    double delay_ms = 0;
    double release_ms = 0;
  };

  SlowLink(const LinkDescription& description, std::uint32_t index, double packet_bytes,
           std::uint64_t network_key, double duration_ms);

  Queue& queue() { return *queue_; }
  const Queue& queue() const { return *queue_; }

  // Whether the policer lets a segment come to the queue.
  bool admits(const Segment& segment, double now_ms);
  // Whether it has found its queue empty. Then something has come to that, and it may begin at
  // once.
  bool is_idle() const { return is_idle_; }
  void arrived(double now_ms);
  void begin(double now_ms, DropListener& drops);
  // When the link does something next, and that: what leaves it then, if anything does.
  double next_ms() const;
  std::optional<Segment> poll(double now_ms, DropListener& drops);
  std::uint64_t transmitted() const { return transmitted_; }

  // Of what leaves the link at departed_ms; may lose it.
  double delay_ms(double departed_ms) const;
  void draw_loss(Segment& segment, double departed_ms);

  // Into its jitter box; what comes out of it, now or at a known time; and all, at
  // next_release_ms().
  void hold(const Segment& segment, double now_ms, double delay_ms);
  std::vector<Held> released();
  double next_release_ms() const;
  std::vector<Held> release(double now_ms);
  bool reorders() const;

 private:
  LinkCondition condition(double time_ms) const;
  // The first time from then on at which there is no outage.
  double after_outage_ms(double time_ms) const;
  std::vector<std::pair<double, LinkCondition>> changes(double until_ms) const;
  std::uint64_t draws_key(std::uint64_t what) const;
  void ask(double now_ms, DropListener& drops);
  bool counts_bytes() const;
  double opportunity_bytes() const;
  double header_bytes() const;

  LinkDescription description_;
  double packet_bytes_;
  double duration_ms_;
  std::uint64_t key_;
  std::unique_ptr<Queue> queue_;
  // Every change until the end.
  std::vector<std::pair<double, LinkCondition>> changes_;
  std::vector<double> opportunities_ms_;
  std::size_t opportunity_ = 0;  // the next
  bool is_idle_ = true;          // has found its queue empty
  std::optional<double> asks_ms_;
  std::optional<Segment> in_service_;
  double ends_ms_ = 0;
  double missing_bytes_ = 0;  // of what is in service
  double left_bytes_ = 0;     // of the opportunity
  double tokens_bytes_ = 0;
  double tokens_at_ms_ = 0;
  bool is_bad_ = false;
  std::uint64_t departures_ = 0;
  std::uint64_t transmitted_ = 0;
  std::vector<Held> box_;
  double opened_ms_ = 0;  // when the first came into the box
  double last_release_ms_ = 0;
};

}  // namespace remy
