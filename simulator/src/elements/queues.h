#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice.h"
#include "elements/queue.h"

namespace remy {

// The link's settings from which a queue discipline makes a queue.
struct QueueSetting {
  std::optional<std::uint32_t> buffer_packets;  // none: the discipline's own limit, or unlimited
  double rate_packets_per_ms = 1;
  double packet_bytes = 1500;
  std::uint64_t key = 0;  // of the queue's random draws
};

// An entry of the registry of queue disciplines.
struct QueueDiscipline {
  std::string_view name;
  std::string_view title;
  std::vector<Variant> variants;  // the default first
  bool is_xcp_router = false;
  std::unique_ptr<Queue> (*make)(const ParameterValues& values,
                                 const QueueSetting& setting) = nullptr;
};

// Returns the limit of waiting packets. Throws std::invalid_argument if the buffer is 0, which only
// a drop-tail queue allows. `name` is the discipline's.
std::uint64_t limit_packets(std::string_view name, const QueueSetting& setting);

// All queue disciplines, in alphabetical order.
std::span<const QueueDiscipline> queue_disciplines();

// Returns a queue discipline. Throws std::invalid_argument if there is none of this name.
const QueueDiscipline& find_queue_discipline(std::string_view name);

}  // namespace remy
