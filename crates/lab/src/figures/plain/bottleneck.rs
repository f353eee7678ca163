//! Hosts that share one link behind one queue: what textbook senders run on.
//!
//! Each host's port serves its flows by turns, packet by packet. A first-in, first-out queue before the shared link
//! drops what it has no room for, marks by RED as packets leave, and may pause hosts. What the receiver answers comes
//! back after a fixed time; a flow that hears it at the very instant at which its port becomes free goes first.

use crate::output::digits::float;
use roci_units::{BitsPerSec, Instant, Random, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Answer {
    /// All packets before this one have come.
    Ack(u64),
    /// A packet came that was marked.
    Cnp,
}

/// Both ends of a flow, which counts its packets from 0.
pub(in super::super) trait Flow {
    /// The number of the packet that it sends now, or when it may; [`Instant::NEVER`]: not before something happens.
    fn send(&mut self, now: Instant) -> Result<u64, Instant>;
    /// Its packet `number` has come to the receiver.
    fn arrive(&mut self, now: Instant, number: u64, marked: bool) -> Option<Answer>;
    /// The receiver's answer has come to the sender.
    fn hear(&mut self, now: Instant, answer: Answer);
    /// When its next timer runs out.
    fn deadline(&self) -> Instant;
    /// The deadline has come.
    fn expire(&mut self, now: Instant);
}

/// Where and when packets are marked: none up to `kmin` octets, all from `kmax`, between them up to `pmax` of them.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Red {
    pub(in super::super) kmin: f64,
    pub(in super::super) kmax: f64,
    pub(in super::super) pmax: f64,
}

/// When a host is paused: while it holds more of the queue than a share of what is free.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pause {
    /// What the switch has for the queue, in octets.
    pub(in super::super) buffer: u64,
    /// A host is paused where it holds more than one over so many parts of what is free.
    pub(in super::super) parts: u64,
    /// How far below that it may send again.
    pub(in super::super) resume: u64,
    /// From the switch to the host.
    pub(in super::super) delay: Span,
}

/// Hosts, a queue, a link.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bottleneck {
    /// How many hosts send; the flows are dealt out in equal parts, one host after the other.
    pub(in super::super) hosts: usize,
    /// The rate of all links.
    pub(in super::super) rate: BitsPerSec,
    /// How long a bit travels on each.
    pub(in super::super) delay: Span,
    /// Octets of a packet on a link.
    pub(in super::super) wire: u64,
    /// Octets of a packet in the queue.
    pub(in super::super) frame: u64,
    /// Octets that the queue holds.
    pub(in super::super) capacity: u64,
    /// From a packet's arrival to the answer's.
    pub(in super::super) back: Span,
    pub(in super::super) red: Option<Red>,
    pub(in super::super) pause: Option<Pause>,
    pub(in super::super) seed: u64,
}

/// A packet: its flow and number.
type Packet = (u32, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    PortFree(usize),
    Joins(Packet),
    LinkFree,
    Arrives(Packet, bool),
    Hears(u32, Answer),
    Timer(u32),
    Paused(usize, bool),
}

/// A host's port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    free: Instant,
    /// Whose turn it is.
    turn: usize,
    /// When it looks again.
    wakes: Option<Instant>,
    /// Whether it has been told to pause, and whether it was asked to last.
    paused: bool,
    asked: bool,
    /// Octets of its packets in the queue.
    held: u64,
}

struct Run<'a, F> {
    net: Bottleneck,
    flows: &'a mut [F],
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    serial: u64,
    ports: Vec<Port>,
    /// For each flow, when an event looks at its timer.
    watched: Vec<Instant>,
    queue: VecDeque<Packet>,
    busy: bool,
    random: Random,
    dropped: u64,
}

impl Bottleneck {
    /// Runs `flows` until `end` and tells how many packets were dropped.
    pub(in super::super) fn run<F: Flow>(self, flows: &mut [F], end: Instant) -> u64 {
        let watched = vec![Instant::NEVER; flows.len()];
        let mut run = Run {
            net: self,
            flows,
            events: BinaryHeap::new(),
            serial: 0,
            ports: vec![Port::default(); self.hosts],
            watched,
            queue: VecDeque::new(),
            busy: false,
            random: Random::new(self.seed, 0),
            dropped: 0,
        };
        for host in 0..self.hosts {
            // Whoever sends first, and each port a part of a packet later: that is chance.
            run.ports[host].turn = usize::try_from(run.random.below(run.flows.len() as u64)).unwrap_or(0);
            let late = run.random.below(self.rate.time_for(self.wire).as_ps());
            run.push(Instant::from_ps(late), Event::PortFree(host));
        }
        while let Some(Reverse((now, _, event))) = run.events.pop() {
            if now > end {
                break;
            }
            run.happen(now, event);
        }
        run.dropped
    }
}

impl<F: Flow> Run<'_, F> {
    fn push(&mut self, at: Instant, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn happen(&mut self, now: Instant, event: Event) {
        let net = self.net;
        match event {
            Event::PortFree(host) => self.serve(now, host),
            Event::Joins(packet) => {
                if (self.queue.len() as u64 + 1) * net.frame > net.capacity {
                    self.dropped += 1;
                    return;
                }
                self.queue.push_back(packet);
                let host = self.host(packet.0);
                self.ports[host].held += net.frame;
                self.pause(now, host);
                if !self.busy {
                    self.depart(now);
                }
            }
            Event::LinkFree => {
                self.busy = false;
                self.depart(now);
            }
            Event::Arrives((flow, number), marked) => {
                if let Some(answer) = self.flows[flow as usize].arrive(now, number, marked) {
                    self.push(now + net.back, Event::Hears(flow, answer));
                }
            }
            Event::Hears(flow, answer) => {
                self.flows[flow as usize].hear(now, answer);
                self.look(now, flow);
            }
            Event::Timer(flow) => {
                self.watched[flow as usize] = Instant::NEVER;
                if self.flows[flow as usize].deadline() <= now {
                    self.flows[flow as usize].expire(now);
                }
                self.look(now, flow);
            }
            Event::Paused(host, paused) => {
                self.ports[host].paused = paused;
                self.serve(now, host);
            }
        }
    }

    fn host(&self, flow: u32) -> usize {
        flow as usize / self.flows.len().div_ceil(self.net.hosts)
    }

    /// Asks a host to pause, or to go on, where what it holds says so.
    fn pause(&mut self, now: Instant, host: usize) {
        let Some(pause) = self.net.pause else { return };
        let threshold = pause.buffer.saturating_sub(self.queue.len() as u64 * self.net.frame) / pause.parts;
        let port = &mut self.ports[host];
        let due = if port.asked { port.held + pause.resume > threshold } else { port.held > threshold };
        if due != port.asked {
            port.asked = due;
            self.push(now + pause.delay, Event::Paused(host, due));
        }
    }

    /// Something has happened to a flow: an idle port may serve it, and its timer is watched.
    fn look(&mut self, now: Instant, flow: u32) {
        self.watch(flow);
        let host = self.host(flow);
        if self.ports[host].free <= now && !self.ports[host].paused {
            match self.flows[flow as usize].send(now) {
                Ok(number) => self.emit(now, host, (flow, number)),
                Err(at) => self.wake(host, at),
            }
        }
    }

    fn watch(&mut self, flow: u32) {
        let deadline = self.flows[flow as usize].deadline();
        let watched = &mut self.watched[flow as usize];
        if deadline < *watched {
            *watched = deadline;
            self.push(deadline, Event::Timer(flow));
        }
    }

    fn wake(&mut self, host: usize, at: Instant) {
        let port = &mut self.ports[host];
        if at != Instant::NEVER && port.wakes.is_none_or(|wakes| at < wakes) {
            port.wakes = Some(at);
            self.push(at, Event::PortFree(host));
        }
    }

    /// A port that is free sends for the next of its flows that may.
    fn serve(&mut self, now: Instant, host: usize) {
        let port = &mut self.ports[host];
        if port.wakes.is_some_and(|at| at <= now) {
            port.wakes = None;
        }
        if port.free > now || port.paused {
            return;
        }
        let each = self.flows.len().div_ceil(self.net.hosts);
        let mut first = Instant::NEVER;
        for step in 0..each {
            let place = (self.ports[host].turn + step) % each;
            let flow = host * each + place;
            match self.flows.get_mut(flow).map_or(Err(Instant::NEVER), |flow| flow.send(now)) {
                Ok(number) => {
                    self.ports[host].turn = place + 1;
                    return self.emit(now, host, (u32::try_from(flow).unwrap_or(u32::MAX), number));
                }
                Err(at) => first = first.min(at),
            }
        }
        self.wake(host, first);
    }

    fn emit(&mut self, now: Instant, host: usize, packet: Packet) {
        let gone = now + self.net.rate.time_for(self.net.wire);
        self.ports[host].free = gone;
        self.push(gone, Event::PortFree(host));
        self.push(gone + self.net.delay, Event::Joins(packet));
        self.watch(packet.0);
    }

    fn depart(&mut self, now: Instant) {
        let Some(packet) = self.queue.pop_front() else { return };
        let host = self.host(packet.0);
        self.ports[host].held -= self.net.frame;
        self.pause(now, host);
        let marked = self.net.red.is_some_and(|red| {
            let behind = float(self.queue.len() as u64 * self.net.frame);
            let share = red.pmax * (behind - red.kmin) / (red.kmax - red.kmin);
            let draw = float(self.random.next_u64() >> 11) / float(1 << 53);
            behind > red.kmin && (behind >= red.kmax || draw < share)
        });
        let gone = now + self.net.rate.time_for(self.net.wire);
        self.busy = true;
        self.push(gone, Event::LinkFree);
        self.push(gone + self.net.delay, Event::Arrives(packet, marked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends whenever it may, and counts what came.
    #[derive(Clone, Default)]
    struct Greedy {
        sent: u64,
        came: u64,
        marked: u64,
        heard: u64,
    }

    impl Flow for Greedy {
        fn send(&mut self, _now: Instant) -> Result<u64, Instant> {
            self.sent += 1;
            Ok(self.sent - 1)
        }

        fn arrive(&mut self, _now: Instant, _number: u64, marked: bool) -> Option<Answer> {
            self.came += 1;
            self.marked += u64::from(marked);
            Some(Answer::Cnp)
        }

        fn hear(&mut self, _now: Instant, _answer: Answer) {
            self.heard += 1;
        }

        fn deadline(&self) -> Instant {
            Instant::NEVER
        }

        fn expire(&mut self, _now: Instant) {}
    }

    fn net(red: Option<Red>) -> Bottleneck {
        Bottleneck {
            hosts: 2,
            rate: BitsPerSec::from_gbps(8),
            delay: Span::from_micros(1),
            wire: 1_000,
            frame: 1_000,
            capacity: 10_000,
            back: Span::from_micros(2),
            red,
            pause: None,
            seed: 1,
        }
    }

    #[test]
    fn two_hosts_that_fill_their_links_lose_half_of_what_they_send_and_flows_take_turns() {
        let mut flows = vec![Greedy::default(); 8];
        let end = Instant::ZERO + Span::from_millis(8);
        let dropped = net(None).run(&mut flows, end);
        // 1 µs a packet: 8000 from each host, 8000 through the link, and about ten of each in flight.
        assert!(dropped.abs_diff(8_000) < 50, "{dropped}");
        assert!(flows.iter().all(|flow| flow.sent.abs_diff(2_000) <= 1), "turns");
        let came: u64 = flows.iter().map(|flow| flow.came).sum();
        assert!(came.abs_diff(8_000) < 20, "{came}");
        assert!(flows.iter().all(|flow| flow.heard.abs_diff(flow.came) < 10 && flow.marked == 0));
    }

    #[test]
    fn hosts_that_are_paused_lose_nothing_and_keep_the_link_busy() {
        let mut flows = vec![Greedy::default(); 2];
        let pause = Pause { buffer: 100_000, parts: 4, resume: 2_000, delay: Span::from_micros(1) };
        let net = Bottleneck { pause: Some(pause), capacity: 100_000, ..net(None) };
        assert_eq!(net.run(&mut flows, Instant::ZERO + Span::from_millis(8)), 0);
        let came: u64 = flows.iter().map(|flow| flow.came).sum();
        assert!(came.abs_diff(8_000) < 20, "{came}");
        let (first, second) = (flows[0].came, flows[1].came);
        assert!(first.abs_diff(second) < 800, "{first} {second}");
    }

    #[test]
    fn a_queue_beyond_kmax_marks_all() {
        let mut flows = vec![Greedy::default(); 2];
        let red = Red { kmin: 1_000.0, kmax: 5_000.0, pmax: 0.1 };
        net(Some(red)).run(&mut flows, Instant::ZERO + Span::from_millis(1));
        let (came, marked) = flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.came, sum.1 + flow.marked));
        assert!(came > 900 && came - marked < 50, "{came} {marked}");
    }
}
