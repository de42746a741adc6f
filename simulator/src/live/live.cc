#include "live/live.h"

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/requirement.h"
#include "elements/queues.h"
#include "network/live.h"
#include "protocols/protocol.h"

#define REMY_LIVE extern "C" [[gnu::visibility("default"), gnu::used]]

namespace remy {
namespace {

// Records the rule that each sender used last.
class LastRules final : public RuleObserver {
 public:
  struct Use {
    double rule = -1;
    std::array<double, kSignals> memory{};
    std::size_t axes = kBasicSignals;
  };

  void used(std::uint32_t sender, const AnyController& controller, std::uint32_t rule) override {
    Use& use = uses[sender];
    use.rule = rule;
    use.axes = controller.axes();
    std::copy_n(controller.memory(), use.axes, use.memory.begin());
  }

  std::vector<Use> uses;
};

struct LiveState {
  std::vector<double> input;
  std::vector<CompiledTable> tables;
  NetworkDescription description;
  LastRules rules;
  std::unique_ptr<LiveNetwork> network;
  double now_ms = 0;
  std::vector<double> samples;
  std::uint64_t digest = 0;
  std::string refusal;
};

LiveState& state() {
  static LiveState live_state;
  return live_state;
}

// Reads numbers from the input buffer in order.
class InputReader {
 public:
  explicit InputReader(std::size_t count) : remaining_(count) {
    if (count > state().input.size()) {
      refuse("there are " + std::to_string(count) + " numbers but the buffer holds " +
             std::to_string(state().input.size()));
    }
  }

  double next() {
    if (remaining_ == 0) {
      refuse("the input buffer ends before the last number");
    }
    --remaining_;
    return state().input[position_++];
  }

  // Reads an integer from 0 to `maximum`.
  std::uint32_t next_count(std::string_view field, std::uint32_t maximum) {
    const double value = next();
    require(value >= 0 && value <= maximum && value == std::floor(value), field, value,
            "a whole number from 0 to " + std::to_string(maximum));
    return static_cast<std::uint32_t>(value);
  }

  bool empty() const { return remaining_ == 0; }

 private:
  std::size_t remaining_;
  std::size_t position_ = 0;
};

constexpr std::uint32_t kMaxSenders = 64;

// Omniscient senders are excluded: they are computed, not simulated.
std::vector<std::string_view> protocol_names() {
  std::vector<std::string_view> names;
  for (const Protocol& protocol : protocols()) {
    if (!protocol.is_omniscient) {
      names.push_back(protocol.name);
    }
  }
  return names;
}

LinkDescription read_link(InputReader& numbers) {
  LinkDescription link;
  link.rate_packets_per_ms = numbers.next();
  link.delay_ms = numbers.next();
  if (const double buffer = numbers.next(); buffer >= 0) {
    constexpr double kLargestBuffer = 1e6;
    link.buffer_packets = static_cast<std::uint32_t>(std::min(buffer, kLargestBuffer));
  }
  link.loss_probability = numbers.next();
  const auto disciplines = queue_disciplines();
  const std::uint32_t queue =
      numbers.next_count("the queue", static_cast<std::uint32_t>(disciplines.size() - 1));
  link.queue.name = disciplines[queue].name;
  return link;
}

SenderDescription read_sender(double runs, double mean_on_ms, double mean_off_ms) {
  SenderDescription sender;
  sender.traffic = {ExponentialTime{mean_on_ms}, mean_off_ms};
  sender.route.links = {0};
  if (runs >= 0) {
    sender.table = static_cast<std::uint32_t>(runs);
    sender.transport.name = "datagram";
    return sender;
  }
  const std::vector<std::string_view> names = protocol_names();
  const double number = -1 - runs;
  require(number == std::floor(number) && number < static_cast<double>(names.size()),
          "the protocol", number, "a number from 0 to " + std::to_string(names.size() - 1));
  sender.protocol.name = names[static_cast<std::size_t>(number)];
  sender.transport.name = "tcp";
  return sender;
}

RuleTable read_table(InputReader& numbers) {
  const auto rules = static_cast<Rules>(1 + numbers.next_count("the kind of rules", 2));
  const double domain_upper = numbers.next();
  std::optional<PathSettings> path;
  if (numbers.next_count("the number of path models", 1) > 0) {
    path.emplace();
    for (const PathField& field : kPathFields) {
      (*path).*field.value = numbers.next();
    }
  }
  std::vector<Signal> signals(numbers.next_count("the number of signals", kSignals));
  for (Signal& signal : signals) {
    signal = static_cast<Signal>(numbers.next_count("a signal", kSignals - 1));
  }
  std::vector<Node> nodes;
  while (!numbers.empty()) {
    Node& node = nodes.emplace_back();
    node.thresholds.resize(numbers.next_count("the number of thresholds", kSignals));
    for (Threshold& threshold : node.thresholds) {
      threshold.signal = static_cast<Signal>(numbers.next_count("a signal", kSignals - 1));
      threshold.value = numbers.next();
    }
    if (node.thresholds.empty()) {
      node.action.window_multiple = numbers.next();
      node.action.window_increment = numbers.next();
      node.action.intersend_ms = numbers.next();
    }
  }
  return RuleTable(std::move(signals), std::move(nodes), domain_upper, rules, path);
}

void append(double value) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  state().samples.push_back(value);
  state().digest = (state().digest ^ std::bit_cast<std::uint64_t>(value)) * kPrime;
}

void take_sample() {
  const LiveLink link = state().network->link(0);
  append(state().now_ms);
  append(static_cast<double>(link.waiting_packets));
  append(static_cast<double>(link.dropped));
  append(static_cast<double>(link.lost));
  for (std::uint32_t i = 0; i < state().description.senders.size(); ++i) {
    const LiveSender sender = state().network->sender(i);
    append(sender.is_on ? 1 : 0);
    append(sender.pace.window_packets);
    append(sender.pace.intersend_ms);
    append(sender.rtt_ms);
    append(static_cast<double>(sender.in_flight));
    append(static_cast<double>(sender.received));
    append(static_cast<double>(sender.lost));
    append(sender.delay_sum_ms);
    const LastRules::Use& use = state().rules.uses[i];
    append(use.rule);
    // The digest is of the signals that are measured.
    for (std::size_t axis = 0; axis < use.axes; ++axis) {
      append(use.memory[axis]);
    }
    state().samples.resize(state().samples.size() + (kSignals - use.axes));
  }
}

}  // namespace

#if !defined(__cpp_exceptions)
void end_call(const std::string& sentence) {
  state().refusal = sentence;
  __builtin_trap();
}
#endif

REMY_LIVE double* remy_live_input_buffer(std::size_t numbers) {
  state().input.assign(numbers, 0);
  return state().input.data();
}

REMY_LIVE std::uint32_t remy_live_add_table(std::size_t count) {
  InputReader numbers(count);
  state().tables.emplace_back(read_table(numbers));
  return static_cast<std::uint32_t>(state().tables.size() - 1);
}

REMY_LIVE void remy_live_start(std::size_t count) {
  InputReader numbers(count);
  const auto seed = static_cast<std::uint64_t>(numbers.next_count("the seed", 0xffffffff));
  NetworkDescription description;
  description.links.push_back(read_link(numbers));
  description.measurement.jitter = ExponentialJitter{numbers.next()};
  const double mean_on_ms = numbers.next();
  const double mean_off_ms = numbers.next();
  const std::uint32_t senders = numbers.next_count("the number of senders", kMaxSenders);
  for (std::uint32_t i = 0; i < senders; ++i) {
    description.senders.push_back(read_sender(numbers.next(), mean_on_ms, mean_off_ms));
  }
  state().network.reset();
  state().description = std::move(description);
  state().rules.uses.assign(senders, {});
  state().network = make_live_network(state().description, state().tables, seed, &state().rules);
  state().now_ms = 0;
  state().digest = 0xcbf29ce484222325;
  for (std::uint32_t i = 0; i < senders; ++i) {
    state().network->hold(i, false);
  }
}

REMY_LIVE void remy_live_change_link(std::size_t count) {
  InputReader numbers(count);
  state().description.links.front() = read_link(numbers);
  validate(state().description, state().tables.size());
  state().network->change_link(0, state().description.links.front());
}

REMY_LIVE void remy_live_switch(std::uint32_t sender, std::uint32_t how) {
  if (sender >= state().description.senders.size()) {
    refuse("there is no sender " + std::to_string(sender) + "; there are " +
           std::to_string(state().description.senders.size()));
  }
  if (how == 2) {
    state().network->release(sender);
  } else {
    state().network->hold(sender, how == 1);
  }
}

REMY_LIVE std::uint32_t remy_live_run(double until_ms, double step_ms) {
  require(step_ms > 0, "step_ms", step_ms, kPositive);
  state().samples.clear();
  std::uint32_t samples = 0;
  while (state().now_ms + step_ms <= until_ms) {
    state().now_ms += step_ms;
    state().network->run_until(state().now_ms);
    take_sample();
    ++samples;
  }
  return samples;
}

REMY_LIVE const double* remy_live_samples() { return state().samples.data(); }

REMY_LIVE std::uint64_t remy_live_digest() { return state().digest; }

REMY_LIVE const char* remy_live_protocols() {
  static const std::string kLines = [] {
    std::string lines;
    for (const Protocol& protocol : protocols()) {
      if (!protocol.is_omniscient) {
        lines += std::string(protocol.name) + "\t" + std::string(protocol.title) + "\n";
      }
    }
    return lines;
  }();
  return kLines.c_str();
}

REMY_LIVE const char* remy_live_queues() {
  static const std::string kLines = [] {
    std::string lines;
    for (const QueueDiscipline& discipline : queue_disciplines()) {
      lines += std::string(discipline.name) + "\t" + std::string(discipline.title) + "\n";
    }
    return lines;
  }();
  return kLines.c_str();
}

REMY_LIVE const char* remy_live_refusal() { return state().refusal.c_str(); }

}  // namespace remy
