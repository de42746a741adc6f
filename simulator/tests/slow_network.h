#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elements/queue.h"
#include "network/network.h"
#include "reference_links.h"
#include "transports/endpoint.h"

namespace remy {

// A second, simple implementation of the general network, which tests compare with the real one. It
// polls every element for the next event.
class SlowNetwork final : private PacketSink, private DropListener {
 public:
  SlowNetwork(const NetworkDescription& network, std::span<const CompiledTable> tables,
              double duration_ms, std::uint64_t seed);

  NetworkResults run();

 private:
  struct SlowSender {
    explicit SlowSender(Schedule with) : schedule(with) {}

    std::unique_ptr<Endpoint> endpoint;
    Schedule schedule;
    const SenderDescription* description = nullptr;
    NetworkSenderResults results;
    bool is_on = false;
    double switch_ms = 0;
    double on_since_ms = 0;
    double share_at_on_ms = 0;
    std::uint32_t period = 0;
    std::uint32_t sent_in_period = 0;
    std::uint64_t acks_sent = 0;
    std::optional<std::uint64_t> flow_packets;
  };
  struct InDelay {
    double arrives_ms;
    Segment segment;
  };
  // Kinds of events. At the same time, earlier kinds come first.
  enum class Kind { kDeparture, kAct, kTick, kSwitch, kDelayedAck, kRelease, kArrival, kNone };
  struct Event {
    double now_ms;
    Kind kind;
    std::size_t index = 0;
    double delay_ms = 0;

    auto operator<=>(const Event&) const = default;
  };

  Event next_event() const;
  void handle(const Event& event);
  void send(const Segment& segment, double now_ms) override;
  void on_drop(const Segment& segment, double now_ms) override;
  std::uint16_t lost_behind(const std::vector<std::uint32_t>& links, bool is_return,
                            std::uint64_t name) const;
  const std::vector<std::uint32_t>& links_of(const Segment& segment) const;
  // Returns true if ACKs take a constant delay, without crossing links.
  bool is_constant_return(const SlowSender& sender) const {
    return sender.description->route.return_links.empty();
  }
  double delay_behind(const Segment& segment) const;
  void handle_link_event(std::size_t link, double now_ms);
  void add_to_delay(std::size_t link, const ReferenceLink::Held& held);
  void arrive(const Segment& segment, double now_ms);
  void data_arrived(SlowSender& sender, const Segment& segment, double now_ms);
  void send_ack(SlowSender& sender, const Segment& echo, const AckContent& content, double now_ms);
  void enqueue(const Segment& segment, bool is_delayed, double now_ms);
  void switch_off(SlowSender& sender, double now_ms);
  void switch_on(SlowSender& sender, double now_ms);
  void end_if_done(SlowSender& sender, double now_ms);

  const NetworkDescription& network_;
  double duration_ms_;
  std::uint64_t key_;
  std::vector<SlowSender> senders_;
  std::vector<ReferenceLink> links_;
  std::vector<LinkResults> link_results_;
  // Segments in constant delays, by link and the delay behind it.
  std::map<std::pair<std::size_t, double>, std::deque<InDelay>> delays_;
  std::map<std::uint32_t, AckContent> acks_;
  std::uint32_t next_slot_ = 0;
  std::size_t sender_ = 0;          // index of the sender whose endpoint is called
  std::deque<Segment> new_losses_;  // segments whose endpoint has not been notified of their loss
  double clock_ms_ = 0;
  double share_ms_ = 0;
};

}  // namespace remy
