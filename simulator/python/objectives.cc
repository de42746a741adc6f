#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings.h"
#include "evaluation/objective.h"
#include "evaluation/specimen.h"
#include "evaluation/throughput.h"
#include "senders/packet.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

// The properties of a network on which scores depend.
Specimen make_path(double link_rate_packets_per_ms, double rtt_ms, double packet_bytes,
                   const std::vector<SenderGroup>& groups) {
  Specimen specimen;
  specimen.senders = groups;
  specimen.link_rate_packets_per_ms = link_rate_packets_per_ms;
  specimen.rtt_ms = rtt_ms;
  specimen.bottleneck = Bottleneck{{}, packet_bytes, 0};
  return specimen;
}

// Binds a function of an objective and a network's results.
template <class Score>
void bind_score(nb::module_& module, const char* name, Score score, const char* documentation) {
  module.def(
      name,
      [score](const Objective& objective, double link_rate_packets_per_ms, double rtt_ms,
              double packet_bytes, const std::vector<SenderGroup>& groups, double duration_ms,
              const std::vector<SenderResults>& senders, const std::vector<Tally>& tallies) {
        return score(objective, make_path(link_rate_packets_per_ms, rtt_ms, packet_bytes, groups),
                     senders, duration_ms, tallies);
      },
      nb::kw_only(), "objective"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "packet_bytes"_a,
      "groups"_a, "duration_ms"_a, "senders"_a, "tallies"_a, documentation);
}

}  // namespace

void bind_objectives(nb::module_& module) {
  nb::class_<ThroughputMeasure>(module, "ThroughputMeasure",
                                "A definition of throughput that an objective can use.")
      .def_ro("number", &ThroughputMeasure::number,
              "Value of the enum remy_farm.v1.ThroughputMeasure.")
      .def_ro("name", &ThroughputMeasure::name, "Name in specifications.")
      .def_ro("counts_flows", &ThroughputMeasure::counts_flows,
              "True: counts completed flows, which needs by-bytes traffic. False: counts packets.");
  module.def(
      "throughput_measures",
      [] {
        const auto measures = throughput_measures();
        return std::vector<ThroughputMeasure>(measures.begin(), measures.end());
      },
      "All measures; the default is first.");
  nb::enum_<GroupAggregate>(module, "GroupAggregate")
      .value("MEAN", GroupAggregate::kMean)
      .value("MINIMUM", GroupAggregate::kMinimum);
  nb::class_<Objective>(module, "Objective")
      .def(
          "__init__",
          [](Objective* self, double alpha, double beta, double delta, std::uint32_t throughput,
             double minimum_on_ms, GroupAggregate over_groups, double loss_price) {
            new (self) Objective{
                .alpha = alpha,
                .beta = beta,
                .delta = delta,
                .throughput = &throughput_measure(throughput),
                .minimum_on_ms = minimum_on_ms,
                .over_groups = over_groups,
                .loss_price = loss_price,
            };
          },
          nb::kw_only(), "alpha"_a, "beta"_a, "delta"_a, "throughput"_a, "minimum_on_ms"_a,
          "over_groups"_a, "loss_price"_a,
          "`throughput` is a measure's number. Raises ValueError.");
  bind_score(
      module, "objective_scores", &objective_scores,
      "The objective of each sender (that of its group, if it has one); None if a sender is not "
      "scored. Without tallies, throughput and delay are of the packets received.");
  bind_score(
      module, "specimen_score", &specimen_score,
      "The score of all senders combined by the weights of their groups; None if no sender is "
      "scored.");
  module.def(
      "normalized_scores",
      [](double minimum_on_ms, double link_rate_packets_per_ms, double rtt_ms, double duration_ms,
         const std::vector<SenderResults>& senders, const std::vector<Tally>& tallies) {
        const Specimen path = make_path(link_rate_packets_per_ms, rtt_ms, kPacketBytes, {});
        return normalized_scores(minimum_on_ms, path, senders, duration_ms, tallies);
      },
      nb::kw_only(), "minimum_on_ms"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "duration_ms"_a,
      "senders"_a, "tallies"_a,
      "log2(throughput / link rate) - log2(delay / RTT) of each sender; None if a sender is not "
      "scored.");
}

}  // namespace remy
