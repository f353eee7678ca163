//! A program as a law: its cores and its queue pairs' contexts. What becomes of them when it fails: `fall`.

use super::cores::Cores;
use super::csr::{self, Answer, Command, OPEN, Side};
use super::event;
use super::fault::{Fault, Tally, Why};
use super::image::{Image, Started};
use super::patience::{LOOP_BACKS_SPAN, PATIENCE, Refusal};
use super::record::{Recorded, Recorder, Run};
use super::timers::Timers;
use crate::event::{Class, Event};
use crate::outcome::{Credit, Emit, Outcome, Scope, TokenUnit, Verdict};
use crate::{Context, Law};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use roci_hart::{CSR_WORDS, CsrBlock, Stop};
use roci_units::{Instant, Span};

/// Runs of the program between two events that timers may cause; more is a program that arms them too close.
const EXPIRIES_MAX: u32 = 1 << 20;

/// The least time that a timer takes: one that is armed for less takes this. Timers that programs arm anew whenever they
/// run out therefore let time pass, and a run of them ends.
pub const TIMER_MIN_NS: u32 = 100;

/// The law that runs a program on a core for what is received and one for what is sent.
///
/// A queue pair with which the program fails (a trap, too many cycles, an answer that is none) goes over to the fallback
/// law, which begins anew there and hears the event at which that happened. The core starts over.
#[derive(Clone, Debug)]
pub struct Programmed {
    pub(super) image: Arc<Image>,
    /// Counts replacements: a queue pair whose state is of another one is brought over at its next event.
    pub(super) generation: u32,
    pub(super) cores: Cores,
    /// Words of a new context that are not zero.
    pub(super) initial: Vec<(u8, u32)>,
    /// Parameters that are not what the image says, by name, and the cores that begin with them.
    pub(super) parameters: Vec<(&'static str, u32)>,
    pub(super) started: Option<Box<Started>>,
    pub(super) fallback: Box<Law>,
    /// See [`Programmed::set_patience`].
    patience: Span,
    pub(super) tally: Tally,
    /// Until when somebody is going to write to queue pairs, by their numbers.
    awaited: BTreeMap<u32, Instant>,
    origin: Option<u16>,
    /// Single runs, where they are asked for.
    runs: Option<Vec<Run>>,
    /// What it hears, where that is recorded.
    recorder: Option<Box<Recorder>>,
}

/// What a program remembers of one queue pair, and what the NIC keeps for it.
#[derive(Clone, Debug)]
pub struct State {
    /// The registers; the first 32 are the context.
    pub(super) block: CsrBlock,
    pub(super) timers: Timers,
    pub(super) link_kbps: u32,
    /// The replacement that it belongs to. Another one's state begins anew at its next event, as does that of a queue pair
    /// that could not even be opened.
    pub(super) generation: u32,
    /// The classes that the program hears of this queue pair.
    pub(super) traces: Class,
    /// What it lets not go.
    pub(super) refusal: Refusal,
    /// Packets that it asked for and that are still to be handed over: an outcome has room for one.
    pub(super) unsent: VecDeque<Emit>,
    /// When it was made.
    opened: Instant,
    /// Whether it has ever written the rate.
    pub(super) sets_rate: bool,
    /// When the fallback law may next answer a mark that the program does not hear of.
    notice: Instant,
    /// The fallback law's context, once the program has failed here.
    pub(super) fallen: Option<Context>,
    /// What happened then.
    pub(super) fault: Option<Box<Fault>>,
}

impl State {
    /// The context's words.
    pub fn context(&self) -> &[u32] {
        &self.block[..csr::CONTEXT_WORDS]
    }

    /// The pacer's rate where the program, or somebody in its place, sets `kbps`.
    #[inline]
    pub(super) fn pace(&mut self, kbps: u32) -> u32 {
        self.sets_rate = true;
        if kbps < self.link_kbps { kbps.max(1) } else { Credit::UNLIMITED }
    }

    /// Whether the fallback law has taken over.
    pub fn has_fallen(&self) -> bool {
        self.fallen.is_some()
    }

    /// Why it has.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref().filter(|_| self.has_fallen())
    }

    /// When it is to be woken: what has waited long enough has been by `now`.
    pub(super) fn wake(&self, now: Instant) -> Instant {
        let until = self.refusal.patient_until;
        let patience = if until > now { until } else { Instant::NEVER };
        self.timers.wake().min(patience)
    }

    /// Hands over the first packet that was asked for, and asks to be woken at once where there are more: timers that
    /// run out together, or with an event, may each ask for one.
    #[cold]
    fn hand_over(&mut self, now: Instant, outcome: &mut Outcome) {
        self.unsent.extend(outcome.emit.take());
        outcome.emit = self.unsent.pop_front();
        if !self.unsent.is_empty() {
            outcome.wake = now;
        }
    }
}

impl Programmed {
    /// The laws that can take over from a program: they need no agent of the port, no telemetry and no layout of their
    /// own.
    pub const FALLBACKS: [&str; 7] = ["dcqcn", "none", "timely", "dctcp", "theta-powertcp", "swift", "nscc"];

    /// The law that takes over from the program of `image` where none is named: DCQCN, where the program answers marks as
    /// DCQCN's receivers do, or hears CNPs and leaves them to the NIC to send; and else DCTCP, to which acknowledgements tell
    /// all, so that runs without failure have no CNPs that nobody asked for.
    pub fn usual_fallback(image: &Image) -> &'static str {
        usual_fallback_of(image.traces())
    }

    /// The program of `image`, whose queue pairs go over to `fallback` when it fails; `None` where that law is none of
    /// [`Programmed::FALLBACKS`] or has one limiter for the port.
    pub fn new(image: Arc<Image>, fallback: Law) -> Option<Self> {
        let fits = Self::FALLBACKS.contains(&fallback.name()) && fallback.limiter() == Scope::Qp;
        fits.then(|| Self {
            cores: Cores::new(1, image.keeps()),
            image,
            generation: 0,
            initial: Vec::new(),
            parameters: Vec::new(),
            started: None,
            fallback: Box::new(fallback),
            patience: PATIENCE,
            tally: Tally::default(),
            awaited: BTreeMap::new(),
            origin: None,
            runs: None,
            recorder: None,
        })
    }

    /// From now on a packet that is refused waits for so long, in place of [`PATIENCE`], for what may come unasked: hosts whose threads
    /// stand still need longer.
    pub const fn set_patience(&mut self, patience: Span) {
        self.patience = patience;
    }

    /// From now on it runs on the cores of so many pairs, which have not begun: each has a memory of its own.
    pub fn set_pairs(&mut self, pairs: u32) {
        self.cores = self.fresh_cores(pairs);
    }

    /// How many cores with a memory of their own have begun.
    #[cfg(test)]
    pub(super) fn cores_begun(&self) -> usize {
        self.cores.begun()
    }

    /// Cores of so many pairs that have not begun.
    pub(super) fn fresh_cores(&self, pairs: u32) -> Cores {
        Cores::new(pairs, self.started.as_ref().map_or(self.image.keeps(), |started| started.keeps))
    }

    /// The same for queue pairs of its own, which ran law number `origin` before, with cores that have not begun and
    /// nothing counted.
    #[must_use]
    pub fn apart(&self, origin: u16) -> Self {
        let runs = self.runs.as_ref().map(|_| Vec::new());
        Self { origin: Some(origin), runs, awaited: self.awaited.clone(), ..self.clone_shallow() }
    }

    /// The law that its queue pairs ran before they had one of [their own](Programmed::apart).
    pub fn origin(&self) -> Option<u16> {
        self.origin
    }

    /// Until `until`, somebody is going to write to queue pair `qpn`, or to replace its program: what waits for nothing else may
    /// wait for that.
    pub fn await_write(&mut self, qpn: u32, until: Option<Instant>) {
        match until {
            Some(until) => _ = self.awaited.insert(qpn, until),
            None => _ = self.awaited.remove(&qpn),
        }
    }

    /// From now on each run is noted, to be [taken](Programmed::take_runs).
    pub fn note_runs(&mut self) {
        self.runs.get_or_insert_default();
    }

    /// The runs since the last call; none unless they are [noted](Programmed::note_runs).
    pub fn take_runs(&mut self) -> Vec<Run> {
        self.runs.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Records the next `most` events.
    pub fn record(&mut self, most: u64) {
        self.recorder = Some(Box::new(Recorder::new(most)));
    }

    /// What was [recorded](Programmed::record); empty where nothing is.
    pub fn recorded(&self) -> &[Recorded] {
        self.recorder.as_ref().map_or(&[], |recorder| recorder.events())
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

    /// The classes of events that it wants to hear of a new queue pair.
    pub fn traces(&self) -> Class {
        heard(&self.fallback, self.traced())
    }

    /// What it traces with the parameters that it has, before it has met a queue pair.
    fn traced(&self) -> Class {
        self.started.as_ref().map_or(self.image.traces(), |started| started.traces)
    }

    /// Another program from now on. Queue pairs begin anew with it, as if they had just been made: those that are not
    /// [opened](Programmed::open) again, at their next event. Initial values of the context go over to the words of the same
    /// name; those that the new program has no word for are dropped.
    pub fn replace(&mut self, image: Arc<Image>) {
        let kept = self.initial.iter().filter_map(|&(word, value)| {
            let old = self.image.fields().iter().find(|field| field.word == word)?;
            Some((image.field(old.name)?.word, value))
        });
        self.initial = kept.collect();
        self.parameters.retain(|(name, _)| image.parameter(name).is_some());
        self.image = image;
        if self.parameters.is_empty() || self.restart().is_err() {
            self.started = None;
        }
        self.generation = self.generation.wrapping_add(1);
        self.cores = self.fresh_cores(self.cores.pairs());
        self.tally.replaced += 1;
    }

    /// The state of queue pair `qpn`, made at `now` on a link of `link_kbps`, and all that it begins with: the program hears
    /// `Open` first, if it traces that. A packet that it asks for there is not sent, for nobody is connected yet.
    pub fn open(&self, link_kbps: u32, qpn: u32, now: Instant) -> (State, Outcome) {
        // Opening changes no core that others see: it is done on cores of its own.
        let mut own = self.clone_shallow();
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        let mut state = own.begin(link_kbps, qpn, now, &mut outcome);
        if state.fallen.take().is_some() {
            // It fails again, and is counted, when its first event is at hand.
            state.generation = self.generation.wrapping_sub(1);
            return (state, Outcome::unchanged(Credit::FREE, Instant::NEVER));
        }
        (state, Outcome { emit: None, ..outcome })
    }

    /// The same with cores that have not begun.
    pub(super) fn clone_shallow(&self) -> Self {
        Self {
            image: self.image.clone(),
            generation: self.generation,
            cores: self.fresh_cores(self.cores.pairs()),
            initial: self.initial.clone(),
            parameters: self.parameters.clone(),
            started: self.started.clone(),
            fallback: self.fallback.clone(),
            patience: self.patience,
            tally: Tally::default(),
            awaited: BTreeMap::new(),
            origin: None,
            runs: None,
            recorder: None,
        }
    }

    /// The state of a queue pair that this program meets for the first time; `outcome` comes in as for a new one.
    fn begin(&mut self, link_kbps: u32, qpn: u32, now: Instant, outcome: &mut Outcome) -> State {
        let mut state = State {
            block: [0; CSR_WORDS],
            timers: Timers::NONE,
            link_kbps,
            generation: self.generation,
            traces: self.traced(),
            refusal: Refusal::NONE,
            unsent: VecDeque::new(),
            opened: now,
            sets_rate: false,
            notice: Instant::ZERO,
            fallen: None,
            fault: None,
        };
        state.block[csr::QPN] = qpn;
        for &(word, value) in &self.initial {
            state.block[usize::from(word)] = value;
        }
        if state.traces.meets(OPEN) {
            let event = Event { class: OPEN, now, qpn, ..Event::default() };
            if let Err(why) = self.run(Side::Rx, &mut state, &event, now, outcome) {
                self.fall(&mut state, &event, Side::Rx, OPEN, why, outcome);
            }
        }
        outcome.wake = outcome.wake.min(state.timers.wake());
        state
    }

    /// Reacts to one event. Apart from the laws in Rust, whose events would else begin with all that a core needs.
    #[inline(never)]
    pub fn on_event(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if let Some(recorder) = &mut self.recorder
            && (event.class != Class::CE || state.traces.meets(Class::CE))
        {
            recorder.note(event, state.opened, state.link_kbps);
        }
        if state.generation != self.generation {
            self.begin_anew(state, event, outcome);
        }
        if state.fallen.is_some() {
            return self.fall_back(state, event, outcome);
        }
        let side = if event.class == Class::TRANSMIT { Side::Tx } else { Side::Rx };
        if side == Side::Rx {
            if state.timers.next() <= event.now
                && let Err(why) = self.expire(state, event, outcome)
            {
                return self.fall(state, event, side, Class::TIMER, why, outcome);
            }
            if event.class == Class::TIMER || !state.traces.meets(event.class) {
                if event.class == Class::CE {
                    outcome.emit = self.notify(state, event.now);
                }
                outcome.wake = state.wake(event.now);
                if !state.unsent.is_empty() {
                    state.hand_over(event.now, outcome);
                }
                return;
            }
        }
        let done = self.run(side, state, event, event.now, outcome);
        if let Err(why) = done {
            return self.fall(state, event, side, event.class, why, outcome);
        }
        if side == Side::Rx {
            if state.refusal.tokenless && outcome.credit.tokens > 0 {
                state.refusal.end();
            }
            state.refusal.hope(event.now, self.patience);
            outcome.wake = state.wake(event.now);
            if !state.unsent.is_empty() {
                state.hand_over(event.now, outcome);
            }
        }
        if outcome.verdict == Verdict::LoopBack {
            state.refusal.begin(event.now);
            state.refusal.loop_backs = state.refusal.loop_backs.saturating_add(1);
            // Where no core makes packets go round, `give_up` is asked before that.
            let until = self.bears_with(state, event).max(state.refusal.since + LOOP_BACKS_SPAN);
            if event.now >= until {
                let (count, waited) = (state.refusal.loop_backs, event.now.since(state.refusal.since));
                self.fall(state, event, side, event.class, Why::LoopBacks { count, waited }, outcome);
            }
        } else if side == Side::Tx || event.acked > 0 || event.class.within(CREDIT) {
            state.refusal.sends = true;
            state.refusal.end();
        }
    }

    /// Until when the packet of `event` may be refused.
    pub(super) fn bears_with(&self, state: &State, event: &Event<'_>) -> Instant {
        state.may_refuse_until(event, self.patience, self.awaited.get(&event.qpn).copied())
    }

    /// Tells the program of the timers that have run out by `event`.
    #[cold]
    fn expire(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) -> Result<(), Why> {
        let (present, mut left) = (event.now, EXPIRIES_MAX);
        while let Some(expiry) = state.timers.take(present) {
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
            let before = outcome.cycles;
            self.run(Side::Rx, state, &event, present, outcome)?;
            if state.refusal.tokenless && outcome.credit.tokens > 0 {
                state.refusal.end();
            }
            state.refusal.note_expiry(present, expiry.again == Instant::NEVER, self.patience);
            // A core would have run it when it ran out. Of a private timer's last time that may be too little ago.
            if expiry.again <= present {
                outcome.late_cycles += outcome.cycles - before;
            }
            state.unsent.extend(outcome.emit.take());
        }
        Ok(())
    }

    /// One event on the core of `side`, from its poll to its answer; it is `present` by then, later than the event where
    /// that is a timer which is told late.
    #[inline]
    fn run(
        &mut self,
        side: Side,
        state: &mut State,
        event: &Event<'_>,
        present: Instant,
        outcome: &mut Outcome,
    ) -> Result<(), Why> {
        let image = &*self.image;
        let core = match self.cores.of(side, event.qpn) {
            Some(core) => core,
            empty => {
                let own = self.started.as_ref().map(|started| started.cores[side as usize].clone());
                let Some(core) = own.unwrap_or_else(|| image.core(side)) else { return Ok(()) };
                empty.insert(core)
            }
        };
        // What a run is noted for, an answer by rote does not have.
        if let Some(rote) = image.rote(core, side)
            && self.runs.is_none()
        {
            let cycles = rote.cycles;
            self.count(side, cycles, outcome);
            return Ok(());
        }
        let block = &mut state.block;
        event::deliver(block, event, &outcome.credit, state.link_kbps, image.header_words());
        if let Some(runs) = &mut self.runs {
            runs.push(Run { class: event.class, cycles: 0, registers: *block, shown: Vec::new() });
        }
        let rate = block[csr::RATE];
        let (from, budget) = (core.cycles(), image.budget(side));
        let answer = loop {
            let spent = core.cycles() - from;
            let Some(left) = budget.checked_sub(spent) else { break Err(Why::Overrun { cycles: spent }) };
            let stop = image.run(core, block, left);
            let mut refused = None;
            for &word in core.queue() {
                match Command::new(word) {
                    Some(Command::Timer { timer, ns, private }) => {
                        state.timers.arm(timer, event.now, present, at_least(ns), private);
                        outcome.wake = state.timers.wake();
                    }
                    Some(Command::ByteCounter { octets }) => outcome.byte_counter = Some(octets),
                    Some(Command::Priority { priority }) => outcome.priority = Some(priority),
                    Some(Command::Trace { classes }) => {
                        state.traces = Class(state.traces.0 & Class::TRANSMIT.0)
                            .with(Class(classes.0 & !Class::TRANSMIT.0));
                        outcome.traces = Some(heard(&self.fallback, state.traces));
                    }
                    Some(Command::TraceToo { classes }) => {
                        state.traces = state.traces.with(classes);
                        outcome.traces = Some(heard(&self.fallback, state.traces));
                    }
                    Some(Command::Hops { first }) => {
                        let words = &mut block[csr::HEADER..csr::HEADER + csr::HEADER_WORDS];
                        event::show_hops(words, event.hops, first.into());
                        if let Some(run) = self.runs.as_mut().and_then(|runs| runs.last_mut()) {
                            let mut shown = [0; csr::HEADER_WORDS];
                            shown.copy_from_slice(words);
                            run.shown.push(shown);
                        }
                    }
                    None => refused = Some(Why::Command { word }),
                }
            }
            if !core.queue().is_empty() {
                core.empty_queue();
            }
            if let Some(why) = refused {
                break Err(why);
            }
            match stop {
                Stop::Written { csr } if csr == csr::number(csr::EVENT) => {
                    let word = core::mem::take(&mut block[csr::EVENT]);
                    break Answer::new(word).ok_or(Why::Answer { word, class: event.class, side });
                }
                Stop::Written { .. } => {}
                Stop::Waiting { .. } => break Err(Why::Silent),
                Stop::Budget => break Err(Why::Overrun { cycles: core.cycles() - from }),
                Stop::Trap(trap) => break Err(Why::Trap(trap)),
            }
        };
        let (cycles, stands) = (core.cycles() - from, core.pc());
        self.count(side, cycles, outcome);
        let image = &*self.image;
        let answer = answer?;
        // A run only stops by itself where it jumps back: the measure is the answer, as it is the checker's.
        if cycles > budget {
            return Err(Why::Overrun { cycles });
        }
        if block[csr::RATE] != rate {
            let kbps = block[csr::RATE];
            outcome.credit.rate_kbps = state.pace(kbps);
        }
        let tokens = state.block[csr::TOKENS];
        if tokens == 0 && outcome.credit.tokens > 0 {
            state.refusal.at = stands;
        }
        let block = &state.block;
        outcome.credit.window = block[csr::WINDOW];
        outcome.credit.tokens = tokens;
        match (side, answer) {
            (Side::Tx, Answer::Send) => {
                if image.header_words() > 0 {
                    outcome.words = Some(event::words(block, image.header_words()));
                }
            }
            (Side::Tx, Answer::LoopBack) => {
                outcome.verdict = Verdict::LoopBack;
                state.refusal.at = stands;
            }
            (Side::Rx, Answer::Done) => {}
            (Side::Rx, Answer::GenTxEvent) => {
                let class = Class(block[csr::OPCODE]);
                if !csr::is_sent(class) {
                    return Err(Why::Packet { class: class.0 });
                }
                let words = event::words(block, image.header_words());
                let part = if class.within(Class::CNP.with(Class::ACK).with(Class::LAW)) {
                    Emit::plain(class).part
                } else {
                    event::part(block)
                };
                outcome.emit = Some(Emit { class, part, words });
            }
            (_, answer) => return Err(Why::Side { answer, side }),
        }
        Ok(())
    }

    /// Counts a run.
    #[inline]
    fn count(&mut self, side: Side, cycles: u64, outcome: &mut Outcome) {
        self.tally.events[side as usize] += 1;
        self.tally.cycles[side as usize] += cycles;
        if let Some(run) = self.runs.as_mut().and_then(|runs| runs.last_mut()) {
            run.cycles = cycles;
        }
        outcome.cycles = outcome.cycles.saturating_add(u32::try_from(cycles).unwrap_or(u32::MAX));
    }

    /// A packet of `class` that the program asked for was left out, for the layout of its queue pair has none such.
    #[cold]
    pub fn left_out(&mut self, class: Class) {
        self.tally.left_out += 1;
        self.tally.left_out_classes = self.tally.left_out_classes.with(class);
    }

    /// The NIC's notification point, asked about a mark: the fallback's, where it has one.
    pub(super) fn notify(&mut self, state: &mut State, now: Instant) -> Option<Emit> {
        let next = &mut state.notice;
        if self.fallback.notifies() {
            return self.fallback.notify(next, now);
        }
        (now >= *next).then(|| {
            *next = now + CNP_GAP;
            Emit::plain(Class::CNP)
        })
    }

    /// A queue pair of the program before comes to this one, or one that could not be opened tries again.
    #[cold]
    fn begin_anew(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let mut fresh = Outcome {
            byte_counter: Some(0),
            traces: Some(self.traces()),
            ..Outcome::unchanged(Credit::FREE, Instant::NEVER)
        };
        *state = self.begin(state.link_kbps, event.qpn, event.now, &mut fresh);
        *outcome = Outcome { emit: None, verdict: Verdict::Proceed, words: None, ..fresh };
    }

    /// What a token of its credit lets go.
    pub const fn token_unit(&self) -> TokenUnit {
        TokenUnit::Octets
    }
}

/// What an arrival brings a sender besides acknowledgements.
const CREDIT: Class = Class::GRANT.with(Class::PULL);

/// What the engine is asked for, for a program that traces `classes`: timers always, and never what it alone is told.
/// Marks too, where `fallback` answers them or the program hears of what answers them: that notification point is the NIC's, and
/// works beside a program that takes no notice of marks. A receiver never learns that the sender's program has failed.
pub(super) const fn heard(fallback: &Law, classes: Class) -> Class {
    let answered = fallback.notifies() || classes.meets(Class::CNP);
    let marks = if answered && !hears_marks(classes) { Class::CE } else { Class::NONE };
    Class(classes.0 & !OPEN.0).with(Class::TIMER).with(marks)
}

/// The least time between two CNPs of a queue pair, where the fallback does not say: DCQCN's.
const CNP_GAP: Span = Span::from_micros(50);

/// [`Programmed::usual_fallback`] of a program that traces `classes`.
pub(super) const fn usual_fallback_of(classes: Class) -> &'static str {
    if hears_marks(classes) || classes.meets(Class::CNP) { "dcqcn" } else { "dctcp" }
}

/// Whether a program that traces `classes` is told of marks on data.
const fn hears_marks(classes: Class) -> bool {
    classes.meets(Class::CE.with(Class::DATA))
}

/// How long a timer takes that is armed for `ns`; zero cancels it.
fn at_least(ns: u32) -> u32 {
    if ns == 0 { 0 } else { ns.max(TIMER_MIN_NS) }
}
