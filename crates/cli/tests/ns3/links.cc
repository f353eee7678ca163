// Frames carried by ns-3's links: full duplex, store and forward, a queue without an end at each port.
//
// Reads `node COUNT`, a `link A B BITS_PER_SECOND DELAY_NS` for each, then a `frame AT_NS SOURCE DESTINATION OCTETS` for each frame
// that a node begins to send. Paths must be the only ones. Prints when each frame had arrived, in ns and in their order; last, on
// stderr, how many links they crossed and how long that took this processor, in seconds.
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <ctime>
#include <iostream>
#include <vector>

using namespace ns3;

namespace {

constexpr uint16_t kProtocol = 0x0800;
constexpr uint32_t kPointToPointHeader = 2; // octets that the device puts before a packet

// What a packet begins with.
struct Label {
    uint32_t destination;
    uint32_t frame;
};

std::vector<std::vector<Ptr<NetDevice>>> towards; // the device, by node and destination
std::vector<int64_t> arrived;
uint64_t hops = 0;

void Send(uint32_t node, Ptr<Packet> packet, uint32_t destination) {
    Ptr<NetDevice> device = towards[node][destination];
    ++hops;
    if (!device || !device->Send(packet, device->GetBroadcast(), kProtocol)) {
        std::cerr << "a frame to " << destination << " cannot leave " << node << "\n";
        std::exit(1);
    }
}

bool Receive(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t, const Address&) {
    Label label;
    packet->CopyData(reinterpret_cast<uint8_t*>(&label), sizeof label);
    uint32_t node = device->GetNode()->GetId();
    if (node == label.destination)
        arrived[label.frame] = Simulator::Now().GetNanoSeconds();
    else
        Send(node, packet->Copy(), label.destination);
    return true;
}

void Begin(uint32_t source, uint32_t destination, uint32_t frame, uint32_t octets) {
    Label label{destination, frame};
    Ptr<Packet> packet = Create<Packet>(reinterpret_cast<uint8_t*>(&label), sizeof label);
    packet->AddAtEnd(Create<Packet>(octets - kPointToPointHeader - sizeof label));
    Send(source, packet, destination);
}

struct Edge {
    uint32_t to;
    Ptr<NetDevice> device;
};

// Finds each node's device towards each destination, outwards from the destination.
void Route(const std::vector<std::vector<Edge>>& edges) {
    towards.assign(edges.size(), std::vector<Ptr<NetDevice>>(edges.size()));
    for (uint32_t destination = 0; destination < edges.size(); ++destination) {
        std::vector<uint32_t> reached{destination};
        for (size_t place = 0; place < reached.size(); ++place)
            for (const Edge& edge : edges[reached[place]]) {
                if (edge.to == destination || towards[edge.to][destination])
                    continue;
                reached.push_back(edge.to);
                for (const Edge& back : edges[edge.to])
                    if (back.to == reached[place])
                        towards[edge.to][destination] = back.device;
            }
    }
}

} // namespace

int main() {
    std::string word;
    uint32_t count;
    std::cin >> word >> count;
    NodeContainer nodes;
    nodes.Create(count);
    std::vector<std::vector<Edge>> edges(count);
    while (std::cin >> word && word == "link") {
        uint32_t a, b;
        uint64_t rate;
        int64_t delay;
        std::cin >> a >> b >> rate >> delay;
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
        link.SetDeviceAttribute("Mtu", UintegerValue(65535));
        link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000000p"));
        NetDeviceContainer ends = link.Install(nodes.Get(a), nodes.Get(b));
        edges[a].push_back({b, ends.Get(0)});
        edges[b].push_back({a, ends.Get(1)});
        ends.Get(0)->SetReceiveCallback(MakeCallback(&Receive));
        ends.Get(1)->SetReceiveCallback(MakeCallback(&Receive));
    }
    Route(edges);
    do {
        int64_t at;
        uint32_t source, destination, octets;
        std::cin >> at >> source >> destination >> octets;
        uint32_t frame = arrived.size();
        arrived.push_back(-1);
        Simulator::ScheduleWithContext(source, NanoSeconds(at), &Begin, source, destination, frame, octets);
    } while (std::cin >> word);
    std::clock_t begun = std::clock();
    Simulator::Run();
    double seconds = double(std::clock() - begun) / CLOCKS_PER_SEC;
    for (int64_t at : arrived)
        std::cout << at << "\n";
    std::cerr << hops << " " << seconds << "\n";
}
