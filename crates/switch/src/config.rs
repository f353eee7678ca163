//! What can be chosen about a switch.

use crate::red::Red;
use crate::shares::Shares;
use core::fmt;
use roci_units::{BitsPerSec, Bytes, Ratio, Span};

/// Octets of a PAUSE frame: the smallest Ethernet frame.
pub const PAUSE_FRAME: u32 = 64;

/// The frame that switches are usually set up for, FCS included: 4096 octets of payload in a WRITE with immediate over
/// IPv4.
pub const CUSTOMARY_FRAME: u32 = 4_178;

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchConfig {
    /// The buffer that all ports share. Default 12 MB.
    pub buffer: Bytes,
    /// Priority flow control; `None` lets every priority drop. Default on.
    pub pfc: Option<Pfc>,
    /// A queue of a priority that may drop takes at most this times the free shared buffer. Default 1, in steps of 2⁻¹⁶.
    pub alpha: Ratio,
    /// ECN marking; `None` is off. Default 5 KB, 200 KB, 1 % (the DCQCN paper's).
    pub ecn: Option<Red>,
    /// The rate of the ports that `ecn` is for: queues of others have its lengths in proportion to their rate. `None`, the
    /// default: it is for all as it stands.
    pub ecn_rate: Option<BitsPerSec>,
    /// Where it looks at the queue's length. Default as a packet leaves.
    pub marking: Marking,
    /// Cutting off payloads instead of dropping packets; `None` is off, the default.
    pub trim: Option<Trim>,
    /// How packets of one priority share a port. Default one queue.
    pub queues: Buffering,
    /// Shares of each port's bandwidth for some priorities; those without go before them, the highest first. `None`, the
    /// default: all do.
    pub ets: Option<Shares>,
    /// The largest frame that its links carry, FCS included, for headroom, trimming and the length of turns by
    /// `ets`. Default [`CUSTOMARY_FRAME`].
    pub max_frame: u32,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            buffer: Bytes(12_000_000),
            pfc: Some(Pfc::default()),
            alpha: Ratio::ONE,
            ecn: Some(Red::default()),
            ecn_rate: None,
            marking: Marking::Departure,
            trim: None,
            queues: Buffering::PerPriority,
            ets: None,
            max_frame: CUSTOMARY_FRAME,
        }
    }
}

impl SwitchConfig {
    /// The marking of a port of `rate`.
    pub fn marking_at(&self, rate: BitsPerSec) -> Option<Red> {
        let red = self.ecn?;
        Some(self.ecn_rate.map_or(red, |of| red.scaled(rate, of)))
    }

    /// Octets of the buffer that a switch with these links keeps as headroom and reserve of its lossless priorities: the
    /// rest is shared, and some must be left.
    pub fn set_aside(&self, links: &[LinkSpec]) -> u64 {
        let Some(pfc) = &self.pfc else { return 0 };
        let each = |link: &LinkSpec| {
            let octets = pfc.headroom.octets(*link, self.max_frame).saturating_add(pfc.reserve.0);
            octets.saturating_mul(u64::from(pfc.classes.count_ones()))
        };
        links.iter().map(each).fold(0, u64::saturating_add)
    }
}

/// Priority flow control (IEEE 802.1Qbb).
#[derive(Clone, Debug, PartialEq)]
pub struct Pfc {
    /// The lossless priorities, bit p for priority p. Default priority 3.
    pub classes: u8,
    /// An ingress port and priority may take this times the free shared buffer before its peer is paused. Default
    /// 1/8, in steps of 2⁻¹⁶.
    pub alpha: Ratio,
    /// The rate of the ports that `alpha` is for; see [`Pfc::doublings`]. `None`, the default: it is for all as it stands.
    pub rate: Option<BitsPerSec>,
    /// What is kept for packets that arrive after the decision to pause. Default [`Headroom::Usual`].
    pub headroom: Headroom,
    /// What each ingress port and lossless priority may take before it takes of the shared buffer. Default none.
    pub reserve: Bytes,
    /// How far below the threshold to pause the use must fall before the peer may send again. Default 3 KB.
    pub resume: Bytes,
}

impl Default for Pfc {
    fn default() -> Self {
        Self {
            classes: 1 << 3,
            alpha: Ratio::new(1, 8),
            rate: None,
            headroom: Headroom::Usual,
            reserve: Bytes::ZERO,
            resume: Bytes(3_000),
        }
    }
}

impl Pfc {
    /// How often `alpha` is doubled for a port of `rate`: once for each time that its rate, halved, is still above the one that `alpha` is
    /// for, and not beyond one, as HPCC's simulation has it.
    pub fn doublings(&self, rate: BitsPerSec) -> u8 {
        let Some(of) = self.rate else { return 0 };
        let (mut rate, mut alpha, mut doublings) = (rate.0, self.alpha.fixed(16), 0);
        while rate > of.0 && (1..=1 << 15).contains(&alpha) {
            (rate, alpha, doublings) = (rate / 2, alpha * 2, doublings + 1);
        }
        doublings
    }
}

/// Buffer of an ingress port and lossless priority for what arrives after the decision to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// 3 · rate · delay, two maximum frames and the PAUSE frame: the custom of the field, with the frames that the
    /// custom forgets. A switch is set up before it is known what will be sent: these frames are customary ones
    /// ([`CUSTOMARY_FRAME`]), or the largest that its links do carry where that is more.
    Usual,
    /// 2 · rate · delay, two maximum frames and the PAUSE frame: no octet more is ever needed. One frame may have
    /// begun just before the PAUSE frame could, one at the peer just before the PAUSE took effect.
    Exact,
    /// So much.
    Octets(Bytes),
}

impl Headroom {
    /// Octets for a port on `link`, with frames of up to `max_frame` octets.
    pub fn octets(self, link: LinkSpec, max_frame: u32) -> u64 {
        let (flights, frame) = match self {
            Self::Octets(octets) => return octets.0,
            Self::Usual => (3, max_frame.max(CUSTOMARY_FRAME)),
            Self::Exact => (2, max_frame),
        };
        link.rate.octets_in(link.delay * flights) + 2 * u64::from(frame) + u64::from(PAUSE_FRAME)
    }
}

/// Where a queue's length is looked at for marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// As the packet leaves: what stands behind it.
    Departure,
    /// As the packet arrives: what stands before it.
    Arrival,
}

/// Packet trimming (NDP): a data packet that finds its queue full goes on as its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Octets of a queue beyond which packets are trimmed. `None` is NDP's choice: eight of the largest frames that the
    /// switch's links carry ([`SwitchConfig::max_frame`]).
    pub threshold: Option<Bytes>,
    /// Octets of headers, and of what else travels on their priority, that a queue holds at most. `None` is NDP's
    /// choice: as much as packets have, of which each has 9000 octets there ([`Trim::HEADERS`]), or more if packets have.
    pub headers: Option<Bytes>,
    /// Whether a header for which there is no room goes back to its sender, with the addresses exchanged, rather than
    /// be dropped (NDP §3.2.4).
    pub return_to_sender: bool,
    /// The priority that headers travel on from here.
    pub header_priority: u8,
    /// Whether, half of the time, the queue's last packet is trimmed in place of the arriving one, lest a sender in
    /// phase lose every packet (NDP §3.1).
    pub random_tail: bool,
    /// How many packets may leave on the headers' priority, one after the other, while others wait on a lower one: then one
    /// of those leaves. NDP's switch has ten (NDP §3.1), lest headers starve packets. Zero is for headers that always go
    /// first.
    pub headers_per_packet: u8,
}

impl Trim {
    /// [`Trim::headers_per_packet`] of NDP's switch (NDP §3.1).
    pub const HEADERS_PER_PACKET: u8 = 10;

    /// Octets of headers of NDP's switch: eight jumbograms'. However short packets are, as many senders' headers have to find room.
    pub const HEADERS: u64 = 72_000;

    /// Full packets that a queue holds before packets are trimmed, where nothing else was chosen (NDP §3.1).
    pub const FULL_PACKETS: u32 = 8;

    /// Octets of a queue beyond which packets are trimmed, with frames of up to `max_frame` octets.
    pub fn threshold(&self, max_frame: u32) -> Bytes {
        self.threshold.unwrap_or(Bytes(u64::from(Self::FULL_PACKETS) * u64::from(max_frame)))
    }

    /// Octets of headers that a queue holds at most, with frames of up to `max_frame` octets.
    pub fn headers(&self, max_frame: u32) -> Bytes {
        self.headers.unwrap_or_else(|| self.threshold(max_frame).max(Bytes(Self::HEADERS)))
    }
}

/// How packets of one priority share a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffering {
    /// First come, first served.
    PerPriority,
    /// A queue for each flow, served in turn, a packet each. The length of its own queue decides whether a packet is dropped, trimmed
    /// or marked; where it is full, it is always the arriving packet that is trimmed.
    PerFlow,
}

/// The link of a port, as far as it decides the headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Its rate.
    pub rate: BitsPerSec,
    /// Its propagation delay.
    pub delay: Span,
}

/// Why a switch cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Headroom and reserve of all ports leave no shared buffer.
    Buffer {
        /// Octets that they take.
        needed: u64,
        /// Octets of the buffer.
        buffer: u64,
    },
    /// A buffer of 4 GiB or more.
    TooLarge {
        /// Octets of the buffer.
        buffer: u64,
    },
    /// Priorities are 0 to 7.
    Priority(u8),
    /// The marking probability is above one, or kmin above kmax.
    Marking,
    /// Shares of bandwidth do not make 100 percent, but so many.
    ShareSum(u32),
    /// A single priority has all of the bandwidth that is shared.
    LoneShare,
    /// Headers that payloads were cut off travel on this priority, which has a share: they go before all that have.
    SharedHeaders(u8),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { needed, buffer } => write!(
                f,
                "headroom and reserve take {needed} octets of a buffer of {buffer}; enlarge the buffer or set the headroom"
            ),
            Self::TooLarge { buffer } => write!(f, "a buffer of {buffer} octets; at most 4294967295"),
            Self::Priority(priority) => write!(f, "priority {priority}; they are 0 to 7"),
            Self::Marking => f.write_str("marking needs kmin <= kmax and pmax <= 1"),
            Self::ShareSum(sum) => write!(f, "shares of bandwidth that make {sum}; together they are 100"),
            Self::LoneShare => f.write_str("a share of bandwidth for one priority alone; give two or more"),
            Self::SharedHeaders(priority) => {
                write!(f, "trimmed headers go first, and their priority {priority} has a share; take it away")
            }
        }
    }
}

impl core::error::Error for ConfigError {}
