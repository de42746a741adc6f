#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/requirement.h"

namespace remy {

// A simulation was ended from outside.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What may end the simulations of one call before their time: a flag that anybody may set, a limit
// to the packets that they send together, and whatever the calling thread must not miss. Shared by
// the call's threads.
class Interruption {
 public:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  // `flag` may be null. The calling thread alone runs `poll`, now and then; what that throws ends
  // the call.
  Interruption(const std::atomic<bool>* flag, std::uint64_t packet_limit,
               std::function<void()> poll = nullptr)
      : flag_(flag), packet_limit_(packet_limit), poll_(std::move(poll)) {}

  // Simulations look often enough that milliseconds pass in between, and rarely enough that it
  // costs them nothing; `packets` have been sent since, or more. Throws Interrupted.
  void look(std::uint64_t packets) {
    if (stopped_.load(std::memory_order_relaxed) ||
        (flag_ != nullptr && flag_->load(std::memory_order_relaxed))) {
      refuse<Interrupted>("the evaluation was cancelled");
    }
    if (packet_limit_ != kNoLimit) {
      require_within_limit(seen_.fetch_add(packets, std::memory_order_relaxed) + packets);
    }
    if (poll_ && this_thread() == caller_ && (work_ += packets + kWorkPerLook) >= kWorkPerPoll) {
      work_ = 0;
      poll_();
    }
  }

  // Ends the simulations of the call's other threads, too.
  void stop() { stopped_ = true; }

  // All simulations are over. Whether a call keeps to its limit does not depend on when it looked.
  void finish(std::uint64_t packets_sent) const { require_within_limit(packets_sent); }

 private:
  // In packets: a look that tells of none follows work of another kind.
  static constexpr std::uint64_t kWorkPerLook = 64;
  static constexpr std::uint64_t kWorkPerPoll = 1 << 18;

  // Its own, and of no other thread that runs.
  static const void* this_thread() {
    static thread_local const char here = 0;
    return &here;
  }

  void require_within_limit(std::uint64_t packets) const {
    if (packets > packet_limit_) {
      refuse<Interrupted>("the evaluation sent more than " + std::to_string(packet_limit_) +
                          " packets");
    }
  }

  const std::atomic<bool>* flag_;
  std::uint64_t packet_limit_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> seen_{0};
  std::function<void()> poll_;
  const void* caller_ = this_thread();
  std::uint64_t work_ = 0;
};

}  // namespace remy
