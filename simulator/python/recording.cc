#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bindings.h"
#include "check_signals.h"
#include "columns.h"
#include "core/interruption.h"
#include "evaluation/evaluator.h"
#include "evaluation/specimen.h"
#include "network/network.h"
#include "table/compiled_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

// Samples as columns, by time and then by sender or link.
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
  // Results by link at the end of the simulation.
  std::vector<LinkResults> links;
  OutcomeColumns outcome;
  PacketCapture capture;  // empty unless asked for

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
                        double duration_ms, std::uint64_t seed, double every_ms, bool distributions,
                        std::optional<std::uint32_t> capture_sender) {
  validate(specimen, tables.size());
  NetworkRecording recording;
  NetworkOptions options;
  options.recorder = &recording;
  options.record_every_ms = every_ms;
  options.measures_distributions = distributions;
  if (capture_sender) {
    recording.capture.sender = *capture_sender;
    options.capture = &recording.capture;
  }
  Interruption interruption(nullptr, Interruption::kNoLimit, check_signals);
  options.interruption = &interruption;
  const nb::gil_scoped_release released;
  NetworkResults results = run_network(describe(specimen), tables, duration_ms, seed, options);
  recording.links = std::move(results.links);
  OutcomeColumns& outcome = recording.outcome;
  outcome.packets_sent.push_back(0);
  for (const NetworkSenderResults& sender : results.senders) {
    outcome.packets_sent.front() += sender.totals.packets_sent;
    outcome.senders.push_back(sender.totals);
  }
  outcome.has_distributions = distributions;
  if (distributions || !is_plain(specimen)) {
    outcome.network = std::move(results.senders);
  }
  return recording;
}

}  // namespace

void bind_recording(nb::module_& module) {
  nb::class_<PacketCapture>(module, "PacketCapture")
      .def_ro("sender", &PacketCapture::sender)
      .def_ro("is_ecn_capable", &PacketCapture::is_ecn_capable)
      .def_ro("acks_echo_alone", &PacketCapture::acks_echo_alone)
      .def_prop_ro("kind", [](const PacketCapture& c) { return column(c.kind); })
      .def_prop_ro("time_ms", [](const PacketCapture& c) { return column(c.time_ms); })
      .def_prop_ro("sequence", [](const PacketCapture& c) { return column(c.sequence); })
      .def_prop_ro("transmission_number",
                   [](const PacketCapture& c) { return column(c.transmission_number); })
      .def_prop_ro("echoed_ms", [](const PacketCapture& c) { return column(c.echoed_ms); })
      .def_prop_ro("received_ms", [](const PacketCapture& c) { return column(c.received_ms); })
      .def_prop_ro("cumulative", [](const PacketCapture& c) { return column(c.cumulative); })
      .def_prop_ro("marked", [](const PacketCapture& c) { return column(c.marked); })
      .def_prop_ro("blocks", [](const PacketCapture& c) { return column(c.blocks); })
      .def_prop_ro("block_first", [](const PacketCapture& c) { return column(c.block_first); })
      .def_prop_ro("block_end", [](const PacketCapture& c) { return column(c.block_end); })
      .def_prop_ro("window_packets",
                   [](const PacketCapture& c) { return column(c.window_packets); })
      .def_prop_ro("intersend_ms", [](const PacketCapture& c) { return column(c.intersend_ms); })
      .def_prop_ro("first", [](const PacketCapture& c) { return column(c.first); })
      .def_prop_ro("in_flight", [](const PacketCapture& c) { return column(c.in_flight); })
      .def_prop_ro("smoothed_rtt_ms",
                   [](const PacketCapture& c) { return column(c.smoothed_rtt_ms); })
      .def_prop_ro("rtt_variation_ms",
                   [](const PacketCapture& c) { return column(c.rtt_variation_ms); })
      .def_prop_ro("ssthresh_packets",
                   [](const PacketCapture& c) { return column(c.ssthresh_packets); });
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
      .def_ro("outcome", &NetworkRecording::outcome)
      .def_ro("capture", &NetworkRecording::capture);
  module.def("record", &record, nb::kw_only(), "tables"_a, "specimen"_a, "duration_ms"_a, "seed"_a,
             "every_ms"_a, "distributions"_a, "capture_sender"_a.none(),
             "Simulates a network and samples it every every_ms, as columns: senders by time and "
             "sender, links by time and link; also the results of links and senders, and what "
             "capture_sender sends and receives. Releases the GIL. Raises ValueError.");
}

}  // namespace remy
