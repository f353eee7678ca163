//! The 64 registers through which a program meets the NIC: 32 of context, 16 of the packet's header, 16 of the event.
//!
//! `firmware/include/program.h` is the same map in C, `docs/guide/programs.md` draws it bit by bit.

use super::event::PART_WORDS;
use crate::event::Class;
use roci_hart::{Csr, CsrMap, Extensions, Machine, OnRead, OnWrite, Policy, Program};

/// The number of word 0 of the block; the others follow.
pub const FIRST: u16 = 0x800;
/// Words of context, from word 0 of the block on.
pub const CONTEXT_WORDS: usize = 32;
/// The first word of the header.
pub const HEADER: usize = 32;
/// Words of header.
pub const HEADER_WORDS: usize = 16;
/// Of an event that comes, its class; of the answer, a [`Answer`]. Reading it waits for an event, writing it posts.
pub const EVENT: usize = 48;
/// The queue pair's number.
pub const QPN: usize = 49;
/// The event's class once more. Written: the class of the packet to send.
pub const OPCODE: usize = 50;
/// Octets of payload; of a `BYTE_COUNTER`, octets counted; of a `PULL`, packets; of an acknowledgement with telemetry, by which switches
/// that came: [`Event::path`](crate::Event::path).
pub const LENGTH: usize = 51;
/// Read: the flags in [`detail`]. Written: a [`Command`].
pub const DETAIL: usize = 52;
/// The NIC's clock in nanoseconds, modulo 2³², as is the next.
pub const NOW: usize = 53;
/// When the packet was sent that this one answers.
pub const SENT: usize = 54;
/// When the peer sent the packet, by its own clock, where the packet is stamped.
pub const PEER_SENT: usize = 55;
/// When what the packet answers was sent, by our clock as the peer echoed it, where the packet is stamped.
pub const ECHOED: usize = 56;
/// Octets newly acknowledged.
pub const ACKED: usize = 57;
/// Octets sent and not acknowledged.
pub const IN_FLIGHT: usize = 58;
/// The packet sequence up to which all is acknowledged.
pub const ACKED_SEQUENCE: usize = 59;
/// The packet sequence to be sent next.
pub const NEXT_SEQUENCE: usize = 60;
/// The pacer's rate in kb/s, read as the link's when nothing is paced; written: the link's or more paces nothing.
pub const RATE: usize = 61;
/// Octets that may be in flight; all ones: any number.
pub const WINDOW: usize = 62;
/// Octets that may be sent on tokens; all ones: tokens are not used.
pub const TOKENS: usize = 63;

/// The number by which programs reach the word of the block at place `word`, 0 to 63.
#[expect(clippy::cast_possible_truncation, reason = "a word of the block")]
pub const fn number(word: usize) -> u16 {
    FIRST + word as u16
}

/// The bits of [`DETAIL`].
pub mod detail {
    /// The packet carries CE, or echoes it.
    pub const ECN: u32 = 1;
    /// The loss is a timeout.
    pub const TIMEOUT: u32 = 1 << 1;
    /// The sender has nothing more to send.
    pub const DRAINED: u32 = 1 << 2;
    /// [`SENT`](super::SENT) is known.
    pub const SENT_KNOWN: u32 = 1 << 3;
    /// The packet is stamped: [`PEER_SENT`](super::PEER_SENT) and [`ECHOED`](super::ECHOED) are known.
    pub const STAMPED: u32 = 1 << 4;
    /// The first bit of the timer's number, of two.
    pub const TIMER: u32 = 8;
    /// The first bit of the count of periods, of four.
    pub const PERIODS: u32 = 16;
    /// The first bit of the count of switches, of eight.
    pub const HOPS: u32 = 24;
}

/// Periods of a private timer that one event tells of at most; more come as further events.
pub const PERIODS_MAX: u32 = 15;

/// Timers of a queue pair.
pub const TIMERS: usize = 4;

/// Switches whose telemetry stands in the header words at once, four words each.
pub const HOPS_SHOWN: usize = 4;

/// A queue pair is new: told to programs only, which the engine's laws are by `connect`.
pub const OPEN: Class = Class(1 << 23);

/// The classes of events by the names that `program.h` gives them.
pub const CLASSES: [(Class, &str); 30] = [
    (Class::SEND, "SEND_REQ"),
    (Class::WRITE, "WRITE_REQ"),
    (Class::READ_REQUEST, "READ_REQ"),
    (Class::READ_RESPONSE, "READ_RESP"),
    (Class::ATOMIC, "ATOMIC_REQ"),
    (Class::ACK, "ACK"),
    (Class::NACK, "NACK"),
    (Class::RNR, "RNR"),
    (Class::GRANT, "GRANT"),
    (Class::PULL, "PULL"),
    (Class::RESEND, "RESEND"),
    (Class::BUSY, "BUSY"),
    (Class::TRIMMED, "TRIMMED"),
    (Class::CNP, "CNP"),
    (Class::CE, "CE"),
    (Class::TRANSMIT, "Transmit"),
    (Class::TIMER, "Timer"),
    (Class::BYTE_COUNTER, "ByteCounter"),
    (Class::LOSS, "Loss"),
    (Class::MESSAGE, "Message"),
    (OPEN, "Open"),
    (Class::TURN, "Turn"),
    (Class::law(0), "LAW_0"),
    (Class::law(1), "LAW_1"),
    (Class::law(2), "LAW_2"),
    (Class::law(3), "LAW_3"),
    (Class::law(4), "LAW_4"),
    (Class::law(5), "LAW_5"),
    (Class::law(6), "LAW_6"),
    (Class::law(7), "LAW_7"),
];

/// The name that `program.h` gives to `class`; "?" where it is none or several.
pub fn class_name(class: Class) -> &'static str {
    CLASSES.iter().find(|(one, _)| *one == class).map_or("?", |(_, name)| name)
}

/// Whether a program may ask for a packet of `class`, by [`OPCODE`] and [`Answer::GenTxEvent`]. Which of them there are depends on
/// the layout.
pub const fn is_sent(class: Class) -> bool {
    matches!(class, Class::CNP | Class::ACK) || class.opcode().is_some()
}

/// What a program answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The packet goes.
    Send,
    /// The packet comes back later.
    LoopBack,
    /// The event is dealt with.
    Done,
    /// A packet is to be sent, of the class in [`OPCODE`] and with the header's words.
    GenTxEvent,
}

impl Answer {
    /// The answer that `word` stands for, 1 to 4; `None` where it stands for none.
    pub const fn new(word: u32) -> Option<Self> {
        match word {
            1 => Some(Self::Send),
            2 => Some(Self::LoopBack),
            3 => Some(Self::Done),
            4 => Some(Self::GenTxEvent),
            _ => None,
        }
    }
}

/// What a write of [`DETAIL`] does: four bits say what, 28 how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The timer runs out, so many nanoseconds after the event; zero cancels it.
    Timer {
        /// Which, below [`TIMERS`].
        timer: u8,
        /// How long.
        ns: u32,
        /// Whether it runs out again and again, which is told with the next event.
        private: bool,
    },
    /// A `BYTE_COUNTER` event after so many octets; zero stops the counter.
    ByteCounter {
        /// Octets of payload.
        octets: u32,
    },
    /// The classes that the receiving side hears, of the lower 28.
    Trace {
        /// The classes.
        classes: Class,
    },
    /// Classes that it hears besides, of those for which `Trace` has no room.
    TraceToo {
        /// The classes.
        classes: Class,
    },
    /// The priority of what the queue pair sends.
    Priority {
        /// 0 to 7.
        priority: u8,
    },
    /// Shows other switches' telemetry in the header words.
    Hops {
        /// The first one shown.
        first: u8,
    },
}

impl Command {
    /// The command that `word` stands for; `None` where its upper four bits are 13 to 15.
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    pub const fn new(word: u32) -> Option<Self> {
        let much = word & 0xfff_ffff;
        let timer = (word >> 28) as u8 & 3;
        Some(match word >> 28 {
            0..=3 => Self::Timer { timer, ns: much, private: false },
            4..=7 => Self::Timer { timer, ns: much, private: true },
            8 => Self::ByteCounter { octets: much },
            9 => Self::Trace { classes: Class(much) },
            10 => Self::Priority { priority: much as u8 & 7 },
            11 => Self::Hops { first: much as u8 & 7 },
            12 => Self::TraceToo { classes: Class(much << 28) },
            _ => return None,
        })
    }
}

/// Commands below this word change nothing that the program sees, and wait for its answer.
const SHOWS: u32 = 11 << 28;

/// SwCC's core with these registers: riscv-mini's cycles, 16 KiB of ROM, 4 KiB of stack, 4 KiB of data, and M, which a
/// program compiled without it does not miss.
pub fn machine() -> Machine {
    let event = Csr::Word { index: at(EVENT), read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
    let command =
        Csr::Word { index: at(DETAIL), read: OnRead::Value, write: OnWrite::Queue { below: SHOWS } };
    let csrs = CsrMap::default()
        .with_words(FIRST..FIRST + 64, 0)
        .with(number(EVENT), event)
        .with(number(DETAIL), command);
    Machine { extensions: Extensions { multiply: true, ..Extensions::default() }, csrs, ..Machine::default() }
}

/// The same core in a NIC where an instruction on a word of context or header, the four that each packet has among them,
/// takes `word` cycles, and one on any other register `other`, at least 1 each.
pub fn machine_with(word: u16, other: u16) -> Machine {
    let mut machine = machine();
    machine.cycles.csr = other;
    machine.csrs = machine
        .csrs
        .with_cost(FIRST..number(HEADER + HEADER_WORDS), word)
        .with_cost(number(QPN)..number(DETAIL) + 1, word);
    machine
}

/// A side of a program: what runs on one kind of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `recv`, which hears all events but `TRANSMIT`.
    Rx,
    /// `send`, which hears `TRANSMIT`.
    Tx,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rx, Self::Tx];

    /// Its function in the source.
    pub const fn function(self) -> &'static str {
        match self {
            Self::Rx => "recv",
            Self::Tx => "send",
        }
    }

    /// Where its cores start in `program`; `None` where it has no such side.
    pub fn start(self, program: &Program) -> Option<u32> {
        program.symbol(self.function()).filter(|&address| address != 0)?;
        program.symbol(match self {
            Self::Rx => "rx_start",
            Self::Tx => "tx_start",
        })
    }

    /// The words that it may answer with, see [`Answer::new`]: the least and the greatest.
    const fn answers(self) -> (u32, u32) {
        match self {
            Self::Tx => (1, 2),
            Self::Rx => (3, 4),
        }
    }

    /// What the checker lets this side of `program` do, within `cycles_max` per event; `None` where there is none.
    ///
    /// It answers each event once. It may use the words of context and write the words of header that the program
    /// declares, `recv` also those that name a part of a message, and write no register that only tells something.
    pub fn policy(self, program: &Program, cycles_max: u64) -> Option<Policy> {
        let start = self.start(program)?;
        let words = |symbol, most: usize| program.symbol(symbol).map_or(most, |octets| octets as usize / 4);
        let context = words("context_octets", CONTEXT_WORDS)..CONTEXT_WORDS;
        // What a program answers may name a part of a message, whatever the header is.
        let named = if self == Self::Rx { PART_WORDS } else { 0 };
        let header = HEADER + words("header_octets", HEADER_WORDS).max(named)..HEADER + HEADER_WORDS;
        let mut policy = Policy {
            starts: alloc::vec![start],
            answers_once: true,
            cycles_max,
            valid: Some(self.answers()),
            endless: program.symbol(self.function()).into_iter().collect(),
            ..Policy::of(program.machine())
        };
        for word in context.clone() {
            policy.readable.remove(&number(word));
        }
        for word in context.chain(header).chain([QPN, LENGTH]).chain(NOW..=NEXT_SEQUENCE) {
            policy.writable.remove(&number(word));
        }
        Some(policy)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a word of the block")]
const fn at(word: usize) -> u8 {
    word as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_context_and_header_have_a_cost_of_their_own() {
        let machine = machine_with(18, 3);
        let cost = |word| machine.csrs.cost(number(word)).unwrap_or(machine.cycles.csr);
        let slow = (0..HEADER + HEADER_WORDS).chain(QPN..=DETAIL);
        assert!(slow.clone().all(|word| cost(word) == 18));
        assert!((0..64).filter(|word| !slow.clone().any(|slow| slow == *word)).all(|word| cost(word) == 3));
    }

    #[test]
    fn every_class_has_one_name() {
        assert_eq!(class_name(Class::CNP), "CNP");
        assert_eq!(class_name(Class::DATA), "?");
        let together = CLASSES.iter().fold(Class::NONE, |all, (class, _)| all.with(*class));
        assert_eq!(together.0.count_ones() as usize, CLASSES.len());
    }
}
