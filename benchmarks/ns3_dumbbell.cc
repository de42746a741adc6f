// The scenario of benchmarks/ns3.py, for ns-3: bulk TCP flows through one drop-tail queue.
//
// Prints one JSON object: packets that reached the receivers in order, CPU seconds of
// Simulator::Run alone, and with --waiting the mean time that packets wait in the queue. That costs
// CPU time, so it is for runs that are not timed.

#include <cstdint>
#include <ctime>
#include <deque>
#include <iostream>
#include <string>
#include <utility>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

constexpr std::uint16_t kFirstPort = 5000;
// A packet of 1,500 bytes has headers of PPP (2), IP (20) and TCP (20, without options) in it.
constexpr std::uint32_t kSegmentBytes = 1458;
constexpr std::uint32_t kSocketBufferBytes = 1 << 26;

// How long packets wait in a queue that is first in, first out.
class Waiting {
 public:
  void enter(ns3::Ptr<const ns3::Packet>) { entered_.push_back(ns3::Simulator::Now()); }

  void leave(ns3::Ptr<const ns3::Packet>) {
    sum_ += ns3::Simulator::Now() - entered_.front();
    entered_.pop_front();
    ++left_;
  }

  double mean_ms() const { return left_ == 0 ? 0.0 : sum_.GetSeconds() * 1000.0 / left_; }

 private:
  std::deque<ns3::Time> entered_;
  ns3::Time sum_;
  double left_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::string protocol = "TcpNewReno";
  std::uint32_t senders = 8;
  std::uint32_t buffer_packets = 1000;
  double link_mbps = 15;
  double rtt_ms = 150;
  double starts_apart_ms = 200;
  double seconds = 100;
  bool access_links = false;
  bool waiting = false;
  ns3::CommandLine arguments;
  arguments.AddValue("protocol", "class of the congestion control", protocol);
  arguments.AddValue("senders", "flows", senders);
  arguments.AddValue("buffer-packets", "of the bottleneck's queue", buffer_packets);
  arguments.AddValue("link-mbps", "rate of the bottleneck, Mbit/s", link_mbps);
  arguments.AddValue("rtt-ms", "RTT without queueing and service, ms", rtt_ms);
  arguments.AddValue("starts-apart-ms", "between the starts of two flows, ms", starts_apart_ms);
  arguments.AddValue("seconds", "to simulate", seconds);
  arguments.AddValue("access-links", "a link of its own for each end of a flow", access_links);
  arguments.AddValue("waiting", "measure the time that packets wait", waiting);
  arguments.Parse(argc, argv);

  using ns3::Config::SetDefault;
  SetDefault("ns3::TcpL4Protocol::SocketType", ns3::StringValue("ns3::" + protocol));
  SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(kSegmentBytes));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(kSocketBufferBytes));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(kSocketBufferBytes));
  SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
  SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(1));
  SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::MilliSeconds(200)));
  SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(false));

  ns3::PointToPointHelper bottleneck;
  bottleneck.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(link_mbps * 1e6)));
  bottleneck.SetChannelAttribute("Delay", ns3::TimeValue(ns3::MilliSeconds(rtt_ms / 2)));
  const ns3::QueueSize size(ns3::QueueSizeUnit::PACKETS, buffer_packets);
  bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::QueueSizeValue(size));
  // Fast enough that nothing queues there, and without delay.
  ns3::PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", ns3::StringValue("10Gbps"));
  access.SetChannelAttribute("Delay", ns3::TimeValue(ns3::Time(0)));
  access.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("100000p"));

  ns3::NodeContainer middle(2);
  ns3::NodeContainer ends;
  if (access_links) ends.Create(2 * senders);
  ns3::InternetStackHelper stack;
  stack.Install(middle);
  stack.Install(ends);

  // Addresses on a device without a queue discipline bring one with them.
  ns3::TrafficControlHelper disciplines;
  ns3::Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  const auto connect = [&](ns3::PointToPointHelper& link, const ns3::NodeContainer& nodes) {
    const ns3::NetDeviceContainer devices = link.Install(nodes);
    const ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    disciplines.Uninstall(devices);
    addresses.NewNetwork();
    return std::pair(devices, interfaces);
  };
  const auto [devices, interfaces] = connect(bottleneck, middle);
  ns3::ApplicationContainer receivers;
  for (std::uint32_t flow = 0; flow < senders; ++flow) {
    ns3::Ptr<ns3::Node> from = middle.Get(0);
    ns3::Ptr<ns3::Node> to = middle.Get(1);
    ns3::Ipv4Address address = interfaces.GetAddress(1);
    if (access_links) {
      from = ends.Get(2 * flow);
      to = ends.Get(2 * flow + 1);
      connect(access, {from, middle.Get(0)});
      address = connect(access, {middle.Get(1), to}).second.GetAddress(1);
    }
    const ns3::InetSocketAddress there(address, kFirstPort + flow);
    ns3::BulkSendHelper sender("ns3::TcpSocketFactory", there);
    sender.SetAttribute("SendSize", ns3::UintegerValue(kSegmentBytes));
    sender.Install(from).Start(ns3::MilliSeconds(flow * starts_apart_ms));
    receivers.Add(ns3::PacketSinkHelper("ns3::TcpSocketFactory", there).Install(to));
  }
  if (access_links) ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  Waiting wait;
  if (waiting) {
    const auto device = ns3::DynamicCast<ns3::PointToPointNetDevice>(devices.Get(0));
    const auto queue = device->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", ns3::MakeCallback(&Waiting::enter, &wait));
    queue->TraceConnectWithoutContext("Dequeue", ns3::MakeCallback(&Waiting::leave, &wait));
  }

  ns3::Simulator::Stop(ns3::Seconds(seconds));
  const std::clock_t began = std::clock();
  ns3::Simulator::Run();
  const std::clock_t ended = std::clock();

  std::uint64_t bytes = 0;
  for (std::uint32_t flow = 0; flow < senders; ++flow) {
    bytes += ns3::DynamicCast<ns3::PacketSink>(receivers.Get(flow))->GetTotalRx();
  }
  std::cout << "{\"packets\": " << bytes / kSegmentBytes
            << ", \"cpu_seconds\": " << static_cast<double>(ended - began) / CLOCKS_PER_SEC;
  if (waiting) std::cout << ", \"waiting_ms\": " << wait.mean_ms();
  std::cout << "}\n";
  ns3::Simulator::Destroy();
}
