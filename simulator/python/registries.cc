#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "core/choice.h"
#include "elements/queues.h"
#include "protocols/protocol.h"
#include "transports/transport.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

// An entry of a registry.
struct Entry {
  std::string name;
  std::string title;
  std::vector<Variant> variants;
  std::vector<std::string> traits;
};

// Properties that restrict combinations of entries.
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

std::vector<std::string> traits(const Transport& transport) {
  std::vector<std::string> result;
  if (transport.runs_tables) {
    result.emplace_back("runs RemyCCs");
  }
  if (transport.runs_controllers) {
    result.emplace_back("runs protocols");
  }
  if (transport.takes_noise) {
    result.emplace_back("measures with noise");
  }
  result.emplace_back(transport.counts_every_packet ? "throughput of packets received"
                                                    : "throughput of packets in order");
  return result;
}

std::vector<std::string> traits(const QueueDiscipline& queue) {
  return queue.is_xcp_router ? std::vector<std::string>{"is an XCP router"}
                             : std::vector<std::string>{};
}

template <class Named>
std::vector<Entry> list(std::span<const Named> all) {
  std::vector<Entry> entries;
  for (const Named& each : all) {
    entries.push_back({std::string(each.name),
                       std::string(each.title),
                       {each.variants.begin(), each.variants.end()},
                       traits(each)});
  }
  return entries;
}

[[noreturn]] void refuse_registry(std::string_view registry) {
  throw std::invalid_argument("there is no registry \"" + std::string(registry) +
                              "\"; there are: protocol, transport, queue");
}

std::vector<Entry> registered(std::string_view registry) {
  if (registry == "protocol") {
    return list(protocols());
  }
  if (registry == "transport") {
    return list(transports());
  }
  if (registry == "queue") {
    return list(queue_disciplines());
  }
  refuse_registry(registry);
}

void check_choice(std::string_view registry, const Choice& choice) {
  if (registry == "protocol") {
    ParameterValues(registry, find_protocol(choice.name).variants, choice);
  } else if (registry == "transport") {
    ParameterValues(registry, find_transport(choice.name).variants, choice);
  } else if (registry == "queue") {
    ParameterValues(registry, find_queue_discipline(choice.name).variants, choice);
  } else {
    refuse_registry(registry);
  }
}

}  // namespace

void bind_registries(nb::module_& module) {
  nb::class_<Parameter>(module, "Parameter")
      .def_ro("name", &Parameter::name)
      .def_ro("meaning", &Parameter::description)
      .def_ro("usual", &Parameter::default_value)
      .def_ro("minimum", &Parameter::minimum)
      .def_ro("maximum", &Parameter::maximum);
  nb::class_<Variant>(module, "Variant")
      .def_ro("name", &Variant::name)
      .def_ro("source", &Variant::source)
      .def_ro("parameters", &Variant::parameters);
  nb::class_<Entry>(module, "Entry")
      .def_ro("name", &Entry::name)
      .def_ro("title", &Entry::title)
      .def_ro("variants", &Entry::variants)
      .def_ro("traits", &Entry::traits);
  nb::class_<Choice>(module, "Choice")
      .def(nb::init<std::string, std::string, std::vector<std::pair<std::string, double>>>(),
           "name"_a, "variant"_a, "parameters"_a);
  module.def("registered", &registered, "registry"_a,
             "The entries of a registry (protocol, transport, queue). Raises ValueError.");
  module.def("check_choice", &check_choice, "registry"_a, "choice"_a,
             "Raises ValueError if a registry does not have the choice, or a number is out of "
             "range.");
}

}  // namespace remy
