#include <algorithm>
#include <array>
#include <cmath>

#include "core/windowed_filter.h"
#include "protocols/bbr.h"
#include "protocols/connection_draws.h"

namespace remy {

namespace {

// BBR version 1: paces at the estimated bottleneck bandwidth and limits inflight to a multiple of
// the estimated BDP. It does not use losses as a congestion signal. Where Linux
// (net/ipv4/tcp_bbr.c) and draft-cardwell-iccrg-bbr-congestion-control-00 differ, this follows
// Linux: ACK aggregation, policer detection and the budget for segmentation offload. Sections are
// the draft's.
class BbrV1 final : public CongestionController {
 public:
  BbrV1(const ParameterValues& values, std::uint64_t key)
      : initial_cwnd_(values["initial_window_packets"]),
        bw_filter_rounds_(values["bandwidth_window_rounds"]),
        min_rtt_filter_ms_(values["min_rtt_window_ms"]),
        probe_rtt_duration_ms_(values["probe_rtt_ms"]),
        probe_bw_cwnd_gain_(values["window_gain"]),
        detects_policers_(values["detects_policers"] != 0),
        draws_(key) {}

  void start(double now_ms) override {
    draws_.start_connection();
    delivered_before_ = delivered_;
    max_bw_filter_.clear();
    min_rtt_ms_ = kNever;
    min_rtt_stamp_ms_ = now_ms;
    mode_ = Mode::kStartup;
    pacing_gain_ = kHighGain;
    cwnd_gain_ = kHighGain;
    round_count_ = 0;
    next_round_delivered_ = 0;
    round_start_ = false;
    full_bw_ = 0;
    full_bw_count_ = 0;
    full_bw_reached_ = false;
    cycle_index_ = 0;
    cycle_stamp_ms_ = now_ms;
    probe_rtt_done_stamp_ms_ = kNever;
    probe_rtt_round_done_ = false;
    probe_rtt_from_ = probe_rtt_until_ = 0;
    prior_cwnd_ = 0;
    ca_state_ = CaState::kOpen;
    packet_conservation_ = false;
    losses_since_ack_ = 0;
    idle_restart_ = false;
    ack_aggregation_ = {};
    ack_aggregation_.epoch_ms = now_ms;
    policer_ = {};
    last_ack_ms_ = now_ms;
    has_rtt_sample_ = false;
    cwnd_ = initial_cwnd_;
    // 4.2.1: BBRInitPacingRate. The nominal RTT is 1 ms until the first sample.
    pacing_rate_per_ms_ = kHighGain * initial_cwnd_ / kNominalRttMs;
    pacing_interval_ms_ = 1 / pacing_rate_per_ms_;
  }

  void on_ack(const AckEvent& ack) override {
    delivered_ = ack.total_delivered;
    if (!has_rtt_sample_) {
      // Linux: the first RTT sample replaces the nominal RTT, even if that lowers the rate.
      has_rtt_sample_ = true;
      pacing_rate_per_ms_ = kHighGain * cwnd_ / ack.rtt_ms;
    }
    // Linux: an interval shorter than min_rtt means that the ACK is for an earlier transmission;
    // the sample is discarded.
    const bool is_valid_sample = ack.delivery_rate_per_ms > 0 &&
                                 ack.delivery_interval_ms >= std::min(min_rtt_ms_, ack.rtt_ms);
    const bool is_app_limited = ack.packet.is_app_limited || is_probe_rtt_sample(ack);
    update_max_bw(ack, is_valid_sample, is_app_limited);
    update_ack_aggregation(ack, is_valid_sample);
    update_cycle_phase(ack);
    check_full_bw_reached(is_app_limited);
    check_drain(ack);
    update_min_rtt(ack);
    update_gains();
    set_pacing_rate_with_gain(pacing_gain_);
    set_cwnd(ack);
    losses_since_ack_ = 0;
    last_ack_ms_ = ack.now_ms;
  }

  // 4.2.3.4, and bbr_set_state and bbr_ssthresh in Linux: saves cwnd before recovery reduces it.
  void on_loss(const LossEvent& loss) override {
    ++losses_since_ack_;
    if (loss.starts_recovery && ca_state_ == CaState::kOpen) {
      save_cwnd();
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      save_cwnd();
    }
    ca_state_ = CaState::kLoss;
    packet_conservation_ = false;
    full_bw_ = 0;
    round_start_ = true;
    losses_since_ack_ = 0;
    // 4.2.3.4: cwnd is one packet and then grows by the delivered packets.
    cwnd_ = 1;
  }

  void on_sent(const SendEvent& sent) override {
    // 4.3.4.4: BBRHandleRestartFromIdle. The pipe is empty, so the flow paces at the bandwidth.
    if (sent.in_flight == 1 && ca_state_ == CaState::kOpen && has_rtt_sample_ &&
        sent.now_ms > last_ack_ms_ + pacing_interval_ms_) {
      idle_restart_ = true;
      ack_aggregation_.epoch_ms = sent.now_ms;
      ack_aggregation_.acked = 0;
      if (mode_ == Mode::kProbeBw) {
        set_pacing_rate_with_gain(1);
      } else if (mode_ == Mode::kProbeRtt) {
        check_probe_rtt_done(sent.now_ms);
      }
    }
  }

 private:
  enum class Mode { kStartup, kDrain, kProbeBw, kProbeRtt };
  enum class CaState { kOpen, kRecovery, kLoss };

  // 2 / ln 2 in Linux's fixed point, with 8 fractional bits.
  static constexpr double kHighGain = 739.0 / 256;
  static constexpr double kDrainGain = 88.0 / 256;
  static constexpr std::array<double, 8> kPacingGainCycle = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
  static constexpr double kFullBwGrowth = 1.25;
  static constexpr int kFullBwRounds = 3;
  static constexpr double kMinPipeCwnd = 4;
  static constexpr double kNominalRttMs = 1;
  // Linux paces 1 % below the estimated bandwidth to drain queues.
  static constexpr double kPacingMargin = 0.99;
  static constexpr double kPacketBytes = 1500;

  // ACK aggregation (Linux): the maximum of packets acknowledged in excess of the bandwidth, over 5
  // to 10 round trips.
  struct AckAggregation {
    double epoch_ms = 0;
    double acked = 0;  // in the epoch
    std::array<double, 2> extra_acked{};
    int index = 0;
    int rounds = 0;
  };

  // Policer detection (Linux's lt_bw): two intervals with high loss and the same delivery rate
  // indicate a policer.
  struct Policer {
    bool is_sampling = false;
    bool use_bw = false;
    double bw = 0;
    double start_ms = 0;
    std::uint64_t start_delivered = 0;
    std::uint64_t start_lost = 0;
    int rounds = 0;
  };

  double bw() const { return policer_.use_bw ? policer_.bw : max_bw_filter_.value(); }

  // bbr_tso_segs_goal in Linux: the packets of one TSO burst, about 1 ms at the pacing rate, at
  // least two unless the rate is low.
  double tso_burst_packets() const {
    constexpr double kSlowBytesPerMs = 150;
    constexpr double kLargestBytes = 65535 - 320;
    const double bytes_per_ms = pacing_rate_per_ms_ * kPacketBytes;
    const double least = bytes_per_ms < kSlowBytesPerMs ? 1 : 2;
    const double packets =
        std::floor(std::min(bytes_per_ms * 1000 / 1024, kLargestBytes) / kPacketBytes);
    return std::clamp(packets, least, 127.0);
  }

  // 4.2.3.2: gain x bandwidth x min_rtt, rounded up.
  double bdp_multiple(double bw, double gain) const {
    return min_rtt_ms_ == kNever ? initial_cwnd_ : std::ceil(bw * min_rtt_ms_ * gain);
  }

  // 4.2.3.2: bbr_quantization_budget in Linux. Adds three TSO bursts, rounds up to an even number,
  // and adds two packets while probing for bandwidth.
  double quantization_budget(double packets) const {
    packets += 3 * tso_burst_packets();
    packets = 2 * std::ceil(packets / 2);
    return mode_ == Mode::kProbeBw && cycle_index_ == 0 ? packets + 2 : packets;
  }

  double inflight(double bw, double gain) const {
    return quantization_budget(bdp_multiple(bw, gain));
  }

  // Linux: packets sent in ProbeRTT are treated as application-limited.
  bool is_probe_rtt_sample(const AckEvent& ack) const {
    return ack.packet.delivered >= probe_rtt_from_ && ack.packet.delivered < probe_rtt_until_;
  }

  // 4.1.1.3: BBRUpdateRound; 4.1.1.5: BBRUpdateBtlBw, the maximum delivery rate of 10 round trips,
  // which ignores application-limited samples unless they are larger.
  void update_max_bw(const AckEvent& ack, bool is_valid_sample, bool is_app_limited) {
    round_start_ = false;
    if (!is_valid_sample) {
      return;
    }
    if (ack.packet.delivered >= next_round_delivered_) {
      next_round_delivered_ = ack.total_delivered;
      ++round_count_;
      round_start_ = true;
      packet_conservation_ = false;
    }
    if (detects_policers_) {
      sample_policer(ack, is_app_limited);
    }
    if (!is_app_limited || ack.delivery_rate_per_ms >= max_bw_filter_.value()) {
      max_bw_filter_.update(bw_filter_rounds_, round_count_, ack.delivery_rate_per_ms);
    }
  }

  void start_policer_interval(const AckEvent& ack) {
    policer_.start_ms = ack.now_ms;
    policer_.start_delivered = ack.total_delivered;
    policer_.start_lost = ack.total_lost;
    policer_.rounds = 0;
  }

  void reset_policer(const AckEvent& ack) {
    policer_ = {};
    start_policer_interval(ack);
  }

  // bbr_lt_bw_sampling in Linux. A sampling interval starts and ends with a loss, takes 4 to 16
  // round trips and loses at least 20 % of its packets. If two successive intervals have about the
  // same rate, that rate is used for 48 round trips.
  void sample_policer(const AckEvent& ack, bool is_app_limited) {
    constexpr int kMinRounds = 4;
    constexpr int kMaxUseRounds = 48;
    constexpr double kLossThreshold = 50.0 / 256;
    constexpr double kRelativeDifference = 1.0 / 8;
    constexpr double kDifferenceBytesPerMs = 0.5;
    if (policer_.use_bw) {
      if (mode_ == Mode::kProbeBw && round_start_ && ++policer_.rounds >= kMaxUseRounds) {
        reset_policer(ack);
        enter_probe_bw(ack.now_ms);
      }
      return;
    }
    if (!policer_.is_sampling) {
      if (losses_since_ack_ == 0) {
        return;
      }
      start_policer_interval(ack);
      policer_.is_sampling = true;
    }
    if (is_app_limited) {
      reset_policer(ack);
      return;
    }
    policer_.rounds += round_start_ ? 1 : 0;
    if (policer_.rounds < kMinRounds) {
      return;
    }
    if (policer_.rounds > 4 * kMinRounds) {
      reset_policer(ack);
      return;
    }
    if (losses_since_ack_ == 0) {
      return;
    }
    const auto lost = static_cast<double>(ack.total_lost - policer_.start_lost);
    const auto delivered = static_cast<double>(ack.total_delivered - policer_.start_delivered);
    const double elapsed_ms = ack.now_ms - policer_.start_ms;
    if (delivered == 0 || lost < kLossThreshold * delivered || elapsed_ms < 1) {
      return;
    }
    const double bw = delivered / elapsed_ms;
    const double difference = std::fabs(bw - policer_.bw);
    if (policer_.bw > 0 && (difference <= kRelativeDifference * policer_.bw ||
                            difference * kPacketBytes <= kDifferenceBytesPerMs)) {
      policer_.bw = (bw + policer_.bw) / 2;
      policer_.use_bw = true;
      policer_.rounds = 0;
      pacing_gain_ = 1;
      return;
    }
    policer_.bw = bw;
    start_policer_interval(ack);
  }

  void update_ack_aggregation(const AckEvent& ack, bool is_valid_sample) {
    constexpr int kRounds = 5;
    constexpr double kEpochPackets = 1 << 20;
    if (!is_valid_sample || ack.newly_delivered == 0) {
      return;
    }
    if (round_start_ && ++ack_aggregation_.rounds >= kRounds) {
      ack_aggregation_.rounds = 0;
      ack_aggregation_.index = 1 - ack_aggregation_.index;
      ack_aggregation_.extra_acked[static_cast<std::size_t>(ack_aggregation_.index)] = 0;
    }
    const auto delivered = static_cast<double>(ack.newly_delivered);
    double expected = bw() * (ack.now_ms - ack_aggregation_.epoch_ms);
    if (ack_aggregation_.acked <= expected || ack_aggregation_.acked + delivered >= kEpochPackets) {
      ack_aggregation_.acked = 0;
      ack_aggregation_.epoch_ms = ack.now_ms;
      expected = 0;
    }
    ack_aggregation_.acked += delivered;
    double& extra_acked =
        ack_aggregation_.extra_acked[static_cast<std::size_t>(ack_aggregation_.index)];
    extra_acked = std::max(extra_acked, std::min(ack_aggregation_.acked - expected, cwnd_));
  }

  double extra_acked_packets() const {
    constexpr double kLongestMs = 100;
    return full_bw_reached_ ? std::floor(std::min(std::max(ack_aggregation_.extra_acked[0],
                                                           ack_aggregation_.extra_acked[1]),
                                                  bw() * kLongestMs))
                            : 0;
  }

  // 4.3.4.3: BBRIsNextCyclePhase. A phase lasts min_rtt. With a gain above 1 it continues until
  // inflight reaches its target or a packet is lost; with a gain below 1 it ends early once the
  // queue is drained.
  void update_cycle_phase(const AckEvent& ack) {
    if (mode_ != Mode::kProbeBw) {
      return;
    }
    const bool is_long_enough = ack.now_ms - cycle_stamp_ms_ > min_rtt_ms_;
    const auto prior_in_flight = static_cast<double>(ack.prior_in_flight);
    const double max_bw = max_bw_filter_.value();
    bool is_phase_over = is_long_enough;
    if (pacing_gain_ > 1) {
      is_phase_over = is_long_enough &&
                      (losses_since_ack_ > 0 ||
                       prior_in_flight + tso_burst_packets() >= inflight(max_bw, pacing_gain_));
    } else if (pacing_gain_ < 1) {
      is_phase_over = is_long_enough || prior_in_flight <= inflight(max_bw, 1);
    }
    if (is_phase_over) {
      advance_cycle_phase(ack.now_ms);
    }
  }

  void advance_cycle_phase(double now_ms) {
    cycle_index_ = (cycle_index_ + 1) % kPacingGainCycle.size();
    cycle_stamp_ms_ = now_ms;
  }

  // 4.3.2.2: BBRCheckFullPipe: bandwidth grew by less than 25 % in three successive rounds.
  void check_full_bw_reached(bool is_app_limited) {
    if (full_bw_reached_ || !round_start_ || is_app_limited) {
      return;
    }
    if (max_bw_filter_.value() >= full_bw_ * kFullBwGrowth) {
      full_bw_ = max_bw_filter_.value();
      full_bw_count_ = 0;
      return;
    }
    full_bw_reached_ = ++full_bw_count_ >= kFullBwRounds;
  }

  // 4.3.3: BBRCheckDrain: drains the queue of Startup before ProbeBW.
  void check_drain(const AckEvent& ack) {
    if (mode_ == Mode::kStartup && full_bw_reached_) {
      mode_ = Mode::kDrain;
    }
    if (mode_ == Mode::kDrain &&
        static_cast<double>(ack.in_flight) <= inflight(max_bw_filter_.value(), 1)) {
      enter_probe_bw(ack.now_ms);
    }
  }

  // 4.3.4.2: starts with a random phase other than the one that drains.
  void enter_probe_bw(double now_ms) {
    mode_ = Mode::kProbeBw;
    cycle_index_ = kPacingGainCycle.size() - 1 - draws_.next_bits() % (kPacingGainCycle.size() - 1);
    advance_cycle_phase(now_ms);
  }

  // 4.1.2: BBRUpdateRTprop; 4.3.5: BBRCheckProbeRTT. When min_rtt is 10 s old it is measured again,
  // with four packets in flight for at least 200 ms and a round trip.
  void update_min_rtt(const AckEvent& ack) {
    const bool is_expired = ack.now_ms > min_rtt_stamp_ms_ + min_rtt_filter_ms_;
    if (ack.rtt_ms < min_rtt_ms_ || is_expired) {
      min_rtt_ms_ = ack.rtt_ms;
      min_rtt_stamp_ms_ = ack.now_ms;
    }
    if (is_expired && !idle_restart_ && mode_ != Mode::kProbeRtt) {
      mode_ = Mode::kProbeRtt;
      save_cwnd();
      probe_rtt_done_stamp_ms_ = kNever;
      probe_rtt_from_ = ack.total_delivered;
    }
    if (mode_ == Mode::kProbeRtt) {
      probe_rtt_until_ = ack.total_delivered + ack.in_flight;
      if (probe_rtt_done_stamp_ms_ == kNever &&
          static_cast<double>(ack.in_flight) <= kMinPipeCwnd) {
        probe_rtt_done_stamp_ms_ = ack.now_ms + probe_rtt_duration_ms_;
        probe_rtt_round_done_ = false;
        next_round_delivered_ = ack.total_delivered;
      } else if (probe_rtt_done_stamp_ms_ != kNever) {
        probe_rtt_round_done_ = probe_rtt_round_done_ || round_start_;
        if (probe_rtt_round_done_) {
          check_probe_rtt_done(ack.now_ms);
        }
      }
    }
    idle_restart_ = idle_restart_ && ack.newly_delivered == 0;
  }

  void check_probe_rtt_done(double now_ms) {
    if (!(now_ms > probe_rtt_done_stamp_ms_)) {
      return;
    }
    min_rtt_stamp_ms_ = now_ms;
    cwnd_ = std::max(cwnd_, prior_cwnd_);
    if (full_bw_reached_) {
      enter_probe_bw(now_ms);
    } else {
      mode_ = Mode::kStartup;
    }
  }

  void update_gains() {
    switch (mode_) {
      case Mode::kStartup:
        pacing_gain_ = cwnd_gain_ = kHighGain;
        return;
      case Mode::kDrain:
        // 4.3.3: the inverse of Startup's gain drains in one round trip what Startup has queued.
        pacing_gain_ = kDrainGain;
        cwnd_gain_ = kHighGain;
        return;
      case Mode::kProbeBw:
        pacing_gain_ = policer_.use_bw ? 1 : kPacingGainCycle[cycle_index_];
        cwnd_gain_ = probe_bw_cwnd_gain_;
        return;
      case Mode::kProbeRtt:
        pacing_gain_ = cwnd_gain_ = 1;
        return;
    }
  }

  // 4.2.1: BBRSetPacingRateWithGain. The rate does not fall before the pipe is full.
  void set_pacing_rate_with_gain(double gain) {
    const double rate = kPacingMargin * gain * bw();
    if (rate > 0 && (full_bw_reached_ || rate > pacing_rate_per_ms_)) {
      pacing_rate_per_ms_ = rate;
    }
    pacing_interval_ms_ = 1 / pacing_rate_per_ms_;
  }

  void save_cwnd() {
    const bool is_cwnd_unreduced = ca_state_ == CaState::kOpen && mode_ != Mode::kProbeRtt;
    prior_cwnd_ = is_cwnd_unreduced ? cwnd_ : std::max(prior_cwnd_, cwnd_);
  }

  // 4.2.3.4: packet conservation in the first round trip of recovery; cwnd is restored at its end.
  // Returns true if that determines cwnd.
  bool set_cwnd_in_recovery(const AckEvent& ack) {
    const auto in_flight = static_cast<double>(ack.in_flight);
    const auto delivered = static_cast<double>(ack.newly_delivered);
    if (losses_since_ack_ > 0) {
      cwnd_ = std::max(cwnd_ - static_cast<double>(losses_since_ack_), 1.0);
    }
    if (ack.in_recovery && ca_state_ == CaState::kOpen) {
      ca_state_ = CaState::kRecovery;
      packet_conservation_ = true;
      next_round_delivered_ = ack.total_delivered;
      cwnd_ = in_flight + delivered;
    } else if (!ack.in_recovery && ca_state_ != CaState::kOpen) {
      ca_state_ = CaState::kOpen;
      packet_conservation_ = false;
      cwnd_ = std::max(cwnd_, prior_cwnd_);
    }
    if (packet_conservation_) {
      cwnd_ = std::max(cwnd_, in_flight + delivered);
    }
    return packet_conservation_;
  }

  // 4.2.3: BBRSetCwnd: cwnd approaches its target by the delivered packets and does not fall before
  // the pipe is full.
  void set_cwnd(const AckEvent& ack) {
    const auto delivered = static_cast<double>(ack.newly_delivered);
    if (ack.newly_delivered > 0 && !set_cwnd_in_recovery(ack)) {
      const double target =
          quantization_budget(bdp_multiple(bw(), cwnd_gain_) + extra_acked_packets());
      if (full_bw_reached_) {
        cwnd_ = std::min(cwnd_ + delivered, target);
      } else if (cwnd_ < target ||
                 static_cast<double>(delivered_ - delivered_before_) < initial_cwnd_) {
        cwnd_ += delivered;
      }
      cwnd_ = std::max(cwnd_, kMinPipeCwnd);
    }
    if (mode_ == Mode::kProbeRtt) {
      cwnd_ = std::min(cwnd_, kMinPipeCwnd);
    }
  }

  const double initial_cwnd_;
  const double bw_filter_rounds_;
  const double min_rtt_filter_ms_;
  const double probe_rtt_duration_ms_;
  const double probe_bw_cwnd_gain_;
  const bool detects_policers_;
  ConnectionDraws draws_;
  std::uint64_t delivered_ = 0;         // C.delivered, which connections do not reset
  std::uint64_t delivered_before_ = 0;  // by earlier connections

  WindowedMax max_bw_filter_;  // packets per ms, windowed over round trips
  double min_rtt_ms_ = kNever;
  double min_rtt_stamp_ms_ = 0;
  Mode mode_ = Mode::kStartup;
  double pacing_gain_ = kHighGain;
  double cwnd_gain_ = kHighGain;
  double pacing_rate_per_ms_ = 1;
  bool has_rtt_sample_ = false;
  double round_count_ = 0;
  std::uint64_t next_round_delivered_ = 0;
  bool round_start_ = false;
  double full_bw_ = 0;
  int full_bw_count_ = 0;
  bool full_bw_reached_ = false;
  std::size_t cycle_index_ = 0;
  double cycle_stamp_ms_ = 0;
  double probe_rtt_done_stamp_ms_ = kNever;
  bool probe_rtt_round_done_ = false;
  // Packets whose P.delivered is in [probe_rtt_from_, probe_rtt_until_) were sent in ProbeRTT.
  std::uint64_t probe_rtt_from_ = 0;
  std::uint64_t probe_rtt_until_ = 0;
  double prior_cwnd_ = 0;
  CaState ca_state_ = CaState::kOpen;
  bool packet_conservation_ = false;
  std::uint64_t losses_since_ack_ = 0;  // since the last ACK
  bool idle_restart_ = false;
  double last_ack_ms_ = 0;
  AckAggregation ack_aggregation_;
  Policer policer_;
};

}  // namespace

Variant bbr_v1_variant() {
  return {
      .name = "v1",
      .source = "Linux 6.18, net/ipv4/tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00",
      .parameters =
          {
              {"initial_window_packets", "window at the start of a connection", 10, 1, 1000},
              {"bandwidth_window_rounds", "window of the maximum bandwidth filter in round trips",
               10, 1, 1000},
              {"min_rtt_window_ms", "age of the minimum RTT that starts ProbeRTT", 10000, 1, 1e6},
              {"probe_rtt_ms", "least duration of ProbeRTT, plus a round trip", 200, 0, 1e5},
              {"window_gain", "cwnd_gain in ProbeBW", 2, 1, 100},
              {"detects_policers", "1: detects policers and uses their rate, 0: does not", 1, 0, 1},
          },
  };
}

std::unique_ptr<CongestionController> make_bbr_v1(const ParameterValues& values,
                                                  std::uint64_t key) {
  return std::make_unique<BbrV1>(values, key);
}

}  // namespace remy
