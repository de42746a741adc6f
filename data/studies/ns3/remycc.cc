// RemyCCs in ns-3: senders that share one link, for `remy-farm reproduce --with ns3`. Over UDP they
// are as in Remy's own simulator (datagram_sender.h), over TCP as in a kernel (tcp_sender.h).
//
// Reads what to simulate from a file (remycc.h). Prints one JSON object; lists have one entry for
// each sender: packets sent, lost and received (over TCP: acknowledged in order), the sum of RTTs
// and how many they are, packets sent again, timeouts, and when it was on, ms.

#include "remycc.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "datagram_sender.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "tcp_sender.h"

namespace {

constexpr std::uint16_t kFirstPort = 5000;
constexpr std::uint32_t kSocketBufferBytes = RemySocket::kReceiverBytes;

void set_tcp_defaults(std::uint32_t packet_bytes) {
  using ns3::Config::SetDefault;
  SetDefault("ns3::TcpSocket::SegmentSize",
             ns3::UintegerValue(packet_bytes - TcpSender::kHeaderBytes));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(kSocketBufferBytes));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(kSocketBufferBytes));
  SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(1));
  SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::MilliSeconds(200)));
  SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(false));
}

// Counts what finds no room, by the sender that its port names. ns-3 drops it before the device.
template <class TransportHeader>
void count_drop(std::vector<std::uint64_t>* lost, ns3::Ptr<const ns3::Packet> dropped) {
  const ns3::Ptr<ns3::Packet> packet = dropped->Copy();
  ns3::Ipv4Header ip;
  TransportHeader transport;
  packet->RemoveHeader(ip);
  packet->RemoveHeader(transport);
  ++lost->at(transport.GetDestinationPort() - kFirstPort);
}

template <class Senders>
void print(const Senders& senders, const std::vector<std::uint64_t>& lost) {
  const auto list = [&](const char* name, auto print_value) {
    std::cout << "\"" << name << "\": [";
    const char* separator = "";
    for (const auto& sender : senders) {
      std::cout << std::exchange(separator, ", ");
      print_value(sender.tally());
    }
    std::cout << "]";
  };
  const auto numbers = [&](const char* name, auto value) {
    list(name, [&](const Tally& tally) { std::cout << value(tally); });
    std::cout << ", ";
  };
  std::cout.precision(17);
  std::cout << "{\"lost\": [";
  const char* separator = "";
  for (const std::uint64_t count : lost) std::cout << std::exchange(separator, ", ") << count;
  std::cout << "], ";
  numbers("sent", [](const Tally& tally) { return tally.sent; });
  numbers("received", [](const Tally& tally) { return tally.received; });
  numbers("rtt_sum_ms", [](const Tally& tally) { return tally.rtt_sum_ms; });
  numbers("rtt_samples", [](const Tally& tally) { return tally.rtt_samples; });
  numbers("retransmitted", [](const Tally& tally) { return tally.retransmitted; });
  numbers("timeouts", [](const Tally& tally) { return tally.timeouts; });
  list("on_ms", [](const Tally& tally) {
    std::cout << "[";
    const char* separator = "";
    for (const Period& period : tally.on) {
      std::cout << std::exchange(separator, ", ") << "[" << period.begin_ms << ", "
                << std::min(period.end_ms, 1e300) << "]";
    }
    std::cout << "]";
  });
  std::cout << "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  std::string transport = "datagram";
  double link_mbps = 15;
  double rtt_ms = 150;
  double seconds = 100;
  std::uint32_t packet_bytes = 1500;
  std::uint32_t buffer_packets = 10'000'000;
  TcpSettings settings;
  ns3::CommandLine arguments;
  arguments.AddValue("file", "rules and senders", file);
  arguments.AddValue("transport", "datagram or tcp", transport);
  arguments.AddValue("keep-state", "over TCP: window and memory outlast an off period",
                     settings.keeps_state);
  arguments.AddValue("initial-window", "over TCP: packets that may leave before the first ACK",
                     settings.initial_window);
  arguments.AddValue("link-mbps", "rate of the link, Mbit/s", link_mbps);
  arguments.AddValue("rtt-ms", "RTT without queueing and service, ms", rtt_ms);
  arguments.AddValue("buffer-packets", "that may wait for the link", buffer_packets);
  arguments.AddValue("packet-bytes", "on the wire", packet_bytes);
  arguments.AddValue("seconds", "to simulate", seconds);
  arguments.Parse(argc, argv);

  std::ifstream input(file);
  const Scenario scenario(input);
  set_tcp_defaults(packet_bytes);

  ns3::PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(link_mbps * 1e6)));
  link.SetChannelAttribute("Delay", ns3::TimeValue(from_ms(rtt_ms / 2)));
  const ns3::QueueSize size(ns3::QueueSizeUnit::PACKETS, buffer_packets);
  link.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::QueueSizeValue(size));
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

  const bool is_tcp = transport == "tcp";
  std::deque<DatagramSender> datagram_senders;
  std::deque<TcpSender> tcp_senders;
  double prepared_ms = 0;
  for (const Scenario::Sender& sender : scenario.senders) {
    if (!is_tcp) break;
    tcp_senders.emplace_back(scenario.rules, sender, settings);
    prepared_ms += TcpSender::kOpensEveryMs * tcp_senders.back().connections();
  }
  const ns3::Time origin = from_ms(is_tcp ? prepared_ms + 1000 + 4 * rtt_ms : 0);
  double opens_ms = 0;
  std::vector<std::uint64_t> lost(scenario.senders.size());
  ends.Get(0)->GetObject<ns3::TrafficControlLayer>()->TraceConnectWithoutContext(
      "TcDrop", ns3::MakeBoundCallback(
                    is_tcp ? &count_drop<ns3::TcpHeader> : &count_drop<ns3::UdpHeader>, &lost));
  for (std::size_t number = 0; number < scenario.senders.size(); ++number) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + number);
    const ns3::Ptr<ns3::Socket> receiver =
        ns3::Socket::CreateSocket(ends.Get(1), is_tcp ? ns3::TcpSocketFactory::GetTypeId()
                                                      : ns3::UdpSocketFactory::GetTypeId());
    receiver->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    const ns3::InetSocketAddress there(interfaces.GetAddress(1), port);
    if (is_tcp) {
      receiver->Listen();
      receiver->SetAcceptCallback(
          ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
          ns3::MakeCallback(&TcpSender::accept));
      tcp_senders[number].install(ends.Get(0), there, opens_ms, origin);
      opens_ms += TcpSender::kOpensEveryMs * tcp_senders[number].connections();
    } else {
      receiver->SetRecvCallback(ns3::MakeCallback(&DatagramSender::answer));
      datagram_senders.emplace_back(scenario.rules, scenario.senders[number].periods, packet_bytes);
      datagram_senders.back().install(ends.Get(0), there);
    }
  }
  ns3::Simulator::Stop(origin + ns3::Seconds(seconds));
  ns3::Simulator::Run();
  if (is_tcp) {
    print(tcp_senders, lost);
  } else {
    print(datagram_senders, lost);
  }
  ns3::Simulator::Destroy();
}
