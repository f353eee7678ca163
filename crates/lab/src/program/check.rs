//! What an image needs at most: that each event ends, within how many cycles, and how much of the NIC it takes.

use super::floats::{self, FloatLine};
use super::futile::{self, Futile};
use super::kept::{Kept, is_of_libgcc};
use super::profile::{Profile, Rate, rate};
use super::remedies;
use super::{CLASSES, class_name};
use roci_control::Class;
use roci_control::program::csr::{self, Answer, CONTEXT_WORDS, Command, HEADER, HEADER_WORDS, Side};
use roci_control::program::law::TIMER_MIN_NS;
use roci_hart::{
    Bounds, CSR_WORDS, Core, Kind, LoadError, Machine, Op, Policy, Program, Reason, Refused, Stop, check,
    inlined,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The most cycles that an event may take unless another limit is given: 40 µs at 250 MHz.
pub const CYCLES_MAX: u64 = 10_000;
/// How far a bound is looked for of what is refused: a millisecond at 1 GHz.
const BOUND_MAX: u64 = 1_000_000;
/// The sizes of payload for which [`Check::rates`] are told.
pub const SIZES: [u16; 2] = [1024, 4096];

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
    /// Where it computes with floating point.
    pub floats: Vec<FloatLine>,
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
    /// Answers that are wrong whatever way leads to them.
    pub wrong: Vec<WrongAnswer>,
    /// Stores whose place is not proved to be in its memory.
    pub stray: Vec<StrayAccess>,
    /// What it does that cannot work.
    pub futile: Vec<Futile>,
    /// What it keeps in its core's memory from one event to the next.
    pub kept: Kept,
    /// Timers that it arms, at the event of one, for a time that is known, in nanoseconds, at their places; private ones are not
    /// among them.
    pub timers: Vec<(String, u32)>,
}

/// A store or a load through an address that comes from a packet, or from anywhere else where nothing is known of it. It stands for a
/// warning: executors look at each access, and where one misses the memory the program has failed with that queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayAccess {
    /// On which side.
    pub side: Side,
    /// Where it stands.
    pub place: String,
    /// Whether it stores.
    pub stores: bool,
    /// The first and the last address that it may reach.
    pub reach: (u32, u32),
}

impl fmt::Display for StrayAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.reach;
        let does = if self.stores { "stores to" } else { "loads from" };
        write!(
            f,
            "in {}(): {}: {does} an address from {low:#010x} to {high:#010x}, ",
            self.side.function(),
            self.place
        )?;
        f.write_str(
            "which is not proved to lie in the program's memory; where it does not, the program has failed: bound the index, `table[i % 8]` or \
             `least(i, 7)`",
        )
    }
}

/// An answer that is none of those that its side may give. It is found on all ways that the code can take as far as can be
/// seen, of which some may never be taken: it stands for a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongAnswer {
    /// Which side gives it.
    pub side: Side,
    /// Where it is posted.
    pub place: String,
    /// To which events.
    pub events: Vec<Class>,
    /// What is posted; `None`: the event's own class, which `eventType` holds until it is set.
    pub value: Option<u32>,
    /// Whether that is so on some ways alone: on others it is set.
    pub perhaps: bool,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let right = match self.side {
            Side::Tx => "Send or LoopBack",
            Side::Rx => "Done or GenTxEvent",
        };
        let events: Vec<_> = self.events.iter().map(|class| class_name(*class)).collect();
        let events = events.join(", ");
        write!(f, "in {}(): {}: ", self.side.function(), self.place)?;
        match self.value {
            None if self.perhaps => write!(
                f,
                "eventType is not set before postEvent on some way, for {events}: it takes {right}, such as right behind the poll"
            ),
            None => write!(f, "eventType is not set before postEvent, for {events}: it takes {right}"),
            Some(value) => write!(f, "answers {events} with {value:#x}, and eventType takes {right}"),
        }
    }
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
        /// What there is to say besides.
        more: Box<More>,
    },
    /// It computes with floating point, and what that takes cannot be proved.
    Float(Vec<FloatLine>),
    /// It did not come to wait for its first event.
    Start {
        /// Which side.
        side: Side,
        /// Where it was then.
        place: String,
    },
}

/// What there is to say of a program that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct More {
    /// What the register at fault is.
    pub register: Option<String>,
    /// The calls that led there, the innermost first: their functions and lines.
    pub callers: Vec<String>,
    /// What to do.
    pub remedy: String,
}

impl CheckError {
    /// Where it is wrong, and in which way.
    pub fn reason(&self) -> String {
        match self {
            Self::File(error) => error.clone(),
            Self::Load(error) => error.to_string(),
            Self::Missing(symbol) => {
                let visible =
                    if *symbol == Side::Rx.function() { ", where `int recv()` is not static" } else { "" };
                format!(
                    "it has no symbol `{symbol}`: `roci program build` makes images that have it{visible}"
                )
            }
            Self::TooLarge { what, octets, most } => {
                format!("its {what} takes {octets} octets, but there are {most}")
            }
            Self::Refused { side, why, more } => {
                let More { register, callers, .. } = &**more;
                let register = register.as_ref().map(|what| format!(": {what}")).unwrap_or_default();
                let called = if callers.is_empty() { "" } else { "; called by " };
                format!("in {}(): {why}{register}{called}{}", side.function(), callers.join(", by "))
            }
            Self::Float(lines) => floats::refusal(lines),
            Self::Start { side, place } => {
                format!("{}() does not come to wait for an event: it is at {place}", side.function())
            }
        }
    }

    /// What to do about it, where the reason does not say so.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::File(_) | Self::Missing(_) | Self::Float(_) => None,
            Self::Load(error) => Some(remedies::of_load(error)),
            Self::TooLarge { what, .. } => Some(remedies::of_size(what)),
            Self::Refused { more, .. } => Some(more.remedy.clone()),
            Self::Start { .. } => Some(
                "before pollEvent a program may set its variables and give the commands that need no event, once; packets and contexts come \
                 with events, and `require` refuses parameters"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for CheckError {
    /// The reason, and in a line of its own what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "\n  what to do: {remedy}"))
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

    /// Checks the [image](super::image) at `path` for cores of the kind `machine` ([`super::machine`]), whose events may take
    /// `cycles_max` cycles.
    ///
    /// # Errors
    /// [`CheckError`], which names the place.
    pub fn of_file(path: &Path, machine: Machine, cycles_max: u64) -> Result<Self, CheckError> {
        let file = super::image(path).map_err(CheckError::File)?;
        Self::of_image(&file, machine, cycles_max)
    }

    /// Checks the image `file` for cores of the kind `machine` ([`super::machine`]).
    ///
    /// # Errors
    /// As [`Check::of_file`].
    pub fn of_image(file: &[u8], machine: Machine, cycles_max: u64) -> Result<Self, CheckError> {
        let program = Arc::new(Program::load(file, machine).map_err(CheckError::Load)?);
        let context = size(&program, "context_octets", "context", CONTEXT_WORDS)?;
        let header = size(&program, "header_octets", "header", HEADER_WORDS)?;
        let mut sides = Vec::new();
        let floats = floats::lines(&program);
        for side in [Side::Rx, Side::Tx] {
            let Some(policy) = side.policy(&program, cycles_max) else { continue };
            let checked = check_side(file, &program, side, policy, context).map_err(|error| match &error {
                CheckError::Refused { why, .. }
                    if !floats.is_empty() && is_in_float(&program, why.address) =>
                {
                    CheckError::Float(floats.clone())
                }
                _ => error,
            });
            sides.push(checked?);
        }
        if !sides.iter().any(|side| side.side == Side::Rx) {
            return Err(CheckError::Missing(Side::Rx.function()));
        }
        let (start, end) = program.code();
        Ok(Self { code: end - start, context, header, sides, floats })
    }

    /// What one pair of cores with a clock of `clock` hertz sustains when each packet takes either core its longest event,
    /// whichever that is, and `load` cycles before that for its context: each of [`SIZES`]. The cores work side by side, so the busier
    /// one decides. A packet that brings several events to one core, such as a timer beside its own, may take more.
    pub fn rates(&self, clock: u64, load: f64) -> [Rate; SIZES.len()] {
        let longest = self.sides.iter().map(|side| side.cycles).max().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a bound has fewer than 53 bits")]
        let per_hertz = 1.0 / (longest as f64 + load).max(1.0);
        SIZES.map(|payload| rate(payload, self.header, per_hertz, clock))
    }

    /// What it does that is wrong, and no reason to refuse it.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let wrong = self.sides.iter().flat_map(|side| &side.wrong).map(WrongAnswer::to_string);
        let stray = self.sides.iter().flat_map(|side| &side.stray).map(StrayAccess::to_string);
        let futile = self.sides.iter().flat_map(|side| &side.futile).map(Futile::to_string);
        wrong.chain(futile).chain(stray).chain(self.floats.iter().map(FloatLine::to_string))
    }

    /// Warnings of timers that the event of one arms, and that run out sooner than a core with a clock of `clock` hertz may be done
    /// with that event: whoever goes on so keeps the core busy with nothing else. Timers that other events arm are told no more
    /// often than those.
    pub fn hasty(&self, clock: u64) -> impl Iterator<Item = String> {
        let told = self.side(Side::Rx).and_then(|side| {
            let (_, cycles) = side.kinds.iter().find(|(class, _)| *class == Class::TIMER)?;
            Some(u128::from(*cycles) * 1_000_000_000 / u128::from(clock.max(1)))
        });
        let timers =
            self.sides.iter().flat_map(|side| side.timers.iter().map(move |timer| (side.side, timer)));
        timers.filter_map(move |(side, (place, ns))| {
            // Less is taken for the least.
            let ns = (*ns).max(TIMER_MIN_NS);
            let takes = told.filter(|takes| u128::from(ns) < *takes)?;
            Some(format!(
                "in {}(): {place}: arms a timer of {ns} ns when one has run out, and a core at {} MHz takes up to {takes} ns for that event: \
                 armed anew each time it leaves no time for packets",
                side.function(),
                clock / 1_000_000
            ))
        })
    }

    /// One side of it.
    pub fn side(&self, side: Side) -> Option<&SideCheck> {
        self.sides.iter().find(|one| one.side == side)
    }
}

/// Whether `address` lies in what libgcc does for floating point.
fn is_in_float(program: &Program, address: u32) -> bool {
    program.locate(address).function.is_some_and(|(name, _)| floats::is_soft_float(name))
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

/// The division without whose quotient by zero the loop of `why` would end, if it is one, and what it is. A
/// compiler may have made several of one, which are tried together.
fn by_zero(program: &Program, policy: &Policy, why: &Refused) -> Option<(Op, u32)> {
    let (start, end) = program.code();
    let mut divisions: Vec<(Op, BTreeSet<u32>)> = Vec::new();
    let mut lines = BTreeMap::new();
    for address in (start..end).step_by(4) {
        let op = match program.instruction(address).map(|instruction| instruction.op) {
            Some(op @ (Op::Div | Op::Divu | Op::Rem | Op::Remu)) => op,
            _ => continue,
        };
        let next = divisions.len();
        let at = program.locate(address).line.map_or(next, |line| *lines.entry(line).or_insert(next));
        if at == next {
            divisions.push((op, BTreeSet::new()));
        }
        divisions[at].1.insert(address);
    }
    let ends = |divisors: BTreeSet<u32>| {
        let policy = Policy { divisors, ..policy.clone() };
        check(program, &policy).err().is_none_or(|other| other.address != why.address)
    };
    let together = |count: usize| divisions[..count].iter().flat_map(|(_, of)| of).copied().collect();
    // The first with which it ends, by halves: the more is taken for granted, the more ends.
    let (mut without, mut with) = (0, divisions.len());
    if with == 0 || !ends(together(with)) {
        return None;
    }
    while with - without > 1 {
        let middle = without.midpoint(with);
        if ends(together(middle)) { with = middle } else { without = middle }
    }
    let (op, divisors) = divisions.swap_remove(with - 1);
    let first = *divisors.first()?;
    // It may take several.
    (with == 1 || ends(divisors)).then_some((op, first))
}

fn check_side(
    file: &[u8],
    program: &Arc<Program>,
    side: Side,
    policy: Policy,
    context: u32,
) -> Result<SideCheck, CheckError> {
    // How far it is looked where the question is how many cycles would have done.
    let unlimited = Policy { cycles_max: BOUND_MAX.max(policy.cycles_max), ..policy.clone() };
    let refused = |why: Refused| {
        let more = Box::new(more_of(file, program, &why, &unlimited, context));
        CheckError::Refused { side, why, more }
    };
    // First as a whole: the start is only run once it is proved to end.
    let policy = Policy { watched: [csr::DETAIL, csr::OPCODE].map(csr::number).into(), ..policy };
    let whole = check(program, &policy).map_err(refused)?;
    let waits = starts(program, side, policy.starts.first().copied())?;
    let heard = heard(side, whole.values.get(&csr::number(csr::DETAIL)).and_then(Option::as_ref));
    let word = |class: Class| Kind::from([csr::EVENT, csr::OPCODE].map(|word| (csr::number(word), class.0)));
    let policy = Policy { kinds: heard.iter().map(|&class| word(class)).collect(), ..policy };
    let bounds = check(program, &policy).map_err(refused)?;
    let named = |address| place(file, program, address);
    let wrong = wrong_answers(program, &named, side, &heard, &bounds);
    let sides = Side::ALL.iter().filter(|side| side.start(program).is_some()).count();
    let futile = futile::of(program, &named, side, sides, &heard, &bounds);
    let kept = Kept::of(program, &whole, &waits);
    let timers = timers_armed(&named, &heard, &bounds);
    let answers = bounds.kind_answers.iter().map(|cycles| bounds.after_answer + cycles);
    let kinds: Vec<(Class, u64)> = heard.into_iter().zip(answers).collect();
    Ok(SideCheck {
        side,
        start_cycles: bounds.startup_cycles,
        cycles: bounds.from_answer_to_answer(),
        kinds,
        stack: bounds.stack,
        wrong,
        stray: stray_accesses(file, program, side, &whole),
        futile,
        kept,
        timers,
    })
}

/// What is to be said of a refusal besides its reason; `unlimited` is the policy without a bound on cycles.
fn more_of(file: &[u8], program: &Arc<Program>, why: &Refused, unlimited: &Policy, context: u32) -> More {
    let function = program.locate(why.address).function.map(|(name, _)| name);
    let slow = match why.reason {
        Reason::LongLoop { .. } | Reason::TooLong { .. } => floats::of_long_divisions(program),
        _ => String::new(),
    };
    let callers = callers(file, program, why);
    // Compilers make loops of some recursion, and what has no bound is then the loop.
    let recursive =
        function.filter(|name| callers.iter().any(|call| call.starts_with(&format!("{name}() at "))));
    let remedy = match (recursive, &why.reason) {
        (Some(name), _) => remedies::of_recursion(name),
        (None, Reason::LongLoop { .. } | Reason::TooLong { .. } | Reason::EndlessLoop) => {
            let enough = check(program, unlimited).ok().and_then(|bounds| {
                let most = [bounds.from_answer_to_answer(), bounds.longest_event(), bounds.startup_cycles];
                most.into_iter().max()
            });
            let divided = enough.is_none().then(|| by_zero(program, unlimited, why)).flatten();
            let cause = divided
                .map_or_else(String::new, |(op, at)| remedies::of_quotient(op, &place(file, program, at)));
            let bound = match why.reason {
                Reason::EndlessLoop => String::new(),
                _ => remedies::of_bound(enough, BOUND_MAX),
            };
            cause + &bound + &remedies::of(&why.reason, function) + &slow
        }
        (None, _) => remedies::of(&why.reason, function) + &slow,
    };
    More { register: register(&why.reason, context), callers, remedy }
}

/// Accesses that may lie beside what they are meant for. What libgcc loads beside its stack are tables of its own.
fn stray_accesses(file: &[u8], program: &Program, side: Side, whole: &Bounds) -> Vec<StrayAccess> {
    let accesses = [(true, &whole.stray_stores), (false, &whole.stray_loads)];
    let stray = accesses.into_iter().flat_map(|(stores, all)| {
        let own = move |address: u32| stores || !is_of_libgcc(program, address);
        all.iter().filter(move |(address, _)| own(**address)).map(move |(&address, &reach)| {
            let place = place(file, program, address);
            StrayAccess { side, place, stores, reach }
        })
    });
    stray.collect()
}

/// Where a timer's event arms a timer again, and after how many nanoseconds, where that is known.
fn timers_armed(named: &dyn Fn(u32) -> String, heard: &[Class], bounds: &Bounds) -> Vec<(String, u32)> {
    let at_timers = heard.iter().position(|class| *class == Class::TIMER).map(|at| &bounds.kind_written[at]);
    let timers = bounds.written.iter().filter_map(|(write @ &(csr, address), written)| {
        let known = csr == csr::number(csr::DETAIL) && written.low == written.high;
        let command = (known && at_timers?.contains(write)).then_some(written.low);
        match Command::new(command?)? {
            Command::Timer { ns, private: false, .. } if ns > 0 => Some((named(address), ns)),
            _ => None,
        }
    });
    timers.collect()
}

/// The answers that are wrong, of the classes that a side hears: on all ways, or on some where these leave in `eventType` the
/// class of the event, which is the greatest that it can be then, beside answers on the others. What a compiler has made several of,
/// for the ways that lead to one line, is told once, at its first place.
fn wrong_answers(
    program: &Program,
    named: &dyn Fn(u32) -> String,
    side: Side,
    heard: &[Class],
    bounds: &Bounds,
) -> Vec<WrongAnswer> {
    let mut events: BTreeMap<(u32, Option<u32>, bool), Vec<Class>> = BTreeMap::new();
    for (&class, answers) in heard.iter().zip(&bounds.kind_wrong) {
        for (&address, &(low, high)) in answers {
            let value = (low != class.0 || high != class.0).then_some(low);
            events.entry((address, value, false)).or_default().push(class);
        }
    }
    let is_answer = |word| Answer::new(word).is_some();
    for (&class, answers) in heard.iter().zip(&bounds.kind_answered).filter(|(class, _)| !is_answer(class.0))
    {
        let left = answers.iter().filter(|(_, answer)| is_answer(answer.low) && answer.high == class.0);
        for (&address, _) in left {
            events.entry((address, None, true)).or_default().push(class);
        }
    }
    let mut lines: BTreeMap<_, (u32, Vec<Class>)> = BTreeMap::new();
    for ((address, value, perhaps), classes) in events {
        let line = program.locate(address).line.ok_or(address);
        lines.entry((line, value, perhaps)).or_insert((address, Vec::new())).1.extend(classes);
    }
    let answer = |((_, value, perhaps), (address, mut events)): (_, (u32, Vec<Class>))| {
        let place = named(address);
        events.sort_by_key(|class| heard.iter().position(|other| other == class));
        events.dedup();
        WrongAnswer { side, place, events, value, perhaps }
    };
    lines.into_iter().map(answer).collect()
}

/// The classes of events that a side may come to hear, by the commands that it gives at its start and later, `None`:
/// any; and timers.
fn heard(side: Side, commands: Option<&BTreeSet<(u32, u32)>>) -> Vec<Class> {
    let all = CLASSES.iter().fold(Class::NONE, |all, (class, _)| all.with(*class));
    let traced = |&(low, high): &(u32, u32)| match (Command::new(low), Command::new(high)) {
        (Some(Command::Trace { classes } | Command::TraceToo { classes }), _) if low == high => classes,
        (Some(Command::Trace { .. } | Command::TraceToo { .. }), _)
        | (_, Some(Command::Trace { .. } | Command::TraceToo { .. })) => all,
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

/// Runs a side until it waits for its first event, as it does when it is loaded.
fn starts(program: &Arc<Program>, side: Side, start: Option<u32>) -> Result<Core, CheckError> {
    let mut core = Core::new(program.clone());
    core.set_pc(start.unwrap_or(program.entry()));
    let mut block = [0; CSR_WORDS];
    loop {
        // Step by step, so that a command is refused where it is given.
        let stop = core.step(&mut block);
        let traces =
            |word| matches!(Command::new(word), Some(Command::Trace { .. } | Command::TraceToo { .. }));
        let behind = match (core.queue(), &stop) {
            (&[word], _) if traces(word) => {
                core.empty_queue();
                continue;
            }
            ([], None) => continue,
            ([], Some(Stop::Waiting { .. })) => return Ok(core),
            ([], Some(Stop::Budget | Stop::Trap(_))) => 0,
            // A core that has written stands behind that.
            _ => 4,
        };
        let place = program.locate(core.pc().wrapping_sub(behind)).to_string();
        return Err(CheckError::Start { side, place });
    }
}

/// The place of `address`, and where the call stands in whose place a compiler has put the function that it is in.
fn place(file: &[u8], program: &Program, address: u32) -> String {
    let calls = inlined(file, address);
    let called = calls.last().map(|call| format!(", called at {}:{}", call.file, call.line));
    format!("{}{}", program.locate(address), called.unwrap_or_default())
}

/// The calls that led to what is wrong, the innermost first: those that are made, and those in whose place a compiler has put the
/// function. What begins a side is not among them.
fn callers(file: &[u8], program: &Program, why: &Refused) -> Vec<String> {
    let mut callers = Vec::new();
    for (calls, address) in std::iter::once(why.address).chain(why.calls.iter().copied()).enumerate() {
        let place = program.locate(address);
        if calls > 0 && place.function.is_some_and(|(name, _)| matches!(name, "rx_start" | "tx_start")) {
            break;
        }
        let mut within =
            vec![place.function.map_or_else(|| format!("{address:#010x}"), |(name, _)| format!("{name}()"))];
        let inlined = inlined(file, address);
        within.extend(inlined.iter().map(|call| format!("{}()", call.function)));
        if let Some((name, (file, line))) = within.pop().zip(place.line).filter(|_| calls > 0) {
            callers.push(format!("{name} at {file}:{line}"));
        }
        for (call, name) in inlined.iter().zip(within).rev() {
            callers.push(format!("{name} at {}:{}", call.file, call.line));
        }
    }
    // Of a function that calls itself compilers put several copies into each other.
    callers.dedup();
    callers
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
