//! A wire in memory with seeded faults: loss, duplication, reordering, damage, congestion marks.

use super::batch::{Batch, Run};
use super::sys::EventFd;
use super::{Arrived, PacketIo, Sent, Start};
use crate::clock::Clock;
use roci_units::{BitsPerSec, Instant, Random, Span};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Octets of a frame around what a datagram carries: Ethernet with preamble and gap, IPv4, UDP.
const AROUND: usize = 24 + 14 + 28;

/// What happens to each packet, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Packets lost.
    pub loss: u32,
    /// Packets that arrive twice.
    pub duplicate: u32,
    /// Packets that are held back behind up to eight later ones.
    pub reorder: u32,
    /// Packets with one bit changed.
    pub corrupt: u32,
    /// ECN-capable packets marked CE.
    pub mark: u32,
}

/// A place on the way to an address where a queue would build up: no packet waits there, but those that come while the
/// queue would be long are marked, as a switch marks (RED).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// How fast the queue empties, in octets on the wire.
    pub rate: BitsPerSec,
    /// Octets in the queue up to which nothing is marked.
    pub kmin: u32,
    /// Octets from which everything is.
    pub kmax: u32,
    /// Marks just below `kmax`, in parts of a thousand.
    pub pmax: u32,
}

/// A wire between endpoints in one process; clones are the same wire.
#[derive(Clone, Debug)]
pub struct MemoryWire {
    hub: Arc<Mutex<Hub>>,
}

#[derive(Debug)]
struct Hub {
    ports: BTreeMap<IpAddr, Port>,
    faults: Faults,
    random: Random,
    cut: Vec<IpAddr>,
    corrupted: u64,
    /// Where a queue would build up, and when it would be empty.
    bottlenecks: BTreeMap<IpAddr, (Bottleneck, Instant)>,
    clock: Clock,
}

#[derive(Debug)]
struct Port {
    inbox: VecDeque<Packet>,
    event: Arc<EventFd>,
}

#[derive(Clone, Debug)]
struct Packet {
    source: IpAddr,
    ce: bool,
    octets: Vec<u8>,
}

/// One end of a [`MemoryWire`].
#[derive(Debug)]
pub struct MemoryIo {
    wire: MemoryWire,
    local: IpAddr,
    event: Arc<EventFd>,
    taken: Vec<Packet>,
}

impl MemoryWire {
    /// A wire without faults; chance comes from `seed`.
    pub fn new(seed: u64) -> Self {
        let hub = Hub {
            ports: BTreeMap::new(),
            faults: Faults::default(),
            random: Random::new(seed, 0),
            cut: Vec::new(),
            corrupted: 0,
            bottlenecks: BTreeMap::new(),
            clock: Clock::new(),
        };
        Self { hub: Arc::new(Mutex::new(hub)) }
    }

    /// The end at `local`.
    ///
    /// # Errors
    /// When the address has an end already, or the process has no descriptors left.
    pub fn attach(&self, local: IpAddr) -> io::Result<MemoryIo> {
        let event = Arc::new(EventFd::new()?);
        let mut hub = self.lock();
        if hub.ports.contains_key(&local) {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "the wire has an end there"));
        }
        hub.ports.insert(local, Port { inbox: VecDeque::new(), event: event.clone() });
        drop(hub);
        Ok(MemoryIo { wire: self.clone(), local, event, taken: Vec::new() })
    }

    /// Changes what happens to packets from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Puts a bottleneck on the way to an address, or takes it away.
    pub fn set_bottleneck(&self, address: IpAddr, bottleneck: Option<Bottleneck>) {
        let mut hub = self.lock();
        let now = hub.clock.now();
        match bottleneck {
            Some(bottleneck) => hub.bottlenecks.insert(address, (bottleneck, now)),
            None => hub.bottlenecks.remove(&address),
        };
    }

    /// Cuts an address off, or connects it again.
    pub fn cut(&self, address: IpAddr, is_cut: bool) {
        let mut hub = self.lock();
        hub.cut.retain(|cut| *cut != address);
        if is_cut {
            hub.cut.push(address);
        }
    }

    /// Packets that were damaged so far.
    pub fn corrupted(&self) -> u64 {
        self.lock().corrupted
    }

    /// Sends `octets`, BTH to ICRC, from any address, as an intruder may.
    pub fn inject(&self, source: IpAddr, destination: IpAddr, octets: &[u8]) {
        self.lock().put(destination, Packet { source, ce: false, octets: octets.to_vec() });
    }

    fn lock(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    fn falls(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.random.below(1000) < u64::from(thousandths)
    }

    fn carry(&mut self, run: &Run, source: IpAddr, octets: &[u8]) {
        if self.cut.contains(&source) || self.cut.contains(&run.destination) {
            return;
        }
        let faults = self.faults;
        for octets in octets.chunks(run.segment) {
            if self.falls(faults.loss) {
                continue;
            }
            let queued = self.queued(run.destination, octets.len());
            let ce = run.ecn != roci_wire::Ecn::NotEct && (self.falls(faults.mark) || self.falls(queued));
            let mut packet = Packet { source, ce, octets: octets.to_vec() };
            if self.falls(faults.corrupt) {
                let at = usize::try_from(self.random.below(octets.len() as u64)).unwrap_or_default();
                // The ICRC does not cover the octet with the marks.
                let at = if at == 4 { 5 } else { at };
                packet.octets[at] ^= 1 << self.random.below(8);
                self.corrupted += 1;
            }
            if self.falls(faults.duplicate) {
                self.put(run.destination, packet.clone());
            }
            self.put(run.destination, packet);
        }
    }

    /// Counts a packet of `carried` octets to the queue on its way; gives the marks that it deserves, in parts of a
    /// thousand.
    fn queued(&mut self, destination: IpAddr, carried: usize) -> u32 {
        let now = self.clock.now();
        let Some((bottleneck, empty)) = self.bottlenecks.get_mut(&destination) else { return 0 };
        let Bottleneck { rate, kmin, kmax, pmax } = *bottleneck;
        let bits = u128::from(rate.as_kbps().max(1)) * 1000;
        let ahead = u128::from(empty.since(now).as_ps()) * bits / 8_000_000_000_000;
        let time = (carried + AROUND) as u128 * 8_000_000_000_000 / bits;
        // What a switch has no room for would be dropped there; here it is only not counted.
        if ahead < 2 * u128::from(kmax) {
            *empty = (*empty).max(now) + Span::from_ps(u64::try_from(time).unwrap_or(u64::MAX));
        }
        let (ahead, span) =
            (u32::try_from(ahead).unwrap_or(u32::MAX), u64::from(kmax.saturating_sub(kmin).max(1)));
        if ahead >= kmax {
            return 1000;
        }
        let marks = u64::from(pmax) * u64::from(ahead.saturating_sub(kmin)) / span;
        u32::try_from(marks).unwrap_or(1000)
    }

    fn put(&mut self, destination: IpAddr, packet: Packet) {
        let back = if self.falls(self.faults.reorder) { self.random.below(8) + 1 } else { 0 };
        let Some(port) = self.ports.get_mut(&destination) else { return };
        // Going ahead of earlier packets holds those back.
        let ahead = usize::try_from(back).unwrap_or_default().min(port.inbox.len());
        let at = port.inbox.len() - ahead;
        port.inbox.insert(at, packet);
        port.event.signal();
    }
}

impl PacketIo for MemoryIo {
    fn local(&self) -> IpAddr {
        self.local
    }

    fn run_max(&self) -> usize {
        64
    }

    fn begin(&mut self, _: IpAddr) -> Start {
        Start::with_id(0)
    }

    fn send(&mut self, batch: &Batch) -> Sent {
        let mut hub = self.wire.hub.lock().unwrap_or_else(PoisonError::into_inner);
        for run in batch.runs() {
            hub.carry(run, self.local, batch.octets(run));
        }
        Sent { packets: batch.packets() as u64, dropped: 0 }
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize> {
        {
            let mut hub = self.wire.hub.lock().unwrap_or_else(PoisonError::into_inner);
            self.event.clear();
            if let Some(port) = hub.ports.get_mut(&self.local) {
                let count = port.inbox.len().min(64);
                self.taken.extend(port.inbox.drain(..count));
                if !port.inbox.is_empty() {
                    self.event.signal();
                }
            }
        }
        let count = self.taken.len();
        for mut packet in self.taken.drain(..) {
            let segment = packet.octets.len().max(1);
            sink(Arrived {
                source: packet.source,
                source_port: roci_wire::udp::ROCE_PORT,
                ce: packet.ce,
                id: None,
                octets: &mut packet.octets,
                segment,
            });
        }
        Ok(count)
    }

    fn readable(&self) -> [RawFd; 3] {
        [self.event.as_raw_fd(), -1, -1]
    }
}

impl Drop for MemoryIo {
    fn drop(&mut self) {
        self.wire.lock().ports.remove(&self.local);
    }
}
