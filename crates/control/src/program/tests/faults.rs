//! What becomes of queue pairs when a program fails, and when it is replaced.

use super::law::TIMER_MIN_NS;
use super::*;
use crate::event::{Class, Event};
use crate::outcome::{Emit, Outcome, Verdict};
use crate::register::{SettingError, Value};
use crate::{Context, Law};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use roci_units::{BitsPerSec, Instant, Span};

const FAULTS: &[u8] = include_bytes!("../../../tests/images/faults.elf");
const OTHER: &[u8] = include_bytes!("../../../tests/images/other.elf");
const OPENING: &[u8] = include_bytes!("../../../tests/images/opening.elf");
const TUNED: &[u8] = include_bytes!("../../../tests/images/tuned.elf");
const DCQCN: &[u8] = include_bytes!("../../../../../firmware/dcqcn.elf");
const HPCC: &[u8] = include_bytes!("../../../../../firmware/hpcc.elf");
const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

fn image(file: &[u8], checked: bool) -> Result<Arc<Image>, ImageError> {
    Image::new("test", file, &Options { checked, cycles_max: 2_000, ..Options::default() }).map(Arc::new)
}

fn fallback() -> Law {
    Law::from_settings("dcqcn", &[], LINK).unwrap()
}

/// A law with two queue pairs.
struct Pair {
    law: Programmed,
    states: [State; 2],
    outcomes: [Outcome; 2],
    now: Instant,
}

impl Pair {
    fn new(initial: &[(&str, &str)]) -> Self {
        let mut law = Programmed::new(image(FAULTS, false).unwrap(), fallback()).unwrap();
        for (name, text) in initial {
            law.set_initial(name, text).unwrap();
        }
        let [(one, outcome), (other, _)] = [0, 1].map(|qpn| law.open(LINK.as_kbps(), qpn, Instant::ZERO));
        Self { law, states: [one, other], outcomes: [outcome; 2], now: Instant::ZERO }
    }

    /// Queue pair `qp` hears of a packet of `class` with `length` octets.
    fn hear(&mut self, qp: usize, class: Class, length: u32) -> Outcome {
        self.now += Span::from_micros(1);
        let event =
            Event { class, length, now: self.now, qpn: u32::try_from(qp).unwrap(), ..Event::default() };
        let mut outcome = Outcome::unchanged(self.outcomes[qp].credit, self.outcomes[qp].wake);
        self.law.on_event(&mut self.states[qp], &event, &mut outcome);
        self.outcomes[qp] = outcome;
        outcome
    }

    fn word(&self, qp: usize, name: &str) -> Option<Value> {
        self.law.get(&self.states[qp], name, self.now)
    }
}

#[test]
fn a_failing_program_hands_its_queue_pair_to_the_fallback_and_no_other() {
    type Case = (u32, &'static [(&'static str, &'static str)], &'static str);
    let whys: [Case; 9] = [
        (1, &[], "store to 0x00000000, in ROM or outside the memory: bound the index"),
        (1, &[("link[0].at", "2147483648")], "store to 0x80000000, in ROM or outside the memory"),
        (2, &[("link[0].octets", "1")], "no answer after"),
        (3, &[], "eventType is 0x4d, which is no answer"),
        (4, &[], "eventType is Send, which recv() cannot answer"),
        (5, &[], "0xf0000001 is no command"),
        (6, &[], "a packet of class WRITE_REQ cannot be asked for"),
        (7, &[], "breakpoint"),
        (9, &[], "no answer after"),
    ];
    for (length, initial, why) in whys {
        let mut pair = Pair::new(initial);
        assert_eq!(pair.hear(0, Class::ACK, 0).traces, None);
        let outcome = pair.hear(0, Class::ACK, length);
        let fault = pair.law.tally().first().expect("a fault");
        assert!(fault.why.to_string().contains(why), "{fault}");
        assert!(fault.place.contains("faults.c:"), "{fault}");
        assert_eq!((fault.class, fault.number), (Class::ACK, 2), "{fault}");
        // Of an answer or a command that is none, the line that gives it.
        let line = match length {
            3 | 4 => ":100)",
            5 => ":58)",
            _ => ")",
        };
        assert!(fault.place.ends_with(line), "{fault}");
        assert!(pair.states[0].has_fallen() && !pair.states[1].has_fallen());
        // Nothing of what it asked for stands, and the packet filter is the fallback's.
        assert_eq!((outcome.credit, outcome.wake), (crate::Credit::FREE, Instant::NEVER), "{fault}");
        assert_eq!(outcome.traces, Some(fallback().traces()));
        // The fallback acts: a CNP halves the rate, as it does at first.
        assert_eq!(pair.hear(0, Class::CNP, 0).credit.rate_kbps, LINK.as_kbps() / 2);
        // The other queue pair goes on, on a core that has started over.
        assert_eq!(pair.hear(1, Class::WRITE, 100).emit, Some(Emit::plain(Class::ACK)));
        assert_eq!(pair.word(1, "heard"), Some(Value::Count(1)));
        assert_eq!(pair.law.tally().fallen(), 1);
    }
}

#[test]
fn timers_without_end_are_an_overrun() {
    let mut pair = Pair::new(&[]);
    pair.hear(0, Class::ACK, 8);
    // Fifteen periods of the shortest timer are told at once.
    pair.now += Span::from_nanos(u64::from(TIMER_MIN_NS)) * (15 << 20);
    pair.hear(0, Class::ACK, 0);
    assert_eq!(pair.law.tally().overruns, 1);
}

#[test]
fn each_packet_that_is_asked_for_is_handed_over_though_an_outcome_has_room_for_one() {
    let image = image(include_bytes!("../../../tests/images/notices.elf"), true).unwrap();
    let mut law = Programmed::new(image, fallback()).unwrap();
    let (mut state, mut outcome) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
    let mut hear = |class, ns| {
        let now = Instant::ZERO + Span::from_nanos(ns);
        let event = Event { class, now, ..Event::default() };
        outcome = Outcome::unchanged(outcome.credit, outcome.wake);
        law.on_event(&mut state, &event, &mut outcome);
        (outcome.emit, outcome.wake)
    };
    let at = |ns| Instant::ZERO + Span::from_nanos(ns);
    assert_eq!(hear(Class::ACK, 0), (None, at(1_000)));
    // A WRITE at the instant at which two timers run out, and a third has before.
    let [cnp, ack] = [Class::CNP, Class::ACK].map(|class| Some(Emit::plain(class)));
    assert_eq!(hear(Class::WRITE, 1_000), (cnp, at(1_000)));
    assert_eq!(hear(Class::TIMER, 1_000), (cnp, at(1_000)));
    assert_eq!(hear(Class::TIMER, 1_000), (cnp, at(1_000)));
    assert_eq!(hear(Class::TIMER, 1_000), (ack, Instant::NEVER));
    assert_eq!(hear(Class::TIMER, 1_001), (None, Instant::NEVER));
    assert_eq!(law.get(&state, "asked", at(1_001)), Some(Value::Count(4)));
}

#[test]
fn a_timer_takes_its_least_time_at_least() {
    let mut pair = Pair::new(&[]);
    // A timer of one nanosecond, then one of a second.
    for (length, ns) in [(11, TIMER_MIN_NS.into()), (12, 200_000_000)] {
        let wake = pair.hear(0, Class::ACK, length).wake;
        assert_eq!(wake, pair.now + Span::from_nanos(ns));
    }
}

#[test]
fn a_timer_armed_before_a_packet_wakes_the_queue_pair() {
    let mut pair = Pair::new(&[]);
    let outcome = pair.hear(0, Class::TRANSMIT, 20);
    assert_eq!(outcome.wake, pair.now + Span::from_micros(5));
    // One that is told with other events asks for none.
    assert_eq!(pair.hear(1, Class::TRANSMIT, 21).wake, Instant::NEVER);
    pair.now += Span::from_micros(4);
    pair.hear(0, Class::TIMER, 0);
    assert_eq!(pair.word(0, "before"), Some(Value::Count(1)), "the timer was told");
}

#[test]
fn a_program_that_only_loops_back_is_stopped() {
    let mut pair = Pair::new(&[]);
    let begin = pair.now;
    while pair.now < begin + patience::PATIENCE {
        assert_eq!(pair.hear(0, Class::TRANSMIT, 22).verdict, Verdict::LoopBack);
        // Another queue pair's packets are no progress of this one.
        assert_eq!(pair.hear(1, Class::TRANSMIT, 23).verdict, Verdict::Proceed);
        pair.now += Span::from_micros(10);
    }
    assert!(!pair.states[0].has_fallen());
    let outcome = pair.hear(0, Class::TRANSMIT, 22);
    assert_eq!((outcome.verdict, outcome.traces), (Verdict::Proceed, Some(fallback().traces())));
    let tally = pair.law.tally();
    assert_eq!((tally.starved, tally.fallen()), (1, 1));
    let fault = tally.first().expect("a fault").to_string();
    assert!(
        fault.contains("queue pair 0") && fault.contains("8335 LoopBacks in a row, for 100.008 ms"),
        "{fault}"
    );
}

/// The place of a failure for want of something to send, of `refuses.elf` or its likes: the answer's line, in brackets.
fn answered_at(source: &str) -> String {
    let at = source.lines().position(|line| line.contains("postEvent(&e);")).expect("it answers");
    format!(":{})", at + 1)
}

/// Asks `law` about a packet at `now`, as the engine does where no core makes packets go round and nothing is in flight; the queue
/// pair is not asked where it waits for `outcome.wake`.
fn refuse(law: &mut Programmed, state: &mut State, now: Instant, outcome: &mut Outcome) {
    let event = Event { class: Class::TRANSMIT, length: 1_000, now, qpn: 7, ..Event::default() };
    *outcome = Outcome::unchanged(outcome.credit, outcome.wake);
    law.on_event(state, &event, outcome);
    if outcome.verdict == Verdict::LoopBack && outcome.wake == Instant::NEVER {
        law.give_up(state, &event, outcome);
    }
}

#[test]
fn what_is_refused_waits_for_what_may_come_unasked_and_no_longer() {
    const CREDIT: &[u8] = include_bytes!("../../../../../firmware/credit.elf");
    const REFUSES: &[u8] = include_bytes!("../../../tests/images/refuses.elf");
    let begin = |file| {
        let law = Programmed::new(image(file, true).unwrap(), fallback()).unwrap();
        let (state, outcome) = law.open(LINK.as_kbps(), 7, Instant::ZERO);
        (law, state, outcome)
    };
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let timer = |law: &mut Programmed, state: &mut State, now, outcome: &mut Outcome| {
        let event = Event { class: Class::TIMER, now, qpn: 7, ..Event::default() };
        *outcome = Outcome::unchanged(outcome.credit, Instant::NEVER);
        law.on_event(state, &event, outcome);
    };
    // Nothing can come to one that hears of nothing.
    let (mut law, mut state, mut outcome) = begin(REFUSES);
    refuse(&mut law, &mut state, at(1), &mut outcome);
    assert!(state.has_fallen() && outcome.verdict == Verdict::Proceed);
    let fault = law.tally().first().expect("a fault").to_string();
    let line = answered_at(include_str!("../../../tests/images/refuses.c"));
    assert!(fault.contains(&line) && fault.ends_with("where nothing else brings the packet back"), "{fault}");
    // But it may be written to.
    let (mut law, mut state, mut outcome) = begin(REFUSES);
    law.await_write(7, Some(at(9)));
    refuse(&mut law, &mut state, at(1), &mut outcome);
    assert_eq!((state.has_fallen(), outcome.wake), (false, at(9) + patience::PATIENCE));
    timer(&mut law, &mut state, outcome.wake, &mut outcome);
    let late = at(9) + patience::PATIENCE;
    refuse(&mut law, &mut state, late, &mut outcome);
    assert!(state.has_fallen());
    // Data may come to one that hears of them, and begin the waiting anew; other packets do not.
    let (mut law, mut state, mut outcome) = begin(CREDIT);
    refuse(&mut law, &mut state, at(1), &mut outcome);
    let until = at(1) + patience::PATIENCE;
    assert_eq!((state.has_fallen(), outcome.wake), (false, until));
    refuse(&mut law, &mut state, at(2), &mut outcome);
    assert_eq!((state.has_fallen(), outcome.wake), (false, until));
    for (class, now, wake) in [(Class::CNP, at(3), until), (Class::WRITE, at(4), at(4) + patience::PATIENCE)]
    {
        let event = Event { class, now, qpn: 7, ..Event::default() };
        outcome = Outcome::unchanged(outcome.credit, outcome.wake);
        law.on_event(&mut state, &event, &mut outcome);
        assert_eq!(outcome.wake, wake, "{class:?}");
    }
    refuse(&mut law, &mut state, at(5), &mut outcome);
    let until = at(4) + patience::PATIENCE;
    assert_eq!((state.has_fallen(), outcome.wake), (false, until));
    // It is asked once more when that is over.
    timer(&mut law, &mut state, until, &mut outcome);
    assert_eq!((state.has_fallen(), outcome.wake), (false, Instant::NEVER));
    refuse(&mut law, &mut state, until, &mut outcome);
    let fault = law.tally().first().expect("a fault").to_string();
    let line = answered_at(include_str!("../../../../../firmware/credit.c"));
    assert!(fault.contains(&line) && fault.contains("4 LoopBacks in a row, for 103.000 ms"), "{fault}");
}

/// How long a packet of one queue pair goes round, ten microseconds each time, with something outstanding or not, until the program is stopped; it hears
/// `heard` each ten milliseconds, and so much has been acknowledged then.
fn goes_round(file: &[u8], outstanding: bool, heard: Option<(Class, u32)>) -> Span {
    let mut law = Programmed::new(image(file, true).unwrap(), fallback()).unwrap();
    let (mut state, outcome) = law.open(LINK.as_kbps(), 7, Instant::ZERO);
    let (mut now, mut wake, mut round) = (Instant::ZERO, Instant::NEVER, 0u64);
    while !state.has_fallen() && now < Instant::ZERO + Span::from_secs(11) {
        now += Span::from_micros(10);
        round += 1;
        let timer = (wake <= now).then_some((Class::TIMER, 0));
        let heard = heard.filter(|_| round.is_multiple_of(1_000));
        for (class, acked) in timer.into_iter().chain(heard).chain([(Class::TRANSMIT, 0)]) {
            let event = Event { class, length: 1_000, now, qpn: 7, outstanding, acked, ..Event::default() };
            let mut outcome = Outcome::unchanged(outcome.credit, wake);
            law.on_event(&mut state, &event, &mut outcome);
            wake = outcome.wake;
        }
    }
    now.since(Instant::ZERO)
}

#[test]
fn what_goes_round_does_so_for_as_long_as_something_may_come_that_changes_it() {
    const REFUSES: &[u8] = include_bytes!("../../../tests/images/refuses.elf");
    let step = Span::from_micros(10);
    // Nothing may. What is in flight is answered, or times out, some time.
    assert_eq!(goes_round(REFUSES, false, None), step + patience::LOOP_BACKS_SPAN);
    assert_eq!(goes_round(REFUSES, true, None), step + patience::LONG_PATIENCE);
    // Data may, of which it hears, and each time they do.
    assert_eq!(goes_round(CREDIT, false, None), step + patience::PATIENCE);
    assert!(goes_round(CREDIT, false, Some((Class::WRITE, 0))) > Span::from_secs(10));
    // Marks it does not hear of. Acknowledgements are not refusals.
    assert_eq!(goes_round(CREDIT, false, Some((Class::CE, 0))), step + patience::PATIENCE);
    assert!(goes_round(CREDIT, false, Some((Class::ACK, 1))) > Span::from_secs(10));
}

#[test]
fn what_waits_for_timers_waits_for_eight_of_them_however_long_they_take() {
    const TIMES: &[u8] = include_bytes!("../../../tests/images/times.elf");
    // Each begins the next and lets nothing go; by the context, of so many nanoseconds.
    let lasts = |ns: u64| {
        let mut law = Programmed::new(image(TIMES, true).unwrap(), fallback()).unwrap();
        law.set_initial("period", &ns.to_string()).unwrap();
        let (mut state, outcome) = law.open(LINK.as_kbps(), 7, Instant::ZERO);
        let (mut now, mut wake) = (Instant::ZERO, outcome.wake);
        while !state.has_fallen() {
            for class in [Class::TIMER, Class::TRANSMIT] {
                let event = Event { class, length: 1_000, now, qpn: 7, ..Event::default() };
                let mut outcome = Outcome::unchanged(outcome.credit, wake);
                law.on_event(&mut state, &event, &mut outcome);
                wake = outcome.wake;
            }
            now = if state.has_fallen() { now } else { wake };
        }
        now.since(Instant::ZERO)
    };
    assert_eq!(lasts(1_000_000), patience::PATIENCE);
    assert_eq!(lasts(200_000_000), Span::from_millis(1_600));
}

#[test]
fn loop_backs_between_packets_are_pacing() {
    let mut pair = Pair::new(&[]);
    for at in 0..1_000 {
        pair.hear(0, Class::TRANSMIT, if at % 40 == 0 { 23 } else { 22 });
        pair.now += Span::from_millis(1);
    }
    assert_eq!(pair.law.tally().fallen(), 0);
}

#[test]
fn an_answer_after_the_limit_is_an_overrun_though_no_loop_led_to_it() {
    let cycles = |max| {
        let options = Options { checked: false, cycles_max: max, ..Options::default() };
        let image = Image::new("test", FAULTS, &options).map(Arc::new).unwrap();
        let mut law = Programmed::new(image, fallback()).unwrap();
        let (mut state, mut outcome) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
        let mut most = 0;
        for _ in 0..3 {
            let event = Event { class: Class::ACK, ..Event::default() };
            outcome = Outcome::unchanged(outcome.credit, outcome.wake);
            law.on_event(&mut state, &event, &mut outcome);
            most = most.max(outcome.cycles);
        }
        (u64::from(most), law.tally().overruns)
    };
    let (most, none) = cycles(2_000);
    assert_eq!(none, 0);
    assert_eq!(cycles(most), (most, 0));
    assert_eq!(cycles(most - 1).1, 1);
}

#[test]
fn classes_that_a_queue_pair_traces_are_its_own() {
    let mut pair = Pair::new(&[]);
    // Marks are not the program's, for it hears of data no longer: its fallback answers them.
    let heard = Class::CNP.with(Class::TIMER).with(Class::TRANSMIT).with(Class::CE);
    assert_eq!(pair.hear(0, Class::ACK, 13).traces, Some(heard));
    for (qp, class, more) in [(0, Class::ACK, 0), (0, Class::CNP, 1), (1, Class::ACK, 1), (1, Class::CNP, 0)]
    {
        let heard = |pair: &Pair| match pair.word(qp, "heard") {
            Some(Value::Count(count)) => count,
            other => panic!("{other:?}"),
        };
        let before = heard(&pair);
        pair.hear(qp, class, 0);
        assert_eq!(heard(&pair) - before, more, "queue pair {qp}, {class:?}");
    }
}

#[test]
fn a_cores_memory_starts_over_with_the_core() {
    let mut pair = Pair::new(&[]);
    pair.hear(0, Class::ACK, 10);
    pair.hear(1, Class::ACK, 10);
    assert_eq!(
        (pair.word(0, "before"), pair.word(1, "before")),
        (Some(Value::Count(0)), Some(Value::Count(5)))
    );
    pair.hear(0, Class::ACK, 3);
    pair.hear(1, Class::ACK, 10);
    assert_eq!(pair.word(1, "before"), Some(Value::Count(0)));
}

#[test]
fn what_cannot_be_proved_is_refused_by_its_line() {
    let refused = image(FAULTS, true).unwrap_err().to_string();
    assert!(refused.starts_with("recv: ") && refused.contains("faults.c:"), "{refused}");
}

#[test]
fn a_replaced_program_begins_anew() {
    let mut pair = Pair::new(&[("before", "7")]);
    // Window, rate, tokens, timer, byte counter, priority and classes of the old program.
    let old = pair.hear(0, Class::ACK, 14);
    assert_eq!((old.credit.rate_kbps, old.credit.window, old.credit.tokens), (1_000, 4_096, 8_192));
    assert!(old.wake != Instant::NEVER && old.byte_counter.is_some() && old.traces.is_some());
    pair.hear(1, Class::ACK, 3);
    assert!(pair.states[1].has_fallen());
    let later = Options { cycles_max: 2_000, ..Options::default() };
    pair.law.replace(Arc::new(Image::new("later", OTHER, &later).unwrap()));
    assert_eq!(pair.law.tally().first().expect("a fault").image, "test", "the one that failed");
    let outcome = pair.hear(0, Class::ACK, 0);
    assert_eq!((outcome.credit, outcome.wake), (crate::Credit::FREE, Instant::NEVER));
    assert_eq!((outcome.byte_counter, outcome.traces), (Some(0), Some(pair.law.traces())));
    // It was opened, with the initial values of its words, and has heard the event.
    let words = ["opened", "before", "heard"].map(|name| pair.word(0, name));
    assert_eq!(words, [1, 7, 100].map(|word| Some(Value::Count(word))));
    // The one that had fallen back tries again.
    pair.hear(1, Class::CNP, 0);
    assert!(!pair.states[1].has_fallen());
    assert_eq!(pair.word(1, "opened"), Some(Value::Count(1)));
    assert_eq!((pair.law.tally().replaced, pair.law.tally().fallen()), (1, 1));
}

#[test]
fn what_a_program_sets_at_its_opening_stands_from_the_beginning() {
    let law = Programmed::new(image(OPENING, true).unwrap(), fallback()).unwrap();
    let now = Instant::ZERO + Span::from_micros(123);
    let (state, outcome) = law.open(LINK.as_kbps(), 77, now);
    assert_eq!(
        (outcome.credit.rate_kbps, outcome.credit.window, outcome.credit.tokens),
        (1_000, 4_096, 8_192)
    );
    assert_eq!((outcome.byte_counter, outcome.priority), (Some(10_000), Some(5)));
    assert_eq!(outcome.traces, Some(Class::CNP.with(Class::TIMER).with(Class::CE)));
    assert_eq!(outcome.wake, now + Span::from_micros(50));
    let word = |name| law.get(&state, name, now);
    assert_eq!((word("opened"), word("qpn")), (Some(Value::Count(123_000)), Some(Value::Count(77))));
}

#[test]
fn a_queue_pair_that_cannot_be_opened_falls_back_at_its_first_event() {
    let mut law = Programmed::new(image(OTHER, false).unwrap(), fallback()).unwrap();
    law.set_initial("heard", "13").unwrap();
    let (mut state, mut outcome) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
    assert_eq!((outcome.credit, outcome.wake), (crate::Credit::FREE, Instant::NEVER));
    assert_eq!(law.tally().fallen(), 0);
    let event = Event { class: Class::CNP, now: Instant::ZERO + Span::from_micros(9), ..Event::default() };
    law.on_event(&mut state, &event, &mut outcome);
    assert_eq!((law.tally().traps, outcome.traces), (1, Some(fallback().traces())));
    assert_eq!(outcome.credit.rate_kbps, LINK.as_kbps() / 2, "the fallback has heard of it");
}

#[test]
fn private_timers_that_ran_out_long_before_an_event_are_no_part_of_its_own_cycles() {
    let mut law = Programmed::new(image(DCQCN, true).unwrap(), fallback()).unwrap();
    let bound = law.image().bound(Side::Rx).unwrap();
    let (mut state, begun) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
    let mut hear = |class, us| {
        let event = Event { class, now: Instant::ZERO + Span::from_micros(us), ..Event::default() };
        let mut outcome = Outcome::unchanged(begun.credit, begun.wake);
        law.on_event(&mut state, &event, &mut outcome);
        (u64::from(outcome.cycles), u64::from(outcome.late_cycles))
    };
    let (first, late) = hear(Class::CNP, 1);
    assert_eq!(late, 0, "no timer has run out");
    // The increase timer is never woken here, and runs out once; alpha's by the fifteen.
    let (cycles, late) = hear(Class::CNP, 10_001);
    let groups = 10_000 / 55 / 15;
    assert!(late > groups * first / 2 && late < cycles, "{late} of {cycles}");
    assert!(
        cycles - late <= 3 * bound,
        "{late} of {cycles}: an increase, alpha's last, and the notification"
    );
    // A timer that wakes its queue pair is told in time, whenever that is.
    let (cycles, late) = hear(Class::TIMER, 10_060);
    assert!(cycles > 0 && late == 0);
}

#[test]
fn context_is_set_and_refused_by_name() {
    let mut law = Programmed::new(image(FAULTS, false).unwrap(), fallback()).unwrap();
    for (text, word) in [("64KiB", 65_536), ("10Gb/s", 10_000_000), ("55us", 55_000), ("9", 9)] {
        law.set_initial("link[1].octets", text).unwrap();
        let state = law.open(LINK.as_kbps(), 0, Instant::ZERO).0;
        assert_eq!(law.get(&state, "link[1].octets", Instant::ZERO), Some(Value::Count(word)), "{text}");
    }
    let unknown = law.set_initial("herd", "1").unwrap_err();
    assert!(matches!(&unknown, SettingError::Key { valid, .. } if valid.contains(&"heard")), "{unknown}");
    law.set_initial("heard", "-1").unwrap();
    let state = law.open(LINK.as_kbps(), 0, Instant::ZERO).0;
    let heard = law.get(&state, "heard", Instant::ZERO).unwrap();
    assert_eq!((heard, heard.to_string()), (Value::Below(-1), "-1".to_string()));
    law.set_initial("link[1].octets", "4294967295").unwrap();
    let state = law.open(LINK.as_kbps(), 0, Instant::ZERO).0;
    assert_eq!(law.get(&state, "link[1].octets", Instant::ZERO), Some(Value::Count(u32::MAX)), "unsigned");
    for (name, text) in [("heard", "8GiB"), ("link[1].octets", "-1")] {
        let wrong = law.set_initial(name, text).unwrap_err();
        assert!(matches!(wrong, SettingError::Value { .. }), "{wrong}");
    }
}

#[test]
fn programs_run_as_laws_side_by_side() {
    let laws = [super::DCQCN, OTHER]
        .map(|file| Law::Program(Box::new(Programmed::new(image(file, true).unwrap(), fallback()).unwrap())));
    for mut law in laws {
        let (mut context, credit, wake) = law.connect(LINK.as_kbps());
        let mut outcome = Outcome::unchanged(credit, wake);
        law.on_event(&mut context, &Event { class: Class::CNP, ..Event::default() }, &mut outcome);
        assert!(matches!(context, Context::Program(_)) && outcome.cycles > 0);
    }
}

/// A law that runs `file`, with one queue pair.
fn lone(file: &[u8]) -> (Law, Context) {
    let law = Law::Program(Box::new(Programmed::new(image(file, true).unwrap(), fallback()).unwrap()));
    let context = law.connect(LINK.as_kbps()).0;
    (law, context)
}

#[test]
fn parameters_decide_what_is_heard() {
    let mut law = Programmed::new(image(TUNED, true).unwrap(), fallback()).unwrap();
    assert!(!law.traces().meets(Class::ACK));
    law.set_initial("hears_acks", "1").unwrap();
    assert!(law.traces().meets(Class::ACK));
    let (mut state, outcome) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
    let mut outcome = Outcome { cycles: 0, ..outcome };
    law.on_event(&mut state, &Event { class: Class::ACK, ..Event::default() }, &mut outcome);
    assert_eq!(law.get(&state, "heard", Instant::ZERO), Some(Value::Count(2)));
}

#[test]
fn parameters_are_written_during_a_run_with_what_follows_from_them() {
    let (mut law, mut context) = lone(TUNED);
    let hear = |law: &mut Law, context: &mut Context| {
        let mut outcome = Outcome::unchanged(crate::Credit::FREE, Instant::NEVER);
        law.on_event(context, &Event { class: Class::CNP, ..Event::default() }, &mut outcome);
    };
    hear(&mut law, &mut context);
    law.set("added", "50").unwrap();
    hear(&mut law, &mut context);
    let heard = law.get(&mut context, "heard", Instant::ZERO);
    assert_eq!(heard, Some(Value::Count(102)), "contexts stay");
    assert_eq!(law.get(&mut context, "added", Instant::ZERO), Some(Value::Count(50)));
    assert!(matches!(law.set("heard", "1"), Err(SettingError::Key { .. })), "a word of context has no law");
    let names: alloc::vec::Vec<_> = law.registers().iter().map(|register| register.name).collect();
    assert_eq!(names[..2], ["heard", "part"]);
    assert!(
        ["added", "hears_acks", "share", "tick"].iter().all(|name| names[2..].contains(name)),
        "{names:?}"
    );
}

#[test]
fn a_fraction_is_given_and_shown_as_one() {
    let shown = |(law, mut context): (Law, Context), name: &str| {
        law.get(&mut context, name, Instant::ZERO).unwrap().to_string()
    };
    for (file, name, text, says) in [
        (TUNED, "share", "1", "1"),
        (TUNED, "share", "0.25", "1/4"),
        (TUNED, "part", "0.75", "3/4"),
        (TUNED, "part", "7", "7"),
        (DCQCN, "g", "1", "1"),
        (DCQCN, "g", "1/256", "1/256"),
        (DCQCN, "g", "1/1000000000", "1/16777216"),
        (DCQCN, "alpha", "1/2", "1/2"),
        // It begins with one, whatever is given.
        (HPCC, "utilisation", "0.95", "1"),
    ] {
        let mut law = Programmed::new(image(file, true).unwrap(), fallback()).unwrap();
        law.set_initial(name, text).unwrap_or_else(|error| panic!("{name} = {text}: {error}"));
        let law = Law::Program(Box::new(law));
        let context = law.connect(LINK.as_kbps()).0;
        assert_eq!(shown((law, context), name), says, "{name} = {text}");
    }
    for (file, name, text) in [
        (TUNED, "share", "65536"),
        (TUNED, "share", "10us"),
        (TUNED, "part", "-1"),
        (DCQCN, "g", "256"),
        (DCQCN, "alpha", "300"),
        (HPCC, "utilisation", "10us"),
    ] {
        let (mut law, _) = lone(file);
        let Law::Program(program) = &mut law else { unreachable!("it is one") };
        let refused = program.set_initial(name, text).unwrap_err().to_string();
        assert!(refused.contains("it takes a fraction"), "{name} = {text}: {refused}");
    }
}

#[test]
fn a_time_a_rate_and_octets_are_given_and_shown_as_such_and_as_nothing_else() {
    let file = |name: &str| match name {
        "timely" => &include_bytes!("../../../../../firmware/timely.elf")[..],
        _ => DCQCN,
    };
    let shown = |law: &Law, context: &mut Context, name: &str| {
        law.get(context, name, Instant::ZERO).map(|value| value.to_string())
    };
    for (program, name, takes, says) in [
        ("dcqcn", "alpha_timer", "70us", "70us"),
        ("dcqcn", "cnp_gap", "4000", "4us"),
        ("dcqcn", "rai", "80Mb/s", "80Mb/s"),
        ("dcqcn", "rate", "40000000", "40Gb/s"),
        ("dcqcn", "byte_counter", "64KiB", "64KiB"),
        ("dcqcn", "threshold", "7", "7"),
        ("timely", "prev_rtt", "20us", "20us"),
        ("timely", "progress", "1000", "1KB"),
    ] {
        let mut law = Programmed::new(image(file(program), true).unwrap(), fallback()).unwrap();
        law.set_initial(name, takes).unwrap_or_else(|error| panic!("{name} = {takes}: {error}"));
        let law = Law::Program(Box::new(law));
        let mut context = law.connect(LINK.as_kbps()).0;
        // `Open` sets the words that hold the link's rate.
        let says = if name == "rate" { "10Gb/s" } else { says };
        assert_eq!(shown(&law, &mut context, name).as_deref(), Some(says), "{name} = {takes}");
    }
    for (program, name, text, takes) in [
        ("dcqcn", "alpha_timer", "5Gb/s", "it takes a time, such as 55us"),
        ("dcqcn", "alpha_timer", "0.5", "it takes a time, such as 55us"),
        ("dcqcn", "alpha_timer", "5s", "it takes a time, such as 55us"),
        ("dcqcn", "alpha_timer", "-1", "it takes a time, such as 55us"),
        ("dcqcn", "rai", "55us", "it takes a rate, such as 5Gb/s"),
        ("dcqcn", "rate", "1/2", "it takes a rate, such as 5Gb/s"),
        ("dcqcn", "byte_counter", "10us", "it takes octets, such as 64KiB"),
        ("timely", "prev_rtt", "64KiB", "it takes a time, such as 55us"),
        ("timely", "progress", "5Gb/s", "it takes octets, such as 64KiB"),
    ] {
        let mut law = Programmed::new(image(file(program), true).unwrap(), fallback()).unwrap();
        let refused = law.set_initial(name, text).unwrap_err().to_string();
        assert!(refused.contains(takes), "{name} = {text}: {refused}");
    }
}

#[test]
fn what_a_program_does_not_take_is_refused_by_the_line_that_says_so() {
    for (file, name, text, line) in [
        (TUNED, "share", "0", "tuned.c:22)"),
        (TUNED, "share", "1.1", "tuned.c:22)"),
        (DCQCN, "rai", "0Kb/s", "dcqcn.c:59): it requires rai > 0 && rhai > 0"),
        (DCQCN, "g", "0", "dcqcn.c:60): it requires within(g, 1, ONE), with g = 0"),
        (
            DCQCN,
            "increase_timer",
            "300ms",
            "dcqcn.c:64): it requires within(increase_timer, 100, (1 << 28) - 1)",
        ),
        (
            DCQCN,
            "cnp_gap",
            "1s",
            "dcqcn.c:65): it requires within(cnp_gap, 100, (1 << 28) - 1), with cnp_gap = 1s",
        ),
    ] {
        let mut law = Programmed::new(image(file, true).unwrap(), fallback()).unwrap();
        let refused = law.set_initial(name, text).unwrap_err().to_string();
        assert!(refused.starts_with("the program refuses ") && refused.contains(line), "{refused}");
        assert!(law.open(LINK.as_kbps(), 0, Instant::ZERO).0.fallen.is_none(), "it stays as it was");
    }
}

#[test]
fn a_side_that_answers_by_rote_costs_what_its_core_takes() {
    for (file, rote) in [(DCQCN, true), (FAULTS, false)] {
        let image = image(file, false).unwrap();
        let mut core = image.core(Side::Tx).expect("it has one");
        let (begun, mut block) = (core.cycles(), [0; roci_hart::CSR_WORDS]);
        let mut law = Programmed::new(image.clone(), fallback()).unwrap();
        let mut state = law.open(LINK.as_kbps(), 0, Instant::ZERO).0;
        for packet in 0..4 {
            assert_eq!(image.rote(&core, Side::Tx).is_some(), rote && packet > 0);
            (block[csr::EVENT], block[csr::LENGTH]) = (Class::TRANSMIT.0, 1_024);
            core.run(&mut block, 2_000);
            let mut outcome = Outcome::unchanged(crate::Credit::FREE, Instant::NEVER);
            let event = Event { class: Class::TRANSMIT, length: 1_024, ..Event::default() };
            law.on_event(&mut state, &event, &mut outcome);
            assert_eq!(outcome.verdict, Verdict::Proceed);
            let tally = law.tally();
            assert_eq!(
                (tally.events, tally.cycles[Side::Tx as usize]),
                ([0, packet + 1], core.cycles() - begun)
            );
        }
    }
}
