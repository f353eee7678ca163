//! Programs that let nothing go, and what becomes of their queue pairs.

use crate::laws::LINK;
use crate::pair::{Client, Fate, Pair};
use crate::scripts::{MTU, config, request};
use roci_control::program::patience::PATIENCE;
use roci_control::program::{Options, Tally, Why};
use roci_control::{Image, Law, Programmed};
use roci_transport::{
    Arrival, Deferral, Deferred, Engine, EngineConfig, Grant, Operation, QpConfig, Reaction, Recovery,
    Resolution, Segment, Status, Tail,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::{Aeth, Cc, Header, Layout, Opcode};
use std::sync::Arc;

/// An engine whose program answers LoopBack to packets of 22 octets, and arms a timer before one of 20.
fn refusing(deferred: bool) -> (Engine, Qpn, u16) {
    let file = include_bytes!("../../../control/tests/images/faults.elf");
    let image = Image::new("faults", file, &Options { checked: false, ..Options::default() }).unwrap();
    let fallback = Law::from_settings("dcqcn", &[], EngineConfig::default().link).unwrap();
    let program = Programmed::new(Arc::new(image), fallback).unwrap();
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::Program(Box::new(program)));
    let deferred = Deferred { law: deferred, ..Deferred::default() };
    let qpn = engine.create_qp(QpConfig { law, deferred, peer: Qpn::new(9), path: 9, ..config() }).unwrap();
    (engine, qpn, law)
}

/// The next packet, with the law run by the engine or by whoever has the offer.
fn next(engine: &mut Engine, now: Instant) -> Option<Segment> {
    let offer = engine.offer(now, 1)?;
    let event = engine.transmit_event(now, &offer).filter(|_| offer.wants_law);
    let outcome = event.and_then(|event| engine.evaluate(offer.qpn, &event));
    engine.commit(now, offer, outcome.map_or(Grant::Engine, Grant::Law))
}

#[test]
fn a_packet_that_nothing_would_bring_back_goes_under_the_fallback_law() {
    for deferred in [false, true] {
        let (mut engine, qpn, law) = refusing(deferred);
        let tally = |engine: &mut Engine| match engine.law_mut(law) {
            Some(Law::Program(program)) => program.tally().clone(),
            _ => panic!("a program"),
        };
        let send = |id, length| request(id, Operation::Send(Tail::Plain), 0, length);
        engine.post_send(Instant::ZERO, qpn, &send(1, 23)).unwrap();
        engine.post_send(Instant::ZERO, qpn, &send(2, 22)).unwrap();
        assert!(next(&mut engine, Instant::ZERO).is_some_and(|segment| segment.length == 23));
        assert!(next(&mut engine, Instant::ZERO).is_none(), "it waits for the answer to what is in flight");
        assert_eq!(tally(&mut engine).fallen(), 0);
        let mut ack = Header::new(Opcode::ACKNOWLEDGE, qpn, config().send_psn);
        ack.set_aeth(Aeth { syndrome: 0x1f, msn: 1 });
        let now = Instant::ZERO + Span::from_micros(5);
        let arrival = Arrival::new(&ack, 9);
        let mut reaction = Reaction::default();
        engine.receive(now, &arrival, &mut reaction);
        assert_eq!(reaction.refused, None);
        let answer = |engine: &mut Engine, now| {
            while let Some(Deferral::Law { token, qpn, event }) = engine.poll_deferral() {
                let outcome = engine.evaluate(qpn, &event).unwrap();
                engine.resolve(now, token, Resolution::Law(outcome));
            }
        };
        answer(&mut engine, now);
        // It hears of data, which may come unasked.
        assert!(next(&mut engine, now).is_none());
        let until = now + PATIENCE;
        while let Some(now) = engine.next_wakeup().filter(|now| *now <= until) {
            assert_eq!(tally(&mut engine).fallen(), 0);
            engine.wake(now);
            answer(&mut engine, now);
            if now < until {
                assert!(next(&mut engine, now).is_none());
            }
        }
        let now = until;
        assert!(next(&mut engine, now).is_some_and(|segment| segment.length == 22), "{deferred}");
        let tally = tally(&mut engine);
        assert_eq!((tally.fallen(), tally.starved), (1, 1));
        let fault = tally.first().unwrap().to_string();
        assert!(
            fault.starts_with("send at 100.005 ms of queue pair") && fault.contains(" LoopBacks in a row"),
            "{fault}"
        );
    }
}

/// Two engines with a program and what its words begin with.
fn pair_with(file: &[u8], words: &[(&str, &str)], config: QpConfig) -> Pair {
    let image = Arc::new(Image::new("program", file, &Options::default()).unwrap());
    let engine = |seed| {
        let mut program =
            Programmed::new(image.clone(), Law::from_settings("dctcp", &[], LINK).unwrap()).unwrap();
        for (name, value) in words {
            program.set_initial(name, value).unwrap();
        }
        let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
        assert_eq!(engine.add_law(Law::Program(Box::new(program))), 1);
        engine
    };
    Pair::with_engines(engine(1), engine(2), QpConfig { law: 1, ..config }, 1)
}

fn tally(engine: &mut Engine) -> Tally {
    match engine.law_mut(1) {
        Some(Law::Program(program)) => program.tally().clone(),
        _ => panic!("a program"),
    }
}

/// A credit of packets, which acknowledgements give back and losses take.
const SPENDS: &[u8] = include_bytes!("../../../control/tests/images/spends.elf");
/// One of octets, which the receiver of READ data returns as well, and that a loss gives back.
const CREDIT: &[u8] = include_bytes!("../../../../firmware/credit.elf");
/// Lets nothing go, and arms timers.
const TIMES: &[u8] = include_bytes!("../../../control/tests/images/times.elf");

#[test]
fn a_program_that_lets_nothing_be_sent_again_is_stopped_before_its_queue_pair_fails() {
    // Whether the flow is done, after how many timeouts the program was stopped, and how many there were in all.
    let run = |credit: &str, retry: u8, lost: usize| {
        let mut pair = pair_with(SPENDS, &[("credit", credit)], QpConfig { retry, ..config() })
            .script(move |side, n, _, _| if side == Client && n < lost { Fate::Drop } else { Fate::Pass });
        pair.write(1, 0, 4096, 4 * MTU);
        pair.run();
        let tally = tally(&mut pair.client.engine);
        let stopped = tally.first().map(|fault| fault.why);
        let timeouts = pair.client.engine.counters(pair.client.qpns[0]).timeouts;
        (pair.client.ended()[0].1, stopped, tally.starved, timeouts)
    };
    // All four are lost, and with them the credit.
    for retry in [1, 2, 7] {
        let waited = u32::from(retry) + 1;
        let (status, stopped, starved, timeouts) = run("4", retry, 4);
        assert_eq!((status, starved, timeouts), (Status::Success, 1, waited), "{retry} retries");
        let Some(Why::Starved { timeouts, .. }) = stopped else { panic!("{retry} retries: {stopped:?}") };
        assert_eq!(timeouts, waited - 1, "{retry} retries");
    }
    // One that has credit left sends again, and waits for its acknowledgements with nothing left to spend.
    assert_eq!(run("8", 7, 4), (Status::Success, None, 0, 1));
    assert_eq!(run("1", 7, 0), (Status::Success, None, 0, 0));
    // Without retries there is nothing to come before.
    assert_eq!(run("4", 0, 4), (Status::TransportRetryCounterExceeded, None, 0, 1));
}

/// READ data of `packets`, of which the first `lost` do not arrive: whether all is done in the end, whether the program at the
/// responder was stopped, and timeouts of both ends.
fn read_with(pair: Pair, packets: u32, lost: usize) -> (Status, u64, u32) {
    let mut responses = 0;
    let mut pair = pair.script(move |_, _, packet, _| {
        let is_data = packet.header.payload > 0;
        responses += usize::from(is_data);
        if is_data && responses <= lost { Fate::Drop } else { Fate::Pass }
    });
    pair.read(1, 0, 0, packets * MTU);
    pair.run();
    let timeouts = [&pair.client, &pair.server].map(|end| end.engine.counters(end.qpns[0]).timeouts);
    (pair.client.ended()[0].1, tally(&mut pair.server.engine).starved, timeouts.iter().sum())
}

#[test]
fn a_responder_whose_program_lets_no_read_data_be_sent_again_is_stopped_before_the_reader_fails() {
    for (recovery, layout) in [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::NewReno, Layout::Irn),
    ] {
        let run = |credit: &str, retry, lost| {
            let config = QpConfig { recovery, layout, retry, ..config() };
            read_with(pair_with(SPENDS, &[("credit", credit)], config), 4, lost)
        };
        for retry in [2, 3, 7] {
            let (status, starved, timeouts) = run("4", retry, 4);
            assert_eq!((status, starved), (Status::Success, 1), "{recovery:?}, {retry} retries");
            // A responder under NewReno waits twice as long each time, and who reads asks on meanwhile.
            let retry = u32::from(retry);
            let most = if recovery.owns_window() { (2 << retry) + retry } else { 3 * (retry + 1) };
            assert!((1..=most).contains(&timeouts), "{recovery:?}, {retry}: {timeouts}");
        }
        // One that has credit left sends again.
        let (status, starved, _) = run("9", 7, 4);
        assert_eq!((status, starved), (Status::Success, 0), "{recovery:?}");
    }
}

#[test]
fn who_reads_keeps_half_of_its_retries_for_the_law_that_takes_over_at_the_responder() {
    let counts = include_bytes!("../../../control/tests/images/counts.elf");
    let counts = Arc::new(Image::new("counts", counts, &Options::default()).unwrap());
    for (retry, stopped) in [(1, None), (2, Some(2)), (3, Some(2)), (4, Some(3)), (7, Some(4))] {
        // The program at the responder waits for a timer that takes longer than all retries.
        let mut pair = pair_with(TIMES, &[("period", "900000000")], QpConfig { retry, ..config() });
        assert!(pair.client.engine.replace_program(Instant::ZERO, 1, &counts));
        pair.read(1, 0, 0, 4 * MTU);
        pair.run_until(Instant::ZERO + config().timeout * 10);
        let tally = tally(&mut pair.server.engine);
        let timeouts = pair.client.engine.counters(pair.client.qpns[0]).timeouts;
        if let Some(at) = stopped {
            assert_eq!(pair.client.ended(), [(1, Status::Success)], "{retry} retries");
            let Some(Why::Starved { timeouts: starved, .. }) = tally.first().map(|fault| fault.why) else {
                panic!("{retry} retries: {tally:?}")
            };
            assert_eq!((timeouts, starved), (at, at - 1), "{retry} retries");
        } else {
            assert_eq!(pair.client.ended(), [(1, Status::TransportRetryCounterExceeded)]);
            assert_eq!((timeouts, tally.fallen()), (2, 0));
        }
    }
}

#[test]
fn a_program_at_the_responder_hears_that_read_data_were_lost_and_may_have_its_credit_back() {
    let config = QpConfig { layout: Layout::Cc(Cc::new(false, false, 1).unwrap()), ..config() };
    for lost in [1, 4, 12, 20] {
        let pair = pair_with(CREDIT, &[("total_credit", "4096")], config);
        let (status, starved, timeouts) = read_with(pair, 16, lost);
        assert_eq!((status, starved), (Status::Success, 0), "{lost} lost");
        assert!(timeouts <= 1 + lost as u32 / 4, "{lost} lost: {timeouts}");
    }
}

#[test]
fn a_program_that_gives_no_tokens_any_more_is_stopped_and_its_flow_done() {
    for (period, at) in [("100000", 100), ("20000000", 160)] {
        let mut pair = pair_with(TIMES, &[("period", period), ("tokenless", "1")], config());
        pair.write(1, 0, 4096, 4 * MTU);
        // The timers of the other end go on for ever.
        pair.run_until(Instant::ZERO + Span::from_millis(200));
        let tally = tally(&mut pair.client.engine);
        let fault = tally.first().expect("it was stopped");
        assert!(matches!(fault.why, Why::Tokenless { .. }), "{fault}");
        assert_eq!(fault.at.since(Instant::ZERO).as_ps() / 1_000_000_000, at, "{fault}");
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    }
}

#[test]
fn a_packet_that_a_timer_brings_back_waits_for_it() {
    let (mut engine, qpn, law) = refusing(false);
    let file = include_bytes!("../../../control/tests/images/waits.elf");
    let waits = Arc::new(Image::new("waits", file, &Options::default()).unwrap());
    assert!(engine.replace_program(Instant::ZERO, law, &waits));
    let send = request(1, Operation::Send(Tail::Plain), 0, 22);
    engine.post_send(Instant::ZERO, qpn, &send).unwrap();
    assert!(next(&mut engine, Instant::ZERO).is_none());
    let wakeup = engine.next_wakeup().expect("the timer");
    engine.wake(wakeup);
    assert!(next(&mut engine, wakeup).is_some());
}

#[test]
fn the_first_answer_of_a_program_that_came_while_a_packet_was_offered_counts() {
    let (mut engine, qpn, law) = refusing(true);
    let now = Instant::ZERO;
    engine.post_send(now, qpn, &request(1, Operation::Send(Tail::Plain), 0, 20)).unwrap();
    let offer = engine.offer(now, 1).expect("it may go");
    let Some(Law::Program(program)) = engine.law_mut(law) else { panic!("a program") };
    let again = Arc::clone(program.image());
    assert!(engine.replace_program(now, law, &again));
    let event = engine.transmit_event(now, &offer).unwrap();
    let outcome = engine.evaluate(offer.qpn, &event).unwrap();
    assert!(engine.commit(now, offer, Grant::Law(outcome)).is_some());
    assert_eq!(engine.next_wakeup(), Some(now + Span::from_micros(5)), "the timer that it armed runs");
}
