// A RemyCC on ns-3's TCP: its sequence space, SACK and recovery, with window and pace of the rules.
//
// What ns-3 does of itself would be measured in place of the RemyCC, so main() asks for an ACK for
// each segment, for buffers that no window fills, and for no time stamps: theirs are whole ms.
// Times are those at which this sender sent and heard.

#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "remycc.h"

struct TcpSettings {
  // One connection for all on periods, whose memory and window outlast them; else one for each.
  bool keeps_state = false;
  // Packets that may leave before the first ACK; 0: as the rule for an empty memory says.
  std::uint64_t initial_window = 0;
};

// One connection. Data are never there before they may leave, so that nothing is left when an on
// period ends.
class RemySocket final : public ns3::TcpSocketBase {
 public:
  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();
  // What a receiver takes beyond the last in order.
  static constexpr std::uint32_t kReceiverBytes = 1 << 28;

  static ns3::TypeId GetTypeId() {
    static const ns3::TypeId id =
        ns3::TypeId("remy::RemySocket").SetParent<ns3::TcpSocketBase>().HideFromDocumentation();
    return id;
  }

  RemySocket(const std::vector<Rule>& rules, std::uint64_t initial_window, Tally& tally)
      : remycc_(rules), initial_window_(initial_window), tally_(&tally) {}

  // So many packets are there, or endless ones; when_done is called once all are acknowledged.
  void switch_on(std::uint64_t packets, std::function<void()> when_done = {}) {
    if (!m_connected) throw std::runtime_error("a connection is not there in time");
    if (!has_started_) {
      // A SYN can say no more than 65,535 of it (RFC 7323, section 2.2), which would hold rules to
      // 44 packets until the first ACK.
      m_rWnd = kReceiverBytes;
      remycc_.start(initial_window_);
    }
    has_started_ = true;
    left_ = packets;
    when_done_ = std::move(when_done);
    send_what_may_leave();
  }

  // What was sent is still repaired.
  void switch_off() { left_ = 0; }

 protected:
  std::uint32_t Window() const override {
    const std::uint64_t packets = std::max<std::uint64_t>(remycc_.window(), 1);
    const std::uint64_t bytes = packets * m_tcb->m_segmentSize;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, m_rWnd.Get()));
  }

  std::uint32_t AvailableWindow() const override {
    return next_leaves() > ns3::Simulator::Now() ? 0 : TcpSocketBase::AvailableWindow();
  }

  std::uint32_t SendDataPacket(ns3::SequenceNumber32 from, std::uint32_t most,
                               bool with_ack) override {
    const bool is_retransmission = from < m_tcb->m_highTxMark.Get();
    const std::uint32_t bytes = TcpSocketBase::SendDataPacket(from, most, with_ack);
    on_way_[from] = {from + bytes, ns3::Simulator::Now(), is_retransmission};
    last_left_ = ns3::Simulator::Now();
    has_sent_ = true;
    ++tally_->sent;
    tally_->retransmitted += is_retransmission ? 1 : 0;
    return bytes;
  }

  void ReceivedAck(ns3::Ptr<ns3::Packet> packet, const ns3::TcpHeader& header) override {
    take(header);
    TcpSocketBase::ReceivedAck(packet, header);
    send_what_may_leave();
    if (left_ == 0 && m_txBuffer->Size() == 0 && when_done_) std::exchange(when_done_, {})();
  }

  void ReTxTimeout() override {
    tally_->timeouts += m_txBuffer->Size() > 0 ? 1 : 0;
    TcpSocketBase::ReTxTimeout();
    send_what_may_leave();
  }

 private:
  struct OnWay {
    ns3::SequenceNumber32 end;
    ns3::Time left;
    bool is_retransmission;
  };

  // Rules that pace more slowly than a packet in an RTT are held to that.
  ns3::Time next_leaves() const {
    if (!has_sent_) return ns3::Simulator::Now();
    const double pace_ms = smoothed_rtt_ms_ > 0 ? std::min(remycc_.intersend_ms(), smoothed_rtt_ms_)
                                                : remycc_.intersend_ms();
    return last_left_ + from_ms(pace_ms);
  }

  // Of what the ACK tells and none before it did, the last to leave is what it is for. A segment
  // that left twice tells no time (Karn's algorithm): after a timeout that was not needed its RTT
  // would be too small, and the next time between two sendings negative.
  void take(const ns3::TcpHeader& header) {
    const ns3::SequenceNumber32 acknowledged = header.GetAckNumber();
    const auto bytes = std::max(acknowledged - m_txBuffer->HeadSequence(), 0);
    tally_->received += bytes / m_tcb->m_segmentSize;
    is_told_ = false;
    last_told_ = ns3::Time(-1);
    tell(on_way_.begin(), acknowledged);
    if (header.HasOption(ns3::TcpOption::SACK)) {
      const auto option =
          ns3::DynamicCast<const ns3::TcpOptionSack>(header.GetOption(ns3::TcpOption::SACK));
      for (const auto& [begin, end] : option->GetSackList()) {
        tell(on_way_.lower_bound(begin), end);
      }
    }
    if (last_told_ >= ns3::Time(0)) {
      const double sent_ms = last_told_.GetNanoSeconds() / 1e6;
      rtt_ms_ = now_ms() - sent_ms;
      smoothed_rtt_ms_ += smoothed_rtt_ms_ > 0 ? (rtt_ms_ - smoothed_rtt_ms_) / 8 : rtt_ms_;
      remycc_.acknowledged(sent_ms);
    } else {
      remycc_.apply_rule();
    }
    if (is_told_) {
      ++tally_->rtt_samples;
      tally_->rtt_sum_ms += rtt_ms_;
    }
  }

  using Segments = std::map<ns3::SequenceNumber32, OnWay>;

  // All segments from this one up to `end` were received.
  void tell(Segments::iterator segment, ns3::SequenceNumber32 end) {
    while (segment != on_way_.end() && segment->second.end <= end) {
      is_told_ = true;
      if (!segment->second.is_retransmission) last_told_ = std::max(last_told_, segment->second.left);
      segment = on_way_.erase(segment);
    }
  }

  void send_what_may_leave() {
    timer_.Cancel();
    do {
      const bool is_all_sent = m_txBuffer->TailSequence() <= m_tcb->m_highTxMark.Get();
      if (left_ > 0 && is_all_sent && AvailableWindow() >= m_tcb->m_segmentSize) {
        m_txBuffer->Add(ns3::Create<ns3::Packet>(m_tcb->m_segmentSize));
        left_ -= left_ == kEndless ? 0 : 1;
      }
    } while (SendPendingData(m_connected) > 0);
    const ns3::Time now = ns3::Simulator::Now();
    if (next_leaves() > now && (left_ > 0 || m_txBuffer->Size() > 0)) {
      timer_ =
          ns3::Simulator::Schedule(next_leaves() - now, &RemySocket::send_what_may_leave, this);
    }
  }

  Remycc remycc_;
  std::uint64_t initial_window_;
  Tally* tally_;
  std::function<void()> when_done_;
  ns3::EventId timer_;
  Segments on_way_;
  bool has_started_ = false;
  bool has_sent_ = false;
  std::uint64_t left_ = 0;  // packets that are there and have not left
  ns3::Time last_left_;
  double rtt_ms_ = 0;
  double smoothed_rtt_ms_ = 0;  // as in RFC 6298
  // Of the ACK that is being taken.
  bool is_told_ = false;
  ns3::Time last_told_;
};

// On and off, by time or by flows. The simulators that this is compared with make no handshakes, so
// all connections are there before time 0.
class TcpSender {
 public:
  // On the wire a packet has headers of PPP (2), IP (20) and TCP (20).
  static constexpr std::uint32_t kHeaderBytes = 42;

  TcpSender(const std::vector<Rule>& rules, const Scenario::Sender& sender,
            const TcpSettings& settings)
      : rules_(&rules), sender_(&sender), settings_(settings) {}

  // One after the other, so that SYNs find room in any buffer.
  static constexpr double kOpensEveryMs = 2;

  std::size_t connections() const {
    return settings_.keeps_state ? 1 : sender_->periods.size() + sender_->flows.size();
  }

  // Connections go to a socket that accept() serves, the first from opens_ms on; time 0 is at
  // `origin`.
  void install(ns3::Ptr<ns3::Node> node, const ns3::InetSocketAddress& there, double opens_ms,
               ns3::Time origin) {
    node_ = node;
    there_ = there;
    origin_ = origin;
    for (std::size_t number = 0; number < connections(); ++number) {
      ns3::Simulator::Schedule(from_ms(opens_ms + kOpensEveryMs * number), &TcpSender::open, this);
    }
    for (const Period& period : sender_->periods) {
      ns3::Simulator::Schedule(origin + from_ms(period.begin_ms), &TcpSender::begin, this,
                               RemySocket::kEndless);
      ns3::Simulator::Schedule(origin + from_ms(period.end_ms), &TcpSender::end, this);
    }
    if (!sender_->flows.empty()) wait_for_flow(origin);
  }

  // Takes whatever comes.
  static void accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
    socket->SetRecvCallback(ns3::MakeCallback(&TcpSender::drain));
  }

  const Tally& tally() const { return tally_; }

 private:
  static void drain(ns3::Ptr<ns3::Socket> socket) {
    while (socket->Recv()) {
    }
  }

  void open() {
    const auto socket = ns3::CreateObject<RemySocket>(*rules_, settings_.initial_window, tally_);
    socket->SetNode(node_);
    socket->SetTcp(node_->GetObject<ns3::TcpL4Protocol>());
    socket->SetRtt(ns3::CreateObject<ns3::RttMeanDeviation>());
    socket->SetCongestionControlAlgorithm(ns3::CreateObject<ns3::TcpNewReno>());
    socket->SetRecoveryAlgorithm(ns3::CreateObject<ns3::TcpPrrRecovery>());
    socket->Bind();
    socket->Connect(there_);
    connections_.push_back(socket);
  }

  void wait_for_flow(ns3::Time after) {
    if (flow_ == sender_->flows.size()) return;
    const Flow& flow = sender_->flows[flow_++];
    ns3::Simulator::Schedule(after + from_ms(flow.off_ms), &TcpSender::begin, this, flow.packets);
  }

  void begin(std::uint64_t packets) {
    now_ = connections_.at(settings_.keeps_state ? 0 : tally_.on.size());
    tally_.on.push_back({own_ms(), std::numeric_limits<double>::infinity()});
    if (packets == RemySocket::kEndless) {
      now_->switch_on(packets);
    } else {
      now_->switch_on(packets, [this] {
        end();
        wait_for_flow(ns3::Time(0));
      });
    }
  }

  void end() {
    tally_.on.back().end_ms = own_ms();
    now_->switch_off();
  }

  double own_ms() const { return now_ms() - origin_.GetNanoSeconds() / 1e6; }

  const std::vector<Rule>* rules_;
  const Scenario::Sender* sender_;
  TcpSettings settings_;
  Tally tally_;
  ns3::Ptr<ns3::Node> node_;
  ns3::Address there_;
  ns3::Time origin_;
  std::vector<ns3::Ptr<RemySocket>> connections_;
  ns3::Ptr<RemySocket> now_;  // that is used, or was last
  std::size_t flow_ = 0;
};
