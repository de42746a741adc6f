#include <algorithm>
#include <array>
#include <cmath>

#include "core/random.h"
#include "protocols/bbr.h"
#include "protocols/windowed_filter.h"

namespace remy {

namespace {

// BBR version 1: paces at the bottleneck's rate and keeps in flight what the path holds, as
// measured; what is lost says nothing. Where Linux (net/ipv4/tcp_bbr.c) and the draft differ or the
// draft is silent, it is Linux: the estimate of aggregation, the detector of policers, the budget
// for segmentation offload. Sections are the draft's.
class BbrV1 final : public CongestionController {
 public:
  BbrV1(const Chosen& chosen, std::uint64_t key)
      : key_(key),
        initial_window_packets_(chosen["initial_window_packets"]),
        bandwidth_window_rounds_(chosen["bandwidth_window_rounds"]),
        min_rtt_window_ms_(chosen["min_rtt_window_ms"]),
        probe_rtt_ms_(chosen["probe_rtt_ms"]),
        window_gain_(chosen["window_gain"]),
        detects_policers_(chosen["detects_policers"] != 0) {}

  void start(double now_ms) override {
    bandwidth_.clear();
    min_rtt_ms_ = kNever;
    min_rtt_stamp_ms_ = now_ms;
    mode_ = Mode::kStartup;
    pacing_gain_ = kHighGain;
    current_window_gain_ = kHighGain;
    round_ = 0;
    next_round_delivered_ = 0;
    is_round_start_ = false;
    full_bandwidth_ = 0;
    full_bandwidth_rounds_ = 0;
    is_pipe_full_ = false;
    cycle_phase_ = 0;
    cycle_stamp_ms_ = now_ms;
    probe_rtt_done_ms_ = kNever;
    is_probe_rtt_round_done_ = false;
    limited_from_ = limited_until_ = 0;
    prior_window_packets_ = 0;
    state_ = State::kOpen;
    is_conserving_packets_ = false;
    losses_ = 0;
    is_restarting_from_idle_ = false;
    aggregation_ = {};
    aggregation_.epoch_ms = now_ms;
    policer_ = {};
    last_ack_ms_ = now_ms;
    has_seen_rtt_ = false;
    cwnd_ = initial_window_packets_;
    // 4.2.1: the first rate is that of the initial window in a nominal ms, as no RTT is known.
    rate_per_ms_ = kHighGain * initial_window_packets_ / kNominalRttMs;
    pacing_interval_ms_ = 1 / rate_per_ms_;
  }

  void on_ack(const AckEvent& ack) override {
    if (!has_seen_rtt_) {
      // Linux: the first RTT replaces the nominal one, even if the rate falls by it.
      has_seen_rtt_ = true;
      rate_per_ms_ = kHighGain * cwnd_ / ack.rtt_ms;
    }
    // Linux: over less than the minimum RTT an earlier transmission was acknowledged, and the rate
    // is none.
    const bool is_sample = ack.delivery_rate_per_ms > 0 &&
                           ack.delivery_interval_ms >= std::min(min_rtt_ms_, ack.rtt_ms);
    const bool is_limited = ack.packet.is_app_limited || is_probe_rtt_sample(ack);
    update_bandwidth(ack, is_sample, is_limited);
    update_aggregation(ack, is_sample);
    update_cycle_phase(ack);
    check_full_pipe(is_limited);
    check_drain(ack);
    update_min_rtt(ack);
    update_gains();
    set_rate(pacing_gain_);
    set_window(ack);
    losses_ = 0;
    last_ack_ms_ = ack.now_ms;
  }

  // The draft's 4.2.3.4 and Linux's set of the state: a window is remembered before recovery cuts
  // it.
  void on_loss(const LossEvent& loss) override {
    ++losses_;
    if (loss.starts_recovery && state_ == State::kOpen) {
      save_window();
    }
  }

  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.is_first) {
      save_window();
    }
    state_ = State::kLoss;
    is_conserving_packets_ = false;
    full_bandwidth_ = 0;
    is_round_start_ = true;
    losses_ = 0;
    // 4.2.3.4: one packet, then growth by what is delivered.
    cwnd_ = 1;
  }

  void on_sent(const SendEvent& sent) override {
    // 4.3.4.4: all was delivered and there was nothing to send; the bottleneck is idle, and a phase
    // of probing has no pipe to fill.
    if (sent.in_flight == 1 && state_ == State::kOpen && has_seen_rtt_ &&
        sent.now_ms > last_ack_ms_ + pacing_interval_ms_) {
      is_restarting_from_idle_ = true;
      aggregation_.epoch_ms = sent.now_ms;
      aggregation_.acknowledged = 0;
      if (mode_ == Mode::kProbeBandwidth) {
        set_rate(1);
      } else if (mode_ == Mode::kProbeRtt) {
        check_probe_rtt_done(sent.now_ms);
      }
    }
  }

 private:
  enum class Mode { kStartup, kDrain, kProbeBandwidth, kProbeRtt };
  enum class State { kOpen, kRecovery, kLoss };

  // Linux's fixed-point constant for 2 / ln 2, in 256ths.
  static constexpr double kHighGain = 739.0 / 256;
  static constexpr double kDrainGain = 88.0 / 256;
  static constexpr std::array<double, 8> kCycle = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
  static constexpr double kFullPipeGrowth = 1.25;
  static constexpr int kFullPipeRounds = 3;
  static constexpr double kMinimumWindow = 4;
  static constexpr double kNominalRttMs = 1;
  // Linux paces 1 % below its estimate, which drains queues.
  static constexpr double kPacingMargin = 0.99;
  static constexpr double kPacketBytes = 1500;

  // What an ACK's burst brings beyond the estimated bandwidth, over 5 to 10 rounds (Linux).
  struct Aggregation {
    double epoch_ms = 0;
    double acknowledged = 0;  // in the epoch
    std::array<double, 2> extra{};
    int slot = 0;
    int rounds = 0;
  };

  // Two intervals of much loss and the same rate are a policer's (Linux).
  struct Policer {
    bool is_sampling = false;
    bool is_in_use = false;
    double bandwidth = 0;
    double start_ms = 0;
    std::uint64_t start_delivered = 0;
    std::uint64_t start_lost = 0;
    int rounds = 0;
  };

  double bandwidth() const { return policer_.is_in_use ? policer_.bandwidth : bandwidth_.value(); }

  // Linux: what segmentation offload sends at once, a ms's worth, two packets at least unless slow.
  double offload_packets() const {
    constexpr double kSlowBytesPerMs = 150;
    constexpr double kLargestBytes = 65535 - 320;
    const double bytes_per_ms = rate_per_ms_ * kPacketBytes;
    const double least = bytes_per_ms < kSlowBytesPerMs ? 1 : 2;
    const double packets =
        std::floor(std::min(bytes_per_ms * 1000 / 1024, kLargestBytes) / kPacketBytes);
    return std::clamp(packets, least, 127.0);
  }

  // 4.2.3.2: gain x bandwidth x minimum RTT, rounded up.
  double path_packets(double bandwidth, double gain) const {
    return min_rtt_ms_ == kNever ? initial_window_packets_
                                 : std::ceil(bandwidth * min_rtt_ms_ * gain);
  }

  // 4.2.3.2: three bursts of offload more, an even number, and two more where bandwidth is probed.
  double with_budget(double packets) const {
    packets += 3 * offload_packets();
    packets = 2 * std::ceil(packets / 2);
    return mode_ == Mode::kProbeBandwidth && cycle_phase_ == 0 ? packets + 2 : packets;
  }

  double inflight(double bandwidth, double gain) const {
    return with_budget(path_packets(bandwidth, gain));
  }

  // Linux: packets sent at four in flight say nothing about the bandwidth.
  bool is_probe_rtt_sample(const AckEvent& ack) const {
    return ack.packet.delivered >= limited_from_ && ack.packet.delivered < limited_until_;
  }

  // 4.1.1.3 and 4.1.1.5: rounds are counted in packets; the maximum of the delivery rates of 10 of
  // them, to which a sample that the application limited belongs only if it is larger.
  void update_bandwidth(const AckEvent& ack, bool is_sample, bool is_limited) {
    is_round_start_ = false;
    if (!is_sample) {
      return;
    }
    if (ack.packet.delivered >= next_round_delivered_) {
      next_round_delivered_ = ack.total_delivered;
      ++round_;
      is_round_start_ = true;
      is_conserving_packets_ = false;
    }
    if (detects_policers_) {
      sample_policer(ack, is_limited);
    }
    if (!is_limited || ack.delivery_rate_per_ms >= bandwidth_.value()) {
      bandwidth_.update(bandwidth_window_rounds_, round_, ack.delivery_rate_per_ms);
    }
  }

  void start_policer_interval(const AckEvent& ack) {
    policer_.start_ms = ack.now_ms;
    policer_.start_delivered = ack.total_delivered;
    policer_.start_lost = ack.total_lost;
    policer_.rounds = 0;
  }

  void forget_policer(const AckEvent& ack) {
    policer_ = {};
    start_policer_interval(ack);
  }

  // Linux: an interval begins and ends with a loss, has 4 to 16 rounds and a fifth or more of its
  // packets lost; a rate that two of them agree on is used for 48 rounds.
  void sample_policer(const AckEvent& ack, bool is_limited) {
    constexpr int kShortestRounds = 4;
    constexpr int kUsedRounds = 48;
    constexpr double kLossRatio = 50.0 / 256;
    constexpr double kRelativeDifference = 1.0 / 8;
    constexpr double kDifferenceBytesPerMs = 0.5;
    if (policer_.is_in_use) {
      if (mode_ == Mode::kProbeBandwidth && is_round_start_ && ++policer_.rounds >= kUsedRounds) {
        forget_policer(ack);
        enter_probe_bandwidth(ack.now_ms);
      }
      return;
    }
    if (!policer_.is_sampling) {
      if (losses_ == 0) {
        return;
      }
      start_policer_interval(ack);
      policer_.is_sampling = true;
    }
    if (is_limited) {
      forget_policer(ack);
      return;
    }
    policer_.rounds += is_round_start_ ? 1 : 0;
    if (policer_.rounds < kShortestRounds) {
      return;
    }
    if (policer_.rounds > 4 * kShortestRounds) {
      forget_policer(ack);
      return;
    }
    if (losses_ == 0) {
      return;
    }
    const auto lost = static_cast<double>(ack.total_lost - policer_.start_lost);
    const auto delivered = static_cast<double>(ack.total_delivered - policer_.start_delivered);
    const double elapsed_ms = ack.now_ms - policer_.start_ms;
    if (delivered == 0 || lost < kLossRatio * delivered || elapsed_ms < 1) {
      return;
    }
    const double bandwidth = delivered / elapsed_ms;
    const double difference = std::fabs(bandwidth - policer_.bandwidth);
    if (policer_.bandwidth > 0 && (difference <= kRelativeDifference * policer_.bandwidth ||
                                   difference * kPacketBytes <= kDifferenceBytesPerMs)) {
      policer_.bandwidth = (bandwidth + policer_.bandwidth) / 2;
      policer_.is_in_use = true;
      policer_.rounds = 0;
      pacing_gain_ = 1;
      return;
    }
    policer_.bandwidth = bandwidth;
    start_policer_interval(ack);
  }

  void update_aggregation(const AckEvent& ack, bool is_sample) {
    constexpr int kRounds = 5;
    constexpr double kEpochPackets = 1 << 20;
    if (!is_sample || ack.newly_delivered == 0) {
      return;
    }
    if (is_round_start_ && ++aggregation_.rounds >= kRounds) {
      aggregation_.rounds = 0;
      aggregation_.slot = 1 - aggregation_.slot;
      aggregation_.extra[static_cast<std::size_t>(aggregation_.slot)] = 0;
    }
    const auto delivered = static_cast<double>(ack.newly_delivered);
    double expected = bandwidth() * (ack.now_ms - aggregation_.epoch_ms);
    if (aggregation_.acknowledged <= expected ||
        aggregation_.acknowledged + delivered >= kEpochPackets) {
      aggregation_.acknowledged = 0;
      aggregation_.epoch_ms = ack.now_ms;
      expected = 0;
    }
    aggregation_.acknowledged += delivered;
    double& extra = aggregation_.extra[static_cast<std::size_t>(aggregation_.slot)];
    extra = std::max(extra, std::min(aggregation_.acknowledged - expected, cwnd_));
  }

  double aggregation_packets() const {
    constexpr double kLongestMs = 100;
    return is_pipe_full_
               ? std::floor(std::min(std::max(aggregation_.extra[0], aggregation_.extra[1]),
                                     bandwidth() * kLongestMs))
               : 0;
  }

  // 4.3.4.3: a phase lasts a minimum RTT; one above 1 until the pipe holds that much or something
  // is lost, and one below 1 no longer than there is a queue.
  void update_cycle_phase(const AckEvent& ack) {
    if (mode_ != Mode::kProbeBandwidth) {
      return;
    }
    const bool is_long_enough = ack.now_ms - cycle_stamp_ms_ > min_rtt_ms_;
    const auto prior_in_flight = static_cast<double>(ack.prior_in_flight);
    const double best = bandwidth_.value();
    bool is_over = is_long_enough;
    if (pacing_gain_ > 1) {
      is_over = is_long_enough && (losses_ > 0 || prior_in_flight + offload_packets() >=
                                                      inflight(best, pacing_gain_));
    } else if (pacing_gain_ < 1) {
      is_over = is_long_enough || prior_in_flight <= inflight(best, 1);
    }
    if (is_over) {
      next_cycle_phase(ack.now_ms);
    }
  }

  void next_cycle_phase(double now_ms) {
    cycle_phase_ = (cycle_phase_ + 1) % kCycle.size();
    cycle_stamp_ms_ = now_ms;
  }

  // 4.3.2.2: the pipe is full when three rounds in turn brought less than a quarter more.
  void check_full_pipe(bool is_limited) {
    if (is_pipe_full_ || !is_round_start_ || is_limited) {
      return;
    }
    if (bandwidth_.value() >= full_bandwidth_ * kFullPipeGrowth) {
      full_bandwidth_ = bandwidth_.value();
      full_bandwidth_rounds_ = 0;
      return;
    }
    is_pipe_full_ = ++full_bandwidth_rounds_ >= kFullPipeRounds;
  }

  // 4.3.3: what startup has queued goes before bandwidth is probed.
  void check_drain(const AckEvent& ack) {
    if (mode_ == Mode::kStartup && is_pipe_full_) {
      mode_ = Mode::kDrain;
    }
    if (mode_ == Mode::kDrain &&
        static_cast<double>(ack.in_flight) <= inflight(bandwidth_.value(), 1)) {
      enter_probe_bandwidth(ack.now_ms);
    }
  }

  // 4.3.4.2: a random phase first, but not the one that drains.
  void enter_probe_bandwidth(double now_ms) {
    mode_ = Mode::kProbeBandwidth;
    cycle_phase_ = kCycle.size() - 1 - random_bits(key_, draws_++) % (kCycle.size() - 1);
    next_cycle_phase(now_ms);
  }

  // 4.1.2 and 4.3.5: a minimum RTT that is 10 s old is measured anew, with four packets in flight
  // for 200 ms and a round.
  void update_min_rtt(const AckEvent& ack) {
    const bool is_expired = ack.now_ms > min_rtt_stamp_ms_ + min_rtt_window_ms_;
    if (ack.rtt_ms < min_rtt_ms_ || is_expired) {
      min_rtt_ms_ = ack.rtt_ms;
      min_rtt_stamp_ms_ = ack.now_ms;
    }
    if (is_expired && !is_restarting_from_idle_ && mode_ != Mode::kProbeRtt) {
      mode_ = Mode::kProbeRtt;
      save_window();
      probe_rtt_done_ms_ = kNever;
      limited_from_ = ack.total_delivered;
    }
    if (mode_ == Mode::kProbeRtt) {
      limited_until_ = ack.total_delivered + ack.in_flight;
      if (probe_rtt_done_ms_ == kNever && static_cast<double>(ack.in_flight) <= kMinimumWindow) {
        probe_rtt_done_ms_ = ack.now_ms + probe_rtt_ms_;
        is_probe_rtt_round_done_ = false;
        next_round_delivered_ = ack.total_delivered;
      } else if (probe_rtt_done_ms_ != kNever) {
        is_probe_rtt_round_done_ = is_probe_rtt_round_done_ || is_round_start_;
        if (is_probe_rtt_round_done_) {
          check_probe_rtt_done(ack.now_ms);
        }
      }
    }
    is_restarting_from_idle_ = is_restarting_from_idle_ && ack.newly_delivered == 0;
  }

  void check_probe_rtt_done(double now_ms) {
    if (!(now_ms > probe_rtt_done_ms_)) {
      return;
    }
    min_rtt_stamp_ms_ = now_ms;
    cwnd_ = std::max(cwnd_, prior_window_packets_);
    if (is_pipe_full_) {
      enter_probe_bandwidth(now_ms);
    } else {
      mode_ = Mode::kStartup;
    }
  }

  void update_gains() {
    switch (mode_) {
      case Mode::kStartup:
        pacing_gain_ = current_window_gain_ = kHighGain;
        return;
      case Mode::kDrain:
        // 4.3.3: the inverse of startup's, in one round what that has queued; the window stays.
        pacing_gain_ = kDrainGain;
        current_window_gain_ = kHighGain;
        return;
      case Mode::kProbeBandwidth:
        pacing_gain_ = policer_.is_in_use ? 1 : kCycle[cycle_phase_];
        current_window_gain_ = window_gain_;
        return;
      case Mode::kProbeRtt:
        pacing_gain_ = current_window_gain_ = 1;
        return;
    }
  }

  // 4.2.1: before the pipe is full the rate only grows.
  void set_rate(double gain) {
    const double rate = kPacingMargin * gain * bandwidth();
    if (rate > 0 && (is_pipe_full_ || rate > rate_per_ms_)) {
      rate_per_ms_ = rate;
    }
    pacing_interval_ms_ = 1 / rate_per_ms_;
  }

  void save_window() {
    const bool is_whole = state_ == State::kOpen && mode_ != Mode::kProbeRtt;
    prior_window_packets_ = is_whole ? cwnd_ : std::max(prior_window_packets_, cwnd_);
  }

  // 4.2.3.4: in the first round of recovery as many are sent as delivered; when it ends the window
  // is what it was. True if that decides the window.
  bool recover(const AckEvent& ack) {
    const auto in_flight = static_cast<double>(ack.in_flight);
    const auto delivered = static_cast<double>(ack.newly_delivered);
    if (losses_ > 0) {
      cwnd_ = std::max(cwnd_ - static_cast<double>(losses_), 1.0);
    }
    if (ack.in_recovery && state_ == State::kOpen) {
      state_ = State::kRecovery;
      is_conserving_packets_ = true;
      next_round_delivered_ = ack.total_delivered;
      cwnd_ = in_flight + delivered;
    } else if (!ack.in_recovery && state_ != State::kOpen) {
      state_ = State::kOpen;
      is_conserving_packets_ = false;
      cwnd_ = std::max(cwnd_, prior_window_packets_);
    }
    if (is_conserving_packets_) {
      cwnd_ = std::max(cwnd_, in_flight + delivered);
    }
    return is_conserving_packets_;
  }

  // 4.2.3: the window moves to its target by what is delivered; before the pipe is full it only
  // grows.
  void set_window(const AckEvent& ack) {
    const auto delivered = static_cast<double>(ack.newly_delivered);
    if (ack.newly_delivered > 0 && !recover(ack)) {
      const double target =
          with_budget(path_packets(bandwidth(), current_window_gain_) + aggregation_packets());
      if (is_pipe_full_) {
        cwnd_ = std::min(cwnd_ + delivered, target);
      } else if (cwnd_ < target ||
                 static_cast<double>(ack.total_delivered) < initial_window_packets_) {
        cwnd_ += delivered;
      }
      cwnd_ = std::max(cwnd_, kMinimumWindow);
    }
    if (mode_ == Mode::kProbeRtt) {
      cwnd_ = std::min(cwnd_, kMinimumWindow);
    }
  }

  const std::uint64_t key_;
  const double initial_window_packets_;
  const double bandwidth_window_rounds_;
  const double min_rtt_window_ms_;
  const double probe_rtt_ms_;
  const double window_gain_;
  const bool detects_policers_;
  std::uint64_t draws_ = 0;

  WindowedMax bandwidth_;  // packets a ms, over rounds
  double min_rtt_ms_ = kNever;
  double min_rtt_stamp_ms_ = 0;
  Mode mode_ = Mode::kStartup;
  double pacing_gain_ = kHighGain;
  double current_window_gain_ = kHighGain;
  double rate_per_ms_ = 1;
  bool has_seen_rtt_ = false;
  double round_ = 0;
  std::uint64_t next_round_delivered_ = 0;
  bool is_round_start_ = false;
  double full_bandwidth_ = 0;
  int full_bandwidth_rounds_ = 0;
  bool is_pipe_full_ = false;
  std::size_t cycle_phase_ = 0;
  double cycle_stamp_ms_ = 0;
  double probe_rtt_done_ms_ = kNever;
  bool is_probe_rtt_round_done_ = false;
  // Packets sent when between so many were delivered were sent in ProbeRTT.
  std::uint64_t limited_from_ = 0;
  std::uint64_t limited_until_ = 0;
  double prior_window_packets_ = 0;
  State state_ = State::kOpen;
  bool is_conserving_packets_ = false;
  std::uint64_t losses_ = 0;  // since the last ACK
  bool is_restarting_from_idle_ = false;
  double last_ack_ms_ = 0;
  Aggregation aggregation_;
  Policer policer_;
};

}  // namespace

Variant bbr_v1_variant() {
  return {
      .name = "v1",
      .source = "Linux 6.18, net/ipv4/tcp_bbr.c; draft-cardwell-iccrg-bbr-congestion-control-00",
      .parameters =
          {
              {"initial_window_packets", "window at the start", 10, 1, 1000},
              {"bandwidth_window_rounds", "rounds whose largest delivery rate is the bandwidth", 10,
               1, 1000},
              {"min_rtt_window_ms", "age at which the minimum RTT is measured anew", 10000, 1, 1e6},
              {"probe_rtt_ms", "how long that takes, beside a round", 200, 0, 1e5},
              {"window_gain", "window over what the path holds while probing bandwidth", 2, 1, 100},
              {"detects_policers", "1: uses the rate of a policer that two lossy intervals show", 1,
               0, 1},
          },
  };
}

std::unique_ptr<CongestionController> make_bbr_v1(const Chosen& chosen, std::uint64_t key) {
  return std::make_unique<BbrV1>(chosen, key);
}

}  // namespace remy
