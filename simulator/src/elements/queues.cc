#include "elements/queues.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/requirement.h"
#include "elements/drop_tail.h"

namespace remy {

// Each is defined in the file of the same name; threshold marking is in red.cc.
QueueDiscipline codel();
QueueDiscipline fair_queueing();
QueueDiscipline fq_codel();
QueueDiscipline red();
QueueDiscipline sfq_codel();
QueueDiscipline threshold_marking();
QueueDiscipline xcp_router();

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
      .make = [](const ParameterValues& values,
                 const QueueSetting& setting) -> std::unique_ptr<Queue> {
        DropTailLimits limits;
        if (values.variant() == "bytes") {
          limits.bytes = static_cast<std::uint64_t>(values["limit_bytes"]);
        }
        if (setting.buffer_packets) {
          limits.packets = *setting.buffer_packets;
        }
        return std::make_unique<DropTail>(limits);
      },
  };
}

}  // namespace

std::uint64_t limit_packets(std::string_view name, const QueueSetting& setting) {
  if (setting.buffer_packets == 0) {
    refuse("queue " + std::string(name) + " needs a buffer of at least 1 packet, not 0");
  }
  return setting.buffer_packets.value_or(std::numeric_limits<std::uint32_t>::max());
}

std::span<const QueueDiscipline> queue_disciplines() {
  static const std::vector<QueueDiscipline> kDisciplines = {
      codel(), drop_tail(), fair_queueing(),     fq_codel(),
      red(),   sfq_codel(), threshold_marking(), xcp_router(),
  };
  return kDisciplines;
}

const QueueDiscipline& find_queue_discipline(std::string_view name) {
  const auto found = std::ranges::find(queue_disciplines(), name, &QueueDiscipline::name);
  if (found == queue_disciplines().end()) {
    refuse("there is no queue \"" + std::string(name) +
           "\"; there are: " + names_of(queue_disciplines()));
  }
  return *found;
}

}  // namespace remy
