//! Layout `homa`: which message a packet belongs to and which of its octets it carries, says or asks for.
//!
//! A message's RPC id is twice the place of its first packet in its queue pair's sequence: unique among those that may
//! be under way, known to both ends without a word, and even, for who sends a request is the client. What the server sends
//! for it, READ data, is a message with an id of one more.

use crate::arrival::{Arrival, Reaction, Refusal};
use crate::delivery::program::Decision;
use crate::engine::Engine;
use crate::qp::{Notes, after, sequence};
use crate::queue::{NONE, SendWork, flag};
use crate::transmit::Plan;
use roci_control::{Class, Credit, Emit, Part, Words};
use roci_units::{Instant, Psn};
use roci_wire::layout::homa::{Homa, HomaBody, NUMBERS};
use roci_wire::layout::irn::SendPosition;
use roci_wire::{Header, Layout, LayoutWords, Shape};

const fn rpc_of(message: u32) -> u64 {
    (message as u64) << 1
}

/// The bit of an RPC id by which READ data differ from their request.
const OF_SERVER: u64 = 1;

/// Requests for octets of one message, or of a queue pair's READ data, that go at once; what else is missing is asked for when these have come.
pub(crate) const RESENDS_AT_ONCE: usize = 64;

#[expect(clippy::cast_possible_truncation, reason = "messages are numbered modulo 2³²")]
const fn message_of(rpc: u64) -> u32 {
    (rpc >> 1) as u32
}

fn as_law_words(words: &LayoutWords) -> Option<Words> {
    let slice = words.as_slice();
    let mut copy = Words { len: u8::try_from(slice.len()).ok()?, ..Words::default() };
    copy.words.get_mut(..slice.len())?.copy_from_slice(slice);
    Some(copy)
}

/// The words of a packet that a law or an agent asks for.
pub(crate) fn message_words(class: Class, part: &Part) -> Option<Words> {
    let Part { message, offset, end, priority, .. } = *part;
    let body = match class {
        Class::GRANT => HomaBody::Grant { offset: end, priority, resend_all: false },
        Class::RESEND => HomaBody::Resend { offset, length: end.saturating_sub(offset), priority },
        Class::BUSY => HomaBody::Busy,
        _ => return None,
    };
    as_law_words(&Homa { rpc: rpc_of(message), body }.encode())
}

/// The message and octets that a packet's words name in layout `homa`; else all zero.
pub(crate) fn part_of(arrival: &Arrival<'_>) -> Part {
    let homa = LayoutWords::new(arrival.words).and_then(|words| Homa::decode(arrival.header, &words).ok());
    let Some(Homa { rpc, body }) = homa else { return Part::default() };
    let message = message_of(rpc);
    match body {
        HomaBody::Data { length, offset, .. } => {
            let end = offset.saturating_add(u32::from(arrival.header.payload));
            Part { message, message_length: length, offset, end, priority: 0 }
        }
        HomaBody::Grant { offset: end, priority, .. } => Part { message, end, priority, ..Part::default() },
        HomaBody::Resend { offset, length, priority } => {
            Part { message, message_length: 0, offset, end: offset.saturating_add(length), priority }
        }
        _ => Part { message, ..Part::default() },
    }
}

/// Whether a packet's words in layout `homa` say that it is sent again.
pub(crate) fn is_sent_again(arrival: &Arrival<'_>) -> bool {
    let homa = LayoutWords::new(arrival.words).and_then(|words| Homa::decode(arrival.header, &words).ok());
    homa.is_some_and(|homa| matches!(homa.body, HomaBody::Data { retransmit: true, .. }))
}

/// Whether a packet's words in layout `homa` are about READ data.
pub(crate) fn is_about_read_data(arrival: &Arrival<'_>) -> bool {
    let homa = LayoutWords::new(arrival.words).and_then(|words| Homa::decode(arrival.header, &words).ok());
    homa.is_some_and(|homa| homa.rpc & OF_SERVER != 0)
}

/// The words of the first packet of READ data that was planned; the request is message `message`, of `length` octets.
pub(crate) fn response_words(message: u32, length: u32, offset: u32, retransmit: bool) -> Option<Words> {
    let body = HomaBody::Data { length, offset, incoming: length, retransmit, number: 0 };
    as_law_words(&Homa { rpc: rpc_of(message) | OF_SERVER, body }.encode())
}

/// The lower bits of a message's number among those that consume a receive.
fn number_of(arrival: &Arrival<'_>) -> u32 {
    let homa = LayoutWords::new(arrival.words).and_then(|words| Homa::decode(arrival.header, &words).ok());
    match homa {
        Some(Homa { body: HomaBody::Data { number, .. }, .. }) => number.into(),
        _ => 0,
    }
}

impl Engine {
    /// The words of the first packet that was planned of a request.
    #[cold]
    pub(crate) fn data_words(&self, slot: usize, plan: &Plan, work: &SendWork) -> Option<Words> {
        let (common, requester) = (&self.qps[slot].common, &self.qps[slot].requester);
        let mtu = u32::from(self.profile(slot).mtu);
        let length = if work.kind.is_read_or_atomic() { 0 } else { work.length };
        let granted =
            self.laws.states.get(common.law as usize).map_or(Credit::UNLIMITED, |s| s.tokens.left());
        let sent = requester.high.wrapping_sub(work.first).saturating_mul(mtu);
        #[expect(clippy::cast_possible_truncation, reason = "below 2¹⁵")]
        let number = if work.consumes_receive() { (work.number() % u32::from(NUMBERS)) as u16 } else { 0 };
        let body = HomaBody::Data {
            length,
            offset: plan.at.wrapping_sub(work.first).saturating_mul(mtu).min(length),
            incoming: sent.saturating_add(granted).min(length),
            retransmit: !plan.fresh,
            number,
        };
        as_law_words(&Homa { rpc: rpc_of(work.first.wrapping_sub(common.base)), body }.encode())
    }

    /// The priority of a message's packets that go again, which is not that of the message whose turn it is: that by which they were
    /// asked for, and a higher one for the first that is missing after a timeout.
    #[cold]
    pub(crate) fn message_priority_again(&self, slot: usize, plan: &Plan, work: &SendWork) -> u8 {
        let requester = &self.qps[slot].requester;
        let aside = self.asides.get(self.qps[slot].common.aside);
        let doubted = aside.is_some_and(|aside| aside.doubted.is_some());
        let length = if work.kind.is_read_or_atomic() { 0 } else { work.length };
        let spent = self.profile(slot).retry.saturating_sub(requester.retries);
        let raised = self.read_rooms.as_ref().filter(|_| doubted && plan.at == requester.una);
        let raised = raised.and_then(|rooms| rooms.priority_after_timeout(length, spent.saturating_sub(1)));
        let asked = aside.and_then(|aside| aside.asked_priority).filter(|asked| asked.0 == work.first);
        raised.or(asked.map(|asked| asked.1)).unwrap_or(requester.priority)
    }

    /// A packet of a request, on a queue pair with selective repeat. A WRITE's address tells where it goes; the rest
    /// needs the number of its message among those that consume a receive, of which the layout carries the lower bits:
    /// the message in course has it or comes before, by less than there are numbers, for a window has fewer packets.
    #[cold]
    pub(crate) fn keep_message(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let mut header = *arrival.header;
        let shape = header.opcode.shape();
        if shape.has(Shape::SEND) || shape.has(Shape::IMMEDIATE) {
            let in_course = self.qps[slot].responder.course().number;
            let ahead = number_of(arrival).wrapping_sub(in_course) % u32::from(NUMBERS);
            let ssn = in_course.wrapping_add(ahead);
            header.set_send_position(SendPosition { ssn, offset: part_of(arrival).offset });
        }
        self.keep(now, slot, at, &Arrival { header: &header, ..*arrival }, reaction)
    }

    /// The receiver asks for octets again: those that were sent and not acknowledged are marked; where there are none,
    /// for their turn has not come, it is told to be patient, unless that is the affair of a law that hears of it. So it
    /// is while others of the message wait to be sent and it asks for the last that were as well; what it asks for before
    /// those, others have overtaken.
    #[cold]
    pub(crate) fn on_resend(&mut self, now: Instant, slot: usize, part: &Part) {
        if part.offset == part.end {
            // It stands for a grant that may be lost, and asks for nothing.
            return;
        }
        let first = self.qps[slot].common.base.wrapping_add(part.message);
        let Some(index) = self.message_at(slot, first).filter(|_| self.state(slot).sends()) else {
            // It is complete, or there never was one: an acknowledgement is on its way, or nobody waits.
            return;
        };
        let end = self.sends.get(index).end;
        let mtu = u32::from(self.profile(slot).mtu);
        let requester = &self.qps[slot].requester;
        let (una, high) = (requester.una, requester.high);
        let overtaken = after(first.wrapping_add(part.end.div_ceil(mtu)), high) < 0;
        if !overtaken && self.holds_back(slot) && requester.current == index {
            // What has been granted waits for shorter messages; what was lost is asked for when that has gone.
            return self.say_busy(now, slot, part.message);
        }
        let later = |a: u32, b: u32| if after(a, b) > 0 { a } else { b };
        let earlier = |a: u32, b: u32| if after(a, b) < 0 { a } else { b };
        let from = later(first.wrapping_add(part.offset / mtu), una);
        let to = earlier(earlier(first.wrapping_add(part.end.div_ceil(mtu)), end), high);
        if after(to, from) <= 0 {
            return self.say_busy(now, slot, part.message);
        }
        if !self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            self.begin_recovery(slot, una, high.wrapping_sub(una));
        }
        if self.profile(slot).recovery.keeps_out_of_order() {
            self.aside(slot).asked_priority = Some((first, part.priority.min(7)));
        }
        let mark = Some((Psn::new(from), Psn::new(to)));
        // Who knows the oldest message asks for it as long as he hopes; the timer is for those that nobody knows.
        let restart_timer = after(first, una) <= 0;
        self.decided(now, slot, &Decision { mark, window: None, restart_timer });
        self.arm(now, slot);
    }

    /// A timeout. The oldest packet goes again; when it has arrived, all that was sent before the timeout and is next to come is lost
    /// as well, for it would be acknowledged. But of a message that the receiver knows, the receiver asks for the rest.
    #[cold]
    pub(crate) fn doubt_messages(&mut self, slot: usize) {
        if self.names_messages(slot) && self.profile(slot).recovery.keeps_out_of_order() {
            self.aside(slot).doubted = Some(self.qps[slot].requester.high);
            if let Some(losing) = self.losing(slot) {
                losing.leave_tail();
            }
        }
    }

    /// Progress in a loss, after a timeout perhaps: sends the message again that is next to come, of which the receiver knows nothing.
    /// For the rest of one that it knows it asks.
    pub(crate) fn resend_next_message(&mut self, now: Instant, slot: usize) {
        let index = self.qps[slot].common.aside;
        let Some(sent) = self.asides.find_mut(index).and_then(|aside| aside.doubted) else { return };
        let una = self.qps[slot].requester.una;
        if after(sent, una) <= 0 {
            self.aside(slot).doubted = None;
        } else if self.message_at(slot, una).is_some() {
            let mark = Some((Psn::new(una), Psn::new(una.wrapping_add(1))));
            self.decided(now, slot, &Decision { mark, window: None, restart_timer: false });
        }
    }

    /// The request whose first packet has this sequence, if it has been numbered and is not over.
    fn message_at(&self, slot: usize, first: u32) -> Option<u32> {
        let mut index = self.qps[slot].common.head;
        while index != NONE && self.sends.get(index).has(flag::NUMBERED) {
            if self.sends.get(index).first == first {
                return Some(index);
            }
            index = self.sends.get(index).next;
        }
        None
    }

    /// Whether requests before that with `psn` have not come.
    pub(crate) fn is_ahead(&self, slot: usize, psn: Psn) -> bool {
        let expected = self.qps[slot].responder.expected;
        after(sequence(psn, expected), expected) >= 0
    }

    /// Messages that a request without payload has overtaken are asked for by their first packets. Such a request is all of its message,
    /// and the port, which asks for what is missing of others, knows nothing of it.
    #[cold]
    pub(crate) fn ask_for_requests(&mut self, slot: usize) {
        let course = self.qps[slot].responder.course();
        let expected = self.qps[slot].responder.expected;
        let Some(upto) = self.early(slot).filter(|&(_, single)| single).map(|(at, _)| at).last() else {
            return;
        };
        let (mut at, mut asked) = (expected, 0);
        while after(upto, at) > 0 && asked < RESENDS_AT_ONCE {
            let before = at.wrapping_sub(1);
            let begins = match at == expected {
                true => course.start == expected,
                false => self.is_missing(slot, before) || self.early(slot).any(|(end, _)| end == before),
            };
            if begins && self.is_missing(slot, at) {
                let body = HomaBody::Resend { offset: 0, length: 1, priority: 7 };
                self.post_words(slot, &Homa { rpc: rpc_of(at.wrapping_sub(course.first)), body });
                asked += 1;
            }
            at = at.wrapping_add(1);
        }
    }

    /// Asks for octets of READ data; the request is message `message`.
    pub(crate) fn ask_for_data(&mut self, slot: usize, message: u32, offset: u32, length: u32) {
        let body = HomaBody::Resend { offset, length, priority: self.qps[slot].requester.priority };
        self.post_words(slot, &Homa { rpc: rpc_of(message) | OF_SERVER, body });
    }

    /// Tells the reader that his data wait for others to go.
    pub(crate) fn say_data_wait(&mut self, slot: usize, message: u32) {
        self.post_words(slot, &Homa { rpc: rpc_of(message) | OF_SERVER, body: HomaBody::Busy });
    }

    /// Posts a packet of nothing but Homa's words.
    fn post_words(&mut self, slot: usize, homa: &Homa) {
        let Some(opcode) = homa.opcode() else { return };
        let mut segment = self.control(slot, Header::new(opcode, self.qps[slot].common.peer, Psn::new(0)));
        segment.words = as_law_words(&homa.encode());
        self.post(segment);
    }

    fn say_busy(&mut self, now: Instant, slot: usize, message: u32) {
        if !self.hears(slot, Class::RESEND) {
            let part = Part { message, ..Part::default() };
            self.emit(now, slot, &Emit { part, ..Emit::plain(Class::BUSY) });
        }
    }

    /// Whether the queue pair has packets of a message in course that were granted and that it has not sent yet, for
    /// others of the port go first.
    pub(crate) fn holds_back(&self, slot: usize) -> bool {
        let (common, requester) = (&self.qps[slot].common, &self.qps[slot].requester);
        if !self.names_messages(slot) || requester.current == NONE || requester.notes.has(Notes::RESENDS) {
            return false;
        }
        let begun = self.sends.get(requester.current).has(flag::NUMBERED);
        let state = self.laws.states.get(common.law as usize);
        let outstanding = requester.high.wrapping_sub(requester.una);
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let stands_in_line = self.schedule.contains(slot as u32);
        begun
            && stands_in_line
            && outstanding < self.profile(slot).max_in_flight
            && state.is_some_and(|state| state.tokens.limit() && state.tokens.left() > 0)
    }

    /// Whether the queue pair's packets name messages.
    pub(crate) fn names_messages(&self, slot: usize) -> bool {
        self.profile(slot).layout == Layout::Homa
    }
}
