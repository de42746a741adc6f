// A RemyCC, and when its senders are on, as `remy-farm reproduce --with ns3` writes them down.
//
// Written from TCP ex Machina (SIGCOMM 2013), sections 4.1 and 4.2, and from what
// docs/explanation/simulator.md says of Remy's own simulator, apart from this project's.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "ns3/core-module.h"

inline double now_ms() { return ns3::Simulator::Now().GetNanoSeconds() / 1e6; }
inline ns3::Time from_ms(double ms) {
  return ns3::NanoSeconds(static_cast<std::int64_t>(ms * 1e6 + 0.5));
}

inline constexpr std::size_t kSignals = 4;

struct Rule {
  std::array<double, kSignals> lower, upper;
  double multiple, increment, intersend_ms;
};

// An on period by time, or a flow of so many packets after a time off.
struct Period {
  double begin_ms, end_ms;
};
struct Flow {
  double off_ms;
  std::uint64_t packets;
};

// What a sender came to.
struct Tally {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  double rtt_sum_ms = 0;
  std::uint64_t rtt_samples = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  std::vector<Period> on;
};

// Memory, window and pace of one on period.
class Remycc {
 public:
  explicit Remycc(const std::vector<Rule>& rules) : rules_(&rules) {}

  std::uint64_t window() const { return window_; }
  double intersend_ms() const { return intersend_ms_; }

  // With a window in place of that which the rule for an empty memory sets, unless it is 0.
  void start(std::uint64_t window = 0) {
    memory_ = {};
    smallest_rtt_ms_ = std::numeric_limits<double>::infinity();
    window_ = 0;
    apply_rule();
    if (window > 0) window_ = window;
  }

  // An ACK came now for a packet that left at sent_ms. The first sets the references alone.
  void acknowledged(double sent_ms) {
    const double rtt_ms = now_ms() - sent_ms;
    if (smallest_rtt_ms_ < std::numeric_limits<double>::infinity()) {
      smallest_rtt_ms_ = std::min(smallest_rtt_ms_, rtt_ms);
      const double arrived_after_ms = now_ms() - last_arrived_ms_;
      memory_[0] += (sent_ms - last_sent_ms_ - memory_[0]) / 8;
      memory_[1] += (arrived_after_ms - memory_[1]) / 8;
      memory_[2] = rtt_ms / smallest_rtt_ms_;
      memory_[3] += (arrived_after_ms - memory_[3]) / 256;
    } else {
      smallest_rtt_ms_ = rtt_ms;
    }
    last_sent_ms_ = sent_ms;
    last_arrived_ms_ = now_ms();
    apply_rule();
  }

  // What every ACK does, whatever it tells.
  void apply_rule() {
    for (const Rule& rule : *rules_) {
      bool is_here = true;
      for (std::size_t axis = 0; is_here && axis < kSignals; ++axis) {
        is_here = rule.lower[axis] <= memory_[axis] && memory_[axis] < rule.upper[axis];
      }
      if (is_here) {
        const double window = window_ * rule.multiple + rule.increment;
        window_ = static_cast<std::uint64_t>(std::clamp(window, 0.0, kMaximumWindow));
        intersend_ms_ = rule.intersend_ms;
        return;
      }
    }
    throw std::runtime_error("the rules leave a gap");
  }

 private:
  static constexpr double kMaximumWindow = 1e6;

  const std::vector<Rule>* rules_;
  std::array<double, kSignals> memory_{};
  double smallest_rtt_ms_ = 0;
  double last_sent_ms_ = 0;
  double last_arrived_ms_ = 0;
  double intersend_ms_ = 0;
  std::uint64_t window_ = 0;
};

// What to simulate, in words:
//   rules N, then for each: lower and upper ends of send_ewma, rec_ewma, rtt_ratio, slow_rec_ewma;
//     window multiple, window increment, intersend time
//   senders N, then for each: `time`, the number of its on periods, and their begin and end, ms;
//     or `flows`, their number, and for each the time off before it, ms, and its packets
struct Scenario {
  struct Sender {
    std::vector<Period> periods;
    std::vector<Flow> flows;
  };
  std::vector<Rule> rules;
  std::vector<Sender> senders;

  explicit Scenario(std::istream& input) {
    input.exceptions(std::ios::failbit | std::ios::badbit);
    std::string word;
    std::size_t count = 0;
    input >> word >> count;
    rules.resize(count);
    for (Rule& rule : rules) {
      for (std::size_t axis = 0; axis < kSignals; ++axis) {
        input >> rule.lower[axis] >> rule.upper[axis];
      }
      input >> rule.multiple >> rule.increment >> rule.intersend_ms;
    }
    input >> word >> count;
    senders.resize(count);
    for (Sender& sender : senders) {
      input >> word >> count;
      if (word == "time") {
        sender.periods.resize(count);
        for (Period& period : sender.periods) input >> period.begin_ms >> period.end_ms;
      } else {
        sender.flows.resize(count);
        for (Flow& flow : sender.flows) input >> flow.off_ms >> flow.packets;
      }
    }
  }
};
