//! Devices and protection domains.

mod config;
mod core;
mod inner;
mod mtu;

pub use config::{Backend, DeviceConfig, LINK, Progress};
pub(crate) use inner::DeviceInner;
pub use mtu::Mtu;

use crate::clock::Clock;
use crate::completion::CompletionQueue;
use crate::control;
use crate::driver::{Cell, Pause};
use crate::io::steer::Claim;
use crate::io::udp::UdpIo;
use crate::io::{PacketIo, raw::RawIo, sys};
use crate::memory::{MemoryRegion, RegionError};
use crate::numbers::random;
use crate::queue_pair::{QueuePairBuilder, is_host};
use crate::shard::{Core, IoCounters, Shard};
use crate::shared_receive::SharedReceiveQueue;
use crate::table::Table;
use crate::threads;
use roci_control::Law;
use roci_control::program::Tally;
use roci_transport::{Access, Pd, Refusal};
use roci_units::Span;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// An RDMA device: an IP address of this host with RoCEv2 behind it. Clones are the same device; it closes when the last
/// one and everything made from it are gone.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) inner: Arc<DeviceInner>,
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
        check(address, &config)?;
        let seed = u64::from(random()) << 32 | u64::from(random());
        let table = Arc::new(Table::new(config.shards));
        let mut cells = Vec::new();
        for number in 0..config.shards {
            let io = attach(address, &config).map_err(|error| named(address, error))?;
            let core = Core::new(io.as_ref(), &config, seed, (table.clone(), number), clock);
            cells.push(Arc::new(Cell::new(number, Shard { io, core }, table.clone(), clock)?));
        }
        let mtu = active_mtu(address, &config);
        let driving = match config.progress {
            Progress::Thread { spin } => drive(&cells, span(spin))?,
            Progress::Caller => Vec::new(),
        };
        let laws = std::iter::once(Law::None).chain(config.laws).collect();
        let inner = DeviceInner {
            cells,
            laws,
            events: OnceLock::new(),
            names: Mutex::default(),
            local: address,
            mtu,
            dscp: config.dscp,
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

    /// Bounds what the requests of each shard's queue pairs may have under way to one address, with one code point, together, to `packets` that have been
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

/// That a device can be opened at `address` so.
fn check(address: IpAddr, config: &DeviceConfig) -> io::Result<()> {
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
    Ok(())
}

/// The packet I/O of one shard.
fn attach(address: IpAddr, config: &DeviceConfig) -> io::Result<Box<dyn PacketIo>> {
    Ok(match &config.backend {
        Backend::Udp => Box::new(UdpIo::open(address, Claim::lowest(address)?, config.connected)?),
        Backend::Raw => Box::new(RawIo::open(address, Claim::lowest(address)?)?),
        Backend::Memory(wire) => Box::new(wire.attach(address)?),
    })
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

/// What the link takes, or less where less was asked for.
fn active_mtu(address: IpAddr, config: &DeviceConfig) -> Mtu {
    let of_link = match &config.backend {
        Backend::Memory(_) => Mtu::Mtu4096,
        _ => Mtu::within(sys::mtu_of(address).unwrap_or(1500)),
    };
    config.mtu.map_or(of_link, |most| most.min(of_link))
}

/// A thread for each of `cells`; none where not all can be had.
fn drive(cells: &[Arc<Cell>], spin: Span) -> io::Result<Vec<JoinHandle<()>>> {
    let mut driving: Vec<JoinHandle<()>> = Vec::new();
    for cell in cells {
        let cell = cell.clone();
        match threads::spawn("roci-shard", move || cell.drive(spin)) {
            Ok(thread) => driving.push(thread),
            Err(error) => {
                cells.iter().for_each(|cell| cell.stop());
                driving.into_iter().for_each(|thread| drop(thread.join()));
                return Err(error);
            }
        }
    }
    Ok(driving)
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
