#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace remy {

// A bit for every packet of a span of sequence numbers that moves up, 64 to a word: what is said of
// whole runs of packets costs little. Bits outside the span are clear.
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

  // Sets those of [first, end) for which it is not set, and calls `changed` for each.
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

  // The first of [first, end) for which the bit is as asked; end if there is none.
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

  // The last of [first, end) for which the bit is as asked, plus one; first if there is none.
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

  // Makes room for the bits of [first, end), of which those of [first, old_end) are in use.
  void make_room(std::uint64_t first, std::uint64_t old_end, std::uint64_t end) {
    // One word more, as a span may begin within one.
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
  // Those of [first, end) in the word of `first`.
  static std::uint64_t mask(std::uint64_t first, std::uint64_t end) {
    std::uint64_t bits = ~std::uint64_t{0} << (first % 64);
    if (end < next_word(first)) {
      bits &= ~(~std::uint64_t{0} << (end % 64));
    }
    return bits;
  }

  std::vector<std::uint64_t> words_;  // a power of two
  std::size_t mask_ = kInitialWords - 1;
};

}  // namespace remy
