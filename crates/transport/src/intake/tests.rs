use super::*;
use crate::config::{EngineConfig, Pd, QpConfig};
use crate::requester::set_drawn_by;
use crate::responder::ACK;
use crate::work::{Operation, SendRequest, Tail};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;
use roci_control::{Hop, Law};
use roci_units::Qpn;
use roci_wire::layout::cc::Cc;
use roci_wire::{Aeth, Reth, layout::srnic::RequestPosition};

const MTU: u16 = 256;
const QPN: Qpn = Qpn::new(2);

/// An engine with a message of twelve packets under way, which takes the common cases in one piece, or does not.
fn engine(short: bool, ack_every: u16, (recovery, layout): (Recovery, Layout), law: &str) -> (Engine, u32) {
    let mut engine = Engine::new(EngineConfig::default());
    let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let law = Law::from_settings(law, &[], EngineConfig::default().link).unwrap();
    let law = engine.add_law(law);
    let config = QpConfig {
        law,
        qpn: Some(QPN),
        peer: QPN,
        mtu: MTU,
        ack_every,
        recovery,
        layout,
        ..QpConfig::default()
    };
    engine.create_qp(config).unwrap();
    assert!(engine.profiles.iter().all(|profile| profile.short != ShortWay::None));
    for profile in engine.profiles.iter_mut().filter(|_| !short) {
        profile.short = ShortWay::None;
    }
    let request = SendRequest {
        id: 1,
        operation: Operation::Write { va: 0, rkey: key, tail: Tail::Plain },
        length: 12 * u32::from(MTU),
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    };
    engine.post_send(Instant::ZERO, QPN, &request).unwrap();
    (engine, key)
}

/// What can be seen of an engine, whose recovery program and fixed stage know of everything then.
fn look(engine: &mut Engine, reaction: &Reaction) -> String {
    engine.losing(0);
    let wakeup = engine.next_wakeup();
    let Engine { qps, asides, boards, refusals, laws, .. } = engine;
    let states = &laws.states;
    format!("{reaction:?} {qps:?} {asides:?} {boards:?} {wakeup:?} {refusals:?} {states:?}")
}

/// Recovery programs with the layouts that they go with.
fn kinds() -> impl Strategy<Value = (Recovery, Layout)> {
    let cc = Layout::Cc(Cc::new(true, false, 2).unwrap());
    prop::sample::select(vec![
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::GoBackN, cc),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Reno, Layout::Irn),
        (Recovery::NewReno, Layout::Irn),
        (Recovery::Sack, Layout::Irn),
        (Recovery::Sack, Layout::Srnic),
    ])
}

proptest! {
    #[test]
    fn the_short_way_leads_where_the_long_way_does(
        ack_every in 1u16..4,
        kind in kinds(),
        law in prop::sample::select(vec!["none", "dcqcn", "timely", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc"]),
        steps in prop::collection::vec((0u8..13, 0u8..16, -1i32..2, any::<bool>(), any::<bool>()), 1..120),
    ) {
        let (mut short, key) = engine(true, ack_every, kind, law);
        let (mut long, _) = engine(false, ack_every, kind, law);
        let layout = kind.1;
        let mut reactions = [Reaction::default(), Reaction::default()];
        let mut now = Instant::ZERO;
        let mut at = 0u32;
        for (kind, odd, off, ce, asks) in steps {
            now += Span::from_nanos(100);
            let opcode = match kind {
                0 => { prop_assert_eq!(short.transmit(now), long.transmit(now)); continue }
                12 => {
                    // Long enough for a timeout, or only for a pacer.
                    now += if odd < 3 { Span::from_micros(70_000) } else { Span::from_micros(20) };
                    short.wake(now);
                    long.wake(now);
                    prop_assert_eq!(short.transmit(now), long.transmit(now));
                    continue
                }
                1 => Opcode::WRITE_FIRST,
                2..5 => Opcode::WRITE_MIDDLE,
                5 => Opcode::WRITE_LAST,
                6 => Opcode::SEND_MIDDLE,
                10.. => Opcode::WRITE_ONLY,
                _ => Opcode::ACKNOWLEDGE,
            };
            let off = if odd < 3 { off } else { 0 };
            let psn = Psn::new(at.wrapping_add_signed(off));
            let mut header = Header::new(opcode, QPN, psn);
            if opcode == Opcode::ACKNOWLEDGE {
                header.psn = Psn::new(u32::from(odd));
                header.set_aeth(Aeth { syndrome: if odd == 15 { 0x60 } else { ACK }, msn: 0 });
                let trigger = Psn::new(u32::from(odd).wrapping_add_signed(2 * off));
                set_drawn_by(&mut header, layout, trigger);
                if asks {
                    header.flags = Flags::BECN;
                }
            } else {
                header.payload = if odd == 4 { MTU - 4 } else { MTU };
                let length = if kind == 11 { header.payload.into() } else { 16 * u32::from(MTU) };
                let rkey = if odd == 6 { key ^ 1 } else { key };
                header.set_reth(Reth { va: 0, rkey, length });
            }
            if asks && opcode != Opcode::ACKNOWLEDGE {
                header.flags = Flags::ACK_REQUEST;
            }
            let hop = |tx_bytes| Hop::new(now, tx_bytes, 1000 * u32::from(odd), 100_000_000);
            let hops = [hop(now.as_ps() / 90), hop(now.as_ps() / 100)];
            let (words, hops) = ([u32::from(odd), at, 7, 8], if ce { &hops[..] } else { &[] });
            let arrival = Arrival { ce: ce && odd == 5, words: &words, hops, ..Arrival::new(&header, 0) };
            let [of_short, of_long] = &mut reactions;
            short.receive(now, &arrival, of_short);
            long.receive(now, &arrival, of_long);
            prop_assert_eq!(format!("{of_short:?}"), format!("{of_long:?}"));
            if odd % 4 == 0 {
                prop_assert_eq!(look(&mut short, of_short), look(&mut long, of_long));
            }
            at = short.qps[0].responder.expected;
        }
    }
}
proptest! {
    #[test]
    fn who_waits_for_room_goes_before_who_made_it_by_either_way(
        room in 2u32..12,
        steps in prop::collection::vec((any::<bool>(), 0u32..3, 0u32..7), 1..100),
    ) {
        let mut engines = [true, false].map(|short| {
            let mut engine = Engine::new(EngineConfig::default());
            engine.bound_flight(room);
            for qpn in (2..5).map(Qpn::new) {
                let config = QpConfig { qpn: Some(qpn), peer: qpn, mtu: MTU, ack_every: 4, max_in_flight: 6, ..QpConfig::default() };
                engine.create_qp(config).unwrap();
                let operation = Operation::Write { va: 0, rkey: 7, tail: Tail::Plain };
                let length = 1000 * u32::from(MTU);
                let request = SendRequest { id: 1, operation, length, address: 0, lkey: 0, solicited: false, signaled: true, fence: false };
                engine.post_send(Instant::ZERO, qpn, &request).unwrap();
            }
            for profile in engine.profiles.iter_mut().filter(|_| !short) {
                profile.short = ShortWay::None;
            }
            engine
        });
        for (sends, slot, count) in steps {
            if sends {
                for _ in 0..count {
                    let [short, long] = engines.each_mut().map(|engine| engine.transmit(Instant::ZERO));
                    prop_assert_eq!(short, long);
                }
                continue
            }
            let requester = &engines[0].qps[slot as usize].requester;
            let moved = count.min(requester.high.wrapping_sub(requester.una));
            let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(2 + slot), Psn::new(requester.una + moved).minus(1));
            header.set_aeth(Aeth { syndrome: ACK, msn: 0 });
            let arrival = Arrival::new(&header, 0);
            for engine in &mut engines {
                engine.receive(Instant::ZERO, &arrival, &mut Reaction::default());
            }
        }
    }
}
proptest! {
    #[test]
    fn the_short_way_beyond_a_gap_leads_where_the_long_way_does(
        layout in prop::sample::select(vec![Layout::Irn, Layout::Srnic]),
        steps in prop::collection::vec(
            (0u8..16, prop_oneof![4 => Just(0u32), 1 => 1u32..4], 0u32..14, 0u32..14),
            1..100,
        ),
    ) {
        let kind = (Recovery::Sack, layout);
        let [(mut short, _), (mut long, _)] = [true, false].map(|way| engine(way, 1, kind, "none"));
        let mut reactions = [Reaction::default(), Reaction::default()];
        let mut now = Instant::ZERO;
        for (kind, moved, beyond, psn_offset) in steps {
            now += Span::from_nanos(100);
            if kind < 5 {
                now += if kind == 0 && beyond == 0 { Span::from_micros(70_000) } else { Span::ZERO };
                short.wake(now);
                long.wake(now);
                prop_assert_eq!(short.transmit(now), long.transmit(now));
                continue
            }
            let una = Psn::new(short.qps[0].requester.una);
            let mut header = Header::new(Opcode::ACKNOWLEDGE, QPN, una.minus(1).plus(moved));
            header.set_aeth(Aeth { syndrome: ACK, msn: 0 });
            if layout == Layout::Srnic {
                // Its offset stands where another layout names a packet, and is no such name.
                header.set_request_position(RequestPosition { psn_offset, ..RequestPosition::default() });
            }
            set_drawn_by(&mut header, layout, una.plus(beyond));
            let arrival = Arrival::new(&header, 0);
            let [of_short, of_long] = &mut reactions;
            short.receive(now, &arrival, of_short);
            long.receive(now, &arrival, of_long);
            prop_assert_eq!(format!("{of_short:?}"), format!("{of_long:?}"));
            prop_assert_eq!(short.query(QPN).unwrap(), long.query(QPN).unwrap());
            if psn_offset % 4 == 0 {
                prop_assert_eq!(look(&mut short, of_short), look(&mut long, of_long));
            }
        }
    }
}
proptest! {
    #[test]
    fn several_taken_at_once_are_as_if_taken_one_after_the_other(
        ack_every in 1u16..9,
        steps in prop::collection::vec((0u8..8, 1u32..6, 0u32..8), 1..60),
    ) {
        let kind = (Recovery::GoBackN, Layout::Standard);
        let (mut many, key) = engine(true, ack_every, kind, "none");
        let (mut one, _) = engine(true, ack_every, kind, "none");
        let (mut of_many, mut of_one) = (Reaction::default(), Reaction::default());
        let mut at = 0u32;
        for (kind, packets, odd) in steps {
            let opcode = match kind {
                0 => Opcode::WRITE_FIRST,
                1 => Opcode::WRITE_LAST,
                2 => Opcode::SEND_MIDDLE,
                _ => Opcode::WRITE_MIDDLE,
            };
            let mut header = Header::new(opcode, QPN, Psn::new(if odd == 0 { at + 1 } else { at }));
            header.payload = MTU;
            header.set_reth(Reth { va: 0, rkey: key, length: 16 * u32::from(MTU) });
            let arrival = Arrival { ce: odd == 1, ..Arrival::new(&header, 0) };
            let taken = many.receive_middles(&arrival, packets, &mut of_many);
            prop_assert!(taken <= packets);
            let mut places = of_many.placement;
            for number in 0..taken {
                let mut header = header;
                header.psn = header.psn.plus(number);
                let arrival = Arrival { header: &header, ..arrival };
                one.receive(Instant::ZERO, &arrival, &mut of_one);
                let (all, each) = (places.as_mut().unwrap(), of_one.placement.unwrap());
                prop_assert_eq!((all.address, all.key, all.qpn), (each.address, each.key, each.qpn));
                prop_assert!(of_one.reply.is_none() && of_one.notice.is_none());
                all.address += u64::from(each.length);
                all.length -= each.length;
            }
            prop_assert!(places.is_none_or(|rest| rest.length == 0));
            if taken == 0 {
                many.receive(Instant::ZERO, &arrival, &mut of_many);
                one.receive(Instant::ZERO, &arrival, &mut of_one);
                prop_assert_eq!(format!("{of_many:?}"), format!("{of_one:?}"));
            }
            (of_many.placement, of_one.placement) = (None, None);
            prop_assert_eq!(look(&mut many, &of_many), look(&mut one, &of_many));
            at = many.qps[0].responder.expected;
        }
    }
}
