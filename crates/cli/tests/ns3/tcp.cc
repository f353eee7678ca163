// Long flows into one link of a star, by ns-3's own TCP with DCTCP.
//
//   tcp SENDERS BITS_PER_SECOND DELAY_NS PACKET_OCTETS MARK_OCTETS STOP_NS
//
// Packets have PACKET_OCTETS on the links, and are marked where more than MARK_OCTETS wait. Prints, of the second half of the time,
// the mean and the standard deviation of what waits towards the receiver, in octets, and what all flows got together, in bit/s; then
// how many links packets crossed in all and how long that took this processor, in seconds.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cmath>
#include <ctime>
#include <iostream>

using namespace ns3;

namespace {

constexpr uint32_t kHeaders = 20 + 20 + 2; // IPv4, TCP without options, and the device's

Time half;
uint64_t hops = 0, received = 0;

// What waits, as long as it does.
struct Waiting {
    double octets = 0, sum = 0, squares = 0;
    Time since;

    void Until(Time now) {
        double span = (now - Max(since, half)).GetSeconds();
        if (span > 0) {
            sum += octets * span;
            squares += octets * octets * span;
        }
        since = now;
    }
} waiting;

void Changed(uint32_t, uint32_t octets) {
    waiting.Until(Simulator::Now());
    waiting.octets = octets;
}

void Sent(Ptr<const Packet>) { ++hops; }

void Received(Ptr<const Packet> packet, const Address&) {
    if (Simulator::Now() > half)
        received += packet->GetSize();
}

} // namespace

int main(int, char** arguments) {
    uint32_t senders = std::stoul(arguments[1]), packet = std::stoul(arguments[4]);
    DataRate rate(std::stoull(arguments[2]));
    double mark = std::stod(arguments[5]);
    Time stop = NanoSeconds(std::stoll(arguments[6]));
    half = NanoSeconds(stop.GetNanoSeconds() / 2);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpDctcp"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(packet - kHeaders));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));

    NodeContainer hosts(senders + 1);
    Ptr<Node> middle = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(middle);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(rate));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::stoll(arguments[3]))));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p")); // what waits does so before the device
    TrafficControlHelper marking, fifo;
    marking.SetRootQueueDisc("ns3::RedQueueDisc", "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false), "QW",
                             DoubleValue(1), "MinTh", DoubleValue(mark), "MaxTh", DoubleValue(mark), "MeanPktSize",
                             UintegerValue(packet), "LinkBandwidth", DataRateValue(rate), "MaxSize", StringValue("100MB"));
    fifo.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("100MB"));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4Address receiver;
    for (uint32_t host = 0; host <= senders; ++host) {
        NetDeviceContainer ends = link.Install(middle, hosts.Get(host));
        for (uint32_t end : {0, 1})
            ends.Get(end)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Sent));
        Ptr<QueueDisc> queue = marking.Install(ends.Get(0)).Get(0);
        fifo.Install(ends.Get(1));
        Ipv4InterfaceContainer interfaces = addresses.Assign(ends);
        addresses.NewNetwork();
        if (host == 0) {
            queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Changed));
            receiver = interfaces.GetAddress(1);
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    for (uint32_t sender = 1; sender <= senders; ++sender) {
        InetSocketAddress there(receiver, 1000 + sender);
        ApplicationContainer sink = PacketSinkHelper("ns3::TcpSocketFactory", there).Install(hosts.Get(0));
        sink.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
        BulkSendHelper bulk("ns3::TcpSocketFactory", there);
        bulk.SetAttribute("SendSize", UintegerValue(packet - kHeaders)); // a segment in one piece
        bulk.Install(hosts.Get(sender)).Start(NanoSeconds(1000 * sender));
    }
    Simulator::Stop(stop);
    std::clock_t begun = std::clock();
    Simulator::Run();
    double seconds = double(std::clock() - begun) / CLOCKS_PER_SEC;
    waiting.Until(stop);
    double span = (stop - half).GetSeconds(), mean = waiting.sum / span;
    std::cout << mean << " " << std::sqrt(waiting.squares / span - mean * mean) << " " << received * 8 / span << " " << hops
              << " " << seconds << "\n";
}
