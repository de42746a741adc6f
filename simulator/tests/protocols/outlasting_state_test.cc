#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "network/network.h"
#include "protocols/protocol.h"

namespace remy {
namespace {

// The outputs of a controller after an event.
struct Answers {
  double cwnd;
  double pacing_interval_ms;
  double next_tick_ms;
  double xcp_demand_packets;

  bool operator==(const Answers&) const = default;

  friend std::ostream& operator<<(std::ostream& out, const Answers& answers) {
    return out << "window " << answers.cwnd << ", pacing " << answers.pacing_interval_ms
               << " ms, tick at " << answers.next_tick_ms << " ms, demand "
               << answers.xcp_demand_packets;
  }
};

// Numbers that count on from one connection to the next: transmissions, delivered and lost packets.
struct Counters {
  std::uint64_t transmissions = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
};

// A sender without a network, which reports the same events to one controller or to several. It
// fills the first one's window, up to a number of packets.
class Sender {
 public:
  Sender(std::uint64_t seed, double most_in_flight)
      : seed_(seed), most_in_flight_(most_in_flight) {}

  // The controller sees numbers that count from those given.
  void report_to(CongestionController& controller, Counters from = {}) {
    listeners_.push_back({&controller, from});
  }
  void report_to_none() { listeners_.clear(); }
  Counters counters() const { return counters_; }
  double now_ms() const { return now_ms_; }
  std::size_t in_flight() const { return in_flight_.size(); }
  // A new connection forgets the packets in flight.
  void forget() { in_flight_.clear(); }
  void wait_until(double ms) {
    now_ms_ = std::max(now_ms_, ms);
    tick();
  }
  Answers answers(std::size_t listener = 0) const {
    const CongestionController& controller = *listeners_[listener].controller;
    return {controller.cwnd(), controller.pacing_interval_ms(), controller.next_tick_ms(),
            controller.xcp_demand_packets()};
  }

  void fill() {
    const double window = std::min(std::max(answers().cwnd, 1.0), most_in_flight_);
    while (static_cast<double>(in_flight_.size() + 1) <= window) {
      send();
    }
  }

  struct Ack {
    double rtt_ms = 50;
    double after_ms = 1;
    bool is_cwnd_limited = true;
    bool is_marked = false;
    bool in_recovery = false;
    double rate_factor = 1;
  };
  void acknowledge(const Ack& about) {
    now_ms_ += about.after_ms;
    tick();
    if (in_flight_.empty()) {
      return;
    }
    const Packet packet = in_flight_.front();
    const std::size_t prior = in_flight_.size();
    in_flight_.pop_front();
    ++counters_.delivered;
    AckEvent ack{.now_ms = now_ms_,
                 .sent_ms = now_ms_ - about.rtt_ms,
                 .received_ms = now_ms_ - about.rtt_ms / 2,
                 .rtt_ms = about.rtt_ms,
                 .transmission_number = packet.number,
                 .newly_acked = 1,
                 .newly_delivered = 1,
                 .newly_marked = about.is_marked ? 1U : 0U,
                 .total_delivered = counters_.delivered,
                 .total_lost = counters_.lost,
                 .prior_in_flight = prior,
                 .in_flight = in_flight_.size(),
                 .in_recovery = about.in_recovery,
                 .is_cwnd_limited = about.is_cwnd_limited,
                 .packet = packet.snapshot,
                 .xcp_feedback_packets = about.is_marked ? -0.5 : 0.25};
    ack.delivery_interval_ms = about.rtt_ms;
    ack.delivery_rate_per_ms =
        about.rate_factor * static_cast<double>(counters_.delivered - packet.snapshot.delivered) /
        about.rtt_ms;
    for (const Listener& listener : listeners_) {
      AckEvent seen = ack;
      seen.transmission_number -= listener.from.transmissions;
      seen.total_delivered -= listener.from.delivered;
      seen.total_lost -= listener.from.lost;
      seen.packet = listener.seen(ack.packet);
      listener.controller->on_ack(seen);
    }
  }

  // The oldest packet in flight is lost and retransmitted.
  void lose(bool starts_recovery) {
    if (in_flight_.empty()) {
      return;
    }
    const Packet packet = in_flight_.front();
    ++counters_.lost;
    for (const Listener& listener : listeners_) {
      listener.controller->on_loss(
          {.now_ms = now_ms_,
           .transmission_number = packet.number - listener.from.transmissions,
           .in_flight = in_flight_.size(),
           .starts_recovery = starts_recovery,
           .packet = listener.seen(packet.snapshot)});
    }
    in_flight_.pop_front();
    send(true);
  }

  void time_out(bool is_first = true) {
    counters_.lost += in_flight_.size();
    for (const Listener& listener : listeners_) {
      listener.controller->on_timeout(
          {.now_ms = now_ms_, .in_flight = in_flight_.size(), .is_first = is_first});
    }
    in_flight_.clear();
  }

  void idle_timeout() {
    for (const Listener& listener : listeners_) {
      listener.controller->on_idle_timeout(now_ms_);
    }
  }

  // Any event, by the seed. Losses, timeouts and idle times are rarer with some seeds.
  void random_event() {
    constexpr std::array<double, 3> kCalm = {0, 0.1, 0.14};
    const double kind = draw();
    const double calm = kCalm[seed_ % 3];
    if (kind < 0.85 + calm && !in_flight_.empty()) {
      acknowledge({.rtt_ms = 40 + 40 * draw(),
                   .after_ms = 4 * draw(),
                   .is_cwnd_limited = draw() < 0.8,
                   .is_marked = draw() < 0.1,
                   .in_recovery = draw() < 0.1 - calm / 2});
    } else if (kind < 0.94 + calm / 3) {
      lose(draw() < 0.3);
    } else if (kind < 0.97 + calm / 6) {
      time_out(draw() < 0.7);
    } else {
      wait_until(now_ms_ + 1000 * draw());
      if (in_flight_.empty()) {
        idle_timeout();
      }
    }
    if (draw() < 0.9) {
      fill();
    }
  }

 private:
  struct Packet {
    std::uint64_t number;
    DeliverySnapshot snapshot;
  };
  struct Listener {
    CongestionController* controller;
    Counters from;

    DeliverySnapshot seen(DeliverySnapshot snapshot) const {
      snapshot.delivered -= from.delivered;
      snapshot.lost -= from.lost;
      return snapshot;
    }
  };

  double draw() { return unit_interval(random_bits(seed_, draws_++)); }

  void send(bool is_retransmission = false) {
    const std::uint64_t number = counters_.transmissions++;
    in_flight_.push_back({number,
                          {.sent_ms = now_ms_,
                           .delivered = counters_.delivered,
                           .delivered_ms = now_ms_,
                           .first_sent_ms = now_ms_,
                           .tx_in_flight = in_flight_.size() + 1,
                           .lost = counters_.lost,
                           .is_app_limited = false}});
    for (const Listener& listener : listeners_) {
      if (in_flight_.size() == 1) {
        listener.controller->on_transmit_start(now_ms_);
      }
      listener.controller->on_sent({.now_ms = now_ms_,
                                    .transmission_number = number - listener.from.transmissions,
                                    .in_flight = in_flight_.size(),
                                    .is_retransmission = is_retransmission});
    }
  }

  void tick() {
    for (const Listener& listener : listeners_) {
      for (int ticks = 0; ticks < 100 && listener.controller->next_tick_ms() <= now_ms_; ++ticks) {
        listener.controller->on_tick(now_ms_);
      }
    }
  }

  std::uint64_t seed_;
  double most_in_flight_;
  std::uint64_t draws_ = 0;
  double now_ms_ = 0;
  Counters counters_;
  std::deque<Packet> in_flight_;
  std::vector<Listener> listeners_;
};

// Properties of an earlier epoch that later decisions may show.
enum Trace : unsigned {
  kNothing = 0,
  kWindow = 1,  // how large the window grew
  kRtt = 2,
  kRate = 4,  // the delivery rate
  kLoss = 8,
  kMark = 16,
};

constexpr double kKept = -1;

// A protocol, and all that it may keep. A connection keeps nothing of an earlier one.
struct Row {
  const char* protocol;
  const char* variant;
  // The window after an idle time of an RTO, after one of 100 packets; kKept: the same as before.
  double window_after_idle;
  unsigned outlasts_idle;  // the traces that later decisions show
  double window_after_timeout;
  unsigned outlasts_timeout;
};

constexpr Row kRows[] = {
    {"aimd", "aimd", 10, kLoss, 1, kWindow | kLoss},
    {"bbr", "v1", kKept, kRtt | kRate, 1, kRtt | kRate},
    {"bbr", "v3", kKept, kRtt | kRate, 1, kRtt | kRate},
    {"compound", "paper", 10, kLoss, 1, kWindow | kLoss},
    {"compound", "linux", 2, kLoss, 1, kLoss},
    {"constant-rate", "constant-rate", kKept, kNothing, kKept, kNothing},
    {"copa", "validated", kKept, kWindow | kRtt, 2, kRtt},
    {"copa", "paper", kKept, kWindow | kRtt, 2, kRtt},
    {"copa", "no-mode-switch", kKept, kWindow | kRtt, 2, kRtt},
    {"cubic", "rfc9438", 10, kLoss, 1, kWindow | kLoss},
    {"cubic", "linux-2.6.22", 2, kLoss, 1, kLoss},
    {"cubic", "linux", 10, kWindow | kRtt | kLoss, 1, kWindow | kRtt | kLoss},
    {"dctcp", "rfc8257", 10, kLoss | kMark, 1, kWindow | kLoss | kMark},
    {"hybla", "paper", 10, kRtt | kLoss, 1, kWindow | kRtt | kLoss | kMark},
    {"illinois", "paper", 10, kLoss, 1, kWindow | kRtt | kLoss | kMark},
    {"ledbat", "rfc6817", 2, kRtt, 1, kRtt},
    {"newreno", "rfc", 10, kLoss, 1, kNothing},
    {"newreno", "ns-2", 1, kLoss, 1, kWindow | kLoss},
    {"newreno", "paced", 10, kRtt | kLoss, 1, kRtt},
    {"pcc-allegro", "safe", kKept, kRtt, kKept, kWindow | kRtt},
    {"pcc-allegro", "latency", kKept, kRtt, kKept, kWindow | kRtt},
    {"pcc-allegro", "loss-resilient", kKept, kRtt, kKept, kWindow | kRtt},
    {"pcc-vivace", "latency", kKept, kRtt, kKept, kRtt},
    {"remy-aimd", "remy", kKept, kWindow | kLoss, kKept, kWindow | kLoss},
    {"sprout", "paper", kKept, kWindow | kRtt, 1, kWindow | kRtt},
    {"vegas", "ns-2", 2, kRtt | kLoss, 2, kNothing},
    {"vegas", "linux", 2, kRtt, 1, kRtt | kLoss},
    {"xcp", "katabi2002", 1, kNothing, 1, kNothing},
};

std::string name_of(const Row& row) { return std::string(row.protocol) + " " + row.variant; }

std::unique_ptr<CongestionController> make(const Row& row) {
  const Protocol& protocol = find_protocol(row.protocol);
  return protocol.make(
      ParameterValues("protocol", protocol.variants, {row.protocol, row.variant, {}}), 1);
}

TEST(OutlastingState, EachProtocolHasARow) {
  std::vector<std::string> expected;
  for (const Protocol& protocol : protocols()) {
    for (const Variant& variant : protocol.variants) {
      if (!protocol.is_omniscient) {
        expected.push_back(std::string(protocol.name) + " " + std::string(variant.name));
      }
    }
  }
  std::vector<std::string> rows;
  for (const Row& row : kRows) {
    rows.push_back(name_of(row));
  }
  std::ranges::sort(expected);
  std::ranges::sort(rows);
  EXPECT_EQ(rows, expected);
}

// A controller that starts again decides as a new one, event for event, whatever was before.
TEST(OutlastingState, AConnectionKeepsNothingOfAnEarlierOne) {
  for (const Row& row : kRows) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto used = make(row);
      const auto fresh = make(row);
      Sender sender(seed, 300);
      used->start(0);
      fresh->start(0);
      sender.report_to(*used);
      sender.fill();
      for (std::uint64_t event = 0; event < 100 * seed; ++event) {
        sender.random_event();
      }
      sender.forget();
      used->start(sender.now_ms());
      fresh->start(sender.now_ms());
      sender.report_to(*fresh, sender.counters());
      ASSERT_EQ(sender.answers(0), sender.answers(1)) << name_of(row) << ", seed " << seed;
      sender.fill();
      for (int event = 0; event < 500; ++event) {
        sender.random_event();
        ASSERT_EQ(sender.answers(0), sender.answers(1))
            << name_of(row) << ", seed " << seed << ", event " << event;
      }
    }
  }
}

// The windows and pacing intervals of a sender's second connection on a network, from 20 s on.
std::vector<Pace> second_connection(const Row& row, const char* transport, double first_ends_ms) {
  constexpr double kBeginMs = 20'000;
  class Paces final : public Recorder {
   public:
    void sample(double now_ms, std::span<const SenderSample> senders,
                std::span<const LinkSample>) override {
      if (now_ms > kBeginMs) {
        paces.push_back(senders[0].pace);
      }
    }
    std::vector<Pace> paces;
  };
  NetworkDescription network;
  LinkDescription& link = network.links.emplace_back();
  link.rate_packets_per_ms = 1;
  link.buffer_packets = 60;
  link.delay_ms = 25;
  const ProtocolNeeds& needs = find_protocol(row.protocol).needs;
  if (needs.needs_xcp_router) {
    link.queue = {"xcp", "", {}};
  } else if (needs.is_ecn_capable) {
    link.queue = {"threshold-marking", "", {{"threshold_packets", 20}}};
  }
  SenderDescription& sender = network.senders.emplace_back();
  sender.protocol = {row.protocol, row.variant, {}};
  sender.transport = {"tcp", transport, {{"keep_state", 0}}};
  sender.traffic = {.on = Intervals{{{0, first_ends_ms}, {kBeginMs, 1e9}}}};
  sender.route.links = {0};
  sender.route.return_delay_ms = 25;
  Paces recorder;
  NetworkOptions options;
  options.recorder = &recorder;
  options.record_every_ms = 7;
  run_network(network, {}, kBeginMs + 3000, 1, options);
  return recorder.paces;
}

// No state of the transport outlasts a connection either. The first
// connection lasts 1 ms or some seconds, and has losses or marks.
TEST(OutlastingState, AConnectionOnTcpKeepsNothingOfAnEarlierOne) {
  const auto same = [](const Pace& left, const Pace& right) {
    return left.window_packets == right.window_packets && left.intersend_ms == right.intersend_ms;
  };
  for (const Row& row : kRows) {
    if (!find_protocol(row.protocol).needs.retransmits) {
      continue;  // keeps its connection by definition
    }
    for (const char* transport : {"rfc", "newreno", "linux", "ns-2", "ns-2-linux"}) {
      const std::vector<Pace> usual = second_connection(row, transport, 1);
      for (const double first_ends_ms : {703.0, 4321.0}) {
        EXPECT_TRUE(
            std::ranges::equal(second_connection(row, transport, first_ends_ms), usual, same))
            << name_of(row) << " on " << transport << ", after " << first_ends_ms << " ms";
      }
    }
  }
}

struct History {
  int rounds = 30;
  double rtt_ms = 50;
  double rate_factor = 1;
  bool has_loss = false;
  bool has_marks = false;
};

enum class Then { kIdleTime, kTimeout };

// The answers after an epoch of this history and what then ends it.
std::vector<Answers> answers_after(const Row& row, const History& history, Then then) {
  const auto controller = make(row);
  controller->start(0);
  Sender sender(7, 40);
  sender.report_to(*controller);
  sender.fill();
  for (int round = 0; round < history.rounds; ++round) {
    const std::size_t packets = sender.in_flight();
    // A loss, or marks, in the middle of the history.
    const bool is_middle = round == 4;
    if (is_middle && history.has_loss) {
      sender.lose(true);
    }
    for (std::size_t packet = 0; packet < packets; ++packet) {
      sender.acknowledge({.rtt_ms = history.rtt_ms,
                          .after_ms = history.rtt_ms / static_cast<double>(packets),
                          .is_marked = is_middle && history.has_marks,
                          .rate_factor = history.rate_factor});
      sender.fill();
    }
  }
  constexpr double kEndMs = 4000;
  if (then == Then::kIdleTime) {
    while (sender.in_flight() > 0) {
      sender.acknowledge({.rtt_ms = history.rtt_ms, .rate_factor = history.rate_factor});
    }
    sender.wait_until(kEndMs);
    sender.idle_timeout();
  } else {
    sender.wait_until(kEndMs);
    sender.time_out();
  }
  std::vector<Answers> answers;
  for (int event = 0; event < 3000; ++event) {
    answers.push_back(sender.answers());
    sender.fill();
    sender.acknowledge({.rtt_ms = 60 + 0.005 * event});
  }
  return answers;
}

unsigned traces_after(const Row& row, Then then) {
  const std::vector<Answers> usual = answers_after(row, {}, then);
  unsigned traces = kNothing;
  const auto add = [&](const History& history, Trace trace) {
    traces |= answers_after(row, history, then) == usual ? kNothing : trace;
  };
  add({.rounds = 20}, kWindow);
  add({.rtt_ms = 40}, kRtt);
  add({.rate_factor = 2}, kRate);
  add({.has_loss = true}, kLoss);
  add({.has_marks = true}, kMark);
  return traces;
}

TEST(OutlastingState, AnIdleTimeOrATimeoutLeavesNoMoreThanIsNamed) {
  for (const Row& row : kRows) {
    EXPECT_EQ(traces_after(row, Then::kIdleTime), row.outlasts_idle) << name_of(row);
    EXPECT_EQ(traces_after(row, Then::kTimeout), row.outlasts_timeout) << name_of(row);
  }
}

TEST(OutlastingState, TheWindowAfterAnIdleTimeOrATimeout) {
  for (const Row& row : kRows) {
    for (const Then then : {Then::kIdleTime, Then::kTimeout}) {
      const auto controller = make(row);
      controller->start(0);
      Sender sender(7, 300);
      sender.report_to(*controller);
      sender.fill();
      for (int acks = 0; acks < 400 && controller->cwnd() < 100; ++acks) {
        sender.acknowledge({});
        sender.fill();
      }
      if (then == Then::kIdleTime) {
        while (sender.in_flight() > 0) {
          sender.acknowledge({.is_cwnd_limited = false});
        }
      }
      sender.wait_until(sender.now_ms() + 1000);
      const double before = controller->cwnd();
      if (then == Then::kIdleTime) {
        sender.idle_timeout();
      } else {
        sender.time_out();
      }
      const double expected =
          then == Then::kIdleTime ? row.window_after_idle : row.window_after_timeout;
      EXPECT_EQ(controller->cwnd(), expected == kKept ? before : expected) << name_of(row);
    }
  }
}

}  // namespace
}  // namespace remy
