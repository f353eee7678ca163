//! Congestion-control laws behind one event interface.
//!
//! A law is a program: it hears [`Event`]s of one queue pair, keeps at most 128 octets of context for it, and
//! answers with an [`Outcome`]. The engine calls it only for the classes it traces. Laws are integers only and hold
//! neither a clock nor a random source, so a law gives the same answers in a simulation, on a wire and on a
//! modelled core.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`event`] | what a law hears |
//! | [`outcome`] | what a law answers |
//! | [`register`] | what can be read and written while a law runs |
//! | `keys`, `units` | the registers of a law as a table, and the words that several laws share |
//! | [`timer`] | timers that cost nothing while nothing happens |
//! | [`sample`] | what a time series records of a law |
//! | [`telemetry`] | the links of a path, as switches tell of them |
//! | `trip` | a base round trip: windows and rates by it |
//! | `fixed` | fixed-point arithmetic, as a 32-bit core can do it |
//! | [`dcqcn`] | DCQCN, a family of laws with seven presets |
//! | [`homa`] | Homa's sender: unscheduled octets, then grants |
//! | [`ndp`] | NDP's sender: a first window, then pulls |
//! | [`timely`] | TIMELY: a rate that follows the gradient of the round trip |
//! | [`dctcp`] | DCTCP: a window cut by the share of marks |
//! | [`hpcc`] | HPCC: a window from telemetry |
//! | [`powertcp`] | PowerTCP and θ-PowerTCP: a window from current times voltage |
//! | [`swift`] | Swift: a window that holds the delay at a target |
//! | [`nscc`] | NSCC: Ultra Ethernet's window from marks and delay |
//! | [`program`] | programs for a core, run as laws |
//!
//! All but DCQCN run on each acknowledgement. Their contexts are 32-bit words, each documented at its field, and their
//! arithmetic is 16.16 with 64-bit products, so that a program on a 32-bit core can keep the same words.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod dcqcn;
pub mod dctcp;
pub mod event;
#[cfg(test)]
mod exact;
mod fixed;
pub mod homa;
pub mod hpcc;
mod keys;
pub mod ndp;
pub mod nscc;
pub mod outcome;
pub mod powertcp;
pub mod program;
pub mod register;
pub mod sample;
pub mod swift;
pub mod telemetry;
pub mod timely;
pub mod timer;
mod trip;
mod units;

pub use dcqcn::Dcqcn;
pub use dctcp::Dctcp;
pub use event::{Class, Event, Hop, Part, PathId};
pub use homa::Homa;
pub use hpcc::Hpcc;
pub use ndp::Ndp;
pub use nscc::Nscc;
pub use outcome::{Credit, Emit, Outcome, Scope, TokenUnit, Verdict, Words};
pub use powertcp::{PowerTcp, ThetaPowerTcp};
pub use program::{Image, Programmed};
pub use register::{Place, Register, SettingError, Value, ValueError};
pub use sample::Sample;
pub use swift::Swift;
pub use timely::Timely;

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use keys::Keyed;
use roci_units::{BitsPerSec, Instant};

/// The names of the laws that exist.
pub const LAWS: [&str; 11] = [
    "none",
    "dcqcn",
    "timely",
    "dctcp",
    "hpcc",
    "powertcp",
    "theta-powertcp",
    "swift",
    "nscc",
    "homa",
    "ndp",
];

/// A law with its parameters: one per engine and parameter set, shared by the queue pairs that run it.
#[derive(Clone, Debug, Default)]
pub enum Law {
    /// No congestion control: the link's rate, no window.
    #[default]
    None,
    /// DCQCN, whichever member of the family.
    Dcqcn(Dcqcn),
    /// Homa.
    Homa(Homa),
    /// NDP.
    Ndp(Ndp),
    /// TIMELY.
    Timely(Timely),
    /// DCTCP.
    Dctcp(Dctcp),
    /// HPCC.
    Hpcc(Hpcc),
    /// PowerTCP.
    PowerTcp(PowerTcp),
    /// θ-PowerTCP.
    ThetaPowerTcp(ThetaPowerTcp),
    /// Swift.
    Swift(Swift),
    /// NSCC.
    Nscc(Nscc),
    /// A program for a core.
    Program(Box<Programmed>),
    /// A law that runs outside the engine and is to hear of these classes: its queue pairs are made with the law
    /// deferred, and whoever runs it answers. By itself it changes nothing.
    External(Class),
}

/// What a law remembers of one queue pair.
#[derive(Clone, Debug, Default)]
pub enum Context {
    /// Nothing.
    #[default]
    None,
    /// DCQCN's rates, alpha and timers.
    Dcqcn(dcqcn::State),
    /// Homa's message.
    Homa(homa::State),
    /// What NDP heard of late.
    Ndp(ndp::State),
    /// TIMELY's rate and round trips.
    Timely(timely::State),
    /// DCTCP's window and estimate.
    Dctcp(dctcp::State),
    /// HPCC's window and what it knows of each link.
    Hpcc(Box<hpcc::State>),
    /// PowerTCP's window and what it knows of each link.
    PowerTcp(Box<powertcp::State>),
    /// θ-PowerTCP's window and round trip.
    ThetaPowerTcp(powertcp::ThetaState),
    /// Swift's window and target.
    Swift(swift::State),
    /// NSCC's window and delays.
    Nscc(Box<nscc::State>),
    /// A program's registers and timers.
    Program(Box<program::State>),
}

// A context lies beside the queue pair's state and is fetched with it; a law with more words boxes them.
const _: () = assert!(size_of::<Context>() <= 56);

impl Law {
    /// The law `name` with `settings`, pairs of a key and a text as in a scenario, on links of `link`.
    ///
    /// `preset` chooses where the other keys start, wherever it stands; the last of equal keys wins.
    ///
    /// # Errors
    /// [`SettingError`], which names what would have been valid.
    pub fn from_settings(
        name: &str,
        settings: &[(&str, &str)],
        link: BitsPerSec,
    ) -> Result<Self, SettingError> {
        let preset = settings.iter().rfind(|(key, _)| *key == "preset").map(|(_, preset)| preset.trim());
        let from = |presets: &[&'static str], make: &dyn Fn(&str) -> Option<Self>| {
            let name = preset.unwrap_or(presets[0]);
            let wrong = || SettingError::Preset { name: name.to_string(), valid: presets.to_vec() };
            make(name).ok_or_else(wrong)
        };
        let mut law = match name {
            "none" => Self::None,
            "dcqcn" => from(&dcqcn::PRESETS, &|name| {
                Some(Self::Dcqcn(Dcqcn::new(dcqcn::Params::preset(name, link)?)))
            })?,
            "timely" => from(&timely::PRESETS, &|name| {
                Some(Self::Timely(Timely::new(timely::Params::preset(name, link)?)))
            })?,
            "dctcp" => {
                from(&dctcp::PRESETS, &|name| Some(Self::Dctcp(Dctcp::new(dctcp::Params::preset(name)?))))?
            }
            "homa" => Self::Homa(Homa::default()),
            "ndp" => Self::Ndp(Ndp::default()),
            "hpcc" => {
                from(&hpcc::PRESETS, &|name| Some(Self::Hpcc(Hpcc::new(hpcc::Params::preset(name, link)?))))?
            }
            "powertcp" => from(&powertcp::PRESETS, &|name| {
                Some(Self::PowerTcp(PowerTcp::new(powertcp::Params::preset(name, link)?)))
            })?,
            "theta-powertcp" => from(&powertcp::PRESETS, &|name| {
                Some(Self::ThetaPowerTcp(ThetaPowerTcp::new(powertcp::Params::theta_preset(name, link)?)))
            })?,
            "swift" => {
                from(&swift::PRESETS, &|name| Some(Self::Swift(Swift::new(swift::Params::preset(name)?))))?
            }
            "nscc" => from(&nscc::PRESETS, &|name| {
                Some(Self::Nscc(Nscc::new(nscc::Params::preset(name)?, link.as_kbps())))
            })?,
            _ => return Err(SettingError::Law { name: name.to_string(), valid: LAWS.to_vec() }),
        };
        for (key, text) in settings {
            if *key != "preset" || law.presets().is_empty() {
                law.set_before(key, text)?;
            }
        }
        Ok(law)
    }

    /// Its name, one of [`LAWS`]; "external" for a law that runs elsewhere.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dcqcn(_) => "dcqcn",
            Self::Homa(_) => "homa",
            Self::Ndp(_) => "ndp",
            Self::Timely(_) => "timely",
            Self::Dctcp(_) => "dctcp",
            Self::Hpcc(_) => "hpcc",
            Self::PowerTcp(_) => "powertcp",
            Self::ThetaPowerTcp(_) => "theta-powertcp",
            Self::Swift(_) => "swift",
            Self::Nscc(_) => "nscc",
            Self::Program(_) => "program",
            Self::External(_) => "external",
        }
    }

    /// The names of its presets.
    pub fn presets(&self) -> &'static [&'static str] {
        match self {
            Self::None | Self::Homa(_) | Self::Ndp(_) | Self::Program(_) | Self::External(_) => &[],
            Self::Dcqcn(_) => &dcqcn::PRESETS,
            Self::Timely(_) => &timely::PRESETS,
            Self::Dctcp(_) => &dctcp::PRESETS,
            Self::Hpcc(_) => &hpcc::PRESETS,
            Self::PowerTcp(_) => &powertcp::PRESETS,
            Self::ThetaPowerTcp(_) => &powertcp::PRESETS,
            Self::Swift(_) => &swift::PRESETS,
            Self::Nscc(_) => &nscc::PRESETS,
        }
    }

    /// The same law for queue pairs of its own, which ran law number `origin` before: with the same parameters, and nothing
    /// counted.
    #[must_use]
    pub fn apart(&self, origin: u16) -> Self {
        match self {
            Self::Program(law) => Self::Program(Box::new(law.apart(origin))),
            other => other.clone(),
        }
    }

    /// Its registers: parameters and what its contexts hold.
    pub fn registers(&self) -> &'static [Register] {
        match self {
            Self::None | Self::External(_) => &[],
            Self::Dcqcn(_) => &dcqcn::REGISTERS,
            Self::Homa(_) => Homa::registers(),
            Self::Ndp(_) => &ndp::REGISTERS,
            Self::Timely(_) => &timely::REGISTERS,
            Self::Dctcp(_) => &dctcp::REGISTERS,
            Self::Hpcc(_) => &hpcc::REGISTERS,
            Self::PowerTcp(_) => &powertcp::REGISTERS,
            Self::ThetaPowerTcp(_) => &powertcp::THETA_REGISTERS,
            Self::Swift(_) => &swift::REGISTERS,
            Self::Nscc(_) => &nscc::REGISTERS,
            Self::Program(law) => law.registers(),
        }
    }

    /// The register `name` as it stands at `now`; a parameter needs no particular `context`. Of a queue pair whose program has
    /// failed these are the registers of the law that took over.
    pub fn get(&self, context: &mut Context, name: &str, now: Instant) -> Option<Value> {
        match (self, context) {
            (Self::Dcqcn(law), Context::Dcqcn(state)) => law.get(state, name, now),
            (Self::Dcqcn(law), Context::None) => law.parameter(name),
            (Self::Homa(law), Context::Homa(state)) => law.get(state, name),
            (Self::Homa(law), Context::None) => law.parameter(name),
            (Self::Ndp(law), Context::Ndp(state)) => law.get(state, name),
            (Self::Ndp(law), Context::None) => law.parameter(name),
            (Self::Timely(law), Context::Timely(state)) => law.get(Some(state), name),
            (Self::Timely(law), Context::None) => law.get(None, name),
            (Self::Dctcp(law), Context::Dctcp(state)) => law.get(Some(state), name),
            (Self::Dctcp(law), Context::None) => law.get(None, name),
            (Self::Hpcc(law), Context::Hpcc(state)) => law.get(Some(state), name),
            (Self::Hpcc(law), Context::None) => law.get(None, name),
            (Self::PowerTcp(law), Context::PowerTcp(state)) => law.get(Some(state), name),
            (Self::PowerTcp(law), Context::None) => law.get(None, name),
            (Self::ThetaPowerTcp(law), Context::ThetaPowerTcp(state)) => law.get(Some(state), name),
            (Self::ThetaPowerTcp(law), Context::None) => law.get(None, name),
            (Self::Swift(law), Context::Swift(state)) => law.get(Some(state), name),
            (Self::Swift(law), Context::None) => law.get(None, name),
            (Self::Nscc(law), Context::Nscc(state)) => law.get(Some(state), name),
            (Self::Nscc(law), Context::None) => law.get(None, name),
            (Self::Program(law), Context::Program(state)) if state.has_fallen() => {
                law.get_of_fallback(state, name, now)
            }
            (Self::Program(law), Context::Program(state)) => law.get(state, name, now),
            (Self::Program(law), Context::None) => law.parameter_value(name),
            _ => None,
        }
    }

    /// Writes the parameter `name` while traffic runs.
    ///
    /// # Errors
    /// [`SettingError`]; nothing has changed then.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        match self.set_any(name, text, true) {
            Some(done) => done,
            None => Err(self.unknown(name, true)),
        }
    }

    /// Writes the register `name` of `context` at `now`; a parameter is written as [`Law::set`] does. What changes
    /// for the queue pair stands in `outcome`, to be applied like an event's.
    ///
    /// # Errors
    /// [`SettingError`]; nothing has changed then but what `now` brought about anyway.
    pub fn write(
        &mut self,
        context: &mut Context,
        name: &str,
        text: &str,
        now: Instant,
        outcome: &mut Outcome,
    ) -> Result<(), SettingError> {
        if let (Self::Program(law), Context::Program(state)) = (&*self, &*context)
            && let Some(fault) = state.fault()
        {
            return Err(SettingError::Fallen { why: fault.brief(), fallback: law.fallback().name() });
        }
        if let Some(done) = self.set_any(name, text, true) {
            return done;
        }
        let done = match (&*self, context) {
            (Self::Dcqcn(law), Context::Dcqcn(state)) => {
                let register = self.registers().iter().find(|register| register.name == name);
                register.map(|register| law.write(state, register, text, now, outcome))
            }
            (Self::Timely(law), Context::Timely(state)) => law.write(state, name, text, outcome),
            (Self::Dctcp(law), Context::Dctcp(state)) => law.write(state, name, text, outcome),
            (Self::Hpcc(law), Context::Hpcc(state)) => law.write(state, name, text, outcome),
            (Self::PowerTcp(law), Context::PowerTcp(state)) => law.write(state, name, text, outcome),
            (Self::ThetaPowerTcp(law), Context::ThetaPowerTcp(state)) => {
                law.write(state, name, text, outcome)
            }
            (Self::Swift(law), Context::Swift(state)) => law.write(state, name, text, outcome),
            (Self::Nscc(law), Context::Nscc(state)) => law.write(state, name, text, outcome),
            (Self::Program(law), Context::Program(state)) => law.write(state, name, text, outcome),
            _ => None,
        };
        done.unwrap_or_else(|| Err(self.unknown(name, true)))
    }

    /// What a time series records at `now` of a queue pair that has `credit`; `None` from a law that has nothing to show.
    pub fn sample(&self, context: &mut Context, credit: &Credit, now: Instant) -> Option<Sample> {
        match (self, context) {
            (Self::Dcqcn(law), Context::Dcqcn(state)) => Some(law.sample(state, now)),
            (Self::Timely(law), Context::Timely(state)) => Some(law.sample(state)),
            (Self::Dctcp(law), Context::Dctcp(state)) => Some(law.sample(state)),
            (Self::Hpcc(law), Context::Hpcc(state)) => Some(law.sample(state)),
            (Self::PowerTcp(law), Context::PowerTcp(state)) => Some(law.sample(state)),
            (Self::ThetaPowerTcp(law), Context::ThetaPowerTcp(state)) => Some(law.sample(state)),
            (Self::Swift(law), Context::Swift(state)) => Some(law.sample(state)),
            (Self::Nscc(law), Context::Nscc(state)) => Some(law.sample(state)),
            (Self::Program(law), Context::Program(state)) => Some(law.sample(state, credit, now)),
            _ => None,
        }
    }

    fn set_any(&mut self, name: &str, text: &str, running: bool) -> Option<Result<(), SettingError>> {
        match self {
            Self::None | Self::External(_) => None,
            Self::Program(law) => law.set_parameter(name, text),
            Self::Dcqcn(law) => law.set(name, text, running),
            Self::Homa(law) => law.set(name, text, running),
            Self::Ndp(law) => law.set(name, text, running),
            Self::Timely(law) => law.set(name, text),
            Self::Dctcp(law) => law.set(name, text),
            Self::Hpcc(law) => law.set(name, text),
            Self::PowerTcp(law) => law.set(name, text),
            Self::ThetaPowerTcp(law) => law.set(name, text),
            Self::Swift(law) => law.set(name, text),
            Self::Nscc(law) => law.set(name, text),
        }
    }

    fn set_before(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        match self.set_any(key, text, false) {
            Some(done) => done,
            None => Err(self.unknown(key, false)),
        }
    }

    /// The error of a name that is none: of a register during a run, of a key before it.
    fn unknown(&self, name: &str, running: bool) -> SettingError {
        let mut valid: Vec<_> = self
            .registers()
            .iter()
            .filter(|register| if running { register.writable } else { register.place == Place::Law })
            .map(|register| register.name)
            .collect();
        if !running && !self.presets().is_empty() {
            valid.insert(0, "preset");
        }
        SettingError::Key { name: name.to_string(), valid }
    }

    /// Whether it reads the telemetry of switches: without it, it would have no effect.
    pub fn wants_telemetry(&self) -> bool {
        match self {
            Self::Hpcc(_) | Self::PowerTcp(_) => true,
            Self::Program(law) => law.image().reads_telemetry(),
            _ => false,
        }
    }

    /// Whether it reads when the packets were sent that acknowledgements answer ([`Event::sent`]).
    pub fn wants_times(&self) -> bool {
        matches!(
            self,
            Self::Timely(_)
                | Self::ThetaPowerTcp(_)
                | Self::Swift(_)
                | Self::Nscc(_)
                | Self::Program(_)
                | Self::External(_)
        )
    }

    /// The classes of events that it wants to hear.
    pub fn traces(&self) -> Class {
        match self {
            Self::None => Class::NONE,
            Self::Dcqcn(_) => Dcqcn::TRACES,
            Self::Homa(_) => Homa::TRACES,
            Self::Ndp(_) => Ndp::TRACES,
            Self::Timely(_) => Timely::TRACES,
            Self::Dctcp(_) => Dctcp::TRACES,
            Self::Hpcc(_) => Hpcc::TRACES,
            Self::PowerTcp(_) => PowerTcp::TRACES,
            Self::ThetaPowerTcp(_) => ThetaPowerTcp::TRACES,
            Self::Swift(_) => Swift::TRACES,
            Self::Nscc(_) => Nscc::TRACES,
            Self::Program(law) => law.traces(),
            Self::External(traces) => *traces,
        }
    }

    /// What the credit that it answers applies to. [`Scope::Port`]: the engine keeps one context for all queue pairs
    /// of the port that run this law, hands it in whichever of them an event concerns, and paces them together.
    pub fn limiter(&self) -> Scope {
        match self {
            Self::Dcqcn(law) => law.params().limiter,
            _ => Scope::Qp,
        }
    }

    /// Whether it answers marks by an instant alone ([`Law::notify`]), so that a receiver needs no context.
    pub const fn notifies(&self) -> bool {
        matches!(self, Self::Dcqcn(_))
    }

    /// A data packet with CE arrived at `now` on a queue pair of which nothing is remembered but `next`: zero at first,
    /// then what this law left there. Laws that do not [notify](Law::notifies) answer nothing.
    #[inline]
    pub fn notify(&mut self, next: &mut Instant, now: Instant) -> Option<Emit> {
        match self {
            Self::Dcqcn(law) => law.notify(next, now),
            _ => None,
        }
    }

    /// A CNP that [`notify`](Self::notify) or an event of the queue pair with this context has asked for has left at `left`, where it
    /// did not leave at once. A program judges by when it asks.
    pub fn notified(&mut self, next: Option<&mut Instant>, context: Option<&mut Context>, left: Instant) {
        let Self::Dcqcn(law) = self else { return };
        if let Some(next) = next {
            law.notified(next, left);
        }
        if let Some(Context::Dcqcn(state)) = context {
            law.notified(&mut state.cnp_next, left);
        }
    }

    /// What a token of its credit lets go.
    pub const fn token_unit(&self) -> TokenUnit {
        match self {
            Self::Ndp(_) => TokenUnit::Packets,
            _ => TokenUnit::Octets,
        }
    }

    /// The context of a new queue pair on a link of `link_kbps`, and the credit and wake-up that it begins with.
    pub fn connect(&self, link_kbps: u32) -> (Context, Credit, Instant) {
        match self {
            Self::None | Self::External(_) => (Context::None, Credit::FREE, Instant::NEVER),
            Self::Dcqcn(law) => (Context::Dcqcn(law.connect(link_kbps)), Credit::FREE, Instant::NEVER),
            Self::Homa(_) => (Context::Homa(homa::State::default()), Homa::CREDIT, Instant::NEVER),
            Self::Ndp(law) => (Context::Ndp(law.state()), law.credit(), Instant::NEVER),
            Self::Timely(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::Timely(state), credit, Instant::NEVER)
            }
            Self::Dctcp(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::Dctcp(state), credit, Instant::NEVER)
            }
            Self::Hpcc(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::Hpcc(Box::new(state)), credit, Instant::NEVER)
            }
            Self::PowerTcp(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::PowerTcp(Box::new(state)), credit, Instant::NEVER)
            }
            Self::ThetaPowerTcp(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::ThetaPowerTcp(state), credit, Instant::NEVER)
            }
            Self::Swift(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::Swift(state), credit, Instant::NEVER)
            }
            Self::Nscc(law) => {
                let state = law.connect(link_kbps);
                let credit = law.credit(&state);
                (Context::Nscc(Box::new(state)), credit, Instant::NEVER)
            }
            Self::Program(_) => {
                let (context, outcome) = self.open(link_kbps, 0, Instant::ZERO);
                (context, outcome.credit, outcome.wake)
            }
        }
    }

    /// The context of queue pair `qpn`, which is made at `now` on a link of `link_kbps`, and all that it begins with: a
    /// program may ask for a byte counter, a priority and other classes at once.
    pub fn open(&self, link_kbps: u32, qpn: u32, now: Instant) -> (Context, Outcome) {
        if let Self::Program(law) = self {
            let (state, outcome) = law.open(link_kbps, qpn, now);
            return (Context::Program(Box::new(state)), outcome);
        }
        let (context, credit, wake) = self.connect(link_kbps);
        (context, Outcome::unchanged(credit, wake))
    }

    /// Reacts to `event`. `outcome` comes in as [`Outcome::unchanged`].
    ///
    /// A context of another law is the engine's mistake: asserted in debug builds, without effect in others.
    #[inline]
    pub fn on_event(&mut self, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
        match (self, context) {
            (Self::Dcqcn(law), Context::Dcqcn(state)) => law.on_event(state, event, outcome),
            (Self::Homa(law), Context::Homa(state)) => law.on_event(state, event, outcome),
            (Self::Ndp(law), Context::Ndp(state)) => law.on_event(state, event, outcome),
            (Self::Timely(law), Context::Timely(state)) => law.on_event(state, event, outcome),
            (Self::Dctcp(law), Context::Dctcp(state)) => law.on_event(state, event, outcome),
            (Self::Hpcc(law), Context::Hpcc(state)) => law.on_event(state, event, outcome),
            (Self::PowerTcp(law), Context::PowerTcp(state)) => law.on_event(state, event, outcome),
            (Self::ThetaPowerTcp(law), Context::ThetaPowerTcp(state)) => law.on_event(state, event, outcome),
            (Self::Swift(law), Context::Swift(state)) => law.on_event(state, event, outcome),
            (Self::Nscc(law), Context::Nscc(state)) => law.on_event(state, event, outcome),
            (Self::Program(law), Context::Program(state)) => law.on_event(state, event, outcome),
            (Self::None | Self::External(_), Context::None) => {}
            _ => debug_assert!(false, "the context belongs to another law"),
        }
    }

    /// The law has answered `event`, of a packet to be sent, with LoopBack where nothing brings the packet back but an event
    /// that comes unasked: a program that hears of no such event, or has waited long for one, is stopped there, and `outcome` is
    /// what its fallback answers. Else `outcome` asks to be woken. A native law does no such thing.
    pub fn give_up(&mut self, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
        if let (Self::Program(law), Context::Program(state)) = (self, context) {
            law.give_up(state, event, outcome);
        }
    }

    /// The packet of `event` waits for tokens, with nothing in flight: a program that can give none any more, or has not for long, is
    /// stopped, and `outcome` is what its fallback answers. Else `outcome` asks to be woken. Native laws have their own ways.
    pub fn lacks_tokens(&mut self, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
        if let (Self::Program(law), Context::Program(state)) = (self, context) {
            law.lacks_tokens(state, event, outcome);
        }
    }

    /// A retransmission timeout of a queue pair has come at `now`, if not sooner than `gap` after the last: how many there were in a
    /// row since each of which its program was asked and let nothing go; of a native law, none.
    pub fn note_timeout(&mut self, context: &mut Context, now: Instant, gap: roci_units::Span) -> u32 {
        match context {
            Context::Program(state) => state.note_timeout(now, gap),
            _ => 0,
        }
    }

    /// A program has let nothing go for so many of those that its queue pair would fail: it is stopped, and `outcome` is what
    /// its fallback answers.
    pub fn starve(&mut self, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
        if let (Self::Program(law), Context::Program(state)) = (self, context) {
            law.starve(state, event, outcome);
        }
    }
}

#[cfg(test)]
mod tests;
