//! Two endpoints in one process, connected over whatever carries packets.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part")]

use roci_endpoint::{
    Access, Backend, CompletionQueue, Device, DeviceConfig, MemoryRegion, MemoryWire, Progress,
    ProtectionDomain, QueuePair, QueuePairBuilder, WorkCompletion,
};
use roci_wire::{Header, Ip, Transport};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub const WAIT: Duration = Duration::from_secs(20);

/// One end.
pub struct End {
    pub device: Device,
    pub pd: ProtectionDomain,
    pub cq: CompletionQueue,
    pub qp: QueuePair,
    /// Peers may do everything to it.
    pub open: MemoryRegion,
    /// Nobody but us reaches it.
    pub own: MemoryRegion,
}

pub struct Pair {
    pub wire: Option<MemoryWire>,
    pub a: End,
    pub b: End,
}

pub const SIZE: usize = 1 << 20;

impl End {
    fn new(device: &Device, build: &dyn Fn(QueuePairBuilder) -> QueuePairBuilder) -> Self {
        let pd = device.alloc_pd();
        let cq = device.create_cq().unwrap();
        let qp = build(pd.create_qp(&cq, &cq)).build().unwrap();
        let open = pd.reg_mr(vec![0; SIZE], Access::ALL).unwrap();
        let own = pd.reg_mr(vec![0; SIZE], Access::LOCAL_WRITE).unwrap();
        Self { device: device.clone(), pd, cq, qp, open, own }
    }

    pub fn wait(&self) -> WorkCompletion {
        self.cq.wait(WAIT).expect("a completion")
    }

    /// The next completion, which has to be a good one.
    pub fn done(&self) -> WorkCompletion {
        let completion = self.wait();
        assert!(completion.is_ok(), "{completion:?}");
        completion
    }
}

/// A pair over a wire in memory.
pub fn in_memory(seed: u64, build: impl Fn(QueuePairBuilder) -> QueuePairBuilder) -> Pair {
    let wire = MemoryWire::new(seed);
    let open = |address: &str| {
        let backend = Backend::Memory(wire.clone());
        let config = DeviceConfig { backend, ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (a, b) = (open("10.0.0.1"), open("10.0.0.2"));
    Pair { wire: Some(wire), ..connect(&a, &b, build) }
}

/// A pair over UDP sockets, at one loopback address.
pub fn over_udp(address: &str, build: impl Fn(QueuePairBuilder) -> QueuePairBuilder) -> Pair {
    let address: IpAddr = address.parse().unwrap();
    let (a, b) = (Device::open(address).unwrap(), Device::open(address).unwrap());
    connect(&a, &b, build)
}

pub fn connect(a: &Device, b: &Device, build: impl Fn(QueuePairBuilder) -> QueuePairBuilder) -> Pair {
    let (a, b) = (End::new(a, &build), End::new(b, &build));
    a.qp.connect(b.qp.info()).unwrap();
    b.qp.connect(a.qp.info()).unwrap();
    Pair { wire: None, a, b }
}

/// Octets that differ from place to place and from seed to seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect()
}

/// The configuration of a device without a thread.
pub fn by_caller() -> DeviceConfig {
    DeviceConfig { progress: Progress::Caller, ..DeviceConfig::default() }
}

/// A packet as `from` would send it to `to`.
pub fn forge(from: &Device, to: &Device, header: Header, payload: &[u8]) -> Vec<u8> {
    let v4 = |address: IpAddr| match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    let mut header = header;
    header.payload = u16::try_from(payload.len()).unwrap();
    let transport = Transport::standard(header);
    let mut octets = vec![0; transport.len()];
    let ip = Ip::v4(v4(from.address()), v4(to.address()));
    transport.emit_with(&ip, 4791, &mut octets, |place| place.copy_from_slice(payload)).unwrap();
    octets
}

/// Waits until so many packets have arrived.
pub fn settle(end: &End, packets: u64) {
    let until = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() + WAIT;
    while end.device.counters().received < packets {
        assert!(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() < until, "the packet arrives");
        std::thread::yield_now();
    }
}
