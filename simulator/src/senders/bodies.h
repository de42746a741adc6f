#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice.h"
#include "senders/body.h"
#include "senders/clock.h"
#include "senders/congestion_controller.h"
#include "senders/remy_controller.h"

namespace remy {

// What a body is made of. It carries a RemyCC, whose table is not null, or a controller.
struct BodySetting {
  std::uint32_t sender = 0;
  double packet_bytes = 1500;
  const CompiledTable* table = nullptr;  // outlives the body
  RuleObserver* observer = nullptr;      // of the table's rules; may be null
  std::unique_ptr<CongestionController> controller;
  bool is_ecn_capable = false;
  bool asks_xcp_routers = false;
  bool samples_rates = true;
  bool repairs = true;  // what the transport of a controller has lost
  MeasurementNoise measurement;
  std::uint64_t jitter_key = 0;  // names the draws of its jitter
  std::uint64_t offset_key = 0;  // likewise of RTTs' offsets
};

// A body that senders can have.
struct BodyKind {
  std::string_view name;
  std::string_view title;
  std::vector<Variant> variants;  // the usual one first
  bool carries_tables = false;
  bool carries_controllers = false;
  // Whether it knows noise that is of datagrams (MeasurementNoise).
  bool takes_noise = false;
  // Whether throughput counts every packet received; else those handed on in order.
  bool counts_every_packet = false;
  std::unique_ptr<Body> (*make)(const Chosen& chosen, BodySetting setting) = nullptr;
};

// All of them, by name.
std::span<const BodyKind> body_kinds();

// Throws std::invalid_argument with one sentence if there is none.
const BodyKind& find_body_kind(std::string_view name);

}  // namespace remy
