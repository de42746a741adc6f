// RemyCCs in ns-3: senders over UDP that share one link, for `remy-farm reproduce --with ns3`.
//
// Written from TCP ex Machina (SIGCOMM 2013), sections 4.1 and 4.2, and from what docs/algorithm.md
// says of Remy's own simulator, apart from this project's. Reads a file of words:
//   rules N, then for each: lower and upper ends of send_ewma, rec_ewma, rtt_ratio, slow_rec_ewma;
//     window multiple, window increment, intersend time
//   senders N, then for each: the number of its on periods, and their begin and end, ms
// Prints one JSON object: packets sent and received of each sender, and the sum of their RTTs.

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

constexpr std::uint16_t kFirstPort = 5000;
// On the wire a packet has headers of PPP (2), IP (20) and UDP (8).
constexpr std::uint32_t kHeaderBytes = 30;
constexpr std::uint32_t kAckBytes = 20;
constexpr std::size_t kSignals = 4;
constexpr double kMaximumWindow = 1e6;

double now_ms() { return ns3::Simulator::Now().GetNanoSeconds() / 1e6; }
ns3::Time from_ms(double ms) { return ns3::NanoSeconds(static_cast<std::int64_t>(ms * 1e6 + 0.5)); }

struct Rule {
  std::array<double, kSignals> lower, upper;
  double multiple, increment, intersend_ms;
};

struct Period {
  double begin_ms, end_ms;
};

// What a packet carries, and its ACK back.
struct Stamp {
  std::uint64_t serial;
  std::int64_t sent_ns;
};

class Sender {
 public:
  Sender(const std::vector<Rule>& rules, std::vector<Period> periods, std::uint32_t payload_bytes)
      : rules_(rules), periods_(std::move(periods)), payload_(payload_bytes) {}

  void install(ns3::Ptr<ns3::Node> node, const ns3::InetSocketAddress& there) {
    socket_ = ns3::Socket::CreateSocket(node, ns3::UdpSocketFactory::GetTypeId());
    socket_->Bind();
    socket_->Connect(there);
    socket_->SetRecvCallback(ns3::MakeCallback(&Sender::take_acks, this));
    for (const Period& period : periods_) {
      ns3::Simulator::Schedule(from_ms(period.begin_ms), &Sender::switch_on, this);
      ns3::Simulator::Schedule(from_ms(period.end_ms), &Sender::switch_off, this);
    }
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  double rtt_sum_ms() const { return rtt_sum_ms_; }

 private:
  void switch_on() {
    is_on_ = true;
    memory_ = {};
    smallest_rtt_ms_ = std::numeric_limits<double>::infinity();
    window_ = 0;
    period_begin_ = acknowledged_ = sent_;
    has_sent_ = false;
    apply_rule();
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
    const double rtt_ms = now_ms() - sent_ms;
    ++received_;
    rtt_sum_ms_ += rtt_ms;
    if (!is_on_) return;
    if (stamp.serial >= period_begin_) {
      acknowledged_ = stamp.serial + 1;
      if (smallest_rtt_ms_ < std::numeric_limits<double>::infinity()) {
        smallest_rtt_ms_ = std::min(smallest_rtt_ms_, rtt_ms);
        const double arrived_after_ms = now_ms() - last_arrived_ms_;
        memory_[0] += (sent_ms - last_sent_ms_ - memory_[0]) / 8;
        memory_[1] += (arrived_after_ms - memory_[1]) / 8;
        memory_[2] = rtt_ms / smallest_rtt_ms_;
        memory_[3] += (arrived_after_ms - memory_[3]) / 256;
      } else {
        smallest_rtt_ms_ = rtt_ms;
      }
      last_sent_ms_ = sent_ms;
      last_arrived_ms_ = now_ms();
    }
    apply_rule();
    send_what_may_leave();
  }

  void apply_rule() {
    for (const Rule& rule : rules_) {
      bool is_here = true;
      for (std::size_t axis = 0; is_here && axis < kSignals; ++axis) {
        is_here = rule.lower[axis] <= memory_[axis] && memory_[axis] < rule.upper[axis];
      }
      if (is_here) {
        const double window = window_ * rule.multiple + rule.increment;
        window_ = static_cast<std::uint64_t>(std::clamp(window, 0.0, kMaximumWindow));
        intersend_ms_ = rule.intersend_ms;
        return;
      }
    }
    throw std::runtime_error("the rules leave a gap");
  }

  void send_what_may_leave() {
    timer_.Cancel();
    while (is_on_ && sent_ < acknowledged_ + window_) {
      const ns3::Time next = last_left_ + from_ms(intersend_ms_);
      if (has_sent_ && next > ns3::Simulator::Now()) {
        timer_ = ns3::Simulator::Schedule(next - ns3::Simulator::Now(),
                                          &Sender::send_what_may_leave, this);
        return;
      }
      const Stamp stamp{sent_++, ns3::Simulator::Now().GetNanoSeconds()};
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&stamp), sizeof stamp, payload_.begin());
      socket_->Send(payload_.data(), payload_.size(), 0);
      last_left_ = ns3::Simulator::Now();
      has_sent_ = true;
    }
  }

  const std::vector<Rule>& rules_;
  std::vector<Period> periods_;
  std::vector<std::uint8_t> payload_;
  ns3::Ptr<ns3::Socket> socket_;
  ns3::EventId timer_;
  bool is_on_ = false;
  std::array<double, kSignals> memory_{};
  double smallest_rtt_ms_ = 0;
  double last_sent_ms_ = 0;
  double last_arrived_ms_ = 0;
  double intersend_ms_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t sent_ = 0;
  // Serials behind the last of earlier periods, and behind the largest acknowledged.
  std::uint64_t period_begin_ = 0;
  std::uint64_t acknowledged_ = 0;
  ns3::Time last_left_;
  bool has_sent_ = false;  // in this on period
  std::uint64_t received_ = 0;
  double rtt_sum_ms_ = 0;
};

// Sends the stamp of each packet back.
void answer(ns3::Ptr<ns3::Socket> socket) {
  ns3::Address from;
  while (const ns3::Ptr<ns3::Packet> packet = socket->RecvFrom(from)) {
    std::array<std::uint8_t, kAckBytes> stamp{};
    packet->CopyData(stamp.data(), sizeof(Stamp));
    socket->SendTo(ns3::Create<ns3::Packet>(stamp.data(), stamp.size()), 0, from);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  double link_mbps = 15;
  double rtt_ms = 150;
  double seconds = 100;
  std::uint32_t packet_bytes = 1500;
  ns3::CommandLine arguments;
  arguments.AddValue("file", "rules and senders", file);
  arguments.AddValue("link-mbps", "rate of the link, Mbit/s", link_mbps);
  arguments.AddValue("rtt-ms", "RTT without queueing and service, ms", rtt_ms);
  arguments.AddValue("packet-bytes", "on the wire", packet_bytes);
  arguments.AddValue("seconds", "to simulate", seconds);
  arguments.Parse(argc, argv);

  std::ifstream input(file);
  input.exceptions(std::ios::failbit | std::ios::badbit);
  std::string word;
  std::size_t count = 0;
  input >> word >> count;
  std::vector<Rule> rules(count);
  for (Rule& rule : rules) {
    for (std::size_t axis = 0; axis < kSignals; ++axis) {
      input >> rule.lower[axis] >> rule.upper[axis];
    }
    input >> rule.multiple >> rule.increment >> rule.intersend_ms;
  }
  input >> word >> count;
  std::vector<Sender> senders;
  senders.reserve(count);
  for (std::size_t sender = 0; sender < count; ++sender) {
    std::size_t number = 0;
    input >> number;
    std::vector<Period> periods(number);
    for (Period& period : periods) input >> period.begin_ms >> period.end_ms;
    senders.emplace_back(rules, periods, packet_bytes - kHeaderBytes);
  }

  ns3::PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(link_mbps * 1e6)));
  link.SetChannelAttribute("Delay", ns3::TimeValue(from_ms(rtt_ms / 2)));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("10000000p"));
  ns3::NodeContainer ends(2);
  ns3::InternetStackHelper stack;
  stack.Install(ends);
  const ns3::NetDeviceContainer devices = link.Install(ends);
  // ACKs take no time but the delay.
  devices.Get(1)->SetAttribute("DataRate", ns3::StringValue("1000Gbps"));
  ns3::Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  const ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
  // Addresses on a device without a queue discipline bring one with them.
  ns3::TrafficControlHelper().Uninstall(devices);

  for (std::size_t sender = 0; sender < senders.size(); ++sender) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + sender);
    const ns3::Ptr<ns3::Socket> receiver =
        ns3::Socket::CreateSocket(ends.Get(1), ns3::UdpSocketFactory::GetTypeId());
    receiver->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    receiver->SetRecvCallback(ns3::MakeCallback(&answer));
    senders[sender].install(ends.Get(0), ns3::InetSocketAddress(interfaces.GetAddress(1), port));
  }
  ns3::Simulator::Stop(ns3::Seconds(seconds));
  ns3::Simulator::Run();

  const auto list = [&](const char* name, auto value) {
    std::cout << "\"" << name << "\": [";
    for (std::size_t sender = 0; sender < senders.size(); ++sender) {
      std::cout << (sender > 0 ? ", " : "") << value(senders[sender]);
    }
    std::cout << "]";
  };
  std::cout.precision(17);
  std::cout << "{";
  list("sent", [](const Sender& each) { return each.sent(); });
  std::cout << ", ";
  list("received", [](const Sender& each) { return each.received(); });
  std::cout << ", ";
  list("rtt_sum_ms", [](const Sender& each) { return each.rtt_sum_ms(); });
  std::cout << "}\n";
  ns3::Simulator::Destroy();
}
