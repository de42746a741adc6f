#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace remy {

// One bit for each packet of a sliding range of sequence numbers. Operations on runs of packets
// work on words of 64. Bits outside the range are clear.
class PacketBits {
 public:
  PacketBits() : words_(kInitialWords) {}

  bool test(std::uint64_t packet) const { return (word(packet) >> (packet % 64) & 1) != 0; }
  void set(std::uint64_t packet) { word(packet) |= std::uint64_t{1} << (packet % 64); }
  void clear(std::uint64_t packet) { word(packet) &= ~(std::uint64_t{1} << (packet % 64)); }

  void clear(std::uint64_t first, std::uint64_t end) {
    while (first < end) {
      word(first) &= ~mask(first, end);
      first = next_word(first);
    }
  }

  // Sets the bits of [first, end), and calls `changed` for each that was clear.
  template <class Changed>
  void set(std::uint64_t first, std::uint64_t end, Changed changed) {
    while (first < end) {
      std::uint64_t news = mask(first, end) & ~word(first);
      word(first) |= news;
      const std::uint64_t base = first - first % 64;
      for (; news != 0; news &= news - 1) {
        changed(base + static_cast<std::uint64_t>(std::countr_zero(news)));
      }
      first = next_word(first);
    }
  }

  // Returns the first packet of [first, end) whose bit is `is_set`; end if there is none.
  std::uint64_t find(std::uint64_t first, std::uint64_t end, bool is_set) const {
    while (first < end) {
      const std::uint64_t found = mask(first, end) & (is_set ? word(first) : ~word(first));
      if (found != 0) {
        return first - first % 64 + static_cast<std::uint64_t>(std::countr_zero(found));
      }
      first = next_word(first);
    }
    return end;
  }

  // Returns one plus the last packet of [first, end) whose bit is `is_set`; first if there is none.
  std::uint64_t find_last(std::uint64_t first, std::uint64_t end, bool is_set) const {
    while (first < end) {
      const std::uint64_t base = (end - 1) - (end - 1) % 64;
      const std::uint64_t from = std::max(first, base);
      const std::uint64_t found = mask(from, end) & (is_set ? word(from) : ~word(from));
      if (found != 0) {
        return base + 64 - static_cast<std::uint64_t>(std::countl_zero(found));
      }
      end = from;
    }
    return first;
  }

  // Grows the range to [first, end); it was [first, old_end).
  void make_room(std::uint64_t first, std::uint64_t old_end, std::uint64_t end) {
    // One more word, because the range may begin within a word.
    if (end - first + 64 <= 64 * words_.size()) [[likely]] {
      return;
    }
    std::vector<std::uint64_t> larger(std::bit_ceil((end - first) / 64 + 2));
    for (std::uint64_t packet = first - first % 64; packet < old_end; packet += 64) {
      larger[packet / 64 & (larger.size() - 1)] = word(packet);
    }
    words_.swap(larger);
    mask_ = words_.size() - 1;
  }

 private:
  static constexpr std::size_t kInitialWords = 8;

  std::uint64_t& word(std::uint64_t packet) { return words_[packet / 64 & mask_]; }
  std::uint64_t word(std::uint64_t packet) const { return words_[packet / 64 & mask_]; }
  static std::uint64_t next_word(std::uint64_t packet) { return packet - packet % 64 + 64; }
  // The bits of [first, end) that are in the word of `first`.
  static std::uint64_t mask(std::uint64_t first, std::uint64_t end) {
    std::uint64_t bits = ~std::uint64_t{0} << (first % 64);
    if (end < next_word(first)) {
      bits &= ~(~std::uint64_t{0} << (end % 64));
    }
    return bits;
  }

  std::vector<std::uint64_t> words_;  // their number is a power of two
  std::size_t mask_ = kInitialWords - 1;
};

}  // namespace remy
