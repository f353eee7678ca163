//! Many messages at once, and how much goes through.

use super::channel::News;
use super::posting::{Limit, Portions};
use super::report::{Bandwidth, PEAK_MAX, Peak};
use super::session::Session;
use super::{PATIENCE, PerfError, Verb, gather, lost_after, reason};
use crate::memory::Slice;
use crate::work::{RecvWr, SendWr, WorkCompletion};
use roci_transport::CompletionKind;
use roci_units::{Instant, Span};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Messages of one size on all queue pairs, in one direction or in both.
pub(super) struct Flows {
    size: u32,
    message: Slice,
    flows: Vec<Flow>,
    /// Messages that each queue pair sends and receives; without end where the time counts.
    each: u64,
    sends: bool,
    receives: bool,
    portions: Portions,
    limit: Option<Limit>,
    /// The queue pair that is asked first, where not all may send at once.
    first: usize,
    /// When something had ended last.
    heard: Instant,
}

/// One queue pair.
struct Flow {
    posted: u64,
    done: u64,
    /// Places for READs that are not lent at the moment, and those that are, in the order of the requests.
    free: Vec<usize>,
    lent: VecDeque<usize>,
    /// Receives posted, and filled.
    offered: u64,
    received: u64,
}

impl Flows {
    /// Makes ready, and posts receives.
    pub(super) fn new(
        session: &Session<'_>,
        size: u32,
        sends: bool,
        receives: bool,
    ) -> Result<Self, PerfError> {
        let options = session.options;
        let octets = usize::try_from(size).unwrap_or(usize::MAX);
        let each = if options.duration.is_some() { u64::MAX } else { u64::from(options.iterations) };
        let reads = options.test.verb == Verb::Read;
        let place = &session.place;
        let depth = if receives { options.rx_depth } else { options.tx_depth };
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let depth = depth.min(place.room.len() / octets / session.qps.len()).max(1);
        let mut flows = Vec::new();
        for (index, qp) in session.qps.iter().enumerate() {
            let (free, lent) = (Vec::new(), VecDeque::new());
            let mut flow = Flow { posted: 0, done: 0, free, lent, offered: 0, received: 0 };
            for slot in index * depth..(index + 1) * depth {
                if reads {
                    flow.free.push(slot);
                } else if receives && flow.offered < each {
                    let buffer = place.room.buffer(span_of(slot, octets))?;
                    qp.post_recv(RecvWr::new(buffer).wr_id(index as u64))?;
                    flow.offered += 1;
                }
            }
            flows.push(flow);
        }
        let sent_at_once = u64::from(options.tx_depth).min(if reads { depth as u64 } else { u64::MAX });
        Ok(Self {
            size,
            message: place.message(octets)?,
            flows,
            each,
            sends,
            receives,
            portions: Portions::new(options.post_list, options.cq_mod, sent_at_once),
            limit: options.rate_limit.map(|rate| Limit::new(rate, size, place.mtu.octets())),
            first: 0,
            heard: Instant::ZERO,
        })
    }

    /// Moves the messages, of which none was under way before `ready`.
    pub(super) fn run(&mut self, session: &mut Session<'_>, ready: Instant) -> Result<Bandwidth, PerfError> {
        let total = self.each.saturating_mul(self.flows.len() as u64);
        let device = session.place.device.clone();
        // All of a number may be there when the first is seen, in no time at all.
        let mut begin = (!self.sends && session.options.duration.is_none()).then_some(ready);
        let mut sample = Sample::new(session);
        // Of a time `each` is without end: perftest's duration tests have no peak.
        let mut peak = (session.options.peak && self.sends && self.each <= PEAK_MAX).then(Peak::default);
        let (mut last, mut shown, mut counted) = (Instant::ZERO, Instant::ZERO, 0u64);
        let mut completions = Vec::new();
        loop {
            let now = device.inner.now();
            if self.sends {
                begin.get_or_insert(now);
                self.fill(session, now, &mut peak)?;
            }
            let held = self.limit.filter(|_| self.sends).map_or(Duration::ZERO, |limit| limit.wait(now));
            let patience = if held.is_zero() { PATIENCE } else { held.min(PATIENCE) };
            gather(&session.place.cq, &mut completions, patience)?;
            let idle = completions.is_empty() && patience == PATIENCE;
            let now = device.inner.now();
            if let Some(reason) = reason(&completions) {
                return Err(reason);
            }
            let mut moved = 0;
            if !completions.is_empty() {
                self.heard = now;
            }
            for completion in completions.drain(..) {
                moved += self.take(session, completion)?;
            }
            if moved > 0 {
                begin.get_or_insert(now);
                last = now;
                counted += moved;
                let span = begin.map_or(Span::ZERO, |begin| now.since(begin));
                sample.count(span, moved);
                if let Some(peak) = &mut peak {
                    peak.end(now, moved);
                }
            }
            let passed = begin.map_or(Span::ZERO, |begin| now.since(begin));
            let ended = match sample.duration {
                Some(duration) if self.sends => passed >= duration,
                Some(_) if idle => match session.channel.news() {
                    News::Silence => false,
                    News::Spoke => true,
                    News::Gone => return Err(PerfError::Left),
                },
                Some(_) => false,
                None if session.options.is_unreliable() && self.receives && idle => {
                    self.is_done() || self.is_given_up(session, now)?
                }
                None => self.is_done(),
            };
            if ended {
                break;
            }
            if now.since(shown) > Span::from_millis(100) || idle {
                shown = now;
                match sample.duration {
                    Some(duration) => {
                        session.progress(passed.as_ps() / 1_000_000_000, duration.as_ps() / 1_000_000_000)
                    }
                    None => session.progress(counted, total),
                }
                if session.watch.stopped() {
                    return Err(PerfError::Stopped);
                }
                if idle && sample.duration.is_none() && session.channel.news() == News::Gone {
                    return Err(PerfError::Left);
                }
            }
        }
        // Nobody polls from now on, and the peer waits for the last acknowledgement.
        device.inner.hand_over();
        session.sent += self.flows.iter().map(|flow| flow.posted).sum::<u64>();
        let size = u64::from(self.size);
        if sample.duration.is_some() {
            // A peer that takes part waits until we say that the time is over.
            if self.sends && session.channel.news() == News::Gone {
                return Err(PerfError::Left);
            }
            if self.sends && sample.counted == 0 {
                return Err(PerfError::Nothing);
            }
            let length = sample.length(last.since(begin.unwrap_or(last)));
            return Ok(Bandwidth::new(size, sample.counted, length, None));
        }
        let first = begin.unwrap_or(last);
        let peak = peak.map(|peak| peak.rate() * size as f64);
        // Of an unreliable connection fewer may have come.
        Ok(Bandwidth::new(size, counted, last.since(first), peak))
    }

    /// Whether what has not come over an unreliable connection is lost: the peer is done, as it says, or where both ends send, so are we, and
    /// for long nothing has come.
    fn is_given_up(&self, session: &mut Session<'_>, now: Instant) -> Result<bool, PerfError> {
        match session.channel.news() {
            News::Gone => Err(PerfError::Left),
            News::Spoke => Ok(true),
            News::Silence => {
                let is_sent = self.sends && self.flows.iter().all(|flow| flow.done == self.each);
                Ok(is_sent && now.since(self.heard) >= lost_after(self.size))
            }
        }
    }

    /// Posts as many requests as the depth allows.
    fn fill(
        &mut self,
        session: &Session<'_>,
        now: Instant,
        peak: &mut Option<Peak>,
    ) -> Result<(), PerfError> {
        let depth = u64::from(session.options.tx_depth);
        let verb = session.options.test.verb;
        let octets = self.message.len();
        let is_inline = octets <= session.inline_max();
        let pairs = self.flows.len();
        // Where not all may go, each queue pair has its share, and another one is the first each time.
        let mut allowed = self.limit.as_mut().map_or(u64::MAX, |limit| limit.allows(now));
        let share = allowed.div_ceil(pairs as u64);
        for index in (0..pairs).map(|turn| (self.first + turn) % pairs) {
            let (qp, flow) = (&session.qps[index], &mut self.flows[index]);
            let mut share = share.min(allowed);
            while share > 0 {
                let mut room = depth - (flow.posted - flow.done);
                if verb == Verb::Read {
                    room = room.min(flow.free.len() as u64);
                }
                // A list goes as a whole, and what it takes beyond the share is waited for afterwards.
                let left = self.each - flow.posted;
                let left = if session.options.post_list.is_some() { left } else { left.min(share) };
                let next = self.portions.next(room, left);
                if next == 0 {
                    break;
                }
                let target = session.target(index);
                let (free, lent, before) = (&mut flow.free, &mut flow.lent, flow.posted);
                let requests = (before..before + next).map_while(|number| {
                    let request = match verb {
                        Verb::Write if is_inline => {
                            SendWr::write_inline(self.message.as_slice().unwrap_or_default(), target)
                        }
                        Verb::Send if is_inline => {
                            SendWr::send_inline(self.message.as_slice().unwrap_or_default())
                        }
                        Verb::Write => SendWr::write(self.message.clone(), target),
                        Verb::Send => SendWr::send(self.message.clone()),
                        Verb::Read => {
                            let slot = free.pop()?;
                            lent.push_back(slot);
                            SendWr::read(session.place.room.buffer(span_of(slot, octets)).ok()?, target)
                        }
                        Verb::Atomic { swap: false } => SendWr::fetch_add(target, 1),
                        Verb::Atomic { swap: true } => SendWr::compare_swap(target, 0, 1),
                    };
                    let request = request.wr_id(index as u64);
                    let tells = self.portions.tells(number, self.each);
                    Some(if tells { request } else { request.unsignaled() })
                });
                let posted = qp.post_sends(requests)? as u64;
                flow.posted += posted;
                share = share.saturating_sub(posted);
                allowed = allowed.saturating_sub(posted);
                if let Some(limit) = &mut self.limit {
                    limit.charge(posted);
                }
                if let Some(peak) = peak {
                    peak.post(now, posted);
                }
            }
        }
        self.first = (self.first + 1) % pairs;
        Ok(())
    }

    /// Takes one completion; gives for how many messages it counts.
    fn take(&mut self, session: &Session<'_>, completion: WorkCompletion) -> Result<u64, PerfError> {
        let index = usize::try_from(completion.wr_id).unwrap_or(usize::MAX);
        let Some(flow) = self.flows.get_mut(index) else { return Ok(0) };
        if completion.opcode == CompletionKind::Recv {
            flow.received += 1;
            if flow.offered < self.each
                && let Some(buffer) = completion.into_buffer()
            {
                session.qps[index].post_recv(RecvWr::new(buffer).wr_id(index as u64))?;
                flow.offered += 1;
            }
            return Ok(u64::from(!self.sends));
        }
        let ended = self.portions.ended(flow.done, self.each);
        flow.done += ended;
        // The buffers of those that did not tell are back before one that did.
        drop(completion);
        for _ in 0..ended {
            flow.free.extend(flow.lent.pop_front());
        }
        Ok(ended)
    }

    fn is_done(&self) -> bool {
        self.flows.iter().all(|flow| {
            (!self.sends || flow.done == self.each) && (!self.receives || flow.received == self.each)
        })
    }
}

/// The octets of a place.
fn span_of(slot: usize, octets: usize) -> Range<usize> {
    slot * octets..(slot + 1) * octets
}

/// The part of a time that counts.
struct Sample {
    duration: Option<Span>,
    margin: Span,
    counted: u64,
}

impl Sample {
    fn new(session: &Session<'_>) -> Self {
        let span = |time: Duration| Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let duration = session.options.duration;
        let margin = duration.map_or(Span::ZERO, |duration| span(session.options.margin(duration)));
        Self { duration: duration.map(span), margin, counted: 0 }
    }

    fn count(&mut self, passed: Span, moved: u64) {
        let Some(duration) = self.duration else { return };
        if passed >= self.margin && passed.as_ps() + self.margin.as_ps() <= duration.as_ps() {
            self.counted += moved;
        }
    }

    /// How long it is, at most until the last message.
    fn length(&self, until: Span) -> Span {
        let duration = self.duration.unwrap_or(until);
        Span::from_ps(duration.as_ps().saturating_sub(2 * self.margin.as_ps()))
    }
}
