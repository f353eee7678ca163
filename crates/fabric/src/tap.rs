//! What a tap on a port records, for a capture file.

use crate::packet::Packet;
use crate::packets::Extra;
use roci_units::Instant;

/// A frame that crossed a tapped port.
#[derive(Clone, Debug)]
pub struct Tapped {
    /// When its transmission began, or when it had arrived whole.
    pub at: Instant,
    /// The port.
    pub port: u32,
    /// Whether the port sent it; else it received it.
    pub sent: bool,
    /// The frame.
    pub frame: TappedFrame,
}

/// A recorded frame.
#[derive(Clone, Debug)]
pub enum TappedFrame {
    /// A packet as it was then, with its extra.
    Packet(Packet, Option<Box<Extra>>),
    /// A PAUSE frame for one priority.
    Pause {
        /// The priority.
        priority: u8,
        /// Whether it stops the receiver; else it lets it go on.
        on: bool,
    },
}
