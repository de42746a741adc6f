#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "protocols/bbr.h"
#include "protocols/windowed_filter.h"

namespace remy {

namespace {

// BBR version 3: the model of version 1, bounded by what losses say about the path, for long (what
// may be in flight) and for short (until the next probe). Sections are those of revision 06 of the
// draft. Nothing takes back what a loss has done that turns out to be none (5.5.11), as no
// transport here finds that out.
class BbrV3 final : public CongestionController {
 public:
  BbrV3(const Chosen& chosen, std::uint64_t key)
      : key_(key),
        initial_window_packets_(chosen["initial_window_packets"]),
        drain_pacing_gain_(chosen["drain_pacing_gain"]),
        loss_threshold_(chosen["loss_threshold"]),
        beta_(chosen["beta"]),
        headroom_(chosen["headroom"]),
        min_rtt_window_ms_(chosen["min_rtt_window_ms"]),
        probe_rtt_interval_ms_(chosen["probe_rtt_interval_ms"]),
        probe_rtt_ms_(chosen["probe_rtt_ms"]),
        probe_rtt_window_gain_(chosen["probe_rtt_window_gain"]) {}

  // 5.2.1.
  void start(double now_ms) override {
    now_ms_ = last_ack_ms_ = now_ms;
    model_ = {};
    model_.min_rtt_stamp_ms = model_.probe_rtt_stamp_ms = now_ms;
    latest_ = {};
    full_pipe_ = {};
    probe_ = {};
    extra_acked_.clear();
    extra_acked_packets_ = extra_acked_delivered_ = 0;
    extra_acked_start_ms_ = now_ms;
    round_ = rounds_since_probe_ = 0;
    next_round_delivered_ = 0;
    is_round_start_ = false;
    probe_rtt_done_ms_ = kNever;
    is_probe_rtt_round_done_ = is_probe_rtt_due_ = false;
    limited_from_ = limited_until_ = 0;
    prior_window_packets_ = 0;
    is_recovering_ = is_restarting_from_idle_ = has_seen_rtt_ = false;
    enter(Mode::kStartup);
    cwnd_ = initial_window_packets_;
    // 5.6.2: the first rate is that of the initial window in a nominal ms, as no RTT is known.
    rate_per_ms_ = kStartupPacingGain * initial_window_packets_ / kNominalRttMs;
    pacing_interval_ms_ = 1 / rate_per_ms_;
  }

  // 5.2.3.
  void on_ack(const AckEvent& ack) override {
    now_ms_ = ack.now_ms;
    delivered_ = ack.total_delivered;
    lost_ = ack.total_lost;
    if (!has_seen_rtt_) {
      has_seen_rtt_ = true;
      rate_per_ms_ = kStartupPacingGain * cwnd_ / ack.rtt_ms;
    }
    // 4.1.2.3: over less than the minimum RTT an earlier transmission was acknowledged, and the
    // rate is none.
    const bool is_sample = ack.delivery_interval_ms >= std::min(model_.min_rtt_ms, ack.rtt_ms);
    sample_per_ms_ = is_sample ? ack.delivery_rate_per_ms : 0;
    const bool is_limited = ack.packet.is_app_limited || (ack.packet.delivered >= limited_from_ &&
                                                          ack.packet.delivered < limited_until_);
    update_latest_signals(ack);
    update_congestion_signals(ack, is_limited);
    update_aggregation(ack);
    check_full_pipe(is_limited);
    check_startup_done(ack);
    check_drain_done(ack);
    update_cycle(ack, is_limited);
    update_min_rtt(ack);
    check_probe_rtt(ack);
    if (latest_.is_round_start) {
      latest_.bandwidth = sample_per_ms_;
      latest_.in_flight = delivered_since_sent(ack);
    }
    model_.bandwidth = std::min(max_bandwidth(), model_.short_term_bandwidth);
    set_rate(pacing_gain_);
    set_window(ack);
    last_ack_ms_ = ack.now_ms;
  }

  // 5.2.4 and 5.5.10.2.
  void on_loss(const LossEvent& loss) override {
    now_ms_ = loss.now_ms;
    ++lost_;
    if (!latest_.is_loss) {
      latest_.round_delivered = delivered_;
    }
    latest_.is_loss = true;
    if (loss.transmission_number != latest_.next_lost_serial) {
      ++latest_.lost_ranges;
    }
    latest_.next_lost_serial = loss.transmission_number + 1;
    if (loss.starts_recovery) {
      save_window();
      is_recovering_ = true;
    }
    if (!probe_.is_sample) {
      return;
    }
    const auto in_flight = static_cast<double>(loss.packet.tx_in_flight);
    const auto lost = static_cast<double>(lost_ - loss.packet.lost);
    if (lost > in_flight * loss_threshold_) {
      // What was in flight when the share of lost packets crossed the threshold.
      const double prior_in_flight = in_flight - 1;
      const double prefix =
          (loss_threshold_ * prior_in_flight - (lost - 1)) / (1 - loss_threshold_);
      handle_inflight_too_high(prior_in_flight + prefix, loss.packet.is_app_limited);
    }
  }

  // 5.6.4.4: one packet, then growth by what is delivered.
  void on_timeout(const TimeoutEvent& timeout) override {
    now_ms_ = timeout.now_ms;
    save_window();
    is_recovering_ = true;
    latest_.is_loss = true;
    lost_ += timeout.in_flight;
    cwnd_ = 1;
  }

  // 5.4.1: all was delivered and there was nothing to send.
  void on_sent(const SendEvent& sent) override {
    if (sent.in_flight == 1 && !is_recovering_ && has_seen_rtt_ &&
        sent.now_ms > last_ack_ms_ + pacing_interval_ms_) {
      is_restarting_from_idle_ = true;
      extra_acked_start_ms_ = now_ms_ = sent.now_ms;
      if (is_probing_bandwidth_mode()) {
        set_rate(1);
      } else if (mode_ == Mode::kProbeRtt) {
        check_probe_rtt_done();
      }
    }
  }

 private:
  enum class Mode { kStartup, kDrain, kDown, kCruise, kRefill, kUp, kProbeRtt };
  // What the ACKs of now tell of the last probe of the bandwidth.
  enum class Acks { kNothing, kRefilling, kProbeStarting, kProbeFeedback, kProbeStopping };

  static constexpr double kStartupPacingGain = 2.77;
  static constexpr double kWindowGain = 2;
  static constexpr double kUpWindowGain = 2.25;
  static constexpr double kPacingMargin = 0.99;
  static constexpr double kMinimumWindow = 4;
  static constexpr double kNominalRttMs = 1;
  static constexpr double kFullPipeGrowth = 1.25;
  static constexpr int kFullPipeRounds = 3;
  static constexpr int kStartupLossRanges = 6;
  static constexpr double kExtraAckedRounds = 10;
  static constexpr double kPacketBytes = 1500;

  struct Model {
    double bandwidth = 0;  // packets a ms, within the bounds below
    // The largest of the last cycle, and of this one.
    double last_max_bandwidth = 0;
    double max_bandwidth = 0;
    double min_rtt_ms = kNever;
    double min_rtt_stamp_ms = 0;
    double probe_rtt_min_ms = kNever;
    double probe_rtt_stamp_ms = 0;
    double long_term_in_flight = kNever;
    double short_term_in_flight = kNever;
    double short_term_bandwidth = kNever;
  };
  // Of the last round.
  struct Latest {
    double bandwidth = 0;
    double in_flight = 0;
    bool is_loss = false;
    bool is_round_start = false;
    std::uint64_t round_delivered = 0;
    int lost_ranges = 0;
    std::uint64_t next_lost_serial = 0;
  };
  struct FullPipe {
    double bandwidth = 0;
    int rounds = 0;
    bool is_now = false;
    bool was_ever = false;
  };
  struct Probe {
    Acks acks = Acks::kNothing;
    bool is_sample = false;
    bool was_too_high = false;
    bool was_precautionary = false;
    double cycle_start_ms = 0;
    double wait_ms = 0;
    double acked_per_increase = kNever;
    double acked = 0;
    int rounds = 0;
  };

  static double delivered_since_sent(const AckEvent& ack) {
    return static_cast<double>(ack.total_delivered - ack.packet.delivered);
  }

  bool is_probing_bandwidth_mode() const {
    return mode_ == Mode::kDown || mode_ == Mode::kCruise || mode_ == Mode::kRefill ||
           mode_ == Mode::kUp;
  }
  // Where losses do not count for the short term.
  bool is_accelerating() const {
    return mode_ == Mode::kStartup || mode_ == Mode::kRefill || mode_ == Mode::kUp;
  }

  // 5.6.1: the table of gains.
  void enter(Mode mode) {
    mode_ = mode;
    window_gain_ = kWindowGain;
    pacing_gain_ = 1;
    switch (mode) {
      case Mode::kStartup:
        pacing_gain_ = kStartupPacingGain;
        break;
      case Mode::kDrain:
        pacing_gain_ = drain_pacing_gain_;
        break;
      case Mode::kDown:
        pacing_gain_ = 0.9;
        break;
      case Mode::kUp:
        pacing_gain_ = 1.25;
        window_gain_ = kUpWindowGain;
        break;
      case Mode::kProbeRtt:
        window_gain_ = probe_rtt_window_gain_;
        break;
      case Mode::kCruise:
      case Mode::kRefill:
        break;
    }
  }

  void start_round() { next_round_delivered_ = delivered_; }

  double max_bandwidth() const { return std::max(model_.last_max_bandwidth, model_.max_bandwidth); }

  // 5.6.4.2.
  double path_packets(double gain) const {
    return model_.min_rtt_ms == kNever ? initial_window_packets_
                                       : gain * model_.bandwidth * model_.min_rtt_ms;
  }

  // 5.5.8.1 and 5.6.3: three times a ms's worth, at least two packets and at most 64 kB;
  // and 5.6.4.2: two more where bandwidth is probed.
  double with_budget(double packets) const {
    const double quantum = std::max(std::min(rate_per_ms_, 65536 / kPacketBytes), 2.0);
    return std::max({packets, 3 * quantum, kMinimumWindow}) + (mode_ == Mode::kUp ? 2 : 0);
  }

  double inflight(double gain) const { return with_budget(path_packets(gain)); }

  double target_in_flight() const { return std::min(path_packets(1), cwnd_); }

  double in_flight_with_headroom() const {
    if (model_.long_term_in_flight == kNever) {
      return kNever;
    }
    const double headroom = std::max(1.0, headroom_ * model_.long_term_in_flight);
    return std::max(model_.long_term_in_flight - headroom, kMinimumWindow);
  }

  // 5.5.10.3: the largest delivery rate and delivered volume of a round, which a loss begins anew.
  void update_latest_signals(const AckEvent& ack) {
    latest_.is_round_start = false;
    latest_.bandwidth = std::max(latest_.bandwidth, sample_per_ms_);
    latest_.in_flight = std::max(latest_.in_flight, delivered_since_sent(ack));
    if (ack.packet.delivered >= latest_.round_delivered) {
      latest_.round_delivered = ack.total_delivered;
      latest_.is_round_start = true;
    }
  }

  // 5.5.1 and 5.5.5: rounds are counted in packets; the bandwidth is the largest delivery rate of
  // two cycles, to which a sample that the application limited belongs only if it is larger.
  void update_congestion_signals(const AckEvent& ack, bool is_limited) {
    is_round_start_ = ack.packet.delivered >= next_round_delivered_;
    if (is_round_start_) {
      start_round();
      ++round_;
      ++rounds_since_probe_;
    }
    if (sample_per_ms_ > 0 && (sample_per_ms_ >= max_bandwidth() || !is_limited)) {
      model_.max_bandwidth = std::max(model_.max_bandwidth, sample_per_ms_);
    }
    if (!latest_.is_round_start) {
      return;
    }
    if (!is_accelerating() && latest_.is_loss) {
      lower_short_term_bounds();
    }
    latest_was_loss_ = latest_.is_loss;
    latest_.is_loss = false;
  }

  // 5.5.10.3: once a round with losses, down to what was delivered, but to no less than 0.7.
  void lower_short_term_bounds() {
    if (model_.short_term_bandwidth == kNever) {
      model_.short_term_bandwidth = max_bandwidth();
    }
    if (model_.short_term_in_flight == kNever) {
      model_.short_term_in_flight = cwnd_;
    }
    model_.short_term_bandwidth = std::max(latest_.bandwidth, beta_ * model_.short_term_bandwidth);
    model_.short_term_in_flight = std::max(latest_.in_flight, beta_ * model_.short_term_in_flight);
  }

  void reset_short_term_bounds() {
    model_.short_term_bandwidth = model_.short_term_in_flight = kNever;
  }

  // 5.5.9: what bursts of ACKs bring beyond the bandwidth.
  void update_aggregation(const AckEvent& ack) {
    double expected = model_.bandwidth * (ack.now_ms - extra_acked_start_ms_);
    if (extra_acked_delivered_ <= expected) {
      extra_acked_delivered_ = 0;
      extra_acked_start_ms_ = ack.now_ms;
      expected = 0;
    }
    extra_acked_delivered_ += static_cast<double>(ack.newly_delivered);
    const double extra = std::min(extra_acked_delivered_ - expected, cwnd_);
    extra_acked_packets_ =
        extra_acked_.update(full_pipe_.was_ever ? kExtraAckedRounds : 1, round_, extra);
  }

  // 5.3.1.2: the pipe is full when three rounds in turn brought less than a quarter more.
  void check_full_pipe(bool is_limited) {
    if (full_pipe_.is_now || !is_round_start_ || is_limited || sample_per_ms_ == 0) {
      return;
    }
    if (sample_per_ms_ >= full_pipe_.bandwidth * kFullPipeGrowth) {
      reset_full_pipe(sample_per_ms_);
      return;
    }
    full_pipe_.is_now = ++full_pipe_.rounds >= kFullPipeRounds;
    full_pipe_.was_ever = full_pipe_.was_ever || full_pipe_.is_now;
  }

  void reset_full_pipe(double bandwidth) {
    full_pipe_ = {.bandwidth = bandwidth, .was_ever = full_pipe_.was_ever};
  }

  // 5.3.1.3: or when a round of recovery lost more than 2 % in six places.
  void check_startup_done(const AckEvent& ack) {
    if (latest_.is_round_start) {
      if (mode_ == Mode::kStartup && ack.in_recovery && latest_was_loss_ &&
          latest_.lost_ranges >= kStartupLossRanges && is_inflight_too_high(ack)) {
        full_pipe_.was_ever = true;
        model_.long_term_in_flight = std::max(path_packets(1), latest_.in_flight);
      }
      latest_.lost_ranges = 0;
    }
    if (mode_ == Mode::kStartup && full_pipe_.was_ever) {
      enter(Mode::kDrain);
      drain_start_round_ = round_;
    }
  }

  // 5.3.2: what startup has queued goes, for three rounds at most.
  void check_drain_done(const AckEvent& ack) {
    if (mode_ == Mode::kDrain &&
        (static_cast<double>(ack.in_flight) <= inflight(1) || round_ > drain_start_round_ + 3)) {
      start_down();
    }
  }

  // 5.3.3.9 and 5.3.3.8: the next probe is in 2 to 3 s, or when Reno's window would have grown to
  // what is in flight.
  void start_down() {
    latest_.is_loss = false;
    latest_.bandwidth = latest_.in_flight = 0;
    probe_.acked_per_increase = kNever;
    rounds_since_probe_ = static_cast<double>(random_bits(key_, draws_++) & 1);
    probe_.wait_ms = 2000 + 1000 * unit_interval(random_bits(key_, draws_++));
    probe_.cycle_start_ms = now_ms_;
    probe_.acks = Acks::kProbeStopping;
    start_round();
    enter(Mode::kDown);
  }

  void start_refill() {
    reset_short_term_bounds();
    probe_.rounds = 0;
    probe_.acked = 0;
    probe_.was_precautionary = false;
    probe_.acks = Acks::kRefilling;
    start_round();
    enter(Mode::kRefill);
  }

  void start_up() {
    probe_.acks = Acks::kProbeStarting;
    start_round();
    reset_full_pipe(sample_per_ms_);
    enter(Mode::kUp);
    raise_slope();
  }

  void update_cycle(const AckEvent& ack, bool is_limited) {
    if (!full_pipe_.was_ever || adapt_long_term_bound(ack, is_limited)) {
      return;
    }
    switch (mode_) {
      case Mode::kDown:
        if (is_time_to_probe()) {
          start_refill();
        } else if (is_time_to_cruise(ack)) {
          enter(Mode::kCruise);
        }
        return;
      case Mode::kCruise:
        if (is_time_to_probe()) {
          start_refill();
        }
        return;
      case Mode::kRefill:
        // 5.3.3.3: one round at the bandwidth, so that what follows is not a queue's doing.
        if (is_round_start_) {
          probe_.is_sample = true;
          start_up();
        }
        return;
      case Mode::kUp:
        if (is_time_to_go_down(ack)) {
          probe_.was_too_high = false;
          start_down();
        }
        return;
      case Mode::kStartup:
      case Mode::kDrain:
      case Mode::kProbeRtt:
        return;
    }
  }

  bool is_time_to_probe() const {
    constexpr double kRenoRounds = 63;
    return now_ms_ > probe_.cycle_start_ms + probe_.wait_ms ||
           rounds_since_probe_ >= std::min(target_in_flight(), kRenoRounds);
  }

  // 5.3.3.1: when there is headroom and no queue.
  bool is_time_to_cruise(const AckEvent& ack) const {
    const auto in_flight = static_cast<double>(ack.in_flight);
    return in_flight <= in_flight_with_headroom() &&
           in_flight <= with_budget(model_.min_rtt_ms * max_bandwidth());
  }

  // 5.3.3.7: at once where the last probe lost too much at this bound; or when the pipe is full,
  // which cannot be told while the bound limits the window.
  bool is_time_to_go_down(const AckEvent& ack) {
    if (probe_.was_too_high && static_cast<double>(ack.in_flight) >= model_.long_term_in_flight) {
      probe_.was_precautionary = true;
      return true;
    }
    if (ack.is_cwnd_limited && cwnd_ >= model_.long_term_in_flight) {
      reset_full_pipe(sample_per_ms_);
      return false;
    }
    return full_pipe_.is_now;
  }

  bool is_inflight_too_high(const AckEvent& ack) const {
    return static_cast<double>(ack.total_lost - ack.packet.lost) >
           static_cast<double>(ack.packet.tx_in_flight) * loss_threshold_;
  }

  // 5.5.10.2: once a probe, more than 2 % of loss bounds what may be in flight for long.
  void handle_inflight_too_high(double in_flight, bool is_limited) {
    probe_.was_too_high = true;
    probe_.is_sample = false;
    if (!is_limited) {
      model_.long_term_in_flight = std::max(in_flight, target_in_flight() * beta_);
    }
    if (mode_ == Mode::kUp) {
      start_down();
    }
  }

  // 5.3.3.9: one packet more in the first round, two in the next, four ...
  void raise_slope() {
    constexpr int kMostDoublings = 30;
    const auto growth = static_cast<double>(std::uint64_t{1} << probe_.rounds);
    probe_.rounds = std::min(probe_.rounds + 1, kMostDoublings);
    probe_.acked_per_increase = std::max(cwnd_ / growth, 1.0);
  }

  void raise_long_term_bound(const AckEvent& ack) {
    if (!ack.is_cwnd_limited || cwnd_ < model_.long_term_in_flight) {
      return;
    }
    probe_.acked += static_cast<double>(ack.newly_delivered);
    if (probe_.acked >= probe_.acked_per_increase) {
      const double increases = std::floor(probe_.acked / probe_.acked_per_increase);
      probe_.acked -= increases * probe_.acked_per_increase;
      model_.long_term_in_flight += increases;
    }
    if (is_round_start_) {
      raise_slope();
    }
  }

  // True if it decided on the next phase.
  bool adapt_long_term_bound(const AckEvent& ack, bool is_limited) {
    if (probe_.acks == Acks::kProbeStarting && is_round_start_) {
      probe_.acks = Acks::kProbeFeedback;
    }
    if (probe_.acks == Acks::kProbeStopping && is_round_start_) {
      probe_.is_sample = false;
      probe_.acks = Acks::kNothing;
      // 5.5.6: a cycle's samples are all in one round after its probe.
      if (is_probing_bandwidth_mode() && !is_limited && model_.max_bandwidth > 0) {
        model_.last_max_bandwidth = model_.max_bandwidth;
        model_.max_bandwidth = 0;
      }
      // 5.3.3.6: a careful probe that lost little is followed by a whole one.
      if (is_probing_bandwidth_mode() && probe_.was_precautionary && !probe_.was_too_high) {
        start_refill();
        return true;
      }
    }
    if (!is_inflight_too_high(ack) && model_.long_term_in_flight != kNever) {
      model_.long_term_in_flight =
          std::max(model_.long_term_in_flight, static_cast<double>(ack.packet.tx_in_flight));
      if (mode_ == Mode::kUp) {
        raise_long_term_bound(ack);
      }
    }
    return false;
  }

  // 5.3.4.3: a minimum of 5 s says when to look for another; one of 10 s is the path's.
  void update_min_rtt(const AckEvent& ack) {
    is_probe_rtt_due_ = ack.now_ms > model_.probe_rtt_stamp_ms + probe_rtt_interval_ms_;
    if (ack.rtt_ms < model_.probe_rtt_min_ms || is_probe_rtt_due_) {
      model_.probe_rtt_min_ms = ack.rtt_ms;
      model_.probe_rtt_stamp_ms = ack.now_ms;
    }
    if (model_.probe_rtt_min_ms < model_.min_rtt_ms ||
        ack.now_ms > model_.min_rtt_stamp_ms + min_rtt_window_ms_) {
      model_.min_rtt_ms = model_.probe_rtt_min_ms;
      model_.min_rtt_stamp_ms = model_.probe_rtt_stamp_ms;
    }
  }

  // 5.3.4.1: half of what the path holds, for 200 ms and a round.
  void check_probe_rtt(const AckEvent& ack) {
    if (mode_ != Mode::kProbeRtt && is_probe_rtt_due_ && !is_restarting_from_idle_) {
      save_window();
      enter(Mode::kProbeRtt);
      probe_rtt_done_ms_ = kNever;
      probe_.acks = Acks::kProbeStopping;
      limited_from_ = ack.total_delivered;
      start_round();
    }
    if (mode_ == Mode::kProbeRtt) {
      // 4.1.2.4: packets sent now say nothing about the bandwidth.
      limited_until_ = ack.total_delivered + ack.in_flight;
      if (probe_rtt_done_ms_ == kNever &&
          static_cast<double>(ack.in_flight) <= probe_rtt_window()) {
        probe_rtt_done_ms_ = ack.now_ms + probe_rtt_ms_;
        is_probe_rtt_round_done_ = false;
        start_round();
      } else if (probe_rtt_done_ms_ != kNever) {
        is_probe_rtt_round_done_ = is_probe_rtt_round_done_ || is_round_start_;
        if (is_probe_rtt_round_done_) {
          check_probe_rtt_done();
        }
      }
    }
    is_restarting_from_idle_ = is_restarting_from_idle_ && ack.newly_delivered == 0;
  }

  double probe_rtt_window() const {
    return std::max(path_packets(probe_rtt_window_gain_), kMinimumWindow);
  }

  void check_probe_rtt_done() {
    if (!(now_ms_ > probe_rtt_done_ms_)) {
      return;
    }
    model_.probe_rtt_stamp_ms = now_ms_;
    restore_window();
    // 5.3.4.4: the short term is over, and the next probe a whole wait away.
    reset_short_term_bounds();
    if (full_pipe_.was_ever) {
      start_down();
      enter(Mode::kCruise);
    } else {
      enter(Mode::kStartup);
    }
  }

  // 5.6.2: before the pipe is full the rate only grows.
  void set_rate(double gain) {
    const double rate = kPacingMargin * gain * model_.bandwidth;
    if (rate > 0 && (full_pipe_.was_ever || rate > rate_per_ms_)) {
      rate_per_ms_ = rate;
    }
    pacing_interval_ms_ = 1 / rate_per_ms_;
  }

  void save_window() {
    const bool is_whole = !is_recovering_ && mode_ != Mode::kProbeRtt;
    prior_window_packets_ = is_whole ? cwnd_ : std::max(prior_window_packets_, cwnd_);
  }
  void restore_window() { cwnd_ = std::max(cwnd_, prior_window_packets_); }

  // 5.6.4.6: the window moves to its bound by what is delivered; before the pipe is full it only
  // grows. 5.6.4.7: and within what losses have shown.
  void set_window(const AckEvent& ack) {
    if (is_recovering_ && !ack.in_recovery) {
      is_recovering_ = false;
      restore_window();
    }
    const auto delivered = static_cast<double>(ack.newly_delivered);
    const double most = with_budget(path_packets(window_gain_) + extra_acked_packets_);
    if (full_pipe_.was_ever) {
      cwnd_ = std::min(cwnd_ + delivered, most);
    } else if (cwnd_ < most || static_cast<double>(ack.total_delivered) < initial_window_packets_) {
      cwnd_ += delivered;
    }
    cwnd_ = std::max(cwnd_, kMinimumWindow);
    double bound = kNever;
    if (mode_ == Mode::kProbeRtt) {
      cwnd_ = std::min(cwnd_, probe_rtt_window());
      bound = in_flight_with_headroom();
    } else if (mode_ == Mode::kCruise) {
      bound = in_flight_with_headroom();
    } else if (is_probing_bandwidth_mode()) {
      bound = model_.long_term_in_flight;
    }
    bound = std::max(std::min(bound, model_.short_term_in_flight), kMinimumWindow);
    cwnd_ = std::min(cwnd_, bound);
  }

  const std::uint64_t key_;
  const double initial_window_packets_;
  const double drain_pacing_gain_;
  const double loss_threshold_;
  const double beta_;
  const double headroom_;
  const double min_rtt_window_ms_;
  const double probe_rtt_interval_ms_;
  const double probe_rtt_ms_;
  const double probe_rtt_window_gain_;
  std::uint64_t draws_ = 0;

  Mode mode_ = Mode::kStartup;
  double pacing_gain_ = 1;
  double window_gain_ = kWindowGain;
  double rate_per_ms_ = 1;
  double sample_per_ms_ = 0;  // of the delivery rate, by this ACK; 0: none
  Model model_;
  Latest latest_;
  bool latest_was_loss_ = false;  // in the round that is over
  FullPipe full_pipe_;
  Probe probe_;
  WindowedMax extra_acked_;  // over rounds
  double extra_acked_packets_ = 0;
  double extra_acked_delivered_ = 0;
  double extra_acked_start_ms_ = 0;
  double now_ms_ = 0;
  double last_ack_ms_ = 0;
  // Of all connections, as in DeliverySnapshot.
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
  double round_ = 0;
  double drain_start_round_ = 0;
  double rounds_since_probe_ = 0;
  std::uint64_t next_round_delivered_ = 0;
  bool is_round_start_ = false;
  double probe_rtt_done_ms_ = kNever;
  bool is_probe_rtt_round_done_ = false;
  bool is_probe_rtt_due_ = false;
  // Packets sent when between so many were delivered were sent in ProbeRTT.
  std::uint64_t limited_from_ = 0;
  std::uint64_t limited_until_ = 0;
  double prior_window_packets_ = 0;
  bool is_recovering_ = false;
  bool is_restarting_from_idle_ = false;
  bool has_seen_rtt_ = false;
};

}  // namespace

Variant bbr_v3_variant() {
  return {
      .name = "v3",
      .source = "draft-ietf-ccwg-bbr-06 (July 2026)",
      .parameters =
          {
              {"initial_window_packets", "window at the start", 10, 1, 1000},
              {"drain_pacing_gain", "rate over the bandwidth after startup (0.35 up to 2024)", 0.5,
               0.05, 1},
              {"loss_threshold", "share of lost packets in a round that bounds what is in flight",
               0.02, 0, 1},
              {"beta", "least share that a round with losses leaves", 0.7, 0.1, 1},
              {"headroom", "share of the bound that is left to others while cruising", 0.15, 0,
               0.9},
              {"min_rtt_window_ms", "age at which the minimum RTT is forgotten", 10000, 1, 1e6},
              {"probe_rtt_interval_ms", "age at which a lower RTT is looked for", 5000, 1, 1e6},
              {"probe_rtt_ms", "how long that takes, beside a round", 200, 0, 1e5},
              {"probe_rtt_window_gain", "window over what the path holds meanwhile", 0.5, 0, 1},
          },
  };
}

std::unique_ptr<CongestionController> make_bbr_v3(const Chosen& chosen, std::uint64_t key) {
  return std::make_unique<BbrV3>(chosen, key);
}

}  // namespace remy
