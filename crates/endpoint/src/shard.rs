//! One shard: an engine, its packet I/O, and what its queue pairs refer to. Whoever holds its lock runs to completion.
//!
//! `receive` and `transmit` are its two directions; here stands what they share.

use crate::clock::{self, Clock};
use crate::company::Company;
use crate::completion::CqInner;
use crate::counters::Tally;
use crate::event::{Event, EventQueue};
use crate::habit::Habit;
use crate::icrc::{Flow, Solver};
use crate::io::{Batch, PacketIo};
use crate::memory::region::Memory;
use crate::numbers::{Numbers, inner, place_of};
use crate::paths::{Paths, class_of};
use crate::receive::Unplaced;
use crate::table::{Change, Table};
use crate::telemetry::{Rates, Telemetry};
use crate::work::{Payload, WorkCompletion};
use crate::works::{Owner, Works};
use roci_control::{Law, program};
use roci_transport::{
    Access, Completion, CompletionKind, Deferral, Engine, MemoryOperation, Pd, Reaction, Resolution, Segment,
    SendRequest, Srq, Status, Tail, Transition,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::Layout;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shard counted that no queue pair knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Packets sent.
    pub sent: u64,
    /// Packets that the operating system did not take.
    pub unsent: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Runs that arrived: with receive offload, several packets each.
    pub runs: u64,
    /// Packets that are no RoCEv2 packets.
    pub malformed: u64,
    /// Packets whose ICRC was wrong.
    pub corrupt: u64,
    /// Packets for queue pairs that do not exist.
    pub stray: u64,
    /// Packets that the transport refused, duplicates included; [`Device::refused`](crate::Device::refused) says why.
    pub refused: u64,
    /// Packets that the operating system dropped because they were not received fast enough.
    pub overflowed: u64,
    /// CNPs that were to be sent.
    pub cnps: u64,
    /// Acknowledgements that brought telemetry of switches.
    pub told: u64,
    /// Packets whose telemetry was left alone, as other hops told than rates were said for ([`hop_rates`](crate::DeviceConfig::hop_rates)).
    pub unrated: u64,
    /// How often a port had sent, twice in a row over 32 KiB, over a quarter more than the rate lets through that was said for it (`hop_rates`).
    pub beyond: u64,
    /// How often a port had sent, 64 times in a row over 32 KiB, over a quarter less than the rate lets through that was said for it, while packets waited.
    pub short: u64,
}

impl IoCounters {
    /// What both have counted.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            sent,
            unsent,
            received,
            runs,
            malformed,
            corrupt,
            stray,
            refused,
            overflowed,
            cnps,
            told,
            unrated,
            beyond,
            short,
        } = other;
        self.sent += sent;
        self.unsent += unsent;
        self.received += received;
        self.runs += runs;
        self.malformed += malformed;
        self.corrupt += corrupt;
        self.stray += stray;
        self.refused += refused;
        self.overflowed += overflowed;
        self.cnps += cnps;
        self.told += told;
        self.unrated += unrated;
        self.beyond += beyond;
        self.short += short;
    }
}

/// What the shard knows of a queue pair beside the engine.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) qpn: Qpn,
    pub(crate) pd: Pd,
    pub(crate) send_cq: Arc<CqInner>,
    pub(crate) recv_cq: Arc<CqInner>,
    pub(crate) layout: Layout,
    /// Its peer's path, whose address is kept.
    pub(crate) peer: Option<u64>,
    /// The code point of that path from the next peer on, and of datagrams that say no other.
    pub(crate) dscp: u8,
    /// The class of that path as it is: what comes from the peer is taken for its.
    pub(crate) class: u64,
    /// What the peer may do to regions that allow it.
    pub(crate) rights: Access,
    /// The number of its law.
    pub(crate) law: u16,
    /// The path MTU that it was made with, which that of datagrams stays.
    pub(crate) mtu: u16,
    pub(crate) sends_left: u32,
    pub(crate) recvs_left: u32,
    /// Whether it takes its receive requests from a shared queue.
    pub(crate) shares: bool,
    /// The same while nothing is posted.
    pub(crate) room: (u32, u32),
    /// Requests that wait for one that no packet carries, which is the first of them or was.
    pub(crate) behind: VecDeque<SendRequest>,
    /// Who is to be told when it fails.
    pub(crate) watch: Option<Watch>,
    /// Octets of payload that it has sent, some of them again. The engine has no room to count them.
    pub(crate) octets: u64,
    /// What its packets have met before the engine began to count anew, or could have come round.
    pub(crate) tally: Option<Box<Tally>>,
    /// What switches have told, in the packets that come and in the answers to ours, where the layout has room for it.
    pub(crate) telemetry: Option<Box<[Telemetry; 2]>>,
}

/// Who is to be told that a queue pair has failed, and perhaps that its peer has begun.
#[derive(Debug)]
pub(crate) struct Watch {
    /// True from then on.
    pub(crate) has_failed: Arc<AtomicBool>,
    /// Where a completion that is of no request, and bears the queue pair's number, says so afterwards: flushed where it has failed, a
    /// success where the peer's first request has come.
    pub(crate) cq: Arc<CqInner>,
}

/// A queue pair whose peer's first request is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Greeting {
    pub(crate) place: u32,
    pub(crate) qpn: Qpn,
    /// The PSN that it has.
    pub(crate) first: Psn,
}

pub(crate) struct Shard {
    pub(crate) io: Box<dyn PacketIo>,
    pub(crate) core: Core,
}

/// All of a shard but its packet I/O.
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) local: IpAddr,
    /// The rates of ports of which telemetry tells none.
    pub(crate) hop_rates: Rates,
    /// The code point of packets that have room for telemetry.
    pub(crate) int_dscp: u8,
    pub(crate) numbers: Numbers,
    pub(crate) entries: Vec<Option<Entry>>,
    pub(crate) vacant: Vec<u32>,
    pub(crate) works: Works,
    /// Queue pairs with requests that wait for one that no packet carries.
    pub(crate) behind: Vec<u32>,
    /// Whether some of those have begun and want to be sent.
    pub(crate) has_begun: bool,
    pub(crate) paths: Paths,
    pub(crate) memories: HashMap<u32, Arc<Memory>>,
    /// The region that the run of packets in hand touches. It is let go before anything else that may take a region.
    /// With it, by what address its first octet is named under that key.
    pub(crate) held: Option<(u32, Arc<Memory>, u64)>,
    /// Payloads of the run in hand that wait to be put in their places.
    pub(crate) placements: Vec<Unplaced>,
    pub(crate) batch: Batch,
    /// Acknowledgements that wait for company.
    pub(crate) replies: VecDeque<Segment>,
    /// Whether one of them bears what a law has to say, and none waits any more.
    pub(crate) is_awaited: bool,
    /// CNPs and packets of laws, which wait for nothing, and whether a CNP is in the batch.
    pub(crate) urgent: Vec<Segment>,
    pub(crate) has_cnp: bool,
    pub(crate) clock: Clock,
    /// When the first of the acknowledgements that wait was made.
    pub(crate) replied_at: Instant,
    /// When the application posted something while acknowledgements waited, and not because something else had ended.
    pub(crate) answered_at: Instant,
    /// Whether the application that drives the shard will be back before they are missed.
    pub(crate) habit: Habit,
    /// Whether what is posted leaves at once.
    pub(crate) company: Company,
    /// Whether a send request has ended since the application posted something.
    pub(crate) has_ended: bool,
    /// Whether the completion of a receive has been delivered since the application drove the shard last.
    pub(crate) has_taken: bool,
    /// Octets that have arrived since acknowledgements were sent, headers included.
    pub(crate) unanswered: usize,
    /// After how many of them they are sent.
    pub(crate) reply_octets: usize,
    /// Where READs wait for others to end, since when none of them has got on, and the engine's number for that.
    pub(crate) reads_stand: Option<(u32, Instant)>,
    /// Who wants to hear of asynchronous events.
    pub(crate) events: Option<Arc<EventQueue>>,
    /// Events that wait until the completions before them have been delivered.
    pub(crate) reached: Vec<Event>,
    /// Queue pairs in SQD, whose requests that had begun have not all ended.
    pub(crate) draining: Vec<u32>,
    /// Queue pairs whose peers may know of them or not: the first request says that they do.
    pub(crate) greetings: Vec<Greeting>,
    pub(crate) reaction: Reaction,
    pub(crate) counters: IoCounters,
    /// How many packets had passed when the queue pairs' counters were added up.
    pub(crate) added_up_at: u64,
    pub(crate) solver: Solver,
    /// The flow of the packet before: most come where one came from.
    pub(crate) from: Option<(IpAddr, u64, Flow)>,
    pub(crate) to: Option<(u64, IpAddr, Flow)>,
    /// The code point of CNPs.
    pub(crate) cnp_dscp: u8,
    /// Requests that each shared receive queue can still take.
    pub(crate) shared_left: Vec<u32>,
    /// By what number each of them is known.
    pub(crate) shared_numbers: Vec<u32>,
    /// Those that are gone, whose places others may have.
    pub(crate) shared_vacant: Vec<Srq>,
    pub(crate) table: Arc<Table>,
    /// Its number there.
    pub(crate) number: usize,
}

/// An acknowledgement waits no longer for a later one of its queue pair, which makes it superfluous.
pub(crate) const REPLY_WAIT: Span = Span::from_micros(128);
/// Nor when so many octets have come since the last that was sent: half a window, so that the peer's does not shut while an
/// acknowledgement is on its way. Its window is taken to be as ours is; no less than this, as a system call costs as much.
const REPLY_OCTETS_MIN: usize = 32 << 10;
/// And no more than this, however large the window.
pub(crate) const REPLY_OCTETS_MAX: usize = 500 << 10;
/// Nor when nothing more has arrived; but for so long after the application has answered. Its peer has what it waited for then,
/// and its next message most likely comes before it would miss the acknowledgement: sent between the two, it would hold up both.
const REPLY_HELD: Span = Span::from_micros(16);

/// READs wait for others no longer than this while none of them ends and the socket is empty: those are answered slowly, and the
/// room that they take is not needed for them.
const READS_STAND: Span = Span::from_millis(1);
/// What may be read beyond the room then: a gigabyte each second.
const READS_EXTRA: u64 = 1 << 20;

impl Shard {
    /// Does all that there is to do now; whether there was anything.
    pub(crate) fn run(&mut self, now: Instant) -> bool {
        let Self { io, core } = self;
        if now >= clock::END {
            core.expire(now);
        }
        let turn = core.turn();
        let arrived = io.receive(&mut |arrived| core.arrived(now, arrived)).unwrap_or(0);
        core.counters.runs += arrived as u64;
        core.counters.overflowed = io.overflowed();
        // After what has arrived: where nobody had run the shard for long, the acknowledgement whose time is over is here.
        if core.engine.next_wakeup().is_some_and(|at| at <= now) {
            core.engine.wake(now);
        }
        core.settle(now);
        drop(turn);
        let sent = self.send(now);
        if arrived > 0 && !self.core.greetings.is_empty() {
            self.core.greet();
        }
        self.complete(now);
        self.core.mind_reads(now, arrived == 0);
        self.core.mind_counters();
        if arrived == 0 && now.since(self.core.answered_at) >= REPLY_HELD
            || self.core.unanswered >= self.core.reply_octets
            || now.since(self.core.replied_at) >= REPLY_WAIT
        {
            self.reply();
        }
        arrived > 0 || sent
    }

    /// Sends a turn of what the engine has to send; whether there was anything. What has arrived is looked at before
    /// the next one.
    pub(crate) fn send(&mut self, now: Instant) -> bool {
        let Self { io, core } = self;
        core.company.leaves();
        let _turn = core.turn();
        let before = core.batch.passed();
        core.fill(now, io.as_mut());
        core.emit(io.as_mut());
        core.batch.passed() != before
    }

    /// Sends the acknowledgements that have waited.
    pub(crate) fn reply(&mut self) {
        let Self { io, core } = self;
        if core.replies.is_empty() {
            return;
        }
        core.unanswered = 0;
        core.fill_replies(io.as_mut());
        core.emit(io.as_mut());
    }

    /// After something was posted: sends it at once, and delivers what has ended.
    pub(crate) fn push(&mut self, now: Instant) {
        self.core.settle(now);
        self.send(now);
        self.complete(now);
    }

    /// Delivers what has ended, and sends what waited for a request that no packet carries.
    #[inline]
    fn complete(&mut self, now: Instant) {
        self.core.complete();
        while std::mem::take(&mut self.core.has_begun) {
            self.core.settle(now);
            self.send(now);
            self.core.complete();
        }
    }

    /// After something was posted that waits for company: delivers what has ended all the same.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.core.settle(now);
        self.complete(now);
    }

    /// Sends what waits for company, as the application is about to wait by other means than looking.
    pub(crate) fn send_waiting(&mut self, now: Instant) {
        self.core.company.doubt();
        if self.core.company.is_there() {
            self.send(now);
        }
    }

    /// Sends what waits for company in the program's place.
    pub(crate) fn send_left(&mut self, now: Instant) {
        if self.core.company.is_there() {
            self.core.company.is_found(now);
            self.send(now);
        }
    }

    /// When the shard has to run again though nothing arrives: `now` where it has more to do.
    pub(crate) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        if self.core.engine.has_work(0xff) || !self.core.replies.is_empty() || !self.core.urgent.is_empty() {
            return Some(now);
        }
        let read = self.core.reads_stand.map_or(Instant::NEVER, |(_, since)| since + READS_STAND);
        let wakeup = self.core.engine.next_wakeup().unwrap_or(Instant::NEVER).min(read);
        (wakeup != Instant::NEVER).then_some(wakeup)
    }
}

impl Core {
    /// What each law that is a program has done, by its name, with the numbers of queue pairs that are there as the wire has them.
    pub(crate) fn programs(&mut self) -> Vec<(String, program::Tally)> {
        let mut programs = Vec::new();
        // Law 0 is none.
        for number in 1.. {
            let law = match self.engine.law_mut(number) {
                Some(Law::Program(law)) => law,
                Some(_) => continue,
                None => break,
            };
            let mut tally = law.tally().clone();
            for fault in &mut tally.faults {
                if let Some(Some(entry)) = self.entries.get(place_of(Qpn::new(fault.qpn)) as usize) {
                    fault.qpn = entry.qpn.get();
                }
            }
            programs.push((law.image().name().to_owned(), tally));
        }
        programs
    }

    /// Carries out what the engine deferred, and takes what it wants sent at once.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(deferral) = self.engine.poll_deferral() {
                let (token, resolution) = match deferral {
                    Deferral::Memory { token, operation, .. } => {
                        (token, Resolution::Memory { original: self.touch(operation) })
                    }
                    Deferral::Recovery { token, .. } => (token, Resolution::Recovered),
                    Deferral::Law { token, qpn, event } => match self.engine.evaluate(qpn, &event) {
                        Some(outcome) => (token, Resolution::Law(outcome)),
                        None => continue,
                    },
                };
                self.engine.resolve(now, token, resolution);
            } else if let Some(segment) = self.engine.poll_notice() {
                self.queue_reply(now, segment);
            } else {
                return;
            }
        }
    }

    /// Does what an atomic asks for. The engine has checked key, bounds and rights.
    fn touch(&mut self, operation: MemoryOperation) -> u64 {
        let (key, address) = match operation {
            MemoryOperation::Read { .. } => return 0,
            MemoryOperation::FetchAdd { address, key, .. }
            | MemoryOperation::CompareSwap { address, key, .. } => (key, address),
        };
        let Some((memory, offset)) = self.memory(key, address) else { return 0 };
        let change = |original: u64| match operation {
            MemoryOperation::FetchAdd { add, .. } => original.wrapping_add(add),
            MemoryOperation::CompareSwap { compare, swap, .. } if original == compare => swap,
            _ => original,
        };
        // SAFETY: it is held.
        #[expect(unsafe_code, reason = "see above")]
        let original = unsafe { memory.update_held(offset, change) };
        self.let_go();
        original
    }

    /// The region with `key`, held, and where in it `address` is. [`let_go`](Self::let_go) ends the holding.
    #[inline]
    pub(crate) fn memory(&mut self, key: u32, address: u64) -> Option<(&Memory, usize)> {
        if self.held.as_ref().is_none_or(|(held, ..)| *held != key) {
            self.let_go();
            let (memory, first) = match self.memories.get(&key) {
                Some(memory) => (memory.clone(), memory.address()),
                None => self.behind_window(key)?,
            };
            memory.hold();
            self.held = Some((key, memory, first));
        }
        let (_, memory, first) = self.held.as_ref()?;
        let offset = usize::try_from(address.wrapping_sub(*first)).ok()?;
        Some((memory, offset))
    }

    /// The region that a window's key leads to, and by what address its first octet is named there, which may lie before zero.
    #[cold]
    fn behind_window(&self, key: u32) -> Option<(Arc<Memory>, u64)> {
        let (region, shift) = self.engine.regions().behind_window(key)?;
        let memory = self.memories.get(&region)?.clone();
        let first = memory.address().wrapping_sub(shift);
        Some((memory, first))
    }

    /// Lets others touch the region that was held.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        if let Some((_, memory, _)) = self.held.take() {
            memory.let_go();
        }
    }

    /// Delivers the ends of work requests to their completion queues, and the failures of queue pairs to who watches them: those
    /// first, so that they are known to whoever polls what they have ended.
    pub(crate) fn complete(&mut self) {
        self.deliver();
        while !self.behind.is_empty() && self.go_on() {
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        self.meet_with_all();
        while let Some(mut completion) = self.engine.poll_completion() {
            let Some(work) = self.works.remove(completion.id) else { continue };
            let place = place_of(completion.qpn);
            self.returned(work.owner);
            if work.is_void && completion.status == Status::Success && matches!(work.owner, Owner::Send(_)) {
                completion.status = Status::LocalProtectionError;
                self.fail(self.clock.now(), place);
                self.meet_with_all();
            }
            let Some(Some(entry)) = self.entries.get(place as usize) else { continue };
            let sent = matches!(work.owner, Owner::Send(_));
            if let Tail::Invalidate(key) = completion.tail
                && self.table.shards() > 1
                && self.engine.regions().behind_window(key).is_none()
            {
                self.table.tell_others(self.number, Change::Invalidate(entry.pd, key));
            }
            if completion.status == Status::Success && !work.signaled {
                continue;
            }
            let Completion { kind, status, length, tail, solicited, original, source, .. } = completion;
            let atomic = matches!(kind, CompletionKind::FetchAdd | CompletionKind::CompareSwap);
            if atomic && let Payload::Buffer(buffer) = &work.payload {
                buffer.place(0, &original.to_ne_bytes());
            }
            let source = source.and_then(|(path, qpn)| Some((self.paths.address(path)?, qpn)));
            let done = WorkCompletion {
                wr_id: work.id,
                qp_num: entry.qpn,
                status,
                opcode: kind,
                byte_len: length,
                tail,
                solicited,
                original,
                source,
                payload: work.payload,
                time_ns: 0,
            };
            self.has_ended |= sent;
            self.has_taken |= !sent;
            let cq = if sent { &entry.send_cq } else { &entry.recv_cq };
            cq.push(done);
        }
        if !self.reached.is_empty() || !self.draining.is_empty() {
            self.tell_events();
        }
    }

    #[inline]
    pub(crate) fn meet_with_all(&mut self) {
        while let Some(incident) = self.engine.poll_incident() {
            self.meet_with(incident);
        }
    }

    /// Tells who watches the queue pair that it has failed, once.
    #[cold]
    pub(crate) fn tell_failure(&mut self, place: u32) {
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else { return };
        let Some(Watch { has_failed, cq }) = entry.watch.take() else { return };
        has_failed.store(true, Ordering::SeqCst);
        cq.push(word_of(entry.qpn, Status::WorkRequestFlushed));
    }

    /// Tells who watches them of queue pairs whose peer's first request has come.
    #[cold]
    fn greet(&mut self) {
        let (engine, entries) = (&self.engine, &self.entries);
        self.greetings.retain(|greeting| {
            let status = engine.query(inner(greeting.place));
            let Some((Some(entry), status)) = entries.get(greeting.place as usize).zip(status.ok()) else {
                return false;
            };
            if status.state.receives() && status.receive_psn == greeting.first {
                return true;
            }
            // One that has failed by it tells of that.
            if let Some(watch) = entry.watch.as_ref().filter(|_| status.state.receives()) {
                watch.cq.push(word_of(entry.qpn, Status::Success));
            }
            false
        });
    }

    /// The first request of a queue pair's peer is waited for no longer.
    pub(crate) fn forget_greeting(&mut self, qpn: Qpn) {
        self.greetings.retain(|greeting| greeting.qpn != qpn);
    }

    /// There is no time left: ends all queue pairs with errors, where they would wait for ever.
    #[cold]
    fn expire(&mut self, now: Instant) {
        if let Some(events) = &self.events {
            events.end();
        }
        let fail = roci_transport::Change { transition: Some(Transition::Fail), ..Default::default() };
        for place in 0..self.entries.len() {
            if self.entries[place].is_some() {
                // One that has failed before is as it should be.
                let _ = self.engine.modify_qp(now, inner(u32::try_from(place).unwrap_or(u32::MAX)), &fail);
            }
        }
    }

    /// Counts a request that has ended as room in its queue.
    pub(crate) fn returned(&mut self, owner: Owner) {
        let (place, sent) = match owner {
            Owner::Send(place) => (place, true),
            Owner::Recv(place) => (place, false),
            Owner::Shared(srq) => return self.shared_left[srq as usize] += 1,
        };
        if let Some(Some(entry)) = self.entries.get_mut(place as usize) {
            let left = if sent { &mut entry.sends_left } else { &mut entry.recvs_left };
            *left += 1;
        }
    }

    /// A queue pair with this window has been made: acknowledgements are sent as the smallest needs it, and
    /// READs bounded as the largest does.
    pub(crate) fn mind_window(&mut self, window: u32) {
        let half = usize::try_from(window / 2).unwrap_or(usize::MAX);
        self.reply_octets = self.reply_octets.min(half.max(REPLY_OCTETS_MIN));
        self.engine.widen_reads(window.into());
    }

    /// Lets READs that wait for others go on where these are answered slowly and the socket `is_empty`.
    fn mind_reads(&mut self, now: Instant, is_empty: bool) {
        match (self.engine.reads_wait(), self.reads_stand) {
            (None, _) => self.reads_stand = None,
            (Some(turns), Some((seen, since))) if turns == seen => {
                if is_empty && now.since(since) >= READS_STAND {
                    self.engine.let_reads(READS_EXTRA);
                }
            }
            (Some(turns), _) => self.reads_stand = Some((turns, now)),
        }
    }

    /// Makes room for a queue pair; gives its place.
    pub(crate) fn vacancy(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// A queue pair has this peer from now on, or none.
    pub(crate) fn meet(&mut self, place: u32, peer: Option<u64>) {
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else { return };
        // First the new one, which may be the old one.
        peer.inspect(|path| self.paths.keep(*path));
        entry.class = peer.map_or(0, class_of);
        if let Some(path) = std::mem::replace(&mut entry.peer, peer) {
            self.paths.release(path);
        }
        // It may bear a number by which the peer was met as a guest.
        self.from = None;
    }

    /// Ends a queue pair and gives back what its requests lent.
    pub(crate) fn destroy(&mut self, now: Instant, place: u32) {
        self.abandon(now, place);
        self.meet(place, None);
        let _ = self.engine.destroy_qp(inner(place));
        if let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::take) {
            if let Some(events) = &self.events {
                events.forget(|event| event.qp_num() == Some(entry.qpn));
            }
            self.forget_greeting(entry.qpn);
            self.numbers.remove(entry.qpn);
            self.vacant.push(place);
        }
    }

    /// Moves a queue pair to the error state.
    pub(crate) fn fail(&mut self, now: Instant, place: u32) {
        let fail = roci_transport::Change { transition: Some(Transition::Fail), ..Default::default() };
        // One that has failed before has flushed everything, and one in RESET has nothing.
        let _ = self.engine.modify_qp(now, inner(place), &fail);
    }

    /// Gives back what the requests of a queue pair have lent, without completions; what a message has taken from a
    /// shared receive queue is among them, so the engine is asked to flush.
    pub(crate) fn abandon(&mut self, now: Instant, place: u32) {
        self.complete();
        self.fail(now, place);
        // That is its end, or it begins anew: it has not failed.
        while self.engine.poll_incident().is_some() {}
        while let Some(flushed) = self.engine.poll_completion() {
            let Some(work) = self.works.remove(flushed.id) else { continue };
            self.returned(work.owner);
        }
        // Most often that was all, and all requests of the shard need not be looked at.
        if let Some(Some(entry)) = self.entries.get_mut(place as usize)
            && (entry.sends_left, entry.recvs_left) != entry.room
        {
            (entry.sends_left, entry.recvs_left) = entry.room;
            entry.behind.clear();
            self.behind.retain(|other| *other != place);
            self.works.remove_of(|owner| owner == Owner::Send(place) || owner == Owner::Recv(place));
        }
    }
}

/// What is told of a queue pair as a whole to who watches it.
fn word_of(qp_num: Qpn, status: Status) -> WorkCompletion {
    WorkCompletion {
        wr_id: 0,
        qp_num,
        status,
        opcode: CompletionKind::Send,
        byte_len: 0,
        tail: Tail::Plain,
        solicited: false,
        original: 0,
        source: None,
        payload: Payload::None,
        time_ns: 0,
    }
}
