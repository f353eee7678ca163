#![expect(clippy::cast_possible_truncation, reason = "a few messages of a few packets")]

mod losses;
mod oldest;
mod senders;

use super::*;
use alloc::vec;
use proptest::prelude::*;
use roci_units::Ratio;

const PARAMS: Params = Params {
    unscheduled: 10_000,
    ahead: None,
    overcommit: 2,
    oldest: Ratio::ZERO,
    priorities: 8,
    cutoffs: [200, 2_800, 15_000],
    resend: Span::from_micros(100),
    resends: 3,
};

/// An agent at 10 Gb/s, with packets that are all payload.
fn agent(params: Params) -> Grants {
    Grants::new(params, BitsPerSec::from_gbps(10), 0)
}

/// So long after the test has begun, and the link had been idle for ten milliseconds before.
fn at(micros: u64) -> Instant {
    Instant::ZERO + Span::from_micros(10_000 + micros)
}

/// Octets `offset..end` of the only message on `qpn`, which comes from host `qpn` % 100.
fn data(grants: &mut Grants, now: Instant, qpn: u32, length: u32, offset: u32, end: u32) {
    data_as(false, grants, now, qpn, length, offset, end);
}

/// The same, as they are sent `again` or not.
fn data_as(again: bool, grants: &mut Grants, now: Instant, qpn: u32, length: u32, offset: u32, end: u32) {
    let part = Part { message: 0, message_length: length, offset, end, priority: 0 };
    let words = [again.into(), 0, 0, length, offset, length.min(PARAMS.unscheduled)];
    let event = Event {
        class: Class::WRITE,
        now,
        qpn,
        peer: u64::from(qpn % 100),
        length: end - offset,
        part,
        words: &words,
        ..Event::default()
    };
    grants.on_event(&event);
}

/// What is sent where no law hears of turns: class, queue pair, how far, priority.
fn said(grants: &mut Grants, now: Instant) -> Vec<(Class, u32, u32, u8)> {
    let mut said = Vec::new();
    while let Some((qpn, Emit { class, mut part, .. })) = grants.poll(now) {
        if class != Class::GRANT || grants.admit(now, qpn, &mut part) {
            said.push((class, qpn.get(), part.end, part.priority));
        }
    }
    said
}

#[test]
fn a_message_of_one_packet_leaves_no_trace() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 500, 0, 500);
    assert_eq!((said(&mut grants, at(0)), grants.incoming(), grants.next_wakeup()), (Vec::new(), 0, None));
}

#[test]
fn a_message_that_needs_no_grant_gets_none() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    assert_eq!((said(&mut grants, at(0)), grants.incoming()), (Vec::new(), 1));
}

#[test]
fn a_round_trips_worth_is_under_way_and_no_more() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 30_000, 0, 1_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    data(&mut grants, at(1), 2, 30_000, 1_000, 3_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 2, 13_000, 0)]);
    data(&mut grants, at(1), 2, 30_000, 3_000, 25_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 2, 30_000, 0)], "to its end and not beyond");
}

#[test]
fn the_shortest_goes_first_and_the_third_waits_its_turn() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 900_000, 0, 1_000);
    data(&mut grants, at(0), 3, 500_000, 0, 1_000);
    data(&mut grants, at(0), 4, 100_000, 0, 1_000);
    let said_first = said(&mut grants, at(0));
    assert_eq!(
        said_first,
        [(Class::GRANT, 2, 11_000, 0), (Class::GRANT, 3, 11_000, 1), (Class::GRANT, 4, 11_000, 1)]
    );
    data(&mut grants, at(1), 2, 900_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(1)), [], "the longest of three is beyond the degree of overcommitment");
    data(&mut grants, at(1), 3, 500_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 3, 12_000, 0)], "a shorter one is above it now");
}

/// What the agent would say of turns, without anything being said.
fn turns(grants: &mut Grants, now: Instant) -> Vec<(Class, u32, u32)> {
    core::iter::from_fn(|| grants.poll(now))
        .map(|(qpn, emit)| (emit.class, qpn.get(), emit.part.offset))
        .collect()
}

#[test]
fn a_message_has_one_turn_for_each_packet_whatever_becomes_of_it() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 900_000, 0, 1_000);
    assert_eq!(turns(&mut grants, at(0)), [(Class::GRANT, 2, 1_000)]);
    data(&mut grants, at(1), 3, 700, 0, 700);
    data(&mut grants, at(1), 4, 800_000, 0, 1_000);
    assert_eq!(turns(&mut grants, at(1)), [(Class::GRANT, 4, 1_000)], "nothing has come of the other");
    data(&mut grants, at(2), 2, 900_000, 1_000, 3_000);
    assert_eq!(turns(&mut grants, at(2)), [(Class::GRANT, 2, 3_000)]);
}

#[test]
fn a_law_grants_as_far_as_it_likes_but_not_beyond_the_end_nor_twice() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 90_000, 0, 1_000);
    let (qpn, Emit { part, .. }) = grants.poll(at(0)).expect("a turn");
    let admit = |grants: &mut Grants, end| {
        let mut part = Part { end, ..part };
        grants.admit(at(0), qpn, &mut part).then_some(part.end)
    };
    assert_eq!(admit(&mut grants, 9_999), None, "the sender may send so much without");
    assert_eq!(admit(&mut grants, 10_001), Some(10_001));
    assert_eq!(admit(&mut grants, 10_001), None);
    assert_eq!(grants.next_wakeup(), Some(at(100)), "what was granted is waited for");
    assert_eq!((admit(&mut grants, u32::MAX), grants.order.first().len()), (Some(90_000), 0));
    let mut unknown = Part { message: 7, ..part };
    assert!(!grants.admit(at(0), qpn, &mut unknown));
}

#[test]
fn who_is_granted_to_its_end_by_a_late_answer_makes_room_at_once() {
    let mut grants = agent(Params { overcommit: 1, ..PARAMS });
    data(&mut grants, at(0), 2, 40_000, 0, 1_000);
    data(&mut grants, at(0), 3, 90_000, 0, 1_000);
    assert_eq!(turns(&mut grants, at(0)), [(Class::GRANT, 2, 1_000)]);
    let mut part = Part { end: 40_000, ..Part::default() };
    assert!(grants.admit(at(5), Qpn::new(2), &mut part));
    assert_eq!(turns(&mut grants, at(5)), [(Class::GRANT, 3, 1_000)]);
}

#[test]
fn who_ends_makes_room_for_the_next() {
    let mut grants = agent(Params { overcommit: 1, ..PARAMS });
    data(&mut grants, at(0), 2, 20_000, 0, 1_000);
    data(&mut grants, at(0), 3, 90_000, 0, 9_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    data(&mut grants, at(1), 2, 20_000, 1_000, 11_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 2, 20_000, 0), (Class::GRANT, 3, 19_000, 0)]);
    data(&mut grants, at(2), 2, 20_000, 11_000, 20_000);
    assert_eq!(grants.incoming(), 1);
}

#[test]
fn what_was_granted_and_did_not_come_is_asked_for_some_times() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    let mut asked = Vec::new();
    while let Some(due) = grants.next_wakeup() {
        grants.wake(due);
        asked.extend(core::iter::from_fn(|| grants.poll(due)).map(|(_, emit)| (due, emit.class, emit.part)));
    }
    let part = Part { message: 0, message_length: 9_000, offset: 1_000, end: 0, priority: 5 };
    let expected: Vec<_> = [(100, 2_000), (200, 5_000), (300, 9_000)]
        .map(|(micros, end)| (at(micros), Class::RESEND, Part { end, ..part }))
        .into();
    assert_eq!(asked, expected);
    data(&mut grants, at(900), 2, 9_000, 1_000, 3_000);
    assert_eq!(grants.next_wakeup(), Some(at(1_000)), "it is back");
}

#[test]
fn a_silence_is_longer_where_what_was_asked_for_came_as_it_was_sent_first_and_shorter_where_it_came_again() {
    for (again, patience) in [(false, 2_124), (true, 1_200)] {
        let resend = Span::from_micros(800);
        let mut grants = agent(Params { resend, ..PARAMS });
        grants.lull = Span::from_micros(1_280);
        data(&mut grants, at(0), 2, 9_000, 0, 1_000);
        grants.wake(at(1_600));
        assert_eq!(asked(&mut grants, at(1_600)), [(1_000, 2_000)]);
        data_as(again, &mut grants, at(1_700), 2, 9_000, 1_000, 2_000);
        assert_eq!(grants.patience(), Span::from_micros(patience));
    }
    // It has an end.
    let grants = Grants { lull: Span::from_millis(9), ..agent(PARAMS) };
    assert_eq!(grants.patience(), PARAMS.resend * 8);
}

/// Octets that are asked for again.
fn asked(grants: &mut Grants, now: Instant) -> Vec<(u32, u32)> {
    let mut asked = Vec::new();
    while let Some((qpn, Emit { class, mut part, .. })) = grants.poll(now) {
        if class == Class::RESEND {
            asked.push((part.offset, part.end));
        } else if class == Class::GRANT {
            grants.admit(now, qpn, &mut part);
        }
    }
    asked
}

#[test]
fn a_silence_asks_for_four_times_as_much_as_often_as_what_it_asked_for_had_to_come_again() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    grants.wake(at(100));
    assert_eq!(asked(&mut grants, at(100)), [(1_000, 2_000)]);
    data_as(true, &mut grants, at(101), 2, 9_000, 1_000, 2_000);
    assert_eq!(asked(&mut grants, at(101)), [(2_000, 6_000)]);
    data_as(true, &mut grants, at(102), 2, 9_000, 3_000, 4_000);
    assert_eq!(asked(&mut grants, at(102)), [(6_000, 9_000)]);
    data_as(true, &mut grants, at(103), 2, 9_000, 2_000, 3_000);
    assert_eq!(asked(&mut grants, at(103)), [], "it is of those before");
    // The next was late, and so may be the others.
    data(&mut grants, at(104), 2, 9_000, 6_000, 7_000);
    data_as(true, &mut grants, at(105), 2, 9_000, 7_000, 8_000);
    assert_eq!(asked(&mut grants, at(105)), []);
}

#[test]
fn what_a_sender_is_free_to_send_since_says_nothing_of_what_was_asked_for() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    grants.wake(at(100));
    assert_eq!(asked(&mut grants, at(100)), [(1_000, 2_000)]);
    grants.on_event(&Event { class: Class::BUSY, now: at(101), qpn: 2, ..Event::default() });
    data(&mut grants, at(102), 2, 9_000, 8_000, 9_000);
    data_as(true, &mut grants, at(103), 2, 9_000, 1_000, 2_000);
    assert_eq!((asked(&mut grants, at(103)), grants.lull), (vec![(2_000, 6_000)], Span::ZERO));
}

#[test]
fn who_keeps_nothing_out_of_order_is_asked_for_all_once() {
    let mut grants = agent(PARAMS);
    let words = [0, 0, 0, 9_000, 0, 9_000];
    let part = Part { message: 0, message_length: 9_000, offset: 0, end: 1_000, priority: 0 };
    let event = Event {
        class: Class::WRITE,
        now: at(0),
        qpn: 2,
        length: 1_000,
        part,
        words: &words,
        missing: 1,
        ..Event::default()
    };
    grants.on_event(&event);
    grants.wake(at(100));
    assert_eq!(asked(&mut grants, at(100)), [(1_000, 9_000)]);
}

#[test]
fn octets_that_others_overtook_are_asked_for_when_those_come_that_were_granted_after_it_was_seen() {
    // Of two round trips the second and the fifth packet are missing, and what is sent again is lost as well. A packet takes 800 ns, as far
    // as is known.
    for apart in [1_000, 799] {
        let mut grants = agent(PARAMS);
        let mut heard = Vec::new();
        for packet in (0..34u32).filter(|packet| ![1, 4].contains(packet)) {
            let (now, offset) = (at(0) + Span::from_nanos(apart * u64::from(packet)), packet * 1_000);
            data(&mut grants, now, 2, 900_000, offset, offset + 1_000);
            heard.extend(asked(&mut grants, now).into_iter().map(|octets| (packet, octets)));
        }
        let (second, fifth) = ((1_000, 2_000), (4_000, 5_000));
        assert_eq!(heard, [(11, second), (19, second), (19, fifth), (27, second), (27, fifth)]);
    }
}

#[test]
fn octets_may_be_as_late_as_some_were_though_those_come_that_were_granted_since() {
    // The third packet comes so long after the fourth, and the thirtieth is lost.
    for (late, asked_by) in [(100, 130), (5, 39)] {
        let mut grants = agent(PARAMS);
        let mut heard = Vec::new();
        for (turn, packet) in (0..2).chain([3, 2]).chain(4..29).chain(30..200u32).enumerate() {
            let pause = if turn < 3 { 0 } else { late - 1 };
            let (now, offset) = (at(turn as u64 + pause), packet * 1_000);
            data(&mut grants, now, 2, 900_000, offset, offset + 1_000);
            heard.extend(asked(&mut grants, now).into_iter().map(|octets| (packet, octets.0)));
        }
        assert_eq!(heard.first(), Some(&(asked_by, 29_000)));
    }
}

#[test]
fn octets_that_were_granted_on_a_lower_priority_than_others_are_waited_for() {
    let mut grants = agent(Params { ahead: Some(10_250), ..PARAMS });
    data(&mut grants, at(0), 2, 90_000, 0, 1_000);
    assert_eq!(asked(&mut grants, at(0)), []);
    // A longer message comes: what is granted of the first one from now on, beyond 11,250 octets, has a higher priority.
    data(&mut grants, at(1), 3, 900_000, 0, 1_000);
    for packet in (1..11u32).chain(12..60) {
        let now = at(u64::from(packet) + 1);
        data(&mut grants, now, 2, 90_000, packet * 1_000, packet * 1_000 + 1_000);
        assert_eq!(asked(&mut grants, now), []);
    }
    // Nor when the link was idle, for they may stand in a sender's.
    let due = grants.next_wakeup().expect("a look");
    grants.wake(due);
    assert_eq!(asked(&mut grants, due), []);
    data(&mut grants, at(150), 2, 90_000, 11_000, 12_000);
    assert!(grants.looks.is_empty());
}

#[test]
fn octets_that_others_overtook_are_asked_for_when_the_link_was_idle_for_two_round_trips() {
    let mut grants = agent(PARAMS);
    for packet in [0, 1, 3, 5, 6] {
        data(&mut grants, at(packet.into()), 2, 9_000, packet * 1_000, packet * 1_000 + 1_000);
    }
    // A whole message of another, of 8 µs: two round trips of 8 µs each, and that, after the gap was seen.
    data(&mut grants, at(7), 3, 9_000, 0, 9_000);
    let due = grants.next_wakeup().expect("a look");
    let busy = Span::from_nanos(2 * 800 + 7_200);
    assert_eq!(due, at(3) + Span::from_micros(16) + busy);
    grants.wake(due);
    assert_eq!(asked(&mut grants, due), [(2_000, 3_000)], "the other was seen later");
    let due = due + Span::from_micros(16);
    assert_eq!(grants.next_wakeup(), Some(due));
    grants.wake(due);
    assert_eq!(asked(&mut grants, due), [(2_000, 3_000), (4_000, 5_000)], "the end may be under way");
    assert!(grants.looks.is_empty(), "once, until something comes");
}

#[test]
fn octets_that_come_late_are_not_asked_for() {
    let mut grants = agent(PARAMS);
    for packet in [0, 2, 1, 4, 3, 5] {
        data(&mut grants, at(packet.into()), 2, 9_000, packet * 1_000, packet * 1_000 + 1_000);
    }
    grants.wake(at(100));
    assert_eq!(asked(&mut grants, at(100)), []);
    assert_eq!(grants.next_wakeup(), Some(at(105)), "what has still to come is waited for");
}

#[test]
fn a_sender_that_has_died_makes_room_and_is_taken_back_when_it_is_heard() {
    let mut grants = agent(Params { overcommit: 1, resends: 2, ..PARAMS });
    data(&mut grants, at(0), 2, 40_000, 0, 1_000);
    data(&mut grants, at(0), 3, 90_000, 0, 9_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    let mut heard: Vec<Vec<_>> = Vec::new();
    for due in [110, 210, 310] {
        // The other has sent all that it may but the last octets, and is well.
        grants.on_event(&Event { class: Class::BUSY, now: at(due - 1), qpn: 3, ..Event::default() });
        grants.wake(at(due));
        heard.push(
            said(&mut grants, at(due))
                .into_iter()
                .filter(|said| said.1 == 2 || said.0 == Class::GRANT)
                .collect(),
        );
    }
    // The grant may be lost, or what it granted.
    let asked = |end| vec![(Class::RESEND, 2, 11_000, 0), (Class::RESEND, 2, end, 0)];
    assert_eq!(heard, [asked(2_000), asked(5_000), vec![(Class::GRANT, 3, 19_000, 0)]]);
    data(&mut grants, at(400), 2, 40_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(400)), [(Class::GRANT, 2, 12_000, 0)], "the shortest again");
}

#[test]
fn a_queue_pair_that_names_messages_without_end_holds_no_more_than_some() {
    let mut grants = agent(PARAMS);
    for message in 0..5_000 {
        let part = Part { message, message_length: 50_000, offset: 0, end: 1_000, priority: 0 };
        grants.on_event(&Event { class: Class::WRITE, qpn: 2, length: 1_000, part, ..Event::default() });
    }
    assert_eq!((grants.incoming(), grants.order.places().len()), (MESSAGES_OF_QP, MESSAGES_OF_QP));
}

#[test]
fn who_is_busy_is_asked_later() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    grants.wake(at(100));
    assert_eq!(said(&mut grants, at(100)).len(), 1);
    grants.on_event(&Event { class: Class::BUSY, now: at(150), qpn: 2, ..Event::default() });
    grants.wake(at(200));
    assert_eq!(said(&mut grants, at(200)), []);
    assert_eq!(grants.next_wakeup(), Some(at(250)));
}

#[test]
fn who_stands_behind_others_is_not_missed_yet() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    // Whole messages of others, of 40 µs together.
    for n in 0..50 {
        data(&mut grants, at(n), 3, 1_000, 0, 1_000);
    }
    grants.wake(at(100));
    assert_eq!((said(&mut grants, at(100)), grants.next_wakeup()), (Vec::new(), Some(at(140))));
    grants.wake(at(140));
    assert_eq!(said(&mut grants, at(140)), [(Class::RESEND, 2, 2_000, 5)]);
}

#[test]
fn nor_who_stands_behind_read_data() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    let response = Event { class: Class::READ_RESPONSE, qpn: 3, length: 1_000, ..Event::default() };
    (0..50).for_each(|n| grants.on_event(&Event { now: at(n), ..response }));
    grants.wake(at(100));
    assert_eq!((said(&mut grants, at(100)), grants.next_wakeup()), (Vec::new(), Some(at(140))));
}

/// READ data on queue pair 2: the first packet that is missing, those after the last that came and the last that was asked for; or, without
/// octets, word that they wait.
fn read(grants: &mut Grants, now: Instant, (expected, reach, end): (u32, u32, u32), length: u32) {
    let part = Part { offset: expected, end: reach, message_length: end, ..Part::default() };
    grants.on_event(&Event { class: Class::READ_RESPONSE, now, qpn: 2, length, part, ..Event::default() });
}

#[test]
fn read_data_that_others_overtook_are_asked_for_when_those_come_that_were_asked_for_after_it_was_seen() {
    let mut grants = agent(PARAMS);
    // Sequences go round.
    let at_first = u32::MAX - 2;
    let next = |n: u32| at_first.wrapping_add(n);
    read(&mut grants, at(0), (next(1), next(1), next(10)), 1_000);
    read(&mut grants, at(1), (next(1), next(3), next(10)), 1_000);
    read(&mut grants, at(2), (next(1), next(10), next(20)), 1_000);
    assert_eq!(said(&mut grants, at(2)), [], "it may come late");
    read(&mut grants, at(3), (next(1), next(11), next(20)), 1_000);
    assert_eq!(said(&mut grants, at(3)), [(Class::READ_RESPONSE, 2, next(3), 0)]);
    read(&mut grants, at(4), (next(20), next(20), next(20)), 1_000);
    assert_eq!((said(&mut grants, at(4)), grants.next_wakeup()), (Vec::new(), None));
}

#[test]
fn read_data_that_others_overtook_are_asked_for_when_the_link_was_idle_for_two_round_trips() {
    let mut grants = agent(PARAMS);
    read(&mut grants, at(0), (1, 4, 6), 1_000);
    // What is unscheduled takes 8 us, and each packet 0.8 us, in which the link is not idle.
    assert_eq!(grants.next_wakeup(), Some(at(16)));
    read(&mut grants, at(10), (1, 6, 6), 1_000);
    let due = at(16) + Span::from_nanos(800);
    grants.wake(at(16));
    assert_eq!(said(&mut grants, at(16)), []);
    grants.wake(due);
    assert_eq!(said(&mut grants, due), [(Class::READ_RESPONSE, 2, 4, 0)]);
}

#[test]
fn read_data_of_which_nothing_is_heard_are_asked_for_less_and_less_often() {
    let resend = Span::from_micros(800);
    let mut grants = agent(Params { resend, ..PARAMS });
    read(&mut grants, at(0), (3, 3, 20), 1_000);
    let mut asked = Vec::new();
    while let Some(wake) = grants.next_wakeup() {
        grants.wake(wake);
        asked.extend(said(&mut grants, wake).iter().map(|said| (wake, said.0, said.2)));
    }
    let expected = [(100, 4), (300, 5), (700, 7), (1_500, 11), (2_300, 11), (3_100, 11), (3_900, 11)];
    let expected = expected.map(|(micros, end)| (at(micros), Class::READ_RESPONSE, end));
    assert_eq!(asked, expected, "then it is given up");
    // Who says that they wait is asked after twice as long, and who sends some after an eighth of the interval.
    read(&mut grants, at(20_000), (3, 3, 20), 0);
    assert_eq!(grants.next_wakeup(), Some(at(21_600)));
    read(&mut grants, at(20_100), (4, 4, 20), 1_000);
    assert_eq!(grants.next_wakeup(), Some(at(20_200)));
    grants.forget(Qpn::new(2));
    assert_eq!(grants.next_wakeup(), None);
}

/// Packets of READ data have been asked for, up to `end`.
fn ask(grants: &mut Grants, now: Instant, end: u32) {
    let part = Part { message_length: end, ..Part::default() };
    grants.on_event(&Event { class: Class::MESSAGE, now, qpn: 2, part, ..Event::default() });
}

#[test]
fn a_silence_is_no_shorter_than_two_reads_take() {
    // From the request to the first packet it was 80 us, in all of which the link was idle, but for a packet of 0.8 us.
    let mut grants = agent(Params { resend: Span::from_micros(800), ..PARAMS });
    ask(&mut grants, at(10), 9);
    read(&mut grants, at(90), (1, 1, 9), 1_000);
    grants.wake(at(90));
    assert_eq!(grants.next_wakeup(), Some(at(90 + 2 * 80) - Span::from_nanos(2 * 800)));
}

#[test]
fn packets_that_others_have_overtaken_are_waited_for_as_long_as_such_have_taken_twice() {
    for word in [0, 1] {
        let mut grants = agent(Params { resend: Span::from_micros(800), ..PARAMS });
        read(&mut grants, at(20), (0, 2, 9), 1_000);
        let part = Part { message: 1, offset: 2, end: 2, message_length: 9, ..Part::default() };
        let (class, words) = (Class::READ_RESPONSE, &[word][..]);
        grants.on_event(&Event {
            class,
            now: at(60),
            qpn: 2,
            length: 1_000,
            part,
            words,
            ..Event::default()
        });
        read(&mut grants, at(61), (2, 4, 9), 1_000);
        grants.wake(at(61));
        said(&mut grants, at(61));
        // The link was idle for 39.2 us until the late one had come, and what was sent again came late for another reason.
        let late = if word == 0 { Span::from_nanos(2 * 39_200) } else { Span::from_micros(16) };
        assert_eq!(grants.next_wakeup(), Some(at(61) + late));
    }
}

#[test]
fn in_a_silence_one_packet_is_asked_for_and_when_it_comes_all_that_was_asked_for_before_it() {
    let resend = Span::from_micros(800);
    let again = |grants: &mut Grants, now, expected, word| {
        let part = Part { offset: expected, end: expected, message_length: 9, ..Part::default() };
        let (class, words) = (Class::READ_RESPONSE, &[word][..]);
        grants.on_event(&Event { class, now, qpn: 2, length: 1_000, part, words, ..Event::default() });
    };
    for (word, then) in [(1, Some((16, 6))), (0, None)] {
        let mut grants = agent(Params { resend, ..PARAMS });
        ask(&mut grants, at(0), 6);
        grants.wake(at(800));
        assert_eq!(said(&mut grants, at(800)), [(Class::READ_RESPONSE, 2, 1, 0)]);
        ask(&mut grants, at(850), 9);
        again(&mut grants, at(900), 1, word);
        let (after, end) = then.unwrap_or((100, 2));
        assert_eq!(grants.next_wakeup(), Some(at(900 + after)));
        grants.wake(at(900 + after));
        assert_eq!(said(&mut grants, at(900 + after)), [(Class::READ_RESPONSE, 2, end, 0)]);
    }
}

#[test]
fn reads_that_come_and_go_leave_nothing_behind_among_what_is_looked_at() {
    let mut grants = agent(PARAMS);
    // What is due first stays there.
    read(&mut grants, at(0), (1, 3, 9), 1_000);
    for turn in 0..1_000 {
        let part = Part { message_length: turn + 1, offset: turn, end: turn, ..Part::default() };
        let now = at(turn.into());
        let asks = Event { class: Class::MESSAGE, now, qpn: 3, part, ..Event::default() };
        grants.on_event(&asks);
        let part = Part { offset: turn + 1, end: turn + 1, ..part };
        grants.on_event(&Event { class: Class::READ_RESPONSE, length: 100, part, ..asks });
    }
    assert!(grants.looks.len() < 4, "{}", grants.looks.len());
}

#[test]
fn read_data_of_which_nothing_came_are_asked_for_after_the_interval_and_sooner_once_some_have() {
    let resend = Span::from_micros(800);
    let mut grants = agent(Params { resend, ..PARAMS });
    ask(&mut grants, at(0), 3);
    ask(&mut grants, at(500), 6);
    assert_eq!(grants.next_wakeup(), Some(at(800)));
    grants.wake(at(800));
    assert_eq!(said(&mut grants, at(800)), [(Class::READ_RESPONSE, 2, 1, 0)]);
    read(&mut grants, at(900), (4, 4, 6), 1_000);
    assert_eq!(grants.next_wakeup(), Some(at(1_000)));
    read(&mut grants, at(950), (6, 6, 6), 1_000);
    assert_eq!(grants.next_wakeup(), None);
    ask(&mut grants, at(2_000), 9);
    assert_eq!(grants.next_wakeup(), Some(at(2_800)));
}

#[test]
fn who_has_sent_all_that_was_granted_and_must_wait_is_acknowledged() {
    let mut grants = agent(Params { overcommit: 1, ..PARAMS });
    data(&mut grants, at(0), 2, 20_000, 0, 1_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    data(&mut grants, at(0), 3, 90_000, 0, 9_000);
    assert_eq!(said(&mut grants, at(0)), [], "1000 octets have still to come unasked");
    data(&mut grants, at(0), 3, 90_000, 9_000, 10_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::ACK, 3, 0, 0)]);
    assert_eq!(grants.next_wakeup(), Some(at(100)), "for the first message alone");
}

#[test]
fn a_queue_pair_that_ends_takes_its_messages_with_it() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 900_000, 0, 1_000);
    data(&mut grants, at(0), 3, 900_000, 0, 1_000);
    grants.forget(Qpn::new(2));
    assert_eq!(grants.incoming(), 1);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 3, 11_000, 0)]);
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 8_500, 9_500);
    data(&mut grants, at(0), 2, 9_000, 500, 500);
    assert_eq!(grants.incoming(), 0);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    data(&mut grants, at(0), 2, 7_000, 1_000, 7_000);
    assert_eq!(grants.incoming(), 1, "a message does not change its length");
}

proptest! {
    /// Packets of some messages of three senders in any order: each is granted to its end, and nothing is left.
    #[test]
    fn every_message_is_granted_whole_in_any_order(
        lengths in prop::collection::vec(1u32..120_000, 1..8),
        seed in any::<u64>(),
    ) {
        let mut random = roci_units::Random::new(seed, 0);
        let mut grants = agent(PARAMS);
        let mut granted: Vec<u32> = lengths.iter().map(|&length| length.min(PARAMS.unscheduled)).collect();
        let mut left: Vec<Vec<u32>> = lengths.iter().map(|length| (0..length.div_ceil(1_000)).collect()).collect();
        for step in 0..2_000 {
            let ready: Vec<(usize, usize)> = (0..lengths.len())
                .flat_map(|n| (0..left[n].len()).map(move |place| (n, place)))
                .filter(|&(n, place)| left[n][place] * 1_000 < granted[n])
                .collect();
            if ready.is_empty() {
                break;
            }
            let (n, place) = ready[random.below(ready.len() as u64) as usize];
            let packet = left[n].remove(place);
            let (offset, end) = (packet * 1_000, (packet * 1_000 + 1_000).min(lengths[n]));
            // A queue pair for each message, and three hosts.
            data(&mut grants, at(step), n as u32 * 100 + n as u32 % 3, lengths[n], offset, end);
            for (class, qpn, end, _) in said(&mut grants, at(step)) {
                if matches!(class, Class::ACK | Class::RESEND) {
                    continue;
                }
                prop_assert_eq!(class, Class::GRANT);
                let n = qpn as usize / 100;
                prop_assert!(end > granted[n] && end <= lengths[n]);
                granted[n] = end;
            }
        }
        prop_assert!(left.iter().all(Vec::is_empty), "{left:?} with {granted:?}");
        prop_assert_eq!(grants.incoming(), 0);
    }

    /// Stretches that overlap in any way, against a bit for each octet.
    #[test]
    fn each_octet_counts_once(parts in prop::collection::vec((0u32..60, 1u32..20), 1..40)) {
        let mut ranges = Ranges::default();
        let mut octets = [false; 80];
        for (from, length) in parts {
            ranges.add(from, from + length);
            octets[from as usize..(from + length) as usize].fill(true);
            let count = octets.iter().filter(|octet| **octet).count();
            prop_assert_eq!(ranges.octets as usize, count);
            let reach = octets.iter().rposition(|octet| *octet).map_or(0, |last| last as u32 + 1);
            prop_assert_eq!(ranges.reach().unwrap_or(ranges.start), reach);
            for (from, to) in [(0, 80), (20, 50)] {
                let mut missing = [false; 80];
                for (from, to) in ranges.gaps(from..to) {
                    missing[from as usize..to as usize].fill(true);
                }
                let within = |place: &usize| (from..to).contains(&(*place as u32));
                prop_assert!((0..80).all(|place| missing[place] == (!octets[place] && within(&place))));
                let mut places = (0..80).filter(within).filter(|&place| !octets[place]);
                let fifth = places.nth(4).or_else(|| (0..80).filter(within).rfind(|&place| !octets[place]));
                let end = fifth.map_or(from, |place| place as u32 + 1);
                prop_assert_eq!(ranges.first_missing(from..to, 5), end);
            }
        }
    }
}
