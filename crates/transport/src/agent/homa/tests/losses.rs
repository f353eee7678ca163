//! What is lost while others keep the receiver's link busy.

use super::*;

#[test]
fn who_stands_behind_others_of_its_priority_is_asked_for_after_eight_intervals_though_the_link_is_never_idle()
{
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    let mut again = Vec::new();
    // Whole messages of others fill the link, for two milliseconds.
    for n in 0..834 {
        let now = at(0) + Span::from_nanos(2_400 * n);
        data(&mut grants, now, 3, 3_000, 0, 3_000);
        if grants.next_wakeup().is_some_and(|wakeup| wakeup <= now) {
            grants.wake(now);
        }
        again.extend(
            asked(&mut grants, now)
                .into_iter()
                .filter(|(offset, end)| offset < end)
                .map(|octets| (n, octets)),
        );
    }
    // A packet at first, four the next time: none came.
    assert_eq!(again, [(334, (1_000, 2_000)), (668, (1_000, 5_000))]);
}

/// What is sent without a grant of a message on `qpn`, in ten packets.
fn begin(grants: &mut Grants, qpn: u32, length: u32) {
    (0..10_000).step_by(1_000).for_each(|offset| data(grants, at(0), qpn, length, offset, offset + 1_000));
}

/// These packets of a message of 9 MB on queue pair 3 fill the link: what is said of queue pair 2 meanwhile, and at which of them.
fn fill(grants: &mut Grants, packets: Range<u32>) -> Vec<(u32, (Class, u32, u8))> {
    let mut heard = Vec::new();
    for packet in packets {
        let now = at(0) + Span::from_nanos(800 * u64::from(packet));
        data(grants, now, 3, 9_000_000, packet * 1_000, packet * 1_000 + 1_000);
        if grants.next_wakeup().is_some_and(|wakeup| wakeup <= now) {
            grants.wake(now);
        }
        let of_two = said(grants, now).into_iter().filter(|said| said.1 == 2);
        heard.extend(of_two.map(|(class, _, end, priority)| (packet, (class, end, priority))));
    }
    heard
}

#[test]
fn who_is_held_back_by_others_of_higher_priority_is_asked_for_nothing_however_long_and_told_so() {
    let mut grants = agent(PARAMS);
    begin(&mut grants, 2, 20_000_000);
    assert_eq!(said(&mut grants, at(0)).last(), Some(&(Class::GRANT, 2, 20_000, 0)));
    let heard = fill(&mut grants, 0..5_000);
    // Four milliseconds are forty intervals, and every other one the sender hears that it is not forgotten.
    assert!(heard.iter().all(|said| said.1 == (Class::GRANT, 20_000, 0)), "{heard:?}");
    assert!((18..=20).contains(&heard.len()), "{heard:?}");
    let mut asked = Vec::new();
    while asked.is_empty() {
        let due = grants.next_wakeup().expect("it is silent now");
        assert!(due < at(0) + Span::from_micros(4_000) + PARAMS.resend * 2, "{due:?}");
        grants.wake(due);
        asked
            .extend(said(&mut grants, due).into_iter().filter(|said| said.0 == Class::RESEND && said.1 == 2));
    }
    assert_eq!(asked, [(Class::RESEND, 2, 20_000, 0), (Class::RESEND, 2, 11_000, 0)]);
}

#[test]
fn others_that_stand_behind_it_in_the_order_do_not_hold_it_back_whatever_it_was_granted() {
    let mut grants = agent(Params { overcommit: 3, ..PARAMS });
    for (qpn, length) in [(4, 30_000), (5, 40_000), (2, 50_000)] {
        begin(&mut grants, qpn, length);
    }
    assert_eq!(said(&mut grants, at(0)).last(), Some(&(Class::GRANT, 2, 20_000, 0)), "the third of three");
    for (qpn, length) in [(4, 30_000), (5, 40_000)] {
        data(&mut grants, at(0), qpn, length, 10_000, length);
    }
    // Now it is the first, and what comes of two others is granted above what it was.
    begin(&mut grants, 6, 9_900_000);
    let asked: Vec<_> = fill(&mut grants, 0..2_500)
        .into_iter()
        .filter(|said| said.1.0 == Class::RESEND && said.1.1 < 20_000)
        .collect();
    // It may come as it was sent yet; when it does not, it comes by the priority that is due to it.
    let expected = [(1_020, (Class::RESEND, 11_000, 0)), (2_020, (Class::RESEND, 14_000, 2))];
    assert_eq!(asked, expected);
}
