#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "senders/congestion_controller.h"

namespace remy {

// What a sender tried, and what came of it: packets sent in a row at one rate.
struct MonitorInterval {
  double rate_per_ms = 0;
  double start_ms = 0;
  double end_ms = 0;               // when it is to end; then, when the next began
  std::uint64_t first_serial = 0;  // of its packets; the next interval's follow
  int round = 0;                   // of what the sender looks for
  int trial = 0;                   // in the round; -1: only waits for the others
  bool is_over = false;
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t lost = 0;
  // Sums over ACKs, times since the start.
  double rtts = 0;
  double rtts_ms = 0;
  double times_ms = 0;
  double squared_times = 0;
  double times_by_rtts = 0;

  double loss() const {
    const std::uint64_t known = acknowledged + lost;
    return known == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(known);
  }
  double mean_rtt_ms() const { return rtts == 0 ? 0 : rtts_ms / rtts; }
  // dRTT/dT by the least squares over its packets' sending times.
  double rtt_slope() const;
};

// Performance-oriented congestion control: tries rates in monitor intervals and moves to where a
// utility of what came of them grows (Dong et al., NSDI 2015, section 3). What Allegro and Vivace
// share: intervals, and the start. Results of an interval are known an RTT after its end, so that
// intervals overlap with waiting for those before.
class Pcc : public CongestionController {
 public:
  void start(double now_ms) final;
  void on_ack(const AckEvent& ack) final;
  void on_loss(const LossEvent& loss) final;
  void on_timeout(const TimeoutEvent& timeout) final;
  void on_sent(const SendEvent& sent) final;

 protected:
  // What a trial is to send at.
  struct Trial {
    double rate_per_ms = 0;
    int number = 0;  // as MonitorInterval::trial
  };

  virtual double utility(const MonitorInterval& interval) = 0;
  virtual double interval_ms(double rate_per_ms) = 0;
  // The start is over, or what was tried came to nothing: looks around anew.
  virtual void begin() = 0;
  // Nothing is known.
  virtual void reset() = 0;
  // The next interval after the start.
  virtual Trial next_trial() = 0;
  // An interval of this round is over and known.
  virtual void learnt(const MonitorInterval& interval, double utility) = 0;

  // The next packet begins an interval, as what was looked for has changed.
  void begin_round() {
    ++round_;
    is_realigning_ = true;
  }
  bool is_waiting_for_trials() const;

  double smoothed_rtt_ms() const { return smoothed_rtt_ms_; }
  double rate_per_ms() const { return rate_per_ms_; }
  void set_rate(double rate_per_ms);

 private:
  static constexpr double kFirstWindow = 2;
  static constexpr double kWindow = 1e6;
  static constexpr double kLargestRatePerMs = 1e4;

  MonitorInterval* find(std::uint64_t serial);
  void open(const SendEvent& sent);
  void finish(double acknowledged_sent_ms);
  Trial next_doubling();
  void learnt_at_start(const MonitorInterval& interval, double utility);

  std::deque<MonitorInterval> intervals_;
  double smoothed_rtt_ms_ = 0;
  double rate_per_ms_ = 0;  // between trials
  int round_ = 0;
  bool is_realigning_ = false;
  bool is_starting_ = true;
  bool has_doubled_ = false;
  std::optional<double> start_utility_;
  double start_rate_per_ms_ = 0;
};

}  // namespace remy
