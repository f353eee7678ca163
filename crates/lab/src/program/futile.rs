//! What a program does that the cores take, and that cannot work: commands that are none, packets that nobody sends, events that
//! nobody hears.

use super::{CLASSES, class_name};
use roci_control::Class;
use roci_control::program::csr::{self, Command, Side};
use roci_hart::{Answered, Bounds, Program};
use std::collections::BTreeMap;
use std::fmt;

/// Something of the kind, at its place. It stands for a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Futile {
    /// On which side.
    pub side: Side,
    /// Where it stands.
    pub place: String,
    /// What it is.
    pub what: What,
}

/// What a program does in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It gives a command that is none.
    Command {
        /// The word.
        word: u32,
    },
    /// It refuses parameters once it has begun.
    Require,
    /// It names a class of packets to send that no program can ask for.
    Packet {
        /// The class.
        class: Class,
    },
    /// It asks for a packet and does not say which.
    NoPacket {
        /// At which events.
        events: Vec<Class>,
    },
    /// It traces classes that there are not.
    Traced {
        /// The classes, as bits.
        classes: Class,
    },
    /// It traces `Transmit`, and has no `send`.
    Transmit,
    /// It traces nothing, and nothing else is told to `recv`.
    Deaf,
    /// It lets no packet go.
    Holds,
}

impl fmt::Display for Futile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}(): {}: ", self.side.function(), self.place)?;
        match &self.what {
            What::Command { word } => write!(
                f,
                "gives the command {word:#010x}, and there is none such, so the program fails there: use armTimer, armByteCounter, \
                 tracePackets, setPriority or showHops"
            ),
            What::Require => f.write_str(
                "refuses parameters by `require` when events have begun, which is a failure there: let it stand before the loop",
            ),
            What::Packet { class } => write!(
                f,
                "names {} in e.packet.opcode, and GenTxEvent sends no such packet, so the program fails there: it sends CNP, ACK, \
                 GRANT, PULL, RESEND, BUSY and LAW_0 to LAW_7",
                told(*class)
            ),
            What::NoPacket { events } => {
                let events: Vec<_> = events.iter().map(|class| class_name(*class)).collect();
                write!(
                    f,
                    "answers {} with GenTxEvent, and e.packet.opcode still has that class, which it does not send, so the program fails \
                     there: name the packet, such as updatePkt(e.packet.opcode, CNP)",
                    events.join(", ")
                )
            }
            What::Traced { classes } => {
                write!(f, "traces {}, and there is no such class: take it out of TracedPkts", told(*classes))
            }
            What::Transmit => f.write_str(
                "traces Transmit, which is told to send() alone, and there is no send(): add one that answers with Send or LoopBack, or take \
                 it out of TracedPkts",
            ),
            What::Deaf => f.write_str(
                "TracedPkts has no class, and there is no send(), so the program is never told of anything: name what it is to hear, \
                 such as (ACK | Open)",
            ),
            What::Holds => f.write_str(
                "answers every packet with LoopBack, so none is ever sent: answer with Send where it may go",
            ),
        }
    }
}

/// Classes by their names, and what is none by its bits.
fn told(classes: Class) -> String {
    let names: Vec<_> = (0..32)
        .filter(|bit| classes.0 >> bit & 1 != 0)
        .map(|bit| match class_name(Class(1 << bit)) {
            "?" => format!("bit {bit}"),
            name => name.to_owned(),
        })
        .collect();
    if names.is_empty() { "0".to_owned() } else { names.join(" | ") }
}

/// What is found of `side` of a program, which has `sides` sides and places that are `named` so, hears `heard`, and of which
/// `bounds` were proved with each of these as a kind.
pub(super) fn of(
    program: &Program,
    named: &dyn Fn(u32) -> String,
    side: Side,
    sides: usize,
    heard: &[Class],
    bounds: &Bounds,
) -> Vec<Futile> {
    let futile = |address: u32, what| Futile { side, place: named(address), what };
    let mut found = Vec::new();
    for (&(csr, address), written) in &bounds.written {
        let (low, high) = (written.low, written.high);
        let what = if csr == csr::number(csr::DETAIL) {
            command(low, high, written.at_start, sides)
        } else {
            let class = Class(low);
            let wrong = side == Side::Rx && low == high && !csr::is_sent(class);
            wrong.then_some(What::Packet { class })
        };
        found.extend(what.map(|what| futile(address, what)));
    }
    let answers = || heard.iter().zip(&bounds.kind_answered);
    match side {
        Side::Rx => {
            let mut unnamed: BTreeMap<u32, Vec<Class>> = BTreeMap::new();
            for (&class, answers) in answers().filter(|(class, _)| !csr::is_sent(**class)) {
                let asks = |answer: &Answered| {
                    (answer.low, answer.high) == (4, 4)
                        && answer.untouched.contains(&csr::number(csr::OPCODE))
                };
                for (&address, _) in answers.iter().filter(|(_, answer)| asks(answer)) {
                    unnamed.entry(address).or_default().push(class);
                }
            }
            found.extend(
                unnamed.into_iter().map(|(address, events)| futile(address, What::NoPacket { events })),
            );
            if let Some(start) = side.start(program).filter(|_| sides == 1 && heard == [Class::TIMER]) {
                found.push(futile(start, What::Deaf));
            }
        }
        Side::Tx => {
            let all = || answers().flat_map(|(_, answers)| answers);
            let holds = all().all(|(_, answer)| (answer.low, answer.high) == (2, 2));
            found.extend(all().next().filter(|_| holds).map(|(&address, _)| futile(address, What::Holds)));
        }
    }
    found
}

/// What is wrong with any command from `low` to `high`.
fn command(low: u32, high: u32, at_start: bool, sides: usize) -> Option<What> {
    let none = |word: u32| Command::new(word).is_none();
    // The upper bits say what it does, and those of no command are the greatest but one.
    if none(low) && none(high) && low >> 28 >= 13 {
        return match (low >> 28, at_start) {
            (15, true) => None,
            (15, false) => Some(What::Require),
            _ => Some(What::Command { word: low }),
        };
    }
    let all = CLASSES.iter().fold(Class::NONE, |all, (class, _)| all.with(*class));
    match Command::new(low).filter(|_| low == high)? {
        Command::Trace { classes } | Command::TraceToo { classes } => {
            let none = Class(classes.0 & !all.0);
            if none != Class::NONE {
                Some(What::Traced { classes: none })
            } else {
                (classes.meets(Class::TRANSMIT) && sides == 1).then_some(What::Transmit)
            }
        }
        _ => None,
    }
}
