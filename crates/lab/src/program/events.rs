//! Streams of events that a run has recorded: written as text, read again, and told to a program.
//!
//! The second line says what the program heard for which they were recorded, for no other events are there.
//! Each other line is one event: the host's number, the queue pair's, the instant in picoseconds and the class, then what the event
//! says beyond that, `name=value` each; what is zero is left out. `docs/guide/programs.md` lists the names. Timers are not
//! written, for they follow from what the program answers.

use super::{CLASSES, class_name, stream::Heard};
use roci_control::program::{Image, Programmed, Recorded, State, csr};
use roci_control::{Class, Event, Hop, Outcome, Part, PathId, Verdict};
use roci_fabric::queue::HORIZON_PS;
use roci_units::Instant;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// What the first line says.
const FIRST: &str = "roci program events 3";

/// A stream of events.
#[derive(Clone, Debug, Default)]
pub struct Events {
    heard: Interest,
    events: Vec<(u16, Recorded)>,
}

/// What a program hears of packets: what it traces at the start, words of its own in each of them, and their telemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interest {
    classes: Class,
    words: u8,
    telemetry: bool,
}

impl Interest {
    fn of(image: &Image) -> Self {
        // Neither timers nor openings are recorded, for they follow.
        let classes = Class(image.traces().0 & !Class::TIMER.with(csr::OPEN).0);
        Self { classes, words: image.header_words(), telemetry: image.reads_telemetry() }
    }
}

/// Why a text is no stream of events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct EventsError {
    /// The line, from one on.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// What a program made of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Packets that it was asked about; of a program that is not asked, those that were sent.
    pub offered: u64,
    /// Those that it let go.
    pub sent: u64,
}

impl Events {
    /// None yet, of a program `image`.
    pub fn of(image: &Image) -> Self {
        Self { heard: Interest::of(image), events: Vec::new() }
    }

    /// Adds what was recorded on host number `host`.
    pub fn add(&mut self, host: u16, events: &[Recorded]) {
        self.events.extend(events.iter().map(|event| (host, event.clone())));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether all that the program `image` hears was recorded.
    ///
    /// # Errors
    /// What was not, in words.
    pub fn suit(&self, image: &Image) -> Result<(), String> {
        let (heard, wanted) = (self.heard, Interest::of(image));
        let missing = Class(wanted.classes.0 & !heard.classes.0);
        let what = if missing != Class::NONE {
            format!("it hears {}, and of that nothing was recorded", names(missing))
        } else if wanted.words > 0 && wanted.words != heard.words {
            format!("its packets have {} header words, and those recorded have {}", wanted.words, heard.words)
        } else if wanted.telemetry && !heard.telemetry {
            "it reads telemetry, and of that nothing was recorded".to_owned()
        } else {
            return Ok(());
        };
        Err(format!(
            "the events are of a program that hears {}: {what}; record a run of this one",
            names(heard.classes)
        ))
    }

    /// Reads what was written.
    ///
    /// # Errors
    /// [`EventsError`], which names the line.
    pub fn parse(text: &str) -> Result<Self, EventsError> {
        let mut lines = text.lines().enumerate();
        let wrong = |line: usize, what: String| EventsError { line: line + 1, what };
        match lines.next() {
            Some((_, FIRST)) => {}
            _ => return Err(wrong(0, format!("a stream of events begins with `{FIRST}`"))),
        }
        let heard = lines.next().map(|(_, line)| interest(line));
        let heard = heard.unwrap_or_else(|| Err("it ends here".to_owned())).map_err(|what| wrong(1, what))?;
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let events = lines.map(|(at, line)| event(line).map_err(|what| wrong(at, what)));
        Ok(Self { heard, events: events.collect::<Result<_, _>>()? })
    }

    /// Tells `law` of all of them, on each host a program of its own, and `hear` of its runs. Timers run out as the program
    /// arms them.
    ///
    /// # Errors
    /// The first failure of the program, in words.
    pub fn tell(&self, law: &Programmed, hear: &mut impl FnMut(Heard)) -> Result<Told, String> {
        let asked = law.image().traces().meets(Class::TRANSMIT);
        let mut hosts: BTreeMap<u16, Programmed> = BTreeMap::new();
        let mut pairs: BTreeMap<(u16, u32), Pair> = BTreeMap::new();
        let mut told = Told::default();
        for (host, recorded) in &self.events {
            let Recorded { event, words, hops, opened, link_kbps } = recorded;
            let law = hosts.entry(*host).or_insert_with(|| {
                let mut law = law.clone();
                law.note_runs();
                law
            });
            let open = || {
                let (state, outcome) = law.open(*link_kbps, event.qpn, *opened);
                Pair { state, outcome, opened: *opened, heard: *opened, next: event.next_sequence }
            };
            let pair = match pairs.entry((*host, event.qpn)) {
                std::collections::btree_map::Entry::Vacant(entry) => entry.insert(open()),
                // Its number has been given to another since.
                std::collections::btree_map::Entry::Occupied(mut entry) if entry.get().opened != *opened => {
                    entry.insert(open());
                    entry.into_mut()
                }
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            };
            if !asked {
                let sent = u64::from(
                    event.next_sequence.wrapping_sub(pair.next).cast_signed().max(0).cast_unsigned(),
                );
                (told.offered, told.sent) = (told.offered + sent, told.sent + sent);
                pair.next = event.next_sequence;
            }
            let mut timers = TIMERS_MAX;
            while pair.outcome.wake <= event.now {
                timers = timers.checked_sub(1).ok_or_else(|| {
                    format!(
                        "the program's timers run out more than {TIMERS_MAX} times before the event at {}, since {}: \
                         is that event's time right?",
                        event.now, pair.heard
                    )
                })?;
                let timer = Event { class: Class::TIMER, now: pair.outcome.wake, qpn: event.qpn, ..*event };
                pair.tell(law, &Event { length: 0, acked: 0, ..timer }, hear);
            }
            pair.heard = event.now;
            pair.tell(law, &Event { words, hops, ..*event }, hear);
            if event.class == Class::TRANSMIT {
                told.offered += 1;
                told.sent += u64::from(pair.outcome.verdict == Verdict::Proceed);
            }
            if let Some(fault) = law.tally().first() {
                return Err(fault.to_string());
            }
        }
        Ok(told)
    }
}

/// A queue pair of the stream.
struct Pair {
    state: State,
    outcome: Outcome,
    opened: Instant,
    /// The last event's time.
    heard: Instant,
    next: u32,
}

impl Pair {
    fn tell(&mut self, law: &mut Programmed, event: &Event<'_>, hear: &mut impl FnMut(Heard)) {
        self.outcome = Outcome::unchanged(self.outcome.credit, self.outcome.wake);
        law.on_event(&mut self.state, event, &mut self.outcome);
        for run in law.take_runs() {
            let refused = run.class == Class::TRANSMIT && self.outcome.verdict == Verdict::LoopBack;
            hear(Heard { run, refused });
        }
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interest { classes, words, telemetry } = self.heard;
        let telemetry = if telemetry { " telemetry" } else { "" };
        writeln!(f, "{FIRST}\nheard {} words={words}{telemetry}", names(classes))?;
        self.events.iter().try_for_each(|(host, recorded)| line(f, *host, recorded))
    }
}

fn line(f: &mut impl Write, host: u16, recorded: &Recorded) -> fmt::Result {
    let Recorded { event, words, hops, opened, link_kbps } = recorded;
    write!(f, "{host} {} {} {}", event.qpn, event.now.as_ps(), class_name(event.class))?;
    let numbers = [
        ("opened", opened.as_ps()),
        ("link", (*link_kbps).into()),
        ("opcode", event.opcode.into()),
        ("length", event.length.into()),
        ("ecn", event.ecn.into()),
        ("timeout", event.timeout.into()),
        ("acked", event.acked.into()),
        ("in_flight", event.in_flight.into()),
        ("acked_sequence", event.acked_sequence.into()),
        ("next_sequence", event.next_sequence.into()),
        ("sent", event.sent.as_ps()),
        ("hop_count", event.hop_count.into()),
        ("path_id", event.path_id.get().into()),
        ("pulled", event.pulled.into()),
        ("missing", event.missing.into()),
        ("drained", event.drained.into()),
    ];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        write!(f, " {name}={number}")?;
    }
    let Part { message, message_length, offset, end, priority } = event.part;
    if event.part != Part::default() {
        write!(f, " part={message},{message_length},{offset},{end},{priority}")?;
    }
    if !words.is_empty() {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        write!(f, " words={}", words.join(","))?;
    }
    if !hops.is_empty() {
        let hop = |hop: &Hop| format!("{}:{}:{}:{}", hop.at_ns, hop.tx_bytes, hop.queue_bytes, hop.rate_kbps);
        write!(f, " hops={}", hops.iter().map(hop).collect::<Vec<_>>().join(","))?;
    }
    writeln!(f)
}

/// How often a queue pair's timers may run out between two of its events. A stream has real silences, of seconds for timers of microseconds; one whose
/// times are wrong would keep a program's timers busy for years.
const TIMERS_MAX: u32 = 1 << 20;

/// The most words and switches of an event.
const WORDS_MAX: usize = 16;
const HOPS_MAX: usize = 64;

/// Names of classes, with commas between them; `-` where there is none.
fn names(classes: Class) -> String {
    let names: Vec<_> =
        CLASSES.iter().filter(|(class, _)| classes.meets(*class)).map(|(_, name)| *name).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// The second line.
fn interest(line: &str) -> Result<Interest, String> {
    let mut parts = line.split_whitespace();
    let (Some("heard"), Some(names)) = (parts.next(), parts.next()) else {
        return Err("it is not `heard CLASS,CLASS… words=N`".to_owned());
    };
    let mut interest = Interest::default();
    for name in names.split(',').filter(|name| *name != "-") {
        let class = CLASSES.iter().find(|(_, known)| *known == name).map(|(class, _)| *class);
        interest.classes = interest.classes.with(class.ok_or_else(|| format!("`{name}` is no class"))?);
    }
    for part in parts {
        match part.split_once('=') {
            Some(("words", text)) => interest.words = number(text)?,
            None if part == "telemetry" => interest.telemetry = true,
            _ => return Err(format!("`{part}` is neither `words=N` nor `telemetry`")),
        }
    }
    Ok(interest)
}

fn event(line: &str) -> Result<(u16, Recorded), String> {
    let mut parts = line.split_whitespace();
    let mut next = |what: &str| parts.next().ok_or_else(|| format!("there is no {what}"));
    let host = number(next("host")?)?;
    let qpn = number(next("queue pair")?)?;
    let now = instant(next("time")?)?;
    let name = next("class")?;
    let class = CLASSES.iter().find(|(_, known)| *known == name).map(|(class, _)| *class);
    let class =
        class.filter(|class| *class != Class::TIMER).ok_or_else(|| format!("`{name}` is no class"))?;
    let mut recorded = Recorded {
        event: Event { class, now, qpn, ..Event::default() },
        words: Vec::new(),
        hops: Vec::new(),
        opened: Instant::ZERO,
        link_kbps: 100_000_000,
    };
    let event = &mut recorded.event;
    for part in parts {
        let (name, text) = part.split_once('=').ok_or_else(|| format!("`{part}` is no `name=value`"))?;
        match name {
            "opened" => recorded.opened = instant(text)?,
            "link" => recorded.link_kbps = number(text)?,
            "opcode" => event.opcode = number(text)?,
            "length" => event.length = number(text)?,
            "ecn" => event.ecn = flag(text)?,
            "timeout" => event.timeout = flag(text)?,
            "acked" => event.acked = number(text)?,
            "in_flight" => event.in_flight = number(text)?,
            "acked_sequence" => event.acked_sequence = number(text)?,
            "next_sequence" => event.next_sequence = number(text)?,
            "sent" => event.sent = instant(text)?,
            "hop_count" => event.hop_count = number(text)?,
            "path_id" => event.path_id = PathId::new(number(text)?),
            "pulled" => event.pulled = number(text)?,
            "missing" => event.missing = number(text)?,
            "drained" => event.drained = flag(text)?,
            "part" => {
                let [message, message_length, offset, end, priority] = numbers(text, ',')?;
                let priority = u8::try_from(priority).map_err(|_| format!("`{text}` is out of range"))?;
                event.part = Part { message, message_length, offset, end, priority };
            }
            "words" => recorded.words = text.split(',').map(number).collect::<Result<_, _>>()?,
            "hops" => recorded.hops = text.split(',').map(hop).collect::<Result<_, _>>()?,
            _ => return Err(format!("an event has no `{name}`")),
        }
    }
    if recorded.words.len() > WORDS_MAX || recorded.hops.len() > HOPS_MAX {
        return Err(format!("more than {WORDS_MAX} words or {HOPS_MAX} switches"));
    }
    Ok((host, recorded))
}

fn hop(text: &str) -> Result<Hop, String> {
    let mut parts = text.split(':');
    let mut next = || parts.next().ok_or_else(|| format!("`{text}` is not time:octets:queue:rate"));
    let (at_ns, tx_bytes) = (number(next()?)?, number(next()?)?);
    let (queue_bytes, rate_kbps) = (number(next()?)?, number(next()?)?);
    Ok(Hop { at_ns, tx_bytes, queue_bytes, rate_kbps })
}

fn numbers<const N: usize>(text: &str, between: char) -> Result<[u32; N], String> {
    let numbers: Vec<u32> = text.split(between).map(number).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| format!("`{text}` has not {N} numbers"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number, or out of range"))
}

fn instant(text: &str) -> Result<Instant, String> {
    let ps: u64 = number(text)?;
    if ps < HORIZON_PS {
        Ok(Instant::from_ps(ps))
    } else {
        Err(format!("{text} ps is out of range: no run lasts {HORIZON_PS} ps"))
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!("`{text}` is neither 0 nor 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roci_control::program::Options;
    use roci_control::{Image, Law};
    use std::sync::Arc;

    fn recorded() -> impl Strategy<Value = Recorded> {
        let class =
            prop::sample::select(CLASSES.to_vec()).prop_filter("timers", |(class, _)| *class != Class::TIMER);
        let hop = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
        let times = (0..HORIZON_PS, 0..HORIZON_PS, 0..HORIZON_PS);
        let words = prop::collection::vec(any::<u32>(), 0..=16);
        let part = any::<(u32, u32, u32, u32, u8)>();
        (class, any::<[u32; 8]>(), any::<[bool; 3]>(), times, words, prop::collection::vec(hop, 0..8), part)
            .prop_map(
                |((class, _), numbers, [ecn, timeout, drained], (now, sent, opened), words, hops, part)| {
                    let [qpn, length, acked, in_flight, acked_sequence, next_sequence, pulled, link_kbps] =
                        numbers;
                    let (message, message_length, offset, end, priority) = part;
                    let event = Event {
                        class,
                        now: Instant::from_ps(now),
                        qpn,
                        length,
                        ecn,
                        timeout,
                        acked,
                        in_flight,
                        acked_sequence,
                        next_sequence,
                        sent: Instant::from_ps(sent),
                        pulled,
                        drained,
                        part: Part { message, message_length, offset, end, priority },
                        ..Event::default()
                    };
                    let hops = hops.into_iter().map(|(at_ns, tx_bytes, queue_bytes, rate_kbps)| Hop {
                        at_ns,
                        tx_bytes,
                        queue_bytes,
                        rate_kbps,
                    });
                    Recorded {
                        event,
                        words,
                        hops: hops.collect(),
                        opened: Instant::from_ps(opened),
                        link_kbps: link_kbps.max(1),
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            (classes, words, telemetry) in any::<(u32, u8, bool)>(),
            events in prop::collection::vec((any::<u16>(), recorded()), 0..8),
        ) {
            let heard = Interest { classes: Class(classes & CLASSES.iter().fold(0, |all, (class, _)| all | class.0)), words, telemetry };
            let events = Events { heard, events };
            let read = Events::parse(&events.to_string()).expect("it was written so");
            prop_assert_eq!(format!("{read:?}"), format!("{events:?}"));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(roci program events 3\n)?(heard [A-Z,]{0,9}\n)?([ -~]{0,60}\n){0,5}") {
            let _ = Events::parse(&text);
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let refused =
            |line: &str| Events::parse(&format!("{FIRST}\nheard ACK\n{line}\n")).unwrap_err().to_string();
        assert_eq!(Events::parse("1 2 3 ACK").unwrap_err().line, 1);
        for second in ["", "heard", "1 2 3 ACK", "heard ACK,Nothing", "heard ACK words=x", "heard ACK hops"] {
            assert_eq!(Events::parse(&format!("{FIRST}\n{second}\n")).unwrap_err().line, 2, "{second}");
        }
        for (line, says) in [
            ("1 2", "there is no time"),
            ("1 2 3 Timer", "`Timer` is no class"),
            ("1 2 3 ACK length=x", "`x` is no number"),
            ("1 2 3 ACK ecn=2", "neither 0 nor 1"),
            ("1 2 3 ACK size=2", "an event has no `size`"),
            ("1 2 99999999999999999999 ACK", "out of range"),
            ("1 2 9000000000000000000 ACK", "no run lasts 4503599627370495 ps"),
            ("1 2 3 ACK sent=5000000000000000", "no run lasts"),
            ("1 2 3 ACK part=1,2", "has not 5 numbers"),
        ] {
            let refused = refused(line);
            assert!(refused.starts_with("line 3: ") && refused.contains(says), "{line}: {refused}");
        }
    }

    #[test]
    fn a_time_that_keeps_timers_busy_for_ever_is_refused() {
        let file = include_bytes!("../../../control/tests/images/tuned.elf");
        let image = Image::new("tuned", file, &Options::default()).unwrap();
        let mut law = Programmed::new(Arc::new(image), Law::None).unwrap();
        law.set_initial("tick", "100ns").unwrap();
        let tell = |time: u64| {
            let events =
                Events::parse(&format!("{FIRST}\nheard CNP\n0 1 1000000 CNP\n0 1 {time} CNP\n")).unwrap();
            let mut heard = 0;
            events.tell(&law, &mut |_| heard += 1).map(|_| heard)
        };
        assert_eq!(tell(2_000_000), Ok(2 + 10));
        let refused = tell(4_000_000_000_000_000).unwrap_err();
        assert!(refused.contains("more than 1048576 times before the event at 4000s"), "{refused}");
    }
}
