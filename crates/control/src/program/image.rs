//! A program's image: loaded, checked, and with names for its context.

use super::csr::{self, Answer, CONTEXT_WORDS, Command, HEADER_WORDS, Side};
use super::keeps::keeps;
use crate::event::Class;
use crate::register::{Place, Register};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use roci_hart::{
    CSR_WORDS, Core, CsrBlock, Field, LoadError, Machine, Policy, Program, Refused, Region, Rote, Stop,
    Symbol, check,
};

#[cfg(feature = "translate")]
use roci_hart::Translation;

/// How a program is taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The core that it is for.
    pub machine: Machine,
    /// The most cycles that an event may take.
    pub cycles_max: u64,
    /// Whether it must be proved to keep to that. Without proof it is stopped when it has used them up.
    pub checked: bool,
    /// Whether it is translated to host code where that is possible; no result depends on it.
    pub translated: bool,
}

impl Default for Options {
    /// [`csr::machine`], 10,000 cycles, checked, translated.
    fn default() -> Self {
        Self { machine: csr::machine(), cycles_max: 10_000, checked: true, translated: true }
    }
}

/// Why a program was not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// The file is no program for this core.
    Load(LoadError),
    /// The checker refuses it.
    Refused {
        /// The function at fault.
        side: Side,
        /// Where and why.
        why: Refused,
    },
    /// It has no `recv`, or was not built with `program_end.h`.
    Missing {
        /// The symbol that is not there.
        symbol: &'static str,
    },
    /// Context or header are larger than a NIC can hold.
    TooLarge {
        /// Which.
        what: &'static str,
        /// Its octets.
        octets: u32,
        /// What there is.
        most: u32,
    },
    /// It did not come to wait for its first event.
    Start {
        /// The function at fault.
        side: Side,
        /// How it ended.
        why: String,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Refused { side, why } => write!(f, "{}: {why}", side.function()),
            Self::Missing { symbol } => {
                write!(f, "it has no symbol `{symbol}`: build it as `firmware/build.sh` does")
            }
            Self::TooLarge { what, octets, most } => write!(f, "its {what} takes {octets} octets of {most}"),
            Self::Start { side, why } => {
                write!(f, "{} does not come to its first poll: {why}", side.function())
            }
        }
    }
}

impl core::error::Error for ImageError {}

/// A program that was taken in: shared by all laws that run it.
#[derive(Debug)]
pub struct Image {
    name: String,
    file: Arc<[u8]>,
    options: Options,
    program: Arc<Program>,
    #[cfg(feature = "translate")]
    translation: Option<Translation>,
    /// The cores of both sides as they wait for their first event.
    started: [Option<Core>; 2],
    /// The most cycles that a run of each side gets.
    budgets: [u64; 2],
    /// Sides whose cores find at an event what an earlier one left.
    keeps: [bool; 2],
    /// Sides that answer the same whatever they are told.
    rotes: [Option<Rote>; 2],
    bounds: [Option<u64>; 2],
    traces: Class,
    /// The classes of packets that it may ask for, as far as the checker saw.
    sends: Class,
    header_words: u8,
    reads_telemetry: bool,
    fields: Vec<ContextField>,
    registers: &'static [Register],
    parameters: Vec<Parameter>,
    requirements: Vec<Requirement>,
}

/// A condition that a program requires of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    /// The line on which it stands.
    line: u32,
    /// The condition, as it is written.
    condition: String,
}

/// Both sides' cores as they wait for their first event, and what the program hears.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) cores: [Option<Core>; 2],
    /// Sides whose cores find at an event what an earlier one left.
    pub(crate) keeps: [bool; 2],
    pub(crate) traces: Class,
}

/// A word of the context with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextField {
    /// Its name in the program's `QPContext`.
    pub name: &'static str,
    /// Which word of the context.
    pub word: u8,
    /// Whether it can be negative; `None` where the file does not say.
    pub signed: Option<bool>,
    /// What it is given and shown as.
    pub unit: Unit,
}

impl ContextField {
    /// The number that the word is, below zero only where its type is known to be signed.
    pub const fn read(&self, word: u32) -> i64 {
        if matches!(self.signed, Some(true)) { word.cast_signed() as i64 } else { word as i64 }
    }
}

/// What a word of the context or a parameter is given and shown as: the name of its type says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A number, of whatever.
    #[default]
    Number,
    /// `Fraction` and `Fraction1` to `Fraction31`: a fraction with so many bits behind the point.
    Fraction(u8),
    /// `Nanoseconds`: a time.
    Time,
    /// `Kbps`: a rate.
    Rate,
    /// `Octets`.
    Octets,
}

/// A variable that a scenario may set.
#[derive(Clone, Copy, Debug)]
struct Parameter {
    /// Where it lies in the cores' memory.
    address: u32,
    register: &'static Register,
    /// Whether it can be negative; `None` where the file does not say.
    signed: Option<bool>,
    unit: Unit,
}

impl Image {
    /// Takes in the ELF file `file`, which is called `name` in what is reported.
    ///
    /// # Errors
    /// [`ImageError`], which says what the program lacks.
    pub fn new(name: &str, file: &[u8], options: &Options) -> Result<Self, ImageError> {
        let program = Arc::new(Program::load(file, options.machine.clone()).map_err(ImageError::Load)?);
        let size = |symbol, what, most: usize| {
            let octets = program.symbol(symbol).ok_or(ImageError::Missing { symbol })?;
            let most = u32::try_from(4 * most).unwrap_or(u32::MAX);
            if octets <= most { Ok(octets) } else { Err(ImageError::TooLarge { what, octets, most }) }
        };
        let context_octets = size("context_octets", "context", CONTEXT_WORDS)?;
        let header_octets = size("header_octets", "header", HEADER_WORDS)?;
        let (mut started, mut budgets, mut bounds) = ([None, None], [0; 2], [None, None]);
        let (mut rotes, mut kept) = ([None; 2], [false; 2]);
        let parameters = parameters(&program, &roci_hart::variables(file));
        let requirements = requirements(file);
        let (mut traces, mut sends, mut reads) = (Class::NONE, Class::NONE, BTreeSet::new());
        for (at, side) in Side::ALL.into_iter().enumerate() {
            let Some(start) = side.start(&program) else {
                if side == Side::Rx {
                    return Err(ImageError::Missing { symbol: side.function() });
                }
                continue;
            };
            budgets[at] = options.cycles_max;
            if options.checked
                && let Some(policy) = side.policy(&program, options.cycles_max)
            {
                let policy = Policy { watched: [csr::number(csr::OPCODE)].into(), ..policy };
                let proved = check(&program, &policy).map_err(|why| ImageError::Refused { side, why })?;
                bounds[at] = Some(proved.from_answer_to_answer());
                let written = proved.values.into_values().flatten().flatten();
                let exact = written.filter(|(low, high)| low == high).map(|(class, _)| Class(class));
                sends = exact.filter(|class| class.opcode().is_some()).fold(sends, Class::with);
                reads.extend(proved.reads);
            }
            let mut core = Core::new(program.clone());
            core.set_pc(start);
            let unmet = |core: &Core, at| unmet(&requirements, &parameters, core, at);
            traces = traces.with(begin(&mut core, side, options.cycles_max, &unmet)?);
            kept[at] = keeps(&core);
            rotes[at] = rote(&core, side, header_octets, options.cycles_max);
            started[at] = Some(core);
        }
        // Header words that are not its own: those of acknowledgements are telemetry.
        let foreign = csr::number(csr::HEADER + header_octets as usize / 4)..csr::number(csr::EVENT);
        let mut fields = context_fields(file, context_octets);
        fields.sort_by_key(|field| field.word);
        Ok(Self {
            name: name.to_string(),
            file: file.into(),
            options: options.clone(),
            #[cfg(feature = "translate")]
            translation: options
                .translated
                .then(|| Translation::without_dead_registers(program.clone()).ok())
                .flatten(),
            program,
            started,
            budgets,
            keeps: kept,
            rotes,
            bounds,
            traces,
            sends,
            reads_telemetry: traces.meets(Class::ACK) && reads.iter().any(|csr| foreign.contains(csr)),
            #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
            header_words: (header_octets / 4) as u8,
            registers: registers(&fields, &parameters),
            parameters,
            requirements,
            fields,
        })
    }

    /// Its parameters: variables of 32 bits that are not `static`, which a scenario may set.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Register> + '_ {
        self.parameters.iter().map(|parameter| parameter.register)
    }

    /// The parameter `name`.
    pub fn parameter(&self, name: &str) -> Option<&'static Register> {
        self.parameters().find(|register| register.name == name)
    }

    /// The value that the image gives to the parameter `name`.
    pub fn parameter_value(&self, name: &str) -> Option<u32> {
        let parameter = self.parameters.iter().find(|parameter| parameter.register.name == name)?;
        Core::new(self.program.clone()).memory().load(parameter.address, 4).ok()
    }

    /// What the word of context or parameter `name`, which is looked for in this order, is given and shown as.
    pub(crate) fn unit(&self, name: &str) -> Unit {
        let parameter = || self.parameters.iter().find(|parameter| parameter.register.name == name);
        match self.field(name) {
            Some(field) => field.unit,
            None => parameter().map_or(Unit::Number, |parameter| parameter.unit),
        }
    }

    /// Whether the word of context or parameter `name` can be negative; `None` where the file does not say.
    pub(crate) fn signed(&self, name: &str) -> Option<bool> {
        let parameter = || self.parameters.iter().find(|parameter| parameter.register.name == name);
        match self.field(name) {
            Some(field) => field.signed,
            None => parameter().and_then(|parameter| parameter.signed),
        }
    }

    /// What its cores come to when parameters have other values than the image's.
    ///
    /// # Errors
    /// [`ImageError::Start`], where one does not come to wait.
    pub(crate) fn started_with(&self, values: &[(&'static str, u32)]) -> Result<Started, ImageError> {
        let mut started = Started { cores: [None, None], keeps: [false; 2], traces: Class::NONE };
        for side in Side::ALL {
            let Some(start) = side.start(&self.program) else { continue };
            let mut core = Core::new(self.program.clone());
            core.set_pc(start);
            for (name, value) in values {
                let place = self.parameters.iter().find(|parameter| parameter.register.name == *name);
                // Where a parameter lies, was found out from the memory that it lies in.
                place.map(|parameter| core.store(parameter.address, 4, *value));
            }
            let unmet = |core: &Core, at| unmet(&self.requirements, &self.parameters, core, at);
            let traces = begin(&mut core, side, self.options.cycles_max, &unmet)?;
            started.traces = started.traces.with(traces);
            started.keeps[side as usize] = keeps(&core);
            started.cores[side as usize] = Some(core);
        }
        Ok(started)
    }

    /// The same file, taken in otherwise: for other cores, or within other limits.
    ///
    /// # Errors
    /// As [`Image::new`].
    pub fn remade(&self, options: &Options) -> Result<Self, ImageError> {
        Self::new(&self.name, &self.file, options)
    }

    /// How it was taken in.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The file that it was taken in from.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The proved bound of an event of `side` in cycles; `None` where it was not checked, or has no such side.
    pub fn bound(&self, side: Side) -> Option<u64> {
        self.bounds[side as usize]
    }

    /// What it traces at the start, `TRANSMIT` included where it has a `send`.
    pub fn traces(&self) -> Class {
        self.traces
    }

    /// The classes of packets that it may ask for and that not every layout has, as far as the checker saw.
    pub fn sends(&self) -> Class {
        self.sends
    }

    /// Whether it sends or hears packets of a law's own, which only layout `cc` has.
    pub fn has_own_packets(&self) -> bool {
        self.sends.with(self.traces).meets(Class::LAW)
    }

    /// Words of its own in each packet, 0 to 16.
    pub fn header_words(&self) -> u8 {
        self.header_words
    }

    /// Whether it reads the telemetry of acknowledgements, as far as the checker saw: header words of theirs that it does
    /// not write itself.
    pub fn reads_telemetry(&self) -> bool {
        self.reads_telemetry
    }

    /// Whether it deals by the message on grants, and so needs packets that name their messages, and a receiver that
    /// grants.
    pub fn is_granted(&self) -> bool {
        self.traces.meets(Class::MESSAGE.with(Class::GRANT))
    }

    /// The words of its context that have names.
    pub fn fields(&self) -> &[ContextField] {
        &self.fields
    }

    /// The word of the context that is called `name`.
    pub fn field(&self, name: &str) -> Option<&ContextField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The words of its context and its parameters as registers.
    pub fn registers(&self) -> &'static [Register] {
        self.registers
    }

    /// A core of `side` that waits for its first event.
    pub(crate) fn core(&self, side: Side) -> Option<Core> {
        self.started[side as usize].clone()
    }

    /// Which sides' cores find at an event what an earlier one left: pairs of cores cannot share a memory there.
    pub(crate) fn keeps(&self) -> [bool; 2] {
        self.keeps
    }

    /// The most cycles that a run of `side` gets.
    pub(crate) fn budget(&self, side: Side) -> u64 {
        self.budgets[side as usize]
    }

    /// What `core` of `side` does at its next event, where that is known beforehand. Its registers are not looked at again
    /// then, and need not be brought up to date.
    #[inline]
    pub(crate) fn rote(&self, core: &Core, side: Side) -> Option<&Rote> {
        self.rotes[side as usize].as_ref().filter(|rote| rote.pc == core.pc())
    }

    /// Runs one of its cores until it stops.
    #[inline]
    pub(crate) fn run(&self, core: &mut Core, block: &mut CsrBlock, budget: u64) -> Stop {
        #[cfg(feature = "translate")]
        if let Some(translation) = &self.translation {
            return translation.run(core, block, budget);
        }
        core.run(block, budget)
    }
}

/// The answer that the sending side `waits` for events with, where it is always `Send` and nothing else.
fn rote(waits: &Core, side: Side, header_octets: u32, budget: u64) -> Option<Rote> {
    if side != Side::Tx || header_octets > 0 {
        return None;
    }
    let (mut core, mut block) = (waits.clone(), [0; CSR_WORDS]);
    block[csr::EVENT] = Class::TRANSMIT.0;
    core.run(&mut block, budget);
    let rote = core.program().rote(core.pc())?;
    let sends = rote.csr == csr::number(csr::EVENT) && Answer::new(rote.value) == Some(Answer::Send);
    (sends && rote.cycles <= budget).then_some(rote)
}

/// Runs the start of `core` up to its first poll; returns what it traces.
fn begin(
    core: &mut Core,
    side: Side,
    budget: u64,
    unmet: &dyn Fn(&Core, u32) -> String,
) -> Result<Class, ImageError> {
    let mut traces = if side == Side::Tx { Class::TRANSMIT } else { Class::NONE };
    let mut block = [0; CSR_WORDS];
    // A core that stopped at a write stands behind it.
    let refused_at = |core: &Core, at: u32, what: &dyn fmt::Display| {
        let why = alloc::format!("{}: {what}", core.program().locate(at));
        Err(ImageError::Start { side, why })
    };
    let refused = |core: &Core, what: &dyn fmt::Display| refused_at(core, core.pc(), what);
    let written = |core: &Core, what: &dyn fmt::Display| refused_at(core, core.pc().wrapping_sub(4), what);
    // Step by step, so that a command is refused where it is given.
    while core.cycles() < budget {
        let stop = core.step(&mut block);
        if let &[word] = core.queue() {
            core.empty_queue();
            match Command::new(word) {
                Some(Command::Trace { classes } | Command::TraceToo { classes }) => {
                    traces = traces.with(classes)
                }
                None => return written(core, &unmet(core, core.pc().wrapping_sub(4))),
                _ => return written(core, &"a command that needs an event"),
            }
            continue;
        }
        match stop {
            None => {}
            Some(Stop::Waiting { .. }) => return Ok(traces),
            Some(Stop::Written { .. }) => return written(core, &"an answer without an event"),
            Some(Stop::Budget) => break,
            Some(Stop::Trap(trap)) => return refused(core, &trap.cause),
        }
    }
    refused(core, &"too many cycles")
}

/// What `require` has left of its conditions in the image: a line and a text that a zero ends, each at a multiple of four.
/// Where that is something else, there are none.
fn requirements(file: &[u8]) -> Vec<Requirement> {
    let mut rest = roci_hart::section(file, ".roci_require").unwrap_or_default();
    let mut all = Vec::new();
    while let Some((line, text)) = rest.split_first_chunk::<4>() {
        let Some(length) = text.iter().position(|octet| *octet == 0) else { break };
        let Ok(condition) = core::str::from_utf8(&text[..length]) else { break };
        all.push(Requirement {
            line: u32::from_le_bytes(*line),
            condition: roci_hart::printable(condition).into_owned(),
        });
        rest = text.get((length + 1).next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

/// What a program says by the command at `at` that refuses its parameters: the condition, and the parameters in it as they
/// stand in the memory of `core`.
fn unmet(requirements: &[Requirement], parameters: &[Parameter], core: &Core, at: u32) -> String {
    let line = core.program().locate(at).line.map(|(_, line)| line);
    let found = match requirements {
        [only] => Some(only),
        several => several.iter().find(|one| Some(one.line) == line),
    };
    let Some(Requirement { condition, .. }) = found else {
        return "it does not take these parameters".to_string();
    };
    let words: BTreeSet<&str> = condition.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let named = parameters.iter().filter(|parameter| words.contains(parameter.register.name));
    let values = named.filter_map(|parameter| {
        let value = core.memory().load(parameter.address, 4).ok()?;
        let value = super::words::shown(value, parameter.unit, parameter.signed);
        Some(alloc::format!("{} = {value}", parameter.register.name))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let with = if values.is_empty() { String::new() } else { alloc::format!(", with {values}") };
    alloc::format!("it requires {condition}{with}")
}

/// The words of `QPContext`; without `-g`, numbered ones.
fn context_fields(file: &[u8], octets: u32) -> Vec<ContextField> {
    let named = roci_hart::fields(file, "QPContext").unwrap_or_default();
    let whole = |field: &Field| field.size == 4 && field.offset.is_multiple_of(4) && field.offset < octets;
    let mut fields: Vec<_> = named
        .iter()
        .filter(|field| whole(field))
        .map(|field| ContextField {
            name: Box::leak(field.name.clone().into_boxed_str()),
            #[expect(clippy::cast_possible_truncation, reason = "at most 32 words")]
            word: (field.offset / 4) as u8,
            signed: Some(field.signed),
            unit: Unit::of(field),
        })
        .collect();
    if fields.is_empty() {
        fields.extend((0u8..).take(octets as usize / 4).map(|word| ContextField {
            name: Box::leak(alloc::format!("word{word}").into_boxed_str()),
            word,
            signed: None,
            unit: Unit::Number,
        }));
    }
    fields
}

impl Unit {
    /// By the name of its type; a `Fraction` has 16 bits behind the point.
    fn of(field: &Field) -> Self {
        match field.type_name.as_str() {
            "Fraction" => Self::Fraction(16),
            "Nanoseconds" => Self::Time,
            "Kbps" => Self::Rate,
            "Octets" => Self::Octets,
            other => {
                let bits = other.strip_prefix("Fraction").and_then(|bits| bits.parse().ok());
                bits.filter(|bits| (1..=31).contains(bits)).map_or(Self::Number, Self::Fraction)
            }
        }
    }

    /// What it is called in what is said about registers, and what it takes.
    fn told(self, signed: Option<bool>) -> (&'static str, &'static str) {
        match self {
            Self::Number => (
                "count",
                if matches!(signed, Some(false)) {
                    "a whole number from 0 to 2^32 - 1, which may be given as octets, a rate (in kb/s), a time (in ns) or a fraction (in 16.16)"
                } else {
                    "a whole number from -2^31 to 2^32 - 1, which may be given as octets, a rate (in kb/s), a time (in ns) or a fraction (in 16.16)"
                },
            ),
            Self::Fraction(bits) => {
                let range = alloc::format!("a fraction, such as 1/16 or 0.5, below {}", 1_u64 << (32 - bits));
                ("ratio", Box::leak(range.into_boxed_str()))
            }
            Self::Time => {
                ("time", "a time, such as 55us or 1ms, or a whole number of nanoseconds, below 2^32 ns")
            }
            Self::Rate => {
                ("rate", "a rate, such as 5Gb/s or 40Mb/s, or a whole number of kb/s, below 2^32 kb/s")
            }
            Self::Octets => {
                ("octets", "octets, such as 64KiB or 1500B, or a whole number of them, below 2^32")
            }
        }
    }
}

/// Variables of one word in data that other files could see: those that are not `static`.
fn parameters(program: &Program, variables: &[Field]) -> Vec<Parameter> {
    let memory = &program.machine().memory;
    let in_data = |address| memory.holds(address, 4) == Some(Region::Data);
    let visible = program.symbols().iter().filter(|symbol| {
        symbol.is_variable && symbol.size == 4 && symbol.address.is_multiple_of(4) && in_data(symbol.address)
    });
    let parameter = |symbol: &Symbol| {
        let variable = variables.iter().find(|variable| variable.name == symbol.name);
        let unit = variable.map_or(Unit::Number, Unit::of);
        let signed = variable.map(|variable| variable.signed);
        let register = register(
            Box::leak(symbol.name.clone().into_boxed_str()),
            Place::Law,
            (unit, signed),
            "A parameter of the program.",
        );
        Parameter { address: symbol.address, register: Box::leak(Box::new(register)), signed, unit }
    };
    visible.map(parameter).collect()
}

fn register(
    name: &'static str,
    place: Place,
    (unit, signed): (Unit, Option<bool>),
    doc: &'static str,
) -> Register {
    let (unit, range) = unit.told(signed);
    Register { name, place, unit, range, writable: true, doc }
}

/// Both as registers. Their names stay for the rest of the process, as those of native laws do: programs are few.
fn registers(fields: &[ContextField], parameters: &[Parameter]) -> &'static [Register] {
    let words = fields.iter().map(|field| {
        register(field.name, Place::Context, (field.unit, field.signed), "A word of the program's context.")
    });
    // Of two with one name the word of context is meant.
    let hidden = |name: &str| fields.iter().any(|field| field.name == name);
    let parameters = parameters.iter().map(|parameter| *parameter.register);
    let registers: Vec<_> = words.chain(parameters.filter(|register| !hidden(register.name))).collect();
    Box::leak(registers.into_boxed_slice())
}
