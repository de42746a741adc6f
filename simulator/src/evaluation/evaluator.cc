#include "evaluation/evaluator.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "evaluation/simulation.h"

namespace remy {
namespace {

void validate(const EvaluationRequest& request) {
  if (request.tables.empty()) {
    throw std::invalid_argument("an evaluation needs at least one rule table");
  }
  if (!(request.duration_ms > 0) || !std::isfinite(request.duration_ms)) {
    throw std::invalid_argument("duration_ms is " + std::to_string(request.duration_ms) +
                                " but must be a positive number");
  }
  for (const Specimen& specimen : request.specimens) {
    validate(specimen, request.tables.size());
  }
  for (const Candidate& candidate : request.candidates) {
    validate(candidate, request.tables.front().rule_count());
  }
}

// Longest first, so that no thread is left with a long simulation at the end. The order has no
// influence on any result.
std::vector<std::size_t> order_of_work(const EvaluationRequest& request) {
  std::vector<std::size_t> order(request.candidates.size() * request.specimens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rate = [&](std::size_t task) {
    return request.specimens[task % request.specimens.size()].link_rate_packets_per_ms;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rate(a) > rate(b); });
  return order;
}

}  // namespace

std::vector<SpecimenOutcome> evaluate(const EvaluationRequest& request, unsigned threads) {
  validate(request);
  const std::vector<CompiledTable> tables(request.tables.begin(), request.tables.end());
  const std::vector<std::size_t> order = order_of_work(request);
  std::vector<SpecimenOutcome> outcomes(order.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  const auto work = [&] {
    try {
      for (std::size_t turn = next++; turn < order.size(); turn = next++) {
        const std::size_t task = order[turn];
        const Candidate& candidate = request.candidates[task / request.specimens.size()];
        const Specimen& specimen = request.specimens[task % request.specimens.size()];
        outcomes[task] = simulate(tables, candidate, specimen, request.duration_ms, request.seed,
                                  request.recording);
      }
    } catch (...) {
      const std::scoped_lock lock(failure_mutex);
      failure = std::current_exception();
      next = order.size();
    }
  };
  {
    const std::size_t helpers = std::min<std::size_t>(std::max(threads, 1U), order.size());
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < helpers; ++i) {
      pool.emplace_back(work);
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  return outcomes;
}

}  // namespace remy
