#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elements/queues.h"

namespace remy {

// Drives a queue from a test, and records drops and departures with their times.
class QueueHarness : private DropListener {
 public:
  struct Event {
    double now_ms;
    Segment segment;
  };

  QueueHarness(const Choice& choice, const QueueSetting& setting) {
    const QueueDiscipline& discipline = find_queue_discipline(choice.name);
    queue_ = discipline.make(ParameterValues("queue", discipline.variants, choice), setting);
  }

  explicit QueueHarness(std::unique_ptr<Queue> queue) : queue_(std::move(queue)) {}

  Queue& queue() { return *queue_; }
  const std::vector<Event>& dropped() const { return dropped_; }
  const std::vector<Event>& departed() const { return departed_; }

  void enqueue(Segment segment) {
    segment.transmission_number = serial_++;
    queue_->enqueue(segment, now_ms, *this);
  }
  void enqueue(std::uint32_t sender, std::uint32_t bytes = 1500, bool is_ecn_capable = false) {
    Segment segment;
    segment.sender = sender;
    segment.bytes = bytes;
    segment.is_ecn_capable = is_ecn_capable;
    enqueue(segment);
  }
  void enqueue_many(std::uint32_t count, std::uint32_t sender, std::uint32_t bytes = 1500) {
    for (; count > 0; --count) {
      enqueue(sender, bytes);
    }
  }

  std::optional<Segment> dequeue() {
    const Segment* const segment = queue_->dequeue(now_ms, *this);
    if (segment == nullptr) {
      return std::nullopt;
    }
    departed_.push_back({now_ms, *segment});
    return *segment;
  }
  // Dequeues up to `count` segments and returns their senders.
  std::vector<std::uint32_t> senders_of_next(std::uint32_t count) {
    std::vector<std::uint32_t> senders;
    for (; count > 0; --count) {
      if (const auto segment = dequeue()) {
        senders.push_back(segment->sender);
      }
    }
    return senders;
  }

  double now_ms = 0;

 private:
  void on_drop(const Segment& segment, double at_ms) override {
    dropped_.push_back({at_ms, segment});
  }

  std::unique_ptr<Queue> queue_;
  std::uint64_t serial_ = 0;
  std::vector<Event> dropped_;
  std::vector<Event> departed_;
};

// Returns the senders of the events' segments.
inline std::vector<std::uint32_t> senders_of(const std::vector<QueueHarness::Event>& events) {
  std::vector<std::uint32_t> senders;
  for (const QueueHarness::Event& event : events) {
    senders.push_back(event.segment.sender);
  }
  return senders;
}

// Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all shares are equal (Jain, Chiu and Hawe
// 1984).
inline double jain_index(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace remy
