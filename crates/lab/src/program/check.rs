//! What an image needs at most: that each event ends, within how many cycles, and how much of the NIC it takes.

use super::profile::Profile;
use super::{CLASSES, class_name};
use roci_control::Class;
use roci_control::program::csr::{self, CONTEXT_WORDS, Command, HEADER, HEADER_WORDS, Side};
use roci_hart::{CSR_WORDS, Core, Kind, LoadError, Machine, Policy, Program, Reason, Refused, Stop, check};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The most cycles that an event may take unless another limit is given: 40 µs at 250 MHz.
pub const CYCLES_MAX: u64 = 10_000;

/// What was proved of an image.
#[derive(Clone, Debug)]
pub struct Check {
    /// Octets of code.
    pub code: u32,
    /// Octets of context per queue pair.
    pub context: u32,
    /// Octets that it adds to each packet.
    pub header: u32,
    /// `recv`, and `send` where it has one.
    pub sides: Vec<SideCheck>,
}

/// What was proved of one side of it.
#[derive(Clone, Debug)]
pub struct SideCheck {
    /// Which.
    pub side: Side,
    /// Cycles before the first event.
    pub start_cycles: u64,
    /// The most cycles of an event, from the answer before it to its own.
    pub cycles: u64,
    /// The most cycles of each kind of event that it hears.
    pub kinds: Vec<(Class, u64)>,
    /// Octets of stack.
    pub stack: u32,
}

/// What was proved of an event, beside the longest that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where.
    pub side: Side,
    /// The event's class; [`Held::ANY`] for all of this side.
    pub what: &'static str,
    /// The most cycles that were measured.
    pub measured: u64,
    /// The most that it can take.
    pub proved: u64,
}

impl Held {
    /// All events of a side.
    pub const ANY: &'static str = "any";
}

/// Why an image was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The file cannot be read.
    File(String),
    /// It is no program for such a core.
    Load(LoadError),
    /// The file ends before its table of sections does.
    CutOff {
        /// Its octets.
        octets: usize,
        /// How many there were before it was cut off, at least.
        need: u64,
    },
    /// A symbol that every program has is not there.
    Missing(&'static str),
    /// Context or header are larger than a NIC can hold.
    TooLarge {
        /// Which.
        what: &'static str,
        /// Its octets.
        octets: u32,
        /// What there is.
        most: usize,
    },
    /// It does something that is not allowed, or that cannot be proved to end.
    Refused {
        /// Where it began.
        side: Side,
        /// Where and why.
        why: Refused,
        /// What the register at fault is, where it is one.
        register: Option<String>,
    },
    /// It did not come to wait for its first event.
    Start {
        /// Which side.
        side: Side,
        /// Where it was then.
        place: String,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => f.write_str(error),
            Self::Load(error) => error.fmt(f),
            Self::CutOff { octets, need } => {
                write!(f, "it is cut off at octet {octets}: its table of sections goes to octet {need}")
            }
            Self::Missing(symbol) => {
                write!(f, "it has no symbol `{symbol}`: `roci program build` makes images that have it")
            }
            Self::TooLarge { what, octets, most } => {
                write!(f, "its {what} takes {octets} octets, but there are {most}")
            }
            Self::Refused { side, why, register } => {
                write!(f, "in {}(): {why}", side.function())?;
                register.as_ref().map_or(Ok(()), |register| write!(f, ": {register}"))
            }
            Self::Start { side, place } => {
                write!(f, "{}() does not come to wait for an event: it is at {place}", side.function())
            }
        }
    }
}

impl std::error::Error for CheckError {}

impl Check {
    /// What was proved, beside what `profile` found of the same program on the same cores: each class of which there were
    /// events, and all of each side that had some.
    pub fn hold(&self, profile: &Profile) -> Vec<Held> {
        let longest = |class: Class| {
            let kind = profile.kinds.get(&class.0).and_then(|kind| kind.keys().next_back());
            let refused = profile.refused.keys().next_back().filter(|_| class == Class::TRANSMIT);
            kind.max(refused).copied()
        };
        let mut all = Vec::new();
        for SideCheck { side, cycles, kinds, .. } in &self.sides {
            let held = kinds.iter().filter_map(|&(class, proved)| {
                let measured = longest(class)?;
                Some(Held { side: *side, what: class_name(class), measured, proved })
            });
            let held: Vec<_> = held.collect();
            let measured = held.iter().map(|held| held.measured).max();
            all.extend(held);
            all.extend(measured.map(|measured| Held {
                side: *side,
                what: Held::ANY,
                measured,
                proved: *cycles,
            }));
        }
        all
    }

    /// Checks the image at `path` for cores of the kind `machine` ([`super::machine`]), whose events may take
    /// `cycles_max` cycles.
    ///
    /// # Errors
    /// [`CheckError`], which names the place.
    pub fn of_file(path: &Path, machine: Machine, cycles_max: u64) -> Result<Self, CheckError> {
        let file = std::fs::read(path).map_err(|error| CheckError::File(error.to_string()))?;
        Self::of_image(&file, machine, cycles_max)
    }

    /// Checks the image `file` for cores of the kind `machine` ([`super::machine`]).
    ///
    /// # Errors
    /// As [`Check::of_file`].
    pub fn of_image(file: &[u8], machine: Machine, cycles_max: u64) -> Result<Self, CheckError> {
        let program = Arc::new(Program::load(file, machine).map_err(CheckError::Load)?);
        whole(file)?;
        let context = size(&program, "context_octets", "context", CONTEXT_WORDS)?;
        let header = size(&program, "header_octets", "header", HEADER_WORDS)?;
        let mut sides = Vec::new();
        for side in [Side::Rx, Side::Tx] {
            let Some(policy) = side.policy(&program, cycles_max) else { continue };
            sides.push(check_side(&program, side, policy, context)?);
        }
        if !sides.iter().any(|side| side.side == Side::Rx) {
            return Err(CheckError::Missing(Side::Rx.function()));
        }
        let (start, end) = program.code();
        Ok(Self { code: end - start, context, header, sides })
    }

    /// One side of it.
    pub fn side(&self, side: Side) -> Option<&SideCheck> {
        self.sides.iter().find(|one| one.side == side)
    }
}

/// The loader does without sections; a file that was cut off should say so, and not that it lacks symbols.
fn whole(file: &[u8]) -> Result<(), CheckError> {
    let number = |at: usize, octets: usize| {
        let octets = file.get(at..at + octets)?;
        Some(octets.iter().rev().fold(0, |number, octet| number << 8 | u64::from(*octet)))
    };
    // e_shoff, e_shentsize, e_shnum of a 32-bit header.
    let end = || Some(number(32, 4)? + number(46, 2)? * number(48, 2)?);
    match end() {
        Some(need) if need > file.len() as u64 => Err(CheckError::CutOff { octets: file.len(), need }),
        _ => Ok(()),
    }
}

fn size(
    program: &Program,
    symbol: &'static str,
    what: &'static str,
    words: usize,
) -> Result<u32, CheckError> {
    let octets = program.symbol(symbol).ok_or(CheckError::Missing(symbol))?;
    let most = 4 * words;
    if octets as usize > most { Err(CheckError::TooLarge { what, octets, most }) } else { Ok(octets) }
}

fn check_side(
    program: &Arc<Program>,
    side: Side,
    policy: Policy,
    context: u32,
) -> Result<SideCheck, CheckError> {
    let refused = |why: Refused| {
        let register = register(&why.reason, context);
        CheckError::Refused { side, why, register }
    };
    // First as a whole: the start is only run once it is proved to end.
    let policy = Policy { watched: [csr::number(csr::DETAIL)].into(), ..policy };
    let whole = check(program, &policy).map_err(refused)?;
    starts(program, side, policy.starts.first().copied())?;
    let heard = heard(side, whole.values.values().next().and_then(Option::as_ref));
    let word = |class: Class| Kind::from([csr::EVENT, csr::OPCODE].map(|word| (csr::number(word), class.0)));
    let policy = Policy { kinds: heard.iter().map(|&class| word(class)).collect(), ..policy };
    let bounds = check(program, &policy).map_err(refused)?;
    let answers = bounds.kind_answers.iter().map(|cycles| bounds.after_answer + cycles);
    let kinds: Vec<(Class, u64)> = heard.into_iter().zip(answers).collect();
    Ok(SideCheck {
        side,
        start_cycles: bounds.startup_cycles,
        cycles: bounds.from_answer_to_answer(),
        kinds,
        stack: bounds.stack,
    })
}

/// The classes of events that a side may come to hear, by the commands that it gives at its start and later, `None`:
/// any; and timers.
fn heard(side: Side, commands: Option<&BTreeSet<(u32, u32)>>) -> Vec<Class> {
    let all = CLASSES.iter().fold(Class::NONE, |all, (class, _)| all.with(*class));
    let traced = |&(low, high): &(u32, u32)| match (Command::new(low), Command::new(high)) {
        (Some(Command::Trace { classes }), _) if low == high => classes,
        (Some(Command::Trace { .. }), _) | (_, Some(Command::Trace { .. })) => all,
        // The upper bits say what it does, so between two of a kind lies none of another.
        _ if low >> 28 == high >> 28 => Class::NONE,
        _ => all,
    };
    let traced = commands.map_or(all, |words| words.iter().map(traced).fold(Class::NONE, Class::with));
    let heard = match side {
        Side::Tx => Class::TRANSMIT,
        Side::Rx => Class(traced.with(Class::TIMER).0 & !Class::TRANSMIT.0),
    };
    CLASSES.iter().map(|&(class, _)| class).filter(|class| class.meets(heard)).collect()
}

/// Runs a side until it waits for its first event.
fn starts(program: &Arc<Program>, side: Side, start: Option<u32>) -> Result<(), CheckError> {
    let mut core = Core::new(program.clone());
    core.set_pc(start.unwrap_or(program.entry()));
    let mut block = [0; CSR_WORDS];
    loop {
        match core.run(&mut block, u64::MAX) {
            Stop::Waiting { .. } => return Ok(()),
            Stop::Written { csr } if csr == csr::number(csr::DETAIL) => {}
            _ => {
                let place = program.locate(core.pc()).to_string();
                return Err(CheckError::Start { side, place });
            }
        }
    }
}

/// What the register is that a program may not use.
fn register(reason: &Reason, context: u32) -> Option<String> {
    let (Reason::CsrRead { csr } | Reason::CsrWrite { csr }) = reason else { return None };
    let word = usize::from(csr.checked_sub(csr::FIRST)?);
    if word < CONTEXT_WORDS {
        return Some(format!("word {word} of the context, but QPContext has {} words", context / 4));
    }
    if (HEADER..HEADER + HEADER_WORDS).contains(&word) {
        let word = word - HEADER;
        return Some(format!("word {word} of the header, but PktHeader has fewer of its own"));
    }
    Some("it only tells something of the event".to_owned())
}

impl fmt::Display for SideCheck {
    /// `recv: 61 cycles (CNP 61, CE 20)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} cycles (", self.side.function(), self.cycles)?;
        for (at, (class, cycles)) in self.kinds.iter().enumerate() {
            write!(f, "{}{} {cycles}", if at == 0 { "" } else { ", " }, class_name(*class))?;
        }
        f.write_str(")")
    }
}
