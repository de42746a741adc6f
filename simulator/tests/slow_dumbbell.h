#pragma once

#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "evaluation/specimen.h"
#include "senders/packet.h"
#include "table/rule_table.h"

namespace remy {

// The semantics once more, as plainly as they can be written: every element is polled at every
// event, every packet carries its whole story, nothing is computed ahead. Slow, and the yardstick
// for the simulator that is not.
class SlowDumbbell {
 public:
  SlowDumbbell(const RuleTable& table, const Specimen& specimen, std::uint64_t seed);

  std::vector<SenderResults> run(double duration_ms);
  const std::vector<std::uint64_t>& rule_uses() const { return rule_uses_; }

 private:
  struct SlowPacket {
    std::size_t sender;
    std::uint32_t period;
    std::uint32_t sequence;
    double sent_ms;
    bool lost;
    // What it met at the link, how many left that with it, and when.
    std::size_t queue_length = 0;
    std::int64_t departures = 0;
    double departed_ms = 0;
    bool marked = false;
  };
  struct InDelay {
    SlowPacket packet;
    double arrives_ms;
  };
  struct SlowSender {
    explicit SlowSender(Schedule with) : schedule(with) {}

    Schedule schedule;
    SenderResults results;
    bool on = false;
    double next_switch_ms = 0;
    std::uint32_t period = 0;
    // Memory (section 4.1).
    MemoryPoint memory{};
    bool heard = false;
    double clock_ms = 0;
    SlowPacket last_heard{};
    double marked = 0;  // packets received since the last ACK with a mark
    double last_sent_ms = 0;
    double last_received_ms = 0;
    double minimum_rtt_ms = 0;
    std::optional<double> heard_of_loss_ms;  // of this on period
    // Of this on period: packets acknowledged after the first, when that was, the smallest RTT. Of
    // the last with 16 such packets: time between two of them, and the smallest RTT.
    double age = 0;
    double first_received_ms = 0;
    double period_rtt_ms = 0;
    double remembered_interval_ms = 0;
    double remembered_rtt_ms = 0;
    // What the last rule said, and the state of the flow.
    int window = 0;
    double intersend_ms = 0;
    double last_send_ms = 0;
    std::int64_t sent = 0;
    std::int64_t largest_ack = -1;
    std::int64_t flow_packets = -1;  // unlimited
    std::int64_t resolved = 0;
    std::int64_t last_bunch = 1;
    // Received, and when its ACK leaves at the latest.
    std::optional<SlowPacket> unacknowledged;
    double ack_due_ms = 0;
  };

  double next_event_ms() const;
  std::int64_t next_bunch(const SlowSender& sender) const;
  double next_send_ms(const SlowSender& sender) const;
  void deliver(double now_ms);
  void send(double now_ms);
  void serve(double now_ms);
  void switch_senders(double now_ms);
  bool send_delayed_ack(double now_ms);
  void hear(SlowSender& sender, SlowPacket packet, double packets, double now_ms);
  double jitter_ms(const SlowPacket& packet) const;
  void hear_more(SlowSender& sender, const SlowPacket& packet, double packets, double received_ms,
                 double rtt_ms) const;
  void look_up(SlowSender& sender);
  void accept(const SlowPacket& packet, double now_ms);
  void resolve(SlowSender& sender, double now_ms);
  void turn_off(SlowSender& sender, double now_ms);

  const RuleTable& table_;
  bool averages_by_age_;
  const Specimen& specimen_;
  std::uint64_t loss_key_;
  std::uint64_t jitter_key_;
  std::uint64_t rtt_offset_key_;
  double marking_threshold_packets_ = std::numeric_limits<double>::infinity();
  std::vector<SlowSender> senders_;
  std::deque<SlowPacket> queue_;
  std::optional<SlowPacket> in_service_;
  double service_ends_ms_ = 0;
  std::int64_t departures_ = 0;
  std::deque<InDelay> delay_;
  std::vector<std::uint64_t> rule_uses_;
};

}  // namespace remy
