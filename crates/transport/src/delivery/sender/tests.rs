use super::*;
use crate::config::Recovery;
use alloc::{format, vec};
use proptest::prelude::*;

const FIRST: Psn = Psn::new(0x00ff_fffe);

fn sender(recovery: Recovery, packets: u32) -> Sender {
    let mut sender = Sender::new(FIRST, Program::new(recovery, 10, FIRST));
    sender.sent(packets);
    sender
}

fn react(sender: &mut Sender, pool: &mut Pool, event: Event) -> Option<Observed> {
    let observed = sender.observe(pool, event)?;
    if observed.wants_decision {
        let decision = sender.decide(pool, Instant::ZERO, &observed);
        sender.apply(pool, &decision);
    }
    assert_counts(sender, pool);
    Some(observed)
}

/// What is counted is what the bitmaps say.
fn assert_counts(sender: &Sender, pool: &Pool) {
    let Some(slot) = &sender.board else { return assert_eq!((sender.arrived, sender.marked), (0, 0)) };
    let acked = pool.plane(slot, ACKED);
    assert_eq!(sender.arrived, acked.count(sender.start, sender.in_flight()));
    assert_eq!(sender.marked, pool.plane(slot, MARKED).count(sender.start, sender.in_flight()));
    let last = acked.last_set_but(sender.start, sender.in_flight(), 0);
    assert!(last.is_none_or(|last| last.since(sender.end) < 0), "{last:?} {:?}", sender.end);
}

proptest! {
    #[test]
    fn the_counts_are_those_of_the_bitmaps_whatever_happens(
        recovery in prop::sample::select(vec![Recovery::Irn, Recovery::Srnic, Recovery::Sack, Recovery::Ndp]),
        steps in prop::collection::vec((0u32..8, 0u32..6, 0u32..20), 1..200),
    ) {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(recovery, 0);
        for (kind, packets, beyond) in steps {
            let (start, in_flight) = (sender.start(), sender.in_flight());
            let cumulative = start.plus(packets.min(in_flight));
            let psn = start.plus(beyond);
            let event = match kind {
                0 => Event::Timeout,
                1 => Event::Lost { psn },
                2 => Event::Nack { cumulative, trigger: Some(psn) },
                3 => Event::Ack { cumulative, selective: None },
                4 => {
                    let next = sender.next();
                    sender.arrived_beyond(&mut pool, Instant::ZERO, psn, next);
                    assert_counts(&sender, &pool);
                    continue;
                }
                5 => {
                    if let Some(run) = sender.resend(&pool, packets) {
                        sender.resent(&mut pool, run);
                    }
                    assert_counts(&sender, &pool);
                    continue;
                }
                6 => {
                    sender.sent(packets.min(sender.room(&pool, sender.next())));
                    sender.doubt_first(&mut pool);
                    assert_counts(&sender, &pool);
                    continue;
                }
                _ => Event::Ack { cumulative: start, selective: Some(psn) },
            };
            react(&mut sender, &mut pool, event);
        }
    }
}

fn ack(cumulative: u32) -> Event {
    Event::Ack { cumulative: Psn::new(cumulative), selective: None }
}

fn nack(cumulative: u32, trigger: Option<u32>) -> Event {
    Event::Nack { cumulative: Psn::new(cumulative), trigger: trigger.map(Psn::new) }
}

#[test]
fn in_order_it_takes_no_bitmap_and_asks_no_program() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 10);
    let observed = react(&mut sender, &mut pool, ack(3)).unwrap();
    assert!(!observed.wants_decision && observed.advanced == 5 && observed.newly_acked == 5);
    assert_eq!(pool.taken(), 0);
    assert!(size_of::<Sender>() <= 68, "{}", size_of::<Sender>());
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 4); // up to PSN 1
    for event in [ack(3), nack(3, None), nack(0, Some(2)), Event::Lost { psn: Psn::new(2) }] {
        assert_eq!(react(&mut sender, &mut pool, event), None);
    }
    assert_eq!(sender.start(), Psn::new(0x00ff_fffe));
}

#[test]
fn go_back_n_sends_the_window_again_from_the_nak_on_and_ignores_an_old_nak() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::GoBackN, 10);
    react(&mut sender, &mut pool, nack(1, None));
    assert_eq!(sender.resend(&pool, 4), Some(Resend { psn: Psn::new(1), packets: 4 }));
    sender.resent(&mut pool, Resend { psn: Psn::new(1), packets: 4 });
    react(&mut sender, &mut pool, nack(0, None));
    assert_eq!(sender.resend(&pool, 99), Some(Resend { psn: Psn::new(5), packets: 3 }));
    react(&mut sender, &mut pool, ack(8));
    assert!(!sender.has_marked(&pool));
}

#[test]
fn without_a_bitmap_a_lone_packet_that_is_sent_again_and_again_is_counted_too() {
    let mut pool = Sender::pool(64, 0);
    let mut sender = sender(Recovery::Irn, 1);
    let mut again = || {
        react(&mut sender, &mut pool, Event::Timeout);
        let run = sender.resend(&pool, 9).expect("the packet");
        sender.resent(&mut pool, run)
    };
    assert_eq!([again(), again(), again()], [0, 1, 1]);
}

#[test]
fn how_often_a_packet_was_sent_again_is_counted_up_to_three() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 10);
    react(&mut sender, &mut pool, nack(0, Some(4)));
    let mut repeated = 0;
    for round in 0..5u8 {
        while let Some(run) = sender.resend(&pool, 9) {
            repeated += sender.resent(&mut pool, run);
        }
        let slot = sender.board.as_ref().unwrap();
        let resends = Resends { low: pool.plane(slot, RESENDS), high: pool.plane(slot, RESENDS + 1) };
        let of = |psn| resends.of(Psn::new(psn));
        assert_eq!((of(0), of(4)), ((round + 1).min(3), 0));
        react(&mut sender, &mut pool, Event::Timeout);
    }
    assert!(repeated >= 4, "{repeated}");
}

#[test]
fn selective_repeat_sends_the_gaps_and_gives_its_bitmaps_back() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 10);
    react(&mut sender, &mut pool, nack(0, Some(1)));
    react(&mut sender, &mut pool, nack(0, Some(4)));
    assert_eq!(pool.taken(), 1);
    for (psn, packets) in [(0, 1), (2, 2)] {
        let run = Resend { psn: Psn::new(psn), packets };
        assert_eq!(sender.resend(&pool, 9), Some(run));
        sender.resent(&mut pool, run);
    }
    assert_eq!(sender.resend(&pool, 9), None);
    let observed = react(&mut sender, &mut pool, ack(5)).unwrap();
    assert_eq!((observed.advanced, observed.newly_acked), (5, 3), "two were known");
    assert_eq!(pool.taken(), 1, "recovery lasts until the packets sent before it are through");
    react(&mut sender, &mut pool, ack(8));
    assert_eq!(pool.taken(), 0);
}

#[test]
fn what_arrived_after_all_is_not_sent_again() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 10);
    react(&mut sender, &mut pool, nack(0, Some(4)));
    react(&mut sender, &mut pool, nack(0, Some(2)));
    assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 2 }));
    sender.resent(&mut pool, Resend { psn: Psn::new(0), packets: 2 });
    assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(3), packets: 1 }));
    react(&mut sender, &mut pool, Event::Timeout);
    assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 2 }), "2 has arrived");
}

#[test]
fn what_was_marked_without_a_bitmap_stays_marked_with_one() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::Irn, 10);
    react(&mut sender, &mut pool, ack(1));
    react(&mut sender, &mut pool, Event::Timeout);
    assert_eq!(pool.taken(), 0, "nothing selective is known");
    react(&mut sender, &mut pool, nack(1, Some(3)));
    assert_eq!(pool.taken(), 1);
    assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(1), packets: 2 }));
}

#[test]
fn with_an_empty_pool_a_range_is_sent_again_and_ends_with_its_acknowledgement() {
    let mut pool = Sender::pool(64, 0);
    let mut sender = sender(Recovery::Irn, 10);
    react(&mut sender, &mut pool, nack(0, Some(2)));
    react(&mut sender, &mut pool, nack(0, Some(5)));
    assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 5 }));
    react(&mut sender, &mut pool, ack(6));
    assert_eq!(sender.resend(&pool, 9), None);
    assert!(!sender.has_marked(&pool));
}

#[test]
fn a_decision_that_comes_late_marks_only_what_is_still_missing() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::GoBackN, 10);
    let observed = sender.observe(&mut pool, Event::Timeout).unwrap();
    let decision = sender.decide(&pool, Instant::ZERO, &observed);
    sender.observe(&mut pool, ack(6)).unwrap();
    sender.apply(&mut pool, &decision);
    assert_eq!(sender.resend(&pool, 99), Some(Resend { psn: Psn::new(6), packets: 2 }));
}

#[test]
fn two_ranges_that_do_not_touch_take_a_bitmap() {
    let mut pool = Sender::pool(64, 1);
    let mut sender = sender(Recovery::NewReno, 10);
    let mark = |from: u32, to: u32| Decision {
        mark: Some((FIRST.plus(from), FIRST.plus(to))),
        window: None,
        restart_timer: false,
    };
    sender.apply(&mut pool, &mark(4, 7));
    assert_eq!(pool.taken(), 0);
    sender.apply(&mut pool, &mark(0, 1));
    assert_eq!(pool.taken(), 1);
    for (psn, packets) in [(0, 1), (4, 3)] {
        let run = Resend { psn: FIRST.plus(psn), packets };
        assert_eq!(sender.resend(&pool, 9), Some(run));
        sender.resent(&mut pool, run);
    }
    assert_eq!((sender.resend(&pool, 9), pool.taken()), (None, 0));
}

#[test]
fn what_is_marked_beyond_the_program_s_window_waits_for_it() {
    let mut pool = Sender::pool(64, 1);
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let mut sender = sender(recovery, 10);
        assert_eq!(sender.room(&pool, sender.next()), 0);
        react(&mut sender, &mut pool, Event::Timeout);
        let run = Resend { psn: FIRST, packets: 1 };
        assert_eq!(sender.resend(&pool, 9), Some(run), "a window of one");
        sender.resent(&mut pool, run);
        assert_eq!((sender.resend(&pool, 9), sender.has_marked(&pool)), (None, false));
        let observed = react(&mut sender, &mut pool, ack(0x00ff_ffff)).unwrap();
        assert!(observed.wants_decision);
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0x00ff_ffff), packets: 2 }));
        assert!(!sender.is_in_order(), "its program stays");
        sender.reset(&mut pool, FIRST, Program::new(recovery, 10, FIRST));
    }
}

#[test]
fn the_window_is_held_to_the_size_of_the_bitmaps() {
    let pool = Sender::pool(64, 1);
    let room = |sender: &Sender| sender.room(&pool, sender.next());
    assert_eq!(room(&sender(Recovery::Irn, 60)), 4);
    assert!(room(&sender(Recovery::GoBackN, 60)) > 1_000_000);
}

proptest! {
    #[test]
    fn the_short_way_in_order_leads_where_the_three_steps_do(
        recovery in prop::sample::select(vec![Recovery::Reno, Recovery::NewReno, Recovery::Sack]),
        steps in prop::collection::vec((0u32..12, 0u32..6, any::<bool>()), 1..200),
    ) {
        let (mut pool, configured) = (Sender::pool(64, 1), Span::from_micros(100));
        let mut short = sender(recovery, 0);
        for (kind, packets, ahead) in steps {
            let room = short.room(&pool, short.next());
            short.sent(packets.min(room));
            let (start, in_flight) = (short.start(), short.in_flight());
            let cumulative = start.plus(packets.min(in_flight));
            let mut long = Sender { board: None, program: short.program.clone(), ..short };
            let left = short.next().since(cumulative).unsigned_abs();
            match short.advance_in_order(&pool, cumulative, left) {
                Some(room) => {
                    react(&mut long, &mut pool, Event::Ack { cumulative, selective: None }).unwrap();
                    prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
                    prop_assert_eq!(room, long.room(&pool, long.next()));
                    prop_assert_eq!(long.timeout(long.next(), configured), configured);
                    prop_assert_eq!(long.resend(&pool, 1), None);
                }
                None => {
                    let selective = (ahead && in_flight > packets + 1).then(|| cumulative.plus(1));
                    let event = match kind {
                        0 => Event::Timeout,
                        _ => Event::Ack { cumulative, selective },
                    };
                    react(&mut short, &mut pool, event);
                    while let Some(run) = short.resend(&pool, 99) {
                        short.resent(&mut pool, run);
                    }
                }
            }
        }
        short.reset(&mut pool, FIRST, Program::new(recovery, 10, FIRST));
    }

    #[test]
    fn what_is_heard_when_a_run_ends_leads_where_it_does_at_once(
        recovery in prop::sample::select(vec![Recovery::Reno, Recovery::NewReno, Recovery::Sack]),
        lost in 0u32..12,
        runs in prop::collection::vec(prop::collection::vec(any::<bool>(), 0..40), 1..20),
    ) {
        let mut pool = Sender::pool(64, 1);
        let mut later = sender(recovery, lost);
        if lost > 0 {
            // Congestion is avoided from half of that on.
            react(&mut later, &mut pool, Event::Timeout);
            while let Some(run) = later.resend(&pool, 99) {
                later.resent(&mut pool, run);
                let cumulative = later.next();
                react(&mut later, &mut pool, Event::Ack { cumulative, selective: None });
            }
        }
        let mut at_once = Sender { board: None, program: later.program.clone(), ..later };
        for run in runs {
            let (start, in_flight) = (later.start(), later.in_flight());
            if in_flight == 0 || later.advance_in_order(&pool, start.plus(1), in_flight - 1).is_none() {
                later.sent(later.room(&pool, later.next()).min(3));
                at_once = Sender { board: None, program: later.program.clone(), ..later };
                continue;
            }
            at_once.advance_in_order(&pool, start.plus(1), in_flight - 1);
            let mut room = later.room(&pool, later.next());
            for sends in run {
                let (start, in_flight) = (at_once.start(), at_once.in_flight());
                if sends && room > 0 {
                    room -= 1;
                    at_once.sent(1);
                } else if in_flight > 0 {
                    let least = at_once.advance_in_order(&pool, start.plus(1), in_flight - 1);
                    prop_assert!(least.is_some_and(|least| least > room || room == 0));
                }
                prop_assert_eq!(later.congestion_window(at_once.start()), at_once.program.window());
            }
            later.hear(at_once.start(), at_once.in_flight());
            later.has_sent(at_once.next());
            prop_assert_eq!(format!("{later:?}"), format!("{at_once:?}"));
        }
    }
}
