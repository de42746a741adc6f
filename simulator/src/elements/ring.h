#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace remy {

// A first-in first-out queue that grows as needed and keeps its room, so that it allocates nothing
// once it has been as long as it gets. An item that was read can be read on where it was as long as
// it is not removed, however many are pushed.
template <class Item>
class Ring {
 public:
  bool empty() const { return head_ == end_; }
  std::size_t size() const { return end_ - head_; }

  Item& front() { return items_[head_ & mask_]; }
  const Item& front() const { return items_[head_ & mask_]; }
  Item& at(std::size_t place) { return items_[(head_ + place) & mask_]; }  // from the front
  Item& back() { return items_[(end_ - 1) & mask_]; }

  // A place behind the last, for the caller to fill.
  [[gnu::always_inline]] Item& push() {
    if (end_ - head_ == capacity_) [[unlikely]] {
      grow();
    }
    return items_[end_++ & mask_];
  }
  void push(const Item& item) { push() = item; }
  // The same where is_partly_filled(), or there is less than the capacity.
  [[gnu::always_inline]] Item& push_in_room() { return items_[end_++ & mask_]; }
  std::size_t capacity() const { return capacity_; }
  // Neither empty nor without a place.
  bool is_partly_filled() const { return end_ - head_ - 1 < mask_; }

  // The first, which can be read until the next push.
  Item& pop() { return items_[head_++ & mask_]; }
  void pop_back() { --end_; }
  void clear() { end_ = head_; }

  // Doubles the capacity.
  [[gnu::noinline]] void grow() {
    std::vector<Item> larger(items_.empty() ? kInitialPlaces : 2 * items_.size());
    const std::size_t size = end_ - head_;
    for (std::size_t i = 0; i < size; ++i) {
      larger[i] = items_[(head_ + i) & mask_];
    }
    outgrown_.push_back(std::exchange(items_, std::move(larger)));
    head_ = 0;
    end_ = size;
    capacity_ = items_.size();
    mask_ = capacity_ - 1;
  }

 private:
  static constexpr std::size_t kInitialPlaces = 16;

  std::vector<Item> items_;                  // a power of two
  std::vector<std::vector<Item>> outgrown_;  // less than items_ together
  std::size_t capacity_ = 0;
  std::size_t mask_ = 0;
  // How many were removed, and pushed, since it grew last: places are these modulo the capacity.
  std::size_t head_ = 0;
  std::size_t end_ = 0;
};

}  // namespace remy
