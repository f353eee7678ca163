//! DCTCP: a window that is cut by the share of marked octets (Alizadeh et al., SIGCOMM 2010; RFC 8257).
//!
//! The receiver echoes CE in each acknowledgement (BECN). Once per window of data the sender folds the share F of
//! marked octets into its estimate, `α ← (1 − g)·α + g·F` (equation 1); at the first mark it cuts
//! `cwnd ← cwnd·(1 − α/2)` (equation 2), and then neither cuts nor grows until what was in flight is acknowledged. Else
//! the window grows as TCP's: by what is acknowledged in slow start, then by one step in each window of data.
//!
//! - A loss halves the window and a timeout takes it to one packet, as TCP has it, at most once per window of data.
//! - The step of a window of data is made when all of it is acknowledged, not in parts with each acknowledgement: the
//!   window is never more than one step behind `cwnd += step·acked/cwnd`, and nothing divides.
//! - A window that is not at least half in use does not grow (RFC 7661's reason), unless it is paced.
//! - With coalesced acknowledgements all octets of a marked one count as marked: the receiver's two-state machine
//!   (§3.1), which acknowledges at once when the mark changes, is not built, since `ack_every = 1` is the rule here.
//! - `paced` sends the window over one [`Params::base_rtt`] rather than at once, and then a queue pair begins with the
//!   link's rate (HPCC's model, which is rate-based).

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{PRESETS, REGISTERS};

use crate::event::{Class, Event};
use crate::fixed::{ONE, constant, fraction, octets_in, passed, ratio, saturate, scale, span_nanos};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use roci_units::{Ratio, Span};

/// DCTCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// g: the weight of the newest share of marks.
    pub g: Ratio,
    /// Octets of a full packet.
    pub mss: u32,
    /// What the window grows by in a window of data, in octets; zero: one packet.
    pub step: u32,
    /// Whether it begins with slow start.
    pub slow_start: bool,
    /// The first window in octets; zero: what the link carries in the base round trip.
    pub first_window: u32,
    /// The greatest window in octets; zero: what the link carries in the base round trip.
    pub wmax: u32,
    /// Whether the window is spread over the base round trip.
    pub paced: bool,
    /// The round trip without queues.
    pub base_rtt: Span,
}

/// The law: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: Params,
    /// g in 16.16.
    g: u32,
    base_rtt: u32,
    /// Kilobits per second of one octet in each base round trip, in 16.16.
    kbps_of_octet: u32,
}

/// What DCTCP remembers of one queue pair: eleven words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// The link's rate in kb/s.
    pub link_kbps: u32,
    /// `cwnd` in octets.
    pub window: u32,
    /// The greatest window in octets.
    pub wmax: u32,
    /// The window below which it is in slow start, in octets.
    pub ssthresh: u32,
    /// α in 16.16.
    pub alpha: u32,
    /// Octets acknowledged in this observation window.
    pub acked: u32,
    /// Those of them whose acknowledgement echoed a mark.
    pub marked: u32,
    /// The packet sequence that ends the observation window.
    pub window_end: u32,
    /// Octets acknowledged towards the next step.
    pub grown: u32,
    /// The packet sequence up to which a cut rules out another one, and growth.
    pub cut_end: u32,
    /// Whether a cut does.
    pub cutting: u32,
}

impl Dctcp {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK.with(Class::NACK).with(Class::LOSS);

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        let mut law = Self { params, g: 0, base_rtt: 0, kbps_of_octet: 0 };
        law.derive();
        law
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn derive(&mut self) {
        self.g = fraction(self.params.g).max(1);
        self.base_rtt = span_nanos(self.params.base_rtt);
        self.kbps_of_octet = constant(8_000_000, 16, self.base_rtt.into());
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`. Its α is one (RFC 8257 §3.3).
    pub fn connect(&self, link_kbps: u32) -> State {
        let bdp = octets_in(link_kbps, self.base_rtt).max(self.params.mss);
        let or_bdp = |octets: u32| if octets == 0 { bdp } else { octets.max(self.params.mss) };
        let wmax = or_bdp(self.params.wmax);
        let window = or_bdp(self.params.first_window).min(wmax);
        let ssthresh = if self.params.slow_start { wmax } else { 0 };
        State { link_kbps, window, wmax, ssthresh, alpha: ONE, ..State::default() }
    }

    /// The credit that `state` stands for.
    pub fn credit(&self, state: &State) -> Credit {
        let mut rate_kbps = Credit::UNLIMITED;
        if self.params.paced {
            let kbps = saturate((u64::from(state.window) * u64::from(self.kbps_of_octet)) >> 16).max(1);
            // Within 2⁻¹⁶ of the link's rate it is the link's.
            if kbps < state.link_kbps - (state.link_kbps >> 16) {
                rate_kbps = kbps;
            }
        }
        Credit { rate_kbps, window: state.window, ..Credit::FREE }
    }

    /// Reacts to one event.
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if event.class == Class::LOSS {
            self.on_loss(state, event);
        } else {
            self.on_ack(state, event);
        }
        outcome.credit = self.credit(state);
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        let credit = self.credit(state);
        Sample {
            rate_kbps: credit.rate_kbps,
            window: state.window,
            alpha_q30: state.alpha << 14,
            ..Sample::default()
        }
    }

    fn on_ack(&self, state: &mut State, event: &Event<'_>) {
        state.acked = state.acked.saturating_add(event.acked);
        if event.ecn {
            state.marked = state.marked.saturating_add(event.acked);
        }
        if passed(event.acked_sequence, state.window_end) {
            self.estimate(state);
            state.window_end = event.next_sequence;
        }
        if state.cutting != 0 && passed(event.acked_sequence, state.cut_end) {
            state.cutting = 0;
        }
        if state.cutting != 0 {
            return;
        }
        if event.ecn {
            let left = state.window - scale(state.window, state.alpha / 2);
            self.cut(state, event, left);
        } else if self.is_used(state, event) {
            self.grow(state, event.acked);
        }
    }

    /// Whether half of the window is in use. A paced one says nothing by that: where the round trip is shorter than the time
    /// over which it is sent, less of it is ever in flight.
    fn is_used(&self, state: &State, event: &Event<'_>) -> bool {
        self.params.paced || event.in_flight.saturating_add(event.acked) >= state.window / 2
    }

    /// A loss halves the window, and a timeout leaves one packet.
    fn on_loss(&self, state: &mut State, event: &Event<'_>) {
        if state.cutting == 0 || event.timeout {
            let (half, ssthresh) = (state.window / 2, state.ssthresh);
            let again = event.timeout && state.window <= self.params.mss;
            self.cut(state, event, half);
            if event.timeout {
                // RFC 5681 §3.1, equation 4; what is lost a second time keeps its threshold.
                let least = 2 * self.params.mss;
                state.ssthresh = if again { ssthresh } else { half.max(least) };
                state.window = self.params.mss;
            }
        }
    }

    /// `α ← (1 − g)·α + g·F` (equation 1), to the nearest 2⁻¹⁶: the only division, once in each window of data.
    fn estimate(&self, state: &mut State) {
        let share = ratio(state.marked, state.acked.max(1));
        let mean = u64::from(ONE - self.g) * u64::from(state.alpha) + u64::from(self.g) * u64::from(share);
        state.alpha = saturate((mean + u64::from(ONE / 2)) >> 16);
        (state.acked, state.marked) = (0, 0);
    }

    /// Takes the window to `left` (equation 2 says how much), and nothing more until what is in flight is acknowledged.
    fn cut(&self, state: &mut State, event: &Event<'_>, left: u32) {
        state.window = left.max(self.params.mss);
        state.ssthresh = state.window;
        (state.cutting, state.cut_end, state.grown) = (1, event.next_sequence, 0);
    }

    /// Slow start, or one step in each window of data.
    fn grow(&self, state: &mut State, acked: u32) {
        if state.window < state.ssthresh {
            state.window = state.window.saturating_add(acked).min(state.wmax);
            return;
        }
        state.grown = state.grown.saturating_add(acked);
        if state.grown >= state.window {
            state.grown -= state.window;
            let step = if self.params.step == 0 { self.params.mss } else { self.params.step };
            state.window = state.window.saturating_add(step).min(state.wmax);
        }
    }
}
