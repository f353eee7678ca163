//! A test between two ends that have met: what stands behind it, and who says what when.

use super::channel::{Channel, News};
use super::handshake::Key;
use super::meeting::{elsewhere, otherwise};
use super::report::{Bandwidth, Row};
use super::{
    Connection, Counted, Event, Metric, Options, PATIENCE, PerfError, Verb, Watch, bandwidth, latency, reason,
};
use crate::completion::CompletionQueue;
use crate::device::{Device, Mtu, ProtectionDomain};
use crate::memory::{MemoryRegion, RemoteMemory, Slice};
use crate::queue_pair::{QpInfo, QueuePair, QueuePairBuilder};
use crate::shard::IoCounters;
use crate::work::INLINE_MAX;
use roci_control::Credit;
use roci_transport::{Access, Change, Service, Status, Transition};
use roci_units::Instant;
use std::cell::Cell;
use std::net::IpAddr;
use std::time::Duration;

/// Octets of memory for messages that come in, at most, unless few messages are longer.
const ROOM: usize = 64 << 20;
/// Octets in flight, of all queue pairs: what a receiver's socket holds.
pub(super) const FLIGHT: u32 = 1 << 20;
/// And packets: half of what queues of Linux take (`txqueuelen`, `netdev_max_backlog`).
const FLIGHT_PACKETS: u32 = 512;
/// The window of each is no less than this part of that, however many they are: four turns. Where the last packet of one is lost, what
/// comes in the next shows it, and no timeout is waited for.
const WINDOW_PART: u32 = 4;
/// Requests that a queue pair takes at least: an answer may come before the acknowledgement of what it answers.
pub(super) const SENDS_MIN: u32 = 64;
/// How much longer than the retry time a server may take to say that it has heard of the end.
const ANSWER: Duration = Duration::from_secs(5);
/// So often at most it is looked whether more messages come, after the test.
const SETTLES: u32 = 100;
/// perftest writes around in so many octets where messages are shorter.
pub(super) const CYCLE: usize = 4096;

/// So many queue pairs are asked whether the peer answers: their packets go one way.
const HEARD: usize = 16;
/// After so long without an answer the path may be cut.
const SILENT: Duration = Duration::from_secs(1);

/// A device with what a test needs on it.
pub(super) struct Place<'a> {
    pub(super) options: &'a Options,
    pub(super) mtu: Mtu,
    pub(super) device: Device,
    pub(super) pd: ProtectionDomain,
    pub(super) cq: CompletionQueue,
    /// What the peer reads and writes, a stride for each queue pair.
    pub(super) open: MemoryRegion,
    /// What is sent.
    source: MemoryRegion,
    /// Where messages come in.
    pub(super) room: MemoryRegion,
}

impl<'a> Place<'a> {
    pub(super) fn new(device: &Device, options: &'a Options, mtu: Mtu) -> Result<Self, PerfError> {
        if shares_flight(options) {
            device.bound_flight(flight_packets(mtu));
        }
        let pd = device.alloc_pd();
        let cq = device.create_cq()?;
        let pairs = usize::from(options.queue_pairs);
        let largest = largest(options);
        let rights = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let open = pd.reg_mr(vec![0; stride(options) * pairs], rights)?;
        let pattern = (0..largest).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        let source = pd.reg_mr(pattern, Access::LOCAL_WRITE)?;
        let room = pd.reg_mr(vec![0; room(options)], Access::LOCAL_WRITE)?;
        Ok(Self { options, mtu, device: device.clone(), pd, cq, open, source, room })
    }

    /// A queue pair for the data.
    fn builder(&self) -> QueuePairBuilder {
        let options = self.options;
        let builder = self.pd.create_qp(&self.cq, &self.cq);
        let builder = if options.is_unreliable() { builder.unreliable() } else { builder };
        builder
            .path_mtu(self.mtu)
            .timeout(options.qp_timeout)
            .retry_cnt(options.retry_count)
            .max_send_wr(options.tx_depth.max(SENDS_MIN))
            .max_recv_wr(options.rx_depth)
            .max_dest_rd_atomic(options.outstanding_reads)
            .window(options.window.unwrap_or_else(|| shared_window(options.queue_pairs, self.mtu)))
            .lone_writes(options.lone_writes)
            .recovery(options.recovery, options.layout())
    }

    pub(super) fn queue_pairs(&self) -> Result<Vec<QueuePair>, PerfError> {
        Ok((0..self.options.queue_pairs).map(|_| self.builder().build()).collect::<Result<Vec<_>, _>>()?)
    }

    pub(super) fn keys(&self, qps: &[QueuePair]) -> Vec<Key> {
        qps.iter().enumerate().map(|(index, qp)| self.key(index, qp)).collect()
    }

    /// What the peer has to know of the queue pair.
    fn key(&self, index: usize, qp: &QueuePair) -> Key {
        let QpInfo { address, qpn, psn } = qp.info();
        let memory = self.open.remote().plus((index * stride(self.options)) as u64);
        let gid = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let is_read = matches!(self.options.test.verb, Verb::Read | Verb::Atomic { .. });
        let out_reads = if is_read { u32::from(self.options.outstanding_reads) } else { 1 };
        let rkey = if self.options.test.verb == Verb::Send { 0 } else { memory.rkey };
        Key { out_reads, qpn, psn, rkey, address: memory.address, gid }
    }

    /// Connects a queue pair to the peer's.
    pub(super) fn connect(&self, qp: &QueuePair, key: &Key) -> Result<(), PerfError> {
        let address = key.peer();
        if address.is_ipv4() != self.device.address().is_ipv4() {
            return Err(elsewhere(address, self.device.address()));
        }
        let reads = u8::try_from(key.out_reads).unwrap_or(u8::MAX).clamp(1, self.options.outstanding_reads);
        let reads = (self.options.service == Service::Rc).then_some(reads);
        let change = Change { max_rd_atomic: reads, ..Change::default() };
        qp.ready_to_receive(QpInfo { address, qpn: key.qpn, psn: key.psn }, &change)?;
        qp.modify(&Change { transition: Some(Transition::Send), ..Change::default() })?;
        Ok(())
    }

    /// `size` octets to send.
    pub(super) fn message(&self, size: usize) -> Result<Slice, PerfError> {
        Ok(self.source.slice(0..size)?)
    }
}

/// Whether all queue pairs share what may be in flight. The window of one is that bound.
pub(super) fn shares_flight(options: &Options) -> bool {
    options.window.is_none() && options.queue_pairs > 1 && !options.is_unreliable()
}

/// Packets in flight, of all queue pairs.
fn flight_packets(mtu: Mtu) -> u32 {
    FLIGHT_PACKETS.min(FLIGHT / u32::from(mtu.octets()))
}

/// The window of each of so many queue pairs that share what may be in flight.
fn shared_window(queue_pairs: u16, mtu: Mtu) -> u32 {
    flight_packets(mtu) / u32::from(queue_pairs).clamp(1, WINDOW_PART) * u32::from(mtu.octets())
}

/// The longest message that will be moved.
fn largest(options: &Options) -> usize {
    let size = if options.all_sizes { 1 << 23 } else { options.size };
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Octets for messages that come in.
fn room(options: &Options) -> usize {
    let (pairs, largest) = (usize::from(options.queue_pairs), largest(options));
    let depth = usize::try_from(options.rx_depth.max(options.tx_depth)).unwrap_or(1);
    (pairs * largest * depth).min(ROOM.max(pairs * largest * 2))
}

/// Octets of all memory that a place registers.
pub(super) fn memory(options: &Options) -> usize {
    stride(options) * usize::from(options.queue_pairs) + largest(options) + room(options)
}

/// Octets between the places of two queue pairs.
fn stride(options: &Options) -> usize {
    largest(options).max(CYCLE).next_multiple_of(64)
}

/// Two ends that are connected.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) watch: &'a dyn Watch,
    /// Before the memory, which is dropped after them: else a peer in the middle of a test would hear of a wrong key and not
    /// that nobody is there.
    pub(super) qps: Vec<QueuePair>,
    pub(super) place: Place<'a>,
    pub(super) connection: Connection,
    pub(super) channel: &'a mut dyn Channel,
    /// Messages sent, of all sizes.
    pub(super) sent: u64,
    /// Of those, what the peer has taken, where it says so.
    pub(super) arrived: Option<u64>,
    /// How many packets of ours had been acknowledged as that was looked at last, and since when it has been so many.
    pub(super) heard: Cell<(u64, Option<Instant>)>,
    /// Whether it was told that telemetry is left alone.
    pub(super) is_unrated: Cell<bool>,
    /// Whether it was told that a port sends more than its rate lets through.
    pub(super) is_beyond: Cell<bool>,
    /// Whether it was told that a port sends less while packets wait.
    pub(super) is_short: Cell<bool>,
}

impl Session<'_> {
    pub(super) fn is_client(&self) -> bool {
        self.channel.is_client()
    }

    /// Where the peer of a queue pair keeps its memory.
    pub(super) fn target(&self, index: usize) -> RemoteMemory {
        let key = &self.connection.remote[index];
        RemoteMemory { address: key.address, rkey: key.rkey }
    }

    /// The most octets of a message that are copied when it is posted.
    pub(super) fn inline_max(&self) -> usize {
        match self.options.inline {
            Some(most) => most as usize,
            None if self.options.test.metric == Metric::Latency => INLINE_MAX,
            None => 0,
        }
    }

    pub(super) fn progress(&self, done: u64, total: u64) {
        self.listen();
        self.watch.event(Event::Progress { done, total });
        let told = [&self.is_unrated, &self.is_beyond, &self.is_short];
        if !self.options.has_telemetry() || told.into_iter().all(Cell::get) {
            return;
        }
        let IoCounters { unrated, beyond, short, .. } = self.place.device.counters();
        if self.options.hop_rates.len() > 1 && unrated > 0 && !self.is_unrated.replace(true) {
            self.watch.event(Event::Unrated);
        }
        if beyond > 0 && !self.is_beyond.replace(true) {
            self.watch.event(Event::Beyond);
        }
        if short > 0 && !self.is_short.replace(true) {
            self.watch.event(Event::Short);
        }
    }

    /// Looks whether the peer has acknowledged anything; a few of the queue pairs tell it of all, which go one way.
    fn listen(&self) {
        let acknowledged = self.qps.iter().take(HEARD).map(|qp| qp.counters().acknowledged).sum();
        if self.heard.get().1.is_none() || self.heard.get().0 != acknowledged {
            self.heard.set((acknowledged, Some(self.now())));
        }
    }

    /// That nothing has been acknowledged for long, as far as that was looked at; and whether something is under way that should be.
    fn silence(&self) -> Option<(PerfError, bool)> {
        self.listen();
        let silent = Duration::from_nanos(self.now().since(self.heard.get().1?).as_ps() / 1_000);
        let is_under_way = |qp: &QueuePair| qp.query().is_ok_and(|status| status.in_flight > 0);
        let is_waiting = self.qps.iter().take(HEARD).any(is_under_way);
        let (after, tries) = (self.options.given_up_after(), self.options.tries());
        (silent >= SILENT).then_some((PerfError::Cut { silent, is_waiting, after, tries }, is_waiting))
    }

    /// A round of keys that says only that we are here as well. The last instant at which the peer, who may begin when it is
    /// told so, has not begun.
    fn meet(&mut self) -> Result<Instant, PerfError> {
        let key = self.connection.local[0];
        if self.is_client() {
            self.channel.exchange_key(&key)?;
            return Ok(self.now());
        }
        self.channel.hear_key()?;
        let ready = self.now();
        self.channel.tell_key(&key)?;
        Ok(ready)
    }

    fn now(&self) -> Instant {
        self.place.device.inner.now()
    }

    fn row(&self, row: Row) {
        self.watch.event(Event::Row(&row));
    }

    fn sizes(&self) -> Vec<u32> {
        if self.options.all_sizes { (1..24).map(|bits| 1 << bits).collect() } else { vec![self.options.size] }
    }

    /// Measures, and tells what was counted, whatever the end.
    pub(super) fn run(&mut self) -> Result<(), PerfError> {
        let done = self.measure().map_err(|error| self.blamed(error));
        let IoCounters { overflowed, cnps: cnps_sent, told, unrated, beyond, short, .. } =
            self.place.device.counters();
        let mut counted = Counted { overflowed, cnps_sent, unrated, beyond, short, ..Counted::default() };
        for of in self.qps.iter().map(QueuePair::counters) {
            counted.packets += of.packets;
            counted.retransmitted += of.retransmitted;
            counted.timeouts += of.timeouts;
            counted.naks += of.naks;
            counted.rnr += of.rnr;
            counted.cnps += of.cnps;
            counted.ecn_marked += of.ecn_marked;
            counted.taken += of.taken;
            counted.doubled += of.doubled;
            counted.dropped += of.dropped;
        }
        let windows = self.qps.iter().filter_map(|qp| Some(qp.query().ok()?.credit.window));
        counted.law_window = windows.max().filter(|window| *window != Credit::UNLIMITED);
        counted.told = (self.options.has_telemetry() && counted.packets > 0).then_some(told);
        if self.options.is_unreliable() {
            counted.sent = self.sent;
            counted.lost =
                self.arrived.filter(|_| self.sent > 0).map(|arrived| self.sent.saturating_sub(arrived));
        }
        self.watch.event(Event::Counted(&counted));
        for (name, tally) in self.place.device.programs() {
            self.watch.event(Event::Program(&name, &tally));
        }
        done
    }

    /// A request that nobody answered failed since the peer had left, where it has; and it has not left where it took no leave, but no
    /// longer answers.
    fn blamed(&mut self, error: PerfError) -> PerfError {
        let unanswered = Status::TransportRetryCounterExceeded;
        let error = match error {
            // Had the server been there, its answer would have come: what was not acknowledged meanwhile says more.
            PerfError::Silent => {
                let waited = self.channel.acquaintance().patience.unwrap_or_default();
                let awaits = self.options.is_unreliable() && self.options.test.verb == Verb::Send;
                let silent = if awaits { PerfError::Awaits } else { PerfError::Unconfirmed };
                self.look_back().err().unwrap_or(silent(waited))
            }
            error => error,
        };
        if let (PerfError::Nothing, Some((cut, true))) = (&error, self.silence()) {
            return cut;
        }
        let is_lost = match &error {
            PerfError::Left => true,
            PerfError::Completion { status, .. } => *status == unanswered,
            _ => false,
        };
        if !is_lost {
            return error;
        }
        let is_gone = self.channel.news() == News::Gone;
        match self.channel.failure() {
            Some(failure) => still_there(failure, self.options),
            None if is_gone => PerfError::Left,
            // Of a latency's two ends one may be silent as the time ends, and that is all that is known of it.
            None if matches!(error, PerfError::Left) => self.silence().map_or(error, |(cut, _)| cut),
            None => self.unanswered(error),
        }
    }

    /// Tells a way that is closed from a peer that is gone: TCP brought the two together, and their packets go by UDP.
    fn unanswered(&self, error: PerfError) -> PerfError {
        let is_new = |qp: &QueuePair| qp.counters().acknowledged == 0;
        match error {
            // Where TCP goes and short packets do, a link on the way may still be too short for long ones.
            PerfError::Completion { qpn, .. } if self.qps.iter().all(is_new) => {
                let octets =
                    self.sizes().into_iter().max().unwrap_or(0).min(self.connection.mtu.octets().into());
                PerfError::Unanswered { qpn, octets }
            }
            error => still_there(error, self.options),
        }
    }

    /// The data, and the rounds about them.
    fn measure(&mut self) -> Result<(), PerfError> {
        match (self.options.test.metric, self.options.test.verb) {
            (Metric::Latency, Verb::Write) => {
                for size in self.sizes() {
                    let row = latency::write(self, size)?;
                    self.row(row);
                }
                // perftest's ends say nothing more. Neither is to go before the other has heard its last message.
                latency::linger(self);
                return self.tell_taken();
            }
            (Metric::Latency, Verb::Send) => {
                for size in self.sizes() {
                    let mut ping = latency::Ping::new(self, size)?;
                    self.meet()?;
                    let row = ping.run(self)?;
                    self.expect_answers();
                    self.row(row);
                }
            }
            (Metric::Latency, _) => {
                if self.is_client() {
                    for size in self.sizes() {
                        let row = latency::asked(self, size)?;
                        self.expect_answers();
                        self.row(row);
                    }
                }
            }
            (Metric::Bandwidth, Verb::Send) => self.two_sided()?,
            (Metric::Bandwidth, _) => self.one_sided()?,
        }
        self.meet()?;
        self.look_back()?;
        self.tell_taken()?;
        self.channel.finish()
    }

    /// Two ends of ours tell each other how many messages they have taken, where nothing else does.
    fn tell_taken(&mut self) -> Result<(), PerfError> {
        if !self.options.is_unreliable() || self.connection.laws.is_none() {
            return Ok(());
        }
        let taken = self.settle().to_be_bytes();
        let heard = self.channel.exchange(&taken)?;
        self.arrived = heard.first_chunk().map(|octets| u64::from_be_bytes(*octets));
        Ok(())
    }

    /// How many messages were taken, once no more come: what was said over the other way may have been faster than the last of them.
    fn settle(&self) -> u64 {
        let taken = || self.qps.iter().map(|qp| qp.counters().taken).sum();
        self.place.device.inner.hand_over();
        let mut before: u64 = taken();
        for _ in 0..SETTLES {
            std::thread::sleep(PATIENCE);
            let now = taken();
            if now == before {
                break;
            }
            before = now;
        }
        before
    }

    /// The data have been moved, and the server has only to answer from now on: it is not waited for without end, as it may have been
    /// stopped. One that sends a number of messages itself may need any time for them.
    fn expect_answers(&mut self) {
        if self.is_client() && (!self.options.bidirectional || self.options.duration.is_some()) {
            self.channel.acquaintance().patience = Some(self.options.retry_time().saturating_add(ANSWER));
        }
    }

    /// Whether a request that was under way when the time was over has failed since: the figures are then of a peer that was not
    /// there to the end. A peer whose own time is over posts no more receives, which says nothing against it.
    fn look_back(&self) -> Result<(), PerfError> {
        let mut completions = Vec::new();
        while self.place.cq.poll_into(&mut completions, 64) > 0 {}
        completions.retain(|completion| completion.status != Status::RnrRetryCounterExceeded);
        reason(&completions).map_or(Ok(()), Err)
    }

    fn two_sided(&mut self) -> Result<(), PerfError> {
        let both = self.options.bidirectional;
        let (sends, receives) = (both || self.is_client(), both || !self.is_client());
        for size in self.sizes() {
            let mut flows = bandwidth::Flows::new(self, size, sends, receives)?;
            let ready = self.meet()?;
            let row = flows.run(self, ready)?;
            self.expect_answers();
            let row = if both && self.options.duration.is_none() { self.report(&row)? } else { row };
            self.row(Row::Bandwidth(row));
            if self.options.all_sizes {
                self.meet()?;
            }
        }
        Ok(())
    }

    fn one_sided(&mut self) -> Result<(), PerfError> {
        let both = self.options.bidirectional;
        if !both && !self.is_client() {
            // The client is done when it speaks again; its last size is what it reports.
            self.meet()?;
            let row = self.tell(&Bandwidth::default())?;
            self.row(Row::Bandwidth(row.judged()?.rescaled()));
            return Ok(());
        }
        let mut last = Bandwidth::default();
        for size in self.sizes() {
            let mut flows = bandwidth::Flows::new(self, size, true, false)?;
            if both {
                self.meet()?;
            }
            last = flows.run(self, self.now())?;
            self.expect_answers();
            if both {
                if self.options.all_sizes {
                    self.meet()?;
                }
                last = self.report(&last)?;
            }
            self.row(Row::Bandwidth(last));
        }
        if !both {
            self.meet()?;
            self.look_back()?;
            self.tell(&last)?;
        }
        Ok(())
    }

    /// Tells our figures and adds the peer's to them.
    fn report(&mut self, ours: &Bandwidth) -> Result<Bandwidth, PerfError> {
        let theirs = self.tell(ours)?;
        Ok(ours.plus(&theirs.judged()?.rescaled()))
    }

    /// Tells our figures and hears the peer's: size, iterations, peak, average, million messages per second. A server of
    /// perftest has none to tell where it only listens, and tells what it finds in its memory.
    fn tell(&mut self, ours: &Bandwidth) -> Result<Bandwidth, PerfError> {
        let unit = self.options.unit();
        let words = [
            ours.size,
            ours.iterations,
            (ours.peak.unwrap_or(0.0) / unit).to_bits(),
            (ours.average / unit).to_bits(),
            (ours.messages / 1e6).to_bits(),
        ];
        let mut heard = [0; 5];
        for (word, heard) in words.iter().zip(&mut heard) {
            let octets = self.channel.exchange(&word.to_be_bytes())?;
            *heard = octets.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets));
        }
        let [size, iterations, peak, average, messages] = heard;
        let number = f64::from_bits;
        Ok(Bandwidth {
            size,
            iterations,
            // Who has not looked for one tells perftest's zero.
            peak: (peak != 0).then(|| number(peak) * unit),
            average: number(average) * unit,
            messages: number(messages) * 1e6,
        })
    }
}

/// What became of a request that was not answered though the peer has not left, as TCP would tell: it may be there and have more to do
/// than it can. RDMA-CM has nobody who takes leave for one that was killed.
fn still_there(error: PerfError, options: &Options) -> PerfError {
    match error {
        PerfError::Completion { status: Status::TransportRetryCounterExceeded, qpn } => PerfError::Late {
            qpn,
            after: options.given_up_after(),
            tries: options.tries(),
            is_there: !options.rdma_cm,
        },
        error => error,
    }
}

impl Bandwidth {
    /// Figures that a peer told; an error where it said something else in their place, such as a queue pair.
    fn judged(self) -> Result<Self, PerfError> {
        let is_one = |figure: f64| figure.is_finite() && figure >= 0.0;
        let are = [self.peak.unwrap_or(0.0), self.average, self.messages].into_iter().all(is_one);
        if are && self.size <= 1 << 31 {
            Ok(self)
        } else {
            Err(otherwise("told no result where one was due"))
        }
    }

    /// The same, whichever unit the peer told its figures in: it does not say, but messages are messages.
    fn rescaled(self) -> Self {
        let average = self.messages * self.size as f64;
        if self.average > 0.0 && average > 0.0 {
            let peak = self.peak.map(|peak| peak * (average / self.average));
            Self { peak, average, ..self }
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Test;
    use super::*;
    use roci_transport::Recovery;
    use roci_units::Qpn;

    #[test]
    fn a_peer_s_figures_are_read_whichever_unit_they_are_told_in() {
        let told = Bandwidth {
            size: 65536,
            iterations: 5000,
            peak: Some(2.5e9),
            average: 2e9,
            messages: 2e9 / 65536.0,
        };
        // Gb/s that were taken for MiB/s.
        let unit = 1_048_576.0 / 125e6;
        let taken =
            Bandwidth { peak: told.peak.map(|peak| peak * unit), average: told.average * unit, ..told };
        for told_so in [told, taken] {
            let read = told_so.judged().unwrap().rescaled();
            assert!(
                (read.peak.unwrap() / 2.5e9 - 1.0).abs() < 1e-9 && (read.average / 2e9 - 1.0).abs() < 1e-9,
                "{read:?}"
            );
        }
        assert_eq!(Bandwidth::default().judged().unwrap().rescaled(), Bandwidth::default());
    }

    #[test]
    fn the_window_of_each_of_many_queue_pairs_is_four_turns_of_what_they_share_and_that_of_one_all_of_it() {
        for (mtu, all) in [(Mtu::Mtu1024, 512 << 10), (Mtu::Mtu4096, 1 << 20)] {
            let windows = [1, 2, 4, 1000].map(|queue_pairs| shared_window(queue_pairs, mtu));
            assert_eq!(windows, [all, all / 2, all / 4, all / 4]);
        }
    }

    #[test]
    fn a_peer_that_has_not_left_and_does_not_answer_in_time_may_be_asked_for_less() {
        let test = Test { metric: Metric::Bandwidth, verb: Verb::Write };
        let why = |rdma_cm| {
            let status = Status::TransportRetryCounterExceeded;
            let error = PerfError::Completion { status, qpn: Qpn::new(7) };
            still_there(error, &Options { rdma_cm, ..Options::new(test) }).to_string()
        };
        let late = why(false);
        let parts = [
            "in time",
            "after 0.5 s",
            "-u 14, --retry_count 7",
            "-q",
            "-o",
            "0x000007",
            "has not left",
            "4791",
        ];
        assert!(parts.iter().all(|part| late.contains(part)), "{late}");
        let late = why(true);
        assert!(
            late.contains("no longer answers") && !late.contains("has not left"),
            "of RDMA-CM nobody takes leave"
        );
        let doubled = Options { recovery: Recovery::Sack, ..Options::new(test) };
        assert_eq!(doubled.given_up_after().as_secs(), 17, "the timeout doubles each time");
    }

    #[test]
    fn a_queue_pair_in_place_of_figures_is_no_result() {
        // "0000:001" and what follows it, eight octets a figure.
        let word = u64::from_be_bytes(*b"0000:001");
        let told = Bandwidth { size: word, iterations: word, ..Bandwidth::default() };
        assert!(matches!(told.judged(), Err(PerfError::Peer(_))));
        let told = Bandwidth { average: -1.0, ..Bandwidth::default() };
        assert!(matches!(told.judged(), Err(PerfError::Peer(_))));
    }
}
