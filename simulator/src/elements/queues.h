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

// What a link tells its queue.
struct QueueSetting {
  std::optional<std::uint32_t> buffer_packets;  // none: the discipline's own limit, or infinite
  double rate_packets_per_ms = 1;
  double packet_bytes = 1500;
  std::uint64_t key = 0;  // names the queue's random draws
};

// A queue discipline that links can have.
struct QueueDiscipline {
  std::string_view name;
  std::string_view title;
  std::vector<Variant> variants;  // the usual one first
  bool is_xcp_router = false;
  std::unique_ptr<Queue> (*make)(const Chosen& chosen, const QueueSetting& setting) = nullptr;
};

// How many packets may wait. Throws std::invalid_argument with one sentence if none may, which only
// a drop-tail queue can do with; `name` is the discipline's.
std::uint64_t limit_packets(std::string_view name, const QueueSetting& setting);

// All of them, by name.
std::span<const QueueDiscipline> queue_disciplines();

// Throws std::invalid_argument with one sentence if there is none.
const QueueDiscipline& find_queue_discipline(std::string_view name);

}  // namespace remy
