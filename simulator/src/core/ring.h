#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace remy {

// A FIFO queue that grows as needed and never shrinks, so that it stops allocating once it has
// reached its maximum length. References to items stay valid until the item is removed, even if the
// queue grows.
template <class Item>
class Ring {
 public:
  bool empty() const { return head_ == end_; }
  std::size_t size() const { return end_ - head_; }

  Item& front() { return items_[head_ & mask_]; }
  const Item& front() const { return items_[head_ & mask_]; }
  Item& at(std::size_t index) { return items_[(head_ + index) & mask_]; }  // counted from the front
  Item& back() { return items_[(end_ - 1) & mask_]; }

  // Appends an item and returns it for the caller to fill. Its content is unspecified.
  [[gnu::always_inline]] Item& push() {
    if (end_ - head_ == capacity_) [[unlikely]] {
      grow();
    }
    return items_[end_++ & mask_];
  }
  void push(const Item& item) { push() = item; }
  // push() for a queue that has room: is_partly_filled(), or size() < capacity().
  [[gnu::always_inline]] Item& push_without_growing() { return items_[end_++ & mask_]; }
  std::size_t capacity() const { return capacity_; }
  // Returns true if the queue is neither empty nor at its capacity.
  bool is_partly_filled() const { return end_ - head_ - 1 < mask_; }

  // Removes the first item, which stays readable until the next push.
  Item& pop() { return items_[head_++ & mask_]; }
  void pop_back() { --end_; }
  void clear() { end_ = head_; }

  // Doubles the capacity.
  [[gnu::noinline]] void grow() {
    std::vector<Item> larger(items_.empty() ? kInitialSlots : 2 * items_.size());
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
  static constexpr std::size_t kInitialSlots = 16;

  std::vector<Item> items_;  // its size is a power of two
  // Earlier buffers, to which references may exist. Together they are smaller than items_.
  std::vector<std::vector<Item>> outgrown_;
  std::size_t capacity_ = 0;
  std::size_t mask_ = 0;
  // Items removed and appended since it last grew. Slots are these modulo the capacity.
  std::size_t head_ = 0;
  std::size_t end_ = 0;
};

}  // namespace remy
