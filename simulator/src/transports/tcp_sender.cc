#include "transports/tcp_sender.h"

#include <algorithm>
#include <cmath>

namespace remy {

TcpSender::TcpSender(const TcpSettings& settings, std::unique_ptr<CongestionController> controller)
    : settings_(settings),
      controller_(std::move(controller)),
      exchanges_(settings.retransmits && settings.delayed_ack_ms == 0 &&
                 !settings.measures_by_time_stamps),
      exchanges_gaps_(exchanges_ && settings.uses_sack && !settings.samples_rates),
      reads_whole_acks_(controller_->needs().full_acks),
      is_plain_(exchanges_gaps_ && !reads_whole_acks_ && !controller_->needs().on_sent &&
                settings.rtt_offset_ms == 0 && !settings.asks_xcp_routers &&
                !settings.finds_lost_repetitions && !settings.reduces_in_proportion &&
                !settings.has_ns2_partial_acks && !settings.has_ns2_linux_recovery &&
                static_cast<double>(settings.receive_window_packets) >= kMaximumWindow),
      timer_(settings.timeouts) {
  next_.sender = settings.sender;
  next_.bytes = settings.packet_bytes;
  next_.is_ecn_capable = settings.is_ecn_capable;
}

void TcpSender::switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) {
  if (!has_started_ || !settings_.keeps_state) {
    restart_connection(now_ms);
  }
  has_started_ = true;
  if (!settings_.retransmits) {
    scoreboard_.abandon();
    connection_start_ = scoreboard_.end();
    resolved_ = 0;
  }
  data_end_ = packets ? scoreboard_.end() + *packets : kEndless;
  send_what_may_leave(now_ms, sink);
  look_for_exchanges();
}

void TcpSender::switch_off(double) {
  data_end_ = scoreboard_.end();
  pacing_ms_ = scoreboard_.has_lost() ? pacing_ms_ : kNever;
}

void TcpSender::restart_connection(double now_ms) {
  end_exchanges();
  scoreboard_.abandon();
  connection_start_ = scoreboard_.end();
  reassembly_.start_at(connection_start_);
  time_stamp_ms_ = 0;
  unacknowledged_ = 0;
  unacknowledged_marks_ = 0;
  ack_due_ms_ = kNever;
  timer_.forget();
  phase_ = Phase::kOpen;
  recovery_end_ = connection_start_;
  must_repeat_ = false;
  is_reducing_ = false;
  timed_out_again_ = false;
  duplicates_ = 0;
  repetitions_.clear();
  application_limited_until_ = 0;
  window_limited_end_ = 0;
  offset_ms_ = 0;
  last_send_ms_ = -kNever;
  pacing_ms_ = kNever;
  controller_->start(now_ms);
}

// After all that may end, or begin, what on_round_trip() relies on. What comes in order while
// nothing is missing is beyond all recoveries, too.
[[gnu::always_inline]] inline void TcpSender::look_for_exchanges() {
  end_exchanges();
  const std::uint64_t next = scoreboard_.first();
  if (exchanges_ && phase_ == Phase::kOpen && scoreboard_.is_in_order() && duplicates_ == 0 &&
      halving_window_ == 0 && repetitions_.empty() &&
      (exchanges_gaps_ || (next == reassembly_.in_order_end() && !reassembly_.has_gap()))) {
    if (!is_plain_) {
      exchangeable_with_care_ = next;
    } else if (timer_.is_usual()) {
      exchangeable_ = next;
    }
  }
}

// Before all that asks what the receiver has.
[[gnu::always_inline]] inline void TcpSender::end_exchanges() {
  if (!exchanges_gaps_ && exchangeable_with_care_ != kEndless) {
    reassembly_.advance_to(exchangeable_with_care_);
  }
  exchangeable_ = exchangeable_with_care_ = kEndless;
}

double TcpSender::on_round_trip(const Segment& segment, double received_ms, double now_ms,
                                PacketSink& sink) {
  const std::uint64_t next = segment.sequence + 1;
  if (segment.sequence != exchangeable_ || next == scoreboard_.end()) [[unlikely]] {
    return is_plain_ ? exchanged_around_gap(segment, received_ms, now_ms, sink)
                     : exchanged_with_care(segment, received_ms, now_ms, sink);
  }
  exchangeable_ = next;
  scoreboard_.advance_to(next);
  const double rtt_ms = now_ms - segment.sent_ms;
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  ++results_.packets_in_order;
  results_.rtt.handed_on_and_sampled(rtt_ms, now_ms);
  ++delivered_;
  timer_.progress(rtt_ms, now_ms);
  controller_->on_in_order_ack(now_ms, rtt_ms, segment.sequence < window_limited_end_);
  const std::uint64_t window = controller_window();
  if (window > scoreboard_.room() || controller_->pacing_interval_ms() > 0) [[unlikely]] {
    send_what_may_leave(now_ms, sink);
    return next_act_ms();
  }
  pacing_ms_ = kNever;
  send_in_order(std::min(next + window, data_end_), now_ms, sink);
  return std::min(timer_.expiry_ms(), controller_->next_tick_ms());
}

// The same of a transport that is not plain.
double TcpSender::exchanged_with_care(const Segment& segment, double received_ms, double now_ms,
                                      PacketSink& sink) {
  if (segment.sequence != exchangeable_with_care_) {
    return exchanged_around_gap(segment, received_ms, now_ms, sink);
  }
  ++exchangeable_with_care_;
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  ++results_.packets_in_order;
  results_.rtt.handed_on();
  scoreboard_.advance_to(segment.sequence + 1);
  results_.rtt.sampled(now_ms - segment.sent_ms, now_ms);
  const double rtt_ms = measured_ms(now_ms - segment.sent_ms);
  ++delivered_;
  timer_.sample(rtt_ms);
  restart_timer_at_progress(false, now_ms);
  if (reads_whole_acks_) {
    tell_controller(
        {
            .sent_ms = segment.sent_ms,
            .received_ms = received_ms,
            .rtt_ms = rtt_ms,
            .transmission_number = segment.transmission_number,
            .first_before = segment.sequence,
            .prior_in_flight = in_flight() + 1,
            .acknowledged = 1,
            .delivered = 1,
            .marked = segment.is_marked ? 1U : 0U,
            .feedback_packets = segment.congestion.feedback_packets,
            .newest = settings_.samples_rates ? &scoreboard_.at(segment.sequence) : nullptr,
        },
        now_ms);
  } else {
    controller_->on_in_order_ack(now_ms, rtt_ms, segment.sequence < window_limited_end_);
  }
  send_what_may_leave(now_ms, sink);
  return next_act_ms();
}

// What send_what_may_leave() does where nothing is missing, something is in flight, nothing is
// paced, and nobody is told of what leaves. There is room for packets up to `end`.
[[gnu::always_inline]] inline void TcpSender::send_in_order(std::uint64_t end, double now_ms,
                                                            PacketSink& sink) {
  while (scoreboard_.end() < end) {
    const std::uint64_t packet = scoreboard_.end();
    send_next(packet, scoreboard_.send_in_room(), now_ms, sink);
  }
  if (scoreboard_.end() < data_end_) {
    window_limited_end_ = scoreboard_.end();
  }
}

void TcpSender::on_ack(const Segment& echo, const AckContent& content, double now_ms,
                       PacketSink& sink) {
  if (echo.sequence < connection_start_ ||
      (settings_.has_ns2_linux_recovery && content.cumulative < scoreboard_.first())) {
    return;
  }
  if (!settings_.retransmits) {
    acknowledge_highest(echo, content, now_ms);
    send_what_may_leave(now_ms, sink);
    return;
  }
  const std::uint64_t prior_in_flight = in_flight();
  const std::uint64_t first_before = scoreboard_.first();
  std::uint64_t delivered = 0;
  const Scoreboard::Transmission* newest = nullptr;
  if (settings_.samples_rates) {
    acknowledge(content, [&](const Scoreboard::Transmission& transmission) {
      ++delivered;
      if (newest == nullptr || transmission.transmission_number > newest->transmission_number) {
        newest = &transmission;
      }
    });
  } else {
    acknowledge(content, [&](const Scoreboard::Transmission&) { ++delivered; });
  }
  const News news = {
      .sent_ms = settings_.measures_by_time_stamps ? content.time_stamp_ms : echo.sent_ms,
      .received_ms = content.received_ms,
      .rtt_ms = 0,
      .transmission_number = echo.transmission_number,
      .first_before = first_before,
      .prior_in_flight = prior_in_flight,
      .acknowledged = scoreboard_.first() - first_before,
      .delivered = delivered,
      .marked = content.marked,
      .feedback_packets = content.feedback_packets,
      .newest = newest,
  };
  take_with_care(news, content.cumulative == first_before, now_ms, sink);
}

// The same around a gap, and of the last packet in flight. What the receiver has is what the
// scoreboard has.
double TcpSender::exchanged_around_gap(const Segment& segment, double received_ms, double now_ms,
                                       PacketSink& sink) {
  if (!exchanges_gaps_ || segment.sequence < connection_start_) {
    return kDeclined;
  }
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  const std::uint64_t prior_in_flight = scoreboard_.in_flight();
  const std::uint64_t first_before = scoreboard_.first();
  const bool is_news = scoreboard_.receive(segment.sequence);
  const std::uint64_t acknowledged = scoreboard_.first() - first_before;
  if (acknowledged > 0) {
    results_.packets_in_order += acknowledged;
    results_.rtt.handed_on();
  }
  // Made where it is taken, or it goes through memory for one that is not plain.
  const auto news = [&]() -> News {
    return {
        .sent_ms = segment.sent_ms,
        .received_ms = received_ms,
        .rtt_ms = 0,
        .transmission_number = segment.transmission_number,
        .first_before = first_before,
        .prior_in_flight = prior_in_flight,
        .acknowledged = acknowledged,
        .delivered = is_news ? 1U : 0U,
        .marked = segment.is_marked ? 1U : 0U,
        .feedback_packets = segment.congestion.feedback_packets,
        .newest = nullptr,
    };
  };
  if (is_plain_) {
    take<true>(news(), false, now_ms, sink);
  } else {
    take_with_care(news(), false, now_ms, sink);
  }
  return next_act_ms();
}

[[gnu::noinline]] void TcpSender::take_with_care(const News& news, bool repeats_last, double now_ms,
                                                 PacketSink& sink) {
  take<false>(news, repeats_last, now_ms, sink);
}

template <bool kIsPlain>
[[gnu::always_inline]] inline void TcpSender::take(News news, bool repeats_last, double now_ms,
                                                   PacketSink& sink) {
  const bool uses_sack = kIsPlain || settings_.uses_sack;
  const double rtt_ms = now_ms - news.sent_ms;
  news.rtt_ms = kIsPlain ? rtt_ms : measured_ms(rtt_ms);
  if (!kIsPlain) {
    newest_serial_ = std::max(newest_serial_, news.transmission_number);
  }
  if (!uses_sack) {
    news.delivered = count_duplicates(repeats_last, news.acknowledged, news.delivered);
  }
  const bool was_in_recovery = phase_ == Phase::kRecovery;
  const bool leaves = phase_ != Phase::kOpen && scoreboard_.first() >= recovery_end_;
  if (kIsPlain ? news.delivered > 0
               : takes_sample(news.acknowledged, news.delivered, was_in_recovery && !leaves)) {
    timer_.sample(news.rtt_ms);
    results_.rtt.sampled(rtt_ms, now_ms);
  } else if (news.acknowledged > 0) {
    results_.rtt.sampled(results_.rtt.last_ms(), now_ms);
  }
  delivered_ += news.delivered;
  if (leaves) {
    leave_recovery(news.prior_in_flight, now_ms);
  }
  if (!uses_sack) {
    find_losses_without_sack(news.acknowledged > 0 && was_in_recovery, news.prior_in_flight,
                             now_ms);
  } else if (kIsPlain) {
    scoreboard_.find_losses(settings_.duplicate_threshold,
                            [this, before = news.prior_in_flight, now_ms](std::uint64_t packet) {
                              found_lost(packet, before, now_ms);
                            });
  } else if (scoreboard_.has_received() || !repetitions_.empty()) {
    find_losses(news.prior_in_flight, now_ms);
  }
  if (news.acknowledged > 0) {
    restart_timer_at_progress(was_in_recovery, now_ms);
  } else if (!kIsPlain && settings_.has_ns2_linux_recovery) {
    timer_.restart(now_ms);
  }
  tell_controller(news, now_ms);
  if (!kIsPlain && is_reducing_) {
    reduce_in_proportion(news.delivered);
  }
  if (kIsPlain && !scoreboard_.is_empty() && scoreboard_.in_flight() > 0 &&
      controller_->pacing_interval_ms() == 0) {
    send_at_once(now_ms, sink);
  } else {
    send_what_may_leave(now_ms, sink);
  }
  look_for_exchanges();
}

[[gnu::always_inline]] inline void TcpSender::restart_timer_at_progress(bool was_in_recovery,
                                                                        double now_ms) {
  timed_out_again_ = false;
  if (scoreboard_.first() > recovery_end_) {
    timer_.end_back_off();
  }
  restart_timer(was_in_recovery, now_ms);
}

[[gnu::always_inline]] inline void TcpSender::tell_controller(const News& news, double now_ms) {
  if (!reads_whole_acks_) {
    brief_ack_.now_ms = now_ms;
    brief_ack_.rtt_ms = news.rtt_ms;
    brief_ack_.newly_acked = news.acknowledged;
    brief_ack_.newly_delivered = news.delivered;
    brief_ack_.in_recovery = phase_ == Phase::kRecovery;
    brief_ack_.is_cwnd_limited = news.first_before < window_limited_end_;
    controller_->on_ack(brief_ack_);
    return;
  }
  AckEvent ack{.now_ms = now_ms,
               .sent_ms = news.sent_ms,
               .received_ms = news.received_ms,
               .rtt_ms = news.rtt_ms,
               .transmission_number = news.transmission_number,
               .newly_acked = news.acknowledged,
               .newly_delivered = news.delivered,
               .newly_marked = news.marked,
               .total_delivered = delivered_,
               .total_lost = lost_,
               .prior_in_flight = news.prior_in_flight,
               .in_flight = in_flight(),
               .in_recovery = phase_ == Phase::kRecovery,
               .is_cwnd_limited = news.first_before < window_limited_end_,
               .xcp_feedback_packets = news.feedback_packets};
  if (news.newest != nullptr) {
    sample_rate(*news.newest, ack);
  }
  controller_->on_ack(ack);
}

template <class Delivered>
void TcpSender::acknowledge(const AckContent& content, Delivered delivered) {
  scoreboard_.acknowledge(content.cumulative, delivered);
  for (std::uint32_t block = 0; block < content.blocks; ++block) {
    scoreboard_.acknowledge(content.sacks[block], delivered);
  }
}

// Nothing is repaired: a packet shows that those before it, which were not received, are lost.
void TcpSender::acknowledge_highest(const Segment& echo, const AckContent& content, double now_ms) {
  if (echo.sequence < scoreboard_.first()) {
    return;
  }
  AckEvent ack{.now_ms = now_ms, .prior_in_flight = in_flight()};
  for (std::uint64_t packet = scoreboard_.first(); packet < echo.sequence; ++packet) {
    ++lost_;
    notify(packet, packet == scoreboard_.first(), ack.prior_in_flight, ack.now_ms);
  }
  const Scoreboard::Transmission received = scoreboard_.at(echo.sequence);
  ack.newly_acked = echo.sequence + 1 - scoreboard_.first();
  scoreboard_.acknowledge(echo.sequence + 1, [](const Scoreboard::Transmission&) {});
  ++delivered_;
  ack.newly_delivered = 1;
  ack.transmission_number = echo.transmission_number;
  ack.sent_ms = echo.sent_ms;
  ack.received_ms = content.received_ms;
  ack.rtt_ms = measured_ms(ack.now_ms - echo.sent_ms);
  results_.rtt.sampled(ack.now_ms - echo.sent_ms, ack.now_ms);
  if (settings_.samples_rates) {
    sample_rate(received, ack);
  }
  ack.newly_marked = content.marked;
  ack.total_delivered = delivered_;
  ack.total_lost = lost_;
  ack.in_flight = in_flight();
  ack.is_cwnd_limited = echo.sequence < window_limited_end_;
  controller_->on_ack(ack);
}

inline bool TcpSender::takes_sample(std::uint64_t acknowledged, std::uint64_t delivered,
                                    bool is_in_recovery) const {
  if (!settings_.measures_by_time_stamps) {
    return delivered > 0;
  }
  return settings_.has_ns2_linux_recovery ||
         (acknowledged > 0 && !(settings_.has_ns2_partial_acks && is_in_recovery));
}

// The first two duplicates let a new packet leave each (RFC 3042), the third starts recovery where
// that may be, and in recovery all count.
std::uint64_t TcpSender::countable_duplicates() const {
  if (phase_ == Phase::kTimedOut && !settings_.has_ns2_partial_acks) {
    return 0;
  }
  const std::uint64_t bound = phase_ == Phase::kRecovery     ? kEndless
                              : may_start_recovery_by_acks() ? settings_.duplicate_threshold
                                                             : settings_.duplicate_threshold - 1;
  return std::min(bound, scoreboard_.in_flight());
}

// RFC 6582, section 3.2, step 2: unless what duplicates repeat lies within a recovery that was;
// these may be of packets sent again needlessly.
bool TcpSender::may_start_recovery_by_acks() const {
  return phase_ == Phase::kOpen &&
         (scoreboard_.first() > recovery_end_ || recovery_end_ == connection_start_);
}

// RFC 6582: a duplicate ACK says that a packet has left the network, but not which.
std::uint64_t TcpSender::count_duplicates(bool repeats_last, std::uint64_t acknowledged,
                                          std::uint64_t delivered) {
  if (acknowledged > 0) {
    // The packet that was sent again, and those behind it that duplicates have told of.
    const std::uint64_t known = std::min(duplicates_, acknowledged - 1);
    duplicates_ = phase_ == Phase::kRecovery ? duplicates_ - known : 0;
    if (settings_.has_ns2_partial_acks && phase_ == Phase::kRecovery) {
      duplicates_ = std::max<std::uint64_t>(duplicates_, 1);
    }
    return acknowledged - known;
  }
  if (repeats_last && duplicates_ < countable_duplicates()) {
    ++duplicates_;
    return 1;
  }
  return delivered;
}

// draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3: over the longer of the times that the
// packets since took to be sent and to be acknowledged.
void TcpSender::sample_rate(const Scoreboard::Transmission& newest, AckEvent& ack) {
  ack.packet = newest.state;
  delivered_ms_ = ack.now_ms;
  first_sent_ms_ = newest.state.sent_ms;
  const double sending_ms = newest.state.sent_ms - newest.state.first_sent_ms;
  const double acknowledging_ms = ack.now_ms - newest.state.delivered_ms;
  ack.delivery_interval_ms = std::max(sending_ms, acknowledging_ms);
  if (ack.delivery_interval_ms > 0) {
    ack.delivery_rate_per_ms =
        static_cast<double>(delivered_ - newest.state.delivered) / ack.delivery_interval_ms;
  }
}

// RFC 6675, section 5: "RecoveryPoint" is what was sent when the first loss was found.
void TcpSender::start_recovery() {
  phase_ = Phase::kRecovery;
  recovery_end_ = scoreboard_.end();
  is_first_partial_ = true;
  must_repeat_ = !settings_.has_ns2_linux_recovery;
  halving_window_ = settings_.has_ns2_linux_recovery ? controller_window() : 0;
}

void TcpSender::leave_recovery(std::uint64_t in_flight_before, double now_ms) {
  phase_ = Phase::kOpen;
  must_repeat_ = false;
  is_reducing_ = false;
  duplicates_ = 0;
  if (settings_.has_ns2_linux_recovery) {
    halving_window_ = 0;
    scoreboard_.forget_received();
    repetitions_.clear();
    return;
  }
  // What was sent in recovery and is known to be lost starts another.
  if (scoreboard_.first() < scoreboard_.loss_end()) {
    const std::uint64_t packet = scoreboard_.first();
    start_recovery();
    must_repeat_ = scoreboard_.is_lost(packet);
    notify(packet, true, in_flight_before, now_ms);
  }
}

void TcpSender::notify(std::uint64_t packet, bool starts_recovery, std::uint64_t in_flight_before,
                       double now_ms) {
  const Scoreboard::Transmission& transmission = scoreboard_.at(packet);
  controller_->on_loss({.now_ms = now_ms,
                        .transmission_number = transmission.transmission_number,
                        .in_flight = in_flight_before,
                        .starts_recovery = starts_recovery,
                        .packet = transmission.state});
  if (starts_recovery && settings_.retransmits) {
    // A controller that lowers nothing keeps to its own bound in recovery, too.
    is_reducing_ = settings_.reduces_in_proportion && window() < in_flight_before;
    reduction_start_packets_ = std::max<std::uint64_t>(in_flight_before, 1);
    reduction_delivered_ = 0;
    reduction_sent_ = 0;
    reduction_window_ = 0;
    timer_.restart(now_ms);
  }
}

void TcpSender::find_losses(std::uint64_t in_flight_before, double now_ms) {
  const auto found = [&](std::uint64_t packet) { found_lost(packet, in_flight_before, now_ms); };
  if (settings_.has_ns2_linux_recovery) {
    scoreboard_.find_losses_by_distance(settings_.duplicate_threshold + 1, found);
  } else {
    scoreboard_.find_losses(settings_.duplicate_threshold, found);
  }
  // RFC 8985, section 6.2, where packets keep their order: lost is what left before a packet that
  // was received.
  while (!repetitions_.empty() &&
         repetitions_.front().transmission_number + settings_.repetition_threshold <
             newest_serial_) {
    const auto [packet, transmission_number] = repetitions_.front();
    repetitions_.pop_front();
    if (packet >= scoreboard_.first() && !scoreboard_.is_sacked(packet) &&
        !scoreboard_.is_lost(packet) &&
        scoreboard_.at(packet).transmission_number == transmission_number) {
      scoreboard_.lose(packet);
      found_lost(packet, in_flight_before, now_ms);
    }
  }
}

void TcpSender::found_lost(std::uint64_t packet, std::uint64_t in_flight_before, double now_ms) {
  ++lost_;
  const bool starts =
      settings_.has_ns2_linux_recovery ? phase_ != Phase::kRecovery : phase_ == Phase::kOpen;
  if (starts) {
    start_recovery();
  }
  notify(packet, starts, in_flight_before, now_ms);
}

// RFC 6582, section 3.2.
void TcpSender::find_losses_without_sack(bool is_partial, std::uint64_t in_flight_before,
                                         double now_ms) {
  // Step 2: three duplicates start fast recovery.
  const bool starts = duplicates_ >= settings_.duplicate_threshold && may_start_recovery_by_acks();
  // Step 3: an ACK of some of what was sent before shows the next loss.
  if (!starts && !(is_partial && phase_ == Phase::kRecovery)) {
    return;
  }
  const std::uint64_t packet = scoreboard_.first();
  if (scoreboard_.is_lost(packet)) {
    return;
  }
  scoreboard_.lose(packet);
  duplicates_ = std::min(duplicates_, scoreboard_.in_flight());
  must_repeat_ = true;
  found_lost(packet, in_flight_before, now_ms);
}

// RFC 6298, section 5.2 and 5.3; RFC 6582, section 3.2, step 3: in recovery without SACK only at
// the first partial ACK.
[[gnu::always_inline]] inline void TcpSender::restart_timer(bool was_in_recovery, double now_ms) {
  if (scoreboard_.is_empty() && !settings_.notes_idleness) {
    timer_.stop();
    return;
  }
  const bool is_partial = was_in_recovery && phase_ == Phase::kRecovery && !settings_.uses_sack;
  if (!is_partial || is_first_partial_ || !settings_.is_impatient) {
    timer_.restart(now_ms);
  }
  is_first_partial_ = is_first_partial_ && !is_partial;
}

// RFC 6298, sections 5.4 to 5.6; RFC 5681, section 3.1: all in flight is taken for lost, and slow
// start sends it again; what is selectively acknowledged is not (RFC 6675, section 5.1).
void TcpSender::timer_expired(double now_ms) {
  if (scoreboard_.is_empty()) {
    timer_.stop();
    controller_->on_idle_timeout(now_ms);
    return;
  }
  ++results_.timeouts;
  const std::uint64_t before = in_flight();
  lost_ += scoreboard_.lose_all();
  duplicates_ = 0;
  repetitions_.clear();
  halving_window_ = 0;
  phase_ = Phase::kTimedOut;
  recovery_end_ = scoreboard_.end();
  must_repeat_ = true;
  is_reducing_ = false;
  timer_.back_off();
  timer_.restart(now_ms);
  controller_->on_timeout({.now_ms = now_ms, .in_flight = before, .is_first = !timed_out_again_});
  timed_out_again_ = true;
}

// RFC 6937, section 3.1.
void TcpSender::reduce_in_proportion(std::uint64_t delivered) {
  reduction_delivered_ += delivered;
  const std::uint64_t pipe = scoreboard_.in_flight();
  const std::uint64_t target = controller_window();
  std::uint64_t allowed = 0;
  if (pipe > target) {
    // sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
    const std::uint64_t due =
        (reduction_delivered_ * target + reduction_start_packets_ - 1) / reduction_start_packets_;
    allowed = due - std::min(due, reduction_sent_);
  } else {
    // limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS; sndcnt = MIN(ssthresh - pipe,
    // limit)
    const std::uint64_t unused =
        reduction_delivered_ - std::min(reduction_delivered_, reduction_sent_);
    allowed = std::min(target - pipe, std::max(unused, delivered) + 1);
  }
  reduction_window_ = pipe + allowed;
}

double TcpSender::next_act_ms() const {
  return std::min({pacing_ms_, timer_.expiry_ms(), controller_->next_tick_ms()});
}

void TcpSender::act(double now_ms, PacketSink& sink) {
  if (controller_->next_tick_ms() <= now_ms) {
    controller_->on_tick(now_ms);
  }
  if (timer_.expiry_ms() <= now_ms) {
    timer_expired(now_ms);
  }
  send_what_may_leave(now_ms, sink);
  look_for_exchanges();
}

inline std::uint64_t TcpSender::controller_window() const {
  const double window = std::min(kMaximumWindow, controller_->cwnd());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(static_cast<std::int64_t>(window), 1));
}

inline std::uint64_t TcpSender::window() const {
  return is_reducing_ ? reduction_window_ : std::max(controller_window(), halving_window_);
}

void TcpSender::send_what_may_leave(double now_ms, PacketSink& sink) {
  pacing_ms_ = kNever;
  if (halving_window_ > 0) [[unlikely]] {
    halving_window_ = std::min(halving_window_, in_flight() + 1);
  }
  const std::uint64_t burst_end = settings_.has_ns2_partial_acks && phase_ == Phase::kRecovery
                                      ? results_.packets_sent + kNs2Burst + (must_repeat_ ? 1 : 0)
                                      : kEndless;
  while (results_.packets_sent < burst_end) {
    const bool can_repeat = scoreboard_.has_lost();
    const bool has_data = scoreboard_.end() < data_end_;
    if (!can_repeat && !has_data) {
      application_limited_until_ = std::max<std::uint64_t>(delivered_ + in_flight(), 1);
      return;
    }
    if (in_flight() >= window() && !(must_repeat_ && can_repeat)) {
      window_limited_end_ = scoreboard_.end();
      return;
    }
    if (!can_repeat &&
        scoreboard_.end() - scoreboard_.first() >= settings_.receive_window_packets) {
      return;
    }
    if (const double next_ms = last_send_ms_ + controller_->pacing_interval_ms();
        next_ms > now_ms) {
      pacing_ms_ = next_ms;
      return;
    }
    send_packet(can_repeat, now_ms, sink);
    if (halving_window_ > 0) [[unlikely]] {
      halving_window_ = std::min(halving_window_, std::max<std::uint64_t>(in_flight(), 2) - 1);
    }
  }
}

// The same of a plain transport where something is in flight and nothing is paced.
[[gnu::always_inline]] inline void TcpSender::send_at_once(double now_ms, PacketSink& sink) {
  pacing_ms_ = kNever;
  const std::uint64_t window = controller_window();
  const std::uint64_t in_flight = scoreboard_.in_flight();
  std::uint64_t room = window - std::min(window, in_flight);
  if (must_repeat_ && scoreboard_.has_lost()) {
    room = std::max<std::uint64_t>(room, 1);
  }
  for (; room > 0 && scoreboard_.has_lost(); --room) {
    must_repeat_ = false;
    ++results_.packets_retransmitted;
    const std::uint64_t packet = scoreboard_.first_lost();
    send_next(packet, scoreboard_.repeat(packet), now_ms, sink);
  }
  for (; room > 0; --room) {
    const std::uint64_t packet = scoreboard_.end();
    if (packet >= data_end_ || packet - scoreboard_.first() >= settings_.receive_window_packets) {
      return;
    }
    send_next(packet, scoreboard_.send(), now_ms, sink);
  }
  if (scoreboard_.has_lost() || scoreboard_.end() < data_end_) {
    window_limited_end_ = scoreboard_.end();
  }
}

[[gnu::always_inline]] inline void TcpSender::send_next(std::uint64_t packet,
                                                        Scoreboard::Transmission& transmission,
                                                        double now_ms, PacketSink& sink) {
  next_.sent_ms = now_ms;
  next_.sequence = packet;
  next_.transmission_number = transmission.transmission_number = next_serial_++;
  ++results_.packets_sent;
  last_send_ms_ = now_ms;
  sink.send(next_, now_ms);
}

[[gnu::always_inline]] inline void TcpSender::send_packet(bool is_repetition, double now_ms,
                                                          PacketSink& sink) {
  const std::uint64_t packet = is_repetition ? scoreboard_.first_lost() : scoreboard_.end();
  const std::uint64_t others = in_flight();
  const bool is_first = scoreboard_.is_empty();
  const std::uint64_t transmission_number = next_serial_++;
  Scoreboard::Transmission& transmission =
      is_repetition ? scoreboard_.repeat(packet) : scoreboard_.send();
  transmission.transmission_number = transmission_number;
  if (settings_.samples_rates) {
    if (others == 0) {
      // A new flight is measured from its first packet.
      first_sent_ms_ = now_ms;
      delivered_ms_ = now_ms;
    }
    transmission.state = {.sent_ms = now_ms,
                          .delivered = delivered_,
                          .delivered_ms = delivered_ms_,
                          .first_sent_ms = first_sent_ms_,
                          .tx_in_flight = others + 1,
                          .lost = lost_,
                          .is_app_limited = delivered_ < application_limited_until_};
  }
  if (is_repetition) {
    must_repeat_ = false;
    ++results_.packets_retransmitted;
    if (settings_.finds_lost_repetitions) {
      repetitions_.push_back({packet, transmission_number});
    }
  }
  ++reduction_sent_;
  ++results_.packets_sent;
  last_send_ms_ = now_ms;
  if (settings_.retransmits && (!timer_.is_running() || is_first)) {
    timer_.restart(now_ms);
  }
  if (others == 0) {
    controller_->on_transmit_start(now_ms);
  }
  if (controller_->needs().on_sent) {
    controller_->on_sent({.now_ms = now_ms,
                          .transmission_number = transmission_number,
                          .in_flight = others + 1,
                          .is_retransmission = is_repetition});
  }
  next_.sent_ms = now_ms;
  next_.sequence = packet;
  next_.transmission_number = transmission_number;
  if (settings_.asks_xcp_routers) {
    next_.congestion = {.window_packets = controller_->cwnd(),
                        .rtt_ms = timer_.smoothed_ms(),
                        .feedback_packets = controller_->xcp_demand_packets()};
  }
  sink.send(next_, now_ms);
}

void TcpSender::on_packet_lost(const Segment& segment, double) {
  resolved_ += segment.sequence >= connection_start_ ? 1 : 0;
}

std::optional<AckContent> TcpSender::on_data(const Segment& segment, double now_ms) {
  // The one that is returned: nothing is copied.
  std::optional<AckContent> content;
  end_exchanges();
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  if (segment.sequence < connection_start_) {
    return content;
  }
  ++resolved_;
  const std::uint64_t in_order = reassembly_.in_order_end();
  // RFC 7323, section 4.3: what is behind a gap does not move the time stamp.
  if (segment.sequence <= in_order) {
    time_stamp_ms_ = std::max(time_stamp_ms_, segment.sent_ms);
  }
  if (!settings_.retransmits) {
    ++results_.packets_in_order;
    results_.rtt.handed_on();
    content.emplace();
    content->received_ms = now_ms;
    content->marked = segment.is_marked ? 1 : 0;
    return content;
  }
  reassembly_.add(segment.sequence);
  const std::uint64_t handed_on = reassembly_.in_order_end() - in_order;
  if (handed_on > 0) {
    results_.packets_in_order += handed_on;
    results_.rtt.handed_on();
  }
  ++unacknowledged_;
  unacknowledged_marks_ += segment.is_marked ? 1 : 0;
  // RFC 5681, section 4.2: one ACK for two packets, and for one in time; but at once for what is
  // out of order, or fills a gap.
  if (settings_.delayed_ack_ms > 0 && unacknowledged_ < 2 && handed_on == 1 &&
      !reassembly_.has_gap()) {
    waiting_ = segment;
    waiting_since_ms_ = now_ms;
    ack_due_ms_ = now_ms + settings_.delayed_ack_ms;
    return content;
  }
  describe(content.emplace(), segment, now_ms);
  return content;
}

std::optional<std::pair<Segment, AckContent>> TcpSender::take_delayed_ack(double) {
  std::pair<Segment, AckContent> late{waiting_, {}};
  describe(late.second, waiting_, waiting_since_ms_);
  return late;
}

void TcpSender::describe(AckContent& content, const Segment& segment, double received_ms) {
  content.received_ms = received_ms;
  content.time_stamp_ms = time_stamp_ms_;
  content.cumulative = reassembly_.in_order_end();
  content.packets = std::exchange(unacknowledged_, 0);
  content.marked = std::exchange(unacknowledged_marks_, 0);
  content.feedback_packets = segment.congestion.feedback_packets;
  ack_due_ms_ = kNever;
  if (settings_.uses_sack) {
    reassembly_.report(content);
  }
}

}  // namespace remy
