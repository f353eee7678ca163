//! Devices and protection domains.

use crate::clock::{self, Clock};
use crate::completion::CompletionQueue;
use crate::control;
use crate::driver::{Cell, Pause};
use crate::event::EventQueue;
use crate::icrc::Solver;
use crate::io::steer::Claim;
use crate::io::udp::UdpIo;
use crate::io::{Batch, MemoryWire, PacketIo, raw::RawIo, sys};
use crate::memory::region::{Handle, Memory};
use crate::memory::{MemoryRegion, RegionError};
use crate::numbers::{Numbers, random};
use crate::paths::Paths;
use crate::queue_pair::{QueuePairBuilder, is_host};
use crate::shard::{Core, IoCounters, Shard};
use crate::shared_receive::SharedReceiveQueue;
use crate::table::{Change, Table};
use crate::telemetry::Rates;
use crate::threads;
use roci_control::Law;
use roci_control::program::Tally;
use roci_transport::{Access, Engine, EngineConfig, Pd, Reaction, Refusal, RegisterError};
use roci_units::{BitsPerSec, Instant, Span};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Which packet I/O a device uses.
#[derive(Clone, Debug, Default)]
pub enum Backend {
    /// UDP sockets: no privilege, segmentation offload.
    #[default]
    Udp,
    /// Raw sockets: CAP_NET_RAW, one system call's worth of work per packet, the full 32 bits of the ICRC checked over
    /// IPv4 as well.
    Raw,
    /// A wire in memory, for tests.
    Memory(MemoryWire),
}

/// Who makes a device go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A thread for each shard, which sleeps when nothing has happened for `spin`. An application that polls makes the
    /// device go on by itself, and the thread keeps out of its way.
    Thread {
        /// How long the thread, and [`CompletionQueue::wait`], spin before they sleep.
        spin: Duration,
    },
    /// The application alone, by polling, waiting or [`Device::progress`]. Acknowledgements and retransmissions wait for
    /// it as well.
    Caller,
}

/// How a device is set up.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Its packet I/O.
    pub backend: Backend,
    /// Who makes it go on.
    pub progress: Progress,
    /// Engines, each with its queue pairs, socket and thread; 1 to 16. One on a wire in memory.
    pub shards: usize,
    /// Peers to whom each shard sends over a UDP socket of their own, which saves looking up the route for each datagram:
    /// those over IPv6 that are sent most. What they are sent bears another source port than 4791, as RoCEv2 allows, and all else
    /// bears 4791. Zero for the few networks that pass packets to 4791 only from 4791.
    pub connected: usize,
    /// The rate of the link, what "unpaced" means to a law: a queue pair that a law has paced is held to it when the law takes its
    /// limit away. Until then nothing paces it.
    pub link: BitsPerSec,
    /// The rate of switches' ports for which telemetry has no code, which is any but 25, 50, 100, 200 and 400 Gb/s: one of all, or one of each hop, those with
    /// a code too, in the order of hops, of which five are told at most; that of the link if none is said. Where several are said and other hops tell, nothing that they told is taken.
    pub hop_rates: Vec<BitsPerSec>,
    /// The DSCP of packets that have room for telemetry, by which switches know them; 23 if not said.
    pub int_dscp: u8,
    /// The most that its [active MTU](Device::active_mtu) is to be, for a path that takes less than the link; what the link takes if
    /// not said, and never more.
    pub mtu: Option<Mtu>,
    /// The code point of data and acknowledgements, 0 to 63.
    pub dscp: u8,
    /// The code point of CNPs.
    pub cnp_dscp: u8,
    /// Octets of READ data that each shard's queue pairs may have asked for together and not yet received, at least as many as one
    /// of them may by its window; READs that would be more wait for their turns, and one that is longer is asked for in parts of half of it. Short ones, of at most a 64th, may have as much
    /// besides. An eighth of what the system lets the socket hold, if not said, where each packet counts with its bookkeeping: what
    /// 64 queue pairs read at once was lost there else, and read again.
    pub read_room: Option<u32>,
    /// The congestion-control laws that queue pairs can name, from number 1 on; 0 is none. The first is that of queue
    /// pairs that name none; if not said, it is DCQCN as its authors had it. One that needs more than RoCEv2's packets bring runs
    /// where [`QueuePairBuilder::recovery`] says the layout for it, as [`layout`](crate::congestion::layout) tells.
    pub laws: Vec<Law>,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            backend: Backend::Udp,
            progress: Progress::Thread { spin: Duration::from_micros(50) },
            shards: 1,
            connected: 32,
            link: LINK,
            hop_rates: Vec::new(),
            int_dscp: crate::bridge::Telemetry::DSCP,
            mtu: None,
            dscp: 0,
            cnp_dscp: 48,
            read_room: None,
            laws: Law::from_settings("dcqcn", &[], LINK).into_iter().collect(),
        }
    }
}

/// The link's rate where nobody says another.
pub const LINK: BitsPerSec = BitsPerSec::from_gbps(100);
/// Who drives a shard may be late by so much without a paced queue pair losing any of its rate: what a thread waits for its turn on
/// cores that have several others to run, each for some milliseconds. With 2 ms, ten threads on two cores cost 6 % of 10 Mb/s and
/// a third of 1 Gb/s. What leaves at once to make up for it is bounded by the window as well, and one that had nothing to send
/// has saved up nothing.
const PACING_BURST: Span = Span::from_millis(20);
/// The longest run of a paced queue pair: a few packets at 1 Gb/s, and what offload takes at once from 8 Gb/s on.
const PACED_RUN: Span = Span::from_micros(64);
/// Bitmaps for losses on each side of a thread's queue pairs, 6 MiB at most: gaps are as many as peers want.
const BITMAPS_MAX: u32 = 4096;

/// READ data on its way takes this part of the receive buffer, and short READs' as much: the kernel counts a packet of 1024 octets
/// as more than twice that, other packets come as well, and what is read again comes twice.
const READ_PART: u64 = 8;

/// How long a packet that a program refuses waits for what may come unasked: longer than hosts stand still, this one's or the peer's.
const PATIENCE: Span = Span::from_millis(500);

/// The payload of a full packet: IBTA's five path MTUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Mtu {
    /// 256 octets.
    Mtu256 = 256,
    /// 512 octets.
    Mtu512 = 512,
    /// 1024 octets.
    Mtu1024 = 1024,
    /// 2048 octets.
    Mtu2048 = 2048,
    /// 4096 octets.
    Mtu4096 = 4096,
}

impl Mtu {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mtu256, Self::Mtu512, Self::Mtu1024, Self::Mtu2048, Self::Mtu4096];
    /// The most octets besides payload in an IP datagram of standard layout: IPv6, UDP, BTH, RETH, immediate data, ICRC.
    pub(crate) const AROUND: u32 = 40 + 8 + 12 + 16 + 4 + 4;

    /// Octets.
    pub const fn octets(self) -> u16 {
        self as u16
    }

    /// The largest that goes through a link whose IP datagrams have at most `link` octets; the smallest if none does.
    pub fn within(link: u32) -> Self {
        let fits = |mtu: &Self| u32::from(mtu.octets()) + Self::AROUND <= link;
        Self::ALL.into_iter().rev().find(fits).unwrap_or(Self::Mtu256)
    }

    /// That with so many octets.
    pub fn from_octets(octets: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.octets() == octets)
    }
}

/// An RDMA device: an IP address of this host with RoCEv2 behind it. Clones are the same device; it closes when the last
/// one and everything made from it are gone.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
}

pub(crate) struct DeviceInner {
    pub(crate) cells: Vec<Arc<Cell>>,
    pub(crate) local: IpAddr,
    pub(crate) mtu: Mtu,
    /// The laws by their numbers, the first of which is 0, none.
    pub(crate) laws: Vec<Law>,
    /// Who wants to hear of asynchronous events.
    events: OnceLock<Arc<EventQueue>>,
    /// Its control sockets.
    names: Mutex<Vec<control::Name>>,
    table: Arc<Table>,
    pub(crate) clock: Clock,
    pub(crate) progress: Progress,
    pause: Pause,
    next_shard: AtomicUsize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

// Queue pairs, regions, buffers and completions lead here: who prints one wants no tables.
impl std::fmt::Debug for DeviceInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceInner").field("local", &self.local).finish_non_exhaustive()
    }
}

/// The system's words name neither an address of this host nor what keeps the port.
fn named(address: IpAddr, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            io::Error::new(error.kind(), format!("{address} {}", crate::addresses::foreign()))
        }
        io::ErrorKind::AddrInUse if error.raw_os_error().is_some() => io::Error::new(
            error.kind(),
            "UDP port 4791 there belongs to another user's process, or to a program that is none of ours and shares it with nobody: \
             end that (`ss -ulpn sport = 4791` as root names it), or take another address of this host, as 127.0.0.2 beside 127.0.0.1",
        ),
        _ => error,
    }
}

impl Device {
    /// Opens the device at `address`, an address of this host, with UDP sockets and a thread.
    ///
    /// # Errors
    /// When the address is not this host's, or a program that is no endpoint of ours has port 4791.
    pub fn open(address: IpAddr) -> io::Result<Self> {
        Self::open_with(address, DeviceConfig::default())
    }

    /// Opens the device at `address`.
    ///
    /// # Errors
    /// As [`open`](Self::open); or when the configuration is out of its ranges.
    pub fn open_with(address: IpAddr, config: DeviceConfig) -> io::Result<Self> {
        Self::open_by(address, config, Clock::new())
    }

    /// Opens it with this clock.
    pub(crate) fn open_by(address: IpAddr, config: DeviceConfig, clock: Clock) -> io::Result<Self> {
        let address = address.to_canonical();
        let invalid = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        if !is_host(address) {
            return invalid(&format!("{address} is not the address of a host: name one of this host's"));
        }
        let is_memory = matches!(config.backend, Backend::Memory(_));
        if !(1..=16).contains(&config.shards) || is_memory && config.shards != 1 {
            return invalid("shards: 1 to 16, and 1 on a wire in memory");
        }
        if [config.dscp, config.cnp_dscp, config.int_dscp].iter().any(|dscp| *dscp > 63) {
            return invalid("code points are below 64");
        }
        let seed = u64::from(random()) << 32 | u64::from(random());
        let table = Arc::new(Table::new(config.shards));
        let mut cells = Vec::new();
        for number in 0..config.shards {
            let open = || -> io::Result<Box<dyn PacketIo>> {
                Ok(match &config.backend {
                    Backend::Udp => {
                        Box::new(UdpIo::open(address, Claim::lowest(address)?, config.connected)?)
                    }
                    Backend::Raw => Box::new(RawIo::open(address, Claim::lowest(address)?)?),
                    Backend::Memory(wire) => Box::new(wire.attach(address)?),
                })
            };
            let io = open().map_err(|error| named(address, error))?;
            let core = Core::new(io.as_ref(), &config, seed, table.clone(), clock);
            cells.push(Arc::new(Cell::new(number, Shard { io, core }, table.clone(), clock)?));
        }
        let mtu = match &config.backend {
            Backend::Memory(_) => Mtu::Mtu4096,
            _ => Mtu::within(sys::mtu_of(address).unwrap_or(1500)),
        };
        let mtu = config.mtu.map_or(mtu, |most| most.min(mtu));
        let mut driving = Vec::new();
        if let Progress::Thread { spin } = config.progress {
            for cell in &cells {
                let (cell, spin) = (cell.clone(), span(spin));
                match threads::spawn("roci-shard", move || cell.drive(spin)) {
                    Ok(thread) => driving.push(thread),
                    Err(error) => {
                        cells.iter().for_each(|cell| cell.stop());
                        driving.into_iter().for_each(|thread| drop(thread.join()));
                        return Err(error);
                    }
                }
            }
        }
        let laws = std::iter::once(Law::None).chain(config.laws).collect();
        let inner = DeviceInner {
            cells,
            laws,
            events: OnceLock::new(),
            names: Mutex::default(),
            local: address,
            mtu,
            table,
            clock,
            progress: config.progress,
            pause: Pause::default(),
            next_shard: AtomicUsize::new(0),
            threads: Mutex::new(driving),
        };
        let device = Self { inner: Arc::new(inner) };
        if let Some(path) = std::env::var_os(control::VARIABLE).filter(|path| !path.is_empty()) {
            let path = Path::new(&path);
            device.serve_control(path).map_err(|error| control::blamed(path, &error))?;
        }
        Ok(device)
    }

    /// Its address, which is its GID.
    pub fn address(&self) -> IpAddr {
        self.inner.local
    }

    /// The largest path MTU that its link takes: 4096 from a link MTU of 4180 octets on, 1024 at 1500.
    pub fn active_mtu(&self) -> Mtu {
        self.inner.mtu
    }

    /// How many shards it has. A queue pair lives on one.
    pub fn shards(&self) -> usize {
        self.inner.cells.len()
    }

    /// Makes a protection domain: queue pairs and regions of different ones have nothing to do with each other.
    pub fn alloc_pd(&self) -> ProtectionDomain {
        let number = LAST_PD.fetch_add(1, Ordering::Relaxed) + 1;
        ProtectionDomain { device: self.inner.clone(), pd: Pd(number) }
    }

    /// Makes a completion queue.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn create_cq(&self) -> io::Result<CompletionQueue> {
        CompletionQueue::new(self.inner.clone(), None)
    }

    /// Bounds what the requests of each shard's queue pairs may have under way to one address together, to `packets` that have been
    /// sent and not been acknowledged; who would have more waits for its turn. For many queue pairs to one receiver, whose windows
    /// come to more than its socket holds. A READ or atomic counts as one until it is answered; what is taken for lost, or is not answered in
    /// time, counts no more. Without this each queue pair's window is the only bound. It is to be said before anything is posted.
    pub fn bound_flight(&self, packets: u32) {
        for cell in &self.inner.cells {
            cell.lock().core.engine.bound_flight(packets);
        }
    }

    /// Lets all shards go on that nobody else drives at the moment.
    pub fn progress(&self) {
        self.inner.progress();
    }

    /// What a loop does that polled, found nothing and polls again: it offers the core now and then to a peer that may share it, as
    /// [`CompletionQueue::wait`] does.
    pub fn pause(&self) {
        self.inner.pause();
    }

    /// Leaves the device to its threads: to be called before a program sleeps until a descriptor of its queues is readable. Without it
    /// they notice within a millisecond that nobody polls any more.
    pub fn hand_over(&self) {
        self.inner.hand_over();
    }

    /// What has been counted, over all shards.
    pub fn counters(&self) -> IoCounters {
        self.inner.counters()
    }

    /// What each program has done that is a law here, by its name: events, cycles, and failures with their places. These bear the numbers
    /// that queue pairs have on the wire, as long as those are there.
    pub fn programs(&self) -> Vec<(String, Tally)> {
        self.inner.programs()
    }

    /// Packets that the transport refused for this reason.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.inner.refused(reason)
    }

    /// Opens a control socket at `path`, for [`control::ask`] and `roci ctl`; where another device has
    /// that path, at the next free one of `path.2`, `path.3`, … It closes with the device.
    ///
    /// Devices open one by themselves where the environment has `ROCI_CONTROL`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn serve_control(&self, path: &Path) -> io::Result<()> {
        let (listener, name) = control::bind(path)?;
        let device = Arc::downgrade(&self.inner);
        // It ends by itself when the device is gone: who drops the device need not wait for it.
        threads::spawn("roci-control", move || control::serve(&listener, &device))?;
        self.inner.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Ok(())
    }
}

/// Numbers of protection domains are not used twice, so that those of two devices differ too.
static LAST_PD: AtomicU32 = AtomicU32::new(0);

/// Memory regions and queue pairs that may be used together (IBTA Vol 1 §10.2.3).
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    pub(crate) device: Arc<DeviceInner>,
    pub(crate) pd: Pd,
}

impl ProtectionDomain {
    /// Registers memory. It belongs to the region until [`MemoryRegion::deregister`] gives it back.
    ///
    /// # Errors
    /// [`RegionError`] says what is wrong, and has the memory.
    pub fn reg_mr(&self, memory: Vec<u8>, access: Access) -> Result<MemoryRegion, RegionError> {
        MemoryRegion::register(&self.device, self.pd, memory, access)
    }

    /// Begins to make a queue pair that tells of its requests in these completion queues, which are of the same device.
    pub fn create_qp(&self, send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> QueuePairBuilder {
        QueuePairBuilder::new(self, send_cq, recv_cq)
    }

    /// Makes a shared receive queue for up to `max_wr` outstanding requests. Queue pairs that use it live on its shard.
    pub fn create_srq(&self, max_wr: u32) -> SharedReceiveQueue {
        SharedReceiveQueue::new(self, max_wr)
    }
}

pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl DeviceInner {
    pub(crate) fn programs(&self) -> Vec<(String, Tally)> {
        let mut programs: Vec<(String, Tally)> = Vec::new();
        for cell in &self.cells {
            for (name, tally) in cell.lock().core.programs() {
                match programs.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => sum.add(&tally),
                    None => programs.push((name, tally)),
                }
            }
        }
        programs
    }

    pub(crate) fn counters(&self) -> IoCounters {
        let mut sum = IoCounters::default();
        for cell in &self.cells {
            sum.add(&cell.lock().core.counters);
        }
        sum
    }

    /// How many rates were said for hops one by one.
    pub(crate) fn ordered_rates(&self) -> usize {
        self.cells.first().map_or(0, |cell| cell.lock().core.hop_rates.ordered())
    }

    pub(crate) fn refused(&self, reason: Refusal) -> u64 {
        self.cells.iter().map(|cell| cell.lock().core.engine.refused(reason)).sum()
    }

    pub(crate) fn bitmaps_refused(&self) -> u64 {
        self.cells.iter().map(|cell| cell.lock().core.engine.bitmaps_refused()).sum()
    }

    /// Where asynchronous events are told, by all shards from the first call on.
    pub(crate) fn listen(&self) -> io::Result<Arc<EventQueue>> {
        if let Some(queue) = self.events.get() {
            return Ok(queue.clone());
        }
        let made = Arc::new(EventQueue::new()?);
        let queue = self.events.get_or_init(|| made);
        for cell in &self.cells {
            cell.lock().core.events = Some(queue.clone());
        }
        Ok(queue.clone())
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Time since it was opened, which goes on when [`now`](Self::now) has come to its end.
    pub(crate) fn passed(&self) -> Duration {
        self.clock.passed()
    }

    pub(crate) fn spin(&self) -> Duration {
        match self.progress {
            Progress::Thread { spin } => spin,
            Progress::Caller => Duration::from_micros(50),
        }
    }

    /// What a loop does that found nothing and looks again.
    pub(crate) fn pause(&self) {
        self.pause.pause(&self.clock);
    }

    /// The shard for the next queue pair, in turns.
    pub(crate) fn turn(&self) -> usize {
        self.next_shard.fetch_add(1, Ordering::Relaxed) % self.cells.len()
    }

    pub(crate) fn progress(&self) {
        for cell in &self.cells {
            cell.progress(&self.pause);
        }
    }

    /// Leaves the device to its threads.
    pub(crate) fn hand_over(&self) {
        if self.progress != Progress::Caller {
            for cell in &self.cells {
                cell.hand_over();
            }
        }
    }

    /// Sends what waits for company, before somebody waits by other means than looking for completions.
    pub(crate) fn send_waiting(&self) {
        for cell in &self.cells {
            cell.send_waiting();
        }
    }

    /// Waits for `event`, for `left` at most, or until it is time to go on.
    pub(crate) fn block(&self, event: RawFd, mut left: Option<Duration>) -> io::Result<()> {
        let mut fds = vec![(event, false)];
        let now = self.now();
        if self.progress == Progress::Caller {
            for cell in &self.cells {
                cell.send_waiting();
                fds.extend(cell.readable().map(|fd| (fd, false)));
                let next = cell.next_wakeup(now).and_then(|next| clock::until(next, now));
                left = next.map_or(left, |next| Some(left.map_or(next, |left| left.min(next))));
            }
        } else {
            self.hand_over();
        }
        sys::wait(&fds, left)?;
        Ok(())
    }

    /// Registers memory on all shards; gives its key.
    pub(crate) fn register(&self, pd: Pd, memory: &Arc<Memory>) -> Result<u32, RegisterError> {
        let key = Arc::new(OnceLock::new());
        self.table.push(Change::Register(pd, memory.clone(), key.clone()));
        self.settle();
        key.get().copied().unwrap_or(Err(RegisterError::Full))
    }

    /// Deregisters a region, on each shard before it does anything else. May be called under a shard's lock.
    pub(crate) fn deregister(&self, key: u32) {
        self.table.push(Change::Deregister(key));
    }

    /// Requests part with the memory of a region, which is to be taken away.
    pub(crate) fn part_with(&self, handle: &Handle) {
        for cell in &self.cells {
            let core = &mut cell.lock().core;
            let recvs = core.works.part_with(handle);
            if !recvs.is_empty() {
                core.engine.void_recvs(|id| recvs.contains(&id));
            }
        }
    }

    /// Has all changes of the table of regions applied.
    pub(crate) fn settle(&self) {
        for cell in &self.cells {
            drop(cell.lock());
        }
    }
}

impl Drop for DeviceInner {
    fn drop(&mut self) {
        for cell in &self.cells {
            cell.stop();
        }
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        // The kernel may have given us what is others' at this address, as their peers' last acknowledgements, ours among them: it is
        // handed over before the sockets close, which take it with them.
        for cell in &self.cells {
            let io = &mut cell.lock().io;
            (0..LAST_LOOKS).take_while(|_| io.receive(&mut |_| {}).is_ok_and(|runs| runs > 0)).for_each(drop);
        }
    }
}

/// So often is something looked for at the end, in case that somebody goes on sending.
const LAST_LOOKS: u32 = 64;

impl Core {
    fn new(io: &dyn PacketIo, config: &DeviceConfig, seed: u64, table: Arc<Table>, clock: Clock) -> Self {
        let mut engine = Engine::new(EngineConfig {
            link: config.link,
            seed,
            pacing_burst: PACING_BURST,
            paced_run: PACED_RUN,
            bitmaps_max: BITMAPS_MAX,
            ..EngineConfig::default()
        });
        for law in &config.laws {
            let mut law = law.clone();
            if let Law::Program(program) = &mut law {
                program.set_patience(PATIENCE);
            }
            engine.add_law(law);
        }
        engine.tell_incidents();
        engine.hold_to_link();
        let read_room = config.read_room.map_or(io.receive_buffer() / READ_PART, u64::from);
        if read_room > 0 {
            engine.bound_reads(read_room);
            engine.cut_reads();
        }
        Self {
            engine,
            local: io.local(),
            hop_rates: Rates::new(&config.hop_rates, config.link),
            int_dscp: config.int_dscp,
            numbers: Numbers::new(io.slot()),
            entries: Vec::new(),
            vacant: Vec::new(),
            works: crate::works::Works::default(),
            paths: Paths::default(),
            memories: HashMap::new(),
            held: None,
            placements: Vec::new(),
            batch: Batch::new(io.run_max()),
            replies: VecDeque::new(),
            is_awaited: false,
            urgent: Vec::new(),
            has_cnp: false,
            clock,
            replied_at: Instant::ZERO,
            answered_at: Instant::ZERO,
            habit: crate::habit::Habit::default(),
            company: crate::company::Company::default(),
            has_ended: false,
            has_taken: false,
            unanswered: 0,
            reply_octets: crate::shard::REPLY_OCTETS_MAX,
            reads_stand: None,
            events: None,
            reached: Vec::new(),
            draining: Vec::new(),
            greetings: Vec::new(),
            reaction: Reaction::default(),
            counters: IoCounters::default(),
            added_up_at: 0,
            solver: Solver::default(),
            from: None,
            to: None,
            dscp: (config.dscp, config.cnp_dscp),
            shared_left: Vec::new(),
            shared_numbers: Vec::new(),
            shared_vacant: Vec::new(),
            table,
        }
    }
}
