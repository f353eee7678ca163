//! What goes wrong with programs, and how it is counted.

use super::csr::{Answer, Side, class_name};
use crate::event::Class;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use roci_hart::{Cause, Trap};
use roci_units::{Instant, Span};

/// Why a program was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// An instruction that cannot be carried out.
    Trap(Trap),
    /// It took more cycles than it may.
    Overrun {
        /// How many by then.
        cycles: u64,
    },
    /// It arms timers without end.
    Timers,
    /// It sends nothing, and nothing comes that would change that.
    LoopBacks {
        /// LoopBacks in a row.
        count: u32,
        /// How long they went on: not at all where no core makes packets go round, nothing is in flight and no timer armed,
        /// and where it hears of nothing that may come unasked.
        waited: Span,
    },
    /// It gave no tokens any more, with nothing in flight.
    Tokenless {
        /// How long the packet waited for them.
        waited: Span,
    },
    /// It let nothing go of what had to be sent again, timeout after timeout.
    Starved {
        /// Timeouts that passed in full.
        timeouts: u32,
        /// Since when it answers LoopBack.
        waited: Span,
    },
    /// It waits for another event without having answered.
    Silent,
    /// What it posted is no answer.
    Answer {
        /// The word.
        word: u32,
        /// The event's class, which `eventType` holds until it is set.
        class: Class,
        /// Where.
        side: Side,
    },
    /// Its answer is not one of this side.
    Side {
        /// The answer.
        answer: Answer,
        /// Which side.
        side: Side,
    },
    /// There is no such command.
    Command {
        /// The word.
        word: u32,
    },
    /// It asked for a packet that no program can send.
    Packet {
        /// The class in `OPCODE`.
        class: u32,
    },
}

impl Why {
    /// Which of a [`Tally`]'s counters it is in: `trap`, `overrun`, `starved` or `answer`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::Overrun { .. } | Self::Timers => "overrun",
            Self::LoopBacks { .. } | Self::Tokenless { .. } | Self::Starved { .. } => "starved",
            Self::Silent
            | Self::Answer { .. }
            | Self::Side { .. }
            | Self::Command { .. }
            | Self::Packet { .. } => "answer",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap(trap) => {
                trap.cause.fmt(f)?;
                match trap.cause {
                    Cause::LoadFault { .. } | Cause::StoreFault { .. } => {
                        f.write_str(": bound the index or the pointer, such as `table[i % 8]`")
                    }
                    _ => Ok(()),
                }
            }
            Self::Overrun { cycles } => write!(f, "no answer after {cycles} cycles"),
            Self::Timers => f.write_str("timers that run out too often"),
            Self::LoopBacks { waited, .. } if waited.is_zero() => {
                f.write_str("LoopBack with nothing in flight and no timer armed, where nothing else brings the packet back")
            }
            Self::LoopBacks { count, waited } => {
                let s = if *count == 1 { "" } else { "s" };
                write!(f, "{count} LoopBack{s} in a row, for {}, and nothing came that changed its mind", micros(*waited))
            }
            Self::Tokenless { waited } if waited.is_zero() => {
                f.write_str("no tokens are left (setTokens) with nothing in flight and no timer armed, where nothing else has it give more")
            }
            Self::Tokenless { waited } => {
                write!(f, "no tokens were left (setTokens) for {}, with nothing in flight", micros(*waited))
            }
            Self::Starved { timeouts, waited } => write!(
                f,
                "LoopBack for {}, through {timeouts} retransmission timeout{}, and nothing was sent again: whatever it waits for, \
                 such as credit, was lost as well (Loss tells when to give it back)",
                micros(*waited),
                if *timeouts == 1 { "" } else { "s" }
            ),
            Self::Silent => f.write_str("no answer"),
            Self::Answer { word, class, side } if *word == class.0 => write!(
                f,
                "eventType still is the event's class, {} ({word:#x}), for it was not set on this way: {}",
                class_name(*class),
                takes(*side)
            ),
            Self::Answer { word, side, .. } => {
                write!(f, "eventType is {word:#x}, which is no answer: {}", takes(*side))
            }
            Self::Side { answer, side } => {
                write!(f, "eventType is {answer:?}, which {}() cannot answer: {}", side.function(), takes(*side))
            }
            Self::Command { word } => write!(f, "{word:#010x} is no command"),
            Self::Packet { class: 0 } => f.write_str("a packet of no class cannot be asked for"),
            Self::Packet { class } if class.is_power_of_two() => {
                write!(f, "a packet of class {} cannot be asked for", names(*class))
            }
            Self::Packet { class } => {
                write!(f, "a packet of several classes, {}, cannot be asked for: it has one", names(*class))
            }
        }
    }
}

/// A failure of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the image that failed: another than that of the law, once that has been replaced.
    pub image: String,
    /// On which core.
    pub side: Side,
    /// With which queue pair.
    pub qpn: u32,
    /// At which event's time.
    pub at: Instant,
    /// The event's class.
    pub class: Class,
    /// Which one it was of those that this side of the program was told on this host, counted from one; of what it has refused or
    /// lacked for long, the last.
    pub number: u64,
    /// Where in the program, in the words of [`roci_hart::program::Location`].
    pub place: String,
    /// What happened.
    pub why: Why,
}

impl Fault {
    /// Which of a [`Tally`]'s counters it is in, and where and what it was, in one line.
    pub fn brief(&self) -> String {
        format!("{} at {}: {}", self.why.kind(), self.place, self.why)
    }

    /// All of it in one line, with the queue pair as `named`: on a real network numbers are written in another way.
    pub fn told(&self, named: impl fmt::Display) -> String {
        let Self { side, at, class, number, place, why, .. } = self;
        let at = micros(at.since(Instant::ZERO));
        // What has gone on for long is of no single event.
        let event = match why.kind() {
            "starved" => String::new(),
            _ => format!(", event {number}, {}", class_name(*class)),
        };
        format!("{} at {at} of queue pair {named}{event}, {place}: {why}", side.function())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(self.qpn))
    }
}

/// What a side may answer.
const fn takes(side: Side) -> &'static str {
    match side {
        Side::Rx => "set it to Done or GenTxEvent before postEvent",
        Side::Tx => "set it to Send or LoopBack before postEvent",
    }
}

/// The classes that are set in `bits`, by their names.
fn names(bits: u32) -> String {
    let set = (0..32).filter(|bit| bits >> bit & 1 != 0);
    let names = set.map(|bit| match class_name(Class(1 << bit)) {
        "?" => format!("bit {bit}, which is none"),
        name => name.into(),
    });
    names.collect::<Vec<_>>().join(" | ")
}

/// Microseconds, to the nanosecond; milliseconds from a hundred of them on.
fn micros(span: Span) -> String {
    const LONG: Span = Span::from_millis(100);
    if span >= LONG {
        let us = span.as_ps() / 1_000_000;
        return format!("{}.{:03} ms", us / 1_000, us % 1_000);
    }
    let ns = span.as_ps() / 1_000;
    format!("{}.{:03} us", ns / 1_000, ns % 1_000)
}

/// Failures that are kept in words; all are counted.
pub const FAULTS_KEPT: usize = 8;

/// What a program has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that it was told, received and sent apart (in the order of [`Side::ALL`]).
    pub events: [u64; 2],
    /// Cycles that it took for them.
    pub cycles: [u64; 2],
    /// Traps, each with a queue pair that fell back.
    pub traps: u64,
    /// Overruns, alike: of cycles and of timers.
    pub overruns: u64,
    /// Programs that let nothing go any more, alike: by LoopBacks without end, or with nothing to wait for.
    pub starved: u64,
    /// Answers that were none, alike.
    pub wrong: u64,
    /// Packets that it asked for and that were left out, because the layout of their queue pair has none of their class.
    pub left_out: u64,
    /// Their classes.
    pub left_out_classes: Class,
    /// How often the program was replaced.
    pub replaced: u32,
    /// The first failures, at most [`FAULTS_KEPT`], in the order of time.
    pub faults: Vec<Fault>,
}

impl Tally {
    /// Queue pairs that went over to the fallback law.
    pub const fn fallen(&self) -> u64 {
        self.traps + self.overruns + self.starved + self.wrong
    }

    /// The first failure.
    pub fn first(&self) -> Option<&Fault> {
        self.faults.first()
    }

    pub(super) fn note(&mut self, fault: Fault) {
        match fault.why {
            Why::Trap(_) => self.traps += 1,
            Why::Overrun { .. } | Why::Timers => self.overruns += 1,
            Why::LoopBacks { .. } | Why::Tokenless { .. } | Why::Starved { .. } => self.starved += 1,
            _ => self.wrong += 1,
        }
        if self.faults.len() < FAULTS_KEPT {
            self.faults.push(fault);
        }
    }

    /// Adds another's: one program on many hosts.
    pub fn add(&mut self, other: &Self) {
        for side in 0..2 {
            self.events[side] += other.events[side];
            self.cycles[side] += other.cycles[side];
        }
        self.traps += other.traps;
        self.overruns += other.overruns;
        self.starved += other.starved;
        self.wrong += other.wrong;
        self.left_out += other.left_out;
        self.left_out_classes = self.left_out_classes.with(other.left_out_classes);
        self.replaced = self.replaced.max(other.replaced);
        self.faults.extend(other.faults.iter().cloned());
        self.faults.sort_by_key(|fault| fault.at);
        self.faults.truncate(FAULTS_KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_packet_that_cannot_be_asked_for_is_told_by_its_names() {
        let told = |class: Class| Why::Packet { class: class.0 }.to_string();
        assert_eq!(told(Class::WRITE), "a packet of class WRITE_REQ cannot be asked for");
        assert_eq!(
            told(Class::ACK.with(Class::CNP)),
            "a packet of several classes, ACK | CNP, cannot be asked for: it has one"
        );
        assert_eq!(told(Class::NONE), "a packet of no class cannot be asked for");
    }

    #[test]
    fn a_failure_says_when_to_the_nanosecond() {
        let at = Instant::ZERO + Span::from_ps(12_045_678);
        let fault = Fault {
            image: "law.elf".into(),
            side: Side::Rx,
            qpn: 7,
            at,
            class: Class::CNP,
            number: 40,
            place: "law.c:12".into(),
            why: Why::Silent,
        };
        assert_eq!(
            fault.to_string(),
            "recv at 12.045 us of queue pair 7, event 40, CNP, law.c:12: no answer"
        );
        let held = Why::LoopBacks { count: 3, waited: Span::from_micros(5) };
        let held = Fault { why: held, ..fault };
        assert!(
            held.to_string().starts_with("recv at 12.045 us of queue pair 7, law.c:12: 3 LoopBacks"),
            "{held}"
        );
    }

    #[test]
    fn an_answer_that_was_not_set_is_told_from_one_that_is_wrong() {
        let told = |side, word| Why::Answer { word, class: Class::ACK, side }.to_string();
        assert_eq!(
            told(Side::Rx, 0x20),
            "eventType still is the event's class, ACK (0x20), for it was not set on this way: set it to Done or GenTxEvent before \
             postEvent"
        );
        assert_eq!(
            told(Side::Tx, 7),
            "eventType is 0x7, which is no answer: set it to Send or LoopBack before postEvent"
        );
        assert_eq!(
            Why::Side { answer: Answer::Send, side: Side::Rx }.to_string(),
            "eventType is Send, which recv() cannot answer: set it to Done or GenTxEvent before postEvent"
        );
    }
}
