//! One test from the first octet to the last: who says what when, and what stands behind it.

use super::channel::{Channel, Door, MESSAGE_MAX, Messages, News, Tcp};
use super::handshake::{Key, VERSION_LEN, judge_version, mtu_from_text, mtu_text, version};
use super::report::{Bandwidth, Row};
use super::terms::{self, Terms};
use super::{
    Connection, Counted, Event, Metric, Options, PerfError, Verb, Watch, bandwidth, latency, lobby, named,
};
use crate::addresses::{first_address, toward};
use crate::clock::Clock;
use crate::cm::{self, CmError, ConnParam, ConnectionManager, Listener};
use crate::completion::CompletionQueue;
use crate::control;
use crate::device::{Device, DeviceConfig, Mtu, Progress, ProtectionDomain};
use crate::memory::{MemoryRegion, RemoteMemory, Slice};
use crate::queue_pair::{QpInfo, QueuePair, QueuePairBuilder};
use crate::work::{INLINE_MAX, RecvWr};
use roci_control::Law;
use roci_transport::{Access, Change, Status, Transition};
use roci_units::Instant;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Octets of memory for messages that come in, at most, unless few messages are longer.
const ROOM: usize = 64 << 20;
/// Octets in flight, of all queue pairs: what a receiver's socket holds.
const FLIGHT: u32 = 1 << 20;
/// And packets: half of what queues of Linux take (`txqueuelen`, `netdev_max_backlog`).
const FLIGHT_PACKETS: u32 = 512;
/// The window of each is no less than so many packets, however many they are: it fills runs, while others wait for their turns.
const FLIGHT_MIN: u32 = 32;
/// Requests that a queue pair takes at least: an answer may come before the acknowledgement of what it answers.
pub(super) const SENDS_MIN: u32 = 64;
/// How long a test looks for what comes before it sleeps. Four tests that looked for 5 ms shared two cores less fairly than the path
/// that they had (`interop/fairness`): pacing waits for its turn on a core.
const SPIN: Duration = Duration::from_micros(100);
/// perftest writes around in so many octets where messages are shorter.
const CYCLE: usize = 4096;
/// The length of a cache line, which perftest wants to know.
const LINE: u32 = 64;

/// Runs a test to its end.
///
/// # Errors
/// [`PerfError`] says why it did not come to its end: at the latest a retry time after the peer was lost.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    options.judge()?;
    // Its device comes only once a client has come.
    control::check_variable().map_err(PerfError::Control)?;
    if options.rdma_cm { over_cm(options, watch) } else { over_tcp(options, watch) }
}

/// Two ends that know all of each other that the data need.
struct Ready<'a> {
    place: Place<'a>,
    qps: Vec<QueuePair>,
    connection: Connection,
}

impl<'a> Ready<'a> {
    fn begin(self, channel: &'a mut dyn Channel, watch: &'a dyn Watch) -> Session<'a> {
        let Self { place, qps, connection } = self;
        channel.acquaintance().patience = None;
        watch.event(Event::Connected(&connection));
        Session { options: place.options, watch, qps, place, connection, channel }
    }
}

/// What is told of somebody with whom a server has come to nothing before the test, and waits on for another.
///
/// # Errors
/// What ends the server: an error of ours, or of a client that has told a queue pair, or terms, and was given another test. It is
/// most likely the one that was meant.
fn stranger(error: PerfError, is_client: bool) -> Result<String, PerfError> {
    match error {
        PerfError::Silent => Ok("said no more".to_owned()),
        PerfError::Completion { status: Status::TransportRetryCounterExceeded, .. } => {
            Ok("answered no more".to_owned())
        }
        PerfError::Left if !is_client => Ok("left before it told a queue pair".to_owned()),
        PerfError::Peer(deed) if !is_client => Ok(deed),
        PerfError::Completion { .. } | PerfError::Refused(_) if !is_client => {
            Ok("said what cannot be heard".to_owned())
        }
        error => Err(error),
    }
}

/// With queue pairs that are told over TCP.
fn over_tcp(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    let (mut channel, ready) = match &options.host {
        Some(host) => {
            let mut channel = Tcp::connect(host, options.port, watch)?;
            let ready = introduce(&mut channel, options)?;
            (channel, ready)
        }
        None => {
            let door = Door::open(options, watch)?;
            loop {
                let (mut channel, from) = door.client()?;
                match introduce(&mut channel, options) {
                    Ok(ready) => break (channel, ready),
                    Err(error) => {
                        lobby::report(from, &stranger(error, channel.acquaintance().is_client)?, watch);
                    }
                }
            }
        }
    };
    ready.begin(&mut channel, watch).run()
}

/// All that is told over TCP before the test.
fn introduce<'a>(channel: &mut Tcp<'_>, options: &'a Options) -> Result<Ready<'a>, PerfError> {
    let address = match options.device {
        Some(address) => address,
        None => channel.local()?,
    };
    let mut device = open(address, options)?;
    let (version, mtu) = agree(channel, device.active_mtu(), options)?;

    // The client tells its first queue pair before it knows ours; by then a server can still go to another device.
    let early = if channel.is_client() { None } else { Some(channel.hear_key()?) };
    if let Some(peer) = early.map(|key| key.peer())
        && peer.is_ipv4() != device.address().is_ipv4()
    {
        if options.device.is_some() {
            return Err(elsewhere(peer, device.address()));
        }
        device = open(toward(SocketAddr::new(peer, options.port)).map_err(named)?, options)?;
    }
    let place = Place::new(&device, options, mtu)?;
    let qps = place.queue_pairs()?;
    let local = place.keys(&qps);
    let remote = acquaint(channel, options, early, &local, |remote| {
        // The rounds that follow tell keys again: an end with more queue pairs would take those for further ones.
        if (1..remote.len()).any(|index| remote[..index].iter().any(|key| key.qpn == remote[index].qpn)) {
            return Err(otherwise("told one queue pair twice"));
        }
        for (qp, key) in qps.iter().zip(remote) {
            place.connect(qp, key)?;
        }
        Ok(())
    })?;
    let connection = Connection { device: device.address(), mtu, version, local, remote };
    Ok(Ready { place, qps, connection })
}

/// With queue pairs that RDMA-CM connects. The first carries what is told, the others the data.
fn over_cm(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    let to = options.host.as_deref().map(|host| find(host, options.port)).transpose()?;
    let address = match (options.device, to) {
        (Some(address), _) => address,
        (None, Some(to)) => toward(to).map_err(named)?,
        (None, None) => first_address()?,
    };
    let device = open(address, options)?;
    let manager = ConnectionManager::new(&device)?;
    let pd = device.alloc_pd();
    let region = pd.reg_mr(vec![0; 16 * MESSAGE_MAX], Access::LOCAL_WRITE)?;
    // No READs, and as patient as the data.
    let told = ConnParam { responder_resources: 0, initiator_depth: 0, ..parameters(options, None) };
    let listener = if to.is_none() { Some(manager.listen(options.port)?) } else { None };
    let meet = |qp: &QueuePair, param: &ConnParam, peer| match (&listener, to) {
        (Some(listener), _) => accept(listener, qp, param, peer, options.patience, watch),
        (None, Some(to)) => match connect(&manager, qp, to, param, watch) {
            Err(PerfError::Connect(error)) if error.is_alone(address) => Err(PerfError::Alone(error)),
            done => done.map(Some),
        },
        (None, None) => Err(PerfError::Left),
    };
    if listener.is_some() {
        watch.event(Event::Waiting(Some(SocketAddr::new(address, options.port))));
    }
    let (mut channel, (ready, connections)) = loop {
        let cq = device.create_cq()?;
        let qp = pd.create_qp(&cq, &cq).build()?;
        for slot in 0..16 {
            qp.post_recv(RecvWr::new(region.buffer(slot * MESSAGE_MAX..(slot + 1) * MESSAGE_MAX)?))?;
        }
        let Some(control) = meet(&qp, &told, None)? else {
            if watch.stopped() {
                return Err(PerfError::Stopped);
            }
            continue;
        };
        let from = control.peer();
        let mut channel = Messages::new(control, qp, cq, to.is_some(), watch);
        if to.is_none() {
            channel.acquaintance().patience = Some(options.patience);
        }
        match introduce_by_cm(&mut channel, &device, options, |qp, param| meet(qp, param, Some(from.ip()))) {
            Ok(met) => break (channel, met),
            Err(_) if watch.stopped() => return Err(PerfError::Stopped),
            Err(error) if to.is_none() => {
                lobby::report(from, &stranger(error, channel.acquaintance().is_client)?, watch);
            }
            Err(error) => return Err(error),
        }
    };
    let mut session = ready.begin(&mut channel, watch);
    let done = session.run();
    for connection in connections {
        if to.is_some() && done.is_ok() {
            connection.wait_disconnected(Duration::from_millis(200));
        }
        connection.disconnect();
    }
    done
}

/// All that is told over a connection of RDMA-CM before the test, and those of the data.
fn introduce_by_cm<'a>(
    channel: &mut Messages<'_>,
    device: &Device,
    options: &'a Options,
    meet: impl Fn(&QueuePair, &ConnParam) -> Result<Option<cm::Connection>, PerfError>,
) -> Result<(Ready<'a>, Vec<cm::Connection>), PerfError> {
    let (version, mtu) = agree(channel, device.active_mtu(), options)?;
    let place = Place::new(device, options, mtu)?;
    channel.exchange_key(&Key::NONE)?;
    let qps = place.queue_pairs()?;
    let param = parameters(options, Some(mtu));
    let meet = |qp| meet(qp, &param)?.ok_or(PerfError::Silent);
    let connections = qps.iter().map(meet).collect::<Result<Vec<_>, _>>()?;
    channel.exchange_key(&Key::NONE)?;
    let local = place.keys(&qps);
    let remote = acquaint(channel, options, None, &local, |_| Ok(()))?;
    let connection = Connection { device: device.address(), mtu, version, local, remote };
    Ok((Ready { place, qps, connection }, connections))
}

/// What the connections of the data are to be like.
fn parameters(options: &Options, mtu: Option<Mtu>) -> ConnParam {
    let reads = matches!(options.test.verb, Verb::Read | Verb::Atomic { .. });
    let depth = if reads { options.outstanding_reads } else { 0 };
    ConnParam {
        responder_resources: depth,
        initiator_depth: depth,
        retry_count: options.retry_count,
        ack_timeout: Some(options.qp_timeout),
        path_mtu: mtu.or(options.mtu),
        ..ConnParam::default()
    }
}

fn find(host: &str, port: u16) -> Result<SocketAddr, PerfError> {
    let unreachable = |error| PerfError::Unreachable(host.to_owned(), port, error);
    let mut found = (host, port).to_socket_addrs().map_err(unreachable)?;
    found.next().ok_or_else(|| unreachable(std::io::ErrorKind::NotFound.into()))
}

/// Connects a queue pair. A server that is between two connections may reject for a while.
fn connect(
    manager: &ConnectionManager,
    qp: &QueuePair,
    to: SocketAddr,
    param: &ConnParam,
    watch: &dyn Watch,
) -> Result<cm::Connection, PerfError> {
    let mut attempts = 20;
    loop {
        let mut asked = manager.request(qp, to, param)?;
        let answer = loop {
            match asked.wait(qp, Duration::from_millis(50)) {
                Ok(Some(connection)) => return Ok(connection),
                Ok(None) if watch.stopped() => return Err(PerfError::Stopped),
                Ok(None) => {}
                Err(error) => break error,
            }
        };
        attempts -= 1;
        // Of ourselves nobody is between two connections.
        let is_between = matches!(answer, CmError::Rejected { .. }) && !answer.is_alone(manager.address());
        if attempts == 0 || !is_between {
            return Err(answer.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits for somebody to connect, or for `peer`, who is to do so within `patience`; `None` where it came to nothing after all, with
/// `qp` used up. A request that cannot be accepted, or is another's, is refused and no reason to end; while anybody may come, who
/// does so in vain is reported.
fn accept(
    listener: &Listener,
    qp: &QueuePair,
    param: &ConnParam,
    peer: Option<IpAddr>,
    patience: Duration,
    watch: &dyn Watch,
) -> Result<Option<cm::Connection>, PerfError> {
    let clock = Clock::new();
    loop {
        if let Some(request) = listener.get_request(Duration::from_millis(50))?
            && peer.is_none_or(|peer| peer == request.peer().ip())
        {
            let from = request.peer();
            let deed = match request.accept(qp, param) {
                Ok(connection) => match connection.met(&|| watch.stopped()) {
                    None if peer.is_none() && !watch.stopped() => {
                        let deed = "asked for a connection and took none";
                        lobby::report(from, deed, watch);
                        return Ok(None);
                    }
                    met => return Ok(met),
                },
                Err(error) => format!("asked for a connection that cannot be made: {error}"),
            };
            if peer.is_none() {
                lobby::report(from, &deed, watch);
            }
        }
        if watch.stopped() {
            return Err(PerfError::Stopped);
        }
        if peer.is_some() && clock.passed() >= patience {
            return Err(PerfError::Silent);
        }
    }
}

fn open(address: IpAddr, options: &Options) -> Result<Device, PerfError> {
    let progress = Progress::Thread { spin: SPIN };
    let dscp = options.tos >> 2;
    let mut config = DeviceConfig { progress, link: options.link, dscp, ..DeviceConfig::default() };
    match &options.law {
        Some(Law::None) => config.laws.clear(),
        Some(law) => config.laws = vec![law.clone()],
        None => config.laws = Law::from_settings("dcqcn", &[], options.link).into_iter().collect(),
    }
    Device::open_with(address, config).map_err(|error| PerfError::Device(address, error))
}

/// What perftest's protocol does not compare, and shows only by what is said where something else is due.
fn otherwise(what: &str) -> PerfError {
    PerfError::Peer(format!("{what}: are the test, -s or -a, -n or -D, -q, -b and -R the same at both ends?"))
}

fn elsewhere(peer: IpAddr, ours: IpAddr) -> PerfError {
    PerfError::Peer(format!("has its device at {peer}, which cannot be reached from ours at {ours}"))
}

/// What both were told, of two of ours.
fn compare(channel: &mut dyn Channel, options: &Options) -> Result<(), PerfError> {
    let ours = Terms::of(options);
    let heard = channel.exchange(&ours.to_octets())?;
    let theirs = Terms::from_octets(&heard)
        .ok_or_else(|| PerfError::Peer("told no terms of a test that we know".to_owned()))?;
    let (client, server) = if channel.is_client() { (ours, theirs) } else { (theirs, ours) };
    let judged = Terms::compare(&client, &server);
    if judged.is_err() && !channel.is_client() {
        // What a server tells by RDMA-CM would be lost if it went before its client had it.
        let mut patience = 100;
        while patience > 0 && channel.news() != News::Gone {
            patience -= 1;
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    judged
}

/// Versions, what both were told, page and line sizes, and the smaller MTU.
fn agree(channel: &mut dyn Channel, active: Mtu, options: &Options) -> Result<(String, Mtu), PerfError> {
    let mut said = version();
    terms::mark(&mut said);
    let heard = channel.exchange(&said)?;
    debug_assert_eq!(heard.len(), VERSION_LEN);
    let peer = judge_version(&heard).map_err(|version| match version.is_empty() {
        true => PerfError::Peer("said nothing where its version was due".to_owned()),
        false => PerfError::Peer(format!("is of version {version:?}; 5.70 and newer are understood")),
    })?;
    if terms::is_marked(&heard) {
        compare(channel, options)?;
    }
    channel.exchange(&u32::try_from(CYCLE).unwrap_or(4096).to_be_bytes())?;
    channel.exchange(&LINE.to_be_bytes())?;
    let ours = match options.mtu {
        Some(mtu) if mtu > active => {
            let (mtu, active) = (mtu.octets(), active.octets());
            return Err(PerfError::Options(format!("the link takes no MTU of {mtu}, at most {active}")));
        }
        mtu => mtu.unwrap_or(active),
    };
    let heard = channel.exchange(&mtu_text(ours))?;
    let theirs = mtu_from_text(&heard).ok_or_else(|| PerfError::Peer("told no MTU".to_owned()))?;
    Ok((peer, ours.min(theirs)))
}

/// The rounds of keys before the data, and the connecting between them. The order is that of each of perftest's
/// programs; every key that is heard stands for the queue pair whose turn it is.
fn acquaint(
    channel: &mut dyn Channel,
    options: &Options,
    mut early: Option<Key>,
    local: &[Key],
    connect: impl FnOnce(&[Key]) -> Result<(), PerfError>,
) -> Result<Vec<Key>, PerfError> {
    let mut exchange = |channel: &mut dyn Channel, key: &Key| match early.take() {
        Some(heard) => channel.tell_key(key).map(|()| heard),
        None => channel.exchange_key(key),
    };
    let two_sided = options.test.verb == Verb::Send;
    if options.test.metric == Metric::Latency && !two_sided {
        exchange(channel, &local[0])?;
    }
    let remote = local.iter().map(|key| exchange(channel, key)).collect::<Result<Vec<_>, _>>()?;
    connect(&remote)?;
    if two_sided {
        exchange(channel, &local[0])?;
    }
    for key in local {
        exchange(channel, key)?;
    }
    if !two_sided {
        exchange(channel, &local[0])?;
    }
    Ok(remote)
}

/// A device with what a test needs on it.
pub(super) struct Place<'a> {
    options: &'a Options,
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
        // The window of one is that bound.
        if options.window.is_none() && options.queue_pairs > 1 {
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
        let depth = usize::try_from(options.rx_depth.max(options.tx_depth)).unwrap_or(1);
        let room = (pairs * largest * depth).min(ROOM.max(pairs * largest * 2));
        let room = pd.reg_mr(vec![0; room], Access::LOCAL_WRITE)?;
        Ok(Self { options, mtu, device: device.clone(), pd, cq, open, source, room })
    }

    /// A queue pair for the data.
    fn builder(&self) -> QueuePairBuilder {
        let options = self.options;
        let mtu = u32::from(self.mtu.octets());
        let shared = (flight_packets(self.mtu) / u32::from(options.queue_pairs)).max(FLIGHT_MIN) * mtu;
        self.pd
            .create_qp(&self.cq, &self.cq)
            .path_mtu(self.mtu)
            .timeout(options.qp_timeout)
            .retry_cnt(options.retry_count)
            .max_send_wr(options.tx_depth.max(SENDS_MIN))
            .max_recv_wr(options.rx_depth)
            .max_dest_rd_atomic(options.outstanding_reads)
            .window(options.window.unwrap_or(shared))
            .lone_writes(options.lone_writes)
    }

    fn queue_pairs(&self) -> Result<Vec<QueuePair>, PerfError> {
        Ok((0..self.options.queue_pairs).map(|_| self.builder().build()).collect::<Result<Vec<_>, _>>()?)
    }

    fn keys(&self, qps: &[QueuePair]) -> Vec<Key> {
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
    fn connect(&self, qp: &QueuePair, key: &Key) -> Result<(), PerfError> {
        let address = key.peer();
        if address.is_ipv4() != self.device.address().is_ipv4() {
            return Err(elsewhere(address, self.device.address()));
        }
        let reads = u8::try_from(key.out_reads).unwrap_or(u8::MAX).clamp(1, self.options.outstanding_reads);
        let change = Change { max_rd_atomic: Some(reads), ..Change::default() };
        qp.ready_to_receive(QpInfo { address, qpn: key.qpn, psn: key.psn }, &change)?;
        qp.modify(&Change { transition: Some(Transition::Send), ..Change::default() })?;
        Ok(())
    }

    /// `size` octets to send.
    pub(super) fn message(&self, size: usize) -> Result<Slice, PerfError> {
        Ok(self.source.slice(0..size)?)
    }
}

/// Packets in flight, of all queue pairs.
fn flight_packets(mtu: Mtu) -> u32 {
    FLIGHT_PACKETS.min(FLIGHT / u32::from(mtu.octets()))
}

/// The longest message that will be moved.
fn largest(options: &Options) -> usize {
    let size = if options.all_sizes { 1 << 23 } else { options.size };
    usize::try_from(size).unwrap_or(usize::MAX)
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
        self.watch.event(Event::Progress { done, total });
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
    fn run(&mut self) -> Result<(), PerfError> {
        let done = self.measure().map_err(|error| self.blamed(error));
        let overflowed = self.place.device.counters().overflowed;
        let mut counted = Counted { overflowed, ..Counted::default() };
        for of in self.qps.iter().map(QueuePair::counters) {
            counted.packets += u64::from(of.packets);
            counted.retransmitted += u64::from(of.retransmitted);
            counted.timeouts += u64::from(of.timeouts);
            counted.rnr += u64::from(of.rnr);
            counted.cnps += u64::from(of.cnps);
            counted.ecn_marked += u64::from(of.ecn_marked);
        }
        self.watch.event(Event::Counted(&counted));
        for (name, tally) in self.place.device.programs() {
            self.watch.event(Event::Program(&name, &tally));
        }
        done
    }

    /// A request that nobody answered failed since the peer had left, where it has.
    fn blamed(&mut self, error: PerfError) -> PerfError {
        match error {
            PerfError::Completion { status: Status::TransportRetryCounterExceeded, .. }
                if self.channel.news() == News::Gone =>
            {
                PerfError::Left
            }
            error => error,
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
                return Ok(());
            }
            (Metric::Latency, Verb::Send) => {
                for size in self.sizes() {
                    let mut ping = latency::Ping::new(self, size)?;
                    self.meet()?;
                    let row = ping.run(self)?;
                    self.row(row);
                }
            }
            (Metric::Latency, _) => {
                if self.is_client() {
                    for size in self.sizes() {
                        let row = latency::read(self, size)?;
                        self.row(row);
                    }
                }
            }
            (Metric::Bandwidth, Verb::Send) => self.two_sided()?,
            (Metric::Bandwidth, _) => self.one_sided()?,
        }
        self.meet()?;
        self.channel.finish()
    }

    fn two_sided(&mut self) -> Result<(), PerfError> {
        let both = self.options.bidirectional;
        let (sends, receives) = (both || self.is_client(), both || !self.is_client());
        for size in self.sizes() {
            let mut flows = bandwidth::Flows::new(self, size, sends, receives)?;
            let ready = self.meet()?;
            let row = flows.run(self, ready)?;
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
            (ours.peak / unit).to_bits(),
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
            peak: number(peak) * unit,
            average: number(average) * unit,
            messages: number(messages) * 1e6,
        })
    }
}

impl Bandwidth {
    /// Figures that a peer told; an error where it said something else in their place, such as a queue pair.
    fn judged(self) -> Result<Self, PerfError> {
        let is_one = |figure: f64| figure.is_finite() && figure >= 0.0;
        let are = [self.peak, self.average, self.messages].into_iter().all(is_one);
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
            Self { peak: self.peak * (average / self.average), average, ..self }
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_s_figures_are_read_whichever_unit_they_are_told_in() {
        let told =
            Bandwidth { size: 65536, iterations: 5000, peak: 2.5e9, average: 2e9, messages: 2e9 / 65536.0 };
        // Gb/s that were taken for MiB/s.
        let unit = 1_048_576.0 / 125e6;
        let taken = Bandwidth { peak: told.peak * unit, average: told.average * unit, ..told };
        for told_so in [told, taken] {
            let read = told_so.judged().unwrap().rescaled();
            assert!(
                (read.peak / 2.5e9 - 1.0).abs() < 1e-9 && (read.average / 2e9 - 1.0).abs() < 1e-9,
                "{read:?}"
            );
        }
        assert_eq!(Bandwidth::default().judged().unwrap().rescaled(), Bandwidth::default());
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
