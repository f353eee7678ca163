//! Requests for the datagrams of services.

use super::*;
use roci_wire::cm::{ServiceRequest, datagram_service, status};

const DATAGRAMS: u64 = datagram_service(7174);

fn asking_for(service: u64) -> ServiceRequest {
    ServiceRequest { id: 0, p_key: 0xffff, service, endpoints: None, private: Private::NONE }
}

/// A peer's request, and a queue pair that serves it.
fn query(id: u32, transaction: u64) -> [u8; MAD_LEN] {
    Mad { transaction, message: Message::Resolve(ServiceRequest { id, ..asking_for(DATAGRAMS) }) }.emit()
}

fn serving(qpn: u32) -> Serving {
    Serving { status: status::VALID, qpn: Qpn::new(qpn), q_key: 5, private: Private::new(b"me").unwrap() }
}

fn queried(event: &Event) -> Option<Id> {
    if let Event::Queried { id, .. } = event { Some(*id) } else { None }
}

/// The answers that a machine has to send, by status and queue pair.
fn answers(machine: &mut Machine) -> Vec<(u8, u32)> {
    let sent = std::iter::from_fn(|| machine.poll_transmit());
    let parsed = sent.map(|(_, mad)| match Mad::parse(&mad).unwrap().message {
        Message::Resolved(reply) => (reply.status, reply.qpn.get()),
        other => panic!("{other:?}"),
    });
    parsed.collect()
}

#[test]
fn a_service_is_asked_for_and_answered_and_both_forget_it() {
    let mut pair = Pair::new(1, Faults::default());
    assert!(pair.ends[1].listen_datagrams(DATAGRAMS) && !pair.ends[1].listen_datagrams(DATAGRAMS));
    let asked = pair.ends[0].resolve(pair.now, address(1), asking_for(DATAGRAMS));
    pair.step();
    let id = queried(&pair.events[1][0]).unwrap();
    assert!(pair.ends[1].serve(pair.now, id, &serving(0x22)));
    assert!(!pair.ends[1].serve(pair.now, id, &serving(0x33)), "it has been answered");
    while pair.step() {}
    let [Event::Resolved { id, reply }] = &pair.events[0][..] else { panic!("{:?}", pair.events) };
    assert_eq!((*id, reply.status, reply.qpn.get(), reply.q_key), (asked, status::VALID, 0x22, 5));
    assert_eq!((reply.service, &reply.private.0[..3], pair.sent), (DATAGRAMS, &b"me\0"[..], 2));
    assert!(pair.ends.iter().all(Machine::is_empty));
}

#[test]
fn who_listens_for_connections_alone_has_no_datagrams_and_the_other_way_round() {
    let mut machine = Machine::new(2, drawing(12));
    machine.listen(DATAGRAMS);
    machine.handle(Instant::ZERO, address(0), &query(9, 1));
    assert_eq!(answers(&mut machine), [(status::UNSUPPORTED, 0)]);
    machine.listen_datagrams(PORT);
    machine.handle(Instant::ZERO, address(0), &asking(0, 1));
    let (_, refused) = machine.poll_transmit().unwrap();
    let Message::Reject(reject) = Mad::parse(&refused).unwrap().message else { panic!() };
    assert_eq!(reject.reason, reason::INVALID_SERVICE);
    assert!(machine.is_empty());
}

#[test]
fn who_listens_a_little_late_is_asked_again_and_who_does_not_come_is_told_of() {
    for is_late in [true, false] {
        let mut pair = Pair::new(2, Faults::default());
        pair.ends[0].resolve(pair.now, address(1), asking_for(DATAGRAMS));
        while pair.now < Instant::ZERO + LATE / 2 {
            assert!(pair.step());
        }
        assert!(pair.sent > 4 && pair.events[0].is_empty(), "refused more than once");
        if is_late {
            pair.ends[1].listen_datagrams(DATAGRAMS);
        }
        while pair.events[0].is_empty() {
            assert!(pair.step());
            if let Some(id) = pair.events[1].pop().as_ref().and_then(queried) {
                pair.ends[1].serve(pair.now, id, &serving(0x22));
            }
        }
        let [Event::Resolved { reply, .. }] = &pair.events[0][..] else { panic!("{:?}", pair.events) };
        assert_eq!(reply.status, if is_late { status::VALID } else { status::UNSUPPORTED });
        assert!(pair.now < Instant::ZERO + LATE + AGAIN * 2);
        while pair.step() {}
        assert!(pair.ends.iter().all(Machine::is_empty));
    }
}

#[test]
fn who_gets_no_answer_hears_so_after_all_retries_and_who_has_lost_interest_asks_no_more() {
    let mut pair = Pair::new(4, Faults { lost: 100, ..Faults::default() });
    let id = pair.ends[0].resolve(pair.now, address(1), asking_for(DATAGRAMS));
    while pair.step() {}
    assert_eq!(pair.events[0], [Event::Unreachable(id)]);
    let waited = interval(RESPONSE_TIMEOUT).as_ps() * (u64::from(RETRIES) + 1);
    assert_eq!(pair.now.as_ps(), waited);
    let id = pair.ends[0].resolve(pair.now, address(1), asking_for(DATAGRAMS));
    pair.ends[0].forget_service(id);
    assert!(pair.ends[0].is_empty() && pair.ends[0].poll_timeout().is_none());
}

#[test]
fn a_request_that_comes_again_is_one_and_gets_the_same_answer() {
    let mut machine = Machine::new(2, drawing(13));
    machine.listen_datagrams(DATAGRAMS);
    (0..3).for_each(|_| machine.handle(Instant::ZERO, address(0), &query(9, 1)));
    let id = machine.poll_event().as_ref().and_then(queried).unwrap();
    assert!(machine.poll_event().is_none() && machine.poll_transmit().is_none());
    machine.serve(Instant::ZERO, id, &serving(0x22));
    machine.unlisten_datagrams(DATAGRAMS);
    machine.handle(Instant::ZERO, address(0), &query(9, 1));
    assert_eq!(answers(&mut machine), [(0, 0x22), (0, 0x22)]);
    // One that has begun anew asks by the same number.
    machine.listen_datagrams(DATAGRAMS);
    machine.handle(Instant::ZERO, address(0), &query(9, 2));
    assert_eq!(machine.poll_event(), Some(Event::Forgotten(id)));
    assert!(machine.poll_transmit().is_none() && machine.poll_event().as_ref().and_then(queried).is_some());
    // Another's is another.
    machine.handle(Instant::ZERO, address(3), &query(9, 1));
    assert!(machine.poll_event().as_ref().and_then(queried).is_some());
    while let Some(at) = machine.poll_timeout() {
        machine.wake(at);
    }
    assert!(machine.is_empty() && machine.pending == 0 && machine.pending_of.is_empty());
}

#[test]
fn an_answer_is_remembered_until_long_after_it_was_asked_for_last_and_then_a_request_is_a_new_one() {
    let mut machine = Machine::new(2, drawing(16));
    machine.listen_datagrams(DATAGRAMS);
    machine.handle(Instant::ZERO, address(0), &query(9, 1));
    let id = machine.poll_event().as_ref().and_then(queried).unwrap();
    machine.serve(Instant::ZERO, id, &serving(0x22));
    assert_eq!(answers(&mut machine), [(0, 0x22)]);
    // Linux asks 15 times more, each after 4.096 s; of three one is lost.
    let mut now = Instant::ZERO;
    for asked in 1..=15 {
        now += Span::from_millis(4_096);
        machine.wake(now);
        if asked % 3 != 0 {
            machine.handle(now, address(0), &query(9, 1));
            assert_eq!(answers(&mut machine), [(0, 0x22)]);
        }
        assert_eq!(machine.poll_event(), None, "nobody is asked again");
    }
    let end = machine.poll_timeout().unwrap();
    assert_eq!(end + Span::from_millis(4_096), now + patience(RESPONSE_TIMEOUT, RETRIES));
    machine.wake(end);
    assert_eq!(machine.poll_event(), Some(Event::Forgotten(id)));
    assert!(machine.is_empty() && machine.poll_event().is_none());
    machine.handle(end, address(0), &query(9, 1));
    assert!(machine.poll_event().as_ref().and_then(queried).is_some_and(|other| other != id));
}

#[test]
fn nothing_is_remembered_of_that_nobody_listens_for_somebody_may_when_it_comes_again() {
    let mut machine = Machine::new(2, drawing(17));
    machine.listen_datagrams(DATAGRAMS);
    machine.handle(Instant::ZERO, address(0), &query(9, 1));
    let id = machine.poll_event().as_ref().and_then(queried).unwrap();
    assert!(machine.serve(Instant::ZERO, id, &Serving::not(status::UNSUPPORTED, Private::NONE)));
    assert_eq!(answers(&mut machine), [(status::UNSUPPORTED, 0)]);
    assert!(machine.is_empty() && machine.pending == 0 && machine.poll_event().is_none());
    machine.handle(Instant::ZERO, address(0), &query(9, 1));
    assert!(machine.poll_event().as_ref().and_then(queried).is_some());
}

#[test]
fn an_answer_is_believed_of_whom_was_asked_and_to_what_was_asked() {
    let mut machine = Machine::new(2, drawing(14));
    let asked = machine.resolve(Instant::ZERO, address(1), asking_for(DATAGRAMS));
    let (_, octets) = machine.poll_transmit().unwrap();
    let transaction = Mad::parse(&octets).unwrap().transaction;
    let mut answer = |from: usize, id: u32, transaction: u64| {
        let Message::Resolved(reply) = serving(0x22).says(id, DATAGRAMS) else { panic!() };
        let mad = Mad { transaction, message: Message::Resolved(reply) };
        machine.handle(Instant::ZERO, address(from), &mad.emit());
        machine.poll_event()
    };
    for (from, id, transaction) in
        [(2, asked.0, transaction), (1, asked.0 ^ 1, transaction), (1, asked.0, transaction ^ 1)]
    {
        assert_eq!(answer(from, id, transaction), None);
    }
    assert!(matches!(answer(1, asked.0, transaction), Some(Event::Resolved { .. })));
    assert_eq!(answer(1, asked.0, transaction), None, "it is known");
}

#[test]
fn so_much_is_remembered_of_requests_that_are_open_and_of_answers_and_no_more() {
    let mut machine = Machine::new(2, drawing(15));
    machine.listen_datagrams(DATAGRAMS);
    for id in 1..=u32::try_from(PENDING_SHARE).unwrap() + 3 {
        machine.handle(Instant::ZERO, address(0), &query(id, 1));
    }
    assert_eq!(answers(&mut machine), [(status::NO_QP, 0); 3]);
    let late = machine.poll_timeout().unwrap();
    assert_eq!(late, Instant::ZERO + PATIENCE);
    let first = machine.poll_event().as_ref().and_then(queried).unwrap();
    machine.wake(late);
    assert!(!machine.serve(late, first, &serving(1)), "it is too late");
    assert!(machine.is_empty() && machine.pending == 0);
    while machine.poll_event().is_some() {}
    for id in 1..=u32::try_from(2 * OVER_MAX).unwrap() {
        machine.handle(late, address(0), &query(id, 1));
        let asked = machine.poll_event().as_ref().and_then(queried).unwrap();
        machine.serve(late, asked, &serving(id));
        assert_eq!(answers(&mut machine), [(0, id)]);
        let is_full = id > u32::try_from(OVER_MAX).unwrap();
        assert_eq!(matches!(machine.poll_event(), Some(Event::Forgotten(_))), is_full);
    }
    assert_eq!(machine.len(), OVER_MAX);
}

proptest! {
    #[test]
    fn loss_duplication_and_reordering_leave_one_answer_to_each_request_or_none(
        seed: u64, lost in 0u32..40, twice in 0u32..30, delay in 0u32..3_000,
    ) {
        let mut pair = Pair::new(seed, Faults { lost, twice, delay });
        pair.ends[1].listen_datagrams(DATAGRAMS);
        let asked = [(); 3].map(|()| pair.ends[0].resolve(pair.now, address(1), asking_for(DATAGRAMS)));
        let mut served = BTreeMap::new();
        loop {
            for event in std::mem::take(&mut pair.events[1]) {
                if let Event::Queried { id, request, .. } = event {
                    let number = 100 + u32::try_from(served.len()).unwrap();
                    // A request that comes again after its answer is forgotten is another, and few do.
                    served.entry(request.id).or_insert(number);
                    prop_assert!(pair.ends[1].serve(pair.now, id, &serving(number)));
                }
            }
            if !pair.step() {
                break;
            }
        }
        prop_assert!(pair.ends.iter().all(Machine::is_empty), "{:?}", pair.ends);
        for id in asked {
            let mut told = pair.events[0].iter().filter_map(|event| match event {
                Event::Resolved { id: whose, reply } if *whose == id => Some(Some(reply.qpn.get())),
                Event::Unreachable(whose) if *whose == id => Some(None),
                _ => None,
            });
            let (first, second) = (told.next(), told.next());
            prop_assert!(second.is_none(), "{:?}", pair.events);
            match first {
                Some(Some(qpn)) => prop_assert_eq!(served.get(&id.0), Some(&qpn)),
                Some(None) => {}
                None => prop_assert!(false, "nothing is told of {id:?}"),
            }
        }
    }
}
