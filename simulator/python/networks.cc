#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "elements/queues.h"
#include "evaluation/specimen.h"
#include "network/network.h"
#include "protocols/protocol.h"
#include "senders/bodies.h"
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
struct Recording final : public Recorder {
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

Recording record(const std::vector<CompiledTable>& tables, const Specimen& specimen,
                 double duration_ms, std::uint64_t seed, double every_ms) {
  validate(specimen, tables.size());
  Recording recording;
  NetworkOptions options;
  options.recorder = &recording;
  options.record_every_ms = every_ms;
  const nb::gil_scoped_release released;
  run_network(describe(specimen), tables, duration_ms, seed, options);
  return recording;
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
  nb::class_<Specimen>(module, "Specimen")
      .def(
          "__init__",
          [](Specimen* self, std::uint64_t key, double link_rate_packets_per_ms, double rtt_ms,
             std::optional<std::uint32_t> buffer_packets, double loss_probability,
             const MeasurementNoise& measurement, const std::vector<SenderGroup>& senders,
             const std::optional<Bottleneck>& bottleneck) {
            new (self) Specimen{key,
                                link_rate_packets_per_ms,
                                rtt_ms,
                                buffer_packets,
                                loss_probability,
                                measurement,
                                senders,
                                bottleneck};
          },
          "key"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "buffer_packets"_a.none(),
          "loss_probability"_a, "measurement"_a, "senders"_a, "bottleneck"_a.none());
  nb::class_<Recording>(module, "NetworkRecording")
      .def_ro("time_ms", &Recording::time_ms)
      .def_ro("is_on", &Recording::is_on)
      .def_ro("window_packets", &Recording::window_packets)
      .def_ro("intersend_ms", &Recording::intersend_ms)
      .def_ro("rtt_ms", &Recording::rtt_ms)
      .def_ro("packets_sent", &Recording::packets_sent)
      .def_ro("packets_received", &Recording::packets_received)
      .def_ro("packets_in_order", &Recording::packets_in_order)
      .def_ro("waiting_packets", &Recording::waiting_packets)
      .def_ro("dropped", &Recording::dropped);
  module.def("record", &record, "tables"_a, "specimen"_a, "duration_ms"_a, "seed"_a, "every_ms"_a,
             "What is seen of one network every so often, as columns: of senders by time and "
             "sender, of links by time and link. Releases the GIL. Raises ValueError.");
}

}  // namespace remy
