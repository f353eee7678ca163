//! NSCC: the window of Ultra Ethernet's senders, from marks and delay (UET specification 1.0, §3.6.13; csg-htsim's
//! `uec.cpp`, whose names and constants these are).
//!
//! Each acknowledgement falls into one of four cases, by its mark and by whether the queueing delay reaches the target:
//!
//! | | below the target | at the target or above |
//! | --- | --- | --- |
//! | unmarked | proportional increase, or fast increase on an empty path | fair increase |
//! | marked | nothing | multiplicative decrease by the mean delay, once in a round trip |
//!
//! Increases are gathered and take effect over the window after eight packets or a round trip (`fulfill_adjustment`). A
//! loss, or a delay of four targets, sets the window to what was acknowledged in the last round trip (quick adapt), and
//! what was in flight then is not heard.
//!
//! - The base round trip is the least that was seen, from the configured one down; the greatest window is one and a half
//!   times what the link carries in it.
//! - It divides by 32 bits where increases take effect and where the window is cut: not with each acknowledgement.
//! - Path selection (entropy values) belongs to the transport and is not here.

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{PRESETS, REGISTERS};

use crate::event::{Class, Event};
use crate::fixed::{ONE, constant, fraction, nanos, octets_in, ratio, rtt, saturate, scale, span_nanos};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use core::hint::cold_path;
use roci_units::{Ratio, Span};

/// The reference network of the constants: 12 µs and 150 000 octets.
const REFERENCE_NS: u32 = 12_000;
const REFERENCE_OCTETS: u32 = 150_000;
/// Below this delay in nanoseconds a path counts as empty.
const EMPTY_NS: u32 = 1_000;
/// Increases are gathered in units of 2 to this power.
const INC_SHIFT: u32 = 8;
/// Flags of a context.
const ADAPTING: u32 = 1;
const TRIGGERED: u32 = 2;
const INCREASING: u32 = 4;

/// NSCC's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The network's round trip without queues.
    pub base_rtt: Span,
    /// The queueing delay aimed for.
    pub target: Span,
    /// γ: how strongly an excess of delay cuts.
    pub gamma: Ratio,
    /// The weight of the newest delay in the mean.
    pub delay_alpha: Ratio,
    /// Quick adapt is for windows whose achieved octets are below the greatest window over 2 to this power.
    pub qa_gate: u32,
    /// Octets of a full packet.
    pub mss: u32,
}

/// The law: its parameters, and what its arithmetic derives from them.
#[derive(Clone, Debug)]
pub struct Nscc {
    params: Params,
    link_kbps: u32,
    base_rtt: u32,
    target: u32,
    gamma: u32,
    delay_alpha: u32,
    /// Proportional increase: octets per nanosecond below the target, 16.16.
    alpha: u32,
    /// Fair increase, in octets.
    fi: u32,
    /// What each round trip adds, in octets.
    eta: u32,
    /// The share of acknowledged octets that fast increase adds, 16.16.
    fi_scale: u32,
    /// Octets that the link carries in one and a half nanoseconds, 16.16.
    octets_per_ns: u32,
    /// The longest period of quick adapt.
    period: u32,
}

/// What NSCC remembers of one queue pair: 15 words. Times are nanoseconds modulo 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// cwnd in octets.
    pub window: u32,
    /// The greatest window in octets.
    pub wmax: u32,
    /// The least round trip.
    pub base_rtt: u32,
    /// The mean queueing delay in sixteenths of a nanosecond.
    pub avg_delay: u32,
    /// Increases gathered, in 256 octets times octets, which holds those of a path of 100 MB.
    pub inc_bytes: u32,
    /// Octets acknowledged since they last took effect.
    pub received_bytes: u32,
    /// When they last did with a round trip gone.
    pub adjusted_at: u32,
    /// Octets acknowledged in this period of quick adapt.
    pub achieved_bytes: u32,
    /// When that period ends.
    pub qa_end: u32,
    /// Octets that were in flight at the last quick adapt.
    pub to_ignore: u32,
    /// Octets acknowledged since.
    pub ignored: u32,
    /// Octets in a row acknowledged on an empty path.
    pub fi_count: u32,
    /// When the window was last cut.
    pub decreased_at: u32,
    /// Bit 0: a period of quick adapt has begun; 1: a loss asks for it; 2: fast increase goes on.
    pub flags: u32,
    /// The last round trip.
    pub rtt: u32,
}

impl Nscc {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK.with(Class::LOSS);

    /// The law with these parameters, on links of `link_kbps`.
    pub fn new(params: Params, link_kbps: u32) -> Self {
        let mut law = Self {
            params,
            link_kbps,
            base_rtt: 0,
            target: 0,
            gamma: 0,
            delay_alpha: 0,
            alpha: 0,
            fi: 0,
            eta: 0,
            fi_scale: 0,
            octets_per_ns: 0,
            period: 0,
        };
        law.derive();
        law
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// `initNsccParams`: with a = BDP / 150 000 and b = target / 12 µs, α = 4·mss·a·b/target, fi = 5·mss·a,
    /// η = 0.15·mss·a, and the share of fast increase a/4.
    fn derive(&mut self) {
        let p = &self.params;
        self.base_rtt = span_nanos(p.base_rtt).max(1);
        self.target = span_nanos(p.target).max(1);
        (self.gamma, self.delay_alpha) = (fraction(p.gamma), fraction(p.delay_alpha).max(1));
        let (bdp, mss) = (u64::from(octets_in(self.link_kbps, self.base_rtt)), u64::from(p.mss));
        let reference = u64::from(REFERENCE_OCTETS);
        self.alpha = constant(4 * mss * bdp, 16, reference * u64::from(REFERENCE_NS));
        self.fi = constant(5 * mss * bdp, 0, reference).max(1);
        self.eta = constant(3 * mss * bdp, 0, reference * 20).max(1);
        self.fi_scale = constant(bdp, 16, reference * 4);
        self.octets_per_ns = constant(u64::from(self.link_kbps) * 3, 16, 16_000_000);
        self.period = self.base_rtt.saturating_add(self.target);
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`. It begins with its greatest window.
    pub fn connect(&self, _link_kbps: u32) -> State {
        let mut state = State { base_rtt: self.base_rtt, ..State::default() };
        self.bound_by(&mut state);
        state.window = state.wmax;
        state
    }

    /// The credit that `state` stands for.
    pub fn credit(&self, state: &State) -> Credit {
        Credit { window: state.window, ..Credit::FREE }
    }

    /// Reacts to one event. By itself: among the other laws it takes half a nanosecond more.
    #[inline(never)]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if event.class == Class::LOSS {
            self.on_loss(state, event);
        } else if let Some(rtt) = rtt(event) {
            self.on_ack(state, event, rtt);
        } else {
            state.achieved_bytes = state.achieved_bytes.saturating_add(event.acked);
            state.ignored = state.ignored.saturating_add(event.acked);
        }
        outcome.credit.window = state.window;
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        Sample { window: state.window, rtt_ns: Sample::known(state.rtt), ..Sample::default() }
    }

    /// `updateCwndOnAck_NSCC`, with what comes before it for each acknowledgement.
    #[inline(always)]
    fn on_ack(&self, state: &mut State, event: &Event<'_>, rtt: u32) {
        let now = nanos(event.now);
        state.rtt = rtt;
        state.achieved_bytes = state.achieved_bytes.saturating_add(event.acked);
        state.received_bytes = state.received_bytes.saturating_add(event.acked);
        state.ignored = state.ignored.saturating_add(event.acked);
        if rtt < state.base_rtt {
            state.base_rtt = rtt;
            self.bound_by(state);
        }
        let delay = rtt - state.base_rtt;
        self.update_delay(state, delay, event.ecn);
        if self.quick_adapt(state, event, now, event.ecn, delay) {
            return;
        }
        match (event.ecn, delay >= self.target) {
            (false, true) => Self::gather(state, self.fi, event.acked),
            (false, false) => self.proportional_increase(state, event.acked, delay),
            (true, true) => self.multiplicative_decrease(state, now),
            (true, false) => {}
        }
        self.set_cwnd_bounds(state);
        let late = now.wrapping_sub(state.adjusted_at) > self.base_rtt;
        if state.received_bytes > 8 * self.params.mss || late {
            self.fulfill_adjustment(state, now);
        }
    }

    /// `updateCwndOnNack_NSCC`.
    ///
    /// Departs from `uec.cpp`, which takes the octets of each packet that a NACK names off the window: where receivers
    /// keep what comes out of order a NACK names a packet that came, so what is heard is the recovery, once as it begins
    /// and once for each timeout, and one full packet goes. What more is lost shows in what is acknowledged: quick adapt. Where
    /// switches trim (NDP's recovery) a NACK names what was lost, and its octets go, as there.
    fn on_loss(&self, state: &mut State, event: &Event<'_>) {
        state.flags |= TRIGGERED;
        if !self.quick_adapt(state, event, nanos(event.now), true, 0) {
            let octets = if event.length > 0 { event.length } else { self.params.mss };
            state.window = state.window.saturating_sub(octets);
            self.set_cwnd_bounds(state);
        }
    }

    /// `quick_adapt`: whether what was acknowledged became the window, or is still ignored, which all but an unmarked
    /// acknowledgement `may_be`.
    #[inline(always)]
    fn quick_adapt(&self, state: &mut State, event: &Event<'_>, now: u32, may_be: bool, delay: u32) -> bool {
        let ignored = may_be && state.ignored < state.to_ignore;
        // An end that is further off than a period is long lies behind, by half of the clock's round perhaps: who was idle for
        // seconds begins anew.
        let within = state.qa_end.wrapping_sub(now) <= self.period;
        if !ignored && state.flags & ADAPTING != 0 && within {
            return false;
        }
        cold_path();
        let done = ignored || self.end_period(state, event, now, delay);
        if done {
            (state.inc_bytes, state.received_bytes) = (0, 0);
        }
        done
    }

    /// A period of quick adapt ends and the next begins: whether what was acknowledged in it became the window.
    #[inline(never)]
    fn end_period(&self, state: &mut State, event: &Event<'_>, now: u32, delay: u32) -> bool {
        // A loss has triggered it before.
        let asked = state.flags & TRIGGERED != 0 || delay > 4 * self.target;
        let gate = state.wmax >> self.params.qa_gate;
        let adapts = state.flags & ADAPTING != 0 && asked && state.achieved_bytes < gate;
        if adapts {
            state.window = state.achieved_bytes.max(self.params.mss);
            (state.to_ignore, state.ignored) = (event.in_flight, 0);
            state.flags &= !TRIGGERED;
        }
        state.achieved_bytes = 0;
        state.flags |= ADAPTING;
        state.qa_end = now.wrapping_add(state.base_rtt).wrapping_add(self.target);
        adapts
    }

    /// `update_delay`: a delay beyond the target without a mark counts as a quarter of the base round trip.
    #[inline]
    fn update_delay(&self, state: &mut State, delay: u32, skip: bool) {
        let new = if !skip && delay > self.target { state.base_rtt / 4 } else { delay };
        let apart = i64::from(new) * 16 - i64::from(state.avg_delay);
        let step = (i64::from(self.delay_alpha) * apart + i64::from(ONE / 2)) >> 16;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no round trip has more than 26 bits"
        )]
        {
            state.avg_delay = (i64::from(state.avg_delay) + step) as u32;
        }
    }

    /// `inc_bytes += octets·acked`, rounded: by fi octets where the increase is fair.
    #[inline]
    fn gather(state: &mut State, octets: u32, acked: u32) {
        let product = u64::from(octets) * u64::from(acked) + (1 << (INC_SHIFT - 1));
        state.inc_bytes = saturate(u64::from(state.inc_bytes) + (product >> INC_SHIFT));
    }

    /// `inc_bytes += α·acked·(target − delay)`, unless fast increase takes its place.
    #[inline]
    fn proportional_increase(&self, state: &mut State, acked: u32, delay: u32) {
        if self.fast_increase(state, acked, delay) {
            return;
        }
        let octets = scale(self.target - delay, self.alpha);
        Self::gather(state, octets, acked);
    }

    /// `fast_increase`: after a window on an empty path, each acknowledgement adds its share at once.
    #[inline]
    fn fast_increase(&self, state: &mut State, acked: u32, delay: u32) -> bool {
        let was = state.flags & INCREASING != 0;
        state.flags &= !INCREASING;
        if delay >= EMPTY_NS {
            state.fi_count = 0;
            return false;
        }
        state.fi_count = state.fi_count.saturating_add(acked);
        if state.fi_count > state.window || was {
            state.window = state.window.saturating_add(scale(acked, self.fi_scale));
            state.flags |= INCREASING;
        }
        state.flags & INCREASING != 0
    }

    /// `cwnd ← cwnd · max(1 − γ·(avg_delay − target)/avg_delay, ½)`, once in a base round trip.
    #[inline(never)]
    fn multiplicative_decrease(&self, state: &mut State, now: u32) {
        state.flags &= !INCREASING;
        state.fi_count = 0;
        let mean = state.avg_delay / 16;
        if mean > self.target && now.wrapping_sub(state.decreased_at) > state.base_rtt {
            let cut = scale(self.gamma, ONE - ratio(self.target, mean)).min(ONE / 2);
            state.window -= scale(state.window, cut);
            state.decreased_at = now;
        }
    }

    /// `cwnd += inc_bytes/cwnd`, and η when a round trip has passed since it was last added.
    #[inline(never)]
    fn fulfill_adjustment(&self, state: &mut State, now: u32) {
        let gathered = u64::from(state.inc_bytes) << INC_SHIFT;
        state.window = state.window.saturating_add(saturate(gathered / u64::from(state.window.max(1))));
        if now.wrapping_sub(state.adjusted_at) >= self.base_rtt {
            state.window = state.window.saturating_add(self.eta);
            state.adjusted_at = now;
        }
        self.set_cwnd_bounds(state);
        (state.inc_bytes, state.received_bytes) = (0, 0);
    }

    /// Between a full packet, which may have been made longer than all that is let go, and the greatest window. It is there most
    /// often.
    #[inline(always)]
    fn set_cwnd_bounds(&self, state: &mut State) {
        if state.window < self.params.mss || state.window > state.wmax {
            cold_path();
            state.window = state.window.min(state.wmax).max(self.params.mss);
        }
    }

    /// The greatest window of this base round trip.
    fn bound_by(&self, state: &mut State) {
        state.wmax = scale(state.base_rtt, self.octets_per_ns).max(self.params.mss);
    }
}
