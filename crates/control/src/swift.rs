//! Swift: a window that holds the delay at a target (Kumar et al., SIGCOMM 2020, Algorithm 1).
//!
//! Below the target delay the window grows by `ai` packets in each round trip; above it it is cut by
//! `β·(delay − target)/delay`, at most by `max_mdf` and at most once in a round trip. The target is a base, a share for
//! each hop, and a part that grows as the window shrinks (§3.5: flow scaling), so that many flows can share a queue. A
//! window below one packet sends one packet in each `rtt/cwnd` (§3.4).
//!
//! - The delay is the whole round trip: the engine knows of no time in the peer's endpoint, so there is one window, the
//!   fabric's.
//! - Growth comes in steps of `ai` when a window of octets has been acknowledged, not in parts with each acknowledgement:
//!   never more than one step behind the paper's sum, and the window, with it the target, changes once in a round trip.
//!   That is when Swift divides and takes a root, by 32 bits; the usual acknowledgement compares and adds. Below one
//!   packet each acknowledgement changes the window, and there is at most one in a round trip then.
//! - `cwnd` is in packets, 16.16; the engine's window is its whole octets.

mod keys;
#[cfg(test)]
mod tests;

pub use keys::{PRESETS, REGISTERS};

use crate::event::{Class, Event};
use crate::fixed::{ONE, fraction, nanos, ratio, rtt, saturate, scale, span_nanos};
use crate::outcome::{Credit, Outcome};
use crate::sample::Sample;
use roci_units::{Ratio, Span};

/// Octets of a full packet on the wire besides its payload: Ethernet, IPv4, UDP, BTH, ICRC, preamble and gap.
const OVERHEAD: u32 = 82;

/// Swift's parameters, by the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// ai: packets that the window grows by in a round trip.
    pub ai: Ratio,
    /// β: how strongly an excess of delay cuts.
    pub beta: Ratio,
    /// max_mdf: the greatest cut.
    pub max_mdf: Ratio,
    /// The base of the target delay.
    pub base_target: Span,
    /// ħ: what each hop adds to the target.
    pub per_hop: Span,
    /// Hops where the packets do not tell.
    pub hops: u32,
    /// fs_range: the most that flow scaling adds to the target.
    pub fs_range: Span,
    /// fs_min_cwnd: the window in packets at which it adds all of that.
    pub fs_min_cwnd: Ratio,
    /// fs_max_cwnd: the window in packets from which it adds nothing.
    pub fs_max_cwnd: Ratio,
    /// min_cwnd, in packets.
    pub min_cwnd: Ratio,
    /// max_cwnd, in packets.
    pub max_cwnd: Ratio,
    /// The first window, in packets.
    pub first_cwnd: Ratio,
    /// RETX_RESET_THRESHOLD: timeouts in a row after which the window is the least.
    pub retx_reset: u32,
    /// Octets of a full packet.
    pub mss: u32,
}

/// The law: its parameters, and what its arithmetic derives from them, in 16.16 and nanoseconds.
#[derive(Clone, Debug)]
pub struct Swift {
    params: Params,
    ai: u32,
    beta: u32,
    max_mdf: u32,
    base: u32,
    per_hop: u32,
    fs_range: u32,
    /// α of flow scaling, in nanoseconds times 2¹².
    fs_alpha: u32,
    /// −β of flow scaling, in nanoseconds.
    fs_offset: u32,
    fs_max: u32,
    min_cwnd: u32,
    max_cwnd: u32,
}

/// What Swift remembers of one queue pair: eight words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct State {
    /// The link's rate in kb/s.
    pub link_kbps: u32,
    /// cwnd in packets, 16.16.
    pub cwnd: u32,
    /// The target delay of this window and these hops, in nanoseconds.
    pub target: u32,
    /// The hops that the target counts.
    pub hops: u32,
    /// Octets acknowledged below the target since the window grew.
    pub grown: u32,
    /// t_last_decrease in nanoseconds.
    pub decreased_at: u32,
    /// The last round trip in nanoseconds.
    pub rtt: u32,
    /// retransmit_cnt: timeouts since the last acknowledgement.
    pub timeouts: u32,
}

impl Swift {
    /// The classes it wants to hear.
    pub const TRACES: Class = Class::ACK.with(Class::LOSS);

    /// The law with these parameters.
    pub fn new(params: Params) -> Self {
        let mut law = Self {
            params,
            ai: 0,
            beta: 0,
            max_mdf: 0,
            base: 0,
            per_hop: 0,
            fs_range: 0,
            fs_alpha: 0,
            fs_offset: 0,
            fs_max: 0,
            min_cwnd: 0,
            max_cwnd: 0,
        };
        law.derive();
        law
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// α = fs_range / (1/√fs_min − 1/√fs_max) and β = −α/√fs_max (equation 3), from roots of 12 fractional bits.
    fn derive(&mut self) {
        let p = &self.params;
        (self.ai, self.beta) = (fraction(p.ai).max(1), fraction(p.beta).max(1));
        self.max_mdf = fraction(p.max_mdf).max(1);
        (self.base, self.per_hop) = (span_nanos(p.base_target), span_nanos(p.per_hop));
        self.fs_range = span_nanos(p.fs_range);
        let most = fraction(p.fs_max_cwnd);
        let least = fraction(p.fs_min_cwnd).clamp(1, most - 1);
        self.fs_max = most;
        let (low, high) = (u64::from(root(least).max(1)), u64::from(root(most).max(2)));
        let span = high.saturating_sub(low).max(1);
        // Below 2²⁰ ns, so that the products fit.
        let alpha = (u64::from(self.fs_range) * low * high / span).min((1 << 32) - 1);
        self.fs_alpha = saturate(alpha);
        self.fs_offset = saturate(alpha / high);
        self.min_cwnd = fraction(p.min_cwnd).max(1);
        self.max_cwnd = fraction(p.max_cwnd).max(self.min_cwnd);
    }

    /// A queue pair that has sent nothing, on a link of `link_kbps`.
    pub fn connect(&self, link_kbps: u32) -> State {
        let cwnd = fraction(self.params.first_cwnd).clamp(self.min_cwnd, self.max_cwnd);
        let hops = self.params.hops;
        let target = self.target_delay(cwnd, hops);
        State { link_kbps, cwnd, target, hops, ..State::default() }
    }

    /// The credit that `state` stands for: the window, or one packet in each `rtt/cwnd` below one.
    pub fn credit(&self, state: &State) -> Credit {
        if state.cwnd >= ONE {
            let window = scale(state.cwnd, self.params.mss);
            return Credit { window, ..Credit::FREE };
        }
        let bits = u64::from(self.params.mss + OVERHEAD) * 8 * u64::from(state.cwnd) * 1_000_000;
        let kbps = saturate((bits / u64::from(state.rtt.max(1))) >> 16).max(1);
        // A limiter at the link's rate limits nothing, so it is taken out of the pacer's way.
        let rate_kbps = if kbps < state.link_kbps { kbps } else { Credit::UNLIMITED };
        Credit { rate_kbps, window: self.params.mss, ..Credit::FREE }
    }

    /// Reacts to one event.
    #[inline]
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let before = state.cwnd;
        if event.class == Class::LOSS {
            self.on_loss(state, event);
        } else if event.acked > 0 && rtt(event).is_none() {
            // What was sent twice has no round trip, but it did arrive.
            state.timeouts = 0;
        } else if let Some(delay) = rtt(event) {
            self.on_ack(state, event, delay);
        }
        if state.cwnd != before {
            self.settle(state, before, nanos(event.now));
            outcome.credit = self.credit(state);
        }
    }

    /// What a time series records.
    pub fn sample(&self, state: &State) -> Sample {
        let credit = self.credit(state);
        Sample {
            rate_kbps: credit.rate_kbps,
            window: credit.window,
            rtt_ns: Sample::known(state.rtt),
            ..Sample::default()
        }
    }

    /// `On Receiving ACK`: grows below the target, is cut above it.
    fn on_ack(&self, state: &mut State, event: &Event<'_>, delay: u32) {
        (state.timeouts, state.rtt) = (0, delay);
        let hops = if event.hop_count > 0 { u32::from(event.hop_count) } else { self.params.hops };
        if hops != state.hops {
            (state.hops, state.target) = (hops, self.target_delay(state.cwnd, hops));
        }
        if delay < state.target {
            self.grow(state, event.acked);
        } else if Self::can_decrease(state, event) {
            state.cwnd = scale(state.cwnd, self.factor(state.target, delay));
        }
    }

    /// `On RTO` and `On Fast Recovery`.
    fn on_loss(&self, state: &mut State, event: &Event<'_>) {
        state.timeouts = if event.timeout { state.timeouts.saturating_add(1) } else { 0 };
        if state.timeouts >= self.params.retx_reset {
            state.cwnd = self.min_cwnd;
        } else if Self::can_decrease(state, event) {
            state.cwnd = scale(state.cwnd, ONE - self.max_mdf);
        }
    }

    /// `cwnd += ai` once a window, or a packet where the window is less, has been acknowledged.
    #[inline]
    fn grow(&self, state: &mut State, acked: u32) {
        state.grown = state.grown.saturating_add(acked);
        let window = scale(state.cwnd.max(ONE), self.params.mss);
        if state.grown >= window {
            state.grown -= window;
            state.cwnd = state.cwnd.saturating_add(self.ai);
        }
    }

    /// Whether a round trip has passed since the last cut.
    fn can_decrease(state: &State, event: &Event<'_>) -> bool {
        nanos(event.now).wrapping_sub(state.decreased_at) >= state.rtt
    }

    /// `max(1 − β·(delay − target)/delay, 1 − max_mdf)` in 16.16.
    fn factor(&self, target: u32, delay: u32) -> u32 {
        ONE - scale(self.beta, ONE - ratio(target, delay)).min(self.max_mdf)
    }

    /// Bounds a window that has changed, and finds its target.
    fn settle(&self, state: &mut State, before: u32, now: u32) {
        state.cwnd = state.cwnd.clamp(self.min_cwnd, self.max_cwnd);
        if state.cwnd < before {
            (state.decreased_at, state.grown) = (now, 0);
        }
        state.target = self.target_delay(state.cwnd, state.hops);
    }

    /// `TargetDelay()`: equations 1 to 4. One root and one division of 32 bits.
    fn target_delay(&self, cwnd: u32, hops: u32) -> u32 {
        let scaling = self.fs_alpha / root(cwnd.min(self.fs_max)).max(1);
        let scaling = scaling.saturating_sub(self.fs_offset).min(self.fs_range);
        self.base.saturating_add(self.per_hop.saturating_mul(hops)).saturating_add(scaling)
    }
}

/// √`value`, from 16.16 to 12 fractional bits, rounded down; `value` is less than 256.
const fn root(value: u32) -> u32 {
    (value << 8).isqrt()
}
