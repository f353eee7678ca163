//! The share of the message that began first.

use super::*;

/// One message at a time is granted, and the oldest is owed a quarter.
const QUARTER: Params = Params { overcommit: 1, oldest: Ratio::new(1, 4), ..PARAMS };

/// Octets `packets` thousand of a message, packet by packet, and what was granted meanwhile of queue pair 2.
fn come(grants: &mut Grants, qpn: u32, length: u32, packets: Range<u32>) -> Vec<(u32, u8)> {
    let mut granted = Vec::new();
    for packet in packets {
        data(grants, at(packet.into()), qpn, length, packet * 1_000, packet * 1_000 + 1_000);
        let said =
            said(grants, at(packet.into())).into_iter().filter(|said| (said.0, said.1) == (Class::GRANT, 2));
        granted.extend(said.map(|(_, _, end, priority)| (end, priority)));
    }
    granted
}

/// A long message begins, a shorter one after it, and all that was granted of the first has come.
fn surpassed(params: Params) -> Grants {
    let mut grants = agent(params);
    assert_eq!(come(&mut grants, 2, 900_000, 0..1), [(11_000, 0)]);
    assert_eq!(come(&mut grants, 3, 500_000, 0..1), []);
    assert_eq!(come(&mut grants, 2, 900_000, 1..11), []);
    grants
}

#[test]
fn the_oldest_is_granted_out_of_order_by_its_part_of_what_comes() {
    let mut grants = surpassed(QUARTER);
    // Twelve thousand octets have come, and forty times a thousand are a window's worth for it.
    assert_eq!(come(&mut grants, 3, 500_000, 1..28), []);
    assert_eq!(come(&mut grants, 3, 500_000, 28..29), [(21_000, 3)], "on the highest of four priorities");
    assert_eq!(come(&mut grants, 3, 500_000, 29..68), [], "what was granted has not come yet");
    assert_eq!(come(&mut grants, 2, 900_000, 11..12), [(31_000, 3)], "it was owed the next by then");
}

#[test]
fn so_is_one_whose_octets_wait_on_a_low_priority() {
    let mut grants = agent(Params { overcommit: 2, ..QUARTER });
    assert_eq!(come(&mut grants, 2, 900_000, 0..1), [(11_000, 0)]);
    assert_eq!(come(&mut grants, 3, 500_000, 0..39), [(21_000, 3)], "though none of ten packets has come");
}

#[test]
fn what_waits_on_a_low_priority_is_asked_for_once_in_its_turns_and_no_more_is_granted_there() {
    let mut grants = agent(Params { overcommit: 2, resend: Span::from_millis(1), ..QUARTER });
    let of_two = |grants: &mut Grants, now| -> Vec<_> {
        let said = said(grants, now).into_iter().filter(|said| said.1 == 2 && said.0 != Class::ACK);
        said.map(|(class, _, end, priority)| (class, end, priority)).collect()
    };
    let mut packet = 0;
    // The next so many packets of the shorter message, which fill the link.
    let mut fill = |grants: &mut Grants, packets| {
        let mut heard = Vec::new();
        for _ in 0..packets {
            let now = at(1) + Span::from_nanos(800 * u64::from(packet));
            data(grants, now, 3, 500_000, packet * 1_000, packet * 1_000 + 1_000);
            heard.extend(of_two(grants, now));
            packet += 1;
        }
        (heard, at(1) + Span::from_nanos(800 * u64::from(packet)))
    };
    data(&mut grants, at(0), 2, 900_000, 0, 10_000);
    assert_eq!(of_two(&mut grants, at(0)), [(Class::GRANT, 20_000, 0)]);
    let (heard, now) = fill(&mut grants, 30);
    assert_eq!(heard, [(Class::GRANT, 30_000, 3)], "beyond what waits");
    data(&mut grants, now, 2, 900_000, 20_000, 30_000);
    assert_eq!(of_two(&mut grants, now), []);
    let (heard, now) = fill(&mut grants, 30);
    assert_eq!(heard, [(Class::RESEND, 20_000, 3)], "for it has not come since the turn before");
    data_as(true, &mut grants, now, 2, 900_000, 10_000, 20_000);
    assert_eq!(of_two(&mut grants, now), [], "what was sent first still stands in the queue");
    let (heard, now) = fill(&mut grants, 30);
    assert_eq!(heard, [(Class::GRANT, 40_000, 3)]);
    data(&mut grants, now, 2, 900_000, 10_000, 15_000);
    assert_eq!(of_two(&mut grants, now), []);
    data(&mut grants, now, 2, 900_000, 15_000, 20_000);
    data(&mut grants, now, 2, 900_000, 30_000, 40_000);
    assert_eq!(of_two(&mut grants, now), [(Class::GRANT, 50_000, 0)], "now that it has come");
}

#[test]
fn whoever_is_the_first_in_order_as_well_needs_no_other_turn() {
    let mut grants = agent(QUARTER);
    come(&mut grants, 2, 300_000, 0..1);
    come(&mut grants, 3, 500_000, 0..10);
    let granted = come(&mut grants, 2, 300_000, 1..100);
    assert!(granted.iter().all(|&(_, priority)| priority == 0), "{granted:?}");
}

#[test]
fn whoever_began_after_it_waits_for_it() {
    let mut grants = surpassed(QUARTER);
    come(&mut grants, 4, 800_000, 0..10);
    assert_eq!(come(&mut grants, 3, 500_000, 1..19), [(21_000, 3)]);
}

#[test]
fn without_a_share_the_shortest_goes_first_for_good() {
    let mut grants = surpassed(Params { oldest: Ratio::ZERO, ..QUARTER });
    assert_eq!(come(&mut grants, 3, 500_000, 1..400), []);
}
