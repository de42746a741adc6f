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

// A simulation was cancelled or exceeded its packet limit.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ends the simulations of one call early: when a flag is set, when they have sent too many packets,
// or when a function of the calling thread throws. Shared by the call's threads.
class Interruption {
 public:
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  // `flag` may be null. Only the calling thread runs `poll`, from time to time; an exception of it
  // ends the call.
  Interruption(const std::atomic<bool>* flag, std::uint64_t packet_limit,
               std::function<void()> poll = nullptr)
      : flag_(flag), packet_limit_(packet_limit), poll_(std::move(poll)) {}

  // Checks flag and limit; simulations call it every few milliseconds. `packets` is a lower bound
  // of the packets sent since the last call. Throws Interrupted.
  void check(std::uint64_t packets) {
    if (stopped_.load(std::memory_order_relaxed) ||
        (flag_ != nullptr && flag_->load(std::memory_order_relaxed))) {
      refuse<Interrupted>("the evaluation was cancelled");
    }
    if (packet_limit_ != kNoLimit) {
      require_within_limit(packets_.fetch_add(packets, std::memory_order_relaxed) + packets);
    }
    if (poll_ && this_thread() == caller_ && (work_ += packets + kWorkPerCheck) >= kWorkPerPoll) {
      work_ = 0;
      poll_();
    }
  }

  // Makes check() throw in all threads of the call.
  void stop() { stopped_ = true; }

  // Called after all simulations with the exact number of packets, so that whether a call exceeds
  // its limit does not depend on when check() was called.
  void finish(std::uint64_t packets_sent) const { require_within_limit(packets_sent); }

 private:
  // Work between two polls, in packets. A check counts as some packets of its own, since work
  // other than sending may precede it.
  static constexpr std::uint64_t kWorkPerCheck = 64;
  static constexpr std::uint64_t kWorkPerPoll = 1 << 18;

  // An address that is unique among running threads.
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
  std::atomic<std::uint64_t> packets_{0};
  std::function<void()> poll_;
  const void* caller_ = this_thread();
  std::uint64_t work_ = 0;
};

}  // namespace remy
