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
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  Item& front() { return items_[head_]; }
  const Item& front() const { return items_[head_]; }
  Item& at(std::size_t place) { return items_[(head_ + place) & mask_]; }  // from the front
  Item& back() { return at(size_ - 1); }

  // A place behind the last, for the caller to fill.
  [[gnu::always_inline]] Item& push() {
    if (size_ == capacity_) [[unlikely]] {
      grow();
    }
    return items_[(head_ + size_++) & mask_];
  }
  void push(const Item& item) { push() = item; }

  void pop() {
    head_ = (head_ + 1) & mask_;
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }

 private:
  static constexpr std::size_t kInitialPlaces = 16;

  [[gnu::noinline]] void grow() {
    std::vector<Item> larger(items_.empty() ? kInitialPlaces : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = items_[(head_ + i) & mask_];
    }
    outgrown_.push_back(std::exchange(items_, std::move(larger)));
    head_ = 0;
    capacity_ = items_.size();
    mask_ = capacity_ - 1;
  }

  std::vector<Item> items_;                  // a power of two
  std::vector<std::vector<Item>> outgrown_;  // less than items_ together
  std::size_t capacity_ = 0;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace remy
