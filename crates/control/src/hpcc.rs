//! HPCC: a window from telemetry of each link on the path (Li et al., SIGCOMM 2019, Algorithm 1).
//!
//! Each switch writes its queue, its sent octets and its clock into the packets, and acknowledgements take that back. The
//! sender computes from two of them how many base round trips' worth of octets each link has in flight, takes the fullest
//! link, smooths it to U, and sets `W = W^c / (U/η) + W_AI`, or adds W_AI alone for a few round trips while U is below η.
//! W follows every acknowledgement; its reference W^c once in each round trip, so that one signal is not answered twice.
//! The rate is W over the base round trip.
//!
//! - The first acknowledgement, and one that came by other switches, as pathID tells, only shows where the counters stand (§4.1): W stays,
//!   and so does the packet after which W^c moves. Of parallel links between the same switches telemetry does not say which it is of.
//! - `τ·u` is kept rather than `u`: for the fullest link it is its queue's share times τ, and the time that its octets
//!   take, so that the usual acknowledgement divides only where W^c is divided by U (once, by 32 bits). Links are compared
//!   crosswise. A gap beyond the base round trip costs another division, and a link that was another one before costs
//!   three. None has more than 32 bits, since a program on a 32-bit core computes the same.
//! - W stays between [`Params::wmin`] and what the link carries in the base round trip, and W^c with it.
//! - At most five hops count, as in HPCC's header.
//! - The event of one link takes 148 instructions and each more link 46 to 49, five of them multiplications: its queue's part of τ by
//!   two, its octets' time, and the comparison by two. The 8 ns that a law's event should take are some 150 instructions of a core
//!   at 3 GHz, which one link comes to and five, 340, have more than twice over. The first link, apart from the others, is compared with
//!   nothing, and what is rare is out of the way: with both in the loop one link took a quarter longer. Telemetry comes in the
//!   words that are kept, one copy for four of them; when time and octets had to be cut to 32 bits here, a link took 55.

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{PRESETS, REGISTERS};

use crate::event::{Class, Event, Hop};
use crate::fixed::{ONE, fraction, passed, saturate, scale};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use crate::telemetry::{HOPS, Link, Path};
use crate::trip::Trip;
use roci_units::{Ratio, Span};

/// One, in 8.24.
const UNIT: u32 = 1 << 24;
/// The greatest part of U, in 8.24: what is beyond 64 base round trips is 64.
const FULL: u32 = 64 << 24;

/// HPCC's parameters, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// η: the utilisation aimed for.
    pub eta: Ratio,
    /// T: the base round trip, that of the longest path.
    pub base_rtt: Span,
    /// W_AI: the additive step in octets.
    pub w_ai: u32,
    /// maxStage: additive steps before W^c is divided again.
    pub max_stage: u32,
    /// The least window in octets.
    pub wmin: u32,
    /// Whether what the link carries in T may be in flight whatever W is, which sets the rate alone then. The paper has W for both.
    pub fixed_window: bool,
}

/// The law: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct Hpcc {
    params: Params,
    /// η in 16.16.
    eta: u32,
    /// T.
    trip: Trip,
}

/// What HPCC remembers of one queue pair: 32 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// The link's rate in kb/s.
    pub link_kbps: u32,
    /// W in octets.
    pub window: u32,
    /// W^c in octets.
    pub reference: u32,
    /// U in 8.24.
    pub utilisation: u32,
    /// lastUpdateSeq: the packet sequence that an acknowledgement must pass to move W^c.
    pub update_at: u32,
    /// incStage.
    pub stage: u32,
    /// The path that is known.
    pub path: Path,
}

const _: () = assert!(size_of::<State>() <= 128);

impl Hpcc {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK;

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, eta: fraction(params.eta).max(1), trip: Trip::new(params.base_rtt) }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn derive(&mut self) {
        *self = Self::new(self.params);
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`: its window is what the link carries in T.
    pub fn connect(&self, link_kbps: u32) -> State {
        let window = self.wmax(link_kbps);
        State { link_kbps, window, reference: window, utilisation: UNIT, ..State::default() }
    }

    /// The credit that `state` stands for: W, or what the link carries in T where the window is fixed, and W/T unless that is the link's
    /// rate.
    pub fn credit(&self, state: &State) -> Credit {
        let credit = self.trip.credit(state.window, state.link_kbps);
        if self.params.fixed_window {
            Credit { window: self.wmax(state.link_kbps), ..credit }
        } else {
            credit
        }
    }

    /// Reacts to one event: `NewAck` (lines 22 to 30).
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let hops = &event.hops[..event.hops.len().min(HOPS)];
        if hops.is_empty() {
            return;
        }
        if state.path.number != event.path() {
            return Self::meet(state, event, hops);
        }
        self.measure_inflight(state, hops);
        let update = passed(event.acked_sequence, state.update_at);
        self.compute_wind(state, update);
        if update {
            state.update_at = event.next_sequence;
        }
        outcome.credit = self.credit(state);
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        let credit = self.credit(state);
        Sample {
            rate_kbps: credit.rate_kbps.min(state.link_kbps),
            window: state.window,
            alpha_q30: state.utilisation.min(u32::MAX >> 6) << 6,
            stage: u16::try_from(state.stage).unwrap_or(u16::MAX),
            ..Sample::default()
        }
    }

    /// What the link carries in T, in octets.
    fn wmax(&self, link_kbps: u32) -> u32 {
        self.trip.carried(link_kbps).max(self.params.wmin)
    }

    /// Where the counters of a new path stand.
    #[cold]
    #[inline(never)]
    fn meet(state: &mut State, event: &Event<'_>, hops: &[Hop]) {
        if state.path.meet(event.path(), hops) {
            state.update_at = event.next_sequence;
        }
    }

    /// `MeasureInflight` (lines 1 to 10): U follows the fullest link by τ/T.
    #[inline(always)]
    fn measure_inflight(&self, state: &mut State, hops: &[Hop]) {
        let mut links = state.path.links.iter_mut().zip(hops);
        let Some((link, hop)) = links.next() else { return };
        let (mut most, mut tau) = self.inflight(link, hop);
        for (link, hop) in links {
            let (inflight, time) = self.inflight(link, hop);
            // inflight/time > most/tau
            if inflight * tau > most * time {
                (most, tau) = (inflight, time);
            }
        }
        let (per_t, kept) = (u64::from(self.trip.per_t), u64::from(state.utilisation));
        let tau = if most == 0 { 1 } else { tau };
        let part = tau * per_t;
        let new = (most * per_t) >> 16;
        state.utilisation = saturate(kept - ((kept * part) >> 32) + new).min(FULL);
    }

    /// `τ·u′` of one link in nanoseconds in 24.8, where u′ is its octets in flight over B·T, and τ in nanoseconds (lines
    /// 3 to 8): each below 2³². Of the queue, `τ/T` counts, in whole octets. The link is seen with that.
    #[inline(always)]
    fn inflight(&self, link: &mut Link, hop: &Hop) -> (u64, u64) {
        link.keep_pace(hop);
        let gap = hop.at_ns.wrapping_sub(link.seen.at_ns).max(1);
        let sent = hop.tx_bytes.wrapping_sub(link.seen.tx_bytes);
        let tau = u64::from(gap.min(self.trip.t));
        let queue = u64::from(hop.queue_bytes.min(link.seen.queue_bytes));
        let waiting = (queue * (tau * u64::from(self.trip.per_t))) >> 32;
        let inflight = if gap > self.trip.t {
            self.slow(link, sent, gap) + link.lasts(waiting)
        } else {
            link.lasts(u64::from(sent) + waiting)
        };
        link.seen = *hop;
        (inflight, tau)
    }

    /// T times what `link` was used when it sent `sent` octets in a `gap` beyond T, in 24.8: at most T. The gap counts by its 13
    /// first bits at least.
    #[cold]
    #[inline(never)]
    fn slow(&self, link: &Link, sent: u32, gap: u32) -> u64 {
        if gap.cast_signed() < 0 {
            // An acknowledgement overtook this one: that its counters are lower says nothing of the link.
            return 0;
        }
        let busy = saturate((u64::from(sent) * u64::from(link.octet)) >> 24).min(gap);
        let shift = [28, 24, 20, 16].into_iter().find(|bit| gap >> bit > 0).map_or(0, |bit| bit - 12);
        scale(((busy >> shift) << 16) / (gap >> shift), self.trip.t << 8).into()
    }

    /// `ComputeWind` (lines 11 to 21).
    fn compute_wind(&self, state: &mut State, update: bool) {
        let utilisation = state.utilisation >> 8;
        let divides = utilisation >= self.eta || state.stage >= self.params.max_stage;
        let kept = if divides { self.divide(state.reference, utilisation) } else { state.reference.into() };
        let wmax = self.wmax(state.link_kbps);
        let window = (kept + u64::from(self.params.w_ai)).clamp(self.params.wmin.into(), wmax.into());
        #[expect(clippy::cast_possible_truncation, reason = "at most wmax")]
        {
            state.window = window as u32;
        }
        if update {
            state.stage = if divides { 0 } else { state.stage + 1 };
            state.reference = state.window;
        }
    }

    /// `W^c / (U/η)`, U in 16.16: one division of 32 bits. A U below 2⁻¹⁰ is taken as that.
    fn divide(&self, reference: u32, utilisation: u32) -> u64 {
        let factor = (self.eta << 15) / utilisation.max(ONE >> 10);
        (u64::from(reference) * u64::from(factor)) >> 15
    }
}
