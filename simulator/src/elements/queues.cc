#include "elements/queues.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "elements/drop_tail.h"

namespace remy {

namespace {

QueueDiscipline drop_tail() {
  return {
      .name = "drop-tail",
      .title = "Drop-tail",
      .variants = {{
                       .name = "packets",
                       .source = "",
                       .parameters = {},
                   },
                   {
                       .name = "bytes",
                       .source = "",
                       .parameters = {{"limit_bytes", "bytes that may wait", 150'000, 0, 1e12}},
                   }},
      .make = [](const Chosen& chosen, const QueueSetting& setting) -> std::unique_ptr<Queue> {
        DropTailLimits limits;
        if (chosen.variant() == "bytes") {
          limits.bytes = static_cast<std::uint64_t>(chosen["limit_bytes"]);
        }
        if (setting.buffer_packets) {
          limits.packets = *setting.buffer_packets;
        }
        return std::make_unique<DropTail>(limits);
      },
  };
}

}  // namespace

std::span<const QueueDiscipline> queue_disciplines() {
  static const std::vector<QueueDiscipline> kDisciplines = {
      drop_tail(),
  };
  return kDisciplines;
}

const QueueDiscipline& find_queue_discipline(std::string_view name) {
  const auto found = std::ranges::find(queue_disciplines(), name, &QueueDiscipline::name);
  if (found == queue_disciplines().end()) {
    throw std::invalid_argument("there is no queue \"" + std::string(name) +
                                "\"; there are: " + names_of(queue_disciplines()));
  }
  return *found;
}

}  // namespace remy
