//! DCQCN as a family of laws (Zhu et al., SIGCOMM 2015, and what others made of it).
//!
//! The receiver of a marked packet is the notification point: it answers with a CNP unless the last one is too
//! recent. The sender is the reaction point: CNPs cut its rate R_C by half of its estimate alpha, and time and
//! volume without them raise R_C towards a target R_T in three phases. How exactly, no two implementations agree;
//! [`Params`] names each difference, and the presets choose.
//!
//! Decisions that hold for all members:
//!
//! - A queue pair is unpaced and has no timer until its first CNP. An increase that can change nothing any more
//!   (R_T at the link's rate and R_C at rest) stops timer and byte counter until the next CNP.
//! - Rates are whole kb/s of octets on the wire, from the least rate to the link's. R_T is never below R_C.
//! - At one instant alpha's period ends first, then the decrease period, then the increase timer, then what
//!   arrives. A period that ends when a CNP arrives has not seen it.
//! - Alpha's timer and the decrease periods without a CNP are private: they are evaluated when they matter, with the
//!   same result as if each had fired.
//! - A parameter written during a run applies from then on; a period that has begun ends as it would have.

mod alpha;
mod keys;
mod params;
mod presets;
#[cfg(test)]
mod tests;

pub use alpha::{Estimator, Rounding};
pub use keys::REGISTERS;
pub use params::{AlphaRise, ClampOff, Cut, Hyper, Params, Recovery, ResetOn};
pub use presets::PRESETS;

use crate::event::{Class, Event};
use crate::outcome::{Credit, Emit, Outcome, Scope};
use crate::register::{Register, SettingError, Value, fraction, rate_kbps};
use crate::sample::Sample;
use crate::timer::Lazy;
use roci_units::{BitsPerSec, Instant, Ratio, Span};

/// The law: a member of the family, and what its port remembers.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    params: Params,
    /// Derived from the parameters: alpha's arithmetic.
    estimator: Estimator,
    /// When the port may send its next CNP, where the gap is the port's.
    cnp_next: Instant,
}

/// What DCQCN remembers of one queue pair, as notification point and as reaction point.
#[derive(Clone, Debug)]
pub struct State {
    /// The end of the alpha period.
    alpha_timer: Lazy,
    /// The end of the decrease period, or of the cooldown.
    decrease: Lazy,
    /// The next increase by the timer.
    increase: Lazy,
    /// When the next CNP may be sent, where the gap is the queue pair's.
    pub(crate) cnp_next: Instant,
    link_kbps: u32,
    /// R_C.
    rate_kbps: u32,
    /// R_T.
    target_kbps: u32,
    alpha: u32,
    stage: u16,
    byte_stage: u16,
    /// Fractional bits of that alpha, which may be other than the parameter since that was written.
    alpha_bits: u8,
    /// Whether alpha lives: it does from the first CNP on.
    estimating: bool,
    /// Whether a CNP came in this alpha period.
    alpha_seen: bool,
    /// Whether a CNP came in this decrease period.
    cut_due: bool,
}

impl Dcqcn {
    /// The classes it wants to hear: neither data nor acknowledgements, so a packet costs it nothing.
    pub const TRACES: Class = Class::CE.with(Class::CNP).with(Class::TIMER).with(Class::BYTE_COUNTER);

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        Self { estimator: params.estimator(), params, cnp_next: Instant::ZERO }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// A queue pair that has seen no congestion, on a link of `link_kbps`.
    pub fn connect(&self, link_kbps: u32) -> State {
        State {
            alpha_timer: Lazy::OFF,
            decrease: Lazy::OFF,
            increase: Lazy::OFF,
            cnp_next: Instant::ZERO,
            link_kbps,
            rate_kbps: link_kbps,
            target_kbps: link_kbps,
            alpha: 0,
            stage: 0,
            byte_stage: 0,
            alpha_bits: self.params.alpha_bits,
            estimating: false,
            alpha_seen: false,
            cut_due: false,
        }
    }

    /// Reacts to one event.
    #[inline]
    pub fn on_event(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if event.class == Class::CE {
            outcome.emit = self.notify(&mut state.cnp_next, event.now);
            return;
        }
        self.advance(state, event.now, outcome);
        match event.class {
            Class::CNP => self.on_cnp(state, event.now, outcome),
            Class::BYTE_COUNTER => self.on_byte_counter(state, outcome),
            _ => {}
        }
        self.answer(state, outcome);
    }

    /// What a time series records at `now`. Asking changes nothing that a later event would not have.
    pub fn sample(&self, state: &mut State, now: Instant) -> Sample {
        Sample {
            rate_kbps: state.rate_kbps,
            target_kbps: state.target_kbps,
            alpha_q30: self.alpha_at(state, now) << (30 - self.params.alpha_bits),
            stage: state.stage,
            byte_stage: state.byte_stage,
            ..Sample::default()
        }
    }

    /// The context of the law's twin in C (`firmware/dcqcn.c`) at `now`.
    #[cfg(test)]
    pub(crate) fn words(&self, state: &mut State, now: Instant) -> alloc::vec::Vec<u32> {
        self.bring_alpha(state, now);
        let [estimating, increasing, waiting] =
            [state.estimating, state.increase != Lazy::OFF, state.cnp_next > now].map(u32::from);
        let stages = [state.stage, state.byte_stage].map(u32::from);
        let rates = [state.link_kbps, state.rate_kbps, state.target_kbps, state.alpha];
        [&rates[..], &stages, &[estimating | increasing << 1 | waiting << 2]].concat()
    }

    /// The notification point, which needs nothing of a queue pair but when its next CNP may be sent: a CNP for a marked
    /// packet, unless the last one is less than the gap ago.
    #[inline]
    pub fn notify(&mut self, next: &mut Instant, now: Instant) -> Option<Emit> {
        let next = match self.params.cnp_scope {
            Scope::Qp => next,
            Scope::Port => &mut self.cnp_next,
        };
        (now >= *next).then(|| {
            *next = now + self.params.cnp_gap;
            Emit::plain(Class::CNP)
        })
    }

    /// A CNP that was asked for has left at `left`, later than it was asked for, and the gap to the next one begins then.
    pub fn notified(&mut self, next: &mut Instant, left: Instant) {
        let next = match self.params.cnp_scope {
            Scope::Qp => next,
            Scope::Port => &mut self.cnp_next,
        };
        *next = (*next).max(left + self.params.cnp_gap);
    }

    /// Does what the timers have come to by `now`, in the order of time.
    fn advance(&self, state: &mut State, now: Instant, outcome: &mut Outcome) {
        loop {
            let cut = if state.cut_due { state.decrease.next() } else { Instant::NEVER };
            let increase = state.increase.next();
            if cut.min(increase) > now || cut.min(increase) == Instant::NEVER {
                return;
            }
            if cut <= increase {
                state.cut_due = false;
                let _ = state.decrease.periods(cut, self.params.decrease_interval);
                self.cut(state, cut, outcome);
            } else {
                // Only this expiry: a late caller's later ones come in the next rounds, between cuts.
                state.increase = Lazy::start(increase, self.increase_timer());
                state.stage = state.stage.saturating_add(1);
                self.increase(state, outcome);
            }
        }
    }

    /// The reaction point hears a CNP; all timers are at `now`.
    fn on_cnp(&self, state: &mut State, now: Instant, outcome: &mut Outcome) {
        let first = !state.estimating;
        self.bring_alpha(state, now);
        if first {
            state.estimating = true;
            state.alpha = self.first_alpha();
            state.alpha_timer = Lazy::start(now, self.params.alpha_timer);
            if self.params.first_rate != Ratio::ONE {
                let left = self.params.first_rate.of(u64::from(state.rate_kbps));
                state.rate_kbps = u32::try_from(left).unwrap_or(state.rate_kbps);
                state.target_kbps = state.rate_kbps;
                self.bound(state);
            }
        }
        match self.params.cut {
            Cut::AtOnce => {
                if state.decrease.next() <= now || state.decrease == Lazy::OFF {
                    state.decrease = Lazy::start(now, self.params.decrease_interval);
                    self.cut(state, now, outcome);
                }
            }
            Cut::ByFlag => {
                if state.decrease == Lazy::OFF {
                    state.decrease = Lazy::start(now, self.params.decrease_interval.max(Span::from_ps(1)));
                } else {
                    let _ = state.decrease.periods(now, self.params.decrease_interval);
                }
                state.cut_due = true;
            }
        }
        match self.params.alpha_rise {
            AlphaRise::OnCnp => {
                state.alpha = self.estimator.update(state.alpha, true);
                state.alpha_timer = Lazy::start(now, self.params.alpha_timer);
            }
            AlphaRise::ByFlag => state.alpha_seen |= !first,
        }
        if self.params.reset_on == ResetOn::Cnp {
            self.reset(state, now, outcome);
        }
    }

    fn on_byte_counter(&self, state: &mut State, outcome: &mut Outcome) {
        // A count that was under way when the law stopped it may still arrive.
        if self.params.byte_counter == 0 || state.increase == Lazy::OFF {
            return;
        }
        outcome.byte_counter = Some(self.params.byte_counter);
        state.byte_stage = state.byte_stage.saturating_add(1);
        self.increase(state, outcome);
    }

    /// `R_T ← R_C` (where the clamp says so), `R_C ← R_C·(1 − α/2)`: SIGCOMM 2015, equation 1.
    fn cut(&self, state: &mut State, at: Instant, outcome: &mut Outcome) {
        self.bring_alpha(state, at);
        let raised = state.stage.max(state.byte_stage) > 0;
        if self.params.clamp || (self.params.clamp_off == ClampOff::UnlessStageZero && raised) {
            state.target_kbps = state.rate_kbps;
        }
        let product = u64::from(state.rate_kbps) * u64::from(state.alpha);
        let half = match self.params.rate_rounding {
            Rounding::Nearest => u64::from(self.estimator.one()),
            Rounding::Down => 0,
        };
        let taken = (product + half) >> (self.estimator.bits + 1);
        state.rate_kbps -= u32::try_from(taken).unwrap_or(0);
        self.bound(state);
        // Where CNPs reset, the increase timer may have run out and stopped before this cut.
        if self.params.reset_on == ResetOn::Cut || state.increase == Lazy::OFF {
            self.reset(state, at, outcome);
        }
    }

    /// Raises the target as the stage has it, and the rate half-way to it: SIGCOMM 2015, equations 3 and 4.
    fn increase(&self, state: &mut State, outcome: &mut Outcome) {
        let (timer, bytes) = (u32::from(state.stage), u32::from(state.byte_stage));
        let (largest, least) = match self.params.byte_counter {
            0 => (timer, timer),
            _ => (timer.max(bytes), timer.min(bytes)),
        };
        let threshold = self.params.threshold;
        let last_recovery = match self.params.recovery {
            Recovery::Below => threshold - 1,
            Recovery::Through => threshold,
        };
        let step = if largest <= last_recovery {
            0
        } else {
            match self.params.hyper {
                Hyper::AfterOne if largest > last_recovery + 1 => self.params.rhai_kbps,
                Hyper::MinStage if least > threshold => self.params.rhai_kbps,
                Hyper::Scaled if least > threshold => self.params.rhai_kbps.saturating_mul(least - threshold),
                _ => self.params.rai_kbps,
            }
        };
        let before = state.rate_kbps;
        state.target_kbps = state.target_kbps.saturating_add(step).min(state.link_kbps);
        state.rate_kbps = match self.params.rate_rounding {
            Rounding::Down => state.rate_kbps.midpoint(state.target_kbps),
            Rounding::Nearest => state.rate_kbps.midpoint(state.target_kbps.saturating_add(1)),
        };
        self.bound(state);
        if state.target_kbps == state.link_kbps && state.rate_kbps == before {
            state.increase = Lazy::OFF;
            outcome.byte_counter = Some(0);
        }
    }

    /// Starts the increase over: timer, byte counter and stages.
    fn reset(&self, state: &mut State, at: Instant, outcome: &mut Outcome) {
        state.stage = 0;
        state.byte_stage = 0;
        state.increase = Lazy::start(at, self.increase_timer());
        outcome.byte_counter = Some(self.params.byte_counter);
    }

    fn increase_timer(&self) -> Span {
        self.params.increase_timer.max(Span::from_ps(1))
    }

    /// Applies the alpha periods that have ended by `now`.
    fn bring_alpha(&self, state: &mut State, now: Instant) {
        if state.alpha_bits != self.params.alpha_bits {
            state.alpha = self.estimator.converted(state.alpha, state.alpha_bits);
            state.alpha_bits = self.params.alpha_bits;
        }
        let periods = state.alpha_timer.periods(now, self.params.alpha_timer);
        if periods > 0 {
            state.alpha = self.estimator.decay(state.alpha, state.alpha_seen, periods);
            state.alpha_seen = false;
        }
    }

    fn alpha_at(&self, state: &mut State, now: Instant) -> u32 {
        if !state.estimating {
            return self.first_alpha();
        }
        self.bring_alpha(state, now);
        state.alpha
    }

    fn first_alpha(&self) -> u32 {
        u32::try_from(self.params.first_alpha.fixed(u32::from(self.params.alpha_bits)))
            .map_or(self.estimator.one(), |alpha| alpha.min(self.estimator.one()))
    }

    /// Keeps least rate ≤ R_C ≤ R_T ≤ link.
    fn bound(&self, state: &mut State) {
        let least = self.params.rmin_kbps.min(state.link_kbps);
        state.rate_kbps = state.rate_kbps.clamp(least, state.link_kbps);
        state.target_kbps = state.target_kbps.clamp(state.rate_kbps, state.link_kbps);
    }

    /// Tells the engine. A limiter at the link's rate limits nothing, so it is taken out of the pacer's way.
    fn answer(&self, state: &State, outcome: &mut Outcome) {
        outcome.credit.rate_kbps =
            if state.rate_kbps < state.link_kbps { state.rate_kbps } else { Credit::UNLIMITED };
        let cut = if state.cut_due { state.decrease.next() } else { Instant::NEVER };
        outcome.wake = cut.min(state.increase.next());
    }

    /// The parameter `name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<Value> {
        keys::parameter(name).map(|(_, get, _)| get(&self.params))
    }

    /// The register `name` at `now`.
    pub(crate) fn get(&self, state: &mut State, name: &str, now: Instant) -> Option<Value> {
        if let Some(value) = self.parameter(name) {
            return Some(value);
        }
        let rate = |kbps: u32| Value::Rate(BitsPerSec::from_kbps(u64::from(kbps)));
        Some(match name {
            "rc" => rate(state.rate_kbps),
            "rt" => rate(state.target_kbps),
            "alpha" => Value::Fraction(Ratio::new(self.alpha_at(state, now), self.estimator.one())),
            "stage" => Value::Count(u32::from(state.stage)),
            "byte_stage" => Value::Count(u32::from(state.byte_stage)),
            _ => return None,
        })
    }

    /// Writes the parameter `name`, before a run or during it; `None` where there is no such parameter.
    pub(crate) fn set(&mut self, name: &str, text: &str, running: bool) -> Option<Result<(), SettingError>> {
        let (register, _, set) = keys::parameter(name)?;
        if running && !register.writable {
            return Some(Err(SettingError::ReadOnly { name: register.name }));
        }
        let done = set(&mut self.params, text).map_err(|why| register.refuse(text, why));
        self.estimator = self.params.estimator();
        Some(done)
    }

    /// Writes a register of the context; `register` is one.
    pub(crate) fn write(
        &self,
        state: &mut State,
        register: &Register,
        text: &str,
        now: Instant,
        outcome: &mut Outcome,
    ) -> Result<(), SettingError> {
        self.advance(state, now, outcome);
        let refuse = |why| register.refuse(text, why);
        match register.name {
            "rc" => {
                state.rate_kbps = rate_kbps(text).map_err(refuse)?;
                self.bound(state);
            }
            "rt" => {
                state.target_kbps = rate_kbps(text).map_err(refuse)?;
                self.bound(state);
            }
            "alpha" => {
                let alpha = match text.trim() {
                    "0" => Ratio::ZERO,
                    text => fraction(text).map_err(refuse)?,
                };
                self.bring_alpha(state, now);
                state.alpha = u32::try_from(alpha.fixed(u32::from(self.params.alpha_bits)))
                    .map_or(self.estimator.one(), |alpha| alpha.min(self.estimator.one()));
                if !state.estimating {
                    state.estimating = true;
                    state.alpha_timer = Lazy::start(now, self.params.alpha_timer);
                }
            }
            "stage" => state.stage = keys::stage(text).map_err(refuse)?,
            "byte_stage" => state.byte_stage = keys::stage(text).map_err(refuse)?,
            _ => return Err(SettingError::ReadOnly { name: register.name }),
        }
        // A rate written below the link's recovers as if a cut had left it there.
        if state.rate_kbps < state.link_kbps && state.increase == Lazy::OFF {
            self.reset(state, now, outcome);
        }
        self.answer(state, outcome);
        Ok(())
    }
}
