#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "core/windowed_filter.h"
#include "protocols/bbr.h"
#include "protocols/connection_draws.h"

namespace remy {

namespace {

// BBR version 3 (draft-ietf-ccwg-bbr-06, whose sections are cited): the model of version 1, with
// bounds that are learned from losses, long-term (inflight_longterm) and short-term (until the next
// probe). Undoing reactions to spurious losses (5.5.11) is missing, as no transport here detects
// them.
class BbrV3 final : public CongestionController {
 public:
  BbrV3(const ParameterValues& values, std::uint64_t key)
      : initial_cwnd_(values["initial_window_packets"]),
        drain_pacing_gain_(values["drain_pacing_gain"]),
        loss_thresh_(values["loss_threshold"]),
        beta_(values["beta"]),
        headroom_(values["headroom"]),
        min_rtt_filter_ms_(values["min_rtt_window_ms"]),
        probe_rtt_interval_ms_(values["probe_rtt_interval_ms"]),
        probe_rtt_duration_ms_(values["probe_rtt_ms"]),
        probe_rtt_cwnd_gain_(values["probe_rtt_window_gain"]),
        draws_(key) {}

  // 5.2.1: BBROnInit.
  void start(double now_ms) override {
    draws_.start_connection();
    delivered_before_ = delivered_;
    now_ms_ = last_ack_ms_ = now_ms;
    delivery_rate_sample_per_ms_ = 0;
    had_loss_in_last_round_ = false;
    drain_start_round_ = 0;
    model_ = {};
    model_.min_rtt_stamp_ms = model_.probe_rtt_min_stamp_ms = now_ms;
    latest_ = {};
    full_bw_ = {};
    bw_probe_ = {};
    extra_acked_filter_.clear();
    extra_acked_packets_ = extra_acked_delivered_ = 0;
    extra_acked_interval_start_ms_ = now_ms;
    round_count_ = rounds_since_bw_probe_ = 0;
    next_round_delivered_ = 0;
    round_start_ = false;
    probe_rtt_done_stamp_ms_ = kNever;
    probe_rtt_round_done_ = probe_rtt_expired_ = false;
    probe_rtt_from_ = probe_rtt_until_ = 0;
    prior_cwnd_ = 0;
    in_recovery_ = idle_restart_ = has_rtt_sample_ = false;
    enter(State::kStartup);
    cwnd_ = initial_cwnd_;
    // 5.6.2: BBRInitPacingRate. The nominal RTT is 1 ms until the first sample.
    pacing_rate_per_ms_ = kStartupPacingGain * initial_cwnd_ / kNominalRttMs;
    pacing_interval_ms_ = 1 / pacing_rate_per_ms_;
  }

  // 5.2.3: BBRUpdateOnACK.
  void on_ack(const AckEvent& ack) override {
    now_ms_ = ack.now_ms;
    delivered_ = ack.total_delivered;
    lost_ = ack.total_lost;
    if (!has_rtt_sample_) {
      has_rtt_sample_ = true;
      pacing_rate_per_ms_ = kStartupPacingGain * cwnd_ / ack.rtt_ms;
    }
    // 4.1.2.3: an interval shorter than min_rtt means that the ACK is for an earlier transmission;
    // the sample is discarded.
    const bool is_valid_sample =
        ack.delivery_interval_ms >= std::min(model_.min_rtt_ms, ack.rtt_ms);
    delivery_rate_sample_per_ms_ = is_valid_sample ? ack.delivery_rate_per_ms : 0;
    const bool is_app_limited =
        ack.packet.is_app_limited ||
        (ack.packet.delivered >= probe_rtt_from_ && ack.packet.delivered < probe_rtt_until_);
    update_latest_delivery_signals(ack);
    update_congestion_signals(ack, is_app_limited);
    update_ack_aggregation(ack);
    check_full_bw_reached(is_app_limited);
    check_startup_done(ack);
    check_drain_done(ack);
    update_probe_bw_cycle_phase(ack, is_app_limited);
    update_min_rtt(ack);
    check_probe_rtt(ack);
    if (latest_.loss_round_start) {
      latest_.bw = delivery_rate_sample_per_ms_;
      latest_.in_flight = delivered_since_sent(ack);
    }
    model_.bw = std::min(max_bw(), model_.bw_shortterm);
    set_pacing_rate_with_gain(pacing_gain_);
    set_cwnd(ack);
    last_ack_ms_ = ack.now_ms;
  }

  // 5.2.4: BBRUpdateOnLoss; 5.5.10.2: BBRHandleLostPacket.
  void on_loss(const LossEvent& loss) override {
    now_ms_ = loss.now_ms;
    ++lost_;
    if (!latest_.loss_in_round) {
      latest_.loss_round_delivered = delivered_;
    }
    latest_.loss_in_round = true;
    if (loss.transmission_number != latest_.next_lost_transmission) {
      ++latest_.loss_ranges;
    }
    latest_.next_lost_transmission = loss.transmission_number + 1;
    if (loss.starts_recovery) {
      save_cwnd();
      in_recovery_ = true;
    }
    if (!bw_probe_.has_samples) {
      return;
    }
    const auto in_flight = static_cast<double>(loss.packet.tx_in_flight);
    const auto lost = static_cast<double>(lost_ - loss.packet.lost);
    if (lost > in_flight * loss_thresh_) {
      // BBRInflightAtLoss: the packets in flight at which the loss rate crossed LossThresh.
      const double prior_in_flight = in_flight - 1;
      const double lost_prefix = (loss_thresh_ * prior_in_flight - (lost - 1)) / (1 - loss_thresh_);
      handle_inflight_too_high(prior_in_flight + lost_prefix, loss.packet.is_app_limited);
    }
  }

  // 5.6.4.4: BBROnEnterRTO. cwnd is one packet and then grows by the delivered packets.
  void on_timeout(const TimeoutEvent& timeout) override {
    now_ms_ = timeout.now_ms;
    save_cwnd();
    in_recovery_ = true;
    latest_.loss_in_round = true;
    lost_ += timeout.newly_lost;
    cwnd_ = 1;
  }

  // 5.4.1: BBRHandleRestartFromIdle.
  void on_sent(const SendEvent& sent) override {
    if (sent.in_flight == 1 && !in_recovery_ && has_rtt_sample_ &&
        sent.now_ms > last_ack_ms_ + pacing_interval_ms_) {
      idle_restart_ = true;
      extra_acked_interval_start_ms_ = now_ms_ = sent.now_ms;
      // As in Linux. The draft keeps it, and so would count packets of all earlier intervals.
      extra_acked_delivered_ = 0;
      if (is_in_probe_bw()) {
        set_pacing_rate_with_gain(1);
      } else if (state_ == State::kProbeRtt) {
        check_probe_rtt_done();
      }
    }
  }

 private:
  enum class State {
    kStartup,
    kDrain,
    kProbeBwDown,
    kProbeBwCruise,
    kProbeBwRefill,
    kProbeBwUp,
    kProbeRtt
  };
  // BBR.ack_phase: how the arriving ACKs relate to the last bandwidth probe.
  enum class AckPhase { kInit, kRefilling, kProbeStarting, kProbeFeedback, kProbeStopping };

  static constexpr double kStartupPacingGain = 2.77;
  static constexpr double kDefaultCwndGain = 2;
  static constexpr double kProbeBwUpCwndGain = 2.25;
  static constexpr double kPacingMargin = 0.99;
  static constexpr double kMinPipeCwnd = 4;
  static constexpr double kNominalRttMs = 1;
  static constexpr double kFullBwGrowth = 1.25;
  static constexpr int kFullBwRounds = 3;
  static constexpr int kStartupFullLossCnt = 6;
  static constexpr double kExtraAckedFilterLen = 10;
  static constexpr double kPacketBytes = 1500;

  struct Model {
    double bw = 0;  // BBR.bw in packets per ms
    // BBR.MaxBwFilter: the maximum of the last cycle, and of this one.
    double last_max_bw = 0;
    double max_bw = 0;
    double min_rtt_ms = kNever;
    double min_rtt_stamp_ms = 0;
    double probe_rtt_min_delay_ms = kNever;
    double probe_rtt_min_stamp_ms = 0;
    double inflight_longterm = kNever;
    double inflight_shortterm = kNever;
    double bw_shortterm = kNever;
  };
  // Signals of the latest round trip (5.5.10.3).
  struct LatestSignals {
    double bw = 0;
    double in_flight = 0;
    bool loss_in_round = false;
    bool loss_round_start = false;
    std::uint64_t loss_round_delivered = 0;
    int loss_ranges = 0;
    std::uint64_t next_lost_transmission = std::numeric_limits<std::uint64_t>::max();
  };
  // BBR.full_bw, full_bw_count, full_bw_now and full_bw_reached (5.3.1.2).
  struct FullBw {
    double bw = 0;
    int count = 0;
    bool now = false;
    bool reached = false;
  };
  // The last bandwidth probe and the next one (5.3.3). Increases are packets, rounds are round
  // trips.
  struct BwProbe {
    AckPhase ack_phase = AckPhase::kInit;
    bool has_samples = false;
    bool prev_probe_too_high = false;
    bool ended_as_precaution = false;
    double cycle_stamp_ms = 0;
    double wait_ms = 0;
    double up_cnt = kNever;
    double up_acks = 0;
    int up_rounds = 0;
  };

  static double delivered_since_sent(const AckEvent& ack) {
    return static_cast<double>(ack.total_delivered - ack.packet.delivered);
  }

  bool is_in_probe_bw() const {
    return state_ == State::kProbeBwDown || state_ == State::kProbeBwCruise ||
           state_ == State::kProbeBwRefill || state_ == State::kProbeBwUp;
  }
  // BBRIsProbingBW: losses do not reduce the short-term bounds in these states.
  bool is_probing_bw() const {
    return state_ == State::kStartup || state_ == State::kProbeBwRefill ||
           state_ == State::kProbeBwUp;
  }

  // 5.6.1: the gains of each state.
  void enter(State state) {
    state_ = state;
    cwnd_gain_ = kDefaultCwndGain;
    pacing_gain_ = 1;
    switch (state) {
      case State::kStartup:
        pacing_gain_ = kStartupPacingGain;
        break;
      case State::kDrain:
        pacing_gain_ = drain_pacing_gain_;
        break;
      case State::kProbeBwDown:
        pacing_gain_ = 0.9;
        break;
      case State::kProbeBwUp:
        pacing_gain_ = 1.25;
        cwnd_gain_ = kProbeBwUpCwndGain;
        break;
      case State::kProbeRtt:
        cwnd_gain_ = probe_rtt_cwnd_gain_;
        break;
      case State::kProbeBwCruise:
      case State::kProbeBwRefill:
        break;
    }
  }

  void start_round() { next_round_delivered_ = delivered_; }

  double max_bw() const { return std::max(model_.last_max_bw, model_.max_bw); }

  // 5.6.4.2: BBRBDPMultiple.
  double bdp_multiple(double gain) const {
    return model_.min_rtt_ms == kNever ? initial_cwnd_ : gain * model_.bw * model_.min_rtt_ms;
  }

  // 5.6.4.2: BBRQuantizationBudget. Raises an inflight value to at least offload_budget (5.5.8.1:
  // three send quanta of 1 ms each; 5.6.3: between two packets and 64 kB) and adds two packets in
  // ProbeBW_UP.
  double quantization_budget(double packets) const {
    const double quantum = std::max(std::min(pacing_rate_per_ms_, 65536 / kPacketBytes), 2.0);
    return std::max({packets, 3 * quantum, kMinPipeCwnd}) + (state_ == State::kProbeBwUp ? 2 : 0);
  }

  double inflight(double gain) const { return quantization_budget(bdp_multiple(gain)); }

  double target_inflight() const { return std::min(bdp_multiple(1), cwnd_); }

  double inflight_with_headroom() const {
    if (model_.inflight_longterm == kNever) {
      return kNever;
    }
    const double headroom = std::max(1.0, headroom_ * model_.inflight_longterm);
    return std::max(model_.inflight_longterm - headroom, kMinPipeCwnd);
  }

  // 5.5.10.3: BBRUpdateLatestDeliverySignals: the maximum delivery rate and delivered volume of a
  // round trip. The first loss starts a new round trip for these signals.
  void update_latest_delivery_signals(const AckEvent& ack) {
    latest_.loss_round_start = false;
    latest_.bw = std::max(latest_.bw, delivery_rate_sample_per_ms_);
    latest_.in_flight = std::max(latest_.in_flight, delivered_since_sent(ack));
    if (ack.packet.delivered >= latest_.loss_round_delivered) {
      latest_.loss_round_delivered = ack.total_delivered;
      latest_.loss_round_start = true;
    }
  }

  // 5.5.1: BBRUpdateRound; 5.5.5: BBRUpdateMaxBw, which ignores application-limited samples unless
  // they are larger; 5.5.10.3: BBRUpdateCongestionSignals.
  void update_congestion_signals(const AckEvent& ack, bool is_app_limited) {
    round_start_ = ack.packet.delivered >= next_round_delivered_;
    if (round_start_) {
      start_round();
      ++round_count_;
      ++rounds_since_bw_probe_;
    }
    if (delivery_rate_sample_per_ms_ > 0 &&
        (delivery_rate_sample_per_ms_ >= max_bw() || !is_app_limited)) {
      model_.max_bw = std::max(model_.max_bw, delivery_rate_sample_per_ms_);
    }
    if (!latest_.loss_round_start) {
      return;
    }
    if (!is_probing_bw() && latest_.loss_in_round) {
      adapt_lower_bounds_from_congestion();
    }
    had_loss_in_last_round_ = latest_.loss_in_round;
    latest_.loss_in_round = false;
  }

  // 5.5.10.3: BBRAdaptLowerBoundsFromCongestion. After a round trip with losses the bounds fall to
  // what was delivered, but at most by the factor Beta.
  void adapt_lower_bounds_from_congestion() {
    if (model_.bw_shortterm == kNever) {
      model_.bw_shortterm = max_bw();
    }
    if (model_.inflight_shortterm == kNever) {
      model_.inflight_shortterm = cwnd_;
    }
    model_.bw_shortterm = std::max(latest_.bw, beta_ * model_.bw_shortterm);
    model_.inflight_shortterm = std::max(latest_.in_flight, beta_ * model_.inflight_shortterm);
  }

  void reset_short_term_model() { model_.bw_shortterm = model_.inflight_shortterm = kNever; }

  // 5.5.9: BBRUpdateACKAggregation: packets acknowledged in excess of the bandwidth.
  void update_ack_aggregation(const AckEvent& ack) {
    double expected = model_.bw * (ack.now_ms - extra_acked_interval_start_ms_);
    if (extra_acked_delivered_ <= expected) {
      extra_acked_delivered_ = 0;
      extra_acked_interval_start_ms_ = ack.now_ms;
      expected = 0;
    }
    extra_acked_delivered_ += static_cast<double>(ack.newly_delivered);
    const double extra = std::min(extra_acked_delivered_ - expected, cwnd_);
    extra_acked_packets_ = extra_acked_filter_.update(full_bw_.reached ? kExtraAckedFilterLen : 1,
                                                      round_count_, extra);
  }

  // 5.3.1.2: BBRCheckFullBWReached: bandwidth grew by less than 25 % in three successive rounds.
  void check_full_bw_reached(bool is_app_limited) {
    if (full_bw_.now || !round_start_ || is_app_limited || delivery_rate_sample_per_ms_ == 0) {
      return;
    }
    if (delivery_rate_sample_per_ms_ >= full_bw_.bw * kFullBwGrowth) {
      reset_full_bw(delivery_rate_sample_per_ms_);
      return;
    }
    full_bw_.now = ++full_bw_.count >= kFullBwRounds;
    full_bw_.reached = full_bw_.reached || full_bw_.now;
  }

  void reset_full_bw(double bw) { full_bw_ = {.bw = bw, .reached = full_bw_.reached}; }

  // 5.3.1.3: BBRCheckStartupHighLoss: a round trip in recovery lost more than LossThresh, in at
  // least six discontiguous ranges.
  void check_startup_done(const AckEvent& ack) {
    if (latest_.loss_round_start) {
      if (state_ == State::kStartup && ack.in_recovery && had_loss_in_last_round_ &&
          latest_.loss_ranges >= kStartupFullLossCnt && is_inflight_too_high(ack)) {
        full_bw_.reached = true;
        model_.inflight_longterm = std::max(bdp_multiple(1), latest_.in_flight);
      }
      latest_.loss_ranges = 0;
    }
    if (state_ == State::kStartup && full_bw_.reached) {
      enter(State::kDrain);
      drain_start_round_ = round_count_;
    }
  }

  // 5.3.2: BBRCheckDrainDone. Drains the queue of Startup for at most three round trips.
  void check_drain_done(const AckEvent& ack) {
    if (state_ == State::kDrain && (static_cast<double>(ack.in_flight) <= inflight(1) ||
                                    round_count_ > drain_start_round_ + 3)) {
      start_probe_bw_down();
    }
  }

  // 5.3.3.9: BBRStartProbeBW_DOWN; 5.3.3.8: BBRPickProbeWait. The next probe is due after 2 to 3 s,
  // or earlier, when a Reno flow's window would have grown to the target inflight.
  void start_probe_bw_down() {
    latest_.loss_in_round = false;
    latest_.bw = latest_.in_flight = 0;
    bw_probe_.up_cnt = kNever;
    rounds_since_bw_probe_ = static_cast<double>(draws_.next_bits() & 1);
    bw_probe_.wait_ms = 2000 + 1000 * unit_interval(draws_.next_bits());
    bw_probe_.cycle_stamp_ms = now_ms_;
    bw_probe_.ack_phase = AckPhase::kProbeStopping;
    start_round();
    enter(State::kProbeBwDown);
  }

  // 5.3.3.9: BBRStartProbeBW_REFILL.
  void start_probe_bw_refill() {
    reset_short_term_model();
    bw_probe_.up_rounds = 0;
    bw_probe_.up_acks = 0;
    bw_probe_.ended_as_precaution = false;
    bw_probe_.ack_phase = AckPhase::kRefilling;
    start_round();
    enter(State::kProbeBwRefill);
  }

  // 5.3.3.9: BBRStartProbeBW_UP.
  void start_probe_bw_up() {
    bw_probe_.ack_phase = AckPhase::kProbeStarting;
    start_round();
    reset_full_bw(delivery_rate_sample_per_ms_);
    enter(State::kProbeBwUp);
    raise_inflight_longterm_slope();
  }

  // 5.3.3.9: BBRUpdateProbeBWCyclePhase.
  void update_probe_bw_cycle_phase(const AckEvent& ack, bool is_app_limited) {
    if (!full_bw_.reached || adapt_long_term_model(ack, is_app_limited)) {
      return;
    }
    switch (state_) {
      case State::kProbeBwDown:
        if (is_time_to_probe_bw()) {
          start_probe_bw_refill();
        } else if (is_time_to_cruise(ack)) {
          enter(State::kProbeBwCruise);
        }
        return;
      case State::kProbeBwCruise:
        if (is_time_to_probe_bw()) {
          start_probe_bw_refill();
        }
        return;
      case State::kProbeBwRefill:
        // 5.3.3.3: refills the pipe for one round trip at the estimated bandwidth.
        if (round_start_) {
          bw_probe_.has_samples = true;
          start_probe_bw_up();
        }
        return;
      case State::kProbeBwUp:
        if (is_time_to_go_down(ack)) {
          bw_probe_.prev_probe_too_high = false;
          start_probe_bw_down();
        }
        return;
      case State::kStartup:
      case State::kDrain:
      case State::kProbeRtt:
        return;
    }
  }

  // 5.3.3.8: BBRIsTimeToProbeBW.
  bool is_time_to_probe_bw() const {
    constexpr double kRenoRounds = 63;
    return now_ms_ > bw_probe_.cycle_stamp_ms + bw_probe_.wait_ms ||
           rounds_since_bw_probe_ >= std::min(target_inflight(), kRenoRounds);
  }

  // 5.3.3.1: BBRIsTimeToCruise: inflight leaves headroom and there is no queue.
  bool is_time_to_cruise(const AckEvent& ack) const {
    const auto in_flight = static_cast<double>(ack.in_flight);
    return in_flight <= inflight_with_headroom() &&
           in_flight <= quantization_budget(model_.min_rtt_ms * max_bw());
  }

  // 5.3.3.7: BBRIsTimeToGoDown. Ends the probe if the last one caused too much loss at this bound,
  // or if the pipe is full. The latter cannot be determined while inflight_longterm limits cwnd.
  bool is_time_to_go_down(const AckEvent& ack) {
    if (bw_probe_.prev_probe_too_high &&
        static_cast<double>(ack.in_flight) >= model_.inflight_longterm) {
      bw_probe_.ended_as_precaution = true;
      return true;
    }
    if (ack.is_cwnd_limited && cwnd_ >= model_.inflight_longterm) {
      reset_full_bw(delivery_rate_sample_per_ms_);
      return false;
    }
    return full_bw_.now;
  }

  // 5.5.10.2: IsInflightTooHigh.
  bool is_inflight_too_high(const AckEvent& ack) const {
    return static_cast<double>(ack.total_lost - ack.packet.lost) >
           static_cast<double>(ack.packet.tx_in_flight) * loss_thresh_;
  }

  // 5.5.10.2: BBRHandleInflightTooHigh. Loss above LossThresh reduces inflight_longterm, at most
  // once per probe.
  void handle_inflight_too_high(double in_flight, bool is_app_limited) {
    bw_probe_.prev_probe_too_high = true;
    bw_probe_.has_samples = false;
    if (!is_app_limited) {
      model_.inflight_longterm = std::max(in_flight, target_inflight() * beta_);
    }
    if (state_ == State::kProbeBwUp) {
      start_probe_bw_down();
    }
  }

  // 5.3.3.9: BBRRaiseInflightLongtermSlope. The increase doubles in each round trip: 1, 2, 4
  // packets.
  void raise_inflight_longterm_slope() {
    constexpr int kMostDoublings = 30;
    const auto growth = static_cast<double>(std::uint64_t{1} << bw_probe_.up_rounds);
    bw_probe_.up_rounds = std::min(bw_probe_.up_rounds + 1, kMostDoublings);
    bw_probe_.up_cnt = std::max(cwnd_ / growth, 1.0);
  }

  // 5.3.3.9: BBRProbeInflightLongtermUpward.
  void probe_inflight_longterm_upward(const AckEvent& ack) {
    if (!ack.is_cwnd_limited || cwnd_ < model_.inflight_longterm) {
      return;
    }
    bw_probe_.up_acks += static_cast<double>(ack.newly_delivered);
    if (bw_probe_.up_acks >= bw_probe_.up_cnt) {
      const double increases = std::floor(bw_probe_.up_acks / bw_probe_.up_cnt);
      bw_probe_.up_acks -= increases * bw_probe_.up_cnt;
      model_.inflight_longterm += increases;
    }
    if (round_start_) {
      raise_inflight_longterm_slope();
    }
  }

  // 5.3.3.9: BBRAdaptLongTermModel. Returns true if it started a phase.
  bool adapt_long_term_model(const AckEvent& ack, bool is_app_limited) {
    if (bw_probe_.ack_phase == AckPhase::kProbeStarting && round_start_) {
      bw_probe_.ack_phase = AckPhase::kProbeFeedback;
    }
    if (bw_probe_.ack_phase == AckPhase::kProbeStopping && round_start_) {
      bw_probe_.has_samples = false;
      bw_probe_.ack_phase = AckPhase::kInit;
      // 5.5.6: BBRAdvanceMaxBwFilter, one round trip after the probe, when its samples are
      // complete.
      if (is_in_probe_bw() && !is_app_limited && model_.max_bw > 0) {
        model_.last_max_bw = model_.max_bw;
        model_.max_bw = 0;
      }
      // 5.3.3.6: a probe that was ended as a precaution without excessive loss is repeated.
      if (is_in_probe_bw() && bw_probe_.ended_as_precaution && !bw_probe_.prev_probe_too_high) {
        start_probe_bw_refill();
        return true;
      }
    }
    if (!is_inflight_too_high(ack) && model_.inflight_longterm != kNever) {
      model_.inflight_longterm =
          std::max(model_.inflight_longterm, static_cast<double>(ack.packet.tx_in_flight));
      if (state_ == State::kProbeBwUp) {
        probe_inflight_longterm_upward(ack);
      }
    }
    return false;
  }

  // 5.3.4.3: BBRUpdateMinRTT. probe_rtt_min_delay is a minimum over 5 s and schedules ProbeRTT;
  // min_rtt is a minimum over 10 s.
  void update_min_rtt(const AckEvent& ack) {
    probe_rtt_expired_ = ack.now_ms > model_.probe_rtt_min_stamp_ms + probe_rtt_interval_ms_;
    if (ack.rtt_ms < model_.probe_rtt_min_delay_ms || probe_rtt_expired_) {
      model_.probe_rtt_min_delay_ms = ack.rtt_ms;
      model_.probe_rtt_min_stamp_ms = ack.now_ms;
    }
    if (model_.probe_rtt_min_delay_ms < model_.min_rtt_ms ||
        ack.now_ms > model_.min_rtt_stamp_ms + min_rtt_filter_ms_) {
      model_.min_rtt_ms = model_.probe_rtt_min_delay_ms;
      model_.min_rtt_stamp_ms = model_.probe_rtt_min_stamp_ms;
    }
  }

  // 5.3.4.1: BBRCheckProbeRTT. Holds inflight at half a BDP for at least 200 ms and a round trip.
  void check_probe_rtt(const AckEvent& ack) {
    if (state_ != State::kProbeRtt && probe_rtt_expired_ && !idle_restart_) {
      save_cwnd();
      enter(State::kProbeRtt);
      probe_rtt_done_stamp_ms_ = kNever;
      bw_probe_.ack_phase = AckPhase::kProbeStopping;
      probe_rtt_from_ = ack.total_delivered;
      start_round();
    }
    if (state_ == State::kProbeRtt) {
      // 4.1.2.4: packets that are sent in ProbeRTT are treated as application-limited.
      probe_rtt_until_ = ack.total_delivered + ack.in_flight;
      if (probe_rtt_done_stamp_ms_ == kNever &&
          static_cast<double>(ack.in_flight) <= probe_rtt_cwnd()) {
        probe_rtt_done_stamp_ms_ = ack.now_ms + probe_rtt_duration_ms_;
        probe_rtt_round_done_ = false;
        start_round();
      } else if (probe_rtt_done_stamp_ms_ != kNever) {
        probe_rtt_round_done_ = probe_rtt_round_done_ || round_start_;
        if (probe_rtt_round_done_) {
          check_probe_rtt_done();
        }
      }
    }
    idle_restart_ = idle_restart_ && ack.newly_delivered == 0;
  }

  double probe_rtt_cwnd() const {
    return std::max(bdp_multiple(probe_rtt_cwnd_gain_), kMinPipeCwnd);
  }

  void check_probe_rtt_done() {
    if (!(now_ms_ > probe_rtt_done_stamp_ms_)) {
      return;
    }
    model_.probe_rtt_min_stamp_ms = now_ms_;
    restore_cwnd();
    // 5.3.4.4: BBRExitProbeRTT.
    reset_short_term_model();
    if (full_bw_.reached) {
      start_probe_bw_down();
      enter(State::kProbeBwCruise);
    } else {
      enter(State::kStartup);
    }
  }

  // 5.6.2: BBRSetPacingRateWithGain. The rate does not fall before the pipe is full.
  void set_pacing_rate_with_gain(double gain) {
    const double rate = kPacingMargin * gain * model_.bw;
    if (rate > 0 && (full_bw_.reached || rate > pacing_rate_per_ms_)) {
      pacing_rate_per_ms_ = rate;
    }
    pacing_interval_ms_ = 1 / pacing_rate_per_ms_;
  }

  // 5.6.4.4: BBRSaveCwnd and BBRRestoreCwnd.
  void save_cwnd() {
    const bool is_cwnd_unreduced = !in_recovery_ && state_ != State::kProbeRtt;
    prior_cwnd_ = is_cwnd_unreduced ? cwnd_ : std::max(prior_cwnd_, cwnd_);
  }
  void restore_cwnd() { cwnd_ = std::max(cwnd_, prior_cwnd_); }

  // 5.6.4.6: BBRSetCwnd: cwnd approaches max_inflight by the delivered packets and does not fall
  // before the pipe is full. 5.6.4.7: BBRBoundCwndForModel.
  void set_cwnd(const AckEvent& ack) {
    if (in_recovery_ && !ack.in_recovery) {
      in_recovery_ = false;
      restore_cwnd();
    }
    const auto delivered = static_cast<double>(ack.newly_delivered);
    const double max_inflight =
        quantization_budget(bdp_multiple(cwnd_gain_) + extra_acked_packets_);
    if (full_bw_.reached) {
      cwnd_ = std::min(cwnd_ + delivered, max_inflight);
    } else if (cwnd_ < max_inflight ||
               static_cast<double>(delivered_ - delivered_before_) < initial_cwnd_) {
      cwnd_ += delivered;
    }
    cwnd_ = std::max(cwnd_, kMinPipeCwnd);
    double bound = kNever;
    if (state_ == State::kProbeRtt) {
      cwnd_ = std::min(cwnd_, probe_rtt_cwnd());
      bound = inflight_with_headroom();
    } else if (state_ == State::kProbeBwCruise) {
      bound = inflight_with_headroom();
    } else if (is_in_probe_bw()) {
      bound = model_.inflight_longterm;
    }
    bound = std::max(std::min(bound, model_.inflight_shortterm), kMinPipeCwnd);
    cwnd_ = std::min(cwnd_, bound);
  }

  const double initial_cwnd_;
  const double drain_pacing_gain_;
  const double loss_thresh_;
  const double beta_;
  const double headroom_;
  const double min_rtt_filter_ms_;
  const double probe_rtt_interval_ms_;
  const double probe_rtt_duration_ms_;
  const double probe_rtt_cwnd_gain_;
  ConnectionDraws draws_;

  State state_ = State::kStartup;
  double pacing_gain_ = 1;
  double cwnd_gain_ = kDefaultCwndGain;
  double pacing_rate_per_ms_ = 1;
  double delivery_rate_sample_per_ms_ = 0;  // delivery rate sample of this ACK; 0: none
  Model model_;
  LatestSignals latest_;
  bool had_loss_in_last_round_ = false;  // in the last round trip
  FullBw full_bw_;
  BwProbe bw_probe_;
  WindowedMax extra_acked_filter_;  // windowed over round trips
  double extra_acked_packets_ = 0;
  double extra_acked_delivered_ = 0;
  double extra_acked_interval_start_ms_ = 0;
  double now_ms_ = 0;
  double last_ack_ms_ = 0;
  // C.delivered and C.lost, which connections do not reset.
  std::uint64_t delivered_ = 0;
  std::uint64_t delivered_before_ = 0;  // by earlier connections
  std::uint64_t lost_ = 0;
  double round_count_ = 0;
  double drain_start_round_ = 0;
  double rounds_since_bw_probe_ = 0;
  std::uint64_t next_round_delivered_ = 0;
  bool round_start_ = false;
  double probe_rtt_done_stamp_ms_ = kNever;
  bool probe_rtt_round_done_ = false;
  bool probe_rtt_expired_ = false;
  // Packets whose P.delivered is in [probe_rtt_from_, probe_rtt_until_) were sent in ProbeRTT.
  std::uint64_t probe_rtt_from_ = 0;
  std::uint64_t probe_rtt_until_ = 0;
  double prior_cwnd_ = 0;
  bool in_recovery_ = false;
  bool idle_restart_ = false;
  bool has_rtt_sample_ = false;
};

}  // namespace

Variant bbr_v3_variant() {
  return {
      .name = "v3",
      .source = "draft-ietf-ccwg-bbr-06 (July 2026)",
      .parameters =
          {
              {"initial_window_packets", "window at the start of a connection", 10, 1, 1000},
              {"drain_pacing_gain", "DrainPacingGain (0.35 until 2024)", 0.5, 0.05, 1},
              {"loss_threshold", "LossThresh: loss rate of a round trip that bounds inflight", 0.02,
               0, 1},
              {"beta", "Beta: least factor by which a round trip with losses reduces the bounds",
               0.7, 0.1, 1},
              {"headroom",
               "Headroom: fraction of the bound that is left to other flows in ProbeBW_CRUISE",
               0.15, 0, 0.9},
              {"min_rtt_window_ms", "MinRTTFilterLen: window of the minimum RTT filter", 10000, 1,
               1e6},
              {"probe_rtt_interval_ms",
               "ProbeRTTInterval: age of the minimum RTT that starts ProbeRTT", 5000, 1, 1e6},
              {"probe_rtt_ms", "ProbeRTTDuration: least duration of ProbeRTT, plus a round trip",
               200, 0, 1e5},
              {"probe_rtt_window_gain", "ProbeRTTCwndGain: inflight in BDP during ProbeRTT", 0.5, 0,
               1},
          },
  };
}

std::unique_ptr<CongestionController> make_bbr_v3(const ParameterValues& values,
                                                  std::uint64_t key) {
  return std::make_unique<BbrV3>(values, key);
}

}  // namespace remy
