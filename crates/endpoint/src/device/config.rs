//! How a device is set up.

use super::Mtu;
use crate::io::MemoryWire;
use roci_control::Law;
use roci_units::BitsPerSec;
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
        /// How long the thread, and [`CompletionQueue::wait`](crate::CompletionQueue::wait), spin before they sleep.
        spin: Duration,
    },
    /// The application alone, by polling, waiting or [`Device::progress`](crate::Device::progress). Acknowledgements and retransmissions wait for
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
    /// The most that its [active MTU](crate::Device::active_mtu) is to be, for a path that takes less than the link; what the link takes if
    /// not said, and never more.
    pub mtu: Option<Mtu>,
    /// The code point of data and acknowledgements, 0 to 63, of queue pairs that [name none](crate::QueuePairBuilder::dscp).
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
    /// where [`QueuePairBuilder::recovery`](crate::QueuePairBuilder::recovery) says the layout for it, as [`layout`](crate::congestion::layout) tells.
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
