//! TIMELY: a rate that follows the gradient of the round trip (Mittal et al., SIGCOMM 2015, Algorithm 1).
//!
//! At each completion event a sender takes a round trip, smooths its difference from the one before, and divides it
//! by the least round trip: the normalised gradient, positive while queues grow. Below T_low it raises the rate, above
//! T_high it cuts it however the gradient is, and between them the gradient decides; after five completion events
//! without growth it raises the rate in larger steps (HAI).
//!
//! - A completion event is the acknowledgement that completes a segment ([`Params::segment`] octets), or one in each
//!   round trip where that is zero, as HPCC's model has it. The round trip is that of its last packet, from when it was
//!   sent to when its acknowledgement came; a packet's own time on the link is in it.
//! - Rates are whole kb/s of octets on the wire, from the least rate to the link's. A queue pair begins at
//!   [`Params::first_rate`] of the link's.
//! - No event divides, but one above T_high, by 32 bits.

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{PRESETS, REGISTERS};

use crate::event::{Class, Event};
use crate::fixed::{ONE, RTT_MAX, constant, fraction, passed, ratio, rtt, scale, span_nanos};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use roci_units::{Ratio, Span};

/// TIMELY's parameters, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// α: the weight of the newest difference in the smoothed one.
    pub alpha: Ratio,
    /// β: how strongly a growing round trip cuts.
    pub beta: Ratio,
    /// T_low: below it the rate rises, whatever the gradient.
    pub t_low: Span,
    /// T_high: above it the rate is cut, whatever the gradient.
    pub t_high: Span,
    /// The least round trip, by which the gradient is normalised.
    pub min_rtt: Span,
    /// δ: the additive step, in kb/s.
    pub delta_kbps: u32,
    /// N·δ: the step of hyperactive increase, in kb/s.
    pub hai_kbps: u32,
    /// Completion events without growth before hyperactive increase.
    pub hai_after: u32,
    /// Octets between two completion events; zero: one in each round trip.
    pub segment: u32,
    /// The least rate, in kb/s.
    pub rmin_kbps: u32,
    /// What a queue pair begins with, of the link's rate: C/(N + 1) where N flows of a host share its link.
    pub first_rate: Ratio,
}

/// The law: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct Timely {
    params: Params,
    /// α in 16.16.
    alpha: u32,
    /// β in 16.16.
    beta: u32,
    /// β / minRTT, times 2³⁶ ns.
    beta_over_min_rtt: u32,
    /// T_low in nanoseconds.
    t_low: u32,
    /// T_high in nanoseconds.
    t_high: u32,
}

/// What TIMELY remembers of one queue pair: six words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// The link's rate in kb/s.
    pub link_kbps: u32,
    /// `rate` in kb/s.
    pub rate_kbps: u32,
    /// `prev_rtt` in nanoseconds; zero before the first completion event.
    pub prev_rtt: u32,
    /// `rtt_diff` in sixteenths of a nanosecond.
    pub rtt_diff: i32,
    /// Completion events in a row whose gradient was not positive.
    pub quiet: u32,
    /// Octets acknowledged since the last completion event; where there is one in each round trip, the packet sequence
    /// that an acknowledgement must pass.
    pub progress: u32,
}

impl Timely {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK;

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        let mut law = Self { params, alpha: 0, beta: 0, beta_over_min_rtt: 0, t_low: 0, t_high: 0 };
        law.derive();
        law
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn derive(&mut self) {
        let Params { alpha, beta, t_low, t_high, min_rtt, .. } = self.params;
        (self.alpha, self.beta) = (fraction(alpha), fraction(beta));
        let min_rtt = u64::from(span_nanos(min_rtt)) * u64::from(beta.denominator());
        self.beta_over_min_rtt = constant(beta.numerator().into(), 36, min_rtt);
        (self.t_low, self.t_high) = (span_nanos(t_low).min(RTT_MAX), span_nanos(t_high).min(RTT_MAX));
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`.
    pub fn connect(&self, link_kbps: u32) -> State {
        let rate_kbps = self.within(link_kbps, scale(link_kbps, fraction(self.params.first_rate)));
        State { link_kbps, rate_kbps, ..State::default() }
    }

    /// The credit that `state` stands for. A limiter at the link's rate limits nothing, so it is taken out of the pacer's way.
    pub fn credit(&self, state: &State) -> Credit {
        let rate_kbps = if state.rate_kbps < state.link_kbps { state.rate_kbps } else { Credit::UNLIMITED };
        Credit { rate_kbps, ..Credit::FREE }
    }

    /// `rate_kbps` from the least rate to the link's.
    fn within(&self, link_kbps: u32, rate_kbps: u32) -> u32 {
        rate_kbps.clamp(self.params.rmin_kbps.min(link_kbps), link_kbps)
    }

    /// Reacts to one event.
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        // An acknowledgement without a round trip completes nothing, but its octets count.
        let timed = rtt(event);
        if self.completes(state, event, timed.is_some())
            && let Some(new_rtt) = timed
        {
            self.on_completion(state, new_rtt);
            self.answer_rate(state, outcome);
        }
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        Sample { rate_kbps: state.rate_kbps, rtt_ns: Sample::known(state.prev_rtt), ..Sample::default() }
    }

    /// Whether this acknowledgement is a completion event.
    #[inline]
    fn completes(&self, state: &mut State, event: &Event<'_>, timed: bool) -> bool {
        if self.params.segment == 0 {
            let completes = timed && passed(event.acked_sequence, state.progress);
            if completes {
                state.progress = event.next_sequence;
            }
            return completes;
        }
        state.progress = state.progress.saturating_add(event.acked);
        let completes = timed && state.progress >= self.params.segment;
        if completes {
            state.progress = 0;
        }
        completes
    }

    /// Algorithm 1, for one round trip.
    fn on_completion(&self, state: &mut State, new_rtt: u32) {
        let prev_rtt = core::mem::replace(&mut state.prev_rtt, new_rtt);
        if prev_rtt == 0 {
            return;
        }
        self.smooth(state, new_rtt.wrapping_sub(prev_rtt).cast_signed());
        state.quiet = if state.rtt_diff <= 0 { state.quiet.saturating_add(1) } else { 0 };
        let rate = state.rate_kbps;
        let rate = if new_rtt < self.t_low {
            rate.saturating_add(self.params.delta_kbps)
        } else if new_rtt > self.t_high {
            rate - scale(rate, self.excess(new_rtt))
        } else if state.rtt_diff <= 0 {
            rate.saturating_add(self.step(state))
        } else {
            rate - scale(rate, self.growth(state))
        };
        state.rate_kbps = self.within(state.link_kbps, rate);
    }

    /// `rtt_diff ← (1 − α)·rtt_diff + α·new_rtt_diff`, to the nearest sixteenth of a nanosecond (lines 1 to 3).
    fn smooth(&self, state: &mut State, new_rtt_diff: i32) {
        let old = i64::from(ONE - self.alpha) * i64::from(state.rtt_diff);
        let new = i64::from(self.alpha) * i64::from(new_rtt_diff) * 16;
        #[expect(clippy::cast_possible_truncation, reason = "a mean of two numbers below 2³⁰")]
        {
            state.rtt_diff = ((old + new + i64::from(ONE / 2)) >> 16) as i32;
        }
    }

    /// `β·(1 − T_high/new_rtt)` in 16.16 (line 9).
    fn excess(&self, new_rtt: u32) -> u32 {
        scale(self.beta, ONE - ratio(self.t_high, new_rtt))
    }

    /// `β·normalized_gradient` in 16.16, at most one; the gradient is positive (lines 4 and 15).
    fn growth(&self, state: &State) -> u32 {
        let product = u64::from(state.rtt_diff.unsigned_abs()) * u64::from(self.beta_over_min_rtt);
        #[expect(clippy::cast_possible_truncation, reason = "at most one, in 16.16")]
        let growth = (product >> 24).min(u64::from(ONE)) as u32;
        growth
    }

    /// `N·δ`: δ, or the step of hyperactive increase after enough completion events without growth (lines 11 to 13).
    fn step(&self, state: &State) -> u32 {
        if state.quiet >= self.params.hai_after { self.params.hai_kbps } else { self.params.delta_kbps }
    }

    fn answer_rate(&self, state: &State, outcome: &mut Outcome) {
        outcome.credit.rate_kbps = self.credit(state).rate_kbps;
    }
}
