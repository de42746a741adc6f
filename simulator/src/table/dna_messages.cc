#include "table/dna_messages.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace remy::dna {
namespace {

enum MemoryRangeField : std::uint32_t { kLower = 11, kUpper = 12, kActiveAxis = 13 };
constexpr std::uint32_t kFirstMemoryField = 21;
enum WhiskerField : std::uint32_t {
  kWindowIncrement = 31,
  kWindowMultiple = 32,
  kIntersend = 33,
  kWhiskerDomain = 34,
};

struct Axis {
  std::string_view name;
  std::string_view memory_field;
};
constexpr std::array<Axis, kAxes> kAxisNames{{
    {"SEND_EWMA", "rec_send_ewma"},
    {"REC_EWMA", "rec_rec_ewma"},
    {"RTT_RATIO", "rtt_ratio"},
    {"SLOW_REC_EWMA", "slow_rec_rec_ewma"},
    {"RTT_DIFF", "rtt_diff"},
    {"QUEUEING_DELAY", "queueing_delay"},
}};

void require(const wire::Field& field, wire::Type type, const Place& place) {
  if (field.type != type) {
    refuse(place, "has wire type " + std::to_string(static_cast<unsigned>(field.type)) +
                      "; it must have wire type " + std::to_string(static_cast<unsigned>(type)));
  }
}

double double_of(const wire::Field& field, const Place& place) {
  require(field, wire::Type::kFixed64, place);
  return std::bit_cast<double>(field.integer);
}

double non_negative_of(const wire::Field& field, const Place& place) {
  const double value = double_of(field, place);
  if (!std::isfinite(value) || value < 0) {
    refuse(place, "is " + text(value) + "; it must be a finite number not below 0");
  }
  return value;
}

std::int32_t sint32_of(const wire::Field& field, const Place& place) {
  require(field, wire::Type::kVarint, place);
  if (field.integer > std::numeric_limits<std::uint32_t>::max()) {
    refuse(place, "does not fit in 32 bits; it must be of type sint32");
  }
  return wire::unzigzag(static_cast<std::uint32_t>(field.integer));
}

void decode_memory(std::string_view message, const Place& place,
                   std::array<double, kAxes>& values) {
  Once once;
  for_each_field(message, place, [&](const wire::Field& field) {
    const std::size_t axis = field.number - kFirstMemoryField;
    if (field.number < kFirstMemoryField || axis >= kAxes) {
      return;
    }
    const Place bound{&place, kAxisNames[axis].memory_field};
    once(field, bound);
    values[axis] = non_negative_of(field, bound);
  });
}

void activate(MemoryRange& range, std::uint64_t axis, const Place& place) {
  if (axis >= kAxes) {
    refuse(place, "holds axis number " + std::to_string(axis) +
                      ", which is not supported; the last is 5, QUEUEING_DELAY");
  }
  if (!range.lists_active) {
    range.active.fill(false);
    range.lists_active = true;
  }
  range.active[static_cast<std::size_t>(axis)] = true;
}

// A repeated enum may be encoded one value per field, or packed.
void decode_active_axes(const wire::Field& field, const Place& place, MemoryRange& range) {
  if (field.type != wire::Type::kBytes) {
    require(field, wire::Type::kVarint, place);
    activate(range, field.integer, place);
    return;
  }
  try {
    for (std::string_view packed = field.bytes; !packed.empty();) {
      activate(range, wire::take_varint(packed), place);
    }
  } catch (const wire::Malformed& error) {
    refuse(place, error.what());
  }
}

std::string encode_memory(const MemoryPoint& point, std::size_t axes) {
  std::string message;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    wire::append_double(message, kFirstMemoryField + static_cast<std::uint32_t>(axis), point[axis]);
  }
  return message;
}

}  // namespace

std::string Place::path() const {
  if (parent == nullptr) {
    return "The tree's root";
  }
  std::string path = parent->parent == nullptr ? "" : parent->path() + ".";
  path += name;
  if (index != kNoIndex) {
    path += "[" + std::to_string(index) + "]";
  }
  return path;
}

void refuse(const Place& place, std::string_view predicate) {
  throw InvalidTable(place.path() + " " + std::string(predicate) + ".");
}

void for_each_field(std::string_view message, const Place& place,
                    const std::function<void(const wire::Field&)>& handle) {
  while (!message.empty()) {
    wire::Field field;
    try {
      field = wire::take_field(message);
    } catch (const wire::Malformed& error) {
      refuse(place, error.what());
    }
    handle(field);
  }
}

std::string_view bytes_of(const wire::Field& field, const Place& place) {
  require(field, wire::Type::kBytes, place);
  return field.bytes;
}

void Once::operator()(const wire::Field& field, const Place& place) {
  const std::uint64_t bit = std::uint64_t{1} << (field.number % 64);
  if ((seen_ & bit) != 0) {
    refuse(place, "appears more than once; it must appear at most once in its message");
  }
  seen_ |= bit;
}

std::string_view axis_name(std::size_t axis) { return kAxisNames[axis].name; }

MemoryRange::MemoryRange() {
  lower.fill(0);
  upper.fill(RuleTable::kDefaultDomainUpper);
  active.fill(false);
  std::fill_n(active.begin(), kBasicSignals, true);
}

MemoryRange decode_memory_range(std::string_view message, const Place& place) {
  MemoryRange range;
  Once once;
  for_each_field(message, place, [&](const wire::Field& field) {
    if (field.number == kLower || field.number == kUpper) {
      const bool is_lower = field.number == kLower;
      const Place bounds{&place, is_lower ? "lower" : "upper"};
      once(field, bounds);
      decode_memory(bytes_of(field, bounds), bounds, is_lower ? range.lower : range.upper);
    } else if (field.number == kActiveAxis) {
      decode_active_axes(field, {&place, "active_axis"}, range);
    }
  });
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    if (range.lower[axis] > range.upper[axis]) {
      const Place upper{&place, "upper"};
      refuse({&upper, kAxisNames[axis].memory_field},
             "is " + text(range.upper[axis]) + "; it must be at least the lower bound, " +
                 text(range.lower[axis]));
    }
  }
  return range;
}

std::string encode_memory_range(const Region& region, std::span<const Signal> signals) {
  // As in older files, the bounds of the other two axes are omitted if the table does not use them.
  const bool is_usual = axis_of(signals.back()) < kBasicSignals;
  const std::size_t axes = is_usual ? kBasicSignals : kAxes;
  std::string message;
  wire::append_bytes(message, kLower, encode_memory(region.lower, axes));
  wire::append_bytes(message, kUpper, encode_memory(region.upper, axes));
  for (const Signal signal : signals) {
    wire::append_varint(message, kActiveAxis, static_cast<std::uint64_t>(signal));
  }
  return message;
}

Action decode_whisker(std::string_view message, const MemoryRange& domain, const Place& place) {
  Action action{0, 0, 0};
  Once once;
  for_each_field(message, place, [&](const wire::Field& field) {
    if (field.number == kWindowIncrement) {
      const Place increment{&place, "window_increment"};
      once(field, increment);
      action.window_increment = sint32_of(field, increment);
    } else if (field.number == kWindowMultiple) {
      const Place multiple{&place, "window_multiple"};
      once(field, multiple);
      action.window_multiple = non_negative_of(field, multiple);
    } else if (field.number == kIntersend) {
      const Place intersend{&place, "intersend"};
      once(field, intersend);
      action.intersend_ms = non_negative_of(field, intersend);
    } else if (field.number == kWhiskerDomain) {
      const Place own{&place, "domain"};
      once(field, own);
      if (decode_memory_range(bytes_of(field, own), own) != domain) {
        refuse(own, "differs from the domain of its node; it must be the same or absent");
      }
    }
  });
  return action;
}

std::string encode_whisker(const Action& action, std::size_t rule, std::string_view domain) {
  const double increment = action.window_increment;
  if (increment != std::trunc(increment) || increment < std::numeric_limits<std::int32_t>::min() ||
      increment > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidTable("Rule " + std::to_string(rule) + " has window_increment " + text(increment) +
                       "; a .dna file holds whole increments from -2147483648 to 2147483647.");
  }
  std::string message;
  wire::append_varint(message, kWindowIncrement,
                      wire::zigzag(static_cast<std::int32_t>(increment)));
  wire::append_double(message, kWindowMultiple, action.window_multiple);
  wire::append_double(message, kIntersend, action.intersend_ms);
  wire::append_bytes(message, kWhiskerDomain, domain);
  return message;
}

}  // namespace remy::dna
