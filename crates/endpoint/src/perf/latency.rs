//! One message to and fro, and how long that takes.

use super::channel::News;
use super::report::{Latency, Rate, Row, times};
use super::session::{SENDS_MIN, Session};
use super::{Event, Order, PerfError, Verb, good, lost_after};
use crate::memory::Slice;
use crate::work::{RecvWr, SendWr};
use roci_transport::CompletionKind;
use roci_units::{Instant, Span};
use std::time::Duration;

/// How many turns without news a loop makes before it looks whether it is to end.
const TURNS: u32 = 1 << 14;
/// How long it goes on at most before it looks whether it is to stop: [`Watch`](super::Watch) promises twenty times a second.
const LOOK: Span = Span::from_millis(20);
/// By so much one end may begin after the other at most, where messages are short.
const LATE: Span = Span::from_secs(1);
/// So many messages in a row of which nothing came back over an unreliable connection end a test: nothing passes at all.
const UNRETURNED: u32 = 5;

/// The posts of one size, or the time that is filled with them.
struct Stopwatch {
    size: u64,
    wanted: u64,
    duration: Option<(Span, Span)>,
    posted: Vec<Instant>,
    marked: Marked,
    looked: Instant,
    /// The peer has had enough before our time was over.
    is_early: bool,
    /// Of an unreliable connection.
    losses: Option<Losses>,
}

/// What of an unreliable connection is waited for.
#[derive(Clone, Copy, Debug)]
struct Losses {
    /// What has not come by then is lost.
    after: Span,
    /// When something was posted or came last.
    since: Instant,
    /// Messages in a row of which nothing came back.
    row: u32,
    /// Of a test that lasts a time, the messages in the part that counts of which something came back, and how long they took: silences do
    /// not count.
    counted: u64,
    busy: Span,
}

impl Losses {
    fn new(after: Span, since: Instant) -> Self {
        Self { after, since, row: 0, counted: 0, busy: Span::ZERO }
    }
}

/// When messages were posted, of a test that lasts a time.
#[derive(Clone, Copy, Debug, Default)]
struct Marked {
    /// The first of them, and the last.
    begin: Option<Instant>,
    last: Instant,
    /// All of them, and those in the part that counts.
    count: u64,
    counted: u64,
}

impl Marked {
    fn mark(&mut self, now: Instant, (duration, margin): (Span, Span)) {
        let passed = now.since(*self.begin.get_or_insert(now));
        (self.last, self.count) = (now, self.count + 1);
        if passed >= margin && passed.as_ps() + margin.as_ps() <= duration.as_ps() {
            self.counted += 1;
        }
    }

    /// Whether nothing was posted for longer than ends begin after each other and than messages take.
    fn is_silent(&self, now: Instant) -> bool {
        let silence = now.since(self.last).as_ps();
        self.begin.is_some_and(|begin| {
            let each = self.last.since(begin).as_ps() / self.count.saturating_sub(1).max(1);
            self.count > 1 && silence > LATE.as_ps().max(3 * each)
        })
    }

    /// The part of the time that counts and has passed; `None` where so much of it is missing that the peer has gone before the
    /// test was done.
    ///
    /// Both ends begin and end by their own clocks, so one is always a little before the other: by some messages, or by what a thread
    /// waits for its turn. How long a message takes is told by all that were posted. The time that counts, divided by those in it, would
    /// not do: an end that stood still until its peer gave it up has one or two there, each of which would seem to take all of it.
    fn passed(&self, is_early: bool, (duration, margin): (Span, Span)) -> Option<Span> {
        let time = Span::from_ps(duration.as_ps().saturating_sub(2 * margin.as_ps()));
        let begin = self.begin?;
        let each = match self.count {
            // What of them is a message, and what the silence after it?
            ..3 if is_early => return None,
            ..2 => duration,
            count => Span::from_ps(self.last.since(begin).as_ps() / (count - 1)),
        };
        let missing = (begin + duration).since(self.last + margin);
        let usual = (time.as_ps() / 10).min(LATE.as_ps()).max(3 * each.as_ps());
        match missing.as_ps() {
            missing if missing > usual => None,
            missing if is_early => {
                Some(Span::from_ps((time.as_ps() - missing + each.as_ps()).min(time.as_ps())))
            }
            _ => Some(time),
        }
    }
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
            marked: Marked::default(),
            looked: now,
            is_early: false,
            losses: session.options.is_unreliable().then(|| Losses::new(lost_after(size), now)),
        }
    }

    /// Something has come.
    fn heard(&mut self, now: Instant) {
        if let Some(losses) = &mut self.losses {
            (losses.since, losses.row) = (now, 0);
        }
    }

    /// Whether what was posted last is lost, or its answer, and something is to be posted anew.
    ///
    /// # Errors
    /// Where that is in vain.
    fn is_lost(&mut self, now: Instant) -> Result<bool, PerfError> {
        let Some(losses) = self.losses.as_mut().filter(|losses| now.since(losses.since) >= losses.after)
        else {
            return Ok(false);
        };
        (losses.since, losses.row) = (now, losses.row + 1);
        if losses.row > UNRETURNED { Err(PerfError::Unreturned(UNRETURNED)) } else { Ok(true) }
    }

    /// A message is about to be posted.
    fn mark(&mut self, now: Instant) {
        if let Some(losses) = &mut self.losses {
            let took = now.since(self.marked.last);
            let counts = |(duration, margin): (Span, Span)| {
                let passed = self.marked.begin.map(|begin| now.since(begin));
                passed.is_some_and(|passed| {
                    passed >= margin && passed.as_ps() + margin.as_ps() <= duration.as_ps()
                })
            };
            if took < losses.after && self.duration.is_some_and(counts) {
                losses.counted += 1;
                losses.busy += took;
            }
            losses.since = now;
        }
        match self.duration {
            Some(time) => self.marked.mark(now, time),
            None => self.posted.push(now),
        }
    }

    /// Whether the time is over.
    fn is_over(&self, now: Instant) -> bool {
        match (self.duration, self.marked.begin) {
            (Some((duration, _)), Some(begin)) => now.since(begin) >= duration,
            _ => false,
        }
    }

    /// The same of messages to and fro.
    ///
    /// # Errors
    ///
    /// Where there were none of late: one of the ends stood still as the time ended, and is given up.
    fn is_done(&self, now: Instant) -> Result<bool, PerfError> {
        let is_over = self.is_over(now);
        let is_silent = self.losses.is_none() && self.marked.is_silent(now);
        if is_over && is_silent { Err(PerfError::Left) } else { Ok(is_over) }
    }

    /// What was found; of each message too where that is asked for.
    ///
    /// # Errors
    ///
    /// Where the peer left so early that the time which counts is not filled, or nothing was found in it.
    fn row(&self, session: &mut Session<'_>, ways: f64) -> Result<Row, PerfError> {
        // Who waited for what was lost was not measuring.
        let most = self.losses.map_or(Span::MAX, |losses| losses.after);
        if let Some(order) = session.options.times {
            let mut each = times(&self.posted, ways, most);
            if order == Order::Sorted {
                each.sort_by(f64::total_cmp);
            }
            session.watch.event(Event::Times(&each));
        }
        let Some(time) = self.duration else {
            return Ok(Row::Latency(Latency::new(self.size, &self.posted, ways, most)));
        };
        let counted = self.losses.map_or(self.marked.counted, |losses| losses.counted);
        if counted == 0 {
            // One that stood still for longer than the test may not have seen yet that its peer has given it up.
            let is_alone = session.channel.news() == News::Gone;
            return Err(if is_alone { PerfError::Left } else { PerfError::Nothing });
        }
        let passed = match self.losses {
            None => self.marked.passed(self.is_early, time).ok_or(PerfError::Left)?,
            Some(losses) => losses.busy,
        };
        Ok(Row::Rate(Rate::new(self.size, counted, passed, ways)))
    }

    /// Whether the peer has had enough, of a test that lasts a time.
    fn is_left(&mut self, session: &mut Session<'_>) -> Result<bool, PerfError> {
        let is_timed = self.duration.is_some() && self.marked.begin.is_some();
        match session.channel.news() {
            News::Silence => Ok(false),
            // What has not come by now is lost, and it was not the first.
            News::Spoke if self.losses.is_some() => {
                self.is_early = is_timed;
                Ok(true)
            }
            News::Gone if !is_timed => Err(PerfError::Left),
            _ => {
                self.is_early = is_timed;
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
        let (mut sent, mut ended, mut received, mut lost, mut turns) = (0u64, 0u64, 0u64, 0u64, 0u32);
        let mut my_turn = session.is_client();
        let inline_max = session.inline_max();
        while received + lost < self.wanted || sent < self.wanted || ended < sent {
            let now = device.inner.now();
            if watch.is_done(now)? {
                break;
            }
            watch.look(session, now, sent)?;
            // Only one serves, or there would be two balls.
            if !my_turn && session.is_client() && watch.is_lost(now)? {
                lost += 1;
                my_turn = true;
            }
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
            watch.heard(now);
            if let Some(buffer) = completion.into_buffer()
                && self.offered < self.wanted
            {
                session.qps[0].post_recv(RecvWr::new(buffer))?;
                self.offered += 1;
            }
        }
        // Nobody polls from now on, and the peer waits for the last acknowledgement.
        device.inner.hand_over();
        session.sent += sent;
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
    let (mut sent, mut ended, mut received, mut repeated, mut turns) = (0u64, 0u64, 0u64, 0u64, 0u32);
    let wanted = watch.wanted;
    let mut is_alone = false;
    while sent < wanted || ended < wanted.saturating_add(repeated) || received < wanted {
        let now = device.inner.now();
        if watch.is_done(now)? {
            break;
        }
        watch.look(session, now, sent)?;
        let has_room = sent + repeated - ended < u64::from(SENDS_MIN);
        let is_due = sent < wanted && if session.is_client() { sent < received } else { sent == received };
        let is_ready = has_room && (octets <= inline_max || buffer.is_some());
        // What is written again is seen once, whichever of the two was lost: the last of ours, or the peer's answer, of which it thinks
        // the same.
        let repeats = is_ready && !is_due && sent > 0 && received < wanted && watch.is_lost(now)?;
        if is_ready && (is_due || repeats) {
            if repeats {
                repeated += 1;
            } else {
                watch.mark(now);
                sent += 1;
            }
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
                watch.heard(now);
            } else {
                device.inner.pause();
            }
        }
        turns += 1;
        if turns.is_multiple_of(TURNS) {
            // The peer leaves when it has all acknowledged. That may be before we have looked at its last message, or
            // were acknowledged ours; so the end of the conversation is one only if nothing has come since it was seen.
            // The last of an unreliable connection may be lost, and nobody is there to write it again.
            let all_but_one = watch.losses.is_some() && sent == wanted && received + 1 == wanted;
            if is_alone && (sent == wanted && received == wanted || all_but_one || watch.is_left(session)?) {
                break;
            }
            is_alone = session.channel.news() != News::Silence;
        }
    }
    // As above, while figures are made.
    device.inner.hand_over();
    session.sent += sent + repeated;
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

/// READs, or atomics, one after the other.
pub(super) fn asked(session: &mut Session<'_>, size: u32) -> Result<Row, PerfError> {
    let mut watch = Stopwatch::new(session, size);
    let device = session.place.device.clone();
    let octets = usize::try_from(size).unwrap_or(usize::MAX);
    let mut buffer = Some(session.place.room.buffer(0..octets)?);
    let (mut done, mut turns) = (0, 0u32);
    while done < watch.wanted {
        let now = device.inner.now();
        if watch.is_over(now) {
            break;
        }
        watch.look(session, now, done)?;
        watch.mark(now);
        let target = session.target(0);
        let request = match (session.options.test.verb, buffer.take()) {
            (Verb::Atomic { swap: false }, _) => SendWr::fetch_add(target, 1),
            (Verb::Atomic { swap: true }, _) => SendWr::compare_swap(target, 0, 1),
            (_, Some(buffer)) => SendWr::read(buffer, target),
            (_, None) => return Err(PerfError::Refused("a READ brought no buffer back".to_owned())),
        };
        session.qps[0].post_send(request)?;
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
        buffer = completion.into_buffer();
    }
    watch.row(session, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute, of which two seconds at both ends do not count.
    const TIME: (Span, Span) = (Span::from_secs(60), Span::from_secs(2));

    fn marked(at_ms: impl IntoIterator<Item = u64>) -> Marked {
        let mut marked = Marked::default();
        at_ms.into_iter().for_each(|ms| marked.mark(Instant::ZERO + Span::from_millis(1000 + ms), TIME));
        marked
    }

    #[test]
    fn what_nothing_answers_for_long_is_lost_and_counts_for_nothing_and_all_of_it_ends_the_test() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut watch = Stopwatch {
            size: 2,
            wanted: u64::MAX,
            duration: Some(TIME),
            posted: Vec::new(),
            marked: Marked::default(),
            looked: at(0),
            is_early: false,
            losses: Some(Losses::new(Span::from_secs(1), at(0))),
        };
        for ms in [1000, 3000, 3010] {
            watch.mark(at(ms));
        }
        assert!(!watch.is_lost(at(4009)).unwrap() && watch.is_lost(at(4010)).unwrap());
        assert!(!watch.is_lost(at(5009)).unwrap(), "it is told once");
        watch.mark(at(4011));
        watch.heard(at(4012));
        for ms in [4030, 60_990, 62_000] {
            watch.mark(at(ms));
        }
        let losses = watch.losses.unwrap();
        assert_eq!((losses.counted, losses.busy), (2, Span::from_millis(10 + 19)));
        let mut lost = 0;
        let why = (63_000..).step_by(1000).find_map(|ms| match watch.is_lost(at(ms)) {
            Ok(is) => {
                lost += u32::from(is);
                None
            }
            Err(error) => Some(error),
        });
        assert!(matches!(why, Some(PerfError::Unreturned(UNRETURNED))) && lost == UNRETURNED, "{why:?}");
    }

    #[test]
    fn one_that_stood_still_while_its_peer_gave_it_up_makes_no_figure_of_what_came_last() {
        for last in [vec![2500], vec![2500, 2501], vec![2500, 2501, 2502]] {
            let marked = marked((0..1200).chain(last));
            assert!((1..=3).contains(&marked.counted), "{marked:?}");
            assert_eq!(marked.passed(true, TIME), None, "{marked:?}");
        }
        // Nor where it stood still in the part that counts, or before there was a second message.
        assert_eq!(marked((0..30_000).chain([32_000])).passed(true, TIME), None);
        assert_eq!(marked((0..53_000).chain([55_000])).passed(true, TIME), None);
        assert_eq!(marked([0, 40_000]).passed(true, TIME), None);
    }

    #[test]
    fn who_has_posted_nothing_for_long_as_the_time_ends_stood_still_or_waits_for_one_that_does() {
        let silent = |marked: Marked, ms: u64| marked.is_silent(Instant::ZERO + Span::from_millis(1000 + ms));
        assert!(!silent(marked(0..59_100), 60_000), "a peer whose time is over a little before ours");
        assert!(silent(marked(0..58_500), 60_000));
        assert!(silent(marked(0..59_500), 75_000), "however late it stood still");
        // Twenty seconds a message: the next one is not late.
        assert!(!silent(marked([0, 20_000, 40_000]), 60_000));
        assert!(silent(marked([0, 20_000, 40_000]), 100_001));
        assert!(!silent(marked([0]), 60_000), "of one nobody knows how long it takes");
    }

    #[test]
    fn a_peer_whose_time_is_over_a_little_before_ours_makes_the_time_that_counts_no_longer_than_it_was() {
        let whole = Span::from_secs(56);
        assert_eq!(marked(0..60_000).passed(true, TIME), Some(whole));
        assert_eq!(marked(0..57_501).passed(true, TIME), Some(Span::from_millis(55_501)));
        // Twenty seconds a message: the next one was not to be waited for.
        assert_eq!(marked([0, 20_000, 40_000]).passed(false, TIME), Some(whole));
        assert_eq!(marked([0, 20_000, 40_000]).passed(true, TIME), Some(whole));
        assert_eq!(marked([0]).passed(false, (Span::from_secs(60), Span::ZERO)), Some(Span::from_secs(60)));
    }
}
