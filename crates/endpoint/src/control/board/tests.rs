use super::super::table::Row;
use super::*;
use roci_units::BitsPerSec;

const NEVER: &str = "nobody serves it";

fn ms(count: u64) -> Span {
    Span::from_millis(count)
}

fn key(socket: usize, qpn: u32) -> Key {
    Key { socket, qpn: Qpn::new(qpn) }
}

/// A queue pair whose device has run for so many milliseconds and which has sent so many packets of 1000 octets.
fn row(qpn: u32, at_ms: u64, packets: u64) -> Row {
    Row {
        qpn: Qpn::new(qpn),
        law: "dcqcn".to_owned(),
        state: "ReadyToSend".to_owned(),
        at: Instant::from_ps(at_ms * 1_000_000_000),
        allowed: Some(BitsPerSec::from_gbps(1)),
        window: None,
        in_flight: 0,
        packets,
        octets: packets * 1000,
        retransmitted: packets / 100,
        cnps: packets / 1000,
        ways: Vec::new(),
    }
}

fn board(sockets: usize) -> Board {
    Board::new((0..sockets).map(|place| PathBuf::from(format!("/tmp/{place}"))))
}

fn numbers(board: &Board) -> Vec<(usize, u32, bool)> {
    board.pairs().map(|(key, pair)| (key.socket, key.qpn.get(), pair.is_there)).collect()
}

fn rates(board: &Board, key: Key) -> Option<Rates> {
    board.pair(key).unwrap().rates
}

#[test]
fn a_rate_is_what_was_counted_by_the_time_that_the_device_tells() {
    let mut board = board(1);
    assert_eq!(board.sockets()[0].presence, Presence::Unknown);
    board.take(0, ms(0), Ok(vec![row(7, 5000, 100_000)]));
    assert_eq!(rates(&board, key(0, 7)), None, "one reading is none");
    // It was asked 200 ms later by the device's clock, and the answer took its time.
    board.take(0, ms(900), Ok(vec![row(7, 5200, 102_000)]));
    let is = Rates { sent_bps: 80_000_000.0, packets: 10_000.0, retransmitted: 100.0, cnps: 10.0 };
    assert_eq!(rates(&board, key(0, 7)), Some(is));
    assert_eq!(board.totals(), (is, 1));
    let points: Vec<_> = board.pair(key(0, 7)).unwrap().series.points().collect();
    let allowed = Some(BitsPerSec::from_gbps(1));
    let sent = Some(BitsPerSec::from_mbps(80));
    assert_eq!(points, [Point { at: ms(0), sent: None, allowed }, Point { at: ms(900), sent, allowed }]);
}

#[test]
fn rates_are_over_a_second_and_points_from_one_reading_to_the_next() {
    let mut board = board(1);
    // A thousand packets in every other 200 ms.
    for reading in 0..20 {
        board.take(0, ms(reading * 200), Ok(vec![row(7, 1000 + reading * 200, reading.div_ceil(2) * 1000)]));
    }
    let packets = rates(&board, key(0, 7)).unwrap().packets;
    assert!((2000.0..=3000.0).contains(&packets), "{packets}");
    let sent: Vec<_> =
        board.pair(key(0, 7)).unwrap().series.points().skip(1).map(|it| it.sent.unwrap().0).collect();
    assert_eq!(sent[..4], [40_000_000, 0, 40_000_000, 0]);
    // Each millisecond: those of a second are still no more than eleven.
    for reading in 0..5000 {
        board.take(0, ms(4000 + reading), Ok(vec![row(7, 5000 + reading, 10_000 + reading * 3)]));
    }
    let pair = board.pair(key(0, 7)).unwrap();
    assert!(pair.counted.len() <= 12, "{}", pair.counted.len());
    assert!((pair.rates.unwrap().packets - 3000.0).abs() < 1e-6);
    assert_eq!(pair.series.points().count(), POINTS_MAX);
}

#[test]
fn a_queue_pair_whose_counters_or_time_went_back_is_another_one() {
    for again in [row(7, 400, 99_999), row(7, 200, 100_001), row(7, 100, 200_000)] {
        let mut board = board(1);
        board.take(0, ms(0), Ok(vec![row(7, 200, 100_000)]));
        board.take(0, ms(100), Ok(vec![row(7, 300, 100_000)]));
        assert!(rates(&board, key(0, 7)).is_some());
        let later = again.at + Span::from_millis(500);
        board.take(0, ms(200), Ok(vec![again.clone()]));
        assert_eq!(rates(&board, key(0, 7)), None, "{again:?}");
        assert_eq!(board.totals().0, Rates::default());
        assert_eq!(board.pair(key(0, 7)).unwrap().series.points().count(), 1);
        board.take(0, ms(700), Ok(vec![Row { at: later, packets: again.packets + 50, ..again }]));
        assert!((rates(&board, key(0, 7)).unwrap().packets - 100.0).abs() < 1e-9);
    }
}

#[test]
fn queue_pairs_come_and_go_and_those_that_went_are_shown_for_a_while() {
    let mut board = board(1);
    board.take(0, ms(0), Ok(vec![row(1, 1, 0), row(2, 1, 0)]));
    board.take(0, ms(1000), Ok(vec![row(2, 1001, 5), row(3, 1001, 0)]));
    assert_eq!(numbers(&board), [(0, 1, false), (0, 2, true), (0, 3, true)]);
    assert_eq!(board.totals().1, 2, "what is gone counts no more");
    board.take(0, ms(10_999), Ok(vec![row(3, 11_000, 0)]));
    assert_eq!(numbers(&board), [(0, 1, false), (0, 2, false), (0, 3, true)]);
    board.take(0, ms(11_000), Ok(vec![row(3, 11_001, 0)]));
    assert_eq!(numbers(&board), [(0, 2, false), (0, 3, true)]);
    // It was only missed for a while.
    board.take(0, ms(12_000), Ok(vec![row(2, 12_001, 16), row(3, 12_001, 0)]));
    assert_eq!(numbers(&board), [(0, 2, true), (0, 3, true)]);
    assert!((rates(&board, key(0, 2)).unwrap().packets - 1.0).abs() < 1e-9, "over the gap");
}

#[test]
fn a_socket_that_dies_keeps_what_is_known_and_says_since_when_and_goes_on_if_it_comes_back() {
    let mut board = board(2);
    let both = |board: &mut Board, now: u64, packets: u64| {
        board.take(0, ms(now), Ok(vec![row(1, now + 1, packets)]));
        board.take(1, ms(now), Ok(vec![row(1, now + 1, packets)]));
    };
    both(&mut board, 0, 0);
    both(&mut board, 1000, 1000);
    assert_eq!(board.totals().0.packets.to_bits(), 2000.0_f64.to_bits());
    for now in [2000, 60_000] {
        board.take(1, ms(now), Err(NEVER.to_owned()));
    }
    let away = Presence::Away { since: ms(2000), why: NEVER.to_owned() };
    assert_eq!((&board.sockets()[0].presence, &board.sockets()[1].presence), (&Presence::There, &away));
    assert_eq!(numbers(&board), [(0, 1, true), (1, 1, false)], "a minute later");
    assert_eq!(board.totals().1, 1);
    both(&mut board, 61_000, 61_000);
    assert_eq!(board.sockets()[1].presence, Presence::There);
    assert_eq!(numbers(&board), [(0, 1, true), (1, 1, true)]);
    assert!((rates(&board, key(1, 1)).unwrap().packets - 1000.0).abs() < 1e-9);
    // Another program in its place has other queue pairs.
    board.take(1, ms(62_000), Err(NEVER.to_owned()));
    board.take(1, ms(99_000), Ok(vec![row(9, 5, 0)]));
    assert_eq!(numbers(&board), [(0, 1, true), (1, 1, false), (1, 9, true)]);
    board.take(1, ms(109_000), Ok(vec![row(9, 10_005, 0)]));
    assert_eq!(numbers(&board), [(0, 1, true), (1, 9, true)]);
    // There is no third.
    board.take(2, ms(110_000), Ok(vec![row(9, 5, 0)]));
    assert_eq!(numbers(&board).len(), 2);
}

#[test]
fn very_many_queue_pairs_keep_shorter_series() {
    let mut board = board(1);
    for reading in 0..200 {
        let rows = (0..20_000).map(|qpn| row(qpn, 1 + reading * 1000, reading));
        board.take(0, ms(reading * 1000), Ok(rows.collect()));
    }
    assert_eq!(board.pair(key(0, 5)).unwrap().series.points().count(), POINTS_MIN);
}

#[test]
fn means_are_weighed_by_time_and_stand_still_until_their_time_is_over() {
    let mut series = Series::default();
    let mut push = |at, mbps: Option<f64>| series.push(ms(at), mbps.map(|rate| rate * 1e6), None, 100);
    push(1500, None);
    push(2500, Some(10.0));
    push(3000, Some(30.0));
    push(5000, Some(50.0));
    let means = |now| series.means(ms(now), ms(1000), 5);
    // Of the second from 1 s to 2 s half is known, and of that all.
    let is = |rates: [Option<f64>; 5]| rates.map(|rate| rate.map(|rate| rate * 1e6)).to_vec();
    assert_eq!(means(4999), is([None, Some(10.0), Some(20.0), Some(50.0), Some(50.0)]));
    assert_eq!(means(5001), is([Some(10.0), Some(20.0), Some(50.0), Some(50.0), None]));
    // Before there were so many times the last is the last all the same, and what comes later is not in it.
    assert_eq!(series.means(ms(1900), ms(1000), 4), [None, None, None, Some(1e7)]);
    assert_eq!(series.means(ms(500), ms(1000), 3), [None; 3]);
    assert_eq!(series.means(ms(90_000), ms(1000), 3), [None; 3]);
    let since: Vec<_> = series.since(ms(2600)).map(|point| point.at).collect();
    assert_eq!(since, [ms(2500), ms(3000), ms(5000)]);
}

#[test]
fn registers_of_the_queue_pair_that_is_observed_become_series_where_they_are_numbers() {
    let mut board = board(1);
    let answer = |rc: &str| {
        registers(&format!(
            "0x000007 dcqcn state ReadyToSend\n0x000007 dcqcn rc {rc}\n0x000007 dcqcn alpha 1/2\n\
             0x000007 dcqcn increase_timer 55us\n0x000007 program failed trap in a.elf: pc 0x10\n"
        ))
    };
    board.observe(Some(key(0, 7)));
    board.take_registers(key(0, 7), ms(0), Ok(answer("1Gb/s")));
    board.take_registers(key(0, 8), ms(1), Ok(answer("7Gb/s")));
    board.take_registers(key(0, 7), ms(200), Ok(answer("2500Mb/s")));
    let observed = board.observed().unwrap();
    assert_eq!(observed.registers[4], ("failed".to_owned(), "trap in a.elf: pc 0x10".to_owned()));
    assert_eq!(observed.series("rc").collect::<Vec<_>>(), [(ms(0), 1e9), (ms(200), 2.5e9)]);
    assert_eq!(observed.series("state").count(), 0);
    let units = ["rc", "alpha", "increase_timer", "state", "nosuch"].map(|name| observed.unit(name));
    assert_eq!(units, [Some(Unit::BitsPerSecond), Some(Unit::One), Some(Unit::Seconds), None, None]);
    board.take_registers(key(0, 7), ms(400), Err("it is gone".to_owned()));
    let observed = board.observed().unwrap();
    assert_eq!((observed.error.as_deref(), observed.registers.len()), (Some("it is gone"), 5));
    board.observe(Some(key(0, 7)));
    assert_eq!(board.observed().unwrap().series("rc").count(), 2);
    board.observe(Some(key(0, 8)));
    assert_eq!(board.observed().unwrap().registers.len(), 0);
    board.observe(None);
    assert!(board.observed().is_none());
}

#[test]
fn values_of_registers_are_numbers_of_their_units_or_words() {
    for (text, is) in [
        ("10Gb/s", Some((1e10, Unit::BitsPerSecond))),
        ("55us", Some((55e-6, Unit::Seconds))),
        ("64KiB", Some((65_536.0, Unit::Octets))),
        ("12B", Some((12.0, Unit::Octets))),
        ("1/256", Some((1.0 / 256.0, Unit::One))),
        ("17", Some((17.0, Unit::One))),
        ("-3", Some((-3.0, Unit::One))),
        ("true", Some((1.0, Unit::One))),
        ("false", Some((0.0, Unit::One))),
        ("unlimited", None),
        ("inf", None),
        ("ReadyToSend", None),
        ("", None),
    ] {
        assert_eq!(quantity(text), is, "{text}");
    }
}

#[test]
fn a_device_is_asked_less_often_when_its_answers_take_long() {
    let ms = Duration::from_millis;
    let mut pace = Pace::new(ms(200));
    assert_eq!(pace.every(), ms(200));
    pace.answered(ms(3));
    assert_eq!(pace.every(), ms(200));
    // One that was late says nothing.
    pace.answered(ms(300));
    assert_eq!(pace.every(), ms(200));
    for _ in 0..4 {
        pace.answered(ms(60));
    }
    assert_eq!(pace.every(), ms(600));
}
