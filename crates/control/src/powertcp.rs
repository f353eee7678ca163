//! PowerTCP: a window from the power of a link, current times voltage (Addanki et al., NSDI 2022).
//!
//! A queue's length alone tells nothing of where it is going, and its growth alone nothing of how long it is. Their product does:
//! what arrives at a link (the current λ, its growth and what it sends) times what it holds with the product of bandwidth and delay
//! (the voltage ν). Over the power of a link that is busy and has no queue, `b²·τ`, this is Γ, by which the window of a round trip ago
//! is divided: `W = γ·(W_old/Γ + β) + (1 − γ)·W`. The rate is W over the base round trip.
//!
//! - [`PowerTcp`] takes queues and sent octets from the telemetry of switches, and the link with the most Γ (Algorithm 1). It
//!   answers every acknowledgement.
//! - [`ThetaPowerTcp`] needs no switch: where the bottleneck is one link, `(dRTT/dt + 1)·RTT/τ` is the same Γ (Algorithm 2). It answers
//!   once in each round trip. As it is printed its windows may swing: those that are cut below what is in flight stop, what arrives at the
//!   queue then tells nothing of them, and a power of nothing gives all of them back. So it takes for no less than a half what arrives,
//!   as its authors' simulation does ([`Params::floor`]).
//! - At rest Γ is `W/(W − β)`, so the queue of a shared link is the sum of all β, and each flow has a share in proportion to its own
//!   (Theorem 1). β is what the link carries in τ over the number of flows that are expected on a NIC.
//! - `W_old` is kept once in each round trip, as the paper does it and HPCC's W^c. W stays between the least window and what the link
//!   carries in τ with one β, where a flow alone comes to rest: one with nothing to send would else grow without end.
//! - Γ is smoothed as a sum of `τ·Γ` over τ, so that no usual acknowledgement divides by the time since the one before. Where W_old is
//!   divided by Γ, that is one division of 32 bits.

mod keys;
#[cfg(test)]
mod tests;
mod theta;

pub use keys::{PRESETS, REGISTERS, THETA_REGISTERS};
pub use theta::{State as ThetaState, ThetaPowerTcp};

use crate::event::{Class, Event, Hop};
use crate::fixed::{ONE, fraction, passed, saturate, scale};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use crate::telemetry::{HOPS, Link, Path};
use crate::trip::Trip;
use roci_units::{Ratio, Span};

/// One, in 8.24.
const UNIT: u32 = 1 << 24;
/// The greatest Γ, in 8.24: what is beyond 64 is 64.
const FULL: u32 = 64 << 24;

/// The parameters of both laws, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// γ: the weight of the new window.
    pub gamma: Ratio,
    /// τ: the base round trip, that of the longest path.
    pub base_rtt: Span,
    /// N: flows that are expected to share a NIC. β is what the link carries in τ, over N.
    pub flows: u32,
    /// The utilisation aimed for, by which Γ is divided. The paper has none (1), its authors' simulation has one.
    pub eta: Ratio,
    /// The least window in octets.
    pub wmin: u32,
    /// The least `dRTT/dt + 1` that counts, of θ-PowerTCP alone. The paper has none (0), its authors' simulation has a half.
    pub floor: Ratio,
}

/// What both laws compute windows with, derived from the parameters.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// γ in 16.16.
    gamma: u32,
    /// η in 16.16.
    eta: u32,
    /// The least window in octets.
    wmin: u32,
    /// τ.
    trip: Trip,
    /// β of a kilobit per second in octets, times 2³².
    beta_of_kbps: u32,
}

/// The words of a context that both laws have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Window {
    /// The link's rate in kb/s.
    pub link_kbps: u32,
    /// W in octets.
    pub window: u32,
    /// `W_old` in octets.
    pub old: u32,
    /// Γ in 8.24.
    pub power: u32,
    /// The packet sequence that an acknowledgement must pass for a round trip to be over.
    pub update_at: u32,
}

/// What PowerTCP remembers of one queue pair: 31 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// Its window.
    pub window: Window,
    /// The path that is known.
    pub path: Path,
}

const _: () = assert!(size_of::<State>() <= 128);

/// PowerTCP: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct PowerTcp {
    params: Params,
    terms: Terms,
}

impl PowerTcp {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK;

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, terms: Terms::new(&params) }
    }

    fn derive(&mut self) {
        self.terms = Terms::new(&self.params);
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`: its window is what the link carries in τ.
    pub fn connect(&self, link_kbps: u32) -> State {
        State { window: self.terms.connect(link_kbps), ..State::default() }
    }

    /// The credit that `state` stands for: W, and W/τ unless that is the link's rate.
    pub fn credit(&self, state: &State) -> Credit {
        self.terms.credit(&state.window)
    }

    /// Reacts to one event: `NEWACK` of Algorithm 1.
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let hops = &event.hops[..event.hops.len().min(HOPS)];
        if hops.is_empty() {
            return;
        }
        if state.path.number != event.path() {
            return Self::meet(state, event, hops);
        }
        self.smooth(state, hops);
        self.terms.answer(&mut state.window);
        self.terms.remember(&mut state.window, event);
        outcome.credit = self.credit(state);
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        self.terms.sample(&state.window)
    }

    /// Where the counters of a new path stand.
    #[cold]
    #[inline(never)]
    fn meet(state: &mut State, event: &Event<'_>, hops: &[Hop]) {
        if state.path.meet(event.path(), hops) {
            state.window.update_at = event.next_sequence;
        }
    }

    /// `NORMPOWER` of Algorithm 1: Γ follows that of the link with the most by Δt/τ.
    #[inline(always)]
    fn smooth(&self, state: &mut State, hops: &[Hop]) {
        let (mut most, mut tau) = (0, 1);
        for (link, hop) in state.path.links.iter_mut().zip(hops) {
            let (power, time) = self.power(link, hop);
            // power/time > most/tau
            if power * tau > most * time {
                (most, tau) = (power, time);
            }
        }
        let (per_t, kept) = (u64::from(self.terms.trip.per_t), u64::from(state.window.power));
        let new = (most * per_t) >> 16;
        state.window.power = saturate(kept - ((kept * (tau * per_t)) >> 32) + new).min(FULL);
    }

    /// `Δt·Γ` of one link in nanoseconds in 24.8, and Δt in nanoseconds, which is τ at the most. Each is below 2³². The link is seen
    /// with that.
    #[inline(always)]
    fn power(&self, link: &mut Link, hop: &Hop) -> (u64, u64) {
        link.keep_pace(hop);
        let gap = hop.at_ns.wrapping_sub(link.seen.at_ns).max(1);
        // λ·Δt: what it sent, and what its queue grew by.
        let told = |hop: &Hop| hop.tx_bytes.wrapping_add(hop.queue_bytes);
        let arrived = told(hop).wrapping_sub(told(&link.seen)).cast_signed().max(0).cast_unsigned();
        // ν over b·τ, in 16.16.
        let voltage = (u64::from(ONE)
            + ((link.lasts(hop.queue_bytes.into()) * u64::from(self.terms.trip.per_t)) >> 24))
            .min(u64::from(64 * ONE));
        let current =
            if gap > self.terms.trip.t { self.slow(link, arrived, gap) } else { link.lasts(arrived.into()) };
        link.seen = *hop;
        let most = u64::from(u32::MAX >> 1);
        (((current * voltage) >> 16).min(most), u64::from(gap.min(self.terms.trip.t)))
    }

    /// τ times what `arrived` at a link in a `gap` beyond τ, over what it carries meanwhile, in 24.8: at most seven. The gap counts by its
    /// 13 first bits at least.
    #[cold]
    #[inline(never)]
    fn slow(&self, link: &Link, arrived: u32, gap: u32) -> u64 {
        if gap.cast_signed() < 0 {
            // An acknowledgement overtook this one: that its counters are lower says nothing of the link.
            return 0;
        }
        let busy = saturate((u64::from(arrived) * u64::from(link.octet)) >> 24).min(gap.saturating_mul(7));
        let shift = 19u32.saturating_sub(gap.leading_zeros());
        scale(((busy >> shift) << 16) / (gap >> shift), self.terms.trip.t << 8).into()
    }
}

impl Terms {
    fn new(params: &Params) -> Self {
        let trip = Trip::new(params.base_rtt);
        Self {
            gamma: fraction(params.gamma).max(1),
            eta: fraction(params.eta).max(1),
            wmin: params.wmin,
            trip,
            beta_of_kbps: (trip.octets_of_kbps / params.flows.max(1)).max(1),
        }
    }

    fn connect(&self, link_kbps: u32) -> Window {
        let window = self.trip.carried(link_kbps).max(self.wmin);
        Window { link_kbps, window, old: window, power: UNIT, ..Window::default() }
    }

    fn credit(&self, state: &Window) -> Credit {
        self.trip.credit(state.window, state.link_kbps)
    }

    fn sample(&self, state: &Window) -> Sample {
        Sample {
            rate_kbps: self.credit(state).rate_kbps.min(state.link_kbps),
            window: state.window,
            alpha_q30: state.power.min(u32::MAX >> 6) << 6,
            ..Sample::default()
        }
    }

    /// β in octets.
    fn beta(&self, link_kbps: u32) -> u32 {
        saturate((u64::from(link_kbps) * u64::from(self.beta_of_kbps) + (1 << 31)) >> 32).max(1)
    }

    /// The greatest window.
    fn wmax(&self, link_kbps: u32) -> u32 {
        self.trip.carried(link_kbps).saturating_add(self.beta(link_kbps)).max(self.wmin)
    }

    /// `UPDATEWINDOW`: `γ·(W_old/(Γ/η) + β) + (1 − γ)·W`, to the nearest octet. Γ is cut at 2⁻¹⁶ for it, and below 2⁻¹⁰ taken as that.
    #[inline(always)]
    fn answer(&self, state: &mut Window) {
        let factor = (self.eta << 15) / (state.power >> 8).max(ONE >> 10);
        let aim = ((u64::from(state.old) * u64::from(factor)) >> 15) + u64::from(self.beta(state.link_kbps));
        let kept = u64::from(state.window) * u64::from(ONE - self.gamma);
        let window = (aim * u64::from(self.gamma) + kept + (1 << 15)) >> 16;
        state.window = saturate(window).clamp(self.wmin, self.wmax(state.link_kbps));
    }

    /// `UPDATEOLD`: `W_old` is what W is when a round trip is over.
    #[inline(always)]
    fn remember(&self, state: &mut Window, event: &Event<'_>) {
        if passed(event.acked_sequence, state.update_at) {
            (state.old, state.update_at) = (state.window, event.next_sequence);
        }
    }
}
