#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.h"
#include "evaluation/evaluator.h"
#include "evaluation/objective.h"
#include "network/network.h"
#include "senders/packet.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {

void bind_results(nb::module_& module) {
  nb::class_<SenderResults>(module, "SenderResults")
      .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t, double, double, double, double>(),
           nb::kw_only(), "packets_received"_a, "packets_sent"_a, "packets_lost"_a, "on_ms"_a,
           "share_ms"_a, "delay_sum_ms"_a, "first_on_ms"_a);
  nb::class_<FlowCompletion>(module, "FlowCompletion")
      .def(nb::init<std::uint64_t, double>(), nb::kw_only(), "packets"_a, "time_ms"_a)
      .def_ro("packets", &FlowCompletion::packets)
      .def_ro("time_ms", &FlowCompletion::time_ms);
  nb::class_<NetworkSenderResults>(
      module, "TransportResults",
      "The results of a sender's transport, as in a TransportColumns message, without the means "
      "of sampled RTTs.")
      .def(
          "__init__",
          [](NetworkSenderResults* self, std::uint64_t packets_in_order,
             std::uint64_t packets_retransmitted, std::uint64_t packets_marked,
             std::uint64_t timeouts, std::uint64_t throughput_packets, std::uint64_t delay_samples,
             std::vector<FlowCompletion> flows) {
            new (self) NetworkSenderResults();
            self->endpoint.packets_in_order = packets_in_order;
            self->endpoint.packets_retransmitted = packets_retransmitted;
            self->endpoint.packets_marked = packets_marked;
            self->endpoint.timeouts = timeouts;
            self->throughput_packets = throughput_packets;
            self->delay_samples = delay_samples;
            self->flows = std::move(flows);
          },
          nb::kw_only(), "packets_in_order"_a, "packets_retransmitted"_a, "packets_marked"_a,
          "timeouts"_a, "throughput_packets"_a, "delay_samples"_a, "flows"_a)
      .def_prop_ro("packets_in_order",
                   [](const NetworkSenderResults& r) { return r.endpoint.packets_in_order; })
      .def_prop_ro("packets_retransmitted",
                   [](const NetworkSenderResults& r) { return r.endpoint.packets_retransmitted; })
      .def_prop_ro("packets_marked",
                   [](const NetworkSenderResults& r) { return r.endpoint.packets_marked; })
      .def_prop_ro("timeouts", [](const NetworkSenderResults& r) { return r.endpoint.timeouts; })
      .def_ro("throughput_packets", &NetworkSenderResults::throughput_packets)
      .def_ro("delay_samples", &NetworkSenderResults::delay_samples)
      .def_ro("flows", &NetworkSenderResults::flows);
  nb::class_<Tally>(module, "Tally",
                    "The counts from which a sender's throughput and delay are computed.")
      .def(nb::init<std::uint64_t, std::uint64_t, std::uint64_t>(), nb::kw_only(),
           "throughput_packets"_a, "delay_samples"_a, "flows"_a)
      .def_ro("throughput_packets", &Tally::throughput_packets)
      .def_ro("delay_samples", &Tally::delay_samples)
      .def_ro("flows", &Tally::flows);
  module.def(
      "digest",
      [](const std::vector<std::vector<SenderResults>>& simulations,
         const std::vector<std::vector<NetworkSenderResults>>& transports) {
        std::vector<SpecimenOutcome> outcomes;
        outcomes.reserve(simulations.size());
        for (std::size_t i = 0; i < simulations.size(); ++i) {
          outcomes.push_back({simulations[i], {}, {}, transports.at(i)});
        }
        return digest(outcomes);
      },
      "simulations"_a, "transports"_a,
      "A digest of the exact results of all senders and their transports, by simulation.");
}

}  // namespace remy
