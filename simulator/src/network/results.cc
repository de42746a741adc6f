#include "network/results.h"

#include <algorithm>

namespace remy {

CompletionSummary summarize(std::span<const FlowCompletion> flows) {
  if (flows.empty()) {
    return {};
  }
  std::vector<double> times_ms;
  double sum_ms = 0;
  for (const FlowCompletion& flow : flows) {
    times_ms.push_back(flow.time_ms);
    sum_ms += flow.time_ms;
  }
  std::ranges::sort(times_ms);
  const std::size_t count = times_ms.size();
  return {count, sum_ms / static_cast<double>(count),
          (times_ms[(count - 1) / 2] + times_ms[count / 2]) / 2,
          times_ms[(99 * count + 99) / 100 - 1]};
}

}  // namespace remy
