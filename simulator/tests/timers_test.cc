#include "network/timers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "random_cases.h"

namespace remy {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class TimersAgainstAMultimap : public testing::TestWithParam<std::uint32_t> {};

TEST_P(TimersAgainstAMultimap, AgreeOnTheFirst) {
  const std::uint32_t count = GetParam();
  RandomCase random(count);
  Timers timers(count);
  std::vector<double> due(count, kNever);
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t index = random.integer(0, count - 1);
    due[index] = random.chance(0.2)   ? kNever
                 : random.chance(0.5) ? random.integer(0, 5)
                                      : random.uniform(0, 5);
    timers.set(index, due[index]);
    std::multimap<double, std::uint32_t> by_time;  // keeps the order of insertion at equal times
    for (std::uint32_t each = 0; each < count; ++each) {
      by_time.emplace(due[each], each);
    }
    EXPECT_EQ(timers.earliest(), by_time.begin()->first);
    EXPECT_EQ(timers.first(), by_time.begin()->second);
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, TimersAgainstAMultimap,
                         testing::Values(1U, 2U, 3U, 4U, 5U, 8U, 15U, 16U, 17U, 64U, 100U));

TEST(Timers, AreNotDueUntilSet) {
  EXPECT_EQ(Timers(7).earliest(), kNever);
  EXPECT_EQ(Timers(0).earliest(), kNever);
}

// A simple model of SendQueue: senders by time, at equal times by index.
class SlowQueue {
 public:
  void wait(std::uint32_t index, double due_ms) {
    leave(index);
    by_time_.emplace(std::pair(due_ms, index), index);
  }
  void leave(std::uint32_t index) {
    std::erase_if(by_time_, [&](const auto& entry) { return entry.second == index; });
  }
  bool has(std::uint32_t index) const {
    return std::any_of(by_time_.begin(), by_time_.end(),
                       [&](const auto& entry) { return entry.second == index; });
  }
  bool empty() const { return by_time_.empty(); }
  double first_due_ms() const { return by_time_.begin()->first.first; }
  std::uint32_t first() const { return by_time_.begin()->second; }

 private:
  std::multimap<std::pair<double, std::uint32_t>, std::uint32_t> by_time_;
};

std::vector<SendQueue::Waiter> make_waiters(std::uint32_t count) {
  std::vector<SendQueue::Waiter> waiters(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    waiters[i].index = i;
  }
  return waiters;
}

void expect_same_first(SendQueue& queue, const SlowQueue& model) {
  if (model.empty()) {
    EXPECT_EQ(queue.first().due_ms, SendQueue::kNever);
  } else {
    EXPECT_EQ(queue.first().due_ms, model.first_due_ms());
    EXPECT_EQ(queue.first().index, model.first());
  }
}

class SendQueueAgainstAMultimap : public testing::TestWithParam<std::uint64_t> {};

TEST_P(SendQueueAgainstAMultimap, AgreesOnTheFirst) {
  RandomCase random(GetParam());
  auto waiters = make_waiters(random.integer(1, 20));
  SendQueue queue;
  SlowQueue model;
  for (int i = 0; i < 500; ++i) {
    SendQueue::Waiter& waiter =
        waiters[random.integer(0, static_cast<std::uint32_t>(waiters.size()) - 1)];
    // Half of the times are whole numbers below 10, so that many are equal. Times may be negative.
    const double due_ms = random.chance(0.5) ? random.integer(0, 9) : random.uniform(-1, 11);
    if (random.chance(0.3)) {
      queue.leave(waiter);
      model.leave(waiter.index);
      EXPECT_EQ(waiter.due_ms, SendQueue::kNever);
    } else {
      if (model.has(waiter.index) && random.chance(0.5)) {
        queue.wait_again(waiter, due_ms);
      } else {
        queue.wait(waiter, due_ms);
      }
      model.wait(waiter.index, due_ms);
      EXPECT_EQ(waiter.due_ms, due_ms);
    }
    expect_same_first(queue, model);
  }
  while (!model.empty()) {
    expect_same_first(queue, model);
    model.leave(model.first());
    queue.leave(queue.first());
  }
  expect_same_first(queue, model);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SendQueueAgainstAMultimap, testing::Range<std::uint64_t>(0, 100));

TEST(SendQueue, EmptyQueueHasNoFirst) {
  SendQueue queue;
  EXPECT_EQ(queue.first().due_ms, SendQueue::kNever);
  auto waiters = make_waiters(1);
  queue.leave(waiters[0]);
  EXPECT_EQ(queue.first().due_ms, SendQueue::kNever);
}

TEST(SendQueue, LowestIndexIsFirstAtEqualTimes) {
  auto waiters = make_waiters(3);
  SendQueue queue;
  for (const std::size_t i : {1U, 2U, 0U}) {
    queue.wait(waiters[i], 5);
  }
  for (const std::uint32_t expected : {0U, 1U, 2U}) {
    EXPECT_EQ(queue.first().index, expected);
    queue.leave(queue.first());
  }
}

}  // namespace
}  // namespace remy
