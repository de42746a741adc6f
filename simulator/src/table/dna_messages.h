#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "table/rule_table.h"
#include "table/wire.h"

// The messages below the tree of a .dna file: MemoryRange and Whisker.
namespace remy::dna {

// The path of a message in its file, as a chain up to the outermost message.
struct Place {
  static constexpr std::size_t kNoIndex = std::numeric_limits<std::size_t>::max();

  const Place* parent = nullptr;
  std::string_view name{};
  std::size_t index = kNoIndex;  // index among the repeated fields of this name

  // For example "children[2].domain.upper", or "The tree's root".
  std::string path() const;
};

// Throws InvalidTable with the sentence "<path> <predicate>."
[[noreturn]] void refuse(const Place& place, std::string_view predicate);

// Calls `handle` for every field of a message.
void for_each_field(std::string_view message, const Place& place,
                    const std::function<void(const wire::Field&)>& handle);

// Returns the value of a field of type kBytes. Throws InvalidTable if it has another type.
std::string_view bytes_of(const wire::Field& field, const Place& place);

// Throws InvalidTable if a field that may appear once appears again.
class Once {
 public:
  void operator()(const wire::Field& field, const Place& place);

 private:
  std::uint64_t seen_ = 0;
};

// Number of axes in the format: the first signals of Signal, in its order.
inline constexpr std::size_t kAxes = 6;
std::string_view axis_name(std::size_t axis);

// A MemoryRange message: finite bounds, 0 <= lower <= upper.
struct MemoryRange {
  MemoryRange();

  std::array<double, kAxes> lower;
  std::array<double, kAxes> upper;
  std::array<bool, kAxes> active;
  bool lists_active = false;  // false: `active` has its default, the basic signals

  friend bool operator==(const MemoryRange& a, const MemoryRange& b) {
    return a.lower == b.lower && a.upper == b.upper && a.active == b.active;
  }
};

// Throws InvalidTable.
MemoryRange decode_memory_range(std::string_view message, const Place& place);
std::string encode_memory_range(const Region& region, std::span<const Signal> signals);

// Decodes a Whisker, whose domain must be absent or equal that of its node. Throws InvalidTable.
Action decode_whisker(std::string_view message, const MemoryRange& domain, const Place& place);
std::string encode_whisker(const Action& action, std::size_t rule, std::string_view domain);

}  // namespace remy::dna
