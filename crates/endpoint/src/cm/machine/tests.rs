//! Two machines and what lies between them.

use super::*;
use proptest::prelude::*;
use roci_units::{Psn, Qpn};
use roci_wire::Layout;
use roci_wire::cm::{Private, service};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

mod sidr;

const PORT: u64 = service(7174);

fn address(end: usize) -> IpAddr {
    [10, 0, 0, u8::try_from(end + 1).unwrap()].into()
}

fn gid(end: usize) -> Ipv6Addr {
    match address(end) {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn request() -> Request {
    Request {
        local: 0,
        service: PORT,
        guid: 1,
        qpn: Qpn::new(0x11),
        responder_resources: 1,
        initiator_depth: 1,
        psn: Psn::new(5),
        mtu: 3,
        retry_count: 7,
        rnr_retry_count: 7,
        traffic_class: 0,
        ack_timeout: 14,
        response_timeout: RESPONSE_TIMEOUT,
        max_retries: RETRIES,
        service_type: 0,
        gids: (gid(0), gid(1)),
        endpoints: None,
        layout: Layout::Standard,
        private: Private::NONE,
    }
}

fn reply() -> Reply {
    Reply {
        local: 0,
        remote: 0,
        qpn: Qpn::new(0x22),
        psn: Psn::new(6),
        responder_resources: 1,
        initiator_depth: 1,
        rnr_retry_count: 7,
        guid: 2,
        layout: Layout::Standard,
        private: Private::NONE,
    }
}

/// Numbers that differ, from a seed.
fn drawing(mut state: u64) -> impl FnMut() -> u32 + Send {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        u32::try_from((word ^ word >> 31) >> 32).unwrap()
    }
}

/// What the way between the two does to a datagram.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// Of 100. Below that no message is lost more than [`LOST_MAX`] times: whoever never hears of the end of a connection
    /// cannot end it, and 256 cases would meet one like that once in thirty runs.
    lost: u32,
    twice: u32,
    /// The longest delay, in milliseconds.
    delay: u32,
}

/// Fewer than a message is sent.
const LOST_MAX: u32 = 5;

struct Pair {
    ends: [Machine; 2],
    now: Instant,
    /// What is on its way: when it arrives, an order, where to, and what.
    way: BTreeSet<(Instant, u64, usize, [u8; MAD_LEN])>,
    draw: Box<dyn FnMut() -> u32>,
    faults: Faults,
    sent: u64,
    /// How often each message was lost.
    losses: BTreeMap<[u8; MAD_LEN], u32>,
    events: [Vec<Event>; 2],
}

impl Pair {
    fn new(seed: u64, faults: Faults) -> Self {
        Self {
            ends: [Machine::new(1, drawing(seed ^ 1)), Machine::new(2, drawing(seed ^ 2))],
            now: Instant::ZERO,
            way: BTreeSet::new(),
            draw: Box::new(drawing(seed)),
            faults,
            sent: 0,
            losses: BTreeMap::new(),
            events: [Vec::new(), Vec::new()],
        }
    }

    fn post(&mut self) {
        for end in 0..2 {
            while let Some((to, mad)) = self.ends[end].poll_transmit() {
                assert_eq!(to, address(1 - end));
                let Faults { lost, twice, delay } = self.faults;
                let losses = self.losses.entry(mad).or_default();
                let copies = match (self.draw)() % 100 {
                    dice if dice < lost && (lost >= 100 || *losses < LOST_MAX) => {
                        *losses += 1;
                        0
                    }
                    dice if dice < lost + twice => 2,
                    _ => 1,
                };
                for _ in 0..copies {
                    self.sent += 1;
                    let late = u64::from((self.draw)() % (delay + 1));
                    self.way.insert((self.now + Span::from_millis(late), self.sent, 1 - end, mad));
                }
            }
            while let Some(event) = self.ends[end].poll_event() {
                self.events[end].push(event);
            }
        }
    }

    /// The next thing that happens; `false` where nothing does any more.
    fn step(&mut self) -> bool {
        self.post();
        let arrival = self.way.first().map(|(at, ..)| *at);
        let timers = self.ends.iter().filter_map(Machine::poll_timeout).min();
        let Some(next) = [arrival, timers].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        while let Some((at, ..)) = self.way.first()
            && *at <= self.now
            && let Some((_, _, to, mad)) = self.way.pop_first()
        {
            self.ends[to].handle(self.now, address(1 - to), &mad);
        }
        for end in &mut self.ends {
            end.wake(self.now);
        }
        self.post();
        true
    }

    /// Lets both users do what they should: grant, be ready. Until nothing happens, but for what is only remembered.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            for end in 0..2 {
                for event in self.events[end].clone() {
                    match event {
                        Event::Asked { id, .. } => {
                            self.ends[end].accept(self.now, id, reply());
                        }
                        Event::Granted { id, .. } => {
                            self.ends[end].ready(id);
                        }
                        _ => {}
                    }
                }
            }
            if !self.step() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn count(&self, end: usize, is: impl Fn(&Event) -> bool) -> usize {
        self.events[end].iter().filter(|event| is(event)).count()
    }
}

fn connected(pair: &mut Pair) -> (Id, Id) {
    pair.ends[1].listen(PORT);
    let near = pair.ends[0].connect(pair.now, address(1), request());
    for _ in 0..20 {
        pair.step();
        if let Some(Event::Asked { id, .. }) = pair.events[1].first().cloned() {
            pair.ends[1].accept(pair.now, id, reply());
        }
        if let Some(Event::Granted { id, .. }) = pair.events[0].first().cloned() {
            pair.ends[0].ready(id);
        }
        pair.post();
        if let Some(Event::Established(far)) = pair.events[1].last().cloned() {
            return (near, far);
        }
    }
    panic!("not connected: {:?}", pair.events);
}

#[test]
fn a_connection_is_asked_for_granted_and_ended() {
    let mut pair = Pair::new(1, Faults::default());
    let (near, far) = connected(&mut pair);
    assert_eq!(pair.sent, 3, "REQ, REP, RTU");
    let began = pair.now;
    pair.ends[0].disconnect(pair.now, near);
    while pair.step() {}
    for (events, id) in pair.events.iter().zip([near, far]) {
        assert!(events.ends_with(&[Event::Disconnected(id), Event::TimeWaitExit(id)]), "{events:?}");
    }
    assert!(pair.now.since(began) >= interval(RESPONSE_TIMEOUT) * u64::from(RETRIES), "it may come again");
    assert_eq!(pair.sent, 5, "DREQ, DREP");
    assert!(pair.ends.iter().all(Machine::is_empty), "what is over is forgotten in the end");
}

#[test]
fn nobody_listens_and_the_reason_is_told() {
    let mut pair = Pair::new(2, Faults::default());
    let id = pair.ends[0].connect(pair.now, address(1), request());
    while pair.step() {}
    let [Event::Rejected { id: whose, reject }] = &pair.events[0][..] else { panic!("{:?}", pair.events) };
    assert_eq!((*whose, reject.reason), (id, reason::INVALID_SERVICE));
    let asked = LATE.as_ps() / AGAIN.as_ps() + 1;
    assert!((asked - 2..=asked).contains(&(pair.sent / 2)), "asked {} times", pair.sent / 2);
    assert!(pair.ends.iter().all(Machine::is_empty));
}

#[test]
fn who_listens_a_little_after_the_peer_has_asked_is_asked_again() {
    let mut pair = Pair::new(2, Faults::default());
    let id = pair.ends[0].connect(pair.now, address(1), request());
    while pair.now < Instant::ZERO + LATE / 2 {
        assert!(pair.step());
    }
    assert!(pair.sent > 4 && pair.events[0].is_empty(), "refused more than once");
    pair.ends[1].listen(PORT);
    pair.settle();
    assert!(matches!(pair.events[0][..], [Event::Granted { id: granted, .. }] if granted == id));
    assert!(
        matches!(pair.events[1][..], [Event::Asked { .. }, Event::Established(_)]),
        "{:?}",
        pair.events[1]
    );
}

#[test]
fn the_user_refuses_with_a_reason_of_its_own() {
    let mut pair = Pair::new(3, Faults::default());
    pair.ends[1].listen(PORT);
    pair.ends[0].connect(pair.now, address(1), request());
    pair.step();
    let Some(Event::Asked { id, from, .. }) = pair.events[1].pop() else { panic!() };
    assert_eq!(from, address(0));
    pair.ends[1].reject(pair.now, id, reason::CONSUMER, Private::new(b"no").unwrap());
    while pair.step() {}
    let Some(Event::Rejected { reject, .. }) = pair.events[0].last() else { panic!() };
    assert_eq!((reject.reason, &reject.private.0[..3]), (reason::CONSUMER, &b"no\0"[..]));
}

#[test]
fn a_refusal_is_remembered_until_long_after_it_was_asked_for_last_and_then_a_request_is_a_new_one() {
    let mut machine = Machine::new(2, drawing(11));
    machine.listen(PORT);
    let ask = |machine: &mut Machine, now| {
        machine.handle(now, address(0), &asking(0, 9));
        machine.poll_event()
    };
    let Some(Event::Asked { id, .. }) = ask(&mut machine, Instant::ZERO) else { panic!("it is asked") };
    assert!(machine.reject(Instant::ZERO, id, reason::CONSUMER, Private::new(b"no").unwrap()));
    let said = machine.poll_transmit().unwrap();
    assert!(!machine.reject(Instant::ZERO, id, reason::TIMEOUT, Private::NONE), "it is over");
    // Linux asks 15 times more, each after 4.096 s.
    let mut now = Instant::ZERO;
    for _ in 0..15 {
        now += Span::from_millis(4_096);
        machine.wake(now);
        assert_eq!((ask(&mut machine, now), machine.poll_transmit()), (None, Some(said)));
    }
    machine.wake(now + Span::from_millis(8_300));
    assert_eq!(machine.poll_event(), None);
    machine.wake(now + Span::from_millis(8_600));
    assert_eq!((machine.poll_event(), machine.len()), (Some(Event::Forgotten(id)), 0));
    assert!(matches!(ask(&mut machine, now), Some(Event::Asked { id: other, .. }) if other != id));
}

#[test]
fn who_gets_no_answer_gives_up_after_all_retries() {
    let mut pair = Pair::new(4, Faults { lost: 100, ..Faults::default() });
    let id = pair.ends[0].connect(pair.now, address(1), request());
    while pair.step() {}
    assert_eq!(pair.events[0], [Event::Unreachable(id)]);
    let waited = interval(RESPONSE_TIMEOUT).as_ps() * (u64::from(RETRIES) + 1);
    assert!(pair.now.as_ps() <= 2 * waited, "retries, and as long again to be remembered");
}

#[test]
fn a_slow_user_is_waited_for_when_the_peer_says_so() {
    let mut pair = Pair::new(5, Faults::default());
    pair.ends[1].listen(PORT);
    pair.ends[0].connect(pair.now, address(1), request());
    for _ in 0..6 {
        pair.step(); // The request comes again, and is answered by MRA.
    }
    let Some(Event::Asked { id, .. }) = pair.events[1].first().cloned() else { panic!() };
    assert_eq!(pair.events[1].len(), 1, "a duplicate is no second request");
    assert!(pair.ends[1].accept(pair.now, id, reply()));
    pair.step();
    assert!(matches!(pair.events[0][..], [Event::Granted { .. }]), "{:?}", pair.events);
}

#[test]
fn a_peer_whose_user_never_answers_is_told_from_one_that_is_not_there() {
    let mut pair = Pair::new(5, Faults::default());
    pair.ends[1].listen(PORT);
    let id = pair.ends[0].connect(pair.now, address(1), request());
    while pair.events[0].is_empty() {
        assert!(pair.step());
    }
    assert_eq!(pair.events[0], [Event::Unanswered(id)]);
    // One interval, and seven times the four that the peer asks for and one more.
    let whole = interval(RESPONSE_TIMEOUT).as_ps() * (1 + u64::from(RETRIES) * 5);
    assert_eq!(pair.now.as_ps() / 1_000_000_000_000, whole / 1_000_000_000_000);
    while pair.step() {}
    assert!(
        matches!(pair.events[1][..], [Event::Asked { .. }, Event::Rejected { .. }]),
        "{:?}",
        pair.events[1]
    );
    assert!(pair.ends.iter().all(Machine::is_empty));
}

#[test]
fn who_asks_for_another_service_than_a_connections_is_rejected() {
    for (service_type, answer) in
        [(0, None), (1, None), (2, Some(reason::INVALID_SERVICE_TYPE)), (3, Some(9))]
    {
        let mut machine = Machine::new(2, drawing(6));
        machine.listen(PORT);
        let message = Message::Request(Request { local: 9, service_type, ..request() });
        machine.handle(Instant::ZERO, address(0), &Mad { transaction: 1, message }.emit());
        let rejected =
            machine.poll_transmit().map(|(_, answer)| match Mad::parse(&answer).unwrap().message {
                Message::Reject(reject) => reject.reason,
                other => panic!("{other:?}"),
            });
        assert_eq!(rejected, answer);
        assert_eq!(machine.poll_event().is_some(), answer.is_none());
    }
}

#[test]
fn a_request_in_another_name_is_rejected() {
    let mut machine = Machine::new(2, drawing(6));
    machine.listen(PORT);
    let mad = Mad { transaction: 1, message: Message::Request(Request { local: 9, ..request() }) };
    machine.handle(Instant::ZERO, address(7), &mad.emit());
    assert_eq!(machine.poll_event(), None);
    let (to, answer) = machine.poll_transmit().unwrap();
    let Message::Reject(reject) = Mad::parse(&answer).unwrap().message else { panic!() };
    assert_eq!((to, reject.reason, reject.remote), (address(7), reason::INVALID_GID, 9));
    assert!(machine.is_empty());
}

#[test]
fn more_requests_than_the_user_answers_are_turned_away() {
    let mut machine = Machine::new(2, drawing(7));
    machine.listen(PORT);
    for local in 1..=u32::try_from(PENDING_MAX).unwrap() + 5 {
        machine.handle(Instant::ZERO, address(source_of(local)), &asking(source_of(local), local));
    }
    assert_eq!(machine.len(), PENDING_MAX);
    assert_eq!(refused(&mut machine), 5);
}

#[test]
fn one_address_that_asks_without_end_leaves_room_for_others() {
    let mut machine = Machine::new(2, drawing(10));
    machine.listen(PORT);
    let share = u32::try_from(PENDING_SHARE).unwrap();
    for local in 1..=share + 7 {
        machine.handle(Instant::ZERO, address(0), &asking(0, local));
    }
    assert_eq!((machine.len(), refused(&mut machine)), (PENDING_SHARE, 7));
    machine.handle(Instant::ZERO, address(3), &asking(3, 1));
    assert_eq!((machine.len(), refused(&mut machine)), (PENDING_SHARE + 1, 0));
    // Each of its requests that is answered, in whatever way, makes room for another.
    let mut asked = Vec::new();
    while let Some(event) = machine.poll_event() {
        if let Event::Asked { id, from, .. } = event
            && from == address(0)
        {
            asked.push(id);
        }
    }
    machine.accept(Instant::ZERO, asked[0], reply());
    machine.reject(Instant::ZERO, asked[1], reason::CONSUMER, Private::NONE);
    while machine.poll_transmit().is_some() {}
    for local in share + 100..share + 103 {
        machine.handle(Instant::ZERO, address(0), &asking(0, local));
    }
    assert_eq!(refused(&mut machine), 1);
    while let Some(at) = machine.poll_timeout() {
        machine.wake(at);
    }
    assert!(machine.is_empty() && machine.pending == 0 && machine.pending_of.is_empty());
}

/// Counts what a machine sends, all of which are rejections for want of resources.
fn refused(machine: &mut Machine) -> usize {
    let mut count = 0;
    while let Some((_, mad)) = machine.poll_transmit() {
        let Message::Reject(reject) = Mad::parse(&mad).unwrap().message else { panic!("a rejection") };
        assert_eq!(reject.reason, reason::NO_RESOURCES);
        count += 1;
    }
    count
}

/// The request `local` of `end`.
fn asking(end: usize, local: u32) -> [u8; MAD_LEN] {
    let request = Request { local, gids: (gid(end), gid(1)), ..request() };
    Mad { transaction: 1, message: Message::Request(request) }.emit()
}

/// Who asks with this id, so that nobody asks for more than its share.
fn source_of(local: u32) -> usize {
    (local as usize - 1) / PENDING_SHARE
}

/// A machine that is asked by `ids`, the first of them at address 0.
fn asked_by(ids: impl Iterator<Item = u32>) -> (Machine, Vec<Id>) {
    let mut machine = Machine::new(2, drawing(8));
    machine.listen(PORT);
    let mut asked = Vec::new();
    for local in ids {
        machine.handle(Instant::ZERO, address(source_of(local)), &asking(source_of(local), local));
        while let Some(event) = machine.poll_event() {
            if let Event::Asked { id, .. } = event {
                asked.push(id);
            }
        }
    }
    (machine, asked)
}

#[test]
fn a_request_that_nobody_answers_is_forgotten_and_leaves_its_place_to_others() {
    let (mut machine, asked) = asked_by(1..=u32::try_from(PENDING_MAX).unwrap());
    let at = machine.poll_timeout().expect("it ages");
    assert!(at >= Instant::ZERO + Span::from_secs(8) && at <= Instant::ZERO + PATIENCE, "{at}");
    machine.wake(at);
    assert_eq!(machine.poll_event(), Some(Event::Unreachable(*asked.iter().min().unwrap())));
    assert!(!machine.accept(at, asked[0], reply()), "it is too late");
    let mad = Mad { transaction: 1, message: Message::Request(Request { local: 5000, ..request() }) };
    while machine.poll_event().is_some() {}
    machine.handle(at, address(0), &mad.emit());
    assert!(matches!(machine.poll_event(), Some(Event::Asked { .. })));
    while let Some(at) = machine.poll_timeout() {
        machine.wake(at);
    }
    assert!(machine.is_empty());
}

#[test]
fn who_asks_again_is_still_there() {
    let (mut machine, asked) = asked_by(1..=1);
    let mad = Mad { transaction: 1, message: Message::Request(Request { local: 1, ..request() }) };
    let late = machine.poll_timeout().unwrap() - Span::from_millis(1);
    machine.handle(late, address(0), &mad.emit());
    machine.wake(late + Span::from_secs(1));
    assert!(machine.accept(late + Span::from_secs(1), asked[0], reply()));
}

#[test]
fn a_peer_that_gives_up_before_it_hears_of_us_is_believed() {
    // Its rejection cannot bear our id, which it does not know.
    let reject = |of, local, guid| {
        let (remote, reason, private) = (0, reason::TIMEOUT, Private::NONE);
        let reject = Reject { local, remote, of, reason, guid, private };
        Mad { transaction: 1, message: Message::Reject(reject) }.emit()
    };
    // Linux says that it rejects no message, and which device it is; others say what they gave up.
    let said = [(Answered::Request, None), (Answered::Request, Some(1)), (Answered::Other, Some(1))];
    for (is_granted, (of, guid)) in [false, true].into_iter().flat_map(|is| said.map(|said| (is, said))) {
        let (mut machine, asked) = asked_by(9..=9);
        if is_granted {
            assert!(machine.accept(Instant::ZERO, asked[0], reply()));
        }
        for (from, octets) in [
            (1, reject(of, 9, guid)),
            (0, reject(of, 8, guid)),
            (0, reject(of, 9, Some(3))),
            (0, reject(Answered::Reply, 9, guid)),
        ] {
            machine.handle(Instant::ZERO, address(from), &octets);
            assert_eq!(machine.poll_event(), None, "another's rejection");
        }
        machine.handle(Instant::ZERO, address(0), &reject(of, 9, guid));
        assert!(matches!(machine.poll_event(), Some(Event::Rejected { id, .. }) if id == asked[0]));
        assert!(!machine.accept(Instant::ZERO, asked[0], reply()));
    }
}

#[test]
fn who_gives_up_says_which_device_it_is_and_is_understood() {
    let mut pair = Pair::new(11, Faults::default());
    pair.ends[1].listen(PORT);
    let near = pair.ends[0].connect(pair.now, address(1), request());
    pair.step();
    let Some(Event::Asked { id, .. }) = pair.events[1].pop() else { panic!("asked") };
    pair.ends[0].disconnect(pair.now, near);
    while pair.step() {}
    let [Event::Rejected { id: over, reject }] = &pair.events[1][..] else { panic!("{:?}", pair.events) };
    assert_eq!((*over, reject.reason, reject.of), (id, reason::TIMEOUT, Answered::Other));
    assert_eq!((reject.remote, reject.guid), (0, Some(1)));
}

#[test]
fn of_what_is_over_so_much_is_remembered_and_no_more() {
    let mut machine = Machine::new(2, drawing(9));
    machine.listen(PORT);
    let many = u32::try_from(2 * OVER_MAX).unwrap();
    for local in 1..=many {
        let now = Instant::from_ps(u64::from(local));
        let mad = Mad { transaction: 1, message: Message::Request(Request { local, ..request() }) };
        machine.handle(now, address(0), &mad.emit());
        let Some(Event::Asked { id, .. }) = machine.poll_event() else { panic!("asked") };
        machine.reject(now, id, reason::CONSUMER, Private::NONE);
        let is_full = local as usize > OVER_MAX;
        assert_eq!(matches!(machine.poll_event(), Some(Event::Forgotten(_))), is_full);
        while machine.poll_transmit().is_some() {}
    }
    assert_eq!((machine.len(), machine.timers.len(), machine.asked.len()), (OVER_MAX, OVER_MAX, OVER_MAX));
    let mad = Mad { transaction: 1, message: Message::Request(Request { local: many, ..request() }) };
    machine.handle(Instant::from_ps(u64::from(many)), address(0), &mad.emit());
    assert!(machine.poll_transmit().is_some() && machine.poll_event().is_none(), "the latest is told again");
}

proptest! {
    #[test]
    fn loss_duplication_and_reordering_make_one_connection_or_none_and_both_ends_end_it(
        seed: u64, lost in 0u32..40, twice in 0u32..30, delay in 0u32..3_000,
    ) {
        let mut pair = Pair::new(seed, Faults { lost, twice, delay });
        pair.ends[1].listen(PORT);
        pair.ends[0].connect(pair.now, address(1), request());
        pair.ends[0].connect(pair.now, address(1), request());
        // Both are connected, and one is ended by each side, as soon as that is possible.
        for _ in 0..400 {
            for end in 0..2 {
                for event in pair.events[end].clone() {
                    match event {
                        Event::Asked { id, .. } => { pair.ends[end].accept(pair.now, id, reply()); }
                        Event::Granted { id, .. } => { pair.ends[end].ready(id); }
                        _ => {}
                    }
                }
            }
            if pair.now >= Instant::ZERO + Span::from_secs(60) || !pair.step() {
                break;
            }
        }
        let granted = pair.count(0, |event| matches!(event, Event::Granted { .. }));
        let asked = pair.count(1, |event| matches!(event, Event::Asked { .. }));
        prop_assert!(asked <= 2 && granted <= asked, "each request is told once: {:?}", pair.events);
        for event in pair.events[0].clone() {
            if let Event::Granted { id, .. } = event {
                pair.ends[0].disconnect(pair.now, id);
            }
        }
        pair.settle();
        prop_assert!(pair.ends.iter().all(Machine::is_empty), "{:?}", pair.ends);
        for end in 0..2 {
            let over = pair.count(end, |event| {
                matches!(
                    event,
                    Event::Disconnected(_)
                        | Event::Rejected { .. }
                        | Event::Unreachable(_)
                        | Event::Unanswered(_)
                )
            });
            let begun = if end == 0 { 2 } else { asked };
            prop_assert_eq!(over, begun, "each connection ends once at each end: {:?}", pair.events);
        }
    }

    #[test]
    fn hostile_datagrams_change_nothing(
        seed: u64,
        mads in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 200..260), 0x10u8..0x19, 2usize..5), 1..60),
    ) {
        let mut pair = Pair::new(seed, Faults::default());
        let (near, far) = connected(&mut pair);
        let before = [pair.events[0].len(), pair.events[1].len()];
        for (mut octets, kind, stranger) in mads {
            octets[..4].copy_from_slice(&[1, 7, 2, 3]);
            (octets[16], octets[17]) = (0, kind);
            // The right ids, from who is not the peer.
            if stranger == 2 {
                octets[24..28].copy_from_slice(&far.0.to_be_bytes());
                octets[28..32].copy_from_slice(&near.0.to_be_bytes());
            }
            pair.ends[0].handle(pair.now, address(stranger), &octets);
            // And from the peer, but with ids that nobody could know.
            octets[28..32].copy_from_slice(&(near.0 ^ 1).to_be_bytes());
            pair.ends[0].handle(pair.now, address(1), &octets);
            while pair.ends[0].poll_transmit().is_some() {}
        }
        pair.post();
        prop_assert_eq!([pair.events[0].len(), pair.events[1].len()], before);
        pair.ends[0].disconnect(pair.now, near);
        while pair.step() {}
        let told = &pair.events[1][before[1]..];
        prop_assert_eq!(told, [Event::Disconnected(far), Event::TimeWaitExit(far)]);
    }
}
