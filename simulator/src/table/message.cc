#include "table/message.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "table/wire.h"

namespace remy {
namespace {

using wire::Field;
using wire::Type;

// The number of each signal in messages, by axis; numbers start at 1.
constexpr auto kAbsoluteNumbers =
    by_axis([](const SignalAxis& axis) { return std::uint64_t{axis.form(false).number}; });
constexpr auto kScaleFreeNumbers =
    by_axis([](const SignalAxis& axis) { return std::uint64_t{axis.form(true).number}; });
constexpr std::uint64_t kNumbers =
    std::max(std::ranges::max(kAbsoluteNumbers), std::ranges::max(kScaleFreeNumbers));
static_assert(kNumbers < 128, "a signal's number must fit in one byte on the wire");

std::uint64_t number_of(Signal signal, Rules rules) {
  return (is_scale_free(rules) ? kScaleFreeNumbers : kAbsoluteNumbers)[axis_of(signal)];
}

Signal signal_of(std::uint64_t number, Rules rules, const std::string& place) {
  for (std::size_t axis = 0; axis < kSignals; ++axis) {
    const auto signal = static_cast<Signal>(axis);
    if (number == number_of(signal, rules)) {
      return signal;
    }
  }
  const std::string named = place + " " + std::to_string(static_cast<std::int32_t>(number));
  if (number < 1 || number > kNumbers) {
    throw InvalidTable(named + ", which is not a congestion signal");
  }
  throw InvalidTable(named + (is_scale_free(rules)
                                  ? ", which is absolute; scale-free rules look at ratios only: " +
                                        signal_names(rules)
                                  : ", which only scale-free rules look at"));
}

template <class Handle>
void for_each_field(std::string_view message, const Handle& handle) {
  while (!message.empty()) {
    handle(wire::take_field(message));
  }
}

double double_of(const Field& field) { return std::bit_cast<double>(field.integer); }

Action read_action(std::string_view message) {
  Action action{0, 0, 0};
  for_each_field(message, [&](const Field& field) {
    if (field.type == Type::kFixed64 && field.number == 1) {
      action.window_multiple = double_of(field);
    } else if (field.type == Type::kFixed64 && field.number == 2) {
      action.window_increment = double_of(field);
    } else if (field.type == Type::kFixed64 && field.number == 3) {
      action.intersend_ms = double_of(field);
    }
  });
  return action;
}

Threshold read_threshold(std::string_view message, Rules rules, const std::string& place) {
  std::uint64_t signal = 0;
  double value = 0;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1 && field.type == Type::kVarint) {
      signal = field.integer;
    } else if (field.number == 2 && field.type == Type::kFixed64) {
      value = double_of(field);
    }
  });
  return {signal_of(signal, rules, place), value};
}

Node read_node(std::string_view message, Rules rules, std::size_t index) {
  const std::string place = "nodes[" + std::to_string(index) + "]";
  Node node;
  bool is_rule = false;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1 && field.type == Type::kBytes) {
      is_rule = false;
      for_each_field(field.bytes, [&](const Field& inner) {
        if (inner.number == 1 && inner.type == Type::kBytes) {
          node.thresholds.push_back(
              read_threshold(inner.bytes, rules, place + ".split names signal"));
        }
      });
    } else if (field.number == 2 && field.type == Type::kBytes) {
      is_rule = true;
      node.thresholds.clear();
      node.action = read_action(field.bytes);
    }
  });
  if (!is_rule && node.thresholds.empty()) {
    throw InvalidTable(place + " needs an action, or a split with at least one threshold");
  }
  return node;
}

// Read before the other fields: the kind of rules determines the signals, but comes last in the
// message.
Rules read_rules(std::string_view message) {
  Rules rules = Rules::kAbsolute;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 5 && field.type == Type::kVarint) {
      if (field.integer > 3) {
        throw InvalidTable(
            "rules is " + std::to_string(static_cast<std::int32_t>(field.integer)) +
            ", but must be 1 (absolute), 2 (scale_free) or 3 (scale_free_remembering)");
      }
      rules = field.integer == 0 ? Rules::kAbsolute : static_cast<Rules>(field.integer);
    }
  });
  return rules;
}

// Adds the fields of a message PathModel to `settings`; absent ones stay as they are.
void read_path_model(std::string_view message, PathSettings& settings) {
  for_each_field(message, [&](const Field& field) {
    if (field.type == Type::kFixed64 && field.number >= 1 && field.number <= kPathFields.size()) {
      settings.*kPathFields[field.number - 1].value = double_of(field);
    }
  });
}

std::string write_path_model(const PathSettings& settings) {
  std::string message;
  for (std::uint32_t number = 1; number <= kPathFields.size(); ++number) {
    wire::append_double(message, number, settings.*kPathFields[number - 1].value);
  }
  return message;
}

}  // namespace

std::string write_message(const RuleTable& table) {
  std::string message;
  std::string signals;
  for (const Signal signal : table.signals()) {
    signals.push_back(static_cast<char>(number_of(signal, table.rules())));
  }
  if (!signals.empty()) {
    wire::append_bytes(message, 1, signals);
  }
  for (const Node& node : table.nodes()) {
    std::string kind;
    for (const Threshold& threshold : node.thresholds) {
      std::string entry;
      wire::append_varint(entry, 1, number_of(threshold.signal, table.rules()));
      wire::append_double(entry, 2, threshold.value);
      wire::append_bytes(kind, 1, entry);
    }
    if (node.thresholds.empty()) {
      wire::append_double(kind, 1, node.action.window_multiple);
      wire::append_double(kind, 2, node.action.window_increment);
      wire::append_double(kind, 3, node.action.intersend_ms);
    }
    std::string whole;
    wire::append_bytes(whole, node.thresholds.empty() ? 2 : 1, kind);
    wire::append_bytes(message, 2, whole);
  }
  wire::append_double(message, 3, table.domain_upper());
  if (table.rules() != Rules::kAbsolute) {
    wire::append_varint(message, 5, static_cast<std::uint64_t>(table.rules()));
  }
  if (table.path().has_value()) {
    wire::append_bytes(message, 6, write_path_model(*table.path()));
  }
  return message;
}

RuleTable read_message(std::string_view message) {
  std::vector<Signal> signals;
  std::vector<Node> nodes;
  double domain_upper = 0;
  Rules rules = Rules::kAbsolute;
  std::optional<PathSettings> path;
  try {
    rules = read_rules(message);
    for_each_field(message, [&](const Field& field) {
      if (field.number == 1 && field.type == Type::kVarint) {
        signals.push_back(signal_of(field.integer, rules, "signals names"));
      } else if (field.number == 1 && field.type == Type::kBytes) {
        for (std::string_view packed = field.bytes; !packed.empty();) {
          signals.push_back(signal_of(wire::take_varint(packed), rules, "signals names"));
        }
      } else if (field.number == 2 && field.type == Type::kBytes) {
        nodes.push_back(read_node(field.bytes, rules, nodes.size()));
      } else if (field.number == 3 && field.type == Type::kFixed64) {
        domain_upper = double_of(field);
      } else if (field.number == 6 && field.type == Type::kBytes) {
        read_path_model(field.bytes, path.has_value() ? *path : path.emplace());
      }
    });
  } catch (const wire::Malformed& problem) {
    throw InvalidTable(std::string("the rule table's message ") + problem.what());
  }
  return RuleTable(std::move(signals), std::move(nodes), domain_upper, rules, path);
}

}  // namespace remy
