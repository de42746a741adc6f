// A RemyCC over ns-3's UDP, as in Remy's own simulator: nothing is repaired.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "remycc.h"

class DatagramSender {
 public:
  // On the wire a packet has headers of PPP (2), IP (20) and UDP (8).
  static constexpr std::uint32_t kHeaderBytes = 30;

  DatagramSender(const std::vector<Rule>& rules, std::vector<Period> periods,
                 std::uint32_t packet_bytes)
      : remycc_(rules), payload_(packet_bytes - kHeaderBytes) {
    tally_.on = std::move(periods);
  }

  // Packets go to a socket that answer() serves.
  void install(ns3::Ptr<ns3::Node> node, const ns3::InetSocketAddress& there) {
    socket_ = ns3::Socket::CreateSocket(node, ns3::UdpSocketFactory::GetTypeId());
    socket_->Bind();
    socket_->Connect(there);
    socket_->SetRecvCallback(ns3::MakeCallback(&DatagramSender::take_acks, this));
    for (const Period& period : tally_.on) {
      ns3::Simulator::Schedule(from_ms(period.begin_ms), &DatagramSender::switch_on, this);
      ns3::Simulator::Schedule(from_ms(period.end_ms), &DatagramSender::switch_off, this);
    }
  }

  // Sends the stamp of each packet back.
  static void answer(ns3::Ptr<ns3::Socket> socket) {
    ns3::Address from;
    while (const ns3::Ptr<ns3::Packet> packet = socket->RecvFrom(from)) {
      std::array<std::uint8_t, kAckBytes> stamp{};
      packet->CopyData(stamp.data(), sizeof(Stamp));
      socket->SendTo(ns3::Create<ns3::Packet>(stamp.data(), stamp.size()), 0, from);
    }
  }

  const Tally& tally() const { return tally_; }

 private:
  static constexpr std::uint32_t kAckBytes = 20;

  // What a packet carries, and its ACK back.
  struct Stamp {
    std::uint64_t serial;
    std::int64_t sent_ns;
  };

  void switch_on() {
    is_on_ = true;
    period_begin_ = acknowledged_ = tally_.sent;
    has_sent_ = false;
    remycc_.start();
    send_what_may_leave();
  }

  void switch_off() {
    is_on_ = false;
    timer_.Cancel();
  }

  void take_acks(ns3::Ptr<ns3::Socket> socket) {
    while (const ns3::Ptr<ns3::Packet> packet = socket->Recv()) {
      Stamp stamp{};
      packet->CopyData(reinterpret_cast<std::uint8_t*>(&stamp), sizeof stamp);
      acknowledged(stamp);
    }
  }

  void acknowledged(const Stamp& stamp) {
    const double sent_ms = stamp.sent_ns / 1e6;
    ++tally_.received;
    ++tally_.rtt_samples;
    tally_.rtt_sum_ms += now_ms() - sent_ms;
    if (!is_on_) return;
    if (stamp.serial >= period_begin_) {
      acknowledged_ = stamp.serial + 1;
      remycc_.acknowledged(sent_ms);
    } else {
      remycc_.apply_rule();
    }
    send_what_may_leave();
  }

  void send_what_may_leave() {
    timer_.Cancel();
    while (is_on_ && tally_.sent < acknowledged_ + remycc_.window()) {
      const ns3::Time next = last_left_ + from_ms(remycc_.intersend_ms());
      if (has_sent_ && next > ns3::Simulator::Now()) {
        timer_ = ns3::Simulator::Schedule(next - ns3::Simulator::Now(),
                                          &DatagramSender::send_what_may_leave, this);
        return;
      }
      const Stamp stamp{tally_.sent++, ns3::Simulator::Now().GetNanoSeconds()};
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&stamp), sizeof stamp, payload_.begin());
      socket_->Send(payload_.data(), payload_.size(), 0);
      last_left_ = ns3::Simulator::Now();
      has_sent_ = true;
    }
  }

  Remycc remycc_;
  std::vector<std::uint8_t> payload_;
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId timer_;
  Tally tally_;
  bool is_on_ = false;
  // Serials behind the last of earlier periods, and behind the largest acknowledged.
  std::uint64_t period_begin_ = 0;
  std::uint64_t acknowledged_ = 0;
  ns3::Time last_left_;
  bool has_sent_ = false;  // in this on period
};
