#include "slow_dumbbell.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elementary.h"
#include "core/random.h"
#include "elements/packet_ring.h"
#include "senders/packet.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Indices of the signals in a memory.
constexpr std::size_t kSendEwma = axis_of(Signal::kSendEwma);
constexpr std::size_t kRecEwma = axis_of(Signal::kRecEwma);
constexpr std::size_t kRttRatio = axis_of(Signal::kRttRatio);
constexpr std::size_t kSlowRecEwma = axis_of(Signal::kSlowRecEwma);
constexpr std::size_t kRttDiff = axis_of(Signal::kRttDiff);
constexpr std::size_t kQueueingDelay = axis_of(Signal::kQueueingDelay);
constexpr std::size_t kLossRate = axis_of(Signal::kLossRate);
constexpr std::size_t kQueueLength = axis_of(Signal::kQueueLength);
constexpr std::size_t kUtilization = axis_of(Signal::kUtilization);
constexpr std::size_t kEcnFraction = axis_of(Signal::kEcnFraction);
constexpr std::size_t kRttsSinceLoss = axis_of(Signal::kRttsSinceLoss);
constexpr std::size_t kAge = kRecEwma;  // in scale-free rules

// The counter of a packet's random draws.
std::uint64_t packet_name(std::size_t sender, std::uint32_t period, std::uint32_t sequence) {
  FlowTag flow(static_cast<std::uint32_t>(sender));
  for (std::uint32_t i = 0; i < period; ++i) {
    flow.next_period();
  }
  return std::uint64_t{flow.word()} << 32 | sequence;
}

}  // namespace

SlowDumbbell::SlowDumbbell(const RuleTable& table, const Specimen& specimen, std::uint64_t seed)
    : table_(table),
      averages_by_age_(is_scale_free(table.rules()) &&
                       std::ranges::count(table.signals(), Signal::kRecEwma) > 0),
      specimen_(specimen),
      rule_uses_(table.rule_count()) {
  const std::uint64_t specimen_seed = derive_key(seed, specimen.key);
  loss_key_ = derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kLoss));
  jitter_key_ = derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kJitter));
  rtt_offset_key_ = derive_key(specimen_seed, static_cast<std::uint64_t>(Purpose::kRttOffset));
  if (specimen.bottleneck && specimen.bottleneck->queue &&
      specimen.bottleneck->queue->name == "threshold-marking") {
    marking_threshold_packets_ = specimen.bottleneck->queue->parameters.at(0).second;
  }
  for (const SenderGroup& group : specimen.senders) {
    for (std::uint32_t i = 0; i < group.count; ++i) {
      const std::uint64_t key = derive_key(
          specimen_seed, {static_cast<std::uint64_t>(Purpose::kTraffic), senders_.size()});
      SlowSender sender(Schedule(group.traffic, key));
      sender.next_switch_ms = sender.schedule.begins_ms(0, 0);
      senders_.push_back(sender);
    }
  }
}

std::int64_t SlowDumbbell::next_bunch(const SlowSender& sender) const {
  const std::int64_t bunch = specimen_.measurement.bunch_packets;
  const std::int64_t room = sender.largest_ack + 1 + sender.window - sender.sent;
  const std::int64_t unsent = sender.flow_packets < 0 ? std::numeric_limits<std::int64_t>::max()
                                                      : sender.flow_packets - sender.sent;
  const bool is_enough = room >= bunch || room >= unsent || room >= sender.window / 3;
  return sender.on && is_enough ? std::min({bunch, room, unsent}) : 0;
}

double SlowDumbbell::next_send_ms(const SlowSender& sender) const {
  if (next_bunch(sender) <= 0) {
    return kNever;
  }
  return sender.last_send_ms + sender.intersend_ms * static_cast<double>(sender.last_bunch);
}

double SlowDumbbell::next_event_ms() const {
  double next = kNever;
  for (const SlowSender& sender : senders_) {
    next = std::min({next, sender.next_switch_ms, next_send_ms(sender)});
    if (sender.unacknowledged) {
      next = std::min(next, sender.ack_due_ms);
    }
  }
  if (in_service_) {
    next = std::min(next, service_ends_ms_);
  }
  if (!delay_.empty()) {
    next = std::min(next, delay_.front().arrives_ms);
  }
  return next;
}

std::vector<SenderResults> SlowDumbbell::run(double duration_ms) {
  for (SlowSender& sender : senders_) {
    sender.results.first_on_ms = duration_ms;
  }
  double now_ms = 0;
  for (;;) {
    const double next = std::max(now_ms, next_event_ms());
    const double until = std::min(next, duration_ms);
    const auto on = std::count_if(senders_.begin(), senders_.end(),
                                  [](const SlowSender& sender) { return sender.on; });
    for (SlowSender& sender : senders_) {
      if (sender.on) {
        sender.results.on_ms += until - now_ms;
        sender.results.share_ms += (until - now_ms) / static_cast<double>(on);
      }
    }
    now_ms = until;
    if (next > duration_ms) {
      break;
    }
    serve(now_ms);
    send(now_ms);
    switch_senders(now_ms);
    // A sender that receives an ACK sends before the next ACK arrives.
    if (!send_delayed_ack(now_ms)) {
      deliver(now_ms);
    }
  }
  std::vector<SenderResults> results;
  for (const SlowSender& sender : senders_) {
    results.push_back(sender.results);
  }
  return results;
}

void SlowDumbbell::look_up(SlowSender& sender) {
  MemoryPoint values = sender.memory;
  const double rec_ewma_ms = sender.memory[kRecEwma];
  const bool is_relative = is_scale_free(table_.rules()) && rec_ewma_ms > 0;
  if (is_relative) {
    values[kAge] = sender.age + (sender.remembered_interval_ms > 0 ? 256 : 0);
    for (const std::size_t axis : {kSendEwma, kSlowRecEwma, kRttDiff}) {
      values[axis] = sender.memory[axis] / rec_ewma_ms;
    }
    values[kQueueingDelay] = sender.memory[kQueueingDelay] / sender.minimum_rtt_ms;
    values[kQueueLength] = sender.memory[kQueueLength] * rec_ewma_ms / sender.minimum_rtt_ms;
  } else if (is_scale_free(table_.rules())) {
    values = {};
  }
  const std::size_t rule = table_.find(values);
  ++rule_uses_[rule];
  Action action = table_.action(rule);
  if (is_relative) {
    const double unit_ms = rec_ewma_ms;
    action.window_increment *= sender.minimum_rtt_ms;
    action.window_increment /= 100 * unit_ms;
    action.intersend_ms *= unit_ms;
  }
  const double window = sender.window * action.window_multiple + action.window_increment;
  sender.window = static_cast<int>(std::clamp(window, 0.0, 1e6));
  sender.intersend_ms = action.intersend_ms;
}

void SlowDumbbell::deliver(double now_ms) {
  while (!delay_.empty() && delay_.front().arrives_ms <= now_ms) {
    const SlowPacket packet = delay_.front().packet;
    delay_.pop_front();
    SlowSender& sender = senders_[packet.sender];
    const bool current = packet.period == sender.period;
    if (packet.lost) {
      ++sender.results.packets_lost;
      if (current) {
        resolve(sender, now_ms);
      }
      continue;
    }
    ++sender.results.packets_received;
    sender.results.delay_sum_ms += now_ms - packet.sent_ms;
    if (current) {
      sender.marked += packet.marked ? 1 : 0;
      resolve(sender, now_ms);
    }
    if (!sender.on) {
      continue;
    }
    const double delayed_ack_ms = specimen_.measurement.delayed_ack_ms;
    if (!current) {
      look_up(sender);
    } else if (delayed_ack_ms > 0 && !sender.unacknowledged) {
      sender.unacknowledged = packet;
      sender.ack_due_ms = now_ms + delayed_ack_ms;
    } else {
      on_ack(sender, packet, sender.unacknowledged ? 2 : 1, now_ms);
    }
  }
}

bool SlowDumbbell::send_delayed_ack(double now_ms) {
  for (SlowSender& sender : senders_) {
    if (sender.unacknowledged && sender.ack_due_ms <= now_ms) {
      on_ack(sender, *sender.unacknowledged, 1, now_ms);
      return true;
    }
  }
  return false;
}

void SlowDumbbell::on_ack(SlowSender& sender, const SlowPacket packet, double packets,
                          double now_ms) {
  sender.unacknowledged.reset();
  sender.largest_ack = std::max<std::int64_t>(sender.largest_ack, packet.sequence);
  sender.clock_ms = std::max(sender.clock_ms, now_ms + jitter_ms(packet));
  const double tick_ms = specimen_.measurement.timestamp_resolution_ms;
  double sent_ms = packet.sent_ms;
  double received_ms = sender.clock_ms;
  double rtt_ms = received_ms - sent_ms;
  if (tick_ms > 0) {
    const double sent_ticks = std::floor(sent_ms / tick_ms);
    const double received_ticks = std::floor(received_ms / tick_ms);
    sent_ms = sent_ticks * tick_ms;
    received_ms = received_ticks * tick_ms;
    rtt_ms = received_ticks > sent_ticks ? (received_ticks - sent_ticks) * tick_ms : tick_ms / 2;
  }
  if (!sender.has_ack) {
    sender.has_ack = true;
    sender.first_received_ms = received_ms;
    sender.period_rtt_ms = rtt_ms;
    sender.minimum_rtt_ms = rtt_ms;
    if (sender.remembered_interval_ms > 0) {
      sender.minimum_rtt_ms = std::min(rtt_ms, sender.remembered_rtt_ms);
      sender.memory[kRttRatio] = rtt_ms / sender.minimum_rtt_ms;
    }
  } else {
    rtt_ms += specimen_.measurement.rtt_offset_maximum_ms *
              unit_interval(random_bits(rtt_offset_key_, packet.sender));
    const auto average = [](double old, double sample, double weight) {
      return (1 - weight) * old + weight * sample;
    };
    const double send_interval_ms = (sent_ms - sender.last_sent_ms) / packets;
    const double receive_interval_ms = (received_ms - sender.last_received_ms) / packets;
    sender.age += packets;
    sender.period_rtt_ms = std::min(sender.period_rtt_ms, rtt_ms);
    double weight = 1.0 / 8;
    double slow_weight = 1.0 / 256;
    if (averages_by_age_ && sender.remembered_interval_ms == 0 && sender.age < 256) {
      weight = std::max(weight, packets / sender.age);
      slow_weight = std::max(slow_weight, packets / sender.age);
    }
    sender.memory[kSendEwma] = average(sender.memory[kSendEwma], send_interval_ms, weight);
    sender.memory[kRecEwma] = average(sender.memory[kRecEwma], receive_interval_ms, weight);
    sender.memory[kSlowRecEwma] =
        average(sender.memory[kSlowRecEwma], receive_interval_ms, slow_weight);
    sender.minimum_rtt_ms = std::min(sender.minimum_rtt_ms, rtt_ms);
    sender.memory[kRttRatio] = rtt_ms / sender.minimum_rtt_ms;
    update_extended_signals(sender, packet, packets, received_ms, rtt_ms);
  }
  sender.last_acked = packet;
  sender.marked = 0;
  sender.last_sent_ms = sent_ms;
  sender.last_received_ms = received_ms;
  look_up(sender);
}

void SlowDumbbell::update_extended_signals(SlowSender& sender, const SlowPacket& packet,
                                           double packets, double received_ms,
                                           double rtt_ms) const {
  const SlowPacket& last = sender.last_acked;
  const double service_ms = 1 / specimen_.link_rate_packets_per_ms;
  const auto resolved = static_cast<double>(packet.sequence - last.sequence);
  sender.memory[kRttDiff] = rtt_ms - sender.minimum_rtt_ms;
  sender.memory[kQueueingDelay] = sender.memory[kRecEwma] * resolved;
  for (double i = 0; i < resolved; ++i) {
    const double is_lost = i < resolved - packets ? 1 : 0;
    sender.memory[kLossRate] = (1 - 1.0 / 256) * sender.memory[kLossRate] + 1.0 / 256 * is_lost;
  }
  if (resolved > packets) {
    sender.last_loss_ms = received_ms;
  }
  if (sender.last_loss_ms) {
    sender.memory[kRttsSinceLoss] =
        1 + (received_ms - *sender.last_loss_ms) / sender.minimum_rtt_ms;
  }
  const auto between = static_cast<double>(packet.departures - last.departures);
  const double utilization = between * service_ms / (packet.departed_ms - last.departed_ms);
  sender.memory[kQueueLength] =
      7.0 / 8 * sender.memory[kQueueLength] + static_cast<double>(packet.queue_length) / 8;
  sender.memory[kUtilization] = 7.0 / 8 * sender.memory[kUtilization] + utilization / 8;
  sender.memory[kEcnFraction] =
      15.0 / 16 * sender.memory[kEcnFraction] + sender.marked / packets / 16;
}

double SlowDumbbell::jitter_ms(const SlowPacket& packet) const {
  const auto& jitter = specimen_.measurement.jitter;
  const std::uint64_t name = packet_name(packet.sender, packet.period, packet.sequence);
  if (const auto* log_normal = std::get_if<LogNormalJitter>(&jitter)) {
    const double spread = natural_logarithm(log_normal->percentile_99_ms / log_normal->median_ms);
    return log_normal->median_ms *
           exponential(spread / 2.3263478740408408 * normal(jitter_key_, name));
  }
  const double u = open_unit_interval(random_bits(jitter_key_, name));
  if (const auto* uniform = std::get_if<UniformJitter>(&jitter)) {
    return uniform->maximum_ms * u;
  }
  return -std::get<ExponentialJitter>(jitter).mean_ms * natural_logarithm(u);
}

void SlowDumbbell::send(double now_ms) {
  for (std::size_t index = 0; index < senders_.size(); ++index) {
    SlowSender& sender = senders_[index];
    while (next_send_ms(sender) <= now_ms) {
      sender.last_bunch = next_bunch(sender);
      sender.last_send_ms = now_ms;
      for (std::int64_t left = sender.last_bunch; left > 0; --left) {
        const auto sequence = static_cast<std::uint32_t>(sender.sent);
        const std::uint64_t name = packet_name(index, sender.period, sequence);
        const double u = unit_interval(random_bits(loss_key_, name));
        ++sender.sent;
        ++sender.results.packets_sent;
        const std::size_t queue_length = queue_.size() + (in_service_ ? 1 : 0);
        accept(
            {index, sender.period, sequence, now_ms, u < specimen_.loss_probability, queue_length},
            now_ms);
      }
    }
  }
}

void SlowDumbbell::accept(const SlowPacket& packet, double now_ms) {
  const std::size_t in_transit = queue_.size() + delay_.size() + (in_service_ ? 1 : 0);
  const bool is_full = specimen_.buffer_packets && queue_.size() >= *specimen_.buffer_packets;
  SlowPacket arrived = packet;
  arrived.marked = static_cast<double>(queue_.size()) >= marking_threshold_packets_;
  if (in_transit >= PacketRing::kMaximumPackets || (in_service_ && is_full)) {
    ++senders_[packet.sender].results.packets_lost;
    resolve(senders_[packet.sender], now_ms);
  } else if (!in_service_) {
    in_service_ = arrived;
    service_ends_ms_ = now_ms + 1 / specimen_.link_rate_packets_per_ms;
  } else {
    queue_.push_back(arrived);
  }
}

void SlowDumbbell::serve(double now_ms) {
  while (in_service_ && service_ends_ms_ <= now_ms) {
    in_service_->departures = ++departures_;
    in_service_->departed_ms = service_ends_ms_;
    delay_.push_back({*in_service_, service_ends_ms_ + specimen_.rtt_ms});
    in_service_.reset();
    if (!queue_.empty()) {
      in_service_ = queue_.front();
      queue_.pop_front();
      service_ends_ms_ += 1 / specimen_.link_rate_packets_per_ms;
    }
  }
}

void SlowDumbbell::resolve(SlowSender& sender, double now_ms) {
  ++sender.resolved;
  if (sender.flow_packets >= 0 && sender.resolved == sender.flow_packets && sender.on) {
    turn_off(sender, now_ms);
  }
}

void SlowDumbbell::turn_off(SlowSender& sender, double now_ms) {
  sender.on = false;
  sender.unacknowledged.reset();
  sender.next_switch_ms = sender.schedule.begins_ms(sender.period, now_ms);
}

void SlowDumbbell::switch_senders(double now_ms) {
  for (SlowSender& sender : senders_) {
    if (sender.next_switch_ms > now_ms) {
      continue;
    }
    if (sender.on) {
      turn_off(sender, now_ms);
      continue;
    }
    sender.on = true;
    sender.results.first_on_ms = std::min(sender.results.first_on_ms, now_ms);
    sender.next_switch_ms =
        sender.schedule.by_time() ? sender.schedule.ends_ms(sender.period, now_ms) : kNever;
    sender.flow_packets =
        sender.schedule.by_time()
            ? -1
            : static_cast<std::int64_t>(sender.schedule.on_packets(sender.period));
    ++sender.period;
    if (table_.rules() == Rules::kScaleFreeRemembering && sender.age >= 16) {
      sender.remembered_interval_ms =
          (sender.last_received_ms - sender.first_received_ms) / sender.age;
      sender.remembered_rtt_ms = sender.period_rtt_ms;
    }
    sender.age = 0;
    sender.memory = {};
    sender.last_loss_ms.reset();
    if (sender.remembered_interval_ms > 0) {
      sender.memory[kSendEwma] = sender.memory[kRecEwma] = sender.memory[kSlowRecEwma] =
          sender.remembered_interval_ms;
      sender.minimum_rtt_ms = sender.remembered_rtt_ms;
    }
    sender.has_ack = false;
    sender.clock_ms = 0;
    sender.window = 0;
    sender.last_send_ms = -kNever;
    sender.last_bunch = 1;
    sender.sent = 0;
    sender.largest_ack = -1;
    sender.resolved = 0;
    look_up(sender);
  }
}

}  // namespace remy
