#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "evaluation/specimen.h"
#include "network/link_description.h"
#include "senders/traffic.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

EmpiricalBytes make_empirical(const std::string& name, const std::vector<double>& probabilities,
                              const std::vector<double>& bytes, double extra_bytes) {
  if (name.empty() && probabilities.size() == bytes.size()) {
    FlowQuantiles quantiles;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      quantiles.push_back({probabilities[i], bytes[i]});
    }
    return {std::make_shared<const FlowQuantiles>(std::move(quantiles)), extra_bytes};
  }
  if (name.empty() || !probabilities.empty() || !bytes.empty()) {
    throw std::invalid_argument(
        "empirical_bytes must have a name, or as many probabilities as bytes");
  }
  return {flow_quantiles(name), extra_bytes};
}

Intervals make_intervals(const std::vector<double>& begin_ms, const std::vector<double>& end_ms) {
  if (begin_ms.size() != end_ms.size() && begin_ms.size() != end_ms.size() + 1) {
    throw std::invalid_argument(
        "intervals must have an end_ms for each begin_ms; the last may be left out");
  }
  Intervals intervals;
  for (std::size_t i = 0; i < begin_ms.size(); ++i) {
    intervals.intervals.push_back(
        {begin_ms[i], i < end_ms.size() ? end_ms[i] : std::numeric_limits<double>::infinity()});
  }
  return intervals;
}

TraceSemantics make_semantics(std::string_view name) {
  if (name == "ns2") {
    return TraceSemantics::kNs2;
  }
  if (name == "mahimahi") {
    return TraceSemantics::kMahimahi;
  }
  if (name == "cellsim") {
    return TraceSemantics::kCellsim;
  }
  throw std::invalid_argument("a trace's semantics are \"" + std::string(name) +
                              "\", but must be ns2, mahimahi or cellsim");
}

TraceDescription make_recorded(const nb::bytes& opportunities_us, std::string_view semantics,
                               bool ends) {
  constexpr std::size_t kBytes = 8;
  constexpr double kUsPerMs = 1000;
  if (opportunities_us.size() % kBytes != 0) {
    throw std::invalid_argument("a trace has " + std::to_string(opportunities_us.size()) +
                                " bytes, but must have 8 for each opportunity");
  }
  const auto* const bytes = static_cast<const unsigned char*>(opportunities_us.data());
  std::vector<double> opportunities_ms;
  opportunities_ms.reserve(opportunities_us.size() / kBytes);
  for (std::size_t at = 0; at < opportunities_us.size(); at += kBytes) {
    std::uint64_t time_us = 0;
    for (std::size_t byte = kBytes; byte-- > 0;) {
      time_us = time_us << 8U | bytes[at + byte];
    }
    opportunities_ms.push_back(static_cast<double>(time_us) / kUsPerMs);
  }
  return {std::make_shared<const Trace>(std::move(opportunities_ms)), make_semantics(semantics),
          ends};
}

TraceDescription make_generated(double maximum_packets_per_s, double volatility_packets_per_s,
                                double outage_escape_per_s, double tick_ms,
                                std::optional<std::uint64_t> seed, std::string_view semantics) {
  return {TraceGenerator{maximum_packets_per_s, volatility_packets_per_s, outage_escape_per_s,
                         tick_ms, seed},
          make_semantics(semantics), false};
}

void bind_link_kinds(nb::module_& module) {
  nb::class_<TraceDescription>(module, "TraceDriver");
  module.def(
      "recorded", &make_recorded, "opportunities_us"_a, "semantics"_a, "ends"_a,
      "A link driver that follows a trace of little-endian 8-byte numbers. Raises ValueError.");
  module.def("generated", &make_generated, "maximum_packets_per_s"_a, "volatility_packets_per_s"_a,
             "outage_escape_per_s"_a, "tick_ms"_a, "seed"_a.none(), "semantics"_a,
             "A link driver that follows a model. Raises ValueError.");
  nb::class_<LinkStep>(module, "LinkStep")
      .def(nb::init<double, std::optional<double>, std::optional<double>, std::optional<double>>(),
           "at_ms"_a, "rate_packets_per_ms"_a.none(), "delay_ms"_a.none(),
           "loss_probability"_a.none());
  nb::class_<LinkSchedule>(module, "LinkSchedule")
      .def(nb::init<std::vector<LinkStep>, std::optional<double>>(), "steps"_a,
           "repeat_after_ms"_a.none());
  nb::class_<LinkRange>(module, "LinkRange").def(nb::init<double, double>(), "least"_a, "most"_a);
  nb::class_<LinkWalk>(module, "LinkWalk")
      .def(nb::init<double, std::optional<LinkRange>, std::optional<LinkRange>,
                    std::optional<LinkRange>, double>(),
           "every_ms"_a, "rate_packets_per_ms"_a.none(), "delay_ms"_a.none(),
           "loss_probability"_a.none(), "step"_a);
  nb::class_<GilbertElliottLoss>(module, "GilbertElliottLoss")
      .def(nb::init<double, double, double, double>(), "good_to_bad"_a, "bad_to_good"_a,
           "loss_in_good"_a, "loss_in_bad"_a);
  nb::class_<Policer>(module, "Policer")
      .def(nb::init<double, double>(), "rate_packets_per_ms"_a, "burst_packets"_a);
  nb::class_<PeriodicRelease>(module, "PeriodicRelease").def(nb::init<double>(), "period_ms"_a);
  nb::class_<BatchRelease>(module, "BatchRelease")
      .def(nb::init<std::uint32_t, double>(), "packets"_a, "longest_wait_ms"_a);
  nb::class_<RandomRelease>(module, "RandomRelease")
      .def(nb::init<double, double, bool>(), "longest_hold_ms"_a, "probability"_a, "reorders"_a);
}

void bind_traffic(nb::module_& module) {
  nb::class_<ExponentialTime>(module, "ExponentialTime").def(nb::init<double>(), "mean_ms"_a);
  nb::class_<ExponentialBytes>(module, "ExponentialBytes").def(nb::init<double>(), "mean_bytes"_a);
  nb::class_<ParetoBytes>(module, "ParetoBytes")
      .def(nb::init<double, double, double, double, double>(), "scale_bytes"_a, "shape"_a,
           "shift_bytes"_a, "extra_bytes"_a, "maximum_bytes"_a);
  nb::class_<EmpiricalBytes>(module, "EmpiricalBytes");
  module.def("empirical_bytes", &make_empirical, "name"_a, "probabilities"_a, "bytes"_a,
             "extra_bytes"_a,
             "A flow length distribution, by name or by its quantiles. Raises ValueError.");
  nb::class_<ConstantBytes>(module, "ConstantBytes").def(nb::init<double>(), "bytes"_a);
  nb::class_<Always>(module, "Always").def(nb::init<>());
  nb::class_<Intervals>(module, "Intervals");
  module.def("intervals", &make_intervals, "begin_ms"_a, "end_ms"_a,
             "Traffic that is on in the given intervals. Raises ValueError.");
  nb::class_<PoissonArrivals>(module, "PoissonArrivals")
      .def(nb::init<double>(), "mean_interval_ms"_a);
  nb::class_<PeriodicArrivals>(module, "PeriodicArrivals").def(nb::init<double>(), "interval_ms"_a);
  nb::class_<Barrier>(module, "Barrier").def(nb::init<double>(), "pause_ms"_a);
  nb::class_<Traffic>(module, "Traffic")
      .def(
          "__init__",
          [](Traffic* self, const decltype(Traffic::on)& on, double mean_off_ms,
             const std::optional<std::variant<PoissonArrivals, PeriodicArrivals, Barrier>>&
                 arrivals,
             double first_off_factor) {
            new (self) Traffic{on, mean_off_ms, {}, first_off_factor};
            if (arrivals) {
              std::visit([self](const auto& each) { self->arrivals = each; }, *arrivals);
            }
          },
          "on"_a, "mean_off_ms"_a, "arrivals"_a.none() = nb::none(), "first_off_factor"_a = 1.0);
}

void bind_measurement(nb::module_& module) {
  nb::class_<ExponentialJitter>(module, "ExponentialJitter").def(nb::init<double>(), "mean_ms"_a);
  nb::class_<UniformJitter>(module, "UniformJitter").def(nb::init<double>(), "maximum_ms"_a);
  nb::class_<LogNormalJitter>(module, "LogNormalJitter")
      .def(nb::init<double, double>(), "median_ms"_a, "percentile_99_ms"_a);
  nb::class_<MeasurementNoise>(module, "MeasurementNoise")
      .def(
          "__init__",
          [](MeasurementNoise* self,
             const std::variant<ExponentialJitter, UniformJitter, LogNormalJitter>& jitter,
             double timestamp_resolution_ms, std::uint32_t bunch_packets, double delayed_ack_ms,
             double rtt_offset_maximum_ms, double reordering_probability,
             double reordering_delay_ms) {
            new (self) MeasurementNoise{
                .jitter = jitter,
                .timestamp_resolution_ms = timestamp_resolution_ms,
                .bunch_packets = bunch_packets,
                .delayed_ack_ms = delayed_ack_ms,
                .rtt_offset_maximum_ms = rtt_offset_maximum_ms,
                .reordering_probability = reordering_probability,
                .reordering_delay_ms = reordering_delay_ms,
            };
          },
          "jitter"_a, "timestamp_resolution_ms"_a, "bunch_packets"_a, "delayed_ack_ms"_a,
          "rtt_offset_maximum_ms"_a, "reordering_probability"_a, "reordering_delay_ms"_a);
}

}  // namespace

void bind_networks(nb::module_& module) {
  bind_traffic(module);
  bind_link_kinds(module);
  bind_measurement(module);
  nb::class_<LinkDescription>(module, "Link")
      .def(
          "__init__",
          [](LinkDescription* self, double rate_packets_per_ms, double delay_ms,
             std::optional<std::uint32_t> buffer_packets, const std::optional<Choice>& queue,
             double loss_probability) {
            new (self) LinkDescription();
            self->rate_packets_per_ms = rate_packets_per_ms;
            self->delay_ms = delay_ms;
            self->buffer_packets = buffer_packets;
            self->queue = queue.value_or(self->queue);
            self->loss_probability = loss_probability;
          },
          "rate_packets_per_ms"_a, "delay_ms"_a, "buffer_packets"_a.none(), "queue"_a.none(),
          "loss_probability"_a)
      .def(
          "mean_rate_packets_per_ms",
          [](const LinkDescription& link, double packet_bytes) {
            validate(link, "link");
            return mean_rate_packets_per_ms(link, packet_bytes);
          },
          "packet_bytes"_a, "The long-term mean rate. Raises ValueError.")
      .def_rw("trace", &LinkDescription::trace, nb::arg().none())
      .def_rw("gilbert_elliott", &LinkDescription::gilbert_elliott, nb::arg().none())
      .def_rw("changes", &LinkDescription::changes, nb::arg().none())
      .def_rw("policer", &LinkDescription::policer, nb::arg().none())
      .def_rw("jitter_box", &LinkDescription::jitter_box, nb::arg().none());
  nb::class_<RouteDescription>(module, "Route")
      .def(nb::init<std::vector<std::uint32_t>, std::vector<std::uint32_t>, double, double>(),
           "links"_a, "return_links"_a, "delay_ms"_a, "return_delay_ms"_a);
  nb::class_<SenderGroup>(module, "SenderGroup")
      .def(nb::init<std::uint32_t, std::uint32_t, Traffic, std::optional<Choice>,
                    std::optional<Choice>, std::optional<double>>(),
           "count"_a, "table"_a, "traffic"_a, "protocol"_a.none(), "transport"_a.none(),
           "first_on_ms"_a.none())
      .def_rw("weight", &SenderGroup::weight)
      .def_rw("objective", &SenderGroup::objective, nb::arg().none())
      .def_rw("rtt_offset_ms", &SenderGroup::rtt_offset_ms, nb::arg().none())
      .def_rw("route", &SenderGroup::route, nb::arg().none());
  nb::class_<Bottleneck>(module, "Bottleneck")
      .def(nb::init<std::optional<Choice>, double, double>(), "queue"_a.none(), "packet_bytes"_a,
           "ack_bytes"_a);
  nb::class_<Specimen>(module, "Specimen")
      .def(
          "__init__",
          [](Specimen* self, std::uint64_t key, double link_rate_packets_per_ms, double rtt_ms,
             std::optional<std::uint32_t> buffer_packets, double loss_probability,
             const MeasurementNoise& measurement, const std::vector<SenderGroup>& senders,
             const std::optional<Bottleneck>& bottleneck,
             const std::vector<LinkDescription>& links) {
            new (self) Specimen{key,
                                link_rate_packets_per_ms,
                                rtt_ms,
                                buffer_packets,
                                loss_probability,
                                measurement,
                                senders,
                                bottleneck,
                                links};
          },
          "key"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "buffer_packets"_a.none(),
          "loss_probability"_a, "measurement"_a, "senders"_a, "bottleneck"_a.none(), "links"_a);
}

}  // namespace remy
