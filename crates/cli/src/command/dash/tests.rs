use super::draw::{draw, passed};
use super::plain;
use super::state::{Action, Sort, State};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use roci_endpoint::control::board::Board;
use roci_endpoint::control::hops::{Hop, Way};
use roci_endpoint::control::table::Row;
use roci_endpoint::{BitsPerSec, Qpn, Span};
use roci_units::{Bytes, Instant};
use std::time::Duration;

const NOBODY: &str = "no endpoint serves it";
/// Numbers as they are drawn at random.
const NUMBERS: [u32; 4] = [0x0b_a103, 0x2c_9e40, 0x71_0a06, 0xf0_3b02];

/// What queue pair `place` has counted after so many readings, 200 ms apart: each sends half of what the one before does, and the second
/// swings about that.
fn row(place: usize, reading: u64) -> Row {
    let mbps = 4000 >> place;
    let swing = if place == 1 { [0, 300, 500, 300, 0][usize::try_from(reading % 5).unwrap()] } else { 0 };
    let octets = (reading * mbps + swing) * 25_000;
    Row {
        qpn: Qpn::new(NUMBERS[place]),
        law: "dcqcn".to_owned(),
        state: "ReadyToSend".to_owned(),
        at: Instant::from_ps((7 + reading) * 200_000_000_000),
        allowed: (place > 0).then(|| BitsPerSec::from_mbps(mbps * 11 / 10)),
        window: None,
        in_flight: 65_536 >> place,
        packets: octets / 1024,
        octets,
        retransmitted: if place == 2 { reading * 4 } else { 0 },
        cnps: reading * place as u64,
        ways: Vec::new(),
    }
}

fn rows(reading: u64) -> Vec<Row> {
    (0..NUMBERS.len()).map(|place| row(place, reading)).collect()
}

fn board(sockets: &[&str]) -> Board {
    Board::new(sockets.iter().map(Into::into))
}

/// A view of four queue pairs that have been watched for so many readings.
fn watched(readings: u64) -> State {
    let mut state = State::new(board(&["/tmp/roci"]), Duration::from_millis(200));
    for reading in 0..readings {
        look(&mut state, reading);
    }
    state
}

fn look(state: &mut State, reading: u64) {
    look_at(state, reading, rows(reading));
}

fn look_at(state: &mut State, reading: u64, rows: Vec<Row>) {
    state.passes(Span::from_millis(reading * 200));
    state.board.take(0, state.now, Ok(rows));
    if let Some(key) = state.observed() {
        let registers = [
            ("state".to_owned(), "ReadyToSend".to_owned()),
            ("allowed_rate".to_owned(), "2200Mb/s".to_owned()),
            ("rc".to_owned(), format!("{}Mb/s", 2200 + reading % 10 * 20)),
            ("alpha".to_owned(), format!("{}/1024", 512 + reading % 20 * 8)),
            ("increase_timer".to_owned(), "55us".to_owned()),
        ];
        state.board.take_registers(key, state.now, Ok(registers.to_vec()));
    }
    state.arrange();
}

fn screen(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

fn press(state: &mut State, code: KeyCode) -> Action {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn write(state: &mut State, text: &str) {
    text.chars().for_each(|letter| assert_eq!(press(state, KeyCode::Char(letter)), Action::Draw));
}

fn selected(state: &State) -> u32 {
    state.selected.unwrap().qpn.get()
}

#[test]
fn before_anything_is_read_the_view_says_so() {
    insta::assert_snapshot!(screen(&watched(0), 80, 6));
    let mut state = watched(0);
    state.board.take(0, Span::ZERO, Ok(Vec::new()));
    state.arrange();
    assert!(screen(&state, 80, 6).contains("there is no queue pair yet"));
    assert!(screen(&state, 80, 6).contains("no queue pairs"));
}

#[test]
fn queue_pairs_have_a_line_each_with_their_last_minute() {
    insta::assert_snapshot!(screen(&watched(150), 130, 9));
}

#[test]
fn the_selected_one_is_shown_in_detail_with_a_register_beside_its_rates() {
    let mut state = watched(1);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    for reading in 1..200 {
        look(&mut state, reading);
    }
    insta::assert_snapshot!("rates", screen(&state, 110, 28));
    for _ in 0..2 {
        press(&mut state, KeyCode::Right);
    }
    assert_eq!(state.register.as_deref(), Some("alpha"));
    press(&mut state, KeyCode::Char('-'));
    let shown = screen(&state, 110, 34);
    insta::assert_snapshot!("fraction", shown);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/dash.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines: Vec<_> = shown.lines().map(|line| line.trim_matches('"').trim_end()).collect();
    assert!(page.contains(&lines.join("\n")), "the guide shows this screen");
    // The other way round, and past the end.
    press(&mut state, KeyCode::Left);
    assert_eq!(state.register.as_deref(), Some("rc"));
    insta::assert_snapshot!("register_that_is_a_rate", screen(&state, 110, 24));
    press(&mut state, KeyCode::Left);
    press(&mut state, KeyCode::Left);
    assert_eq!(state.register.as_deref(), Some("increase_timer"));
}

#[test]
fn narrow_screens_leave_out_what_is_least_missed_and_none_is_too_small() {
    let mut state = watched(100);
    insta::assert_snapshot!("columns", screen(&state, 50, 8));
    press(&mut state, KeyCode::Tab);
    look(&mut state, 100);
    insta::assert_snapshot!("detail", screen(&state, 48, 22));
    press(&mut state, KeyCode::Char('e'));
    state.help = true;
    for (width, height) in (1..40).flat_map(|width| [1, 2, 3, 5, 9, 17].map(|height| (width, height))) {
        assert_eq!(screen(&state, width, height).lines().count(), usize::from(height));
    }
}

#[test]
fn sockets_that_are_away_are_named_with_why_and_what_they_had_is_kept() {
    let mut state = State::new(board(&["/tmp/a", "/tmp/b", "/tmp/c"]), Duration::from_millis(200));
    for reading in 0..20 {
        state.passes(Span::from_millis(reading * 200));
        state.board.take(0, state.now, Ok(rows(reading)));
        let second = if reading < 10 { Ok(rows(reading)[..2].to_vec()) } else { Err(NOBODY.to_owned()) };
        state.board.take(1, state.now, second);
        state.board.take(2, state.now, Err(NOBODY.to_owned()));
        state.arrange();
    }
    state.passes(Span::from_secs(75));
    insta::assert_snapshot!(screen(&state, 100, 14));
}

#[test]
fn nobody_is_said_to_have_no_queue_pairs_who_was_not_asked_or_gave_no_answer() {
    let said = |readings: &[Option<Result<Vec<Row>, String>>]| {
        let mut board = board(&["/tmp/a", "/tmp/b"][..readings.len()]);
        for (socket, reading) in readings.iter().enumerate() {
            if let Some(reading) = reading.clone() {
                board.take(socket, Span::ZERO, reading);
            }
        }
        let mut state = State::new(board, Duration::from_millis(200));
        state.arrange();
        let shown = screen(&state, 80, 8);
        let lines = shown.lines().skip(1).take(4).map(|line| line.trim_matches('"').trim_end());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let (dead, none) = (|| Some(Err(NOBODY.to_owned())), || Some(Ok(Vec::new())));
    let why = |socket| format!("/tmp/{socket}: {NOBODY}, for 0 s; asked again all the time");
    let one = said(&[dead()]);
    assert_eq!((one[0].as_str(), &one[1]), ("the socket is dead", &why("a")));
    assert_eq!(one[3], "", "and not that nothing was read yet");
    let both = said(&[dead(), dead()]);
    assert_eq!((both[0].as_str(), &both[1..3]), ("all 2 sockets are dead", &[why("a"), why("b")][..]));
    let second = said(&[none(), dead()]);
    assert_eq!((second[0].as_str(), &second[1]), ("no queue pairs; 1 of 2 sockets is dead", &why("b")));
    assert_eq!(second[3], "  there is no queue pair yet");
    let first = said(&[dead(), None]);
    assert_eq!(
        (first[0].as_str(), &first[1]),
        ("1 of 2 sockets is dead; the others were not read yet", &why("a"))
    );
    assert_eq!(said(&[None, None])[0], "nothing was read yet");
    assert_eq!(said(&[None, none()])[0], "no queue pairs");
    // Where there are some they are counted, and the lines below say the rest.
    assert!(said(&[Some(Ok(rows(0))), dead()])[0].starts_with("4 queue pairs: sent"));
}

#[test]
fn the_state_of_a_queue_pair_is_among_the_last_that_a_narrow_screen_leaves_out() {
    let mut state = watched(100);
    let mut failed = rows(100);
    failed[1].state = "Error".to_owned();
    state.board.take(0, state.now, Ok(failed.clone()));
    let titles = |state: &State, width: u16| {
        let shown = screen(state, width, 8);
        let line = shown.lines().nth(2).unwrap().to_owned();
        ["law", "state", "allowed", "sent", "in flight", "CNPs/s", "again/s"]
            .map(|title| line.contains(title))
    };
    let [law, state_, allowed, sent, in_flight, cnps, again] = [0, 1, 2, 3, 4, 5, 6];
    let all_but = |left_out: &[usize]| std::array::from_fn(|place| !left_out.contains(&place));
    for (width, left_out) in [
        (89, &[][..]),
        (88, &[in_flight]),
        (78, &[in_flight]),
        (77, &[in_flight, again]),
        (67, &[in_flight, again, law]),
        (58, &[in_flight, again, law, cnps]),
        (48, &[in_flight, again, law, cnps, allowed]),
        (36, &[in_flight, again, law, cnps, allowed, state_]),
    ] {
        assert_eq!(titles(&state, width), all_but(left_out), "{width}");
    }
    assert!(titles(&state, 24)[sent]);
    assert!(screen(&state, 40, 8).contains("0x2c9e40    Error"));
    // The longest state has room, and those below it stand where they stood.
    failed = rows(101);
    failed[2].state = "SendQueueDrained".to_owned();
    state.board.take(0, state.now, Ok(failed));
    insta::assert_snapshot!(screen(&state, 60, 8));
}

#[test]
fn a_selected_queue_pair_stays_selected_wherever_it_comes_to_stand() {
    let mut state = watched(10);
    assert_eq!(selected(&state), NUMBERS[0]);
    press(&mut state, KeyCode::Char('j'));
    assert_eq!(selected(&state), NUMBERS[1]);
    let by = |state: &mut State, sort: Sort| {
        press(state, KeyCode::Char('s'));
        assert_eq!(state.sort, sort);
        state.order.iter().map(|key| key.qpn.get()).collect::<Vec<_>>()
    };
    let [a, b, c, d] = NUMBERS;
    assert_eq!(by(&mut state, Sort::Sent), [a, b, c, d]);
    assert_eq!(by(&mut state, Sort::Allowed), [a, b, c, d], "no limit is the greatest");
    assert_eq!(by(&mut state, Sort::Cnps), [d, c, b, a]);
    assert_eq!(by(&mut state, Sort::Again), [c, a, b, d]);
    assert_eq!(selected(&state), b);
    press(&mut state, KeyCode::Up);
    press(&mut state, KeyCode::Up);
    press(&mut state, KeyCode::Up);
    assert_eq!(selected(&state), c, "the first of them");
    press(&mut state, KeyCode::End);
    assert_eq!(selected(&state), d);
    press(&mut state, KeyCode::PageDown);
    assert_eq!(selected(&state), d);
    press(&mut state, KeyCode::Home);
    assert_eq!(by(&mut state, Sort::Number), [a, b, c, d]);
    // Gone for long: the next takes its place.
    for reading in [10, 70] {
        state.passes(Span::from_millis(reading * 200));
        state.board.take(0, state.now, Ok(vec![row(0, reading), row(1, reading), row(3, reading)]));
        state.arrange();
    }
    assert_eq!(selected(&state), d);
    state.passes(Span::from_secs(20));
    state.board.take(0, state.now, Ok(Vec::new()));
    state.passes(Span::from_secs(40));
    state.board.take(0, state.now, Ok(Vec::new()));
    state.arrange();
    assert_eq!((state.selected, state.order.len()), (None, 0));
    press(&mut state, KeyCode::Enter);
    press(&mut state, KeyCode::Down);
    assert!(!state.detail && state.observed().is_none());
}

#[test]
fn a_register_is_written_to_the_selected_queue_pair_or_to_all() {
    let mut state = watched(10);
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Char(':'));
    write(&mut state, "rai");
    // What is missing is said, and what is written stays.
    assert_eq!(press(&mut state, KeyCode::Enter), Action::Draw);
    assert!(state.note.as_ref().unwrap().is_error);
    assert!(screen(&state, 100, 8).contains("set 0x2c9e40 rai   write the name of a register and its value"));
    write(&mut state, " 10 Mb/sx");
    press(&mut state, KeyCode::Backspace);
    let one = vec![(0, "set 0x2c9e40 rai 10Mb/s".to_owned())];
    assert_eq!(press(&mut state, KeyCode::Enter), Action::Set(one));
    assert!(state.prompt.is_none());
    state.written(0, "set 0x2c9e40 rai 10Mb/s", Ok(String::new()));
    assert!(screen(&state, 100, 8).contains("set 0x2c9e40 rai 10Mb/s: done "));
    state.written(0, "set 0x2c9e40 rai 1", Err("wrong or missing unit".to_owned()));
    assert!(state.note.as_ref().unwrap().is_error);
    assert!(screen(&state, 100, 8).contains("set 0x2c9e40 rai 1: wrong or missing unit"));
    let remark =
        "rc rises to rt again within some increase_timers, as after a cut; to keep it, stop these before\n";
    state.written(0, "set 0x2c9e40 rc 1Gb/s", Ok(remark.to_owned()));
    let shown = screen(&state, 100, 8);
    let last: Vec<_> = shown.lines().skip(6).map(|line| line.trim_matches('"').trim_end()).collect();
    assert_eq!(last.join(" "), format!("set 0x2c9e40 rc 1Gb/s: {}", remark.trim()));
    // The register that is charted is the one that is meant.
    press(&mut state, KeyCode::Enter);
    look(&mut state, 10);
    press(&mut state, KeyCode::Char(']'));
    press(&mut state, KeyCode::Char('e'));
    press(&mut state, KeyCode::Tab);
    insta::assert_snapshot!(screen(&state, 100, 24).lines().last().unwrap());
    write(&mut state, "1Gb/s");
    assert_eq!(press(&mut state, KeyCode::Enter), Action::Set(vec![(0, "set all rc 1Gb/s".to_owned())]));
    // q is a letter there, Ctrl-C is none, and Esc gives it up.
    press(&mut state, KeyCode::Char('e'));
    write(&mut state, "q");
    assert_eq!(press(&mut state, KeyCode::Esc), Action::Draw);
    assert!(state.prompt.is_none() && state.detail);
    press(&mut state, KeyCode::Char('e'));
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.key(end), Action::Quit);
}

#[test]
fn all_means_of_all_sockets_and_each_of_them_answers() {
    let mut state = State::new(board(&["/tmp/a", "/tmp/b"]), Duration::from_millis(200));
    press(&mut state, KeyCode::Char('e'));
    write(&mut state, "rai 1Mb/s");
    let request = "set all rai 1Mb/s";
    let both = vec![(0, request.to_owned()), (1, request.to_owned())];
    assert_eq!(press(&mut state, KeyCode::Enter), Action::Set(both));
    state.written(0, request, Ok("it is bounded\n".to_owned()));
    state.written(1, request, Err(NOBODY.to_owned()));
    let note = state.note.as_ref().unwrap();
    let said = "/tmp/a: set all rai 1Mb/s: it is bounded; /tmp/b: set all rai 1Mb/s: no endpoint serves it";
    assert_eq!((note.text.as_str(), note.is_error), (said, true));
}

#[test]
fn while_it_is_paused_the_charts_stand_still() {
    let mut state = watched(10);
    press(&mut state, KeyCode::Char('p'));
    let until = state.until;
    state.passes(Span::from_secs(60));
    assert_eq!((state.until, state.now), (until, Span::from_secs(60)));
    assert!(screen(&state, 80, 8).contains("paused"));
    press(&mut state, KeyCode::Char('p'));
    assert_eq!(state.until, Span::from_secs(60));
}

#[test]
fn the_help_names_every_key_and_any_key_ends_it() {
    let mut state = watched(10);
    press(&mut state, KeyCode::Char('h'));
    insta::assert_snapshot!(screen(&state, 80, 16));
    assert_eq!(press(&mut state, KeyCode::Char('s')), Action::Draw);
    assert!(!state.help && state.sort == Sort::Number);
    press(&mut state, KeyCode::Char('h'));
    assert_eq!(press(&mut state, KeyCode::Char('q')), Action::Quit);
}

#[test]
fn a_window_is_between_ten_seconds_and_ten_minutes() {
    let mut state = watched(1);
    for (key, seconds) in [('+', 600), ('-', 10)] {
        for _ in 0..10 {
            press(&mut state, KeyCode::Char(key));
        }
        assert_eq!(state.window(), Span::from_secs(seconds));
    }
}

#[test]
fn two_readings_make_a_table_and_the_same_as_json() {
    let mut two = board(&["/tmp/a", "/tmp/b"]);
    for reading in 0..2 {
        two.take(0, Span::from_millis(reading * 200), Ok(rows(reading)));
        two.take(1, Span::from_millis(reading * 200), Err(NOBODY.to_owned()));
    }
    insta::assert_snapshot!("table", plain::text(&two));
    let json = plain::json(&two);
    assert_eq!(json["sockets"][1]["error"], NOBODY);
    assert_eq!(json["queue_pairs"][0]["queue_pair"], "0x0ba103");
    assert_eq!(json["queue_pairs"][0]["allowed_bps"], serde_json::Value::Null);
    assert_eq!(json["queue_pairs"][3]["sent_bps"], 5e8);
    assert_eq!(json["totals"]["queue_pairs"], 4);
}

#[test]
fn axes_end_at_round_numbers_and_times_read_as_people_say_them() {
    let tops = [0.0, 0.9, 1.0, 1.1, 2.3e9, 5e-5, 7.0].map(super::detail::round_up);
    let are = [1.0, 1.0, 1.0, 1.5, 2.5e9, 5e-5, 8.0];
    assert!(tops.iter().zip(are).all(|(top, is)| (top / is - 1.0).abs() < 1e-9), "{tops:?}");
    assert_eq!([7, 65, 7207].map(|s| passed(Span::from_secs(s))), ["7 s", "1:05", "2:00:07"]);
}

/// The four, of which the second has telemetry: a link of 25 Gb/s before one of 2.5, which 2 Gb/s go through.
fn with_hops(reading: u64) -> Vec<Row> {
    let hop = |queued, mbps, sent| Hop {
        queued: Bytes(queued),
        rate: BitsPerSec::from_mbps(mbps),
        sent: Bytes(sent),
        at_ns: i64::try_from(reading * 200_000_000).unwrap(),
    };
    let sent = reading * 50_000_000;
    let hops = vec![hop(0, 25_000, sent), hop(12_000, 2_500, sent)];
    let mut rows = rows(reading);
    rows[1].ways = vec![Way { is_ours: true, path: 7, anew: 1, age: Span::from_micros(340), hops }];
    rows
}

#[test]
fn the_bottleneck_of_a_way_has_a_column_and_its_hops_stand_above_the_registers() {
    let mut state = watched(0);
    for reading in 0..20 {
        look_at(&mut state, reading, with_hops(reading));
        if reading == 0 {
            press(&mut state, KeyCode::Down);
            press(&mut state, KeyCode::Enter);
        }
    }
    insta::assert_snapshot!(screen(&state, 120, 26));
    let told = plain::json(&state.board);
    let ways = &told["queue_pairs"][1]["ways"];
    assert_eq!((&ways[0]["bottleneck"], &ways[0]["way"]), (&2.into(), &"to".into()), "{told}");
    assert_eq!(ways[0]["hops"][1]["used"], 0.8);
    assert_eq!(told["queue_pairs"][0]["ways"], serde_json::json!([]));
    let text = plain::text(&state.board);
    assert!(text.contains("◂ bottleneck") && !plain::text(&watched(2).board).contains("hop"), "{text}");
}
