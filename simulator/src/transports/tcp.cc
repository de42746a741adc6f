#include <algorithm>

#include "transports/tcp_sender.h"
#include "transports/transport.h"

namespace remy {

namespace {

// Runs a RemyCC over TCP, as a kernel would: each ACK selects a rule, which sets window and pacing.
// Losses and timeouts change neither; TCP retransmits. Each connection starts with an empty memory.
// The pacing interval is at most one RTT: a scale-free rule measures its own pace, and could slow
// itself down without end (docs/how-to/kernel.md has the same limit).
class RemyCcOnTcp final : public CongestionController {
 public:
  RemyCcOnTcp(const EndpointSetting& setting)
      : controller_(*setting.table),
        observer_(setting.observer),
        telemetry_(setting.telemetry),
        sender_(setting.sender) {}

  void start(double) override {
    smoothed_rtt_ms_ = 0;
    used(controller_.start());
  }
  void on_ack(const AckEvent& ack) override {
    smoothed_rtt_ms_ =
        smoothed_rtt_ms_ > 0 ? smoothed_rtt_ms_ + (ack.rtt_ms - smoothed_rtt_ms_) / 8 : ack.rtt_ms;
    used(controller_.acknowledge(ack.sent_ms, ack.received_ms, ack.rtt_ms, 1, [&]() -> Feedback {
      return {static_cast<std::uint32_t>(ack.newly_delivered),
              static_cast<std::uint32_t>(ack.newly_marked),
              usage_since_last_ack(telemetry_, ack.transmission_number)};
    }));
  }
  void on_loss(const LossEvent& loss) override {
    if (loss.starts_recovery) {
      controller_.on_recovery();
    }
    controller_.on_loss(loss.now_ms, 1);
    update();
  }
  void on_timeout(const TimeoutEvent& timeout) override {
    if (timeout.starts_recovery) {
      controller_.on_recovery();
    }
    controller_.on_timeout(timeout.now_ms, static_cast<std::uint32_t>(timeout.newly_lost));
    update();
  }
  void on_spurious_recovery() override {
    controller_.on_spurious_recovery();
    update();
  }

 private:
  void used(std::uint32_t rule) {
    if (observer_ != nullptr) {
      observer_->used(sender_, controller_, rule);
    }
    update();
  }

  void update() {
    cwnd_ = controller_.window_packets();
    pacing_interval_ms_ = smoothed_rtt_ms_ > 0
                              ? std::min(controller_.intersend_ms(), smoothed_rtt_ms_)
                              : controller_.intersend_ms();
  }

  AnyController controller_;
  double smoothed_rtt_ms_ = 0;  // as in RFC 6298; 0 before the first sample
  RuleObserver* observer_;
  PathTelemetry* telemetry_;
  std::uint32_t sender_;
};

std::vector<Parameter> parameters(double keep_state, double initial_rto_ms,
                                  double receive_window_packets) {
  return {
      {"keep_state", "1: window and RTT outlast an off period", keep_state, 0, 1},
      {"restart_after_idle", "1: an idle time of a timeout lowers the window", 1, 0, 1},
      {"minimum_rto_ms", "least retransmission timeout", 200, 1, 60000},
      {"initial_rto_ms", "the same before an RTT is measured", initial_rto_ms, 1, 60000},
      {"delayed_ack_ms", "longest that an ACK waits for a second packet", 0, 0, 500},
      {"receive_window_packets", "at most so many beyond the last in order", receive_window_packets,
       1, 1e6},
  };
}

RecoveryKind recovery_of(std::string_view variant) {
  return variant == "newreno"      ? RecoveryKind::kNewReno
         : variant == "ns-2"       ? RecoveryKind::kNs2NewReno
         : variant == "ns-2-linux" ? RecoveryKind::kNs2Linux
         : variant == "linux"      ? RecoveryKind::kRack
                                   : RecoveryKind::kSack;
}

TcpSettings settings_of(const ParameterValues& values) {
  TcpSettings settings;
  const std::string_view variant = values.variant();
  const bool is_ns2 = variant == "ns-2" || variant == "ns-2-linux";
  const bool is_linux = variant == "linux" || variant == "ns-2-linux";
  settings.recovery = recovery_of(variant);
  settings.uses_prr = variant == "linux";
  settings.validates_cwnd = variant == "linux";
  settings.keeps_state = values["keep_state"] != 0;
  settings.reports_idle_timeouts = values["restart_after_idle"] != 0;
  settings.delayed_ack_ms = values["delayed_ack_ms"];
  settings.receive_window_packets = static_cast<std::uint64_t>(values["receive_window_packets"]);
  settings.timeouts.initial_ms = values["initial_rto_ms"];
  settings.timeouts.minimum_ms = values["minimum_rto_ms"];
  settings.timeouts.granularity_ms = is_ns2 ? 0.3 : 1;
  settings.timeouts.keeps_back_off = is_ns2;
  settings.timeouts.damps_decreases = is_linux;
  settings.timeouts.is_minimum_of_variation = variant == "linux";
  return settings;
}

}  // namespace

Transport tcp() {
  return {
      .name = "tcp",
      .title = "TCP",
      .variants = {{"rfc", "RFC 5681, 6298, 6675", parameters(0, 1000, 1e6)},
                   {"newreno", "RFC 5681, 6298, 6582: no SACK", parameters(0, 1000, 1e6)},
                   {"linux", "Linux: RFC 6937, 8985, 3522, 7661", parameters(0, 1000, 1e6)},
                   {"ns-2", "ns-2.35, Agent/TCP/Newreno", parameters(1, 3000, 65536)},
                   {"ns-2-linux", "ns-2.35, Agent/TCP/Linux", parameters(1, 3000, 65536)}},
      .runs_tables = true,
      .runs_controllers = true,
      .make = [](const ParameterValues& values,
                 EndpointSetting setting) -> std::unique_ptr<Endpoint> {
        TcpSettings settings = settings_of(values);
        settings.sender = setting.sender;
        settings.packet_bytes = static_cast<std::uint32_t>(setting.packet_bytes);
        settings.is_ecn_capable = setting.is_ecn_capable;
        settings.asks_xcp_routers = setting.asks_xcp_routers;
        settings.samples_rates = setting.table == nullptr && setting.samples_rates;
        settings.rtt_offset_ms =
            rtt_offset_ms(setting.measurement, setting.rtt_offset_key, setting.sender);
        settings.retransmits = setting.retransmits;
        settings.keeps_state |= !setting.retransmits;
        std::unique_ptr<CongestionController> controller = std::move(setting.controller);
        if (setting.table != nullptr) {
          controller = std::make_unique<RemyCcOnTcp>(setting);
        }
        return std::make_unique<TcpSender>(settings, std::move(controller));
      },
  };
}

}  // namespace remy
