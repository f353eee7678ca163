//! The loop between the bridge and its ports.

use super::{Bridge, BridgeConfig, BridgeError, FRAME_MAX, Link, Report};
use crate::clock::Clock;
use crate::io::ethernet::{self, Ethernet, Read};
use crate::io::sys;
use roci_units::{BitsPerSec, Instant, Span};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// Frames that are taken from one port before the others have their turn.
const TURN: usize = 32;
/// What is nearer than this is awaited without sleeping, since to wake takes as long.
const NEAR: Span = Span::from_micros(30);
/// The longest sleep: as often the watch can end it.
const SLEEP: Span = Span::from_millis(100);
/// How long a port is left alone that cannot be read, as a device that is down.
const DOWN: Span = Span::from_millis(20);

/// Octets of the frame check sequence.
const FCS: u32 = 4;
/// Octets of a frame besides the IP packet: addresses and type, a tag, the frame check sequence.
const AROUND: u32 = 14 + 4 + FCS;
/// What a device is taken to be as fast as that does not say: faster than most, for PFC frames then come too often and not too seldom.
const FAST: BitsPerSec = BitsPerSec::from_gbps(100);

/// What a port is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A TAP device of this name, which is created, and goes with the bridge.
    Tap(String),
    /// An interface that exists. What whoever is behind it sends has to be split and summed already.
    Interface(String),
}

impl FromStr for Attachment {
    type Err = String;

    /// `tap:NAME`, or the name of an interface.
    fn from_str(text: &str) -> Result<Self, String> {
        let (is_tap, name) = match text.strip_prefix("tap:") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let fits =
            (1..16).contains(&name.len()) && !name.contains(['/', ' ', ':', '%']) && !name.starts_with('.');
        if !fits {
            return Err(format!(
                "`{name}` is no device's name, which has 1 to 15 letters; a port is tap:r0, or eth1"
            ));
        }
        Ok(if is_tap { Self::Tap(name.to_owned()) } else { Self::Interface(name.to_owned()) })
    }
}

impl Attachment {
    /// The device's name.
    pub fn name(&self) -> &str {
        let (Self::Tap(name) | Self::Interface(name)) = self;
        name
    }

    /// Octets that an IP packet may have on it, as far as is known.
    fn room(&self, mtu: u16) -> u32 {
        match self {
            Self::Tap(_) => mtu.into(),
            Self::Interface(name) => ethernet::mtu(name).unwrap_or(0),
        }
    }

    fn open(&self, mtu: u16) -> Result<Ethernet, BridgeError> {
        let opened = match self {
            Self::Tap(name) => Ethernet::tap(name, mtu),
            Self::Interface(name) => Ethernet::interface(name),
        };
        opened.map_err(|error| BridgeError::Port { name: self.name().to_owned(), error })
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Interface(name) => f.write_str(name),
        }
    }
}

/// Hears what becomes of a bridge that serves.
pub trait Watch {
    /// All ports are there.
    fn up(&self);

    /// How often it is asked. Default 100 ms.
    fn every(&self) -> Span {
        Span::from_millis(100)
    }

    /// The device of the port at this place is there no more, and the port carries nothing from now on.
    fn gone(&self, place: usize);

    /// So much time has passed; whether to go on.
    fn look(&self, served: &Served) -> bool;
}

/// What a bridge has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Since when it serves.
    pub passed: Span,
    /// What it has counted.
    pub report: Report,
    /// By port, frames for the host that its device did not take: it is down, its queue full, or they are longer than its MTU allows.
    pub untaken: Vec<u64>,
    /// By port, frames from the host that the system dropped because they came faster than they were read. Of a TAP device nobody says.
    pub missed: Vec<u64>,
    /// By port, whether its device has gone.
    pub gone: Vec<bool>,
    /// How much later than it should have been a frame was handed over: on average, and at most.
    pub late: (Span, Span),
}

/// The ports, and what is counted of them.
struct Ports {
    devices: Vec<Ethernet>,
    /// Until when each is left alone.
    down: Vec<Instant>,
    /// By port, the error by which its device told that it was down, until a frame comes from there, and when it is looked for next: the system does not
    /// tell again when one that is down goes.
    doubted: Vec<Option<(io::Error, Instant)>>,
    untaken: Vec<u64>,
    missed: Vec<u64>,
    gone: Vec<bool>,
    /// What happened up to then has been dealt with.
    passed: Instant,
    late: (u128, u64, Span),
}

impl Ports {
    fn deliver(&mut self, port: u32, frame: &[u8], late: Span) {
        let place = port as usize;
        self.untaken[place] += u64::from(!self.devices[place].write(frame));
        self.late.0 += u128::from(late.as_ps());
        self.late.1 += 1;
        self.late.2 = self.late.2.max(late);
    }

    /// What came of reading from the device at `place`, which failed with `error`.
    fn failed(&mut self, place: usize, error: io::Error, now: Instant, watch: &dyn Watch) {
        self.down[place] = now + DOWN;
        self.doubted[place] = Some((error, now));
        self.look_for(place, now, watch);
    }

    /// Looks whether the device at `place` is there still, if that is in doubt.
    fn look_for(&mut self, place: usize, now: Instant, watch: &dyn Watch) {
        let Some((error, next)) = &mut self.doubted[place] else { return };
        if *next > now {
            return;
        }
        *next = now + DOWN;
        if self.devices[place].is_gone(error) {
            self.down[place] = Instant::NEVER;
            self.gone[place] = true;
            watch.gone(place);
        }
    }

    fn served(&mut self, report: Report, passed: Span) -> Served {
        for (missed, device) in self.missed.iter_mut().zip(&self.devices) {
            *missed += u64::from(device.missed());
        }
        let mean = self.late.0 / u128::from(self.late.1.max(1));
        let mean = Span::from_ps(u64::try_from(mean).unwrap_or(u64::MAX));
        Served {
            passed,
            report,
            untaken: self.untaken.clone(),
            missed: self.missed.clone(),
            gone: self.gone.clone(),
            late: (mean, self.late.2),
        }
    }
}

/// Serves `ports` until `duration` is over or `watch` has enough, with so much room for a packet in the TAP devices.
///
/// The largest frame of `config` is taken to be no smaller than one of the ports can have: PFC's headroom holds some of these.
///
/// # Errors
/// When a port cannot be had or is named twice, or the bridge makes no sense.
pub fn serve(
    config: &BridgeConfig,
    ports: &[(Attachment, Link)],
    mtu: u16,
    duration: Option<Span>,
    watch: &dyn Watch,
) -> Result<Served, BridgeError> {
    let links: Vec<Link> = ports.iter().map(|(_, link)| *link).collect();
    for (place, (port, _)) in ports.iter().enumerate() {
        if ports[..place].iter().any(|(other, _)| other.name() == port.name()) {
            return Err(BridgeError::Twice(port.name().to_owned()));
        }
    }
    let mut config = config.clone();
    let room = ports.iter().map(|(port, _)| port.room(mtu)).max().unwrap_or(0);
    config.switch.max_frame = config.switch.max_frame.max(longest(room));
    let mut bridge = Bridge::new(&config, &links)?;
    for (port, (attachment, _)) in (0..).zip(ports) {
        if let Attachment::Interface(name) = attachment {
            let rate = ethernet::speed(name).map_or(FAST, |speed| BitsPerSec::from_mbps(speed.into()));
            bridge.set_speed(port, rate);
        }
    }
    let devices = ports.iter().map(|(port, _)| port.open(mtu)).collect::<Result<Vec<_>, _>>()?;
    let mut state = Ports {
        down: vec![Instant::ZERO; devices.len()],
        untaken: vec![0; devices.len()],
        missed: vec![0; devices.len()],
        doubted: devices.iter().map(|_| None).collect(),
        gone: vec![false; devices.len()],
        devices,
        passed: Instant::ZERO,
        late: Default::default(),
    };
    sys::wake_on_time();
    watch.up();
    let clock = Clock::new();
    let start = clock.now();
    let end = duration.map_or(Instant::NEVER, |duration| start + duration);
    let every = watch.every();
    let mut looked = start;
    let mut buffer = vec![0; FRAME_MAX + 64];
    loop {
        let (any, until) = take_in(&mut bridge, &mut state, &mut buffer, &clock, watch);
        let now = clock.now().min(end);
        let until = until.min(now);
        bridge.advance(until, |port, frame, at| state.deliver(port, frame, now.since(at)));
        state.passed = until;
        if now >= end {
            return Ok(state.served(bridge.report(now), now.since(start)));
        }
        if now.since(looked) >= every {
            looked = now;
            let served = state.served(bridge.report(now), now.since(start));
            if !watch.look(&served) {
                return Ok(served);
            }
        }
        if any {
            continue;
        }
        let due = bridge.next_event().unwrap_or(Instant::NEVER).min(looked + every).min(now + SLEEP).min(end);
        let left = due.since(clock.now());
        if left > NEAR {
            sleep(&bridge, &state, left.saturating_sub(NEAR), clock.now())?;
        }
    }
}

/// Octets of the longest frame with room for so many in its IP packet, with frame check sequence: longer ones are refused, however much a device has room for.
fn longest(room: u32) -> u32 {
    let carried = u32::try_from(FRAME_MAX).unwrap_or(u32::MAX) + FCS;
    room.saturating_add(AROUND).min(carried)
}

/// Takes in what is at the ports. Gives whether anything was, and the instant before which no more can come: ports that have more
/// than their turn are behind.
#[expect(clippy::disallowed_methods, reason = "the system tells by this clock when a frame came")]
fn take_in(
    bridge: &mut Bridge,
    state: &mut Ports,
    buffer: &mut [u8],
    clock: &Clock,
    watch: &dyn Watch,
) -> (bool, Instant) {
    let (mut any, mut until) = (false, Instant::NEVER);
    for (port, place) in (0..).zip(0..state.devices.len()) {
        let (now, wall) = (clock.now(), SystemTime::now());
        let wall = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if state.down[place] > now {
            continue;
        }
        state.look_for(place, now, watch);
        let mut last = state.passed;
        for turn in 0..=TURN {
            if turn == TURN {
                until = until.min(last);
            }
            if turn == TURN || !bridge.takes(port) {
                break;
            }
            match state.devices[place].read(buffer) {
                Ok(Read::Frame(length, came)) => {
                    state.doubted[place] = None;
                    // Whoever sets the system's clock moves no frame before those that have been dealt with.
                    last = last.max(came_at(came, now, wall, || clock.now()));
                    bridge.send(port, &buffer[..length], last);
                }
                Ok(Read::Unfinished) => bridge.refuse(port),
                Ok(Read::Nothing) => break,
                Err(error) => {
                    state.failed(place, error, now, watch);
                    break;
                }
            }
            any = true;
        }
    }
    (any, until)
}

/// When a frame came that is read after `now`, which was `wall` by the system's clock, and of which that clock says when it `came`, if the
/// device has it: never before it can have been there, lest it be at its end earlier than links are long, and not later than it was `read`.
fn came_at(came: Option<Duration>, now: Instant, wall: Duration, read: impl Fn() -> Instant) -> Instant {
    let span = |time: Duration| Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 1_000));
    match came {
        None => read(),
        Some(came) if came <= wall => now - span(wall.saturating_sub(came)),
        // While those before it were read.
        Some(came) => now + span(came.saturating_sub(wall)).min(read().since(now)),
    }
}

/// Until something is at a port that takes something, or so long.
fn sleep(bridge: &Bridge, state: &Ports, span: Span, now: Instant) -> io::Result<()> {
    let ports = (0..).zip(&state.devices).zip(&state.down);
    let takes = ports.filter(|((port, _), down)| bridge.takes(*port) && **down <= now);
    let awaited: Vec<(RawFd, bool)> = takes.map(|((_, device), _)| (device.readable(), false)).collect();
    sys::wait(&awaited, Some(Duration::from_nanos(span.as_ps() / 1_000))).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_for_frames_that_are_carried_and_not_for_what_a_device_folds() {
        assert_eq!([1500, 9000, 65_535, u32::MAX].map(longest), [1522, 9022, 9220, 9220]);
        // What 64 devices with room for 65 535 octets, as veth may have, leave of the 12 MB that they share.
        let link =
            roci_switch::config::LinkSpec { rate: BitsPerSec::from_gbps(10), delay: Span::from_micros(1) };
        let shared = |max_frame| {
            let switch = roci_switch::config::SwitchConfig { max_frame, ..BridgeConfig::default().switch };
            (switch.buffer.0 - switch.set_aside(&[link; 64])) / 1_000_000
        };
        assert_eq!([longest(65_535), 65_535 + AROUND].map(shared), [10, 3]);
    }

    #[test]
    fn a_frame_that_came_while_others_were_read_begins_no_earlier_than_it_came() {
        let (now, wall) = (Instant::ZERO + Span::from_millis(7), Duration::from_secs(1_700_000_000));
        let read = now + Span::from_micros(40);
        let at = |came: Option<Duration>| came_at(came, now, wall, || read);
        assert_eq!(at(Some(wall)), now);
        assert_eq!(at(Some(wall - Duration::from_micros(3))), now - Span::from_micros(3));
        assert_eq!(at(Some(wall + Duration::from_micros(11))), now + Span::from_micros(11));
        // Of a TAP device nobody says: it was there when it was read. And nothing comes from the future, or before all time.
        assert_eq!(at(None), read);
        assert_eq!(at(Some(wall + Duration::from_hours(10_000))), read);
        assert_eq!(at(Some(Duration::ZERO)), Instant::ZERO);
    }
}
