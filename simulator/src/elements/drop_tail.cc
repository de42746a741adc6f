#include "elements/drop_tail.h"

namespace remy {

void DropTail::enqueue(const Segment& segment, double now_ms, DropListener& drops) {
  const bool has_room = packets() < limits_.packets && bytes() + segment.bytes <= limits_.bytes;
  if (!has_room && !is_link_idle_) {
    drops.on_drop(segment, now_ms);
    return;
  }
  Segment& kept = waiting_.push();
  kept = segment;
  kept.queued_ms = now_ms;
  is_link_idle_ = false;
  count_enqueued(segment);
}

Segment* DropTail::dequeue(double, DropListener&) {
  if (waiting_.empty()) {
    is_link_idle_ = true;
    return nullptr;
  }
  Segment& departing = waiting_.pop();
  count_dequeued(departing);
  return &departing;
}

}  // namespace remy
