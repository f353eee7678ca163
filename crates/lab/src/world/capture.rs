//! Captures: what the taps on chosen nodes record, written as the run goes.

use super::build::{node_name, port_name};
use crate::output::pcap::{self, Direction, Frame, Interface, Node, RocePacket, Sighting};
use crate::run::RunError;
use crate::scenario::Scenario;
use roci_fabric::net::Net;
use roci_fabric::packet::Marks;
use roci_fabric::packets::Extra;
use roci_fabric::tap::{Tapped, TappedFrame};
use roci_wire::{Ecn, Header, Layout, LayoutWords};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// The capture of a run; nothing where none was asked for.
pub(super) struct Capture {
    open: Option<Open>,
}

struct Open {
    writer: pcap::Capture<BufWriter<File>>,
    /// The interface of each tapped port.
    interfaces: BTreeMap<u32, u32>,
    layout: Layout,
    /// Whether READ responses are numbered apart from requests.
    numbered_apart: bool,
    hosts: u32,
}

impl Capture {
    /// Taps the ports of the nodes that `scenario` names, to write into `folder`.
    pub(super) fn new(scenario: &Scenario, net: &mut Net, folder: Option<&Path>) -> Result<Self, RunError> {
        let graph = &scenario.topology.graph;
        let Some(folder) = folder.filter(|_| !scenario.measure.pcap.is_empty()) else {
            return Ok(Self { open: None });
        };
        let mut interfaces = BTreeMap::new();
        let mut announced = Vec::new();
        let chosen =
            |node: u32| scenario.measure.pcap.iter().any(|name| name.value == node_name(graph, node));
        let tapped: Vec<u32> = (0u32..).take(net.port_count()).filter(|&p| chosen(net.node_of(p))).collect();
        for port in tapped {
            net.tap(port, true);
            interfaces.insert(port, u32::try_from(announced.len()).expect("fewer than 2^28 ports"));
            let name = port_name(net, port, |node| node_name(graph, node));
            announced.push(Interface { name, rate: net.rate_of_port(port) });
        }
        let writer = File::create(folder.join(pcap::FILE)).map(BufWriter::new);
        let writer = writer.and_then(|file| pcap::Capture::new(file, &announced)).map_err(failed)?;
        let hosts = u32::try_from(graph.hosts.len()).expect("at most 65 535 hosts");
        let layout = scenario.transport.layout;
        let numbered_apart = scenario.transport.recovery.keeps_out_of_order();
        Ok(Self { open: Some(Open { writer, interfaces, layout, numbered_apart, hosts }) })
    }

    /// Writes what the taps have recorded since the last time.
    pub(super) fn collect(&mut self, net: &mut Net) -> Result<(), RunError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        // What PAUSE frames at a port say at one instant is said by one of them.
        let is_of = |one: &Tapped, other: &Tapped| {
            let pauses = [one, other].map(|tapped| matches!(tapped.frame, TappedFrame::Pause { .. }));
            pauses == [true; 2] && (one.at, one.port, one.sent) == (other.at, other.port, other.sent)
        };
        for together in net.drain_taps().chunk_by(is_of) {
            let mut sighting = open.sighting(net, &together[0]);
            for tapped in &together[1..] {
                if let (Frame::Pause { classes, stop, .. }, TappedFrame::Pause { priority, on }) =
                    (&mut sighting.frame, &tapped.frame)
                {
                    *classes |= 1 << priority;
                    *stop = *stop & !(1 << priority) | u8::from(*on) << priority;
                }
            }
            open.writer.record(&sighting).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes what is left and closes the file.
    pub(super) fn finish(&mut self, net: &mut Net) -> Result<(), RunError> {
        self.collect(net)?;
        let Some(open) = self.open.take() else { return Ok(()) };
        open.writer.finish().into_inner().map_err(|error| failed(error.into_error()))?;
        Ok(())
    }
}

impl Open {
    fn sighting(&self, net: &Net, tapped: &Tapped) -> Sighting {
        let frame = match &tapped.frame {
            TappedFrame::Packet(packet, extra) => Frame::Packet(RocePacket {
                source: packet.source.0,
                destination: packet.destination.0,
                flow: packet.flow,
                priority: packet.priority,
                ecn: match packet.marks {
                    marks if marks.has(Marks::CE) => Ecn::Ce,
                    marks if marks.has(Marks::ECT) => Ecn::Ect0,
                    _ => Ecn::NotEct,
                },
                corrupt: packet.marks.has(Marks::CORRUPT),
                layout: self.layout,
                numbered_apart: self.numbered_apart,
                words: self.words(&packet.header, extra.as_deref()),
                header: packet.header,
            }),
            TappedFrame::Pause { priority, on } => {
                let port = if tapped.sent { tapped.port } else { net.peer(tapped.port) };
                Frame::Pause {
                    from: self.node(net.node_of(port)),
                    classes: 1 << priority,
                    stop: u8::from(*on) << priority,
                }
            }
        };
        let direction = if tapped.sent { Direction::Transmitted } else { Direction::Received };
        Sighting { at: tapped.at, interface: self.interfaces[&tapped.port], direction, frame }
    }

    /// The words of a packet's optional header: what a law put there, else zeros, as many as the layout has.
    fn words(&self, header: &Header, extra: Option<&Extra>) -> LayoutWords {
        let mut words = LayoutWords::zeroed(self.layout.law_words(header.opcode));
        let given = extra.map_or(&[][..], Extra::words);
        for (word, given) in words.as_mut_slice().iter_mut().zip(given) {
            *word = *given;
        }
        words
    }

    fn node(&self, node: u32) -> Node {
        let number = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
        match node.checked_sub(self.hosts) {
            None => Node::Host(number(node)),
            Some(switch) => Node::Switch(number(switch)),
        }
    }
}

fn failed(error: std::io::Error) -> RunError {
    RunError::Output(format!("cannot write {}: {error}", pcap::FILE))
}
