#include "transports/tcp_sender.h"

#include <algorithm>
#include <vector>

namespace remy {

namespace {

// Each data packet is acknowledged at once, with SACK, so that the scoreboard always equals the
// receiver's state.
bool handles_round_trips(const TcpSettings& settings) {
  return settings.retransmits &&
         (settings.recovery == RecoveryKind::kSack || settings.recovery == RecoveryKind::kRack) &&
         settings.delayed_ack_ms == 0;
}

// Nothing depends on what is sent but the scoreboard, the window and the timer.
bool is_simple(const TcpSettings& settings, const ControllerNeeds& needs, double maximum_window) {
  return handles_round_trips(settings) && !needs.full_acks && !needs.on_sent &&
         settings.rtt_offset_ms == 0 && !settings.asks_xcp_routers && !settings.samples_rates &&
         settings.recovery == RecoveryKind::kSack && !settings.uses_prr &&
         !settings.validates_cwnd &&
         static_cast<double>(settings.receive_window_packets) >= maximum_window;
}

}  // namespace

TcpSender::TcpSender(const TcpSettings& settings, std::unique_ptr<CongestionController> controller)
    : settings_(settings),
      controller_(std::move(controller)),
      handles_round_trips_(handles_round_trips(settings)),
      is_simple_(is_simple(settings, controller_->needs(), kMaximumWindow)),
      timer_(settings.timeouts),
      recovery_(make_loss_recovery(settings_, scoreboard_)),
      receiver_(settings) {
  outgoing_.sender = settings.sender;
  outgoing_.bytes = settings.packet_bytes;
  outgoing_.is_ecn_capable = settings.is_ecn_capable;
}

void TcpSender::switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) {
  if (!has_started_ || !settings_.keeps_state) {
    start_connection(now_ms);
  }
  has_started_ = true;
  if (!settings_.retransmits) {
    scoreboard_.clear();
    connection_start_ = scoreboard_.end();
    resolved_ = 0;
  }
  on_write(now_ms, packets ? scoreboard_.end() + *packets : kEndless);
  send_allowed_packets(now_ms, sink);
  update_fast_path();
}

// The application writes data up to `data_end`.
void TcpSender::on_write(double now_ms, std::uint64_t data_end) {
  const double idle_ms = now_ms - last_send_ms_;
  if (settings_.validates_cwnd && settings_.reports_idle_timeouts && scoreboard_.is_empty() &&
      idle_ms < kNever && idle_ms > timer_.timeout_ms()) {
    const std::uint64_t before = cwnd_packets();
    const std::uint64_t after =
        validation_.after_idle(now_ms, idle_ms, before, timer_.timeout_ms());
    if (after < before) {
      controller_->lower_unused_window(static_cast<double>(after));
    }
  }
  if (scoreboard_.end() >= data_end_ && !scoreboard_.has_lost() && in_flight() < window_packets()) {
    delivery_.on_app_limited(in_flight());
  }
  data_end_ = data_end;
}

void TcpSender::switch_off(double) {
  data_end_ = scoreboard_.end();
  pacing_ms_ = scoreboard_.has_lost() ? pacing_ms_ : kNever;
}

void TcpSender::start_connection(double now_ms) {
  fast_path_packet_ = kEndless;
  scoreboard_.clear();
  connection_start_ = scoreboard_.end();
  receiver_.start_connection(connection_start_);
  recovery_->start_connection(connection_start_);
  timer_.reset();
  prr_.stop();
  probe_.reset();
  recovery_ms_ = kNever;
  time_stamp_ms_ = 0;
  delivery_.on_connection_start();
  has_timed_out_ = false;
  cwnd_limited_end_ = 0;
  next_rtt_offset_ms_ = 0;
  last_send_ms_ = -kNever;
  pacing_ms_ = kNever;
  controller_->start(now_ms);
  validation_.start(now_ms, cwnd_packets());
  data_end_ = scoreboard_.end();
}

[[gnu::always_inline]] inline std::uint64_t TcpSender::cwnd_packets() const {
  const double cwnd = std::min(kMaximumWindow, controller_->cwnd());
  return static_cast<std::uint64_t>(std::max<std::int64_t>(static_cast<std::int64_t>(cwnd), 1));
}

[[gnu::always_inline]] inline std::uint64_t TcpSender::window_packets() const {
  return prr_.is_active() ? prr_.window_packets()
                          : std::max(cwnd_packets(), recovery_->window_floor());
}

[[gnu::always_inline]] inline void TcpSender::transmit(std::uint64_t packet,
                                                       Scoreboard::Transmission& transmission,
                                                       double now_ms, PacketSink& sink) {
  outgoing_.sent_ms = now_ms;
  outgoing_.sequence = packet;
  outgoing_.transmission_number = transmission.transmission_number = next_transmission_number_++;
  ++results_.packets_sent;
  last_send_ms_ = now_ms;
  sink.send(outgoing_, now_ms);
}

[[gnu::always_inline]] inline void TcpSender::send_packet(bool is_retransmission, double now_ms,
                                                          PacketSink& sink) {
  const std::uint64_t packet = is_retransmission ? scoreboard_.first_lost() : scoreboard_.end();
  const std::uint64_t prior_in_flight = in_flight();
  const bool is_first = scoreboard_.is_empty();
  const std::uint64_t number = next_transmission_number_;
  Scoreboard::Transmission& transmission =
      is_retransmission ? scoreboard_.retransmit(packet) : scoreboard_.send();
  if (settings_.samples_rates) {
    transmission.snapshot = delivery_.on_sent(now_ms, prior_in_flight);
  }
  if (is_retransmission) {
    ++results_.packets_retransmitted;
    recovery_->on_retransmission(packet, number);
  }
  if (recovery_->tracks_transmissions()) {
    transmission.transmission_number = number;
    transmission.snapshot.sent_ms = now_ms;
    transmission.snapshot.is_retransmission = is_retransmission;
    recovery_->on_sent(packet, transmission);
    // As in Linux, the timer counts from the last transmission of the first packet.
    if (is_retransmission && packet == scoreboard_.first()) {
      timer_.restart(now_ms);
    }
  }
  prr_.on_sent();
  // RFC 6298, section 5: "(5.1) Every time a packet containing data is sent [...], if the timer is
  // not running, start it".
  if (settings_.retransmits && (!timer_.is_running() || is_first)) {
    timer_.restart(now_ms);
  }
  if (prior_in_flight == 0) {
    controller_->on_transmit_start(now_ms);
  }
  if (controller_->needs().on_sent) {
    controller_->on_sent({.now_ms = now_ms,
                          .transmission_number = number,
                          .in_flight = prior_in_flight + 1,
                          .is_retransmission = is_retransmission});
  }
  if (settings_.asks_xcp_routers) {
    outgoing_.congestion = {.window_packets = controller_->cwnd(),
                            .rtt_ms = timer_.smoothed_ms(),
                            .feedback_packets = controller_->xcp_demand_packets()};
  }
  transmit(packet, transmission, now_ms, sink);
}

void TcpSender::send_allowed_packets(double now_ms, PacketSink& sink) {
  const std::uint64_t end_before = scoreboard_.end();
  send_while_allowed(now_ms, sink);
  if (settings_.validates_cwnd) {
    validate_cwnd(now_ms, end_before);
  }
  if (recovery_->tracks_transmissions()) {
    if (scoreboard_.end() > end_before) {
      schedule_tail_loss_probe(now_ms);
    }
    recovery_ms_ = std::min(recovery_->reordering_timer_ms(), probe_.due_ms());
  }
}

void TcpSender::validate_cwnd(double now_ms, std::uint64_t end_before) {
  const bool is_full = in_flight() >= window_packets();
  if (!is_full && scoreboard_.end() == end_before) {
    return;
  }
  const bool is_missing_any =
      recovery_->state() != LossRecovery::State::kOpen || scoreboard_.has_sacked();
  const std::optional<std::uint64_t> lower =
      validation_.on_sent(now_ms, cwnd_packets(), is_full, controller_->is_in_slow_start(),
                          scoreboard_.first(), scoreboard_.end(), is_missing_any,
                          settings_.reports_idle_timeouts ? timer_.timeout_ms() : kNever);
  if (lower) {
    controller_->lower_unused_window(static_cast<double>(*lower));
  }
}

// RFC 6675, section 5, step (C), with pacing: lost packets first, then new ones.
[[gnu::always_inline]] inline void TcpSender::send_while_allowed(double now_ms, PacketSink& sink) {
  pacing_ms_ = kNever;
  if (recovery_->window_floor() > 0) [[unlikely]] {
    recovery_->before_sending(in_flight());
  }
  for (std::uint64_t burst = recovery_->burst_limit(); burst > 0; --burst) {
    const bool has_lost = scoreboard_.has_lost();
    if (!has_lost && scoreboard_.end() >= data_end_) {
      delivery_.on_app_limited(in_flight());
      return;
    }
    if (in_flight() >= window_packets() && !(has_lost && recovery_->must_retransmit())) {
      cwnd_limited_end_ = scoreboard_.end();
      return;
    }
    if (!has_lost && scoreboard_.end() - scoreboard_.first() >= settings_.receive_window_packets) {
      return;
    }
    if (const double next_ms = last_send_ms_ + controller_->pacing_interval_ms();
        next_ms > now_ms) {
      pacing_ms_ = next_ms;
      return;
    }
    send_packet(has_lost, now_ms, sink);
    if (recovery_->window_floor() > 0) [[unlikely]] {
      recovery_->after_sending(in_flight());
    }
  }
}

[[gnu::always_inline]] inline double TcpSender::next_event_ms() const {
  return std::min({pacing_ms_, timer_.expiry_ms(), controller_->next_tick_ms(), recovery_ms_});
}

double TcpSender::next_act_ms() const { return next_event_ms(); }

// send_allowed_packets() of a simple sender without pacing while packets are in flight.
[[gnu::always_inline]] inline void TcpSender::send_unpaced(double now_ms, PacketSink& sink) {
  pacing_ms_ = kNever;
  const std::uint64_t window = cwnd_packets();
  const std::uint64_t in_flight = scoreboard_.in_flight();
  std::uint64_t room = window - std::min(window, in_flight);
  if (recovery_->must_retransmit() && scoreboard_.has_lost()) {
    room = std::max<std::uint64_t>(room, 1);
  }
  for (; room > 0 && scoreboard_.has_lost(); --room) {
    const std::uint64_t packet = scoreboard_.first_lost();
    ++results_.packets_retransmitted;
    recovery_->on_retransmission(packet, next_transmission_number_);
    transmit(packet, scoreboard_.retransmit(packet), now_ms, sink);
  }
  for (; room > 0 && scoreboard_.end() < data_end_; --room) {
    const std::uint64_t packet = scoreboard_.end();
    if (packet - scoreboard_.first() >= settings_.receive_window_packets) {
      return;
    }
    transmit(packet, scoreboard_.send(), now_ms, sink);
  }
  if (scoreboard_.has_lost() || scoreboard_.end() < data_end_) {
    cwnd_limited_end_ = scoreboard_.end();
  }
}

// The fast path is open while all packets are in order and the timer computes by RFC 6298 alone.
[[gnu::always_inline]] inline void TcpSender::update_fast_path() {
  fast_path_packet_ = is_simple_ && recovery_->state() == LossRecovery::State::kOpen &&
                              scoreboard_.is_in_order() && timer_.is_standard()
                          ? scoreboard_.first()
                          : kEndless;
}

[[gnu::always_inline]] inline bool TcpSender::is_cwnd_limited(const ReceivedAck& ack) const {
  return settings_.validates_cwnd
             ? validation_.is_cwnd_limited(cwnd_packets(), controller_->is_in_slow_start())
             : ack.first_before < cwnd_limited_end_;
}

[[gnu::always_inline]] inline void TcpSender::report_full_ack(const ReceivedAck& ack,
                                                              double now_ms) {
  AckEvent event{.now_ms = now_ms,
                 .sent_ms = ack.sent_ms,
                 .received_ms = ack.received_ms,
                 .rtt_ms = ack.rtt_ms,
                 .transmission_number = ack.transmission_number,
                 .newly_acked = ack.newly_acked,
                 .newly_delivered = ack.newly_delivered,
                 .newly_marked = ack.newly_marked,
                 .total_delivered = delivery_.delivered(),
                 .total_lost = delivery_.lost(),
                 .prior_in_flight = ack.prior_in_flight,
                 .in_flight = in_flight(),
                 .in_recovery = recovery_->in_recovery(),
                 .is_cwnd_limited = is_cwnd_limited(ack),
                 .xcp_feedback_packets = ack.feedback_packets};
  if (ack.newest != nullptr) {
    delivery_.sample(ack.newest->snapshot, event);
  }
  controller_->on_ack(event);
}

[[gnu::always_inline]] inline void TcpSender::report_brief_ack(const ReceivedAck& ack,
                                                               double now_ms) {
  brief_ack_.now_ms = now_ms;
  brief_ack_.rtt_ms = ack.rtt_ms;
  brief_ack_.newly_acked = ack.newly_acked;
  brief_ack_.newly_delivered = ack.newly_delivered;
  brief_ack_.in_recovery = recovery_->in_recovery();
  brief_ack_.is_cwnd_limited = is_cwnd_limited(ack);
  controller_->on_ack(brief_ack_);
}

// RFC 6298, section 5: "(5.2) When all outstanding data has been acknowledged, turn off the
// retransmission timer. (5.3) When an ACK is received that acknowledges new data, restart" it.
[[gnu::always_inline]] inline void TcpSender::on_new_data_acked(bool was_in_recovery,
                                                                double now_ms) {
  has_timed_out_ = false;
  if (scoreboard_.first() > recovery_->recovery_point()) {
    timer_.end_back_off();
  }
  if (scoreboard_.is_empty() && (!settings_.reports_idle_timeouts || settings_.validates_cwnd)) {
    timer_.stop();
  } else if (!was_in_recovery || recovery_->restarts_timer()) {
    timer_.restart(now_ms);
  }
}

// `is_simple` is is_simple_, as a constant for the compiler: such senders need fewer steps.
[[gnu::always_inline]] inline void TcpSender::process_ack(ReceivedAck ack, bool is_simple,
                                                          double now_ms, PacketSink& sink) {
  const double rtt_ms = now_ms - ack.sent_ms;
  ack.rtt_ms = is_simple ? rtt_ms : with_rtt_offset(rtt_ms);
  if (!is_simple && recovery_->is_spurious(ack.newly_acked, ack.time_stamp_ms)) {
    undo_spurious_recovery();
  }
  const bool was_in_recovery = recovery_->in_recovery();
  const bool exits_recovery = recovery_->covers_recovery_point();
  if (is_simple ? ack.newly_delivered > 0
                : recovery_->takes_rtt_sample(ack.newly_acked, ack.newly_delivered,
                                              was_in_recovery && !exits_recovery)) {
    timer_.sample(ack.rtt_ms);
    results_.rtt.sampled(rtt_ms, now_ms);
  } else if (ack.newly_acked > 0) {
    results_.rtt.sampled(results_.rtt.last_ms(), now_ms);
  }
  delivery_.on_delivered(ack.newly_delivered);
  if (exits_recovery) {
    prr_.stop();
    if (const auto packet = recovery_->exit_recovery()) {
      report_loss(*packet, true, ack.prior_in_flight, now_ms);
    }
  }
  if (is_simple ? scoreboard_.may_detect_losses(settings_.duplicate_threshold)
                : recovery_->may_detect_losses()) {
    const AckOfRecovery event = {
        .now_ms = now_ms,
        .newly_acked = ack.newly_acked,
        .transmission_number = ack.transmission_number,
        .was_in_recovery = was_in_recovery,
        .is_duplicate = ack.is_duplicate && !probe_.has_retransmission_out(),
        .smoothed_rtt_ms = timer_.smoothed_ms(),
    };
    for (const std::uint64_t packet : recovery_->detect_losses(event)) {
      on_loss(packet, ack.prior_in_flight, now_ms);
    }
  }
  if (ack.newly_acked > 0) {
    on_new_data_acked(was_in_recovery, now_ms);
  } else if (!is_simple && recovery_->restarts_timer_at_every_ack()) {
    timer_.restart(now_ms);
  }
  if (!is_simple && recovery_->tracks_transmissions()) {
    process_probe_ack(ack, now_ms);
  }
  if (!is_simple && controller_->needs().full_acks) {
    report_full_ack(ack, now_ms);
  } else {
    report_brief_ack(ack, now_ms);
  }
  if (!is_simple && prr_.is_active()) {
    prr_.on_ack(ack.newly_delivered, scoreboard_.in_flight(), cwnd_packets());
  }
  if (is_simple && scoreboard_.in_flight() > 0 && controller_->pacing_interval_ms() == 0) {
    send_unpaced(now_ms, sink);
  } else {
    send_allowed_packets(now_ms, sink);
  }
  if (is_simple) {
    update_fast_path();
  }
}

// The response to a spurious retransmission (RFC 4015).
void TcpSender::undo_spurious_recovery() {
  recovery_->undo();
  prr_.stop();
  timer_.end_back_off();
  controller_->on_spurious_recovery();
}

void TcpSender::process_probe_ack(const ReceivedAck& ack, double now_ms) {
  if (probe_.on_ack(scoreboard_.first(), ack.is_duplicate, ack.newly_delivered == 0)) {
    // RFC 8985, section 7.4.2: the probe has repaired a loss of the last packet.
    delivery_.on_lost(1);
    controller_->on_loss({.now_ms = now_ms,
                          .transmission_number = ack.transmission_number,
                          .in_flight = ack.prior_in_flight,
                          .starts_recovery = recovery_->state() == LossRecovery::State::kOpen,
                          .packet = {}});
  }
  if (ack.newly_acked > 0) {
    schedule_tail_loss_probe(now_ms);
  }
}

// RFC 8985, section 7.2: not while packets are missing, since the reordering timer or recovery
// deals with them.
bool TcpSender::may_probe() const {
  return recovery_->state() == LossRecovery::State::kOpen && !scoreboard_.has_sacked() &&
         !scoreboard_.is_empty();
}

void TcpSender::schedule_tail_loss_probe(double now_ms) {
  if (!may_probe()) {
    probe_.cancel();
    return;
  }
  probe_.schedule(now_ms, timer_.smoothed_ms(), scoreboard_.end() - scoreboard_.first(),
                  timer_.expiry_ms());
}

// RFC 8985, section 7.3: a new packet, even beyond the window, or else the last one again. The
// retransmission timer starts anew.
void TcpSender::send_tail_loss_probe(double now_ms, PacketSink& sink) {
  probe_.cancel();
  if (!may_probe()) {
    return;
  }
  if (probe_.may_send()) {
    const bool has_new = scoreboard_.end() < data_end_ &&
                         scoreboard_.end() - scoreboard_.first() < settings_.receive_window_packets;
    if (!has_new) {
      scoreboard_.mark_lost(scoreboard_.end() - 1);
    }
    send_packet(!has_new, now_ms, sink);
    probe_.on_sent(scoreboard_.end(), !has_new);
  }
  timer_.restart(now_ms);
}

void TcpSender::on_reordering_timer(double now_ms) {
  const std::uint64_t prior_in_flight = in_flight();
  bool has_lost_any = false;
  for (const std::uint64_t packet : recovery_->on_reordering_timer(now_ms, timer_.smoothed_ms())) {
    on_loss(packet, prior_in_flight, now_ms);
    has_lost_any = true;
  }
  if (has_lost_any && prr_.is_active()) {
    prr_.on_ack(1, scoreboard_.in_flight(), cwnd_packets());
  }
}

[[gnu::noinline]] void TcpSender::process_any_ack(const ReceivedAck& ack, double now_ms,
                                                  PacketSink& sink) {
  process_ack(ack, false, now_ms, sink);
}

// The last packet in flight leaves the fast path, as it stops the timer. Packets on the fast path
// do not count in delivery_, which no simple sender reads.
double TcpSender::on_round_trip(const Segment& segment, double received_ms, double now_ms,
                                PacketSink& sink) {
  const std::uint64_t next = segment.sequence + 1;
  if (segment.sequence != fast_path_packet_ || next == scoreboard_.end()) [[unlikely]] {
    return on_round_trip_off_fast_path(segment, received_ms, now_ms, sink);
  }
  fast_path_packet_ = next;
  scoreboard_.advance_to(next);
  const double rtt_ms = now_ms - segment.sent_ms;
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  ++results_.packets_in_order;
  results_.rtt.handed_on_and_sampled(rtt_ms, now_ms);
  timer_.sample_and_restart(rtt_ms, now_ms);
  controller_->on_in_order_ack(now_ms, rtt_ms, segment.sequence < cwnd_limited_end_);
  const std::uint64_t cwnd = cwnd_packets();
  if (cwnd > scoreboard_.room() || controller_->pacing_interval_ms() > 0) [[unlikely]] {
    send_allowed_packets(now_ms, sink);
    return next_act_ms();
  }
  pacing_ms_ = kNever;
  const std::uint64_t end = std::min(next + cwnd, data_end_);
  while (scoreboard_.end() < end) {
    const std::uint64_t packet = scoreboard_.end();
    transmit(packet, scoreboard_.send_in_room(), now_ms, sink);
  }
  if (scoreboard_.end() < data_end_) {
    cwnd_limited_end_ = scoreboard_.end();
  }
  return std::min(timer_.expiry_ms(), controller_->next_tick_ms());
}

[[gnu::noinline]] double TcpSender::on_round_trip_off_fast_path(const Segment& segment,
                                                                double received_ms, double now_ms,
                                                                PacketSink& sink) {
  if (!handles_round_trips_ || segment.sequence < connection_start_) {
    return kDeclined;
  }
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  const std::uint64_t first_before = scoreboard_.first();
  const std::uint64_t prior_in_flight = scoreboard_.in_flight();
  const bool is_new = scoreboard_.on_received(segment.sequence);
  const std::uint64_t newly_acked = scoreboard_.first() - first_before;
  if (recovery_->tracks_transmissions()) {
    // RFC 7323, section 4.3, rule 2.
    if (segment.sequence <= first_before) {
      time_stamp_ms_ = std::max(time_stamp_ms_, segment.sent_ms);
    }
    recovery_->on_rtt(now_ms, now_ms - segment.sent_ms);
    if (is_new) {
      recovery_->on_delivered(segment.sequence, scoreboard_.at(segment.sequence),
                              newly_acked > 0 ? time_stamp_ms_ : kNever, now_ms);
    }
  }
  if (newly_acked > 0) {
    results_.packets_in_order += newly_acked;
    results_.rtt.handed_on();
  }
  // Made separately for each call, so that it stays in registers for simple senders.
  const auto ack = [&]() -> ReceivedAck {
    return {
        .sent_ms = segment.sent_ms,
        .received_ms = received_ms,
        .time_stamp_ms = time_stamp_ms_,
        .rtt_ms = 0,
        .transmission_number = segment.transmission_number,
        .first_before = first_before,
        .prior_in_flight = prior_in_flight,
        .newly_acked = newly_acked,
        .newly_delivered = is_new ? 1U : 0U,
        .newly_marked = segment.is_marked ? 1U : 0U,
        .is_duplicate = !is_new,
        .feedback_packets = segment.congestion.feedback_packets,
        .newest = is_new && settings_.samples_rates ? &scoreboard_.at(segment.sequence) : nullptr,
    };
  };
  if (is_simple_) {
    process_ack(ack(), true, now_ms, sink);
  } else {
    process_any_ack(ack(), now_ms, sink);
  }
  return next_event_ms();
}

void TcpSender::on_ack(const Segment& echo, const AckContent& content, double now_ms,
                       PacketSink& sink) {
  if (echo.sequence < connection_start_ ||
      (recovery_->ignores_old_acks() && content.cumulative < scoreboard_.first())) {
    return;
  }
  if (!settings_.retransmits) {
    on_ack_without_retransmission(echo, content, now_ms);
    send_allowed_packets(now_ms, sink);
    return;
  }
  const std::uint64_t first_before = scoreboard_.first();
  const std::uint64_t prior_in_flight = in_flight();
  std::uint64_t newly_delivered = 0;
  const Scoreboard::Transmission* newest = nullptr;
  if (recovery_->tracks_transmissions()) {
    recovery_->on_rtt(now_ms, now_ms - echo.sent_ms);
  }
  const auto delivered = [&](std::uint64_t packet, const Scoreboard::Transmission& transmission) {
    ++newly_delivered;
    if (recovery_->tracks_transmissions()) {
      recovery_->on_delivered(packet, transmission,
                              packet < content.cumulative ? content.time_stamp_ms : kNever, now_ms);
    }
    if (settings_.samples_rates &&
        (newest == nullptr || transmission.transmission_number > newest->transmission_number)) {
      newest = &transmission;
    }
  };
  scoreboard_.acknowledge(content.cumulative, delivered);
  for (std::uint32_t block = 0; block < content.blocks; ++block) {
    scoreboard_.acknowledge(content.sacks[block], delivered);
  }
  const std::uint64_t newly_acked = scoreboard_.first() - first_before;
  if (!recovery_->uses_sack()) {
    newly_delivered = recovery_->count_delivered(newly_acked, newly_delivered,
                                                 content.cumulative == first_before);
  }
  const ReceivedAck ack = {
      .sent_ms = recovery_->measures_by_time_stamps() ? content.time_stamp_ms : echo.sent_ms,
      .received_ms = content.received_ms,
      .time_stamp_ms = content.time_stamp_ms,
      .rtt_ms = 0,
      .transmission_number = echo.transmission_number,
      .first_before = first_before,
      .prior_in_flight = prior_in_flight,
      .newly_acked = newly_acked,
      .newly_delivered = newly_delivered,
      .newly_marked = content.marked,
      .is_duplicate = content.is_duplicate,
      .feedback_packets = content.feedback_packets,
      .newest = newest,
  };
  process_any_ack(ack, now_ms, sink);
  update_fast_path();
}

void TcpSender::on_loss(std::uint64_t packet, std::uint64_t prior_in_flight, double now_ms) {
  delivery_.on_lost(1);
  const bool starts_recovery = recovery_->on_loss(cwnd_packets());
  report_loss(packet, starts_recovery, prior_in_flight, now_ms);
}

void TcpSender::report_loss(std::uint64_t packet, bool starts_recovery,
                            std::uint64_t prior_in_flight, double now_ms) {
  const Scoreboard::Transmission& transmission = scoreboard_.at(packet);
  controller_->on_loss({.now_ms = now_ms,
                        .transmission_number = transmission.transmission_number,
                        .in_flight = prior_in_flight,
                        .starts_recovery = starts_recovery,
                        .packet = transmission.snapshot});
  if (losses_ != nullptr) [[unlikely]] {
    losses_->on_loss_found(packet, now_ms);
  }
  if (starts_recovery && settings_.retransmits) {
    probe_.cancel();
    // A controller that does not lower its window keeps it during recovery.
    prr_.start(settings_.uses_prr && window_packets() < prior_in_flight, prior_in_flight);
    timer_.restart(now_ms);
  }
}

// A packet that is received shows that all packets before it that were not are lost.
void TcpSender::on_ack_without_retransmission(const Segment& echo, const AckContent& content,
                                              double now_ms) {
  if (echo.sequence < scoreboard_.first()) {
    return;
  }
  AckEvent ack{.now_ms = now_ms, .prior_in_flight = in_flight()};
  for (std::uint64_t packet = scoreboard_.first(); packet < echo.sequence; ++packet) {
    delivery_.on_lost(1);
    report_loss(packet, packet == scoreboard_.first(), ack.prior_in_flight, now_ms);
  }
  const Scoreboard::Transmission received = scoreboard_.at(echo.sequence);
  ack.newly_acked = echo.sequence + 1 - scoreboard_.first();
  scoreboard_.acknowledge(echo.sequence + 1, [](std::uint64_t, const Scoreboard::Transmission&) {});
  delivery_.on_delivered(1);
  ack.newly_delivered = 1;
  ack.transmission_number = echo.transmission_number;
  ack.sent_ms = echo.sent_ms;
  ack.received_ms = content.received_ms;
  ack.rtt_ms = with_rtt_offset(now_ms - echo.sent_ms);
  results_.rtt.sampled(now_ms - echo.sent_ms, now_ms);
  if (settings_.samples_rates) {
    delivery_.sample(received.snapshot, ack);
  }
  ack.newly_marked = content.marked;
  ack.total_delivered = delivery_.delivered();
  ack.total_lost = delivery_.lost();
  ack.in_flight = in_flight();
  ack.is_cwnd_limited = echo.sequence < cwnd_limited_end_;
  controller_->on_ack(ack);
}

// RFC 6298, section 5: "(5.4) Retransmit the earliest segment that has not been acknowledged [...]
// (5.5) RTO <- RTO * 2 [...] (5.6) Start the retransmission timer". RFC 6675, section 5.1: all
// packets in flight are considered lost; SACKs are kept. RACK marks fewer (RFC 8985, section 6.3).
void TcpSender::on_retransmission_timeout(double now_ms) {
  if (scoreboard_.is_empty()) {
    timer_.stop();
    controller_->on_idle_timeout(now_ms);
    return;
  }
  ++results_.timeouts;
  const std::uint64_t prior_in_flight = in_flight();
  const std::vector<std::uint64_t> outstanding =
      losses_ != nullptr ? scoreboard_.packets_in_flight() : std::vector<std::uint64_t>();
  const std::uint64_t newly_lost = recovery_->mark_lost_on_timeout(now_ms, timer_.smoothed_ms());
  for (const std::uint64_t packet : outstanding) {
    if (scoreboard_.is_lost(packet)) {
      losses_->on_timeout(packet, now_ms);
    }
  }
  delivery_.on_lost(newly_lost);
  const bool starts_recovery = recovery_->state() == LossRecovery::State::kOpen;
  recovery_->on_timeout();
  prr_.stop();
  probe_.reset();
  timer_.back_off();
  timer_.restart(now_ms);
  // Without SACK, duplicate ACKs have reported some of the packets delivered.
  controller_->on_timeout({.now_ms = now_ms,
                           .in_flight = prior_in_flight,
                           .newly_lost = std::min(newly_lost, prior_in_flight),
                           .is_first = !has_timed_out_,
                           .starts_recovery = starts_recovery});
  has_timed_out_ = true;
}

void TcpSender::act(double now_ms, PacketSink& sink) {
  if (controller_->next_tick_ms() <= now_ms) {
    controller_->on_tick(now_ms);
  }
  if (recovery_ms_ <= now_ms) {
    if (recovery_->reordering_timer_ms() <= now_ms) {
      on_reordering_timer(now_ms);
    }
    if (probe_.due_ms() <= now_ms) {
      send_tail_loss_probe(now_ms, sink);
    }
  }
  if (timer_.expiry_ms() <= now_ms) {
    on_retransmission_timeout(now_ms);
  }
  send_allowed_packets(now_ms, sink);
  update_fast_path();
}

void TcpSender::on_packet_lost(const Segment& segment, double) {
  resolved_ += segment.sequence >= connection_start_ ? 1 : 0;
}

std::optional<AckContent> TcpSender::on_data(const Segment& segment, double now_ms) {
  ++results_.packets_received;
  results_.packets_marked += segment.is_marked ? 1 : 0;
  if (segment.sequence < connection_start_) {
    return std::nullopt;
  }
  ++resolved_;
  return receiver_.on_data(segment, now_ms, results_);
}

std::optional<std::pair<Segment, AckContent>> TcpSender::take_delayed_ack(double) {
  return receiver_.take_delayed_ack();
}

}  // namespace remy
