#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "check_signals.h"
#include "columns.h"
#include "core/interruption.h"
#include "evaluation/evaluator.h"
#include "evaluation/memory_summary.h"
#include "evaluation/objective.h"
#include "evaluation/specimen.h"
#include "network/network.h"
#include "rules.h"
#include "table/compiled_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

struct SpecimenKind {
  MeasurementNoise measurement;
  std::vector<SenderGroup> senders;
  std::optional<Bottleneck> bottleneck;
  std::vector<LinkDescription> links;
};

// The numbers of specimens as columns. Columns may be empty if all specimens have the same default:
// unlimited buffers, no loss, the first kind.
struct SpecimenColumns {
  std::vector<std::uint64_t> keys;
  std::vector<double> link_rates_packets_per_ms;
  std::vector<double> rtts_ms;
  std::vector<std::uint64_t> buffers;  // 0: unlimited; else the buffer in packets plus 1
  std::vector<double> loss_probabilities;
  std::vector<std::uint32_t> kind;
  std::vector<std::uint32_t> sender_counts;  // by group, specimen by specimen
};

std::vector<Specimen> make_specimens(const std::vector<SpecimenKind>& kinds,
                                     const SpecimenColumns& columns) {
  const std::size_t size = columns.keys.size();
  const auto fits = [&](std::size_t entries, bool may_be_empty) {
    return entries == size || (may_be_empty && entries == 0);
  };
  if (!fits(columns.link_rates_packets_per_ms.size(), false) ||
      !fits(columns.rtts_ms.size(), false) || !fits(columns.buffers.size(), true) ||
      !fits(columns.loss_probabilities.size(), true) || !fits(columns.kind.size(), true)) {
    throw std::invalid_argument("the columns of the specimens differ in length");
  }
  std::vector<Specimen> specimens(size);
  std::size_t group = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t number = columns.kind.empty() ? 0 : columns.kind[i];
    if (number >= kinds.size()) {
      throw std::invalid_argument("a specimen has kind " + std::to_string(number) +
                                  ", but there are only " + std::to_string(kinds.size()) +
                                  " kinds");
    }
    Specimen& specimen = specimens[i];
    specimen.key = columns.keys[i];
    specimen.link_rate_packets_per_ms = columns.link_rates_packets_per_ms[i];
    specimen.rtt_ms = columns.rtts_ms[i];
    if (!columns.buffers.empty() && columns.buffers[i] > 0) {
      const std::uint64_t packets = columns.buffers[i] - 1;
      if (packets > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("a specimen's buffer is larger than 4294967295 packets");
      }
      specimen.buffer_packets = static_cast<std::uint32_t>(packets);
    }
    specimen.loss_probability =
        columns.loss_probabilities.empty() ? 0 : columns.loss_probabilities[i];
    specimen.measurement = kinds[number].measurement;
    specimen.senders = kinds[number].senders;
    specimen.bottleneck = kinds[number].bottleneck;
    specimen.links = kinds[number].links;
    for (SenderGroup& senders : specimen.senders) {
      if (group >= columns.sender_counts.size()) {
        throw std::invalid_argument("the specimens have fewer sender counts than sender groups");
      }
      senders.count = columns.sender_counts[group++];
    }
  }
  if (group != columns.sender_counts.size()) {
    throw std::invalid_argument("the specimens have more sender counts than sender groups");
  }
  return specimens;
}

// The columns of a TransportColumns message.
struct TransportColumns {
  std::vector<std::uint64_t> packets_in_order;
  std::vector<std::uint64_t> packets_retransmitted;
  std::vector<std::uint64_t> packets_marked;
  std::vector<std::uint64_t> timeouts;
  std::vector<std::uint64_t> throughput_packets;
  std::vector<std::uint64_t> delay_samples;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> flow_packets;
  std::vector<double> completion_ms;
  std::vector<double> sampled_rtt_ms;
  std::vector<double> sampled_rtt_over_time_ms;
  // Empty unless distributions were recorded: senders without RTTs have a size of 0.
  std::vector<std::uint64_t> rtt_histogram_sizes;
  std::vector<std::uint32_t> rtt_histogram_buckets;
  std::vector<std::uint64_t> rtt_histogram_counts;
};

void add_histogram(const LogHistogram& rtts, TransportColumns& columns) {
  const std::size_t before = columns.rtt_histogram_buckets.size();
  rtts.for_each([&](std::uint32_t bucket, std::uint64_t count) {
    columns.rtt_histogram_buckets.push_back(bucket);
    columns.rtt_histogram_counts.push_back(count);
  });
  columns.rtt_histogram_sizes.push_back(columns.rtt_histogram_buckets.size() - before);
}

TransportColumns transport_columns(const OutcomeColumns& outcome) {
  std::vector<NetworkSenderResults> senders = outcome.network;
  if (senders.empty()) {
    std::ranges::transform(outcome.senders, std::back_inserter(senders), as_network_results);
  }
  TransportColumns columns;
  for (const NetworkSenderResults& sender : senders) {
    columns.packets_in_order.push_back(sender.endpoint.packets_in_order);
    columns.packets_retransmitted.push_back(sender.endpoint.packets_retransmitted);
    columns.packets_marked.push_back(sender.endpoint.packets_marked);
    columns.timeouts.push_back(sender.endpoint.timeouts);
    columns.throughput_packets.push_back(sender.throughput_packets);
    columns.delay_samples.push_back(sender.delay_samples);
    columns.flows.push_back(sender.flows.size());
    for (const FlowCompletion& flow : sender.flows) {
      columns.flow_packets.push_back(flow.packets);
      columns.completion_ms.push_back(flow.time_ms);
    }
    columns.sampled_rtt_ms.push_back(sender.endpoint.rtt.mean_ms());
    columns.sampled_rtt_over_time_ms.push_back(sender.endpoint.rtt.mean_over_time_ms());
    if (outcome.has_distributions) {
      add_histogram(sender.rtts, columns);
    }
  }
  return columns;
}

// A flag that Python code sets from any thread.
struct Cancellation {
  std::atomic<bool> flag{false};
};

Interruption make_interruption(const Cancellation* cancellation,
                               std::optional<std::uint64_t> packet_limit) {
  return Interruption(cancellation == nullptr ? nullptr : &cancellation->flag,
                      packet_limit.value_or(Interruption::kNoLimit), check_signals);
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  module.attr("MEMORY_BUCKETS") = memory_scale::kBuckets;
  nb::exception<Interrupted>(module, "Cancelled");
  nb::class_<Cancellation>(module, "Cancellation",
                           "Cancels the evaluations that it was passed to, from any thread.")
      .def(nb::init<>())
      .def(
          "cancel", [](Cancellation& cancellation) { cancellation.flag = true; },
          "Makes running and later evaluations raise Cancelled within milliseconds.")
      .def_prop_ro(
          "cancelled", [](const Cancellation& cancellation) { return cancellation.flag.load(); },
          "True if cancel() has been called.");
  nb::enum_<Recording>(module, "Recording")
      .value("NOTHING", Recording::kNothing)
      .value("USES", Recording::kUses)
      .value("MEMORY", Recording::kMemory)
      .value("USED", Recording::kUsed)
      .value("SHARES", Recording::kShares);
  nb::class_<SpecimenKind>(module, "SpecimenKind")
      .def(nb::init<MeasurementNoise, std::vector<SenderGroup>, std::optional<Bottleneck>,
                    std::vector<LinkDescription>>(),
           "measurement"_a, "senders"_a, "bottleneck"_a.none(), "links"_a);
  nb::class_<SpecimenColumns>(module, "SpecimenColumns")
      .def(
          "__init__",
          [](SpecimenColumns* self, const nb::bytes& keys,
             const nb::bytes& link_rates_packets_per_ms, const nb::bytes& rtts_ms,
             std::vector<std::uint64_t> buffers, const nb::bytes& loss_probabilities,
             std::vector<std::uint32_t> kind, std::vector<std::uint32_t> sender_counts) {
            new (self) SpecimenColumns{
                .keys = from_column<std::uint64_t>(keys, "keys"),
                .link_rates_packets_per_ms =
                    from_column<double>(link_rates_packets_per_ms, "link_rates_packets_per_ms"),
                .rtts_ms = from_column<double>(rtts_ms, "rtts_ms"),
                .buffers = std::move(buffers),
                .loss_probabilities = from_column<double>(loss_probabilities, "loss_probabilities"),
                .kind = std::move(kind),
                .sender_counts = std::move(sender_counts),
            };
          },
          nb::kw_only(), "keys"_a, "link_rates_packets_per_ms"_a, "rtts_ms"_a, "buffers"_a,
          "loss_probabilities"_a, "kind"_a, "sender_counts"_a, "Raises ValueError.");
  nb::class_<TransportColumns>(module, "TransportColumns")
      .def_ro("packets_in_order", &TransportColumns::packets_in_order)
      .def_ro("packets_retransmitted", &TransportColumns::packets_retransmitted)
      .def_ro("packets_marked", &TransportColumns::packets_marked)
      .def_ro("timeouts", &TransportColumns::timeouts)
      .def_ro("throughput_packets", &TransportColumns::throughput_packets)
      .def_ro("delay_samples", &TransportColumns::delay_samples)
      .def_ro("flows", &TransportColumns::flows)
      .def_ro("flow_packets", &TransportColumns::flow_packets)
      .def_prop_ro("completion_ms",
                   [](const TransportColumns& c) { return column(c.completion_ms); })
      .def_prop_ro("sampled_rtt_ms",
                   [](const TransportColumns& c) { return column(c.sampled_rtt_ms); })
      .def_prop_ro("sampled_rtt_over_time_ms",
                   [](const TransportColumns& c) { return column(c.sampled_rtt_over_time_ms); })
      .def_ro("rtt_histogram_sizes", &TransportColumns::rtt_histogram_sizes)
      .def_ro("rtt_histogram_buckets", &TransportColumns::rtt_histogram_buckets)
      .def_ro("rtt_histogram_counts", &TransportColumns::rtt_histogram_counts);
  nb::class_<OutcomeColumns>(module, "OutcomeColumns")
      .def_ro("packets_sent", &OutcomeColumns::packets_sent)
      .def_prop_ro("scores", [](const OutcomeColumns& c) { return column(c.scores); })
      .def_prop_ro("packets_received",
                   [](const OutcomeColumns& c) {
                     return integer_column(c.senders, &SenderResults::packets_received);
                   })
      .def_prop_ro("sender_packets_sent",
                   [](const OutcomeColumns& c) {
                     return integer_column(c.senders, &SenderResults::packets_sent);
                   })
      .def_prop_ro("packets_lost",
                   [](const OutcomeColumns& c) {
                     return integer_column(c.senders, &SenderResults::packets_lost);
                   })
      .def_prop_ro("on_ms",
                   [](const OutcomeColumns& c) { return column(c.senders, &SenderResults::on_ms); })
      .def_prop_ro(
          "share_ms",
          [](const OutcomeColumns& c) { return column(c.senders, &SenderResults::share_ms); })
      .def_prop_ro(
          "delay_sum_ms",
          [](const OutcomeColumns& c) { return column(c.senders, &SenderResults::delay_sum_ms); })
      .def_prop_ro(
          "first_on_ms",
          [](const OutcomeColumns& c) { return column(c.senders, &SenderResults::first_on_ms); })
      .def_prop_ro("transport", &transport_columns)
      .def_ro("rule_uses", &OutcomeColumns::rule_uses)
      .def_prop_ro("used_rules", [](const OutcomeColumns& c) { return column(c.used_rules); })
      .def_ro("memory_places", &OutcomeColumns::memory_places)
      .def_ro("memory_counts", &OutcomeColumns::memory_counts);
  module.def(
      "evaluate_columns",
      [](const std::vector<CompiledTable>& tables, const std::vector<Candidate>& candidates,
         const std::vector<SpecimenKind>& kinds, const SpecimenColumns& specimens,
         double duration_ms, std::uint64_t seed, Recording recording, bool distributions,
         const std::optional<Objective>& objective, unsigned threads,
         const Cancellation* cancellation, std::optional<std::uint64_t> packet_limit) {
        const EvaluationRequest request{tables,       candidates, make_specimens(kinds, specimens),
                                        duration_ms,  seed,       recording,
                                        distributions};
        Interruption interruption = make_interruption(cancellation, packet_limit);
        const nb::gil_scoped_release released;
        return evaluate_columns(request, objective, threads, &interruption);
      },
      nb::kw_only(), "tables"_a, "candidates"_a, "kinds"_a, "specimens"_a, "duration_ms"_a,
      "seed"_a, "recording"_a, "distributions"_a, "objective"_a.none(), "threads"_a,
      "cancellation"_a.none(), "packet_limit"_a.none(),
      "Simulates, and scores if there is an objective. Releases the GIL. Raises ValueError and "
      "Cancelled.");
  module.def("histogram_middle", &LogHistogram::middle_of, "bucket"_a,
             "The number in the middle of a bucket of a histogram of RTTs.");
  module.def(
      "median",
      [](std::uint8_t axis, std::vector<std::uint32_t> buckets, std::vector<std::uint64_t> counts) {
        return median({to_signal(axis), std::move(buckets), std::move(counts)});
      },
      "axis"_a, "buckets"_a, "counts"_a,
      "The median of summarized memory values. Raises ValueError.");
}

}  // namespace remy
