//! What becomes of queue pairs when a program fails, and when it is replaced.

use super::*;
use crate::event::{Class, Event};
use crate::outcome::{Emit, Outcome};
use crate::register::{SettingError, Value};
use crate::{Context, Law};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use roci_units::{BitsPerSec, Instant, Span};

const FAULTS: &[u8] = include_bytes!("../../../tests/images/faults.elf");
const OTHER: &[u8] = include_bytes!("../../../tests/images/other.elf");
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
        let states = [law.connect(LINK.as_kbps()).0, law.connect(LINK.as_kbps()).0];
        let (_, credit, wake) = law.connect(LINK.as_kbps());
        Self { law, states, outcomes: [Outcome::unchanged(credit, wake); 2], now: Instant::ZERO }
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
        (1, &[], "store to 0x00000000, in ROM or outside the memory"),
        (1, &[("link[0].at", "2147483648")], "store to 0x80000000, in ROM or outside the memory"),
        (2, &[("link[0].octets", "1")], "no answer after"),
        (3, &[], "0x4d is no answer"),
        (4, &[], "Send is no answer of this side"),
        (5, &[], "0xf0000001 is no command"),
        (6, &[], "a packet of class 0x2 cannot be asked for"),
        (7, &[], "breakpoint"),
        (9, &[], "no answer after"),
    ];
    for (length, initial, why) in whys {
        let mut pair = Pair::new(initial);
        assert_eq!(pair.hear(0, Class::ACK, 0).traces, None);
        let outcome = pair.hear(0, Class::ACK, length);
        let fault = pair.law.tally().first.clone().expect("a fault");
        assert!(fault.why.to_string().contains(why), "{fault}");
        assert!(fault.place.contains("faults.c:"), "{fault}");
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
fn data_whose_acknowledgement_failed_is_acknowledged() {
    let mut pair = Pair::new(&[]);
    assert_eq!(pair.hear(0, Class::WRITE, 3).emit, Some(Emit::plain(Class::ACK)));
    assert!(pair.states[0].has_fallen());
}

#[test]
fn timers_without_end_are_an_overrun() {
    let mut pair = Pair::new(&[]);
    pair.hear(0, Class::ACK, 8);
    pair.now += Span::from_millis(20);
    pair.hear(0, Class::ACK, 0);
    assert_eq!(pair.law.tally().overruns, 1);
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
fn a_replaced_program_keeps_the_words_that_it_knows() {
    let mut pair = Pair::new(&[("before", "7")]);
    pair.hear(0, Class::ACK, 0);
    pair.hear(1, Class::ACK, 3);
    assert!(pair.states[1].has_fallen());
    pair.law.replace(image(OTHER, true).unwrap());
    let outcome = pair.hear(0, Class::ACK, 0);
    assert_eq!(outcome.traces, Some(pair.law.traces()));
    let words = ["opened", "before", "heard"].map(|name| pair.word(0, name));
    assert_eq!(words, [1, 7, 101].map(|word| Some(Value::Count(word))));
    // The one that had fallen back tries again.
    pair.hear(1, Class::CNP, 0);
    assert!(!pair.states[1].has_fallen());
    assert_eq!(pair.word(1, "opened"), Some(Value::Count(1)));
    // The same program again keeps all, and does not open anew.
    pair.law.replace(image(OTHER, true).unwrap());
    pair.hear(0, Class::CNP, 0);
    assert_eq!(pair.word(0, "heard"), Some(Value::Count(201)));
    assert_eq!((pair.law.tally().replaced, pair.law.tally().fallen()), (2, 1));
}

#[test]
fn a_queue_pair_that_cannot_be_opened_falls_back_at_its_first_event() {
    let mut law = Programmed::new(image(OTHER, false).unwrap(), fallback()).unwrap();
    law.set_initial("heard", "13").unwrap();
    let (mut state, credit, wake) = law.connect(LINK.as_kbps());
    assert_eq!((credit, wake, law.tally().fallen()), (crate::Credit::FREE, Instant::NEVER, 0));
    let mut outcome = Outcome::unchanged(credit, wake);
    let event = Event { class: Class::CNP, now: Instant::ZERO + Span::from_micros(9), ..Event::default() };
    law.on_event(&mut state, &event, &mut outcome);
    assert_eq!((law.tally().traps, outcome.traces), (1, Some(fallback().traces())));
    assert_eq!(outcome.credit.rate_kbps, LINK.as_kbps() / 2, "the fallback has heard of it");
}

#[test]
fn context_is_set_and_refused_by_name() {
    let mut law = Programmed::new(image(FAULTS, false).unwrap(), fallback()).unwrap();
    for (text, word) in
        [("64KiB", 65_536), ("10Gb/s", 10_000_000), ("55us", 55_000), ("-1", u32::MAX), ("9", 9)]
    {
        law.set_initial("link[1].octets", text).unwrap();
        let state = law.connect(LINK.as_kbps()).0;
        assert_eq!(law.get(&state, "link[1].octets", Instant::ZERO), Some(Value::Count(word)), "{text}");
    }
    let unknown = law.set_initial("herd", "1").unwrap_err();
    assert!(matches!(&unknown, SettingError::Key { valid, .. } if valid.contains(&"heard")), "{unknown}");
    let wrong = law.set_initial("heard", "8GiB").unwrap_err();
    assert!(matches!(wrong, SettingError::Value { .. }), "{wrong}");
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
