#pragma once

#include <cstdint>
#include <limits>

namespace remy {

// Senders that wait for their pacing to let the next packet leave, by time; at equal times, by
// index. A list linked both ways through the senders: the first is at hand, leaving costs nothing,
// and a new time is sought from the back, where it nearly always belongs because it lies one
// intersend ahead.
class SendQueue {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // A place in the list.
  struct Waiter {
    double due_ms = kNever;
    Waiter* previous = nullptr;
    Waiter* next = nullptr;
    std::uint32_t index = 0;
  };

  SendQueue() {
    front_.due_ms = -kNever;
    front_.next = &back_;
    back_.previous = &front_;
  }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // Its due_ms is infinity if no sender waits.
  Waiter& first() { return *front_.next; }

  // The sender waits until due_ms, whether it waited before or not.
  [[gnu::always_inline]] void wait(Waiter& waiter, double due_ms) {
    if (waiter.next != nullptr) {
      unlink(waiter);
    }
    insert(waiter, due_ms);
  }

  // The same for a sender that waits already.
  [[gnu::always_inline]] void wait_again(Waiter& waiter, double due_ms) {
    unlink(waiter);
    insert(waiter, due_ms);
  }

  // The sender does not wait any more, if it did.
  [[gnu::always_inline]] void leave(Waiter& waiter) {
    if (waiter.next != nullptr) {
      unlink(waiter);
      waiter.next = nullptr;
      waiter.due_ms = kNever;
    }
  }

 private:
  static void unlink(Waiter& waiter) {
    waiter.previous->next = waiter.next;
    waiter.next->previous = waiter.previous;
  }

  [[gnu::always_inline]] void insert(Waiter& waiter, double due_ms) {
    waiter.due_ms = due_ms;
    Waiter* previous = back_.previous;
    while (previous->due_ms >= due_ms) [[unlikely]] {
      if (previous->due_ms == due_ms && previous->index < waiter.index) {
        break;
      }
      previous = previous->previous;
    }
    waiter.previous = previous;
    Waiter* const next = previous->next;
    previous->next = &waiter;
    waiter.next = next;
    next->previous = &waiter;
  }

  Waiter front_;
  Waiter back_;
};

}  // namespace remy
