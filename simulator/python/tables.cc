#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "columns.h"
#include "evaluation/candidate.h"
#include "rules.h"
#include "senders/remy_controller.h"
#include "table/compiled_table.h"
#include "table/dna.h"
#include "table/message.h"
#include "table/rule_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace remy {
namespace {

// The fields of the struct Action, in order.
constexpr const char* kActionFields = "window_multiple window_increment intersend_ms";

using ThresholdTuple = std::tuple<std::uint8_t, double>;
using NodeTuple = std::tuple<std::vector<ThresholdTuple>, Action>;

std::vector<Threshold> to_thresholds(const std::vector<ThresholdTuple>& thresholds) {
  std::vector<Threshold> result;
  for (const auto& [axis, value] : thresholds) {
    result.push_back({to_signal(axis), value});
  }
  return result;
}

// Converts the value of the enum remy_farm.v1.Rules.
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
                     double domain_upper, unsigned rules, const std::optional<PathSettings>& path) {
  std::vector<Signal> axes;
  for (const std::uint8_t axis : signals) {
    axes.push_back(to_signal(axis));
  }
  std::vector<Node> preorder;
  preorder.reserve(nodes.size());
  for (const auto& [thresholds, action] : nodes) {
    preorder.push_back({to_thresholds(thresholds), action});
  }
  return RuleTable(std::move(axes), std::move(preorder), domain_upper, to_rules(rules), path);
}

std::vector<NodeTuple> list_nodes(const RuleTable& table) {
  std::vector<NodeTuple> nodes;
  nodes.reserve(table.nodes().size());
  for (const Node& node : table.nodes()) {
    std::vector<ThresholdTuple> thresholds;
    for (const Threshold& threshold : node.thresholds) {
      thresholds.emplace_back(static_cast<std::uint8_t>(threshold.signal), threshold.value);
    }
    nodes.emplace_back(std::move(thresholds), node.action);
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

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// A sender's decisions for a series of ACKs, as columns.
struct Replay {
  std::vector<std::uint32_t> rules;
  std::vector<std::uint32_t> windows_packets;
  std::vector<double> intersends_ms;
  // Memory values by which the rules were looked up.
  std::vector<std::array<double, kBasicSignals>> memories;
};

Replay replay(const RuleTable& table, const std::vector<double>& sent_ms,
              const std::vector<double>& received_ms, const std::vector<double>& rtt_ms,
              const std::vector<std::uint32_t>& packets) {
  const std::size_t count = packets.size();
  if (sent_ms.size() != count || received_ms.size() != count || rtt_ms.size() != count) {
    throw std::invalid_argument("the columns of a replay have different lengths");
  }
  if (table.has_extended_signals()) {
    throw std::invalid_argument("the table looks at signals that ACKs alone do not carry");
  }
  for (const Signal signal : table.signals()) {
    if (axis_of(signal) >= kBasicSignals) {
      throw InvalidTable("ACKs alone do not carry the signal " +
                         std::string(signal_name(signal, table.rules())));
    }
  }
  const CompiledTable compiled(table);
  PathController controller(compiled);
  controller.start();
  Replay result;
  for (std::size_t i = 0; i < count; ++i) {
    result.rules.push_back(packets[i] == 0 ? controller.start()
                                           : controller.acknowledge(sent_ms[i], received_ms[i],
                                                                    rtt_ms[i], packets[i]));
    result.windows_packets.push_back(controller.window_packets());
    result.intersends_ms.push_back(controller.intersend_ms());
    std::copy_n(controller.memory(), kBasicSignals, result.memories.emplace_back().begin());
  }
  return result;
}

}  // namespace

Signal to_signal(std::uint8_t axis) {
  if (axis >= kSignals) {
    throw InvalidTable("signal " + std::to_string(axis) + " is not one of 0 to " +
                       std::to_string(kSignals - 1));
  }
  return static_cast<Signal>(axis);
}

void bind_tables(nb::module_& module) {
  nb::exception<InvalidTable>(module, "InvalidTable", PyExc_ValueError);
  const nb::object action =
      nb::module_::import_("collections")
          .attr("namedtuple")("Action", kActionFields, "module"_a = module.attr("__name__"));
  action.attr("__doc__") = "What a sender does after an ACK, in the units of the table's rules.";
  module.attr("Action") = action;
  action_type = action.inc_ref().ptr();
  nb::list path_fields;
  for (const PathField& field : kPathFields) {
    path_fields.append(nb::str(field.name.data(), field.name.size()));
  }
  const nb::object path_model =
      nb::module_::import_("collections")
          .attr("namedtuple")("PathModel", path_fields, "module"_a = module.attr("__name__"));
  path_model.attr("__doc__") = "Constants of a path model (remy_farm.v1.PathModel).";
  module.attr("PathModel") = path_model;
  path_model_type = path_model.inc_ref().ptr();
  nb::class_<Replay>(module, "Replay")
      .def_ro("rules", &Replay::rules, "By number.")
      .def_ro("windows_packets", &Replay::windows_packets)
      .def_ro("intersends_ms", &Replay::intersends_ms)
      .def_ro("memories", &Replay::memories,
              "Memory values, by axis, by which the rules were looked up.");
  nb::class_<CompiledTable>(module, "CompiledTable",
                            "A table compiled for fast look-up. Immutable.")
      .def(nb::init<const RuleTable&>(), "table"_a)
      .def_prop_ro("rule_count", &CompiledTable::rule_count, "Number of rules.");
  nb::class_<RuleTable>(module, "RuleTable",
                        "A RemyCC: a tree that divides memory space into rules. Immutable.")
      .def(
          "__init__",
          [](RuleTable* self, const std::vector<std::uint8_t>& signals,
             const std::vector<NodeTuple>& nodes, double domain_upper, unsigned rules,
             const std::optional<PathSettings>& path_model) {
            new (self) RuleTable(make_table(signals, nodes, domain_upper, rules, path_model));
          },
          "signals"_a, "nodes"_a, "domain_upper"_a = RuleTable::kDefaultDomainUpper,
          "rules"_a = static_cast<unsigned>(Rules::kAbsolute), "path_model"_a = nb::none(),
          "From nodes in pre-order, each (thresholds, action); a rule has no thresholds. A "
          "threshold is (axis, value), an action (window multiple, window increment, intersend in "
          "ms), both in the units of `rules` (remy_farm.v1.Rules). `path_model` is None for Remy's "
          "semantics. Raises InvalidTable.")
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
          "The kind of the rules, as remy_farm.v1.Rules.")
      .def_prop_ro(
          "is_scale_free", [](const RuleTable& table) { return is_scale_free(table.rules()); },
          "True if the rules use the sender's own measured scale.")
      .def_prop_ro("path_model", &RuleTable::path, nb::rv_policy::copy,
                   "The constants of the path model; None if senders have none, as in Remy.")
      .def("with_path_model", &RuleTable::with_path, "path_model"_a.none(),
           "The table with another path model, or with none. Raises InvalidTable.")
      .def("nodes", &list_nodes, "All nodes in pre-order, as the constructor takes them.")
      .def(
          "action",
          [](const RuleTable& table, std::size_t rule) {
            return table.action(checked_rule(table, rule));
          },
          "rule"_a, "The action of a rule.")
      .def(
          "with_action",
          [](const RuleTable& table, std::size_t rule, const Action& action) {
            RuleTable changed = table;
            changed.set_action(checked_rule(table, rule), action);
            return changed;
          },
          "rule"_a, "action"_a, "The table with one rule's action changed. Raises InvalidTable.")
      .def(
          "with_actions",
          [](const RuleTable& table, const std::vector<Action>& actions) {
            if (actions.size() != table.rule_count()) {
              throw InvalidTable(std::to_string(actions.size()) + " actions for a table of " +
                                 std::to_string(table.rule_count()) + " rules");
            }
            RuleTable changed = table;
            for (std::size_t rule = 0; rule < actions.size(); ++rule) {
              changed.set_action(rule, actions[rule]);
            }
            return changed;
          },
          "actions"_a, "The table with all actions changed, one per rule. Raises InvalidTable.")
      .def(
          "with_coordinates",
          [](const RuleTable& table, const nb::bytes& coordinates, const ActionBounds& bounds) {
            const auto rows = from_column<double>(coordinates, "coordinates");
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
          "The table with the actions at a column of three coordinates per rule "
          "(from_coordinates). "
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
           "The decisions of a sender with this table for a series of ACKs (columns of equal "
           "length; "
           "an ACK of 0 packets starts an on period): columns of the rules used, of the windows in "
           "packets and intersend times in ms that they set, and of the memory values by which the "
           "rules were looked up.")
      .def(
          "__eq__", [](const RuleTable& a, const RuleTable& b) { return a == b; },
          nb::is_operator());
}

}  // namespace remy
