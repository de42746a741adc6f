#include "slow_endpoints.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"

namespace remy {
namespace {

constexpr double kNever = Endpoint::kNever;
constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

// The retransmission timer of RFC 6298, with the RFC's names of variables.
class SlowTimer {
 public:
  double initial_ms = 1000;
  double minimum_ms = 200;
  double maximum_ms = 60000;
  double g_ms = 1;
  bool is_minimum_of_variation = false;
  bool damps_decreases = false;
  double unit_ms = 0;  // to which |srtt - r| is rounded down; 0: it is not rounded

  void reset() {
    srtt = rttvar = 0;
    doublings = 0;
    expires_ms = kNever;
  }
  void sample(double r) {
    if (srtt == 0) {
      srtt = r;
      rttvar = r / 2;
    } else {
      double distance = std::fabs(srtt - r);
      distance -= unit_ms > 0 ? std::fmod(distance, unit_ms) : 0;
      const double error = distance - rttvar;
      rttvar += damps_decreases && r < srtt && error > 0 ? error / 32 : error / 4;
      srtt += (r - srtt) / 8;
    }
    doublings = 0;
  }
  double rto() const {
    double base = initial_ms;
    if (srtt > 0) {
      const double variation = std::max(g_ms, 4 * rttvar);
      base = is_minimum_of_variation ? srtt + std::max(minimum_ms, variation)
                                     : std::max(minimum_ms, srtt + variation);
    }
    return std::min(base * std::pow(2.0, doublings), maximum_ms);
  }
  void back_off() { doublings += rto() < maximum_ms ? 1 : 0; }
  void restart(double now_ms) { expires_ms = now_ms + rto(); }

  double srtt = 0;
  double rttvar = 0;
  int doublings = 0;
  double expires_ms = kNever;
};

// A receiver: tracks the packets that have arrived, and reports SACK blocks (RFC 2018).
class SlowReceiver {
 public:
  std::uint64_t next = 0;  // all packets before it have arrived

  void reset(std::uint64_t from) {
    next = from;
    out_of_order_.clear();
    recent_.clear();
  }
  bool has(std::uint64_t packet) const { return packet < next || out_of_order_.contains(packet); }
  // Returns by how much the cumulative ACK advances.
  std::uint64_t add(std::uint64_t packet) {
    if (packet < next) {
      return 0;
    }
    out_of_order_.insert(packet);
    const std::uint64_t before = next;
    for (; out_of_order_.contains(next); ++next) {
      out_of_order_.erase(next);
    }
    // recent_ has one packet of each block, the most recently changed block first.
    recent_.push_front(packet);
    std::list<std::uint64_t> kept;
    for (const std::uint64_t each : recent_) {
      const bool is_known = std::ranges::any_of(
          kept, [&](std::uint64_t other) { return block_of(other).first == block_of(each).first; });
      if (each >= next && !is_known && kept.size() < 3) {
        kept.push_back(each);
      }
    }
    recent_ = kept;
    return next - before;
  }
  void report(AckContent& content) const {
    for (const std::uint64_t each : recent_) {
      content.sacks[content.blocks++] = block_of(each);
    }
  }

 private:
  SackBlock block_of(std::uint64_t packet) const {
    SackBlock block{packet, packet};
    while (out_of_order_.contains(block.first - 1)) {
      --block.first;
    }
    while (out_of_order_.contains(block.end)) {
      ++block.end;
    }
    return block;
  }

  std::set<std::uint64_t> out_of_order_;
  std::list<std::uint64_t> recent_;
};

// A RemyCC as a congestion controller.
class SlowRemy final : public CongestionController {
 public:
  SlowRemy(const CompiledTable& table) : remy_(table) {}
  void start(double) override {
    srtt_ = 0;
    apply(remy_.start());
  }
  void on_ack(const AckEvent& ack) override {
    srtt_ += srtt_ == 0 ? ack.rtt_ms : (ack.rtt_ms - srtt_) / 8;
    apply(remy_.acknowledge(ack.sent_ms, ack.received_ms, ack.rtt_ms, 1));
  }
  void on_loss(const LossEvent&) override {}
  void on_timeout(const TimeoutEvent&) override {}

 private:
  void apply(std::uint32_t) {
    cwnd_ = remy_.window_packets();
    pacing_interval_ms_ = remy_.intersend_ms();
    if (srtt_ > 0 && pacing_interval_ms_ > srtt_) {
      pacing_interval_ms_ = srtt_;
    }
  }
  BasicController remy_;
  double srtt_ = 0;
};

// TCP as transports/tcp_sender.h describes it, of the variants "rfc", "newreno" and "linux".
class SlowTcp final : public Endpoint {
 public:
  SlowTcp(const ParameterValues& values, EndpointSetting setting)
      : has_sack_(values.variant() != "newreno"),
        is_linux_(values.variant() == "linux"),
        keeps_state_(values["keep_state"] != 0),
        restarts_after_idle_(values["restart_after_idle"] != 0),
        receive_window_(static_cast<std::uint64_t>(values["receive_window_packets"])),
        bytes_(static_cast<std::uint32_t>(setting.packet_bytes)),
        is_ecn_capable_(setting.is_ecn_capable),
        asks_xcp_routers_(setting.asks_xcp_routers),
        rtt_offset_ms_(rtt_offset_ms(setting.measurement, setting.rtt_offset_key, setting.sender)),
        controller_(setting.table != nullptr ? std::make_unique<SlowRemy>(*setting.table)
                                             : std::move(setting.controller)) {
    timer_.initial_ms = values["initial_rto_ms"];
    timer_.minimum_ms = values["minimum_rto_ms"];
    timer_.is_minimum_of_variation = is_linux_;
    timer_.damps_decreases = is_linux_;
  }

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override {
    if (!was_on_ || !keeps_state_) {
      // A new connection, which ignores packets that were sent before.
      outstanding_.clear();
      connection_start_ = recovery_end_ = next_;
      receiver_.reset(next_);
      timer_.reset();
      state_ = State::kOpen;
      ignores_window_ = uses_prr_ = has_unresolved_timeout_ = false;
      has_measured_ = false;
      duplicates_ = 0;
      app_limited_until_ = window_full_until_ = 0;
      last_send_ms_ = -kNever;
      controller_->start(now_ms);
      rack_ = {};
      rack_.fack = next_;
      probe_ = {};
      usage_ = {};
      first_retransmission_ms_ = kNever;
      time_stamp_ms_ = 0;
      usage_.initial = whole_window();
      usage_.checked_ms = now_ms;
      data_end_ = next_;
    }
    was_on_ = true;
    if (is_linux_ && restarts_after_idle_ && outstanding_.empty() && last_send_ms_ > -kNever) {
      halve_idle_window(now_ms);
    }
    if (next_ >= data_end_ && !lowest_lost() && in_flight() < window()) {
      app_limited_until_ = std::max<std::uint64_t>(delivered_ + in_flight(), 1);
    }
    data_end_ = packets ? next_ + *packets : kEndless;
    send_all(now_ms, sink);
  }

  void switch_off(double) override {
    data_end_ = next_;
    if (!lowest_lost()) {
      pacing_ms_ = kNever;
    }
  }

  bool is_done() const override { return first() >= data_end_; }
  Pace pace() const override { return {controller_->cwnd(), controller_->pacing_interval_ms()}; }
  double next_act_ms() const override {
    return std::min({pacing_ms_, timer_.expires_ms, controller_->next_tick_ms(), rack_.timer_ms,
                     probe_.due_ms});
  }

  void act(double now_ms, PacketSink& sink) override {
    if (controller_->next_tick_ms() <= now_ms) {
      controller_->on_tick(now_ms);
    }
    if (rack_.timer_ms <= now_ms) {
      const std::uint64_t lost_before = lost_;
      find_losses_by_rack(in_flight(), now_ms);
      if (lost_ > lost_before && uses_prr_) {
        update_prr_window(1);
      }
    }
    if (probe_.due_ms <= now_ms) {
      probe(now_ms, sink);
    }
    if (timer_.expires_ms <= now_ms) {
      on_timer(now_ms);
    }
    send_all(now_ms, sink);
  }

  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override {
    if (echo.sequence < connection_start_) {
      return;
    }
    AckEvent ack;
    ack.now_ms = now_ms;
    ack.sent_ms = echo.sent_ms;
    ack.received_ms = content.received_ms;
    ack.rtt_ms = now_ms - echo.sent_ms + (has_measured_ ? rtt_offset_ms_ : 0);
    has_measured_ = true;
    ack.transmission_number = echo.transmission_number;
    ack.prior_in_flight = in_flight();
    const std::uint64_t first_before = first();

    rack_.min_rtt_ms = std::min(rack_.min_rtt_ms, now_ms - echo.sent_ms);
    std::vector<Outstanding> newly_delivered;
    const std::uint64_t fack_before = rack_.fack;
    for (auto& [packet, known] : outstanding_) {
      bool is_received = packet < content.cumulative;
      for (std::uint32_t i = 0; i < content.blocks; ++i) {
        is_received |= content.sacks[i].first <= packet && packet < content.sacks[i].end;
      }
      if (is_received && !known.received) {
        newly_delivered.push_back(known);
        known.received = true;
        known.lost = false;
        rack_.has_reordering |= packet < fack_before && !known.is_retransmission;
        rack_.fack = std::max(rack_.fack, packet + 1);
        const double rtt_ms = now_ms - known.state.sent_ms;
        const bool has_old_stamp =
            packet < content.cumulative && content.time_stamp_ms < known.state.sent_ms;
        if ((!known.is_retransmission || (!has_old_stamp && rtt_ms >= rack_.min_rtt_ms)) &&
            known.transmission_number >= rack_.sent_end) {
          rack_.sent_end = known.transmission_number + 1;
          rack_.rtt_ms = rtt_ms;
        }
      }
    }
    std::erase_if(outstanding_, [&](const auto& each) { return each.first < content.cumulative; });
    ack.newly_acked = first() - first_before;
    ack.newly_delivered = newly_delivered.size();
    if (!has_sack_) {
      ack.newly_delivered =
          count_delivered_without_sack(ack.newly_acked, content.cumulative == first_before);
    }
    if (is_linux_ && ack.newly_acked > 0 && is_spurious(content.time_stamp_ms)) {
      undo();
    }
    const bool was_recovering = state_ == State::kRecovery;
    if (ack.newly_delivered > 0) {
      timer_.sample(ack.rtt_ms);
      results_.rtt.sampled(now_ms - echo.sent_ms, now_ms);
    } else if (ack.newly_acked > 0) {
      results_.rtt.sampled(results_.rtt.last_ms(), now_ms);
    }
    delivered_ += ack.newly_delivered;
    if (!newly_delivered.empty()) {
      ack.packet =
          std::ranges::max_element(newly_delivered, {}, &Outstanding::transmission_number)->state;
      delivered_ms_ = now_ms;
      first_sent_ms_ = ack.packet.sent_ms;
      ack.delivery_interval_ms =
          std::max(ack.packet.sent_ms - ack.packet.first_sent_ms, now_ms - ack.packet.delivered_ms);
      if (ack.delivery_interval_ms > 0) {
        ack.delivery_rate_per_ms =
            static_cast<double>(delivered_ - ack.packet.delivered) / ack.delivery_interval_ms;
      }
    }
    if (state_ != State::kOpen && first() >= recovery_end_) {
      const double first_retransmission_ms = first_retransmission_ms_;
      leave_recovery();
      // A packet was lost while recovery was in progress: recovery starts again.
      for (auto& [packet, known] : outstanding_) {
        if (known.was_lost && !known.received) {
          begin_recovery();
          ignores_window_ = known.lost;
          if (has_retransmissions_out()) {
            first_retransmission_ms_ = first_retransmission_ms;
          }
          report_loss(known, true, ack.prior_in_flight, now_ms);
          break;
        }
        if (!is_linux_) {
          break;
        }
      }
    }
    if (is_linux_) {
      widen_reordering_window(content.is_duplicate && !(probe_.is_out && probe_.repeats));
      find_losses_by_rack(ack.prior_in_flight, now_ms);
    } else if (has_sack_) {
      find_losses(ack.prior_in_flight, now_ms);
    } else {
      find_loss_without_sack(ack.newly_acked > 0 && was_recovering, ack.prior_in_flight, now_ms);
    }
    if (ack.newly_acked > 0) {
      has_unresolved_timeout_ = false;
      if (first() > recovery_end_) {
        timer_.doublings = 0;
      }
      if (outstanding_.empty() && (!restarts_after_idle_ || is_linux_)) {
        timer_.expires_ms = kNever;
      } else {
        const bool is_partial = was_recovering && state_ == State::kRecovery && !has_sack_;
        if (!is_partial || is_first_partial_) {
          timer_.restart(now_ms);
        }
        is_first_partial_ = is_first_partial_ && !is_partial;
      }
    }
    if (is_linux_) {
      judge_probe(ack, content.is_duplicate);
      if (ack.newly_acked > 0) {
        schedule_probe(now_ms);
      }
    }
    ack.newly_marked = content.marked;
    ack.xcp_feedback_packets = content.feedback_packets;
    ack.total_delivered = delivered_;
    ack.total_lost = lost_;
    ack.in_flight = in_flight();
    ack.in_recovery = state_ == State::kRecovery;
    ack.is_cwnd_limited = is_linux_ ? may_grow() : first_before < window_full_until_;
    controller_->on_ack(ack);
    if (uses_prr_) {
      update_prr_window(ack.newly_delivered);
    }
    send_all(now_ms, sink);
  }

  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override {
    ++results_.packets_received;
    results_.packets_marked += segment.is_marked ? 1 : 0;
    if (segment.sequence < connection_start_) {
      return std::nullopt;
    }
    if (segment.sequence <= receiver_.next) {
      time_stamp_ms_ = std::max(time_stamp_ms_, segment.sent_ms);
    }
    const bool is_duplicate = receiver_.has(segment.sequence);
    const std::uint64_t advance = receiver_.add(segment.sequence);
    if (advance > 0) {
      results_.packets_in_order += advance;
      results_.rtt.handed_on();
    }
    AckContent content;
    content.received_ms = now_ms;
    content.time_stamp_ms = time_stamp_ms_;
    content.is_duplicate = is_duplicate;
    content.cumulative = receiver_.next;
    content.marked = segment.is_marked ? 1 : 0;
    content.feedback_packets = segment.congestion.feedback_packets;
    if (has_sack_) {
      receiver_.report(content);
    }
    return content;
  }

 private:
  struct Outstanding {
    DeliverySnapshot state;
    std::uint64_t transmission_number = 0;
    bool received = false;
    bool lost = false;      // lost and not retransmitted since
    bool was_lost = false;  // has been lost at any time
    bool is_retransmission = false;
  };
  enum class State { kOpen, kRecovery, kTimedOut };

  std::uint64_t first() const { return outstanding_.empty() ? next_ : outstanding_.begin()->first; }
  // Packets in flight (RFC 6675, pipe).
  std::uint64_t pipe() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        outstanding_, [](const auto& each) { return !each.second.received && !each.second.lost; }));
  }
  std::uint64_t in_flight() const { return pipe() - duplicates_; }
  std::optional<std::uint64_t> lowest_lost() const {
    for (const auto& [packet, known] : outstanding_) {
      if (known.lost) {
        return packet;
      }
    }
    return std::nullopt;
  }
  std::uint64_t controller_window() const {
    return static_cast<std::uint64_t>(std::clamp(controller_->cwnd(), 1.0, 1e6));
  }
  std::uint64_t window() const { return uses_prr_ ? prr_window_ : controller_window(); }

  bool may_enter_recovery() const {
    return state_ == State::kOpen &&
           (first() > recovery_end_ || recovery_end_ == connection_start_);
  }

  // Without SACK: returns how many packets this ACK shows to be delivered. Each duplicate ACK
  // counts as one delivered packet, which the cumulative ACK must not count again (RFC 6582).
  std::uint64_t count_delivered_without_sack(std::uint64_t acknowledged, bool is_duplicate) {
    if (acknowledged > 0) {
      const std::uint64_t counted_before = std::min(duplicates_, acknowledged - 1);
      duplicates_ = state_ == State::kRecovery ? duplicates_ - counted_before : 0;
      return acknowledged - counted_before;
    }
    std::uint64_t most = may_enter_recovery() ? 3 : 2;
    most = state_ == State::kRecovery ? kEndless : most;
    most = state_ == State::kTimedOut ? 0 : most;
    if (!is_duplicate || duplicates_ >= std::min(most, pipe())) {
      return 0;
    }
    ++duplicates_;
    return 1;
  }

  void begin_recovery() {
    state_ = State::kRecovery;
    recovery_end_ = next_;
    is_first_partial_ = true;
    ignores_window_ = true;
  }

  void mark_lost(Outstanding& known, std::uint64_t in_flight_before, double now_ms) {
    known.lost = known.was_lost = true;
    ++lost_;
    if (!has_sack_) {
      duplicates_ = std::min(duplicates_, pipe());
    }
    const bool starts = state_ == State::kOpen;
    if (starts) {
      begin_recovery();
    }
    report_loss(known, starts, in_flight_before, now_ms);
  }

  void report_loss(const Outstanding& known, bool starts, std::uint64_t in_flight_before,
                   double now_ms) {
    controller_->on_loss({.now_ms = now_ms,
                          .transmission_number = known.transmission_number,
                          .in_flight = in_flight_before,
                          .starts_recovery = starts,
                          .packet = known.state});
    if (starts) {
      probe_.due_ms = kNever;
      uses_prr_ = is_linux_ && window() < in_flight_before;
      recover_fs_ = std::max<std::uint64_t>(in_flight_before, 1);
      prr_delivered_ = prr_out_ = prr_window_ = 0;
      timer_.restart(now_ms);
    }
  }

  void find_losses(std::uint64_t in_flight_before, double now_ms) {
    // RFC 6675, IsLost(): at least three packets above were received.
    std::uint64_t received_above = 0;
    std::vector<Outstanding*> found;
    for (auto each = outstanding_.rbegin(); each != outstanding_.rend(); ++each) {
      Outstanding& known = each->second;
      received_above += known.received ? 1 : 0;
      if (!known.received && !known.was_lost && received_above >= 3) {
        found.push_back(&known);
      }
    }
    for (auto each = found.rbegin(); each != found.rend(); ++each) {
      mark_lost(**each, in_flight_before, now_ms);
    }
  }

  // RFC 8985, section 6.2, with its names.
  double reordering_window_ms() const {
    const auto received =
        std::ranges::count_if(outstanding_, [](const auto& each) { return each.second.received; });
    if (!rack_.has_reordering && (state_ != State::kOpen || received >= 3)) {
      return 0;
    }
    return std::min(static_cast<double>(rack_.multiple) * rack_.min_rtt_ms / 4, timer_.srtt);
  }
  void widen_reordering_window(bool is_duplicate) {
    if (rack_.dsack_round && first() >= *rack_.dsack_round) {
      rack_.dsack_round.reset();
    }
    if (is_duplicate && !rack_.dsack_round) {
      rack_.dsack_round = next_;
      ++rack_.multiple;
      rack_.persist = 16;
    }
  }
  void find_losses_by_rack(std::uint64_t in_flight_before, double now_ms) {
    std::map<std::uint64_t, Outstanding*> earlier;
    for (auto& [packet, known] : outstanding_) {
      if (!known.received && !known.lost && known.transmission_number < rack_.sent_end) {
        earlier[known.transmission_number] = &known;
      }
    }
    const double timeout_ms = rack_.rtt_ms + reordering_window_ms();
    rack_.timer_ms = kNever;
    for (const auto& [number, known] : earlier) {
      const double due_ms = known->state.sent_ms + timeout_ms;
      if (now_ms - known->state.sent_ms >= timeout_ms || now_ms >= due_ms) {
        mark_lost(*known, in_flight_before, now_ms);
      } else {
        rack_.timer_ms = rack_.timer_ms == kNever ? due_ms : std::max(rack_.timer_ms, due_ms);
      }
    }
  }
  void leave_recovery() {
    state_ = State::kOpen;
    ignores_window_ = uses_prr_ = false;
    duplicates_ = 0;
    first_retransmission_ms_ = kNever;
    if (rack_.persist > 0 && --rack_.persist == 0) {
      rack_.multiple = 1;
    }
  }

  bool has_retransmissions_out() const {
    return std::ranges::any_of(outstanding_, [](const auto& each) {
      return each.second.is_retransmission && !each.second.received && !each.second.lost;
    });
  }

  // RFC 3522 and RFC 4015.
  bool is_spurious(double time_stamp_ms) const {
    return state_ != State::kOpen && time_stamp_ms < first_retransmission_ms_ &&
           (state_ == State::kTimedOut || first() >= recovery_end_ || !has_retransmissions_out());
  }
  void undo() {
    rack_.has_reordering |= state_ == State::kRecovery;
    leave_recovery();
    for (auto& [packet, known] : outstanding_) {
      known.was_lost = known.is_retransmission;
      known.lost = false;
    }
    timer_.doublings = 0;
    controller_->on_spurious_recovery();
  }

  // RFC 8985, section 7.
  bool may_probe() const {
    const bool has_received =
        std::ranges::any_of(outstanding_, [](const auto& each) { return each.second.received; });
    return state_ == State::kOpen && !has_received && !outstanding_.empty();
  }
  void schedule_probe(double now_ms) {
    if (!may_probe()) {
      probe_.due_ms = kNever;
      return;
    }
    double pto_ms = 1000;
    if (timer_.srtt > 0) {
      pto_ms = 2 * timer_.srtt + (outstanding_.size() == 1 ? 200 : 0);
    }
    probe_.due_ms = std::min(now_ms + pto_ms, timer_.expires_ms);
  }
  void probe(double now_ms, PacketSink& sink) {
    probe_.due_ms = kNever;
    if (!may_probe()) {
      return;
    }
    if (!probe_.is_out) {
      const bool is_new = next_ < data_end_ && next_ - first() < receive_window_;
      if (!is_new) {
        outstanding_.rbegin()->second.lost = true;
      }
      send(is_new ? std::nullopt : std::optional(next_ - 1), now_ms, sink);
      probe_ = {.is_out = true, .repeats = !is_new, .end = next_};
    }
    timer_.restart(now_ms);
  }
  void judge_probe(const AckEvent& ack, bool is_duplicate) {
    if (!probe_.is_out || first() < probe_.end) {
      return;
    }
    if (probe_.repeats && !is_duplicate && first() > probe_.end) {
      ++lost_;
      controller_->on_loss({.now_ms = ack.now_ms,
                            .transmission_number = ack.transmission_number,
                            .in_flight = ack.prior_in_flight,
                            .starts_recovery = state_ == State::kOpen,
                            .packet = {}});
    }
    if (!probe_.repeats || is_duplicate || first() > probe_.end || ack.newly_delivered == 0) {
      probe_.is_out = false;
    }
  }

  // Linux's congestion window validation.
  std::uint64_t whole_window() const {
    return static_cast<std::uint64_t>(std::max(1.0, std::min(1e6, controller_->cwnd())));
  }
  bool may_grow() const {
    return usage_.was_full || (controller_->is_in_slow_start() && whole_window() < 2 * usage_.most);
  }
  void halve_idle_window(double now_ms) {
    double idle_ms = now_ms - last_send_ms_;
    if (idle_ms <= timer_.rto()) {
      return;
    }
    usage_.used = 0;
    usage_.checked_ms = now_ms;
    const std::uint64_t before = whole_window();
    std::uint64_t after = before;
    while ((idle_ms -= timer_.rto()) > 0 && after > usage_.initial) {
      after /= 2;
    }
    after = std::max(after, std::min(before, usage_.initial));
    if (after < before) {
      controller_->lower_unused_window(static_cast<double>(after));
    }
  }
  void validate_window(bool has_sent, double now_ms) {
    const bool is_full = in_flight() >= window();
    if (!is_full && !has_sent) {
      return;
    }
    const std::uint64_t out = next_ - first();
    if (first() >= usage_.end || is_full || (!usage_.was_full && out > usage_.most)) {
      usage_.was_full = is_full;
      usage_.most = out;
      usage_.end = next_;
    }
    if (may_grow()) {
      usage_.used = 0;
      usage_.checked_ms = now_ms;
      return;
    }
    usage_.used = std::max(usage_.used, out);
    if (!restarts_after_idle_ || now_ms - usage_.checked_ms < timer_.rto()) {
      return;
    }
    usage_.checked_ms = now_ms;
    const bool has_received =
        std::ranges::any_of(outstanding_, [](const auto& each) { return each.second.received; });
    if (state_ != State::kOpen || has_received) {
      return;
    }
    const std::uint64_t used = std::max(usage_.used, usage_.initial);
    usage_.used = 0;
    if (used < whole_window()) {
      controller_->lower_unused_window(static_cast<double>((whole_window() + used) / 2));
    }
  }

  void find_loss_without_sack(bool is_partial, std::uint64_t in_flight_before, double now_ms) {
    const bool starts = duplicates_ >= 3 && may_enter_recovery();
    const bool is_next_hole = is_partial && state_ == State::kRecovery;
    if ((starts || is_next_hole) && !outstanding_.begin()->second.lost) {
      ignores_window_ = true;
      mark_lost(outstanding_.begin()->second, in_flight_before, now_ms);
    }
  }

  void on_timer(double now_ms) {
    if (outstanding_.empty()) {
      timer_.expires_ms = kNever;
      controller_->on_idle_timeout(now_ms);
      return;
    }
    ++results_.timeouts;
    const std::uint64_t before = in_flight();
    const std::uint64_t lost_before = lost_;
    for (auto& [packet, known] : outstanding_) {
      // With RACK only the first, and those that were sent long enough ago.
      const bool is_due = !is_linux_ || packet == first() ||
                          now_ms - known.state.sent_ms >= rack_.rtt_ms + reordering_window_ms();
      if (!known.received && !known.lost && is_due) {
        known.lost = known.was_lost = true;
        ++lost_;
      }
    }
    rack_.timer_ms = kNever;
    probe_ = {};
    duplicates_ = 0;
    state_ = State::kTimedOut;
    recovery_end_ = next_;
    ignores_window_ = true;
    uses_prr_ = false;
    timer_.back_off();
    timer_.restart(now_ms);
    controller_->on_timeout({.now_ms = now_ms,
                             .in_flight = before,
                             .newly_lost = std::min(lost_ - lost_before, before),
                             .is_first = !has_unresolved_timeout_});
    has_unresolved_timeout_ = true;
  }

  // Proportional rate reduction (RFC 6937, section 3.1).
  void update_prr_window(std::uint64_t delivered) {
    prr_delivered_ += delivered;
    const std::uint64_t ssthresh = controller_window();
    const auto signed_of = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
    std::int64_t sndcnt = 0;
    if (pipe() > ssthresh) {
      const auto share =
          static_cast<std::int64_t>((prr_delivered_ * ssthresh + recover_fs_ - 1) / recover_fs_);
      sndcnt = std::max<std::int64_t>(share - signed_of(prr_out_), 0);
    } else {
      const std::int64_t limit =
          std::max(signed_of(prr_delivered_) - signed_of(prr_out_), signed_of(delivered)) + 1;
      sndcnt = std::min(signed_of(ssthresh - pipe()), limit);
    }
    prr_window_ = pipe() + static_cast<std::uint64_t>(sndcnt);
  }

  void send_all(double now_ms, PacketSink& sink) {
    const std::uint64_t end_before = next_;
    send_allowed(now_ms, sink);
    if (is_linux_) {
      validate_window(next_ > end_before, now_ms);
      if (next_ > end_before) {
        schedule_probe(now_ms);
      }
    }
  }

  void send_allowed(double now_ms, PacketSink& sink) {
    pacing_ms_ = kNever;
    for (;;) {
      const auto lost = lowest_lost();
      if (!lost && next_ >= data_end_) {
        app_limited_until_ = std::max<std::uint64_t>(delivered_ + in_flight(), 1);
        return;
      }
      const bool is_allowed = in_flight() < window() || (ignores_window_ && lost);
      if (!is_allowed) {
        window_full_until_ = next_;
        return;
      }
      if (!lost && next_ - first() >= receive_window_) {
        return;
      }
      if (last_send_ms_ + controller_->pacing_interval_ms() > now_ms) {
        pacing_ms_ = last_send_ms_ + controller_->pacing_interval_ms();
        return;
      }
      send(lost, now_ms, sink);
    }
  }

  void send(std::optional<std::uint64_t> retransmitted, double now_ms, PacketSink& sink) {
    const std::uint64_t packet = retransmitted ? *retransmitted : next_;
    const std::uint64_t others = in_flight();
    const bool was_empty = outstanding_.empty();
    if (others == 0) {
      first_sent_ms_ = delivered_ms_ = now_ms;
    }
    Outstanding& known = outstanding_[packet];
    known.state = {.sent_ms = now_ms,
                   .delivered = delivered_,
                   .delivered_ms = delivered_ms_,
                   .first_sent_ms = first_sent_ms_,
                   .tx_in_flight = others + 1,
                   .lost = lost_,
                   .is_app_limited = app_limited_until_ > 0 && delivered_ <= app_limited_until_,
                   .is_retransmission = is_linux_ && retransmitted.has_value()};
    known.transmission_number = results_.packets_sent++;
    known.lost = false;
    known.is_retransmission = retransmitted.has_value();
    if (retransmitted) {
      if (state_ != State::kOpen) {
        first_retransmission_ms_ = std::min(first_retransmission_ms_, now_ms);
      }
      ignores_window_ = false;
      ++results_.packets_retransmitted;
    } else {
      ++next_;
    }
    ++prr_out_;
    last_send_ms_ = now_ms;
    const bool is_first_again = is_linux_ && retransmitted && packet == first();
    if (was_empty || is_first_again || timer_.expires_ms == kNever) {
      timer_.restart(now_ms);
    }
    if (others == 0) {
      controller_->on_transmit_start(now_ms);
    }
    controller_->on_sent({.now_ms = now_ms,
                          .transmission_number = known.transmission_number,
                          .in_flight = others + 1,
                          .is_retransmission = retransmitted.has_value()});
    Segment segment;
    segment.sent_ms = now_ms;
    segment.sequence = packet;
    segment.transmission_number = known.transmission_number;
    segment.bytes = bytes_;
    segment.is_ecn_capable = is_ecn_capable_;
    if (asks_xcp_routers_) {
      segment.congestion = {controller_->cwnd(), timer_.srtt, controller_->xcp_demand_packets()};
    }
    sink.send(segment, now_ms);
  }

  bool has_sack_;
  bool is_linux_;
  bool keeps_state_;
  bool restarts_after_idle_;
  std::uint64_t receive_window_;
  std::uint32_t bytes_;
  bool is_ecn_capable_;
  bool asks_xcp_routers_;
  double rtt_offset_ms_;
  std::unique_ptr<CongestionController> controller_;

  std::map<std::uint64_t, Outstanding> outstanding_;
  std::uint64_t next_ = 0;
  std::uint64_t connection_start_ = 0;
  std::uint64_t data_end_ = 0;
  SlowTimer timer_;
  State state_ = State::kOpen;
  std::uint64_t recovery_end_ = 0;
  bool was_on_ = false;
  bool ignores_window_ = false;  // the next retransmission may exceed the window
  bool uses_prr_ = false;
  bool has_measured_ = false;  // since the connection started
  bool has_unresolved_timeout_ = false;
  bool is_first_partial_ = false;
  std::uint64_t duplicates_ = 0;
  std::uint64_t recover_fs_ = 1;
  std::uint64_t prr_delivered_ = 0;
  std::uint64_t prr_out_ = 0;
  std::uint64_t prr_window_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
  double delivered_ms_ = 0;
  double first_sent_ms_ = 0;
  std::uint64_t app_limited_until_ = 0;
  std::uint64_t window_full_until_ = 0;
  double last_send_ms_ = -kNever;
  double pacing_ms_ = kNever;
  double first_retransmission_ms_ = kNever;  // of this recovery
  double time_stamp_ms_ = 0;
  SlowReceiver receiver_;

  // RFC 8985. Tests last less than the five minutes in which Linux forgets a minimum RTT.
  struct {
    double min_rtt_ms = kNever;
    std::uint64_t sent_end = 0;  // one more than the last transmission that was delivered
    double rtt_ms = 0;
    std::uint64_t fack = 0;
    bool has_reordering = false;
    std::uint64_t multiple = 1;
    int persist = 0;
    std::optional<std::uint64_t> dsack_round;
    double timer_ms = kNever;
  } rack_;
  struct {
    double due_ms = kNever;
    bool is_out = false;
    bool repeats = false;
    std::uint64_t end = 0;
  } probe_;
  struct {
    std::uint64_t initial = 0;
    bool was_full = false;
    std::uint64_t most = 0;
    std::uint64_t end = 0;
    std::uint64_t used = 0;
    double checked_ms = 0;
  } usage_;
};

// A RemyCC over datagrams, without retransmission.
class SlowDatagrams final : public Endpoint {
 public:
  explicit SlowDatagrams(const EndpointSetting& setting)
      : remy_(*setting.table),
        bytes_(static_cast<std::uint32_t>(setting.packet_bytes)),
        rtt_offset_ms_(rtt_offset_ms(setting.measurement, setting.rtt_offset_key, setting.sender)) {
  }

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override {
    is_on_ = true;
    flow_packets_ = packets;
    begin_ = acknowledged_ = results_.packets_sent;
    resolved_ = 0;
    has_measured_ = false;
    last_send_ms_ = -kNever;
    remy_.start();
    act(now_ms, sink);
  }
  void switch_off(double) override { is_on_ = false; }
  void on_ack(const Segment& echo, const AckContent&, double now_ms, PacketSink& sink) override {
    if (!is_on_) {
      return;
    }
    if (echo.transmission_number >= begin_) {
      acknowledged_ = std::max(acknowledged_, echo.transmission_number + 1);
      const double offset_ms = has_measured_ ? rtt_offset_ms_ : 0;
      has_measured_ = true;
      remy_.acknowledge(echo.sent_ms, now_ms, now_ms - echo.sent_ms + offset_ms, 1);
    } else {
      remy_.acknowledge_earlier_period();
    }
    act(now_ms, sink);
  }
  double next_act_ms() const override {
    const bool has_more = !flow_packets_ || results_.packets_sent < begin_ + *flow_packets_;
    const bool has_room = results_.packets_sent < acknowledged_ + remy_.window_packets();
    return is_on_ && has_more && has_room ? last_send_ms_ + remy_.intersend_ms() : kNever;
  }
  void act(double now_ms, PacketSink& sink) override {
    while (next_act_ms() <= now_ms) {
      last_send_ms_ = now_ms;
      Segment segment;
      segment.sent_ms = now_ms;
      segment.bytes = bytes_;
      segment.sequence = segment.transmission_number = results_.packets_sent++;
      sink.send(segment, now_ms);
    }
  }
  bool is_done() const override { return is_on_ && flow_packets_ && resolved_ == *flow_packets_; }
  Pace pace() const override {
    return {static_cast<double>(remy_.window_packets()), remy_.intersend_ms()};
  }
  void on_packet_lost(const Segment& segment, double) override {
    resolved_ += segment.transmission_number >= begin_ ? 1 : 0;
  }
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override {
    ++results_.packets_received;
    results_.packets_marked += segment.is_marked ? 1 : 0;
    on_packet_lost(segment, now_ms);
    return AckContent{};
  }

 private:
  BasicController remy_;
  std::uint32_t bytes_;
  double rtt_offset_ms_;
  bool has_measured_ = false;  // since the on period started
  bool is_on_ = false;
  std::optional<std::uint64_t> flow_packets_;
  std::uint64_t begin_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t resolved_ = 0;
  double last_send_ms_ = -kNever;
};

// A RemyCC as in ns-2: retransmits a missing packet once, and the first missing one at timeouts.
class SlowNs2 final : public Endpoint {
 public:
  explicit SlowNs2(const EndpointSetting& setting)
      : remy_(*setting.table),
        bytes_(static_cast<std::uint32_t>(setting.packet_bytes)),
        rtt_offset_ms_(rtt_offset_ms(setting.measurement, setting.rtt_offset_key, setting.sender)) {
    timer_.maximum_ms = 1e300;
    timer_.g_ms = 100;
    timer_.unit_ms = 1000;
  }

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override {
    data_end_ = packets ? next_ + *packets : kEndless;
    reset();
    plan();
    act(now_ms, sink);
  }
  void switch_off(double) override {
    data_end_ = next_;
    reset();
    plan();
  }

  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override {
    latest_ = std::max(latest_, echo.transmission_number + 1);
    const double offset_ms = has_measured_ ? rtt_offset_ms_ : 0;
    results_.rtt.sampled(now_ms - echo.sent_ms, now_ms);
    if (content.cumulative > cumulative_) {
      cumulative_ = content.cumulative;
      timer_.expires_ms = is_done() ? kNever : now_ms + timer_.rto();
    }
    timer_.sample(now_ms - echo.sent_ms + offset_ms);
    for (highest_ = std::max(highest_, cumulative_); highest_ < echo.sequence; ++highest_) {
      missing_.insert(highest_);
    }
    highest_ = std::max(highest_, echo.sequence + 1);
    if (echo.transmission_number >= begin_) {
      // As in ns-2, times are in seconds, and the last bit of a received time is rounded at random.
      const double sent_s = echo.sent_ms / 1000;
      double received_s = sent_s + (now_ms - echo.sent_ms) / 1000;
      if (scramble(echo.transmission_number + kGoldenRatio) % 16 < 3) {
        received_s = std::nextafter(received_s, kNever);
      }
      remy_.acknowledge(sent_s * 1000, received_s * 1000,
                        received_s * 1000 - sent_s * 1000 + offset_ms, 1);
      has_measured_ = true;
    } else {
      remy_.acknowledge_earlier_period();
    }
    plan();
    act(now_ms, sink);
  }

  double next_act_ms() const override { return std::min(opportunity_ms_, timer_.expires_ms); }

  void act(double now_ms, PacketSink& sink) override {
    if (timer_.expires_ms <= now_ms && cumulative_ == next_) {
      timer_.expires_ms = kNever;
    }
    if (timer_.expires_ms <= now_ms) {
      ++results_.timeouts;
      timer_.back_off();
      timer_.restart(now_ms);
      send(cumulative_, now_ms, sink);
    }
    while (opportunity_ms_ <= now_ms) {
      if (may_send()) {
        const std::uint64_t packet = missing_.empty() ? next_ : *missing_.begin();
        missing_.erase(packet);
        send(packet, now_ms, sink);
      }
      plan();
    }
  }
  bool is_done() const override { return cumulative_ >= data_end_; }
  Pace pace() const override {
    return {static_cast<double>(remy_.window_packets()), remy_.intersend_ms()};
  }
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override {
    ++results_.packets_received;
    results_.packets_marked += segment.is_marked ? 1 : 0;
    const std::uint64_t advance = receiver_.add(segment.sequence);
    if (advance > 0) {
      results_.packets_in_order += advance;
      results_.rtt.handed_on();
    }
    AckContent content;
    content.received_ms = now_ms;
    content.cumulative = receiver_.next;
    receiver_.report(content);
    content.bytes = 40 + 8 * content.blocks;
    content.blocks = 0;
    return content;
  }

 private:
  // As ns-2's application does at both ends of an on period.
  void reset() {
    begin_ = results_.packets_sent;
    has_measured_ = false;
    last_send_ms_ = -kNever;
    remy_.start();
  }
  bool may_send() const {
    const bool has_room = results_.packets_sent < latest_ + remy_.window_packets();
    return has_room && (!missing_.empty() || next_ < data_end_);
  }
  // Called after each event except a timeout.
  void plan() { opportunity_ms_ = may_send() ? last_send_ms_ + remy_.intersend_ms() : kNever; }
  void send(std::uint64_t packet, double now_ms, PacketSink& sink) {
    results_.packets_retransmitted += packet < next_ ? 1 : 0;
    next_ = std::max(next_, packet + 1);
    Segment segment;
    segment.sent_ms = last_send_ms_ = now_ms;
    segment.sequence = packet;
    segment.transmission_number = results_.packets_sent++;
    segment.bytes = bytes_;
    if (timer_.expires_ms == kNever) {
      timer_.restart(now_ms);
    }
    sink.send(segment, now_ms);
  }

  BasicController remy_;
  std::uint32_t bytes_;
  double rtt_offset_ms_;
  bool has_measured_ = false;  // since the on period started
  SlowTimer timer_;
  std::set<std::uint64_t> missing_;
  std::uint64_t next_ = 0;
  std::uint64_t data_end_ = 0;
  std::uint64_t cumulative_ = 0;
  std::uint64_t highest_ = 0;
  std::uint64_t latest_ = 0;
  std::uint64_t begin_ = 0;
  double last_send_ms_ = -kNever;
  double opportunity_ms_ = kNever;
  SlowReceiver receiver_;
};

}  // namespace

std::unique_ptr<Endpoint> slow_endpoint(const Choice& choice, EndpointSetting setting) {
  const ParameterValues values("transport", find_transport(choice.name).variants, choice);
  if (choice.name == "datagram") {
    return !setting.measurement.needs_datagrams() ? std::make_unique<SlowDatagrams>(setting)
                                                  : nullptr;
  }
  if (choice.name == "ns2") {
    return std::make_unique<SlowNs2>(setting);
  }
  if (!setting.retransmits || values["delayed_ack_ms"] > 0) {
    return nullptr;
  }
  if (values.variant() == "rfc" || values.variant() == "newreno" || values.variant() == "linux") {
    return std::make_unique<SlowTcp>(values, std::move(setting));
  }
  return nullptr;
}

}  // namespace remy
