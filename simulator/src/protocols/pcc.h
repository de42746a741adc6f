#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "senders/congestion_controller.h"

namespace remy {

// A monitor interval: packets that were sent at one rate, and what became of them.
struct MonitorInterval {
  double rate_per_ms = 0;
  double start_ms = 0;
  double end_ms = 0;                     // planned end; once is_over, start of the next interval
  std::uint64_t first_transmission = 0;  // transmission number of its first packet
  int round = 0;  // counter of decisions: intervals of earlier rounds are ignored
  int trial = 0;  // index in the round; -1: not a trial, waits for the results of trials
  bool is_over = false;
  std::uint64_t sent = 0;
  std::uint64_t acked = 0;
  std::uint64_t lost = 0;
  // Sums over ACKs for a least-squares fit of the RTT; times are sending times since start_ms.
  double rtt_count = 0;
  double rtt_sum_ms = 0;
  double time_sum_ms = 0;
  double time_square_sum = 0;
  double time_rtt_sum = 0;

  double loss_rate() const {
    const std::uint64_t known = acked + lost;
    return known == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(known);
  }
  double mean_rtt_ms() const { return rtt_count == 0 ? 0 : rtt_sum_ms / rtt_count; }
  // dRTT/dT by least squares over its packets' sending times.
  double rtt_slope() const;
};

// Performance-oriented Congestion Control (Dong et al., NSDI 2015, section 3): tries rates in
// monitor intervals and moves in the direction in which a utility function of the results grows.
// This base class of Allegro and Vivace implements the monitor intervals and the starting phase.
// The results of an interval are known one RTT after its end, so later intervals are sent before
// that.
class Pcc : public CongestionController {
 public:
  void start(double now_ms) final;
  void on_ack(const AckEvent& ack) final;
  void on_loss(const LossEvent& loss) final;
  void on_timeout(const TimeoutEvent& timeout) final;
  void on_sent(const SendEvent& sent) final;

 protected:
  // The next interval's rate.
  struct Trial {
    double rate_per_ms = 0;
    int number = 0;  // MonitorInterval::trial
  };

  virtual double utility(const MonitorInterval& interval) = 0;
  virtual double interval_ms(double rate_per_ms) = 0;
  // The starting phase ends, or trials had too little data: starts a new decision.
  virtual void start_decision() = 0;
  // A connection starts.
  virtual void reset() = 0;
  // Chooses the rate of the next interval. Not called in the starting phase.
  virtual Trial next_trial() = 0;
  // The results of an interval of this round are complete.
  virtual void on_result(const MonitorInterval& interval, double utility) = 0;

  // Starts a new round. The next packet starts an interval, and the results of earlier rounds are
  // ignored.
  void start_round() {
    ++round_;
    must_start_interval_ = true;
  }
  bool is_waiting_for_trials() const;

  double srtt_ms() const { return srtt_ms_; }
  double rate_per_ms() const { return rate_per_ms_; }
  void set_rate(double rate_per_ms);

 private:
  static constexpr double kInitialWindow = 2;
  static constexpr double kUnlimitedWindow = 1e6;
  static constexpr double kMaxRatePerMs = 1e4;

  MonitorInterval* find_interval(std::uint64_t serial);
  void start_interval(const SendEvent& sent);
  void process_finished_intervals(double acknowledged_sent_ms);
  Trial next_doubling();
  void on_starting_result(const MonitorInterval& interval, double utility);

  std::deque<MonitorInterval> intervals_;
  std::uint64_t last_acked_ = 0;  // highest transmission number that an ACK has echoed
  double srtt_ms_ = 0;
  double rate_per_ms_ = 0;  // base rate, around which trials vary
  int round_ = 0;
  bool must_start_interval_ = false;
  bool in_starting_phase_ = true;
  bool has_start_rate_ = false;
  std::optional<double> best_start_utility_;
  double best_start_rate_per_ms_ = 0;
};

}  // namespace remy
