#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/elementary.h"
#include "core/random.h"
#include "evaluation/evaluator.h"
#include "evaluation/gradient.h"
#include "evaluation/objective.h"
#include "senders/remy_controller.h"
#include "table/dna.h"
#include "table/message.h"
#include "table/rule_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {

// In networks.cc.
void bind_networks(nb::module_& module);

namespace {

using ThresholdTuple = std::tuple<std::uint8_t, double>;
using ActionTuple = std::tuple<double, double, double>;
using NodeTuple = std::tuple<std::vector<ThresholdTuple>, ActionTuple>;

Signal to_signal(std::uint8_t axis) {
  if (axis >= kSignals) {
    throw InvalidTable("signal " + std::to_string(axis) + " is not one of 0 to " +
                       std::to_string(kSignals - 1));
  }
  return static_cast<Signal>(axis);
}

Action to_action(const ActionTuple& action) {
  return {std::get<0>(action), std::get<1>(action), std::get<2>(action)};
}

ActionTuple from_action(const Action& action) {
  return {action.window_multiple, action.window_increment, action.intersend_ms};
}

std::vector<Threshold> to_thresholds(const std::vector<ThresholdTuple>& thresholds) {
  std::vector<Threshold> result;
  for (const auto& [axis, value] : thresholds) {
    result.push_back({to_signal(axis), value});
  }
  return result;
}

// As messages number them.
Rules to_rules(unsigned number) {
  if (number < static_cast<unsigned>(Rules::kAbsolute) ||
      number > static_cast<unsigned>(Rules::kScaleFreeRemembering)) {
    throw InvalidTable(
        "rules " + std::to_string(number) +
        " are not one of 1 (absolute), 2 (scale_free) and 3 (scale_free_remembering)");
  }
  return static_cast<Rules>(number);
}

RuleTable make_table(const std::vector<std::uint8_t>& signals, const std::vector<NodeTuple>& nodes,
                     double domain_upper, unsigned rules) {
  std::vector<Signal> axes;
  for (const std::uint8_t axis : signals) {
    axes.push_back(to_signal(axis));
  }
  std::vector<Node> preorder;
  preorder.reserve(nodes.size());
  for (const auto& [thresholds, action] : nodes) {
    preorder.push_back({to_thresholds(thresholds), to_action(action)});
  }
  return RuleTable(std::move(axes), std::move(preorder), domain_upper, to_rules(rules));
}

std::vector<NodeTuple> list_nodes(const RuleTable& table) {
  std::vector<NodeTuple> nodes;
  nodes.reserve(table.nodes().size());
  for (const Node& node : table.nodes()) {
    std::vector<ThresholdTuple> thresholds;
    for (const Threshold& threshold : node.thresholds) {
      thresholds.emplace_back(static_cast<std::uint8_t>(threshold.signal), threshold.value);
    }
    nodes.emplace_back(std::move(thresholds), from_action(node.action));
  }
  return nodes;
}

std::vector<std::uint8_t> list_signals(const RuleTable& table) {
  std::vector<std::uint8_t> signals;
  for (const Signal signal : table.signals()) {
    signals.push_back(static_cast<std::uint8_t>(signal));
  }
  return signals;
}

std::size_t checked_rule(const RuleTable& table, std::size_t rule) {
  if (rule >= table.rule_count()) {
    throw nb::index_error(
        ("rule " + std::to_string(rule) + " of a table of " + std::to_string(table.rule_count()))
            .c_str());
  }
  return rule;
}

// What happened to a sender, in the order of SenderResults' members.
using SenderTuple =
    std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, double, double, double, double>;

std::vector<SenderResults> to_senders(const std::vector<SenderTuple>& tuples) {
  std::vector<SenderResults> senders;
  senders.reserve(tuples.size());
  for (const SenderTuple& tuple : tuples) {
    senders.push_back(std::apply([](auto... values) { return SenderResults{values...}; }, tuple));
  }
  return senders;
}

// What TransportColumns says of a sender, and of its flows: packets, and time in ms.
using TransportRow =
    std::tuple<std::array<std::uint64_t, 6>, std::vector<std::pair<std::uint64_t, double>>>;

NetworkSenderResults to_network_results(const TransportRow& row) {
  const auto& [counts, flows] = row;
  NetworkSenderResults results;
  results.body.packets_in_order = counts[0];
  results.body.packets_repeated = counts[1];
  results.body.packets_marked = counts[2];
  results.body.timeouts = counts[3];
  results.throughput_packets = counts[4];
  results.delay_samples = counts[5];
  for (const auto& [packets, time_ms] : flows) {
    results.flows.push_back({packets, time_ms});
  }
  return results;
}

// All of a network that scores depend on.
Specimen make_path(double link_rate_packets_per_ms, double rtt_ms, double packet_bytes,
                   const std::vector<SenderGroup>& groups = {}) {
  Specimen specimen;
  specimen.senders = groups;
  specimen.link_rate_packets_per_ms = link_rate_packets_per_ms;
  specimen.rtt_ms = rtt_ms;
  specimen.bottleneck = Bottleneck{{}, packet_bytes, 0};
  return specimen;
}

// (packets that count as throughput, delays measured, flows completed) of each sender.
using TallyTuples = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

std::vector<Tally> to_tallies(const TallyTuples& tuples) {
  std::vector<Tally> tallies;
  for (const auto& [throughput_packets, delay_samples, flows] : tuples) {
    tallies.push_back({throughput_packets, delay_samples, flows});
  }
  return tallies;
}

std::uint64_t derive_path(std::uint64_t seed, const nb::args& path) {
  for (const auto name : path) {
    seed = derive_key(seed, nb::cast<std::uint64_t>(name));
  }
  return seed;
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// Columns travel as little-endian bytes, which is what the machine has.
static_assert(std::endian::native == std::endian::little);

template <class Number>
nb::bytes column(const std::vector<Number>& numbers) {
  return nb::bytes(numbers.data(), numbers.size() * sizeof(Number));
}

template <class Row, class Member>
nb::bytes column(const std::vector<Row>& rows, Member member) {
  std::vector<double> numbers;
  numbers.reserve(rows.size());
  for (const Row& row : rows) {
    numbers.push_back(row.*member);
  }
  return column(numbers);
}

template <class Row, class Member>
std::vector<std::uint64_t> integers(const std::vector<Row>& rows, Member member) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(rows.size());
  for (const Row& row : rows) {
    numbers.push_back(row.*member);
  }
  return numbers;
}

template <class Number>
std::vector<Number> numbers_of(const nb::bytes& column, const char* name) {
  if (column.size() % sizeof(Number) != 0) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(column.size()) +
                                " bytes, which is not a multiple of " +
                                std::to_string(sizeof(Number)));
  }
  std::vector<Number> numbers(column.size() / sizeof(Number));
  std::memcpy(numbers.data(), column.c_str(), column.size());
  return numbers;
}

// What specimens share when only numbers tell them apart; the groups' counts are to be filled in.
struct SpecimenKind {
  MeasurementNoise measurement;
  std::vector<SenderGroup> senders;
  std::optional<Bottleneck> bottleneck;
  std::vector<LinkDescription> links;
};

std::vector<Specimen> make_specimens(const std::vector<SpecimenKind>& kinds, const nb::bytes& keys,
                                     const nb::bytes& link_rates, const nb::bytes& rtts,
                                     const std::vector<std::uint64_t>& buffers,
                                     const nb::bytes& losses,
                                     const std::vector<std::uint32_t>& kind,
                                     const std::vector<std::uint32_t>& counts) {
  const auto key = numbers_of<std::uint64_t>(keys, "keys");
  const auto rate = numbers_of<double>(link_rates, "link_rates_packets_per_ms");
  const auto rtt = numbers_of<double>(rtts, "rtts_ms");
  const auto loss = numbers_of<double>(losses, "loss_probabilities");
  const std::size_t size = key.size();
  const auto fits = [&](std::size_t entries, bool may_be_empty) {
    return entries == size || (may_be_empty && entries == 0);
  };
  if (!fits(rate.size(), false) || !fits(rtt.size(), false) || !fits(buffers.size(), true) ||
      !fits(loss.size(), true) || !fits(kind.size(), true)) {
    throw std::invalid_argument("the columns of the specimens differ in length");
  }
  std::vector<Specimen> specimens(size);
  std::size_t group = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t number = kind.empty() ? 0 : kind[i];
    if (number >= kinds.size()) {
      throw std::invalid_argument("a specimen is of kind " + std::to_string(number) + " of " +
                                  std::to_string(kinds.size()));
    }
    Specimen& specimen = specimens[i];
    specimen.key = key[i];
    specimen.link_rate_packets_per_ms = rate[i];
    specimen.rtt_ms = rtt[i];
    if (!buffers.empty() && buffers[i] > 0) {
      if (buffers[i] - 1 > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("a specimen's buffer is larger than 4294967295 packets");
      }
      specimen.buffer_packets = static_cast<std::uint32_t>(buffers[i] - 1);
    }
    specimen.loss_probability = loss.empty() ? 0 : loss[i];
    specimen.measurement = kinds[number].measurement;
    specimen.senders = kinds[number].senders;
    specimen.bottleneck = kinds[number].bottleneck;
    specimen.links = kinds[number].links;
    for (SenderGroup& senders : specimen.senders) {
      if (group >= counts.size()) {
        throw std::invalid_argument("the specimens have fewer sender counts than sender groups");
      }
      senders.count = counts[group++];
    }
  }
  if (group != counts.size()) {
    throw std::invalid_argument("the specimens have more sender counts than sender groups");
  }
  return specimens;
}

// The columns of a TransportColumns message, in the order of its fields.
using TransportTuple =
    std::tuple<std::vector<std::uint64_t>, std::vector<std::uint64_t>, std::vector<std::uint64_t>,
               std::vector<std::uint64_t>, std::vector<std::uint64_t>, std::vector<std::uint64_t>,
               std::vector<std::uint64_t>, std::vector<std::uint64_t>, nb::bytes, nb::bytes,
               nb::bytes>;

TransportTuple transport_columns(const OutcomeColumns& columns) {
  std::vector<NetworkSenderResults> senders = columns.network;
  if (senders.empty()) {
    std::ranges::transform(columns.senders, std::back_inserter(senders), as_network_results);
  }
  std::vector<BodyResults> bodies;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> packets;
  std::vector<double> times_ms;
  std::vector<double> rtts_ms;
  std::vector<double> rtts_over_time_ms;
  for (const NetworkSenderResults& sender : senders) {
    bodies.push_back(sender.body);
    rtts_ms.push_back(sender.body.rtt.mean_ms());
    rtts_over_time_ms.push_back(sender.body.rtt.mean_over_time_ms());
    flows.push_back(sender.flows.size());
    for (const FlowCompletion& flow : sender.flows) {
      packets.push_back(flow.packets);
      times_ms.push_back(flow.time_ms);
    }
  }
  return {integers(bodies, &BodyResults::packets_in_order),
          integers(bodies, &BodyResults::packets_repeated),
          integers(bodies, &BodyResults::packets_marked),
          integers(bodies, &BodyResults::timeouts),
          integers(senders, &NetworkSenderResults::throughput_packets),
          integers(senders, &NetworkSenderResults::delay_samples),
          std::move(flows),
          std::move(packets),
          column(times_ms),
          column(rtts_ms),
          column(rtts_over_time_ms)};
}

// What Python code may set from any thread.
struct Cancellation {
  std::atomic<bool> flag{false};
};

// Ctrl-C reaches a caller that waits for the simulator: Python's handlers run in the main thread,
// and only when they are let.
void check_signals() {
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) {
    throw nb::python_error();
  }
}

Interruption make_interruption(const Cancellation* cancellation,
                               std::optional<std::uint64_t> packet_limit) {
  return Interruption(cancellation == nullptr ? nullptr : &cancellation->flag,
                      packet_limit.value_or(Interruption::kNoLimit), check_signals);
}

void bind_numbers(nb::module_& module) {
  module.def("log", &natural_logarithm, "x"_a,
             "Natural logarithm, the same bits on every machine; -inf at 0, NaN below.");
  module.def("log2", &binary_logarithm, "x"_a,
             "Logarithm to base 2, the same bits on every machine.");
  module.def("exp", &exponential, "x"_a, "e to the x, the same bits on every machine.");
  module.def("power", &power, "x"_a, "y"_a,
             "x to the y for x > 0, the same bits on every machine.");
  module.def(
      "mix", [](std::uint64_t seed, const nb::args& path) { return derive_path(seed, path); },
      "seed"_a, "path"_a, "64 bits that name what `path` (integers) names under `seed`.");
  module.def(
      "uniform",
      [](std::uint64_t seed, const nb::args& path) {
        return unit_interval(random_bits(derive_path(seed, path), 0));
      },
      "seed"_a, "path"_a,
      "Uniform in [0, 1): a pure function of the seed and the path's integers.");
  module.def(
      "mixed",
      [](std::uint64_t seed, std::uint64_t first, std::size_t count, std::uint64_t name) {
        std::vector<std::uint64_t> keys(count);
        for (std::size_t i = 0; i < count; ++i) {
          keys[i] = derive_key(seed, {first + i, name});
        }
        return column(keys);
      },
      "seed"_a, "first"_a, "count"_a, "name"_a,
      "A column of mix(seed, index, name) for `count` indices from `first`.");
  module.def(
      "uniforms",
      [](std::uint64_t seed, std::uint64_t first, std::size_t count, std::uint64_t name) {
        std::vector<double> draws(count);
        for (std::size_t i = 0; i < count; ++i) {
          draws[i] = unit_interval(random_bits(derive_key(seed, {first + i, name}), 0));
        }
        return draws;
      },
      "seed"_a, "first"_a, "count"_a, "name"_a,
      "uniform(seed, index, name) for `count` indices from `first`.");
  module.def(
      "shuffled",
      [](std::size_t count, std::uint64_t seed, const nb::args& path) {
        const std::uint64_t key = derive_path(seed, path);
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), std::size_t{0});
        for (std::size_t last = count; last-- > 1;) {
          const double draw = unit_interval(random_bits(derive_key(key, last), 0));
          std::swap(order[last],
                    order[static_cast<std::size_t>(draw * static_cast<double>(last + 1))]);
        }
        return order;
      },
      "count"_a, "seed"_a, "path"_a,
      "0 to count - 1 in a random order (Fisher and Yates), each exchange drawn by "
      "uniform(seed, *path, place).");
  module.def(
      "normal",
      [](std::uint64_t seed, const nb::args& path) { return normal(derive_path(seed, path), 0); },
      "seed"_a, "path"_a, "Standard normal: a pure function of the seed and the path's integers.");
}

using UsualMemory = std::array<double, kUsualSignals>;
using Replay = std::tuple<std::vector<std::uint32_t>, std::vector<std::uint32_t>,
                          std::vector<double>, std::vector<UsualMemory>>;

Replay replay(const RuleTable& table, const std::vector<double>& sent_ms,
              const std::vector<double>& received_ms, const std::vector<double>& rtt_ms,
              const std::vector<std::uint32_t>& packets) {
  const std::size_t count = packets.size();
  if (sent_ms.size() != count || received_ms.size() != count || rtt_ms.size() != count) {
    throw std::invalid_argument("the columns of a replay have different lengths");
  }
  if (table.has_more_signals()) {
    throw std::invalid_argument("ACKs alone do not tell what the table looks at");
  }
  for (const Signal signal : table.signals()) {
    if (axis_of(signal) >= kUsualSignals) {
      throw InvalidTable("ACKs alone do not tell the signal " +
                         std::string(signal_name(signal, table.rules())));
    }
  }
  const CompiledTable compiled(table);
  RemyController<true> controller(compiled);
  controller.start();
  Replay result;
  auto& [rules, windows, intersends_ms, memories] = result;
  for (std::size_t i = 0; i < count; ++i) {
    rules.push_back(packets[i] == 0 ? controller.start()
                                    : controller.acknowledge(sent_ms[i], received_ms[i], rtt_ms[i],
                                                             packets[i]));
    windows.push_back(controller.window_packets());
    intersends_ms.push_back(controller.intersend_ms());
    std::copy_n(controller.memory(), kUsualSignals, memories.emplace_back().begin());
  }
  return result;
}

void bind_signals(nb::module_& module) {
  nb::enum_<ToldBy>(module, "ToldBy")
      .value("ACKS", ToldBy::kAcks)
      .value("TELEMETRY", ToldBy::kTelemetry)
      .value("MARKS", ToldBy::kMarks);
  nb::enum_<Per>(module, "Per")
      .value("NOTHING", Per::kNothing)
      .value("INTERVAL", Per::kInterval)
      .value("SMALLEST_RTT", Per::kSmallestRtt)
      .value("PATH", Per::kPath);
  nb::class_<SignalForm>(module, "SignalForm", "A signal as rules of one kind look at it.")
      .def_ro("name", &SignalForm::name)
      .def_ro("number", &SignalForm::number, "That of the message's enum.")
      .def_ro("formula", &SignalForm::formula, "Markdown, as docs/signals.md prints it.")
      .def_ro("unit", &SignalForm::unit, "ms, packets, or 1 for what has none.")
      .def_ro("printed_in", &SignalForm::printed_in,
              "In which reports print its thresholds: ms, packets or %; empty: bare.")
      .def_ro("may_stay_0", &SignalForm::may_stay_0,
              "Whether it may be 0 for ever, so that 0 does not tell who has measured nothing.")
      .def_ro("least_measured", &SignalForm::least_measured,
              "No measured value lies below; 0 where none is known.")
      .def_ro("per", &SignalForm::per, "What divides the absolute value.")
      .def_ro("usual_value", &SignalForm::usual_value,
              "Divides what senders measure on usual networks.");
  nb::class_<SignalAxis>(module, "SignalAxis", "A signal, and how rules of either kind look at it.")
      .def("form", &SignalAxis::form, "is_scale_free"_a)
      .def_prop_ro("has_one_form", [](const SignalAxis& axis) { return !axis.scale_free; })
      .def_ro("source", &SignalAxis::source)
      .def_ro("told_by", &SignalAxis::told_by)
      .def_ro("turn", &SignalAxis::turn,
              "Searches divide on signals of a lower turn first, in the order of axes within one.");
  module.attr("USUAL_AXES") = kUsualSignals;
  module.def(
      "signal_axes",
      [] { return std::vector<SignalAxis>(std::begin(kSignalAxes), std::end(kSignalAxes)); },
      "All signals, in the order of axes.");
}

void bind_table(nb::module_& module) {
  nb::exception<InvalidTable>(module, "InvalidTable", PyExc_ValueError);
  nb::class_<CompiledTable>(module, "CompiledTable", "A table laid out for look-up. Immutable.")
      .def(nb::init<const RuleTable&>(), "table"_a)
      .def_prop_ro("rule_count", &CompiledTable::rule_count, "Number of rules.");
  nb::class_<RuleTable>(module, "RuleTable",
                        "A RemyCC: a tree that divides memory space into rules. Immutable.")
      .def(
          "__init__",
          [](RuleTable* self, const std::vector<std::uint8_t>& signals,
             const std::vector<NodeTuple>& nodes, double domain_upper, unsigned rules) {
            new (self) RuleTable(make_table(signals, nodes, domain_upper, rules));
          },
          "signals"_a, "nodes"_a, "domain_upper"_a = RuleTable::kDefaultDomainUpper,
          "rules"_a = static_cast<unsigned>(Rules::kAbsolute),
          "From nodes in pre-order, each (thresholds, action); a rule has no thresholds. A "
          "threshold is (axis, value), an action (window multiple, window increment, intersend in "
          "ms), both in the units of `rules` (remy_farm.v1.Rules). Raises InvalidTable.")
      .def_static(
          "from_dna",
          [](const nb::bytes& data, double time_unit_ms) {
            DnaFile file = read_dna(view(data), time_unit_ms);
            return std::make_pair(std::move(file.table), to_bytes(file.metadata));
          },
          "data"_a, "time_unit_ms"_a = 1.0,
          "Reads a .dna file whose unit of time is time_unit_ms: (table, metadata), in ms. Raises "
          "InvalidTable.")
      .def(
          "to_dna",
          [](const RuleTable& table, const nb::bytes& metadata) {
            return to_bytes(write_dna(table, {metadata.c_str(), metadata.size()}));
          },
          "metadata"_a = nb::bytes("", 0),
          "The table as a .dna file, in ms. Raises InvalidTable for an increment that is not an "
          "integer "
          "of 32 bits.")
      .def_static(
          "from_message", [](const nb::bytes& message) { return read_message(view(message)); },
          "message"_a, "Reads a serialized remy_farm.v1.RuleTable. Raises InvalidTable.")
      .def(
          "to_message", [](const RuleTable& table) { return to_bytes(write_message(table)); },
          "The table as a serialized remy_farm.v1.RuleTable.")
      .def_prop_ro("signals", &list_signals, "The axes that the table may look at.")
      .def_prop_ro("domain_upper", &RuleTable::domain_upper, "Upper end of the domain.")
      .def_prop_ro("rule_count", &RuleTable::rule_count, "Number of rules.")
      .def_prop_ro(
          "rules", [](const RuleTable& table) { return static_cast<unsigned>(table.rules()); },
          "The units in which the rules speak, as remy_farm.v1.Rules.")
      .def_prop_ro(
          "is_scale_free", [](const RuleTable& table) { return is_scale_free(table.rules()); },
          "Whether they speak in the sender's own measured scale.")
      .def("nodes", &list_nodes, "All nodes in pre-order, as the constructor takes them.")
      .def(
          "action",
          [](const RuleTable& table, std::size_t rule) {
            return from_action(table.action(checked_rule(table, rule)));
          },
          "rule"_a, "(window multiple, window increment, intersend in ms) of a rule.")
      .def(
          "with_action",
          [](const RuleTable& table, std::size_t rule, const ActionTuple& action) {
            RuleTable changed = table;
            changed.set_action(checked_rule(table, rule), to_action(action));
            return changed;
          },
          "rule"_a, "action"_a, "The table with one rule's action changed. Raises InvalidTable.")
      .def(
          "with_actions",
          [](const RuleTable& table, const std::vector<ActionTuple>& actions) {
            if (actions.size() != table.rule_count()) {
              throw InvalidTable(std::to_string(actions.size()) + " actions for a table of " +
                                 std::to_string(table.rule_count()) + " rules");
            }
            RuleTable changed = table;
            for (std::size_t rule = 0; rule < actions.size(); ++rule) {
              changed.set_action(rule, to_action(actions[rule]));
            }
            return changed;
          },
          "actions"_a, "The table with all actions changed, one a rule. Raises InvalidTable.")
      .def(
          "with_coordinates",
          [](const RuleTable& table, const nb::bytes& coordinates, const ActionBounds& bounds) {
            const auto rows = numbers_of<double>(coordinates, "coordinates");
            if (rows.size() != 3 * table.rule_count()) {
              throw InvalidTable(std::to_string(rows.size()) + " coordinates for a table of " +
                                 std::to_string(table.rule_count()) + " rules");
            }
            RuleTable changed = table;
            for (std::size_t rule = 0; rule < table.rule_count(); ++rule) {
              const double* const x = &rows[3 * rule];
              changed.set_action(rule, to_action(Coordinates{x[0], x[1], x[2]}, bounds));
            }
            return changed;
          },
          "coordinates"_a, "bounds"_a,
          "The table with the actions at a column of three coordinates a rule (from_coordinates). "
          "Raises InvalidTable.")
      .def(
          "region",
          [](const RuleTable& table, std::size_t rule) {
            const Region& region = table.region(checked_rule(table, rule));
            return std::make_pair(region.lower, region.upper);
          },
          "rule"_a, "(lower, upper) of a rule's half-open box, by axis.")
      .def(
          "split",
          [](const RuleTable& table, std::size_t rule,
             const std::vector<ThresholdTuple>& thresholds) {
            const auto converted = to_thresholds(thresholds);
            return table.split(checked_rule(table, rule), converted);
          },
          "rule"_a, "thresholds"_a,
          "The table with one rule divided at (axis, value) thresholds. Raises InvalidTable.")
      .def(
          "find",
          [](const RuleTable& table, const std::vector<double>& memory) {
            MemoryPoint point{};
            std::copy_n(memory.begin(), std::min(memory.size(), kSignals), point.begin());
            return table.find(point);
          },
          "memory"_a,
          "The rule for a memory value, by axis; values outside the domain are clamped, and axes "
          "that are left out are 0.")
      .def("replay", &replay, "sent_ms"_a, "received_ms"_a, "rtt_ms"_a, "packets"_a,
           "What a sender with this table does at each of a row of ACKs (columns of equal length; "
           "an ACK of 0 packets starts an on period instead): columns of the rules used, and of "
           "the windows in packets and intersend times in ms that they set, and of the memory that "
           "they were looked up by.")
      .def(
          "__eq__", [](const RuleTable& a, const RuleTable& b) { return a == b; },
          nb::is_operator());
}

void bind_evaluation(nb::module_& module) {
  nb::class_<Bottleneck>(module, "Bottleneck")
      .def(nb::init<std::optional<Choice>, double, double>(), "queue"_a.none(), "packet_bytes"_a,
           "ack_bytes"_a);
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

  nb::class_<ActionBounds>(module, "ActionBounds")
      .def(nb::init<double, double, double, double, double, double>(), "window_multiple_minimum"_a,
           "window_multiple_maximum"_a, "window_increment_minimum"_a, "window_increment_maximum"_a,
           "intersend_minimum_ms"_a, "intersend_maximum_ms"_a);
  nb::class_<Unchanged>(module, "Unchanged").def(nb::init<>());
  nb::class_<ActionChanges>(module, "ActionChanges")
      .def(
          "__init__",
          [](ActionChanges* self,
             const std::vector<std::pair<std::uint32_t, ActionTuple>>& changes) {
            new (self) ActionChanges();
            for (const auto& [rule, action] : changes) {
              self->changes.emplace_back(rule, to_action(action));
            }
          },
          "changes"_a);
  nb::class_<Perturbation>(module, "Perturbation")
      .def(
          "__init__",
          [](Perturbation* self, std::uint64_t seed, double scale, const ActionBounds& bounds) {
            new (self) Perturbation{seed, scale, bounds};
          },
          "seed"_a, "scale"_a, "bounds"_a);
  module.def(
      "to_coordinates",
      [](const ActionTuple& action, const ActionBounds& bounds) {
        const Coordinates x = to_coordinates(to_action(action), bounds);
        return ActionTuple{x.window_multiple, x.window_increment, x.intersend};
      },
      "action"_a, "bounds"_a, "The coordinates in which perturbations move an action.");
  module.def(
      "from_coordinates",
      [](const ActionTuple& x, const ActionBounds& bounds) {
        return from_action(
            to_action(Coordinates{std::get<0>(x), std::get<1>(x), std::get<2>(x)}, bounds));
      },
      "coordinates"_a, "bounds"_a, "The inverse of to_coordinates, clamped to the bounds.");
  module.def(
      "perturbation_noise",
      [](std::uint64_t seed, std::uint64_t specimen_key, std::uint32_t rules) {
        std::vector<double> noise(3 * std::size_t{rules});
        PerturbationNoise(seed, specimen_key).fill(noise);
        return noise;
      },
      "seed"_a, "specimen_key"_a, "rules"_a,
      "The epsilon of a perturbation on one specimen: three coordinates a rule.");

  module.def(
      "gradient_moments",
      [](std::uint64_t seed, const nb::bytes& keys, const nb::bytes& sizes, const nb::bytes& used,
         std::size_t rules, const std::vector<std::pair<std::size_t, std::size_t>>& ranges,
         unsigned threads) {
        const auto key = numbers_of<std::uint64_t>(keys, "keys");
        const auto size = numbers_of<double>(sizes, "sizes");
        const auto mask = numbers_of<std::uint8_t>(used, "used");
        const auto [by_rule, by_range] = [&] {
          const nb::gil_scoped_release release;
          return gradient_moments({seed, key, size, mask, rules}, ranges, threads);
        }();
        return std::make_tuple(column(by_rule.mean), column(by_rule.squares), column(by_range.mean),
                               column(by_range.squares));
      },
      "seed"_a, "keys"_a, "sizes"_a, "used"_a, "rules"_a, "ranges"_a, "threads"_a = 1,
      "Moments of the gradient's samples on specimens (remy_simulator.columns.gradient_moments "
      "says "
      "more): columns of mean and squares by rule, then by range. Raises ValueError.");

  nb::enum_<Recording>(module, "Recording")
      .value("NOTHING", Recording::kNothing)
      .value("USES", Recording::kUses)
      .value("MEMORY", Recording::kMemory)
      .value("USED", Recording::kUsed)
      .value("SHARES", Recording::kShares);
  module.def(
      "digest",
      [](const std::vector<std::vector<SenderTuple>>& simulations,
         const std::vector<std::vector<TransportRow>>& transports) {
        std::vector<SpecimenOutcome> outcomes;
        outcomes.reserve(simulations.size());
        for (const auto& senders : simulations) {
          outcomes.push_back({to_senders(senders), {}, {}, {}});
        }
        for (std::size_t i = 0; i < transports.size(); ++i) {
          for (const TransportRow& row : transports[i]) {
            outcomes.at(i).network.push_back(to_network_results(row));
          }
        }
        return digest(outcomes);
      },
      "simulations"_a, "transports"_a = std::vector<std::vector<TransportRow>>(),
      "A digest of every sender's exact results, and of what a TransportColumns message says of it "
      "beside, but for means of sampled RTTs.");
  module.def(
      "median",
      [](std::uint8_t axis, std::vector<std::uint32_t> buckets, std::vector<std::uint64_t> counts) {
        return median({to_signal(axis), std::move(buckets), std::move(counts)});
      },
      "axis"_a, "buckets"_a, "counts"_a,
      "The median of summarized memory values. Raises ValueError.");
}

void bind_columns(nb::module_& module) {
  module.attr("MEMORY_BUCKETS") = memory_scale::kBuckets;
  nb::exception<Interrupted>(module, "Cancelled");
  nb::class_<Cancellation>(module, "Cancellation",
                           "Ends evaluations that were given it, from any thread and for good.")
      .def(nb::init<>())
      .def(
          "cancel", [](Cancellation& cancellation) { cancellation.flag = true; },
          "Evaluations under way, and later ones, raise Cancelled within milliseconds.")
      .def_prop_ro(
          "cancelled", [](const Cancellation& cancellation) { return cancellation.flag.load(); },
          "Whether cancel() has been called.");
  nb::class_<SpecimenKind>(module, "SpecimenKind")
      .def(nb::init<MeasurementNoise, std::vector<SenderGroup>, std::optional<Bottleneck>,
                    std::vector<LinkDescription>>(),
           "measurement"_a, "senders"_a, "bottleneck"_a.none(), "links"_a);
  nb::class_<OutcomeColumns>(module, "OutcomeColumns")
      .def_ro("packets_sent", &OutcomeColumns::packets_sent)
      .def_prop_ro("scores", [](const OutcomeColumns& c) { return column(c.scores); })
      .def_prop_ro("packets_received",
                   [](const OutcomeColumns& c) {
                     return integers(c.senders, &SenderResults::packets_received);
                   })
      .def_prop_ro(
          "sender_packets_sent",
          [](const OutcomeColumns& c) { return integers(c.senders, &SenderResults::packets_sent); })
      .def_prop_ro(
          "packets_lost",
          [](const OutcomeColumns& c) { return integers(c.senders, &SenderResults::packets_lost); })
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
         const std::vector<SpecimenKind>& kinds, const nb::bytes& keys, const nb::bytes& link_rates,
         const nb::bytes& rtts, const std::vector<std::uint64_t>& buffers, const nb::bytes& losses,
         const std::vector<std::uint32_t>& kind, const std::vector<std::uint32_t>& counts,
         double duration_ms, std::uint64_t seed, Recording recording,
         const std::optional<Objective>& objective, unsigned threads,
         const Cancellation* cancellation, std::optional<std::uint64_t> packet_limit) {
        const EvaluationRequest request{
            tables,
            candidates,
            make_specimens(kinds, keys, link_rates, rtts, buffers, losses, kind, counts),
            duration_ms,
            seed,
            recording};
        Interruption interruption = make_interruption(cancellation, packet_limit);
        const nb::gil_scoped_release released;
        return evaluate_columns(request, objective, threads, &interruption);
      },
      "tables"_a, "candidates"_a, "kinds"_a, "keys"_a, "link_rates"_a, "rtts"_a, "buffers"_a,
      "losses"_a, "kind"_a, "counts"_a, "duration_ms"_a, "seed"_a, "recording"_a,
      "objective"_a.none(), "threads"_a, "cancellation"_a.none(), "packet_limit"_a.none(),
      "Simulates, and scores if there is an objective. Releases the GIL. Raises ValueError and "
      "Cancelled.");
}

void bind_objective(nb::module_& module) {
  nb::enum_<ThroughputMeasure>(module, "ThroughputMeasure")
      .value("EQUAL_SHARE", ThroughputMeasure::kEqualShare)
      .value("ON_TIME", ThroughputMeasure::kOnTime)
      .value("COMPLETION", ThroughputMeasure::kCompletion);
  nb::enum_<GroupAggregate>(module, "GroupAggregate")
      .value("MEAN", GroupAggregate::kMean)
      .value("MINIMUM", GroupAggregate::kMinimum);
  nb::class_<Objective>(module, "Objective")
      .def(nb::init<double, double, double, ThroughputMeasure, double, GroupAggregate>(), "alpha"_a,
           "beta"_a, "delta"_a, "throughput"_a, "minimum_on_ms"_a,
           "over_groups"_a = GroupAggregate::kMean);
  module.def(
      "objective_scores",
      [](const Objective& objective, double link_rate_packets_per_ms, double rtt_ms,
         const std::vector<SenderTuple>& senders, double duration_ms, double packet_bytes,
         const TallyTuples& tallies, const std::vector<SenderGroup>& groups) {
        const Specimen path = make_path(link_rate_packets_per_ms, rtt_ms, packet_bytes, groups);
        return objective_scores(objective, path, to_senders(senders), duration_ms,
                                to_tallies(tallies));
      },
      "objective"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "senders"_a, "duration_ms"_a,
      "packet_bytes"_a = kPacketBytes, "tallies"_a = TallyTuples(),
      "groups"_a = std::vector<SenderGroup>(),
      "The objective of each sender; None where it cannot be scored. Tallies are (packets that "
      "count as throughput, delays measured, flows completed); without them all received are the "
      "first two. Groups may have objectives of their own.");
  module.def(
      "specimen_score",
      [](const Objective& objective, double link_rate_packets_per_ms, double rtt_ms,
         const std::vector<SenderTuple>& senders, double duration_ms, double packet_bytes,
         const TallyTuples& tallies, const std::vector<SenderGroup>& groups) {
        const Specimen path = make_path(link_rate_packets_per_ms, rtt_ms, packet_bytes, groups);
        return specimen_score(objective, path, to_senders(senders), duration_ms,
                              to_tallies(tallies));
      },
      "objective"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "senders"_a, "duration_ms"_a,
      "packet_bytes"_a, "tallies"_a, "groups"_a,
      "What the objective makes of all senders together, by the weights of their groups; None if "
      "none can be scored.");
  module.def(
      "exact_sum", [](const std::vector<double>& values) { return exact_sum(values); }, "values"_a,
      "The exactly rounded sum; not a number if it overflows.");
  module.def(
      "normalized_scores",
      [](double minimum_on_ms, double link_rate_packets_per_ms, double rtt_ms,
         const std::vector<SenderTuple>& senders, double duration_ms, const TallyTuples& tallies) {
        const Specimen path = make_path(link_rate_packets_per_ms, rtt_ms, kPacketBytes);
        return normalized_scores(minimum_on_ms, path, to_senders(senders), duration_ms,
                                 to_tallies(tallies));
      },
      "minimum_on_ms"_a, "link_rate_packets_per_ms"_a, "rtt_ms"_a, "senders"_a, "duration_ms"_a,
      "tallies"_a = TallyTuples(),
      "log2(throughput / link rate) - log2(delay / RTT) of each sender; None where it has none.");
}

}  // namespace
}  // namespace remy

NB_MODULE(_native, module) {
  module.doc() = "The simulator and evaluator of rule tables.";
  remy::bind_numbers(module);
  remy::bind_signals(module);
  remy::bind_table(module);
  remy::bind_evaluation(module);
  remy::bind_objective(module);
  remy::bind_columns(module);
  remy::bind_networks(module);
}
