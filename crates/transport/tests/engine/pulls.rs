//! NDP between two engines: trimmed headers, headers that come back, and the pulls that let packets go.

use crate::pair::{Client, Fate, Packet, Pair, Server, Side};
use crate::scripts::request;
use roci_control::{Law, Value};
use roci_transport::{Engine, EngineConfig, Operation, QpConfig, Recovery, Status, Tail};
use roci_units::{BitsPerSec, Instant, Span};
use roci_wire::{Flags, Layout, Opcode};

const LINK: BitsPerSec = BitsPerSec::from_gbps(10);
const MTU: u16 = 1024;
/// Packets of the message and of the first window.
const PACKETS: u32 = 20;
const FIRST: usize = 6;
/// Pulls: one for each further packet, and those that leave, one in 0.9 us, before the receiver hears that nothing follows.
const EXPECTED: std::ops::Range<usize> = PACKETS as usize - FIRST..PACKETS as usize - FIRST + 4;

/// Two ends over such a wire.
fn pair(fates: &[(Side, usize, Fate)]) -> Pair {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
        engine.add_law(Law::from_settings("ndp", &[("initial_window", "6")], LINK).unwrap());
        engine
    };
    let config = QpConfig {
        mtu: MTU,
        recovery: Recovery::Ndp,
        layout: Layout::Ndp,
        law: 1,
        timeout: Span::from_millis(5),
        ..QpConfig::default()
    };
    let pair = Pair::with_engines(engine(1), engine(2), config, 1);
    fates.iter().fold(pair, |pair, &(side, number, fate)| pair.fate_of(side, number, fate))
}

/// A WRITE of [`PACKETS`] over a wire on which these packets, by their sender and number, have these fates; what came of it.
fn after(fates: &[(Side, usize, Fate)]) -> Pair {
    let mut pair = written(fates, PACKETS);
    // Packets or headers come from 1.1 us on, 0.1 us apart: pulls leave as packets would come on the link.
    pair.run_until(Instant::ZERO + Span::from_micros(3));
    assert!((1..=3).contains(&pair.pulls().len()), "{} pulls in 1.9 us", pair.pulls().len());
    ended(pair, PACKETS)
}

/// A WRITE of so many packets that is about to begin.
fn written(fates: &[(Side, usize, Fate)], packets: u32) -> Pair {
    let mut pair = pair(fates);
    let (rkey, length) = (pair.server.key, packets * u32::from(MTU));
    for (place, octet) in pair.client.memory[..length as usize].iter_mut().enumerate() {
        *octet = place as u8 ^ (place >> 8) as u8;
    }
    pair.post(Client, request(1, Operation::Write { va: 0, rkey, tail: Tail::Plain }, 0, length));
    pair
}

/// What came of it.
fn ended(mut pair: Pair, packets: u32) -> Pair {
    let length = packets * u32::from(MTU);
    // All is done long before a timeout, or the patience of the law, would help.
    pair.run_until(Instant::ZERO + Span::from_millis(1));
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert!(pair.server.memory[..length as usize] == pair.client.memory[..length as usize]);
    pair
}

impl Pair {
    fn pulls(&self) -> Vec<&Packet> {
        self.server.sent.iter().filter(|packet| packet.header.opcode == Opcode::PULL).collect()
    }

    fn sent_again(&self) -> u32 {
        self.client.engine.counters(self.client.qpns[0]).retransmitted
    }
}

#[test]
fn each_packet_beyond_the_first_window_is_pulled_once_and_the_last_says_so() {
    let pair = after(&[]);
    let counters: Vec<u32> = pair.pulls().iter().map(|packet| packet.header.pull().counter).collect();
    assert!(counters.iter().copied().eq(1..=pair.pulls().len() as u32), "{counters:?}");
    assert!(EXPECTED.contains(&counters.len()), "{counters:?}");
    let drained = |packet: &Packet| packet.header.flags.has(Flags::DRAINED);
    let last: Vec<bool> = pair.client.sent.iter().map(drained).collect();
    assert_eq!(last.iter().position(|&drained| drained), Some(PACKETS as usize - 1));
    assert_eq!(pair.sent_again(), 0);
}

#[test]
fn a_trimmed_packet_is_named_and_sent_again_with_the_next_pull() {
    for number in [0, 3, FIRST - 1, FIRST + 4, PACKETS as usize - 1] {
        let pair = after(&[(Client, number, Fate::Trim)]);
        let story = pair.client.story();
        let named =
            pair.server.story().iter().filter(|word| word.starts_with("nak")).cloned().collect::<Vec<_>>();
        assert_eq!(named, [format!("nak{number}:0")]);
        assert_eq!((pair.sent_again(), story.len()), (1, PACKETS as usize + 1), "{story:?}");
        // What is sent again goes before what was never sent, and is pulled like it.
        let again = story.iter().rposition(|word| word.trim_end_matches('!') == format!("w{number}"));
        assert!(again.is_some_and(|again| again > number && again <= number + FIRST + 1), "{story:?}");
        let pulls = pair.pulls().len();
        assert!((EXPECTED.start + 1..EXPECTED.end + 1).contains(&pulls), "{pulls} pulls");
    }
}

#[test]
fn a_header_that_comes_back_is_sent_again_without_a_timeout() {
    for number in [0, 3, FIRST + 4, PACKETS as usize - 1] {
        let mut pair = after(&[(Client, number, Fate::Return)]);
        assert_eq!(
            (pair.sent_again(), pair.client.sent.len()),
            (1, PACKETS as usize + 1),
            "{:?}",
            pair.client.story()
        );
        assert!(
            pair.server.story().iter().all(|word| !word.starts_with("nak")),
            "its receiver never heard of it"
        );
        let (now, qpn) = (pair.now, pair.client.qpns[0]);
        assert_eq!(pair.client.engine.control_get(qpn, "returned", now), Some(Value::Count(1)));
    }
}

#[test]
fn a_whole_window_that_comes_back_does_not_repeat_itself_at_once() {
    let fates: Vec<_> = (0..FIRST).map(|number| (Client, number, Fate::Return)).collect();
    let pair = after(&fates);
    assert_eq!(pair.sent_again(), FIRST as u32);
    // One asks, and the others wait for the pulls that it earns.
    let asked = pair.server.sent.first().expect("the receiver heard of one");
    assert_eq!(asked.header.pull().expected.get(), 1);
}

#[test]
fn a_whole_window_that_is_trimmed_is_pulled_as_whole_packets_would_come() {
    let fates: Vec<_> = (0..FIRST).map(|number| (Client, number, Fate::Trim)).collect();
    let pair = after(&fates);
    assert_eq!(pair.sent_again(), FIRST as u32);
}

#[test]
fn what_a_short_message_leaves_of_the_first_window_sends_nothing_again() {
    for packets in 1..FIRST as u32 {
        for trimmed in 0..packets as usize {
            let pair = ended(written(&[(Client, trimmed, Fate::Trim)], packets), packets);
            assert_eq!(pair.sent_again(), 1);
            assert!(!pair.pulls().is_empty(), "{packets}: {:?}", pair.server.story());
        }
        // All of them, and what is sent again as well: one pull for each time.
        for times in 1..4 {
            let count = packets as usize * times;
            let fates: Vec<_> = (0..count).map(|number| (Client, number, Fate::Trim)).collect();
            let pair = ended(written(&fates, packets), packets);
            assert_eq!(pair.sent_again(), count as u32, "{:?}", pair.client.story());
            assert!(pair.pulls().len() >= count, "{:?}", pair.server.story());
        }
    }
}

#[test]
fn a_pull_that_overtakes_its_answer_is_not_lost() {
    // Answers are late: the pulls are there before anything is to be sent again.
    for packets in 1..FIRST as u32 {
        let mut fates: Vec<_> = (0..packets as usize).map(|number| (Client, number, Fate::Trim)).collect();
        let sent = ended(written(&fates, packets), packets).server.sent.into_iter().enumerate();
        let answers = sent.filter(|(_, packet)| packet.header.opcode != Opcode::PULL);
        let late = Fate::Delay(Span::from_micros(20));
        fates.extend(answers.take(packets as usize).map(|(number, _)| (Server, number, late)));
        let pair = ended(written(&fates, packets), packets);
        assert_eq!(pair.sent_again(), packets, "{:?} {:?}", pair.client.story(), pair.server.story());
    }
}

#[test]
fn new_packets_go_while_a_trimmed_one_waits_for_its_pull() {
    let mut pair = written(&[(Client, 0, Fate::Trim)], 1);
    // The answer is on its way back, and so is the pull, which is lost; the next message's packet draws one.
    pair = pair.fate_of(Server, 1, Fate::Drop);
    pair.run_until(Instant::ZERO + Span::from_micros(20));
    assert_eq!((pair.client.sent.len(), pair.sent_again()), (1, 0), "nobody has pulled");
    let rkey = pair.server.key;
    let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
    pair.post(Client, request(2, write, 0, MTU.into()));
    pair.run_until(Instant::ZERO + Span::from_millis(1));
    assert_eq!(
        pair.client.story().first().map(String::as_str),
        pair.client.story().get(2).map(String::as_str)
    );
    assert_eq!((pair.client.ended().len(), pair.sent_again()), (2, 1), "{:?}", pair.client.story());
}

#[test]
fn all_that_links_lost_of_a_window_goes_again_after_one_timeout() {
    for lost in [1, 3, 5] {
        let fates: Vec<_> = (0..lost).map(|number| (Client, number, Fate::Drop)).collect();
        let mut pair = written(&fates, PACKETS);
        pair.run_until(Instant::ZERO + Span::from_micros(5_200));
        assert_eq!(pair.client.ended(), [(1, Status::Success)], "{lost}: {:?}", pair.client.story());
        assert_eq!(pair.sent_again(), lost as u32, "what came beyond them is known");
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 1);
    }
}

#[test]
fn a_lost_pull_is_made_good_by_the_next_answer() {
    let all = after(&[]).server.sent.len();
    // Each of the receiver's packets in turn; the last ones have nothing behind them that would count.
    for number in 0..all - 2 {
        let pair = after(&[(Server, number, Fate::Drop)]);
        assert_eq!(pair.sent_again(), 0, "{number}: {:?}", pair.client.story());
    }
}

/// A READ of [`PACKETS`], the fates those of the responder's packets; what came of it.
fn read_after(fates: &[(Side, usize, Fate)]) -> Pair {
    let mut pair = pair(fates);
    let length = PACKETS * u32::from(MTU);
    for (place, octet) in pair.server.memory[..length as usize].iter_mut().enumerate() {
        *octet = place as u8 ^ (place >> 8) as u8;
    }
    pair.read(1, 0, 0, length);
    pair.run_until(Instant::ZERO + Span::from_millis(1));
    assert_eq!(pair.client.ended(), [(1, Status::Success)], "{:?}", pair.server.story());
    assert!(pair.server.memory[..length as usize] == pair.client.memory[..length as usize]);
    pair
}

fn is_response(packet: &&Packet) -> bool {
    (Opcode::READ_RESPONSE_FIRST.0..=Opcode::READ_RESPONSE_ONLY.0).contains(&packet.header.opcode.0)
}

fn responses_again(pair: &Pair) -> u32 {
    pair.server.engine.counters(pair.server.qpns[0]).retransmitted
}

/// The places of the first responses among what the responder sends.
fn places(pair: &Pair) -> Vec<usize> {
    let sent = pair.server.sent.iter().enumerate();
    sent.filter(|(_, packet)| is_response(packet)).map(|(place, _)| place).collect()
}

#[test]
fn read_data_beyond_the_first_window_is_pulled_as_a_writes_is() {
    let pair = read_after(&[]);
    let is_pull = |packet: &&Packet| packet.header.opcode == Opcode::PULL;
    let pulls = pair.client.sent.iter().filter(is_pull).count();
    assert!(EXPECTED.contains(&pulls), "{pulls} pulls");
    let responses: Vec<&Packet> = pair.server.sent.iter().filter(is_response).collect();
    assert_eq!((responses.len(), responses_again(&pair)), (PACKETS as usize, 0));
    let drained = responses.iter().position(|packet| packet.header.flags.has(Flags::DRAINED));
    assert_eq!(drained, Some(PACKETS as usize - 1));
    // Nobody pulls for what pulls or acknowledges: the one request is all that this side receives.
    assert!(pair.pulls().len() <= 1, "{:?}", pair.server.story());
}

#[test]
fn a_response_that_is_trimmed_or_comes_back_is_sent_again_alone_and_without_a_timeout() {
    let places = places(&read_after(&[]));
    for fate in [Fate::Trim, Fate::Return] {
        for number in [0, 3, FIRST - 1, FIRST + 4, PACKETS as usize - 1] {
            let pair = read_after(&[(Server, places[number], fate)]);
            assert_eq!(responses_again(&pair), 1, "{fate:?} {number}: {:?}", pair.server.story());
        }
        // The first window as a whole.
        let all: Vec<_> = places[..FIRST].iter().map(|&place| (Server, place, fate)).collect();
        assert_eq!(responses_again(&read_after(&all)), FIRST as u32, "{fate:?}");
    }
}

#[test]
fn responses_that_overtake_each_other_are_not_taken_for_lost() {
    let places = places(&read_after(&[]));
    for number in [0, 3, FIRST + 4] {
        let late = Fate::Delay(Span::from_micros(3));
        let pair = read_after(&[(Server, places[number], late)]);
        assert_eq!(responses_again(&pair), 0, "{number}: {:?}", pair.server.story());
    }
}

#[test]
fn who_says_that_nothing_follows_and_is_overtaken_by_what_follows_is_not_believed() {
    let late = (Client, 0, Fate::Delay(Span::from_micros(5)));
    let mut pair = pair(&[late]);
    let rkey = pair.server.key;
    let write = |id, packets| {
        let operation = Operation::Write { va: 0, rkey, tail: Tail::Plain };
        request(id, operation, 0, packets * u32::from(MTU))
    };
    pair.post(Client, write(1, 1));
    pair.run_until(Instant::ZERO + Span::from_nanos(50));
    assert!(pair.client.sent.first().is_some_and(|first| first.header.flags.has(Flags::DRAINED)));
    pair.post(Client, write(2, 2 * PACKETS));
    pair.run_until(Instant::ZERO + Span::from_micros(60));
    assert_eq!(pair.client.ended().len(), 2, "{:?} {:?}", pair.client.story(), pair.server.story());
    assert_eq!(pair.sent_again(), 0);
    // Of the answers one alone says that nothing more is pulled for.
    let believed: Vec<_> = pair.server.sent.iter().filter(|it| it.header.flags.has(Flags::DRAINED)).collect();
    assert_eq!(believed.iter().map(|it| it.header.psn.get()).collect::<Vec<_>>(), [2 * PACKETS]);
}

#[test]
fn a_pull_that_goes_ahead_of_results_has_no_atomic_sent_again() {
    let atomics = |fates: &[(Side, usize, Fate)]| {
        let mut pair = pair(fates);
        for id in 0..FIRST as u64 {
            let operation = Operation::FetchAdd { va: 0, rkey: pair.server.key, add: 1 };
            pair.post(Client, request(id, operation, 8 * id, 8));
        }
        pair.run_until(Instant::ZERO + Span::from_millis(1));
        pair
    };
    let results = atomics(&[]).server.sent.into_iter().enumerate();
    let late = results.filter(|(_, packet)| packet.header.opcode != Opcode::PULL);
    let late: Vec<_> = late.map(|(number, _)| (Server, number, Fate::Delay(Span::from_micros(2)))).collect();
    let pair = atomics(&late);
    assert!(
        pair.pulls().iter().any(|pull| pull.header.pull().expected.get() > 1),
        "{:?}",
        pair.server.story()
    );
    assert_eq!((pair.sent_again(), pair.client.ended().len()), (0, FIRST), "{:?}", pair.client.story());
}

#[test]
fn a_law_hears_the_round_trip_of_each_packet_and_not_of_the_late_ones_alone() {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
        engine.add_law(Law::from_settings("swift", &[("first_cwnd", "30")], LINK).unwrap());
        engine
    };
    let config =
        QpConfig { mtu: MTU, recovery: Recovery::Ndp, layout: Layout::Ndp, law: 1, ..QpConfig::default() };
    let late = Fate::Delay(Span::from_micros(40));
    let mut pair = Pair::with_engines(engine(1), engine(2), config, 1).fate(1, late);
    let rkey = pair.server.key;
    pair.post(Client, request(1, Operation::Write { va: 0, rkey, tail: Tail::Plain }, 0, 20 * 1024));
    let qpn = pair.client.qpns[0];
    let mut rtt_at = |micros| {
        pair.run_until(Instant::ZERO + Span::from_micros(micros));
        match pair.client.engine.control_get(qpn, "rtt", pair.now) {
            Some(Value::Time(span)) => span,
            other => panic!("{other:?}"),
        }
    };
    let (first, last) = (rtt_at(20), rtt_at(100));
    assert!((Span::from_micros(2)..Span::from_micros(3)).contains(&first), "{first}: others came before");
    assert!((Span::from_micros(42)..Span::from_micros(43)).contains(&last), "{last}: its own, not another's");
}

#[test]
fn of_read_data_that_links_lost_a_timeout_sends_again_no_more_than_is_missing() {
    let places = places(&read_after(&[]));
    for lost in [&[0][..], &[2], &[1, 4]] {
        let fates: Vec<_> = lost.iter().map(|&lost| (Server, places[lost], Fate::Drop)).collect();
        let mut pair = pair(&fates);
        pair.read(1, 0, 0, PACKETS * u32::from(MTU));
        pair.run_until(Instant::ZERO + Span::from_millis(12));
        assert_eq!(pair.client.ended(), [(1, Status::Success)], "{lost:?}: {:?}", pair.server.story());
        assert_eq!(responses_again(&pair), lost.len() as u32, "{lost:?}: {:?}", pair.server.story());
    }
}
