//! A receive path slower than its link: a FIFO that empties at a rate, and pauses the switch before it overflows.

use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, PacketId};
use roci_switch::{Headroom, LinkSpec};
use roci_units::{BitsPerSec, Bytes, Instant, Pace, Span};
use std::collections::VecDeque;

/// How a NIC's receive path is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainConfig {
    /// Octets of frames that it holds; what would overflow it is dropped.
    pub fifo: Bytes,
    /// How fast it empties, in octets of frames.
    pub rate: BitsPerSec,
    /// The priorities that it pauses, bit p for priority p; zero: it drops without a warning.
    pub pause: u8,
    /// The largest frame that may arrive, FCS included: it decides how early to pause.
    pub max_frame: u32,
}

impl DrainConfig {
    /// Octets that may still arrive once a FIFO at a link of `rate` and `delay` has decided to pause it: the link's round
    /// trip, a frame of up to `max_frame` octets begun on each side, the PAUSE frame.
    #[must_use]
    pub fn headroom(rate: BitsPerSec, delay: Span, max_frame: u32) -> u64 {
        Headroom::Exact.octets(LinkSpec { rate, delay }, max_frame)
    }

    /// Octets that a FIFO must hold so that pauses keep it from overflowing: the headroom and a frame.
    #[must_use]
    pub fn least(rate: BitsPerSec, delay: Span, max_frame: u32) -> u64 {
        Self::headroom(rate, delay, max_frame) + u64::from(max_frame)
    }
}

/// How full a receive FIFO is when its NIC pauses the switch, in octets of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    /// The switch is paused when more than this is held.
    pub pause_above: u64,
    /// It goes on when no more than this is left.
    pub resume_below: u64,
}

impl Thresholds {
    /// A switch that is not paused, whatever is held.
    pub(crate) const NEVER: Self = Self { pause_above: u64::MAX, resume_below: 0 };

    /// Those of host `host` with a FIFO of `fifo` octets: the frame that takes it past the threshold has room as well, besides
    /// all that arrives before the pause acts.
    pub(crate) fn of(fifo: Bytes, net: &Net, host: HostId, max_frame: u32) -> Self {
        let least = DrainConfig::least(net.rate_of(host), net.delay_of(host), max_frame);
        let pause_above = fifo.0.saturating_sub(least);
        Self { pause_above, resume_below: pause_above.saturating_sub(RESUME_OFFSET) }
    }
}

/// The receive FIFO of one NIC.
pub(crate) struct Drain {
    config: DrainConfig,
    pace: Pace,
    /// Frames held, and when each has been taken out.
    frames: VecDeque<(PacketId, Instant)>,
    octets: u64,
    thresholds: Thresholds,
    paused: bool,
    pub(crate) dropped: u64,
}

/// How far below the threshold the FIFO must fall before the switch goes on: as a switch's default.
const RESUME_OFFSET: u64 = 3_000;

impl Drain {
    pub(crate) fn new(config: DrainConfig, net: &Net, host: HostId) -> Self {
        Self {
            config,
            pace: Pace::new(config.rate),
            frames: VecDeque::new(),
            octets: 0,
            thresholds: Thresholds::of(config.fifo, net, host, config.max_frame),
            paused: false,
            dropped: 0,
        }
    }

    /// Takes a frame in, or drops it where it has no room.
    pub(crate) fn push(&mut self, net: &mut Net, host: HostId, packet: PacketId) {
        let frame = net.packets()[packet].frame;
        if self.octets + u64::from(frame) > self.config.fifo.0 {
            self.dropped += 1;
            net.free(packet);
            return;
        }
        let begin = self.frames.back().map_or(net.now(), |&(_, done)| done.max(net.now()));
        let done = begin + self.pace.advance(u32::from(frame));
        self.frames.push_back((packet, done));
        self.octets += u64::from(frame);
        if !self.paused && self.octets > self.thresholds.pause_above {
            self.set_paused(net, host, true);
        }
    }

    /// The next frame that has been taken out by now.
    pub(crate) fn pop(&mut self, net: &mut Net, host: HostId) -> Option<PacketId> {
        let &(packet, done) = self.frames.front()?;
        if done > net.now() {
            return None;
        }
        self.frames.pop_front();
        self.octets -= u64::from(net.packets()[packet].frame);
        if self.paused && self.octets <= self.thresholds.resume_below {
            self.set_paused(net, host, false);
        }
        Some(packet)
    }

    /// When the next frame will have been taken out.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.frames.front().map(|&(_, done)| done)
    }

    fn set_paused(&mut self, net: &mut Net, host: HostId, on: bool) {
        self.paused = on;
        for priority in (0..8).filter(|priority| self.config.pause & 1 << priority != 0) {
            net.host_pause(host, priority, on);
        }
    }
}
