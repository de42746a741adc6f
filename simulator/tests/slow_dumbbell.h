#pragma once

#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "evaluation/specimen.h"
#include "senders/packet.h"
#include "table/rule_table.h"

namespace remy {

// A second, simple implementation of the dumbbell, which tests compare with the real one. It polls
// every element at every event, and computes nothing ahead.
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
    // Telemetry of the link (senders/packet.h).
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
    // The memory (TCP ex Machina, section 4.1), and what its signals are computed from.
    MemoryPoint memory{};
    bool has_ack = false;  // an ACK of this on period has arrived
    double clock_ms = 0;   // clock reading for the last ACK
    SlowPacket last_acked{};
    double marked = 0;  // marked packets received since the last ACK
    double last_sent_ms = 0;
    double last_received_ms = 0;
    double minimum_rtt_ms = 0;
    std::optional<double> last_loss_ms;  // time of the last ACK of this on period that shows a loss
    // This on period: packets acknowledged after the first ACK, the time of the first ACK, and the
    // smallest RTT.
    double age = 0;
    double first_received_ms = 0;
    double period_rtt_ms = 0;
    // The last on period of an age of at least 16: mean time between two packets, and smallest RTT.
    double remembered_interval_ms = 0;
    double remembered_rtt_ms = 0;
    // The window and pacing that the last rule set, and the state of the flow.
    int window = 0;
    double intersend_ms = 0;
    double last_send_ms = 0;
    std::int64_t sent = 0;
    std::int64_t largest_ack = -1;
    std::int64_t flow_packets = -1;  // negative: unlimited
    std::int64_t resolved = 0;       // packets received or lost
    std::int64_t last_bunch = 1;
    // A received packet whose ACK is delayed, and when the ACK leaves at the latest.
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
  void on_ack(SlowSender& sender, SlowPacket packet, double packets, double now_ms);
  double jitter_ms(const SlowPacket& packet) const;
  void update_extended_signals(SlowSender& sender, const SlowPacket& packet, double packets,
                               double received_ms, double rtt_ms) const;
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
