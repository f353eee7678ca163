//! The emulated switch: an Ethernet bridge on this machine, whose links have a rate and a delay, and whose buffer is that of the
//! simulated switches, `roci_switch`.
//!
//! Real hosts, or containers and network namespaces, are at its ports: through TAP devices that it creates, or through interfaces that
//! exist. So a congestion control law meets the same queues, marks and pauses on a real network as in a simulation.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `machine` | the bridge itself, without a clock or a socket |
//! | `frame` | what it has to know of a frame, and the store of frames |
//! | `stations` | which station is behind which port |
//! | `serve` | the loop between it and the ports |
//!
//! What is modelled: each port is a full-duplex link between the switch and a NIC. What the host sends waits in that NIC, by priority, for
//! the link; the frame arrives when its last bit does, and a delay later; then it is the switch's, until it leaves by a link of the
//! same kind. Times are computed from when things should have happened, not from when the loop came round, so what waits here moves at
//! exact rates. A frame from an interface begins its way when it came; one from a TAP device when it is read, for nobody tells when that came, and
//! [`BridgeConfig::nic_buffer`] is read ahead: a loop that comes round later than the link takes for that leaves a gap. How late a
//! frame is handed over is counted ([`Served::late`]).

mod frame;
mod machine;
mod serve;
mod stations;

pub use frame::FRAME_MAX;
pub use machine::Bridge;
pub use serve::{Attachment, Served, Watch, serve};

use roci_switch::Shares;
use roci_switch::config::{ConfigError, SwitchConfig};
use roci_units::{BitsPerSec, Ratio, Span};
use roci_wire::Opcode;
use std::io;

/// What a bridge is like.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeConfig {
    /// Its buffer: admission, marking, PFC. Trimming needs headers that no host here understands, and is refused.
    pub switch: SwitchConfig,
    /// The priorities of RoCEv2 packets by their kind, whatever their tags and DSCPs say; those that say nothing of others travel as
    /// data do. `None`: all by tag or DSCP.
    pub classes: Option<Classes>,
    /// Frames that are lost on their way into the switch. Default none.
    pub loss: Ratio,
    /// What losses and marks are drawn from. Default 1.
    pub seed: u64,
    /// What a NIC holds of frames that wait for its link: beyond it nothing more is taken from the host. Default 256 KiB.
    pub nic_buffer: u64,
    /// What it tells of its queues in packets that have room for it. `None`, the default: nothing.
    pub telemetry: Option<Telemetry>,
    /// Shares of the link's bandwidth for some priorities at the NICs, as [`SwitchConfig::ets`] at the switch's ports. What a host hands over
    /// has one order, so it takes a NIC that holds all that waits of one priority ([`NIC_SHARED`]) to give another its share.
    /// `None`, the default: all are strict, the highest first.
    pub nic_ets: Option<Shares>,
}

/// A [`BridgeConfig::nic_buffer`] for NICs whose priorities have shares: the windows of several queue pairs.
pub const NIC_SHARED: u64 = 8 << 20;

impl Default for BridgeConfig {
    fn default() -> Self {
        Self {
            switch: SwitchConfig::default(),
            classes: Some(Classes::default()),
            loss: Ratio::new(0, 1),
            seed: 1,
            nic_buffer: 256 << 10,
            telemetry: None,
            nic_ets: None,
        }
    }
}

/// In-band telemetry: which packets have it, for nothing in a packet says so, and what the switch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// RoCEv2 packets of this code point that carry payload have the telemetry of layout `cc` (docs/wire.md) behind the BTH.
    pub dscp: u8,
    /// The switch's number, by which senders tell ways apart.
    pub number: u32,
}

impl Telemetry {
    /// The code point of packets that have telemetry, where nobody says another: of the pool for local use (RFC 2474 §6).
    pub const DSCP: u8 = 23;
}

/// Priorities of RoCEv2 packets, each 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Data, requests and responses. Default 3.
    pub data: u8,
    /// Acknowledgements. Default 3.
    pub ack: u8,
    /// CNPs. Default 6.
    pub cnp: u8,
}

impl Default for Classes {
    fn default() -> Self {
        Self { data: 3, ack: 3, cnp: 6 }
    }
}

impl Classes {
    const fn of(self, opcode: Opcode) -> u8 {
        match opcode {
            Opcode::CNP => self.cnp,
            Opcode::ACKNOWLEDGE | Opcode::ATOMIC_ACKNOWLEDGE => self.ack,
            _ => self.data,
        }
    }
}

/// A link between the bridge and a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its rate, the same both ways.
    pub rate: BitsPerSec,
    /// Its propagation delay, the same both ways.
    pub delay: Span,
    /// Whether whoever is at its end understands PFC frames, and is to be sent them; else its NIC, which is emulated, is simply told.
    pub pause_frames: bool,
}

/// What a port has counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames from the host.
    pub received: u64,
    /// Their octets, with frame check sequence.
    pub received_octets: u64,
    /// Frames that were handed to the host.
    pub sent: u64,
    /// Their octets, with frame check sequence.
    pub sent_octets: u64,
    /// Frames from the host that were lost on purpose.
    pub lost: u64,
    /// Frames for the host that found no room, and lossless ones from it that exceeded the headroom.
    pub dropped: u64,
    /// Frames for the host that were marked.
    pub marked: u64,
    /// Times that the host was paused.
    pub pauses: u64,
    /// How long it was, in sum over priorities.
    pub paused: Span,
    /// Octets that wait for the host.
    pub queued: u64,
    /// The most octets of one priority that ever waited for the host.
    pub peak: u64,
    /// Frames from the host that are longer than [`FRAME_MAX`], or no frames.
    pub refused: u64,
}

/// What a bridge has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Of each port.
    pub ports: Vec<Counts>,
    /// The most octets that were ever in the buffer.
    pub peak: u64,
}

/// Why there is no bridge.
#[derive(thiserror::Error)]
pub enum BridgeError {
    /// The buffer makes no sense.
    #[error("{0}")]
    Switch(ConfigError),
    /// Trimming was asked for.
    #[error("it cannot trim packets: no host on a real network understands what is left of them")]
    Trim,
    /// Fewer than two ports, or more than 64.
    #[error("a switch has 2 to 64 ports, and not {0}")]
    Ports(usize),
    /// A link without a rate.
    #[error("port {0}: a link without a rate carries nothing")]
    Rate(usize),
    /// Two ports are one device.
    #[error("port {0} is named twice: each is a device of its own")]
    Twice(String),
    /// A port cannot be had.
    #[error("port {name}: {error}{}", remedy(.error))]
    Port {
        /// Which.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The system refused something while frames were carried.
    #[error("{0}")]
    System(#[from] io::Error),
}

speaks!(BridgeError);

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; it takes CAP_NET_ADMIN and CAP_NET_RAW: run it as root",
        io::ErrorKind::NotFound => "; `tap:NAME` creates one, for which /dev/net/tun has to exist",
        io::ErrorKind::ResourceBusy => "; somebody else has it: choose another name",
        _ => "",
    }
}
