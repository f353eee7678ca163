//! Of each sender one message is granted at a time.

use super::*;

#[test]
fn of_each_sender_the_shortest_message_is_granted_and_its_others_wait() {
    let mut grants = agent(PARAMS);
    for (qpn, length) in [(2, 100_000), (102, 200_000), (202, 300_000), (3, 900_000)] {
        data(&mut grants, at(0), qpn, length, 0, 1_000);
    }
    assert_eq!(
        said(&mut grants, at(0)),
        [(Class::GRANT, 2, 11_000, 0), (Class::GRANT, 3, 11_000, 0)],
        "the longest of all is its sender's only one"
    );
    data(&mut grants, at(1), 2, 100_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 2, 12_000, 1)], "two senders, two priorities");
    data(&mut grants, at(2), 102, 200_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(2)), []);
}

#[test]
fn a_senders_next_message_has_its_turn_once_the_first_is_granted_to_its_end() {
    let mut grants = agent(PARAMS);
    for (qpn, length) in [(2, 15_000), (102, 30_000), (202, 60_000)] {
        data(&mut grants, at(0), qpn, length, 0, 1_000);
    }
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    data(&mut grants, at(1), 2, 15_000, 1_000, 5_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 2, 15_000, 0), (Class::GRANT, 102, 11_000, 0)]);
    data(&mut grants, at(2), 102, 30_000, 1_000, 20_000);
    assert_eq!(said(&mut grants, at(2)), [(Class::GRANT, 102, 30_000, 0), (Class::GRANT, 202, 11_000, 0)]);
}

#[test]
fn a_shorter_message_takes_its_senders_place_and_gives_it_back() {
    let mut grants = agent(Params { overcommit: 1, ..PARAMS });
    data(&mut grants, at(0), 2, 90_000, 0, 1_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    data(&mut grants, at(1), 102, 20_000, 0, 1_000);
    assert_eq!(said(&mut grants, at(1)), [(Class::GRANT, 102, 11_000, 0)]);
    data(&mut grants, at(2), 2, 90_000, 1_000, 2_000);
    assert_eq!(said(&mut grants, at(2)), [], "it waits behind the shorter one");
    data(&mut grants, at(3), 102, 20_000, 1_000, 10_000);
    assert_eq!(said(&mut grants, at(3)), [(Class::GRANT, 102, 20_000, 0), (Class::GRANT, 2, 12_000, 0)]);
}

#[test]
fn who_is_silent_for_too_long_leaves_its_place_to_its_senders_next() {
    let mut grants = agent(Params { resends: 1, ..PARAMS });
    data(&mut grants, at(0), 2, 20_000, 0, 1_000);
    data(&mut grants, at(0), 102, 90_000, 0, 10_000);
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0), (Class::ACK, 102, 0, 0)]);
    let mut granted = Vec::new();
    for micros in [100, 200] {
        grants.wake(at(micros));
        granted.extend(said(&mut grants, at(micros)).into_iter().filter(|said| said.0 == Class::GRANT));
    }
    assert_eq!(granted, [(Class::GRANT, 102, 20_000, 0)]);
}

#[test]
fn of_equal_messages_that_come_in_turns_one_gets_all_grants() {
    let mut grants = agent(PARAMS);
    for qpn in [2, 102, 202] {
        data(&mut grants, at(0), qpn, 90_000, 0, 1_000);
    }
    assert_eq!(said(&mut grants, at(0)), [(Class::GRANT, 2, 11_000, 0)]);
    let mut granted = Vec::new();
    for (now, offset) in (1..).zip([1_000, 2_000, 3_000]) {
        for qpn in [202, 102, 2] {
            data(&mut grants, at(now), qpn, 90_000, offset, offset + 1_000);
            granted.extend(said(&mut grants, at(now)).into_iter().map(|(_, qpn, end, _)| (qpn, end)));
        }
    }
    assert_eq!(granted, [(202, 12_000), (202, 13_000), (202, 14_000)]);
}
