#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "check_signals.h"
#include "core/interruption.h"
#include "elements/queues.h"
#include "evaluation/evaluator.h"
#include "evaluation/specimen.h"
#include "network/network.h"
#include "protocols/protocol.h"
#include "senders/bodies.h"
#include "senders/traffic.h"
#include "table/compiled_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {

void bind_networks(nb::module_& module);

namespace {

// Names, meanings and numbers, as Python's dataclasses take them.
using ParameterTuple = std::tuple<std::string, std::string, double, double, double>;
using VariantTuple = std::tuple<std::string, std::string, std::vector<ParameterTuple>>;
using EntryTuple =
    std::tuple<std::string, std::string, std::vector<VariantTuple>, std::vector<std::string>>;

// What matters to who combines them.
std::vector<std::string> traits(const Protocol& protocol) {
  std::vector<std::string> result;
  if (protocol.needs.is_ecn_capable) {
    result.emplace_back("is marked where others are dropped");
  }
  if (protocol.needs.needs_xcp_router) {
    result.emplace_back("needs an XCP router");
  }
  if (protocol.is_omniscient) {
    result.emplace_back("is alone on a link without loss");
  }
  return result;
}

std::vector<std::string> traits(const BodyKind& body) {
  std::vector<std::string> result;
  if (body.carries_tables) {
    result.emplace_back("carries RemyCCs");
  }
  if (body.carries_controllers) {
    result.emplace_back("carries protocols");
  }
  if (body.takes_noise) {
    result.emplace_back("measures with noise");
  }
  result.emplace_back(body.counts_every_packet ? "throughput of packets received"
                                               : "throughput of packets in order");
  return result;
}

std::vector<std::string> traits(const QueueDiscipline& queue) {
  return queue.is_xcp_router ? std::vector<std::string>{"is an XCP router"}
                             : std::vector<std::string>{};
}

template <class Named>
std::vector<EntryTuple> list(std::span<const Named> all) {
  std::vector<EntryTuple> entries;
  for (const Named& each : all) {
    std::vector<VariantTuple> variants;
    for (const Variant& variant : each.variants) {
      std::vector<ParameterTuple> parameters;
      for (const Parameter& parameter : variant.parameters) {
        parameters.emplace_back(parameter.name, parameter.meaning, parameter.usual,
                                parameter.minimum, parameter.maximum);
      }
      variants.emplace_back(variant.name, variant.source, std::move(parameters));
    }
    entries.emplace_back(each.name, each.title, std::move(variants), traits(each));
  }
  return entries;
}

[[noreturn]] void refuse_registry(std::string_view registry) {
  throw std::invalid_argument("there is no registry \"" + std::string(registry) +
                              "\"; there are: protocol, body, queue");
}

std::vector<EntryTuple> registered(std::string_view registry) {
  if (registry == "protocol") {
    return list(protocols());
  }
  if (registry == "body") {
    return list(body_kinds());
  }
  if (registry == "queue") {
    return list(queue_disciplines());
  }
  refuse_registry(registry);
}

void check_choice(std::string_view registry, const Choice& choice) {
  if (registry == "protocol") {
    Chosen(registry, find_protocol(choice.name).variants, choice);
  } else if (registry == "body") {
    Chosen(registry, find_body_kind(choice.name).variants, choice);
  } else if (registry == "queue") {
    Chosen(registry, find_queue_discipline(choice.name).variants, choice);
  } else {
    refuse_registry(registry);
  }
}

// Samples as columns: by time, and in it by sender or link.
struct NetworkRecording final : public Recorder {
  std::vector<double> time_ms;
  std::vector<std::uint8_t> is_on;
  std::vector<double> window_packets;
  std::vector<double> intersend_ms;
  std::vector<double> rtt_ms;
  std::vector<std::uint64_t> packets_sent;
  std::vector<std::uint64_t> packets_received;
  std::vector<std::uint64_t> packets_in_order;
  std::vector<std::uint64_t> waiting_packets;
  std::vector<std::uint64_t> dropped;
  // By link, at the end.
  std::vector<LinkResults> links;
  OutcomeColumns outcome;

  void sample(double now_ms, std::span<const SenderSample> senders,
              std::span<const LinkSample> links) override {
    time_ms.push_back(now_ms);
    for (const SenderSample& sender : senders) {
      is_on.push_back(sender.is_on ? 1 : 0);
      window_packets.push_back(sender.pace.window_packets);
      intersend_ms.push_back(sender.pace.intersend_ms);
      rtt_ms.push_back(sender.rtt_ms);
      packets_sent.push_back(sender.counts.packets_sent);
      packets_received.push_back(sender.counts.packets_received);
      packets_in_order.push_back(sender.counts.packets_in_order);
    }
    for (const LinkSample& link : links) {
      waiting_packets.push_back(link.waiting_packets);
      dropped.push_back(link.dropped);
    }
  }
};

NetworkRecording record(const std::vector<CompiledTable>& tables, const Specimen& specimen,
                        double duration_ms, std::uint64_t seed, double every_ms) {
  validate(specimen, tables.size());
  NetworkRecording recording;
  NetworkOptions options;
  options.recorder = &recording;
  options.record_every_ms = every_ms;
  Interruption interruption(nullptr, Interruption::kNoLimit, check_signals);
  options.interruption = &interruption;
  const nb::gil_scoped_release released;
  NetworkResults results = run_network(describe(specimen), tables, duration_ms, seed, options);
  recording.links = std::move(results.links);
  OutcomeColumns& outcome = recording.outcome;
  outcome.packets_sent.push_back(0);
  for (const NetworkSenderResults& sender : results.senders) {
    outcome.packets_sent.front() += sender.traffic.packets_sent;
    outcome.senders.push_back(sender.traffic);
  }
  if (!is_plain(specimen)) {
    outcome.network = std::move(results.senders);
  }
  return recording;
}

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
  module.def("recorded", &make_recorded, "opportunities_us"_a, "semantics"_a, "ends"_a,
             "What drives a link as a recording says: little-endian numbers of 8 bytes. Raises "
             "ValueError.");
  module.def("generated", &make_generated, "maximum_packets_per_s"_a, "volatility_packets_per_s"_a,
             "outage_escape_per_s"_a, "tick_ms"_a, "seed"_a.none(), "semantics"_a,
             "What drives a link as a model says. Raises ValueError.");
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
             "extra_bytes"_a, "By the name of quantiles, or by these. Raises ValueError.");
  nb::class_<ConstantBytes>(module, "ConstantBytes").def(nb::init<double>(), "bytes"_a);
  nb::class_<Always>(module, "Always").def(nb::init<>());
  nb::class_<Intervals>(module, "Intervals");
  module.def("intervals", &make_intervals, "begin_ms"_a, "end_ms"_a,
             "On between these times. Raises ValueError.");
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

}  // namespace

void bind_networks(nb::module_& module) {
  module.def("registered", &registered, "registry"_a,
             "All that a registry (protocol, body, queue) has: (name, title, variants, traits), "
             "each variant (name, source, parameters), each parameter (name, meaning, usual, "
             "minimum, maximum). Raises ValueError.");
  module.def("check_choice", &check_choice, "registry"_a, "choice"_a,
             "Raises ValueError with one sentence for what a registry does not have, or numbers "
             "out of their ranges.");
  bind_traffic(module);
  bind_link_kinds(module);
  nb::class_<Choice>(module, "Choice")
      .def(nb::init<std::string, std::string, std::vector<std::pair<std::string, double>>>(),
           "name"_a, "variant"_a, "parameters"_a);
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
          "packet_bytes"_a, "Over the long run. Raises ValueError.")
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
           "count"_a, "table"_a, "traffic"_a, "protocol"_a.none(), "body"_a.none(),
           "first_on_ms"_a.none())
      .def_rw("weight", &SenderGroup::weight)
      .def_rw("objective", &SenderGroup::objective, nb::arg().none())
      .def_rw("rtt_offset_ms", &SenderGroup::rtt_offset_ms, nb::arg().none())
      .def_rw("route", &SenderGroup::route, nb::arg().none());
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
  nb::class_<LinkResults>(module, "LinkResults")
      .def_ro("transmitted", &LinkResults::transmitted)
      .def_ro("dropped", &LinkResults::dropped)
      .def_ro("lost", &LinkResults::lost)
      .def_ro("waiting", &LinkResults::waiting)
      .def_ro("under_way", &LinkResults::under_way);
  nb::class_<NetworkRecording>(module, "NetworkRecording")
      .def_ro("time_ms", &NetworkRecording::time_ms)
      .def_ro("is_on", &NetworkRecording::is_on)
      .def_ro("window_packets", &NetworkRecording::window_packets)
      .def_ro("intersend_ms", &NetworkRecording::intersend_ms)
      .def_ro("rtt_ms", &NetworkRecording::rtt_ms)
      .def_ro("packets_sent", &NetworkRecording::packets_sent)
      .def_ro("packets_received", &NetworkRecording::packets_received)
      .def_ro("packets_in_order", &NetworkRecording::packets_in_order)
      .def_ro("waiting_packets", &NetworkRecording::waiting_packets)
      .def_ro("dropped", &NetworkRecording::dropped)
      .def_ro("links", &NetworkRecording::links)
      .def_ro("outcome", &NetworkRecording::outcome);
  module.def("record", &record, "tables"_a, "specimen"_a, "duration_ms"_a, "seed"_a, "every_ms"_a,
             "What is seen of one network every so often, as columns: of senders by time and "
             "sender, of links by time and link; and what became of links and senders. Releases "
             "the GIL. Raises ValueError.");
}

}  // namespace remy
