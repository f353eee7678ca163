//! θ-PowerTCP: the same window from round trips alone (Algorithm 2).

use super::{FULL, Params, Terms, Window};
use crate::event::{Class, Event};
use crate::fixed::{ONE, fraction, nanos, passed, ratio, rtt};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;

/// What θ-PowerTCP remembers of one queue pair: seven words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// Its window.
    pub window: Window,
    /// The last round trip in nanoseconds; zero before the first.
    pub rtt: u32,
    /// When it was measured, in nanoseconds.
    pub at: u32,
}

/// θ-PowerTCP: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct ThetaPowerTcp {
    pub(super) params: Params,
    terms: Terms,
    /// The least current in 16.16.
    floor: u32,
}

impl ThetaPowerTcp {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK;

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, terms: Terms::new(&params), floor: fraction(params.floor) }
    }

    pub(super) fn derive(&mut self) {
        *self = Self::new(self.params);
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`: its window is what the link carries in τ.
    pub fn connect(&self, link_kbps: u32) -> State {
        State { window: self.terms.connect(link_kbps), ..State::default() }
    }

    /// The credit that `state` stands for: W, and W/τ unless that is the link's rate.
    pub fn credit(&self, state: &State) -> Credit {
        self.terms.credit(&state.window)
    }

    /// Reacts to one event: `NEWACK` of Algorithm 2.
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let Some(rtt) = rtt(event) else { return };
        let now = nanos(event.now);
        if state.rtt == 0 {
            state.window.update_at = event.next_sequence;
        } else {
            self.smooth(state, rtt, now.wrapping_sub(state.at));
        }
        (state.rtt, state.at) = (rtt, now);
        if passed(event.acked_sequence, state.window.update_at) {
            self.terms.answer(&mut state.window);
            self.terms.remember(&mut state.window, event);
            outcome.credit = self.credit(state);
        }
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        Sample { rtt_ns: Sample::known(state.rtt), ..self.terms.sample(&state.window) }
    }

    /// `NORMPOWER` of Algorithm 2: Γ follows `(dRTT/dt + 1)·RTT/τ` by dt/τ. Within τ that is `(dRTT + dt)·RTT/τ²` more, which has no
    /// division.
    #[inline]
    fn smooth(&self, state: &mut State, rtt: u32, dt: u32) {
        let per_t = i64::from(self.terms.trip.per_t);
        let most = i64::from(64 * ONE);
        let voltage = ((i64::from(rtt) * per_t) >> 16).min(most);
        let longer = i64::from(rtt) - i64::from(state.rtt);
        let power = if dt <= self.terms.trip.t {
            let dt_64 = i64::from(dt);
            let arrived = (longer + dt_64).max((i64::from(self.floor) * dt_64) >> 16);
            let current = ((arrived * per_t) >> 16).min(most);
            let kept = i64::from(state.window.power);
            kept - ((kept * (dt_64 * per_t)) >> 32) + ((current * voltage) >> 8)
        } else {
            let change = i64::from(ratio(rtt.abs_diff(state.rtt), dt)) * longer.signum();
            ((i64::from(ONE) + change).max(self.floor.into()) * voltage) >> 8
        };
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "clamped")]
        {
            state.window.power = power.clamp(0, FULL.into()) as u32;
        }
    }
}
