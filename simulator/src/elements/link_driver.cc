#include "elements/link_driver.h"

#include <utility>

#include "elements/queue.h"

namespace remy {
namespace {

// Of a packet of so many bytes.
double service_ms(double rate_packets_per_ms, double bytes, double packet_bytes) {
  const double whole_ms = 1 / rate_packets_per_ms;
  return bytes == packet_bytes ? whole_ms : bytes / packet_bytes * whole_ms;
}

class RateDriver final : public LinkDriver {
 public:
  RateDriver(double rate_packets_per_ms, double packet_bytes)
      : rate_packets_per_ms_(rate_packets_per_ms), packet_bytes_(packet_bytes) {}

  double asks_ms(double now_ms) override { return now_ms; }
  Passage take(double asked_ms, std::uint32_t bytes) override {
    const double departs_ms = asked_ms + service_ms(rate_packets_per_ms_, bytes, packet_bytes_);
    return {departs_ms, departs_ms};
  }

 private:
  double rate_packets_per_ms_;
  double packet_bytes_;
};

class ChangingRateDriver final : public LinkDriver {
 public:
  ChangingRateDriver(LinkConditions conditions, double packet_bytes)
      : conditions_(std::move(conditions)), packet_bytes_(packet_bytes) {}

  double asks_ms(double now_ms) override { return conditions_.begins_ms(now_ms); }
  Passage take(double asked_ms, std::uint32_t bytes) override {
    const double rate_packets_per_ms = conditions_.at(asked_ms).rate_packets_per_ms;
    // An outage that lasts to the end.
    if (rate_packets_per_ms == 0) {
      return {Queue::kNever, Queue::kNever};
    }
    const double departs_ms = asked_ms + service_ms(rate_packets_per_ms, bytes, packet_bytes_);
    return {departs_ms, asks_ms(departs_ms)};
  }

 private:
  LinkConditions conditions_;
  double packet_bytes_;
};

class Ns2Driver final : public LinkDriver {
 public:
  explicit Ns2Driver(Opportunities opportunities) : opportunities_(std::move(opportunities)) {}

  double asks_ms(double now_ms) override { return now_ms; }
  Passage take(double asked_ms, std::uint32_t) override {
    opportunities_.skip_before(asked_ms);
    const double departs_ms = opportunities_.next_ms();
    opportunities_.use();
    return {departs_ms, departs_ms};
  }

 private:
  Opportunities opportunities_;
};

constexpr std::uint32_t kMahimahiHeaderBytes = 4;
constexpr std::uint32_t bytes_of(TraceSemantics semantics) {
  return semantics == TraceSemantics::kMahimahi ? 1500 + kMahimahiHeaderBytes : 1500;
}

// Counts bytes.
template <TraceSemantics kSemantics>
class ByteDriver final : public LinkDriver {
 public:
  explicit ByteDriver(Opportunities opportunities) : opportunities_(std::move(opportunities)) {}

  double asks_ms(double now_ms) override {
    if constexpr (kSemantics == TraceSemantics::kMahimahi) {
      opportunities_.skip_until(now_ms);
    } else {
      opportunities_.skip_before(now_ms);
    }
    return begin_opportunity();
  }
  Passage take(double asked_ms, std::uint32_t bytes) override {
    if constexpr (kSemantics == TraceSemantics::kMahimahi) {
      bytes += kMahimahiHeaderBytes;
    }
    double departs_ms = asked_ms;
    while (bytes > left_bytes_) {
      bytes -= left_bytes_;
      departs_ms = begin_opportunity();
    }
    left_bytes_ -= bytes;
    return {departs_ms, left_bytes_ > 0 ? departs_ms : begin_opportunity()};
  }

 private:
  double begin_opportunity() {
    const double time_ms = opportunities_.next_ms();
    opportunities_.use();
    left_bytes_ = bytes_of(kSemantics);
    return time_ms;
  }

  Opportunities opportunities_;
  std::uint32_t left_bytes_ = 0;  // of the last that was begun
};

}  // namespace

std::unique_ptr<LinkDriver> rate_driver(double rate_packets_per_ms, double packet_bytes) {
  return std::make_unique<RateDriver>(rate_packets_per_ms, packet_bytes);
}

std::unique_ptr<LinkDriver> rate_driver(LinkConditions conditions, double packet_bytes) {
  return std::make_unique<ChangingRateDriver>(std::move(conditions), packet_bytes);
}

std::unique_ptr<LinkDriver> trace_driver(TraceSemantics semantics, Opportunities opportunities) {
  switch (semantics) {
    case TraceSemantics::kNs2:
      break;
    case TraceSemantics::kMahimahi:
      return std::make_unique<ByteDriver<TraceSemantics::kMahimahi>>(std::move(opportunities));
    case TraceSemantics::kCellsim:
      return std::make_unique<ByteDriver<TraceSemantics::kCellsim>>(std::move(opportunities));
  }
  return std::make_unique<Ns2Driver>(std::move(opportunities));
}

double packets_per_ms(TraceSemantics semantics, double opportunities_per_ms, double packet_bytes) {
  if (semantics == TraceSemantics::kNs2) {
    return opportunities_per_ms;
  }
  const double header = semantics == TraceSemantics::kMahimahi ? kMahimahiHeaderBytes : 0;
  return opportunities_per_ms * bytes_of(semantics) / (packet_bytes + header);
}

}  // namespace remy
