//! A program as a law: its cores, its queue pairs' contexts, and what becomes of them when it fails.

use super::csr::{self, Answer, Command, OPEN, Side};
use super::event;
use super::fault::{Fault, Tally, Why};
use super::image::Image;
use super::timers::Timers;
use crate::event::{Class, Event};
use crate::outcome::{Credit, Emit, Outcome, Scope, TokenUnit, Verdict};
use crate::register::{Register, SettingError, Value, ValueError};
use crate::sample::Sample;
use crate::{Context, Law};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use roci_hart::{CSR_WORDS, Core, CsrBlock, Stop};
use roci_units::{BitsPerSec, Bytes, Instant, Span};

/// Runs of the program between two events that timers may cause; more is a program that arms them too close.
const EXPIRIES_MAX: u32 = 1 << 20;

/// What a program may be asked to send.
const EMITTED: Class =
    Class::CNP.with(Class::ACK).with(Class::GRANT).with(Class::PULL).with(Class::RESEND).with(Class::BUSY);

/// The law that runs a program on a core for what is received and one for what is sent.
///
/// A queue pair with which the program fails (a trap, too many cycles, an answer that is none) goes over to the fallback
/// law, which begins anew there and hears the event at which that happened. The core starts over.
#[derive(Clone, Debug)]
pub struct Programmed {
    image: Arc<Image>,
    /// Counts replacements: a queue pair whose state is of another one is brought over at its next event.
    generation: u32,
    traces: Class,
    /// Both sides' cores; made when the first event comes.
    cores: [Option<Core>; 2],
    /// Words of a new context that are not zero.
    initial: Vec<(u8, u32)>,
    fallback: Box<Law>,
    tally: Tally,
}

/// What a program remembers of one queue pair, and what the NIC keeps for it.
#[derive(Clone, Debug)]
pub struct State {
    /// The registers; the first 32 are the context.
    block: CsrBlock,
    timers: Timers,
    link_kbps: u32,
    generation: u32,
    /// The program whose context it is; `None` where it could not even be opened, which its first event tries again.
    image: Option<Arc<Image>>,
    /// The fallback law's context, once the program has failed here.
    fallen: Option<Context>,
}

impl State {
    /// The context's words.
    pub fn context(&self) -> &[u32] {
        &self.block[..csr::CONTEXT_WORDS]
    }

    /// Whether the fallback law has taken over.
    pub fn has_fallen(&self) -> bool {
        self.fallen.is_some()
    }
}

impl Programmed {
    /// The laws that can take over from a program: they need no agent of the port, no telemetry and no layout of their
    /// own.
    pub const FALLBACKS: [&str; 6] = ["dcqcn", "none", "timely", "dctcp", "swift", "nscc"];

    /// The program of `image`, whose queue pairs go over to `fallback` when it fails; `None` where that law is none of
    /// [`Programmed::FALLBACKS`] or has one limiter for the port.
    pub fn new(image: Arc<Image>, fallback: Law) -> Option<Self> {
        let fits = Self::FALLBACKS.contains(&fallback.name()) && fallback.limiter() == Scope::Qp;
        fits.then(|| Self {
            traces: image.traces(),
            image,
            generation: 0,
            cores: [None, None],
            initial: Vec::new(),
            fallback: Box::new(fallback),
            tally: Tally::default(),
        })
    }

    /// Sets a word of the context of queue pairs that are yet to be made. `Open` comes after it.
    ///
    /// # Errors
    /// [`SettingError`], when the program has no such word, or `text` is no value of one.
    pub fn set_initial(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let word = self.word(name, text)?;
        self.initial.retain(|(at, _)| *at != word.0);
        self.initial.push(word);
        Ok(())
    }

    /// Its program.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The law that takes over where the program fails.
    pub fn fallback(&self) -> &Law {
        &self.fallback
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The classes of events that it wants to hear.
    pub fn traces(&self) -> Class {
        Class(self.traces.0 & !OPEN.0).with(Class::TIMER)
    }

    /// Another program from now on. A queue pair's words that have the same name in both go over; where the contexts are
    /// alike, its timers do too, and otherwise it is told `Open`. Initial values that the new one has no word for are
    /// dropped. A queue pair that had fallen back tries again.
    pub fn replace(&mut self, image: Arc<Image>) {
        let kept = self.initial.iter().filter_map(|&(word, value)| {
            let old = self.image.fields().iter().find(|field| field.word == word)?;
            Some((image.field(old.name)?.word, value))
        });
        self.initial = kept.collect();
        self.traces = image.traces();
        self.image = image;
        self.generation = self.generation.wrapping_add(1);
        self.cores = [None, None];
        self.tally.replaced += 1;
    }

    /// The context of a new queue pair on a link of `link_kbps`, and the credit and wake-up that it begins with.
    pub fn connect(&self, link_kbps: u32) -> (State, Credit, Instant) {
        // Opening changes no core that others see: it is done on cores of its own.
        let mut own = Self { cores: [None, None], tally: Tally::default(), ..self.clone_shallow() };
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        let mut state = own.begin(link_kbps, None, Instant::ZERO, &mut outcome);
        if state.fallen.take().is_some() {
            // It fails again, and is counted, when its first event is at hand.
            (state.image, state.generation) = (None, self.generation.wrapping_sub(1));
            return (state, Credit::FREE, Instant::NEVER);
        }
        (state, outcome.credit, outcome.wake)
    }

    fn clone_shallow(&self) -> Self {
        Self {
            image: self.image.clone(),
            generation: self.generation,
            traces: self.traces,
            cores: [None, None],
            initial: self.initial.clone(),
            fallback: self.fallback.clone(),
            tally: Tally::default(),
        }
    }

    /// The state of a queue pair that this program meets for the first time.
    fn begin(
        &mut self,
        link_kbps: u32,
        before: Option<&State>,
        now: Instant,
        outcome: &mut Outcome,
    ) -> State {
        let mut state = State {
            block: [0; CSR_WORDS],
            timers: Timers::NONE,
            link_kbps,
            generation: self.generation,
            image: Some(self.image.clone()),
            fallen: None,
        };
        for &(word, value) in &self.initial {
            state.block[usize::from(word)] = value;
        }
        if let Some((before, image)) = before.and_then(|before| Some((before, before.image.as_ref()?))) {
            for field in image.fields() {
                if let Some(own) = self.image.field(field.name) {
                    state.block[usize::from(own.word)] = before.block[usize::from(field.word)];
                }
            }
            if image.fields() == self.image.fields() {
                state.timers = before.timers;
                return state;
            }
        }
        if self.traces.meets(OPEN) {
            let event = Event { class: OPEN, now, ..Event::default() };
            let free = Credit { rate_kbps: Credit::UNLIMITED, ..outcome.credit };
            outcome.credit = free;
            let done = self.run(Side::Rx, &mut state, &event, outcome);
            if let Err(why) = done {
                self.fall(&mut state, &event, Side::Rx, why, outcome);
            }
        }
        outcome.wake = outcome.wake.min(state.timers.wake());
        state
    }

    /// Reacts to one event.
    #[inline]
    pub fn on_event(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if state.generation != self.generation {
            self.bring_over(state, event, outcome);
        }
        if state.fallen.is_some() {
            return self.fall_back(state, event, outcome);
        }
        let side = if event.class == Class::TRANSMIT { Side::Tx } else { Side::Rx };
        if side == Side::Rx {
            if state.timers.next() <= event.now
                && let Err(why) = self.expire(state, event, outcome)
            {
                return self.fall(state, event, side, why, outcome);
            }
            if event.class == Class::TIMER || !self.traces.meets(event.class) {
                outcome.wake = state.timers.wake();
                return acknowledge(event, outcome);
            }
        }
        let done = self.run(side, state, event, outcome);
        if let Err(why) = done {
            return self.fall(state, event, side, why, outcome);
        }
        if side == Side::Rx {
            outcome.wake = state.timers.wake();
        }
    }

    /// Tells the program of the timers that have run out by `event`.
    #[cold]
    fn expire(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) -> Result<(), Why> {
        let mut left = EXPIRIES_MAX;
        while let Some(expiry) = state.timers.take(event.now) {
            left = left.checked_sub(1).ok_or(Why::Timers)?;
            let event = Event {
                class: Class::TIMER,
                now: expiry.at,
                qpn: event.qpn,
                timer: expiry.timer,
                periods: expiry.periods,
                in_flight: event.in_flight,
                acked_sequence: event.acked_sequence,
                next_sequence: event.next_sequence,
                ..Event::default()
            };
            self.run(Side::Rx, state, &event, outcome)?;
        }
        Ok(())
    }

    /// One event on the core of `side`, from its poll to its answer.
    #[inline]
    fn run(
        &mut self,
        side: Side,
        state: &mut State,
        event: &Event<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Why> {
        let image = &*self.image;
        let core = match &mut self.cores[side as usize] {
            Some(core) => core,
            empty => {
                let Some(core) = image.core(side) else { return Ok(()) };
                empty.insert(core)
            }
        };
        let block = &mut state.block;
        event::deliver(block, event, &outcome.credit, state.link_kbps, image.header_words());
        let (rate, detail) = (block[csr::RATE], block[csr::DETAIL]);
        let (from, budget) = (core.cycles(), image.budget(side));
        let answer = loop {
            let spent = core.cycles() - from;
            let Some(left) = budget.checked_sub(spent) else { break Err(Why::Overrun { cycles: spent }) };
            match image.run(core, block, left) {
                Stop::Written { csr } if csr == csr::number(csr::EVENT) => {
                    let word = core::mem::take(&mut block[csr::EVENT]);
                    break Answer::new(word).ok_or(Why::Answer { word });
                }
                Stop::Written { .. } => {
                    let word = core::mem::replace(&mut block[csr::DETAIL], detail);
                    let command = Command::new(word).ok_or(Why::Command { word });
                    match command {
                        Ok(Command::Timer { timer, ns }) => state.timers.arm(timer, event.now, ns, false),
                        Ok(Command::Periods { timer, ns }) => state.timers.arm(timer, event.now, ns, true),
                        Ok(Command::ByteCounter { octets }) => outcome.byte_counter = Some(octets),
                        Ok(Command::Priority { priority }) => outcome.priority = Some(priority),
                        Ok(Command::Trace { classes }) => {
                            self.traces = Class(self.traces.0 & Class::TRANSMIT.0).with(classes);
                            outcome.traces = Some(Class(self.traces.0 & !OPEN.0).with(Class::TIMER));
                        }
                        Ok(Command::Hops { first }) => {
                            let words = &mut block[csr::HEADER..csr::HEADER + csr::HEADER_WORDS];
                            event::show_hops(words, event.hops, first.into());
                        }
                        Err(why) => break Err(why),
                    }
                }
                Stop::Waiting { .. } => break Err(Why::Silent),
                Stop::Budget => break Err(Why::Overrun { cycles: core.cycles() - from }),
                Stop::Trap(trap) => break Err(Why::Trap(trap)),
            }
        };
        let cycles = core.cycles() - from;
        self.tally.events[side as usize] += 1;
        self.tally.cycles[side as usize] += cycles;
        outcome.cycles = outcome.cycles.saturating_add(u32::try_from(cycles).unwrap_or(u32::MAX));
        let answer = answer?;
        if block[csr::RATE] != rate {
            let kbps = block[csr::RATE].max(1);
            outcome.credit.rate_kbps = if kbps < state.link_kbps { kbps } else { Credit::UNLIMITED };
        }
        outcome.credit.window = block[csr::WINDOW];
        outcome.credit.tokens = block[csr::TOKENS];
        match (side, answer) {
            (Side::Tx, Answer::Send) => {
                if image.header_words() > 0 {
                    outcome.words = Some(event::words(block, image.header_words()));
                }
            }
            (Side::Tx, Answer::LoopBack) => outcome.verdict = Verdict::LoopBack,
            (Side::Rx, Answer::Done) => {}
            (Side::Rx, Answer::GenTxEvent) => {
                let class = Class(block[csr::OPCODE]);
                if !class.within(EMITTED) || class.0.count_ones() != 1 {
                    return Err(Why::Packet { class: class.0 });
                }
                let words = event::words(block, image.header_words());
                let part = if matches!(class, Class::CNP | Class::ACK) {
                    Emit::plain(class).part
                } else {
                    event::part(block)
                };
                outcome.emit = Some(Emit { class, part, words });
            }
            (_, answer) => return Err(Why::Side { answer }),
        }
        Ok(())
    }

    /// The program has failed with this queue pair: the fallback law takes over.
    #[cold]
    fn fall(&mut self, state: &mut State, event: &Event<'_>, side: Side, why: Why, outcome: &mut Outcome) {
        let at = self.cores[side as usize].take().map_or(0, |core| core.pc());
        let place = self.image.program().locate(at).to_string();
        self.tally.note(Fault { side, qpn: event.qpn, at: event.now, place, why });
        let (context, credit, wake) = self.fallback.connect(state.link_kbps);
        state.fallen = Some(context);
        state.timers = Timers::NONE;
        let cycles = outcome.cycles;
        *outcome = Outcome { byte_counter: Some(0), cycles, ..Outcome::unchanged(credit, wake) };
        outcome.traces = Some(self.fallback.traces());
        self.fall_back(state, event, outcome);
    }

    /// The fallback law hears an event.
    #[cold]
    fn fall_back(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if let Some(context) = &mut state.fallen
            && self.fallback.traces().meets(event.class)
        {
            self.fallback.on_event(context, event, outcome);
        }
        acknowledge(event, outcome);
    }

    /// A queue pair of the program before comes to this one.
    #[cold]
    fn bring_over(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if state.fallen.take().is_some() {
            outcome.credit = Credit::FREE;
            outcome.byte_counter = Some(0);
        }
        outcome.traces = Some(self.traces());
        let next = self.begin(state.link_kbps, Some(state), event.now, outcome);
        *state = next;
        outcome.wake = state.timers.wake();
    }

    /// Its registers: the words of its context.
    pub fn registers(&self) -> &'static [Register] {
        self.image.registers()
    }

    /// The register `name` as it stands at `now`.
    pub fn get(&self, state: &State, name: &str, now: Instant) -> Option<Value> {
        let field = self.image.field(name)?;
        Some(Value::Count(self.at(state, now, |state| state.block[usize::from(field.word)])))
    }

    /// The words of the context as they stand at `now`.
    pub fn context_at(&self, state: &State, now: Instant) -> [u32; csr::CONTEXT_WORDS] {
        self.at(state, now, |state| {
            let mut words = [0; csr::CONTEXT_WORDS];
            words.copy_from_slice(state.context());
            words
        })
    }

    /// What `look` finds in `state` when the timers have been told that have run out by `now`, which changes nothing.
    fn at<T>(&self, state: &State, now: Instant, look: impl Fn(&State) -> T) -> T {
        if state.timers.next() > now || state.fallen.is_some() || state.generation != self.generation {
            return look(state);
        }
        let (mut law, mut state) = (self.clone(), state.clone());
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        let event = Event { class: Class::TIMER, now, ..Event::default() };
        law.on_event(&mut state, &event, &mut outcome);
        look(&state)
    }

    /// Writes a word of the context.
    pub(crate) fn write(
        &self,
        state: &mut State,
        name: &str,
        text: &str,
    ) -> Option<Result<(), SettingError>> {
        self.image.field(name)?;
        Some(self.word(name, text).map(|(word, value)| state.block[usize::from(word)] = value))
    }

    /// What a time series records: the words that are called `rate`, `target`, `window` and `stage`.
    pub fn sample(&self, state: &State, now: Instant) -> Sample {
        self.at(state, now, |state| {
            let word = |name: &str| {
                let field = self.image.field(name);
                field.map_or(Sample::NONE, |field| state.block[usize::from(field.word)])
            };
            let stage = |name: &str| match word(name) {
                Sample::NONE => 0,
                stage => u16::try_from(stage).unwrap_or(u16::MAX),
            };
            Sample {
                rate_kbps: word("rate"),
                target_kbps: word("target"),
                window: word("window"),
                stage: stage("stage"),
                byte_stage: stage("byte_stage"),
                ..Sample::default()
            }
        })
    }

    /// What a token of its credit lets go.
    pub const fn token_unit(&self) -> TokenUnit {
        TokenUnit::Octets
    }

    /// The word `name` of the context, and what `text` means there.
    fn word(&self, name: &str, text: &str) -> Result<(u8, u32), SettingError> {
        let Some(field) = self.image.field(name) else {
            let valid = self.image.fields().iter().map(|field| field.name).collect();
            return Err(SettingError::Key { name: name.to_string(), valid });
        };
        let register = self.registers().iter().find(|register| register.name == name);
        match (value(text), register) {
            (Ok(value), _) => Ok((field.word, value)),
            (Err(why), Some(register)) => Err(register.refuse(text, why)),
            (Err(_), None) => Err(SettingError::Key { name: name.to_string(), valid: Vec::new() }),
        }
    }
}

/// Data that a program was to acknowledge, and which it no longer hears of.
#[cold]
fn acknowledge(event: &Event<'_>, outcome: &mut Outcome) {
    if event.class.meets(Class::DATA) {
        outcome.emit = Some(Emit::plain(Class::ACK));
    }
}

/// A number of 32 bits: plain, or octets, a rate in kb/s, or a time in nanoseconds.
fn value(text: &str) -> Result<u32, ValueError> {
    let text = text.trim();
    let number = if let Ok(number) = text.parse::<i64>() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "two's complement is meant"
        )]
        return match number {
            -0x8000_0000..=0xffff_ffff => Ok(number as u32),
            _ => Err(ValueError::Range),
        };
    } else if let Ok(rate) = text.parse::<BitsPerSec>() {
        u64::from(rate.as_kbps())
    } else if let Ok(span) = text.parse::<Span>() {
        span.as_ps() / 1_000
    } else {
        text.parse::<Bytes>()?.0
    };
    u32::try_from(number).map_err(|_| ValueError::Range)
}
