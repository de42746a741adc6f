#include "elements/link_driver.h"

#include <utility>

#include "elements/queue.h"

namespace remy {
namespace {

// Time to transmit a packet of `bytes`.
double service_ms(double rate_packets_per_ms, double bytes, double packet_bytes) {
  const double full_packet_ms = 1 / rate_packets_per_ms;
  return bytes == packet_bytes ? full_packet_ms : bytes / packet_bytes * full_packet_ms;
}

class RateDriver final : public LinkDriver {
 public:
  RateDriver(double rate_packets_per_ms, double packet_bytes)
      : rate_packets_per_ms_(rate_packets_per_ms), packet_bytes_(packet_bytes) {}

  double next_start_ms(double now_ms) override { return now_ms; }
  Transmission transmit(double start_ms, std::uint32_t bytes) override {
    const double departs_ms = start_ms + service_ms(rate_packets_per_ms_, bytes, packet_bytes_);
    return {departs_ms, departs_ms};
  }

 private:
  double rate_packets_per_ms_;
  double packet_bytes_;
};

class TimeVaryingRateDriver final : public LinkDriver {
 public:
  TimeVaryingRateDriver(LinkConditions conditions, double packet_bytes)
      : conditions_(std::move(conditions)), packet_bytes_(packet_bytes) {}

  double next_start_ms(double now_ms) override { return conditions_.next_up_ms(now_ms); }
  Transmission transmit(double start_ms, std::uint32_t bytes) override {
    const double rate_packets_per_ms = conditions_.at(start_ms).rate_packets_per_ms;
    // The outage lasts until the end of the simulation.
    if (rate_packets_per_ms == 0) {
      return {Queue::kNever, Queue::kNever};
    }
    const double departs_ms = start_ms + service_ms(rate_packets_per_ms, bytes, packet_bytes_);
    return {departs_ms, next_start_ms(departs_ms)};
  }

 private:
  LinkConditions conditions_;
  double packet_bytes_;
};

class Ns2Driver final : public LinkDriver {
 public:
  explicit Ns2Driver(Opportunities opportunities) : opportunities_(std::move(opportunities)) {}

  double next_start_ms(double now_ms) override { return now_ms; }
  Transmission transmit(double start_ms, std::uint32_t) override {
    opportunities_.skip_before(start_ms);
    const double departs_ms = opportunities_.next_ms();
    opportunities_.use();
    return {departs_ms, departs_ms};
  }

 private:
  Opportunities opportunities_;
};

constexpr std::uint32_t kMahimahiHeaderBytes = 4;
constexpr std::uint32_t opportunity_bytes(TraceSemantics semantics) {
  return semantics == TraceSemantics::kMahimahi ? 1500 + kMahimahiHeaderBytes : 1500;
}

// A trace whose opportunities transmit a number of bytes.
template <TraceSemantics kSemantics>
class ByteDriver final : public LinkDriver {
 public:
  explicit ByteDriver(Opportunities opportunities) : opportunities_(std::move(opportunities)) {}

  double next_start_ms(double now_ms) override {
    if constexpr (kSemantics == TraceSemantics::kMahimahi) {
      opportunities_.skip_until(now_ms);
    } else {
      opportunities_.skip_before(now_ms);
    }
    return start_opportunity();
  }
  Transmission transmit(double start_ms, std::uint32_t bytes) override {
    if constexpr (kSemantics == TraceSemantics::kMahimahi) {
      bytes += kMahimahiHeaderBytes;
    }
    double departs_ms = start_ms;
    while (bytes > remaining_bytes_) {
      bytes -= remaining_bytes_;
      departs_ms = start_opportunity();
    }
    remaining_bytes_ -= bytes;
    return {departs_ms, remaining_bytes_ > 0 ? departs_ms : start_opportunity()};
  }

 private:
  double start_opportunity() {
    const double time_ms = opportunities_.next_ms();
    opportunities_.use();
    remaining_bytes_ = opportunity_bytes(kSemantics);
    return time_ms;
  }

  Opportunities opportunities_;
  std::uint32_t remaining_bytes_ = 0;  // unused bytes of the current opportunity
};

}  // namespace

std::unique_ptr<LinkDriver> rate_driver(double rate_packets_per_ms, double packet_bytes) {
  return std::make_unique<RateDriver>(rate_packets_per_ms, packet_bytes);
}

std::unique_ptr<LinkDriver> rate_driver(LinkConditions conditions, double packet_bytes) {
  return std::make_unique<TimeVaryingRateDriver>(std::move(conditions), packet_bytes);
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
  return opportunities_per_ms * opportunity_bytes(semantics) / (packet_bytes + header);
}

}  // namespace remy
