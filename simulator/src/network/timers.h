#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace remy {

// The due times of n timers, and the timer that is due first (at equal times, the lowest): a
// complete binary tree in which each inner node holds the earlier time of its two children.
class Timers {
 public:
  explicit Timers(std::uint32_t count)
      : leaves_(std::bit_ceil(std::max(count, 1U))),
        minima_(2 * std::size_t{leaves_}, std::numeric_limits<double>::infinity()) {}

  double earliest() const { return earliest_; }

  std::uint32_t first() const {
    if (leaves_ <= 2) {
      return first_of_two_;
    }
    std::uint32_t node = 1;
    while (node < leaves_) {
      node *= 2;
      node += minima_[node] == earliest_ ? 0 : 1;
    }
    return node - leaves_;
  }

  [[gnu::always_inline]] void set(std::uint32_t index, double due) {
    if (leaves_ == 1) {
      earliest_ = due;
    } else {
      set_in_tree(index, due);
    }
  }

 private:
  [[gnu::noinline]] void set_in_tree(std::uint32_t index, double due) {
    std::size_t node = std::size_t{leaves_} + index;
    minima_[node] = due;
    if (leaves_ == 2) {
      earliest_ = std::min(minima_[2], minima_[3]);
      first_of_two_ = minima_[3] < minima_[2] ? 1 : 0;
      return;
    }
    for (node /= 2; node > 0; node /= 2) {
      minima_[node] = std::min(minima_[2 * node], minima_[2 * node + 1]);
    }
    earliest_ = minima_[1];
  }

  std::uint32_t leaves_;
  std::uint32_t first_of_two_ = 0;  // used if there are at most two timers
  double earliest_ = std::numeric_limits<double>::infinity();
  std::vector<double> minima_;  // node 1 is the root; the leaves are the second half
};

// Senders that wait until pacing allows their next packet, by time; at equal times, by index. It is
// a doubly linked list through the senders. A new time is searched for from the back, where it
// nearly always belongs, because it is one intersend time ahead.
class SendQueue {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // An entry of the list.
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

  // The first waiter; its due_ms is infinity if no sender waits.
  Waiter& first() { return *front_.next; }

  // Makes the sender wait until due_ms, whether or not it waited before.
  [[gnu::always_inline]] void wait(Waiter& waiter, double due_ms) {
    if (waiter.next != nullptr) {
      unlink(waiter);
    }
    insert(waiter, due_ms);
  }

  // wait() for a sender that is waiting already.
  [[gnu::always_inline]] void wait_again(Waiter& waiter, double due_ms) {
    unlink(waiter);
    insert(waiter, due_ms);
  }

  // Removes the sender, if it waits.
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
