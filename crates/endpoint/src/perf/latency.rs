//! One message to and fro, and how long that takes.

use super::channel::News;
use super::report::{Latency, Rate, Row, times};
use super::session::{SENDS_MIN, Session};
use super::{Event, Order, PerfError, good};
use crate::memory::Slice;
use crate::work::{RecvWr, SendWr};
use roci_transport::CompletionKind;
use roci_units::{Instant, Span};
use std::time::Duration;

/// How many turns without news a loop makes before it looks whether it is to end.
const TURNS: u32 = 1 << 14;
/// How long it goes on at most before it looks whether it is to stop: [`Watch`](super::Watch) promises twenty times a second.
const LOOK: Span = Span::from_millis(20);

/// The posts of one size, or the time that is filled with them.
struct Stopwatch {
    size: u64,
    wanted: u64,
    duration: Option<(Span, Span)>,
    posted: Vec<Instant>,
    begin: Option<Instant>,
    last: Instant,
    counted: u64,
    looked: Instant,
    /// The peer has ended the conversation.
    is_alone: bool,
}

impl Stopwatch {
    fn new(session: &Session<'_>, size: u32) -> Self {
        let span = |time: Duration| Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let (now, duration) = (session.place.device.inner.now(), session.options.duration);
        let wanted = if duration.is_some() { u64::MAX } else { u64::from(session.options.iterations) };
        Self {
            size: u64::from(size),
            wanted,
            duration: duration.map(|duration| (span(duration), span(session.options.margin(duration)))),
            posted: Vec::new(),
            begin: None,
            last: now,
            counted: 0,
            looked: now,
            is_alone: false,
        }
    }

    /// A message is about to be posted.
    fn mark(&mut self, now: Instant) {
        let begin = *self.begin.get_or_insert(now);
        self.last = now;
        let Some((duration, margin)) = self.duration else { return self.posted.push(now) };
        let passed = now.since(begin);
        if passed >= margin && passed.as_ps() + margin.as_ps() <= duration.as_ps() {
            self.counted += 1;
        }
    }

    /// Whether the time is over.
    fn is_over(&self, now: Instant) -> bool {
        match (self.duration, self.begin) {
            (Some((duration, _)), Some(begin)) => now.since(begin) >= duration,
            _ => false,
        }
    }

    /// What was found; of each message too where that is asked for.
    ///
    /// # Errors
    ///
    /// Where the peer left so early that the time which counts is not filled: what it sent would be divided by all of it.
    fn row(&self, session: &Session<'_>, ways: f64) -> Result<Row, PerfError> {
        if let Some(order) = session.options.times {
            let mut each = times(&self.posted, ways);
            if order == Order::Sorted {
                each.sort_by(f64::total_cmp);
            }
            session.watch.event(Event::Times(&each));
        }
        match self.duration {
            None => Ok(Row::Latency(Latency::new(self.size, &self.posted, ways))),
            Some(_) if self.counted == 0 && self.is_alone => Err(PerfError::Left),
            Some(_) if self.counted == 0 => Err(PerfError::Nothing),
            Some((duration, margin)) => {
                let time = Span::from_ps(duration.as_ps() - 2 * margin.as_ps());
                let missing =
                    self.begin.map_or(duration, |begin| (begin + duration).since(self.last + margin));
                // Both ends begin and end by their own clocks, so one is always a little before the other.
                let usual = (time.as_ps() / 10).max(3 * time.as_ps() / self.counted);
                if missing.as_ps() > usual {
                    return Err(PerfError::Left);
                }
                Ok(Row::Rate(Rate::new(self.size, self.counted, time, ways)))
            }
        }
    }

    /// Whether the peer has had enough, of a test that lasts a time.
    fn is_left(&mut self, session: &mut Session<'_>) -> Result<bool, PerfError> {
        let is_timed = self.duration.is_some() && self.begin.is_some();
        match session.channel.news() {
            News::Silence => Ok(false),
            News::Gone if !is_timed => Err(PerfError::Left),
            news => {
                self.is_alone = news == News::Gone;
                Ok(is_timed)
            }
        }
    }

    /// What to do every now and then, whether messages come or not.
    fn look(&mut self, session: &Session<'_>, now: Instant, sent: u64) -> Result<(), PerfError> {
        if now.since(self.looked) < LOOK {
            return Ok(());
        }
        self.looked = now;
        session.progress(sent, if self.duration.is_some() { 0 } else { self.wanted });
        if session.watch.stopped() {
            return Err(PerfError::Stopped);
        }
        Ok(())
    }
}

/// SENDs to and fro.
pub(super) struct Ping {
    size: u32,
    message: Slice,
    offered: u64,
    wanted: u64,
}

impl Ping {
    /// Makes ready, and posts receives.
    pub(super) fn new(session: &Session<'_>, size: u32) -> Result<Self, PerfError> {
        let octets = usize::try_from(size).unwrap_or(usize::MAX);
        let wanted =
            if session.options.duration.is_some() { u64::MAX } else { u64::from(session.options.iterations) };
        let depth = usize::try_from(session.options.rx_depth).unwrap_or(usize::MAX);
        let depth = depth.min(session.place.room.len() / octets).min(16);
        let mut offered = 0;
        for slot in 0..depth {
            if offered < wanted {
                let buffer = session.place.room.buffer(slot * octets..(slot + 1) * octets)?;
                session.qps[0].post_recv(RecvWr::new(buffer))?;
                offered += 1;
            }
        }
        Ok(Self { size, message: session.place.message(octets)?, offered, wanted })
    }

    fn request(&self, inline_max: usize) -> SendWr {
        let octets = self.message.as_slice().unwrap_or_default();
        if octets.len() <= inline_max {
            SendWr::send_inline(octets)
        } else {
            SendWr::send(self.message.clone())
        }
    }

    /// Sends and waits in turns; the client begins.
    pub(super) fn run(&mut self, session: &mut Session<'_>) -> Result<Row, PerfError> {
        let mut watch = Stopwatch::new(session, self.size);
        let device = session.place.device.clone();
        let (mut sent, mut ended, mut received, mut turns) = (0u64, 0u64, 0u64, 0u32);
        let mut my_turn = session.is_client();
        let inline_max = session.inline_max();
        while received < self.wanted || sent < self.wanted || ended < sent {
            let now = device.inner.now();
            if watch.is_over(now) {
                break;
            }
            watch.look(session, now, sent)?;
            if my_turn && sent < self.wanted && sent - ended < u64::from(SENDS_MIN) {
                watch.mark(now);
                session.qps[0].post_send(self.request(inline_max))?;
                sent += 1;
                my_turn = false;
            }
            let Some(completion) = session.place.cq.poll() else {
                device.inner.pause();
                turns += 1;
                if turns.is_multiple_of(TURNS) && watch.is_left(session)? {
                    break;
                }
                continue;
            };
            let completion = good(completion)?;
            if completion.opcode != CompletionKind::Recv {
                ended += 1;
                continue;
            }
            received += 1;
            my_turn = true;
            if let Some(buffer) = completion.into_buffer()
                && self.offered < self.wanted
            {
                session.qps[0].post_recv(RecvWr::new(buffer))?;
                self.offered += 1;
            }
        }
        // Nobody polls from now on, and the peer waits for the last acknowledgement.
        device.inner.hand_over();
        watch.row(session, 2.0)
    }
}

/// WRITEs to and fro: each side watches the last octet of what the other writes, which counts the messages.
/// The server begins, as perftest's does.
pub(super) fn write(session: &mut Session<'_>, size: u32) -> Result<Row, PerfError> {
    let mut watch = Stopwatch::new(session, size);
    let device = session.place.device.clone();
    let octets = usize::try_from(size).unwrap_or(usize::MAX);
    let target = session.target(0);
    let mut buffer = Some(session.place.room.buffer(0..octets)?);
    let inline_max = session.inline_max();
    let mut small = vec![0; octets.min(inline_max)];
    let (mut sent, mut ended, mut received, mut turns) = (0u64, 0u64, 0u64, 0u32);
    let wanted = watch.wanted;
    let mut is_alone = false;
    while sent < wanted || ended < wanted || received < wanted {
        let now = device.inner.now();
        if watch.is_over(now) {
            break;
        }
        watch.look(session, now, sent)?;
        let has_room = sent - ended < u64::from(SENDS_MIN);
        let may_send = has_room
            && sent < wanted
            && (if session.is_client() { sent < received } else { sent == received });
        if may_send && (octets <= inline_max || buffer.is_some()) {
            watch.mark(now);
            sent += 1;
            let count = u8::try_from(sent & 0xff).unwrap_or(0);
            let request = if octets <= inline_max {
                small[octets - 1] = count;
                SendWr::write_inline(&small, target)
            } else {
                let Some(mut lent) = buffer.take() else { continue };
                lent.write(octets - 1, &[count])?;
                SendWr::write(lent, target)
            };
            session.qps[0].post_send(request)?;
        }
        while let Some(completion) = session.place.cq.poll() {
            let completion = good(completion)?;
            ended += 1;
            for slice in completion.into_slices() {
                buffer = slice.try_into_buffer().ok();
            }
        }
        if received < wanted {
            let mut last = [0];
            session.place.open.read(octets - 1, &mut last)?;
            if u64::from(last[0]) == (received + 1) & 0xff {
                received += 1;
                (turns, is_alone) = (0, false);
            } else {
                device.inner.pause();
            }
        }
        turns += 1;
        if turns.is_multiple_of(TURNS) {
            // The peer leaves when it has all acknowledged. That may be before we have looked at its last message, or
            // were acknowledged ours; so the end of the conversation is one only if nothing has come since it was seen.
            if is_alone && (sent == wanted && received == wanted || watch.is_left(session)?) {
                break;
            }
            is_alone = session.channel.news() != News::Silence;
        }
    }
    // As above, while figures are made.
    device.inner.hand_over();
    watch.row(session, 2.0)
}

/// Stays a little, so that the peer gets acknowledged what it wrote last.
pub(super) fn linger(session: &mut Session<'_>) {
    let device = session.place.device.clone();
    let begin = device.inner.now();
    while device.inner.now().since(begin) < Span::from_millis(200) {
        let _ = session.place.cq.wait(Duration::from_millis(20));
    }
}

/// READs one after the other.
pub(super) fn read(session: &mut Session<'_>, size: u32) -> Result<Row, PerfError> {
    let mut watch = Stopwatch::new(session, size);
    let device = session.place.device.clone();
    let octets = usize::try_from(size).unwrap_or(usize::MAX);
    let mut buffer = session.place.room.buffer(0..octets)?;
    let (mut done, mut turns) = (0, 0u32);
    while done < watch.wanted {
        let now = device.inner.now();
        if watch.is_over(now) {
            break;
        }
        watch.look(session, now, done)?;
        watch.mark(now);
        session.qps[0].post_send(SendWr::read(buffer, session.target(0)))?;
        let completion = loop {
            if let Some(completion) = session.place.cq.poll() {
                break good(completion)?;
            }
            device.inner.pause();
            watch.look(session, device.inner.now(), done)?;
            // A server only listens, and goes after us.
            turns += 1;
            if turns.is_multiple_of(TURNS) && session.channel.news() == News::Gone {
                return Err(PerfError::Left);
            }
        };
        done += 1;
        match completion.into_buffer() {
            Some(back) => buffer = back,
            None => return Err(PerfError::Refused("a READ brought no buffer back".to_owned())),
        }
    }
    watch.row(session, 1.0)
}
