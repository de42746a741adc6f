#include "reference_links.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "reference_queues.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<double> opportunities_until(const TraceDescription& description, std::uint64_t key,
                                        double duration_ms) {
  std::vector<double> times_ms;
  if (const auto* const trace = std::get_if<std::shared_ptr<const Trace>>(&description.source)) {
    for (std::uint64_t round = 0;; ++round) {
      for (const double time_ms : (*trace)->opportunities_ms()) {
        times_ms.push_back(static_cast<double>(round) * (*trace)->last_ms() + time_ms);
      }
      if (description.ends || times_ms.back() > duration_ms) {
        return times_ms;
      }
    }
  }
  // Uses the generator under test; it has tests of its own (links_test.cc).
  Opportunities generated(description.source, false, key);
  while (times_ms.empty() || times_ms.back() <= duration_ms) {
    times_ms.push_back(generated.next_ms());
    generated.use();
  }
  return times_ms;
}

}  // namespace

ReferenceLink::ReferenceLink(const LinkDescription& description, std::uint32_t index,
                             double packet_bytes, std::uint64_t network_key, double duration_ms)
    : description_(description),
      packet_bytes_(packet_bytes),
      duration_ms_(duration_ms),
      key_(derive_key(network_key, {static_cast<std::uint64_t>(Purpose::kLink), index})) {
  queue_ = reference_queue(
      description.queue,
      {description.buffer_packets, mean_rate_packets_per_ms(description, packet_bytes),
       packet_bytes,
       derive_key(network_key, {static_cast<std::uint64_t>(Purpose::kQueue), index})});
  changes_ = changes(duration_ms);
  if (description.trace) {
    opportunities_ms_ = opportunities_until(*description.trace, stream_key(0), duration_ms);
  }
  if (description.policer) {
    tokens_bytes_ = description.policer->burst_packets * packet_bytes;
  }
}

std::uint64_t ReferenceLink::stream_key(std::uint64_t stream) const {
  return derive_key(key_, stream);
}

std::vector<std::pair<double, LinkCondition>> ReferenceLink::changes(double until_ms) const {
  LinkCondition now{description_.rate_packets_per_ms, description_.delay_ms,
                    description_.loss_probability};
  std::vector<std::pair<double, LinkCondition>> all = {{0, now}};
  if (!description_.changes) {
    return all;
  }
  if (const auto* const schedule = std::get_if<LinkSchedule>(&*description_.changes)) {
    for (std::uint64_t round = 0;; ++round) {
      const double begins_ms = static_cast<double>(round) * schedule->repeat_after_ms.value_or(0);
      for (const LinkStep& step : schedule->steps) {
        if (begins_ms + step.at_ms > until_ms) {
          return all;
        }
        now.rate_packets_per_ms = step.rate_packets_per_ms.value_or(now.rate_packets_per_ms);
        now.delay_ms = step.delay_ms.value_or(now.delay_ms);
        now.loss_probability = step.loss_probability.value_or(now.loss_probability);
        all.emplace_back(begins_ms + step.at_ms, now);
      }
      if (!schedule->repeat_after_ms) {
        return all;
      }
    }
  }
  const LinkWalk& walk = std::get<LinkWalk>(*description_.changes);
  for (std::uint64_t step = 0; static_cast<double>(step) * walk.every_ms <= until_ms; ++step) {
    const auto move = [&](const std::optional<LinkRange>& range, double& value,
                          std::uint64_t stream) {
      if (!range) {
        return;
      }
      const double size = range->most - range->least;
      const double draw = unit_interval(random_bits(derive_key(stream_key(1), stream), step));
      if (step == 0 || walk.step == 0) {
        value = range->least + size * draw;
        return;
      }
      value += size * walk.step * (2 * draw - 1);
      if (value < range->least) {
        value = 2 * range->least - value;
      } else if (value > range->most) {
        value = 2 * range->most - value;
      }
      value = std::min(std::max(value, range->least), range->most);
    };
    move(walk.rate_packets_per_ms, now.rate_packets_per_ms, 0);
    move(walk.delay_ms, now.delay_ms, 1);
    move(walk.loss_probability, now.loss_probability, 2);
    all.emplace_back(static_cast<double>(step) * walk.every_ms, now);
  }
  return all;
}

LinkCondition ReferenceLink::condition(double time_ms) const {
  LinkCondition found = changes_.front().second;
  for (const auto& [at_ms, condition] : changes_) {
    if (at_ms <= time_ms) {
      found = condition;
    }
  }
  return found;
}

double ReferenceLink::after_outage_ms(double time_ms) const {
  if (condition(time_ms).rate_packets_per_ms > 0) {
    return time_ms;
  }
  for (const auto& [at_ms, condition] : changes_) {
    if (at_ms > time_ms && condition.rate_packets_per_ms > 0) {
      return at_ms;
    }
  }
  return kNever;
}

bool ReferenceLink::admits(const Segment& segment, double now_ms) {
  if (!description_.policer) {
    return true;
  }
  const double rate = description_.policer->rate_packets_per_ms * packet_bytes_;
  tokens_bytes_ += (now_ms - tokens_at_ms_) * rate;
  tokens_bytes_ = std::min(tokens_bytes_, description_.policer->burst_packets * packet_bytes_);
  tokens_at_ms_ = now_ms;
  if (segment.bytes > tokens_bytes_) {
    return false;
  }
  tokens_bytes_ -= segment.bytes;
  return true;
}

bool ReferenceLink::counts_bytes() const {
  return description_.trace && description_.trace->semantics != TraceSemantics::kNs2;
}

double ReferenceLink::opportunity_bytes() const { return 1500 + header_bytes(); }

double ReferenceLink::header_bytes() const {
  return description_.trace->semantics == TraceSemantics::kMahimahi ? 4 : 0;
}

void ReferenceLink::arrived(double now_ms) {
  is_idle_ = false;
  if (counts_bytes()) {
    const bool can_use_now = description_.trace->semantics == TraceSemantics::kCellsim;
    while (opportunity_ < opportunities_ms_.size() &&
           (opportunities_ms_[opportunity_] < now_ms ||
            (opportunities_ms_[opportunity_] == now_ms && !can_use_now))) {
      ++opportunity_;
    }
    left_bytes_ = 0;
    return;
  }
  const bool has_rate = !description_.trace;
  takes_ms_ = has_rate ? after_outage_ms(now_ms) : now_ms;
}

double ReferenceLink::next_ms() const {
  if (is_idle_) {
    return kNever;
  }
  if (counts_bytes()) {
    if (left_bytes_ > 0) {
      return opportunities_ms_[opportunity_ - 1];
    }
    return opportunity_ < opportunities_ms_.size() ? opportunities_ms_[opportunity_] : kNever;
  }
  return in_service_ ? ends_ms_ : *takes_ms_;
}

void ReferenceLink::take_segment(double now_ms, DropListener& drops) {
  const Segment* const next = queue_->dequeue(now_ms, drops);
  in_service_ = next != nullptr ? std::optional<Segment>(*next) : std::nullopt;
  is_idle_ = !in_service_;
  if (is_idle_) {
    left_bytes_ = 0;
    return;
  }
  ++transmitted_;
  if (counts_bytes()) {
    missing_bytes_ = in_service_->bytes + header_bytes();
    return;
  }
  if (!description_.trace) {
    const double packets = in_service_->bytes / packet_bytes_;
    ends_ms_ = now_ms + packets * (1 / condition(now_ms).rate_packets_per_ms);
    return;
  }
  while (opportunity_ < opportunities_ms_.size() && opportunities_ms_[opportunity_] < now_ms) {
    ++opportunity_;
  }
  ends_ms_ = opportunity_ < opportunities_ms_.size() ? opportunities_ms_[opportunity_] : kNever;
  ++opportunity_;
}

void ReferenceLink::begin(double now_ms, DropListener& drops) {
  if (counts_bytes()) {
    ++opportunity_;
    left_bytes_ = opportunity_bytes();
  }
  take_segment(now_ms, drops);
}

std::optional<Segment> ReferenceLink::poll(double now_ms, DropListener& drops) {
  if (counts_bytes()) {
    if (left_bytes_ == 0) {
      ++opportunity_;
      left_bytes_ = opportunity_bytes();
    }
    if (!in_service_) {
      take_segment(now_ms, drops);
      if (!in_service_) {
        return std::nullopt;
      }
    }
    const double carried = std::min(left_bytes_, missing_bytes_);
    left_bytes_ -= carried;
    missing_bytes_ -= carried;
    return missing_bytes_ == 0 ? std::exchange(in_service_, std::nullopt) : std::nullopt;
  }
  if (!in_service_) {
    take_segment(now_ms, drops);
    return std::nullopt;
  }
  const std::optional<Segment> departed = std::exchange(in_service_, std::nullopt);
  takes_ms_ = description_.trace ? now_ms : after_outage_ms(now_ms);
  return departed;
}

double ReferenceLink::delay_ms(double departed_ms) const { return condition(departed_ms).delay_ms; }

void ReferenceLink::draw_loss(Segment& segment, double departed_ms) {
  const auto hop = static_cast<std::uint16_t>(segment.hop + 1);
  const std::uint64_t packet = departures_++;
  if (description_.changes && change_loss(*description_.changes)) {
    const std::uint64_t name = (segment.is_ack ? std::uint64_t{1} << 62 : 0) +
                               segment.sender * (std::uint64_t{1} << 48) +
                               segment.hop * (std::uint64_t{1} << 38) + segment.transmission_number;
    if (unit_interval(random_bits(stream_key(4), name)) < condition(departed_ms).loss_probability) {
      segment.lost_behind_hop = hop;
    }
  }
  if (description_.gilbert_elliott) {
    const GilbertElliottLoss& loss = *description_.gilbert_elliott;
    const double lose = unit_interval(random_bits(stream_key(2), 2 * packet));
    const double leave = unit_interval(random_bits(stream_key(2), 2 * packet + 1));
    if (lose < (is_bad_ ? loss.loss_in_bad : loss.loss_in_good)) {
      segment.lost_behind_hop = hop;
    }
    if (leave < (is_bad_ ? loss.bad_to_good : loss.good_to_bad)) {
      is_bad_ = !is_bad_;
    }
  }
}

bool ReferenceLink::reorders() const {
  if (!description_.jitter_box) {
    return false;
  }
  const auto* const random = std::get_if<RandomRelease>(&*description_.jitter_box);
  return random != nullptr && random->reorders;
}

void ReferenceLink::hold(const Segment& segment, double now_ms, double delay_ms) {
  Held held{segment, delay_ms, now_ms};
  if (description_.jitter_box) {
    if (const auto* const periodic = std::get_if<PeriodicRelease>(&*description_.jitter_box)) {
      const double slots = std::ceil(now_ms / periodic->period_ms);
      held.release_ms = std::max(now_ms, slots * periodic->period_ms);
    } else if (const auto* const random = std::get_if<RandomRelease>(&*description_.jitter_box)) {
      const std::uint64_t name = (segment.is_ack ? std::uint64_t{1} << 62 : 0) +
                                 segment.sender * (std::uint64_t{1} << 48) +
                                 segment.hop * (std::uint64_t{1} << 38) +
                                 segment.transmission_number;
      if (unit_interval(random_bits(stream_key(3), 2 * name)) < random->probability) {
        const double share = unit_interval(random_bits(stream_key(3), 2 * name + 1));
        held.release_ms += random->longest_hold_ms * share;
      }
      if (!random->reorders) {
        held.release_ms = std::max(held.release_ms, last_release_ms_);
        last_release_ms_ = held.release_ms;
      }
    } else {
      held.release_ms = kNever;
      if (box_.empty()) {
        opened_ms_ = now_ms;
      }
    }
  }
  box_.push_back(held);
  if (description_.jitter_box) {
    const auto* const batch = std::get_if<BatchRelease>(&*description_.jitter_box);
    if (batch != nullptr && box_.size() == batch->packets) {
      for (Held& each : box_) {
        each.release_ms = now_ms;
      }
    }
  }
}

double ReferenceLink::next_release_ms() const {
  if (box_.empty()) {
    return kNever;
  }
  const auto* const batch = std::get_if<BatchRelease>(&*description_.jitter_box);
  return batch == nullptr ? kNever : opened_ms_ + batch->longest_wait_ms;
}

std::vector<ReferenceLink::Held> ReferenceLink::released() {
  const bool is_known = !box_.empty() && box_.front().release_ms < kNever;
  return is_known ? std::exchange(box_, {}) : std::vector<Held>();
}

std::vector<ReferenceLink::Held> ReferenceLink::release(double now_ms) {
  for (Held& each : box_) {
    each.release_ms = now_ms;
  }
  return std::exchange(box_, {});
}

}  // namespace remy
