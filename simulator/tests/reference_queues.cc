#include "reference_queues.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "core/random.h"

namespace remy {
namespace {

constexpr double kNever = Queue::kNever;

using Packets = std::deque<Segment>;

std::size_t bytes_of(const Packets& packets) {
  std::size_t bytes = 0;
  for (const Segment& packet : packets) {
    bytes += packet.bytes;
  }
  return bytes;
}

// Base of the reference queues: FIFO queues by flow number.
class ReferenceQueue : public Queue {
 public:
  virtual std::optional<Segment> next(double now_ms, DropListener& drops) = 0;

  Segment* dequeue(double now_ms, DropListener& drops) final {
    departing_ = next(now_ms, drops);
    return departing_ ? &*departing_ : nullptr;
  }

 private:
  std::optional<Segment> departing_;

 protected:
  std::map<std::uint32_t, Packets> flows_;

  void put(std::uint32_t flow, Segment segment, double now_ms) {
    segment.queued_ms = now_ms;
    count_enqueued(segment);
    flows_[flow].push_back(segment);
  }
  Segment take_head(std::uint32_t flow) {
    const Segment segment = flows_[flow].front();
    flows_[flow].pop_front();
    count_dequeued(segment);
    return segment;
  }
  Segment take_tail(std::uint32_t flow) {
    const Segment segment = flows_[flow].back();
    flows_[flow].pop_back();
    count_dequeued(segment);
    return segment;
  }
  std::uint32_t longest_flow() const {
    std::uint32_t longest = 0;
    std::size_t most = 0;
    for (const auto& [flow, packets] : flows_) {
      if (packets.size() > most) {
        most = packets.size();
        longest = flow;
      }
    }
    return longest;
  }
};

std::uint32_t flow_of(const Segment& segment, std::uint32_t flows) {
  return (2 * segment.sender + (segment.is_ack ? 1 : 0)) % flows;
}

class ReferenceDropTail : public ReferenceQueue {
 public:
  ReferenceDropTail(std::uint64_t limit_packets, double limit_bytes)
      : limit_packets_(limit_packets), limit_bytes_(limit_bytes) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    const bool is_full = flows_[0].size() + 1 > limit_packets_ ||
                         static_cast<double>(bytes_of(flows_[0]) + segment.bytes) > limit_bytes_;
    if (is_full && !is_link_idle_) {
      drops.on_drop(segment, now_ms);
      return;
    }
    put(0, segment, now_ms);
    is_link_idle_ = false;
  }
  std::optional<Segment> next(double, DropListener&) override {
    is_link_idle_ = flows_[0].empty();
    return is_link_idle_ ? std::nullopt : std::optional(take_head(0));
  }

 private:
  std::uint64_t limit_packets_;
  double limit_bytes_;
  bool is_link_idle_ = true;
};

// The state variables of RFC 8289, section 5.3, by the RFC's names.
struct CoDelState {
  double first_above_time = 0;  // 0: below the target
  double drop_next = 0;
  double count = 0;
  double lastcount = 0;
  bool dropping = false;
};

// One or more queues managed by CoDel. Subclasses choose the queue.
class ReferenceCoDel : public ReferenceQueue {
 public:
  ReferenceCoDel(const ParameterValues& values, bool is_ns2, bool has_ecn, double maxpacket)
      : target_(values["target_ms"]),
        interval_(values["interval_ms"]),
        is_ns2_(is_ns2),
        marks_(has_ecn && values["ecn"] != 0),
        maxpacket_(maxpacket) {}

 protected:
  struct DodequeueResult {
    std::optional<Segment> packet;
    bool ok_to_drop = false;
  };

  // Returns true if a flow's backlog is at most maxpacket, too short to drop from.
  virtual bool is_short(std::uint32_t flow) {
    return static_cast<double>(bytes_of(flows_[flow])) <= maxpacket_;
  }

  std::optional<Segment> dequeue(std::uint32_t flow, double now, DropListener& drops) {
    CoDelState& state = states_[flow];
    DodequeueResult r = dodequeue(flow, now);
    if (state.dropping) {
      if (!r.ok_to_drop) {
        state.dropping = false;
      }
      while (now >= state.drop_next && state.dropping) {
        if (mark(r)) {
          state.count += 1;
          state.drop_next += interval_ / std::sqrt(state.count);
          return r.packet;
        }
        drops.on_drop(*r.packet, now);
        r = dodequeue(flow, now);
        if (!r.ok_to_drop) {
          state.dropping = false;
        } else {
          state.count += 1;
          state.drop_next += interval_ / std::sqrt(state.count);
        }
      }
    } else if (r.ok_to_drop) {
      if (!mark(r)) {
        drops.on_drop(*r.packet, now);
        r = dodequeue(flow, now);
      }
      state.dropping = true;
      if (is_ns2_) {
        const bool is_soon = state.count > 2 && now - state.drop_next < 8 * interval_;
        state.count = is_soon ? state.count - 2 : 1;
      } else {
        const double delta = state.count - state.lastcount;
        state.count = delta > 1 && now - state.drop_next < 16 * interval_ ? delta : 1;
      }
      state.drop_next = now + interval_ / std::sqrt(state.count);
      state.lastcount = state.count;
    }
    return r.packet;
  }

  double maxpacket() const { return maxpacket_; }

  std::map<std::uint32_t, CoDelState> states_;

 private:
  DodequeueResult dodequeue(std::uint32_t flow, double now) {
    CoDelState& state = states_[flow];
    if (flows_[flow].empty()) {
      state.first_above_time = 0;
      return {};
    }
    DodequeueResult r;
    r.packet = take_head(flow);
    if (now - r.packet->queued_ms < target_ || is_short(flow)) {
      state.first_above_time = 0;
    } else if (state.first_above_time == 0) {
      state.first_above_time = now + interval_;
    } else {
      r.ok_to_drop = now >= state.first_above_time;
    }
    return r;
  }

  bool mark(DodequeueResult& r) const {
    if (marks_ && r.packet->is_ecn_capable) {
      r.packet->is_marked = true;
      return true;
    }
    return false;
  }

  double target_;
  double interval_;
  bool is_ns2_;
  bool marks_;
  double maxpacket_;
};

class ReferencePlainCoDel final : public ReferenceCoDel {
 public:
  ReferencePlainCoDel(const ParameterValues& values, std::uint64_t limit, double maxpacket)
      : ReferenceCoDel(values, values.variant() == "ns2", values.variant() != "ns2", maxpacket),
        limit_(limit) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    if (flows_[0].size() == limit_) {
      drops.on_drop(segment, now_ms);
    } else {
      put(0, segment, now_ms);
    }
  }
  std::optional<Segment> next(double now_ms, DropListener& drops) override {
    return dequeue(0, now_ms, drops);
  }

 private:
  std::uint64_t limit_;
};

// FQ-CoDel (RFC 8290, section 4).
class ReferenceFqCoDel final : public ReferenceCoDel {
 public:
  ReferenceFqCoDel(const ParameterValues& values, std::uint64_t limit, double maxpacket)
      : ReferenceCoDel(values, false, true, maxpacket),
        flow_count_(static_cast<std::uint32_t>(values["flows"])),
        quantum_(std::floor(values["quantum_bytes"])),
        limit_(std::min(limit, static_cast<std::uint64_t>(values["limit_packets"]))),
        batch_(static_cast<std::uint64_t>(values["drop_batch_packets"])) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    const std::uint32_t flow = flow_of(segment, flow_count_);
    put(flow, segment, now_ms);
    if (std::ranges::count(new_, flow) + std::ranges::count(old_, flow) == 0) {
      new_.push_back(flow);
      credits_[flow] = quantum_;
    }
    std::size_t total = 0;
    std::uint32_t largest = 0;
    std::size_t most = 0;
    for (const auto& [number, packets] : flows_) {
      total += packets.size();
      if (bytes_of(packets) > most) {
        most = bytes_of(packets);
        largest = number;
      }
    }
    if (total > limit_) {
      const std::size_t length = flows_[largest].size();
      for (std::uint64_t dropped = 0; dropped < batch_ && 2 * dropped < length; ++dropped) {
        drops.on_drop(take_head(largest), now_ms);
      }
    }
  }

  std::optional<Segment> next(double now_ms, DropListener& drops) override {
    while (!new_.empty() || !old_.empty()) {
      std::list<std::uint32_t>& list = new_.empty() ? old_ : new_;
      const std::uint32_t flow = list.front();
      if (credits_[flow] <= 0) {
        credits_[flow] += quantum_;
        list.pop_front();
        old_.push_back(flow);
        continue;
      }
      const std::optional<Segment> segment = dequeue(flow, now_ms, drops);
      if (segment) {
        credits_[flow] -= segment->bytes;
        return segment;
      }
      const bool was_new = &list == &new_;
      list.pop_front();
      if (was_new) {
        old_.push_back(flow);
      }
    }
    return std::nullopt;
  }

 private:
  std::uint32_t flow_count_;
  double quantum_;
  std::uint64_t limit_;
  std::uint64_t batch_;
  std::list<std::uint32_t> new_;
  std::list<std::uint32_t> old_;
  std::map<std::uint32_t, double> credits_;
};

// sfqCoDel: one round-robin list of bins, in which new bins come before old ones.
class ReferenceSfqCoDel final : public ReferenceCoDel {
 public:
  ReferenceSfqCoDel(const ParameterValues& values, std::uint64_t limit, double maxpacket)
      : ReferenceCoDel(values, true, false, maxpacket), limit_(limit) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    if (packets() == limit_) {
      drops.on_drop(take_tail(longest_flow()), now_ms);
    }
    const std::uint32_t flow = flow_of(segment, 1024);
    put(flow, segment, now_ms);
    if (std::ranges::count(schedule_, flow) == 0) {
      auto position = schedule_.begin();
      while (position != schedule_.end() && is_new_[*position]) {
        ++position;
      }
      schedule_.insert(position, flow);
      is_new_[flow] = true;
    }
  }

  std::optional<Segment> next(double now_ms, DropListener& drops) override {
    while (!schedule_.empty() && flows_[schedule_.front()].empty()) {
      states_[schedule_.front()].dropping = false;
      schedule_.pop_front();
    }
    if (schedule_.empty()) {
      return std::nullopt;
    }
    const std::uint32_t flow = schedule_.front();
    schedule_.pop_front();
    schedule_.push_back(flow);
    is_new_[flow] = false;
    return dequeue(flow, now_ms, drops);
  }

 private:
  bool is_short(std::uint32_t flow) override {
    return flows_[flow].empty() || static_cast<double>(bytes()) <= maxpacket();
  }

  std::uint64_t limit_;
  std::list<std::uint32_t> schedule_;
  std::map<std::uint32_t, bool> is_new_;
};

class ReferenceFairQueue final : public ReferenceQueue {
 public:
  // Without a quantum: packet round robin; with one: deficit round robin.
  ReferenceFairQueue(std::uint64_t limit, std::optional<std::uint64_t> quantum)
      : limit_(limit), quantum_(quantum) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    if (packets() == limit_) {
      drops.on_drop(take_tail(longest_flow()), now_ms);
    }
    const std::uint32_t flow = flow_of(segment, 1024);
    put(flow, segment, now_ms);
    if (std::ranges::count(active_, flow) == 0) {
      active_.push_back(flow);
      deficits_[flow] = 0;
    }
  }

  std::optional<Segment> next(double, DropListener&) override {
    while (!active_.empty()) {
      const std::uint32_t flow = active_.front();
      Packets& packets = flows_[flow];
      if (packets.empty()) {
        active_.pop_front();
        has_quantum_ = false;
        continue;
      }
      if (!quantum_) {
        active_.pop_front();
        active_.push_back(flow);
        return take_head(flow);
      }
      if (!has_quantum_) {
        has_quantum_ = true;
        deficits_[flow] += *quantum_;
      }
      if (packets.front().bytes <= deficits_[flow]) {
        deficits_[flow] -= packets.front().bytes;
        return take_head(flow);
      }
      has_quantum_ = false;
      active_.pop_front();
      active_.push_back(flow);
    }
    return std::nullopt;
  }

 private:
  std::uint64_t limit_;
  std::optional<std::uint64_t> quantum_;
  std::list<std::uint32_t> active_;
  std::map<std::uint32_t, std::uint64_t> deficits_;
  bool has_quantum_ = false;  // the front flow has received this round's quantum
};

class ReferenceRed final : public ReferenceQueue {
 public:
  ReferenceRed(double minimum, double maximum, double probability, double weight, bool is_gentle,
               bool marks, const QueueSetting& setting, std::uint64_t limit)
      : minimum_(minimum),
        maximum_(maximum),
        probability_(probability),
        weight_(weight),
        is_gentle_(is_gentle),
        marks_(marks),
        limit_(limit),
        service_ms_(1 / setting.rate_packets_per_ms),
        key_(setting.key) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    if (idle_since_ms_) {
      // The average decays as if the packets that an idle link could have sent had arrived at an
      // empty queue.
      const auto sent = static_cast<std::uint64_t>((now_ms - *idle_since_ms_) / service_ms_);
      average_ *= whole_power(1 - weight_, sent);
      idle_since_ms_ = now_ms;
    }
    average_ += weight_ * (static_cast<double>(flows_[0].size()) - average_);
    ++arrivals_;
    const bool should_mark_now = should_mark();
    const bool is_marked = should_mark_now && marks_ && segment.is_ecn_capable;
    if (flows_[0].size() >= limit_ || (should_mark_now && !is_marked)) {
      drops.on_drop(segment, now_ms);
      return;
    }
    put(0, segment, now_ms);
    flows_[0].back().is_marked |= is_marked;
    idle_since_ms_.reset();
  }

  std::optional<Segment> next(double now_ms, DropListener&) override {
    if (flows_[0].empty()) {
      idle_since_ms_ = now_ms;
      return std::nullopt;
    }
    return take_head(0);
  }

 private:
  // Multiplies in the same order as elements/red.cc, so that results are bit-identical.
  static double whole_power(double base, std::uint64_t exponent) {
    if (exponent == 0) {
      return 1;
    }
    double result = 1;
    double square = base;
    while (exponent > 0) {
      result = exponent % 2 == 1 ? result * square : result;
      square = square * square;
      exponent /= 2;
    }
    return result;
  }

  bool should_mark() {
    double p = 0;
    if (average_ >= maximum_) {
      p = is_gentle_ ? probability_ + (1 - probability_) * (average_ / maximum_ - 1) : 1;
    } else if (average_ >= minimum_) {
      p = probability_ * (average_ - minimum_) / (maximum_ - minimum_);
    } else {
      count_ = -1;
      return false;
    }
    if (average_ >= (is_gentle_ ? 2 : 1) * maximum_) {
      count_ = -1;
      return true;
    }
    ++count_;
    const bool is_certain = count_ * p >= 1;
    if (is_certain || unit_interval(random_bits(key_, arrivals_)) < p / (1 - count_ * p)) {
      count_ = -1;
      return true;
    }
    return false;
  }

  double minimum_, maximum_, probability_, weight_;
  bool is_gentle_;
  bool marks_;
  std::uint64_t limit_;
  double service_ms_;
  std::uint64_t key_;
  double average_ = 0;
  std::optional<double> idle_since_ms_ = 0;
  std::uint64_t arrivals_ = 0;
  double count_ = -1;  // packets since the last mark (the paper's count)
};

// XCP router (Katabi, Handley and Rohrs 2002, section 3.5). Keeps every packet of the current
// control interval.
class ReferenceXcpRouter final : public ReferenceQueue {
 public:
  ReferenceXcpRouter(const ParameterValues& values, const QueueSetting& setting,
                     std::uint64_t limit)
      : alpha_(values["alpha"]),
        beta_(values["beta"]),
        gamma_(values["gamma"]),
        initial_ms_(values["initial_interval_ms"]),
        capacity_(setting.rate_packets_per_ms),
        packet_bytes_(setting.packet_bytes),
        limit_(limit) {}

  void enqueue(const Segment& segment, double now_ms, DropListener& drops) override {
    if (!is_running_) {
      is_running_ = true;
      rtt_ms_ = initial_ms_;
      interval_start_ms_ = now_ms;
      control_timer_ms_ = now_ms + initial_ms_;
      queue_timer_ms_ = control_timer_ms_;
      persistent_queue_ = 0;
      min_queue_ = 0;
      set_timer();
    }
    arrivals_in_interval_.push_back(segment);
    if (flows_[0].size() == limit_) {
      drops.on_drop(segment, now_ms);
    } else {
      put(0, segment, now_ms);
    }
  }

  std::optional<Segment> next(double, DropListener&) override {
    if (flows_[0].empty()) {
      return std::nullopt;
    }
    Segment segment = take_head(0);
    min_queue_ = std::min(min_queue_, backlog());
    if (!segment.is_ack) {
      segment.congestion.feedback_packets = feedback(segment);
    }
    return segment;
  }

  void tick(double now_ms) override {
    if (queue_timer_ms_ <= now_ms) {
      persistent_queue_ = min_queue_;
      min_queue_ = backlog();
      queue_timer_ms_ = now_ms + std::max(2.0, (rtt_ms_ - min_queue_ / capacity_) / 2);
    }
    if (control_timer_ms_ <= now_ms) {
      end_control_interval(now_ms);
    }
    set_timer();
  }

 private:
  void set_timer() {
    next_ms_ = is_running_ ? std::min(control_timer_ms_, queue_timer_ms_) : kNever;
  }
  double backlog() { return static_cast<double>(bytes_of(flows_[0])) / packet_bytes_; }
  double size(const Segment& segment) const {
    return static_cast<double>(segment.bytes) / packet_bytes_;
  }

  void end_control_interval(double now_ms) {
    double input = 0;
    double sum = 0;
    double square = 0;
    for (const Segment& segment : arrivals_in_interval_) {
      input += size(segment);
      const auto& [window, rtt, demand] = segment.congestion;
      if (!segment.is_ack && rtt > 0) {
        sum += rtt * size(segment) / window;
        square += std::min(rtt, 1000.0) * (rtt * size(segment) / window);
      }
    }
    rtt_ms_ = std::clamp(sum > 0 ? square / sum : initial_ms_, 1.0, 1000.0);
    xi_pos_ = xi_neg_ = residue_pos_ = residue_neg_ = 0;
    if (input == 0 && flows_[0].empty()) {
      arrivals_in_interval_.clear();
      is_running_ = false;
      return;
    }
    // ACKs may have size 0.
    if (input > 0) {
      const double rate = input / (now_ms - interval_start_ms_);
      const double phi = alpha_ * rtt_ms_ * (capacity_ - rate) - beta_ * persistent_queue_;
      const double h = std::max(0.0, gamma_ * rate * rtt_ms_ - std::fabs(phi));
      residue_pos_ = (h + std::max(0.0, phi)) / rtt_ms_;
      residue_neg_ = (h + std::max(0.0, -phi)) / rtt_ms_;
      xi_pos_ = sum > 0 ? residue_pos_ / sum : 0;
      xi_neg_ = residue_neg_ / input;
    }
    arrivals_in_interval_.clear();
    interval_start_ms_ = now_ms;
    control_timer_ms_ = now_ms + rtt_ms_;
  }

  double feedback(const Segment& segment) {
    const auto& [window, rtt, demand] = segment.congestion;
    if (rtt <= 0) {
      return 0;
    }
    double p = std::min(xi_pos_ * rtt * rtt * size(segment) / window, residue_pos_ * rtt);
    double n = std::min(xi_neg_ * rtt * size(segment), residue_neg_ * rtt);
    const double granted = std::min(demand, p - n);
    if (demand < p - n) {
      n = std::min(n + (p - n - demand), residue_neg_ * rtt);
      p = std::max(0.0, demand + n);
    }
    residue_pos_ = std::max(0.0, residue_pos_ - p / rtt);
    residue_neg_ = std::max(0.0, residue_neg_ - n / rtt);
    return granted;
  }

  double alpha_, beta_, gamma_, initial_ms_, capacity_, packet_bytes_;
  std::uint64_t limit_;
  bool is_running_ = false;
  std::deque<Segment> arrivals_in_interval_;
  double interval_start_ms_ = 0;
  double control_timer_ms_ = 0;
  double queue_timer_ms_ = 0;
  double rtt_ms_ = 0;
  double xi_pos_ = 0;
  double xi_neg_ = 0;
  double residue_pos_ = 0;
  double residue_neg_ = 0;
  double persistent_queue_ = 0;
  double min_queue_ = 0;
};

}  // namespace

std::unique_ptr<Queue> reference_queue(const Choice& choice, const QueueSetting& setting) {
  const ParameterValues values("queue", find_queue_discipline(choice.name).variants, choice);
  const std::uint64_t limit =
      setting.buffer_packets ? *setting.buffer_packets : std::uint64_t{1} << 40;
  if (choice.name == "drop-tail") {
    return std::make_unique<ReferenceDropTail>(
        limit, values.variant() == "bytes" ? std::floor(values["limit_bytes"]) : 1e18);
  }
  if (choice.name == "codel") {
    return std::make_unique<ReferencePlainCoDel>(values, limit, setting.packet_bytes);
  }
  if (choice.name == "fq-codel") {
    return std::make_unique<ReferenceFqCoDel>(values, limit, setting.packet_bytes);
  }
  if (choice.name == "sfq-codel") {
    return std::make_unique<ReferenceSfqCoDel>(values, limit, setting.packet_bytes);
  }
  if (choice.name == "fair-queueing") {
    std::optional<std::uint64_t> quantum;
    if (values.variant() == "drr") {
      quantum = static_cast<std::uint64_t>(values["quantum_bytes"]);
    }
    return std::make_unique<ReferenceFairQueue>(limit, quantum);
  }
  if (choice.name == "red") {
    return std::make_unique<ReferenceRed>(
        values["minimum_packets"], values["maximum_packets"], values["maximum_probability"],
        values["weight"], values.variant() == "gentle", values["ecn"] != 0, setting, limit);
  }
  if (choice.name == "threshold-marking") {
    const double k = values["threshold_packets"];
    return std::make_unique<ReferenceRed>(k, k, 1, 1, false, true, setting, limit);
  }
  return std::make_unique<ReferenceXcpRouter>(values, setting, limit);
}

}  // namespace remy
