#include "network/endpoint_observation.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace remy {
namespace {

// An endpoint that passes every call on to another one, which it owns.
class EndpointDecorator : public Endpoint {
 public:
  explicit EndpointDecorator(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {}

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override {
    inner_->switch_on(packets, now_ms, sink);
  }
  void switch_off(double now_ms) override { inner_->switch_off(now_ms); }
  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override {
    inner_->on_ack(echo, content, now_ms, sink);
  }
  double on_round_trip(const Segment& segment, double received_ms, double now_ms,
                       PacketSink& sink) override {
    return inner_->on_round_trip(segment, received_ms, now_ms, sink);
  }
  double next_act_ms() const override { return inner_->next_act_ms(); }
  void act(double now_ms, PacketSink& sink) override { inner_->act(now_ms, sink); }
  bool is_done() const override { return inner_->is_done(); }
  Pace pace() const override { return inner_->pace(); }
  RecoveryState recovery_state() const override { return inner_->recovery_state(); }
  AckMeaning ack_meaning() const override { return inner_->ack_meaning(); }
  void report_losses_to(LossListener* listener) override { inner_->report_losses_to(listener); }
  void on_packet_lost(const Segment& segment, double now_ms) override {
    inner_->on_packet_lost(segment, now_ms);
  }
  std::optional<AckContent> on_data(const Segment& segment, double now_ms) override {
    return inner_->on_data(segment, now_ms);
  }
  double delayed_ack_due_ms() const override { return inner_->delayed_ack_due_ms(); }
  std::optional<std::pair<Segment, AckContent>> take_delayed_ack(double now_ms) override {
    return inner_->take_delayed_ack(now_ms);
  }
  const EndpointResults& results() const override { return inner_->results(); }

 protected:
  Endpoint& inner() { return *inner_; }

 private:
  std::unique_ptr<Endpoint> inner_;
};

class RttCounter final : public EndpointDecorator {
 public:
  RttCounter(std::unique_ptr<Endpoint> inner, bool has_constant_return, LogHistogram& rtts)
      : EndpointDecorator(std::move(inner)),
        has_constant_return_(has_constant_return),
        rtts_(rtts) {}

  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override {
    if (!has_constant_return_) {
      rtts_.add(now_ms - echo.sent_ms);
    }
    EndpointDecorator::on_ack(echo, content, now_ms, sink);
  }
  double on_round_trip(const Segment& segment, double received_ms, double now_ms,
                       PacketSink& sink) override {
    rtts_.add(now_ms - segment.sent_ms);
    return EndpointDecorator::on_round_trip(segment, received_ms, now_ms, sink);
  }

 private:
  const bool has_constant_return_;
  LogHistogram& rtts_;
};

// Declines all round trips, so that every ACK passes through on_ack().
class CapturingEndpoint final : public EndpointDecorator, private PacketSink, private LossListener {
 public:
  CapturingEndpoint(std::unique_ptr<Endpoint> inner, PacketCapture& capture)
      : EndpointDecorator(std::move(inner)), capture_(capture) {
    report_losses_to(this);
    capture_.acks_echo_alone = ack_meaning() == AckMeaning::kEcho;
  }

  void switch_on(std::optional<std::uint64_t> packets, double now_ms, PacketSink& sink) override {
    capturing(sink, now_ms, [&] { inner().switch_on(packets, now_ms, *this); });
  }
  void switch_off(double now_ms) override {
    inner().switch_off(now_ms);
    add_state(now_ms);
  }
  void on_ack(const Segment& echo, const AckContent& content, double now_ms,
              PacketSink& sink) override {
    add_ack(echo, content, now_ms);
    capturing(sink, now_ms, [&] { inner().on_ack(echo, content, now_ms, *this); });
  }
  double on_round_trip(const Segment&, double, double, PacketSink&) override { return kDeclined; }
  void act(double now_ms, PacketSink& sink) override {
    capturing(sink, now_ms, [&] { inner().act(now_ms, *this); });
  }

 private:
  void send(const Segment& segment, double now_ms) override {
    capture_.is_ecn_capable |= segment.is_ecn_capable;
    capture_.add(PacketCapture::Kind::kSent, now_ms, segment.sequence, segment.transmission_number);
    sink_->send(segment, now_ms);
  }
  void on_loss_found(std::uint64_t sequence, double now_ms) override {
    capture_.add(PacketCapture::Kind::kLost, now_ms, sequence);
  }
  void on_timeout(std::uint64_t sequence, double now_ms) override {
    capture_.add(PacketCapture::Kind::kTimeout, now_ms, sequence);
  }

  template <class Call>
  void capturing(PacketSink& sink, double now_ms, const Call& call) {
    sink_ = &sink;
    call();
    add_state(now_ms);
  }

  void add_ack(const Segment& echo, const AckContent& content, double now_ms) {
    const AckMeaning meaning = ack_meaning();
    capture_.add(PacketCapture::Kind::kAck, now_ms, echo.sequence, echo.transmission_number);
    capture_.echoed_ms.push_back(echo.sent_ms);
    capture_.received_ms.push_back(content.received_ms);
    echoed_end_ = std::max(echoed_end_, echo.sequence + 1);
    const std::uint64_t cumulative =
        meaning == AckMeaning::kEcho ? echoed_end_ : content.cumulative;
    capture_.cumulative.push_back(cumulative);
    capture_.marked.push_back(content.marked);
    const bool has_echo = meaning == AckMeaning::kContentAndEcho && echo.sequence >= cumulative;
    capture_.blocks.push_back(content.blocks + (has_echo ? 1U : 0U));
    if (has_echo) {
      add_block({echo.sequence, echo.sequence + 1});
    }
    for (std::uint32_t block = 0; block < content.blocks; ++block) {
      add_block(content.sacks[block]);
    }
  }

  void add_block(const SackBlock& block) {
    capture_.block_first.push_back(block.first);
    capture_.block_end.push_back(block.end);
  }

  void add_state(double now_ms) {
    const Pace pace = inner().pace();
    const RecoveryState state = inner().recovery_state();
    capture_.add(PacketCapture::Kind::kState, now_ms);
    capture_.window_packets.push_back(pace.window_packets);
    capture_.intersend_ms.push_back(pace.intersend_ms);
    capture_.first.push_back(state.first);
    capture_.in_flight.push_back(state.in_flight);
    capture_.smoothed_rtt_ms.push_back(state.smoothed_rtt_ms);
    capture_.rtt_variation_ms.push_back(state.rtt_variation_ms);
    capture_.ssthresh_packets.push_back(state.ssthresh_packets);
  }

  PacketCapture& capture_;
  PacketSink* sink_ = nullptr;
  std::uint64_t echoed_end_ = 0;  // after the last packet that an ACK has echoed
};

}  // namespace

std::unique_ptr<Endpoint> capturing(std::unique_ptr<Endpoint> endpoint, PacketCapture& capture) {
  return std::make_unique<CapturingEndpoint>(std::move(endpoint), capture);
}

std::unique_ptr<Endpoint> counting_rtts(std::unique_ptr<Endpoint> endpoint,
                                        bool has_constant_return, LogHistogram& rtts) {
  return std::make_unique<RttCounter>(std::move(endpoint), has_constant_return, rtts);
}

}  // namespace remy
