//! The load of a case: what each side posts, and the ledger of what it hears.

use crate::case::Case;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::routing::flow_hash;
use roci_nic::{Application, Host, Path};
use roci_transport::{
    Change, Completion, CompletionKind, Operation, Pd, RecvRequest, RecvTarget, SendRequest, Srq, Status,
    Tail, Transition,
};
use roci_units::{Instant, Qpn, Random, Ratio, Span};
use std::collections::BTreeSet;

/// The word that all FETCH-ADDs to a host add 1 to.
pub(crate) const SUM: u64 = 0;
/// The words of COMPARE-SWAPs, one for each side that asks.
pub(crate) fn word_of(side: usize) -> u64 {
    8 + 8 * side as u64
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Send(Tail),
    Write(Tail),
    Read,
    FetchAdd,
    /// With what it compares, what it swaps in, and what it finds if each one before it was carried out once.
    CompareSwap {
        compare: u64,
        swap: u64,
        finds: u64,
    },
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) action: Action,
    pub(crate) length: u32,
    pub(crate) signaled: bool,
    pub(crate) fence: bool,
}

impl Message {
    /// Whether it takes a receive request at the responder, and what its completion there is of.
    pub(crate) fn received_as(&self) -> Option<(CompletionKind, Tail)> {
        match self.action {
            Action::Send(tail) => Some((CompletionKind::Recv, tail)),
            Action::Write(tail @ Tail::Immediate(_)) => Some((CompletionKind::RecvWrite, tail)),
            _ => None,
        }
    }

    pub(crate) fn completed_as(&self) -> CompletionKind {
        match self.action {
            Action::Send(_) => CompletionKind::Send,
            Action::Write(_) => CompletionKind::Write,
            Action::Read => CompletionKind::Read,
            Action::FetchAdd => CompletionKind::FetchAdd,
            Action::CompareSwap { .. } => CompletionKind::CompareSwap,
        }
    }

    /// The messages that one side sends.
    pub(crate) fn draw_all(case: &Case, random: &mut Random) -> Vec<Self> {
        let longest = [0, 1, 64, 1_000, 5_000, 20_000, 60_000, 100_000][case.size as usize];
        let longest = u64::min(longest, 200 * u64::from(crate::run::mtu(case)));
        let mut swapped = 0;
        let draw = |number: u32| {
            let immediate = Tail::Immediate(random.below(1 << 32) as u32);
            let length = random.below(longest + 1) as u32;
            let kinds: Vec<u32> = (0..7).filter(|kind| case.operations >> kind & 1 == 1).collect();
            let (action, length) = match kinds[random.below(kinds.len() as u64) as usize] {
                0 => (Action::Send(Tail::Plain), length),
                1 => (Action::Write(Tail::Plain), length),
                2 => (Action::Send(immediate), length),
                3 => (Action::Write(immediate), length),
                4 => (Action::Read, length),
                5 => (Action::FetchAdd, 8),
                _ if random.below(4) == 0 => {
                    (Action::CompareSwap { compare: swapped + 1_000, swap: 0, finds: swapped }, 8)
                }
                _ => {
                    swapped += 1;
                    let finds = swapped - 1;
                    (Action::CompareSwap { compare: finds, swap: swapped, finds }, 8)
                }
            };
            // Of those outstanding at once, one at least must tell.
            let tells = number % case.depth == case.depth - 1 || number + 1 == case.messages;
            let signaled = case.silent == 0 || tells || random.below(2) == 0;
            Self { action, length, signaled, fence: case.fences == 1 && random.below(4) == 0 }
        };
        (0..case.messages).map(draw).collect()
    }
}

/// One queue pair and what became of its work.
pub(crate) struct Side {
    pub(crate) host: HostId,
    pub(crate) qpn: Qpn,
    /// The other side.
    pub(crate) peer: usize,
    pub(crate) messages: Vec<Message>,
    pub(crate) posted: usize,
    /// Completions of send requests, and of receive requests.
    pub(crate) sent: Vec<Completion>,
    pub(crate) received: Vec<Completion>,
    pub(crate) receives_posted: u64,
    /// Whether one ended with an error.
    pub(crate) failed: bool,
    /// Whether it was taken down because the other side had failed.
    pub(crate) taken_down: bool,
}

/// Receive requests are told from others by this bit of their name; below it is their number, above it their side, or
/// for those of a shared queue the number of their host behind [`SHARED`].
const RECEIVE: u64 = 1 << 31;
/// The place of the first shared receive queue.
const SHARED: usize = 1 << 16;
/// The place of the datagram queue pair of the first host.
const DATAGRAMS: usize = 1 << 17;

/// A receive queue that the queue pairs of a host share.
pub(crate) struct Shared {
    pub(crate) srq: Srq,
    pub(crate) posted: u64,
    /// The numbers of those that have ended.
    pub(crate) ended: BTreeSet<usize>,
}

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) length: u32,
}

/// The datagrams of a case, and what became of them.
pub(crate) struct Datagrams {
    /// By host.
    pub(crate) qpns: Vec<Qpn>,
    pub(crate) all: Vec<Datagram>,
    /// Completions of those sent, and of receive requests, in the order of time.
    pub(crate) sent: Vec<Completion>,
    pub(crate) received: Vec<(usize, Completion)>,
    pub(crate) q_key: u32,
}

/// The application on all hosts.
pub(crate) struct Load {
    pub(crate) sides: Vec<Side>,
    /// By host, the receive queue that its queue pairs share; empty where each has its own.
    pub(crate) shared: Vec<Shared>,
    pub(crate) datagrams: Datagrams,
    /// By host, the key of all its memory.
    pub(crate) keys: Vec<u32>,
    depth: usize,
    /// Receive requests that are kept posted.
    receives: u64,
    late: bool,
    random: Random,
    /// When receive queues will be filled that were left to run empty.
    withheld: BTreeSet<(Instant, usize)>,
    /// When sides whose other side has failed will be taken down.
    departing: BTreeSet<(Instant, usize)>,
}

impl Load {
    pub(crate) fn new(
        case: &Case,
        sides: Vec<Side>,
        shared: Vec<Shared>,
        datagrams: Datagrams,
        keys: Vec<u32>,
    ) -> Self {
        Self {
            sides,
            shared,
            datagrams,
            keys,
            depth: case.depth as usize,
            receives: u64::from(6 - case.few_receives),
            late: case.late_receives == 1,
            random: Random::new(case.seed, LATE_STREAM),
            withheld: BTreeSet::new(),
            departing: BTreeSet::new(),
        }
    }

    /// Posts the first requests of all sides.
    pub(crate) fn begin(&mut self, now: Instant, hosts: &mut [Host]) {
        for side in 0..self.sides.len() {
            self.fill_receives(hosts, side);
            self.post(now, hosts, side);
        }
        self.post_datagrams(now, hosts);
    }

    /// Posts all datagrams, and as many receive requests for them.
    fn post_datagrams(&mut self, now: Instant, hosts: &mut [Host]) {
        let Datagrams { qpns, all, q_key, .. } = &self.datagrams;
        for (number, &Datagram { from, to, length }) in (0u64..).zip(all) {
            let id = (DATAGRAMS as u64) << 32 | number;
            let flow = flow_hash(host_id(from), host_id(to), 0xc123);
            let operation = Operation::Datagram {
                path: Path { host: host_id(to), flow }.pack(),
                qpn: qpns[to],
                q_key: *q_key,
                tail: Tail::Immediate(number as u32),
            };
            let request = SendRequest {
                id,
                operation,
                length,
                address: 0,
                lkey: 0,
                solicited: false,
                signaled: true,
                fence: false,
            };
            hosts[from].engine.post_send(now, qpns[from], &request).expect("it fits into a packet");
            let request = RecvRequest { id: id | RECEIVE, address: 0, length: 1 << 20, lkey: 0 };
            hosts[to].engine.post_recv(qpns[to], request).expect("the queue pair is connected");
        }
    }

    /// When something is next to be done that no packet brings about.
    pub(crate) fn next_late(&self) -> Option<Instant> {
        [self.withheld.first(), self.departing.first()].into_iter().flatten().map(|&(at, _)| at).min()
    }

    /// Takes sides down and fills receive queues, those whose time has come.
    pub(crate) fn act_late(&mut self, net: &mut Net, hosts: &mut [Host]) {
        while let Some(&(at, side)) = self.departing.first().filter(|(at, _)| *at <= net.now()) {
            self.departing.remove(&(at, side));
            self.take_down(net, hosts, side);
        }
        while let Some(&(at, side)) = self.withheld.first().filter(|(at, _)| *at <= net.now()) {
            self.withheld.remove(&(at, side));
            self.fill_receives(hosts, side);
            let host = self.sides[side].host;
            hosts[usize::from(host.0)].poke(net, host);
        }
    }

    /// Brings a side's queue pair into the error state, as a connection manager does that hears of the other side's end.
    fn take_down(&mut self, net: &mut Net, hosts: &mut [Host], place: usize) {
        let side = &mut self.sides[place];
        let Side { host, qpn, .. } = *side;
        (side.failed, side.taken_down) = (true, true);
        let number = usize::from(host.0);
        let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
        hosts[number].engine.modify_qp(net.now(), qpn, &fail).expect("any queue pair may fail");
        while let Some(completion) = hosts[number].engine.poll_completion() {
            self.completed(net, hosts, host, &completion);
        }
        hosts[number].poke(net, host);
    }

    fn fill_receives(&mut self, hosts: &mut [Host], place: usize) {
        let wanted = self.receives;
        let host = usize::from(self.sides[place].host.0);
        if let Some(shared) = self.shared.get_mut(host) {
            while shared.posted - (shared.ended.len() as u64) < wanted {
                let id = ((SHARED + host) as u64) << 32 | RECEIVE | shared.posted;
                let request = RecvRequest { id, address: 0, length: 1 << 20, lkey: 0 };
                let target = RecvTarget::Srq(shared.srq, Pd::default());
                hosts[host].engine.post_recv(target, request).expect("the queue is there");
                shared.posted += 1;
            }
            return;
        }
        let side = &mut self.sides[place];
        while !side.failed && side.receives_posted - (side.received.len() as u64) < wanted {
            let id = (place as u64) << 32 | RECEIVE | side.receives_posted;
            let request = RecvRequest { id, address: 0, length: 1 << 20, lkey: 0 };
            let engine = &mut hosts[usize::from(side.host.0)].engine;
            engine.post_recv(side.qpn, request).expect("the queue pair is connected");
            side.receives_posted += 1;
        }
    }

    /// Posts until as many are outstanding as may be.
    fn post(&mut self, now: Instant, hosts: &mut [Host], place: usize) {
        let peer = self.sides[self.sides[place].peer].host;
        let rkey = self.keys[usize::from(peer.0)];
        let depth = self.depth;
        let side = &mut self.sides[place];
        let done = side.sent.last().map_or(0, |last| number_of(last) + 1);
        while !side.failed && side.posted < side.messages.len() && side.posted - done < depth {
            let Message { action, length, signaled, fence } = side.messages[side.posted];
            let operation = match action {
                Action::Send(tail) => Operation::Send(tail),
                Action::Write(tail) => Operation::Write { va: 1 << 20, rkey, tail },
                Action::Read => Operation::Read { va: 1 << 20, rkey },
                Action::FetchAdd => Operation::FetchAdd { va: SUM, rkey, add: 1 },
                Action::CompareSwap { compare, swap, .. } => {
                    Operation::CompareSwap { va: word_of(place), rkey, compare, swap }
                }
            };
            let id = (place as u64) << 32 | side.posted as u64;
            let request =
                SendRequest { id, operation, length, address: 0, lkey: 0, solicited: false, signaled, fence };
            let engine = &mut hosts[usize::from(side.host.0)].engine;
            engine.post_send(now, side.qpn, &request).expect("the queue pair is connected");
            side.posted += 1;
        }
    }
}

impl Application for Load {
    fn completed(&mut self, net: &mut Net, hosts: &mut [Host], host: HostId, completion: &Completion) {
        let mut place = (completion.id >> 32) as usize;
        if place == DATAGRAMS {
            if completion.id & RECEIVE == 0 {
                self.datagrams.sent.push(*completion);
            } else {
                self.datagrams.received.push((usize::from(host.0), *completion));
            }
            return;
        }
        if let Some(of_host) = place.checked_sub(SHARED) {
            assert_eq!(of_host, usize::from(host.0), "a completion where it was posted");
            let again = !self.shared[of_host].ended.insert(number_of(completion));
            assert!(!again, "a receive request of a shared queue ended twice: {completion:?}");
            let of_side = |side: &Side| (side.host, side.qpn) == (host, completion.qpn);
            place = self.sides.iter().position(of_side).expect("a queue pair of the host");
        }
        let side = &mut self.sides[place];
        assert_eq!((side.host, side.qpn), (host, completion.qpn), "a completion where it was posted");
        if completion.status != Status::Success && !side.failed {
            side.failed = true;
            // A responder keeps the receive request of a SEND that has begun for as long as its queue pair lives (IBTA
            // Vol 1 §9.9.3): where it is a shared one, the others wait for it until somebody ends the connection.
            if !self.shared.is_empty() {
                let delay = Span::from_ps(self.random.below(500_000_000));
                self.departing.insert((net.now() + delay, self.sides[place].peer));
            }
        }
        let side = &mut self.sides[place];
        if completion.id & RECEIVE == 0 {
            side.sent.push(*completion);
            self.post(net.now(), hosts, place);
            return;
        }
        side.received.push(*completion);
        if self.late && self.random.chance(Ratio::new(1, 10)) {
            let delay = Span::from_ps(self.random.below(100_000_000));
            self.withheld.insert((net.now() + delay, place));
        } else if !self.withheld.iter().any(|&(_, withheld)| withheld == place) {
            self.fill_receives(hosts, place);
        }
    }
}

fn host_id(host: usize) -> HostId {
    HostId(u16::try_from(host).expect("few hosts"))
}

/// The number of a request among those of its side and kind.
pub(crate) fn number_of(completion: &Completion) -> usize {
    (completion.id & (RECEIVE - 1)) as usize
}

const LATE_STREAM: u64 = 2;
