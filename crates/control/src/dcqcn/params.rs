//! The switches by which the implementations of DCQCN differ.

use super::alpha::{Estimator, Rounding};
use crate::outcome::Scope;
use roci_units::{Ratio, Span};

/// When a CNP cuts the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At once, unless the last cut was less than the decrease interval ago. A CNP in that cooldown does not cut
    /// later either; it still counts for alpha.
    AtOnce,
    /// At the end of the decrease period in which it came; periods run freely from the first CNP on.
    ByFlag,
}

/// When alpha rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaRise {
    /// With each CNP, after the cut, which restarts the alpha timer (SIGCOMM 2015, §5).
    OnCnp,
    /// At the end of the alpha period in which a CNP came; periods run freely from the first CNP on. The first CNP
    /// sets alpha and does not raise it as well.
    ByFlag,
}

/// What restarts the increase timer and the byte counter and sets their stages to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOn {
    /// Each CNP, whether it cuts or not.
    Cnp,
    /// Each cut.
    Cut,
}

/// What a cut does to the target rate while the clamp is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClampOff {
    /// Nothing.
    Plain,
    /// It sets the target to the rate before the cut, unless there was no increase since the last reset. So the
    /// first cut after an increase still moves the target and the cuts behind it do not. (Where each CNP resets
    /// the stage, as in SURF, the stage is zero at every cut but one that an increase came just before.)
    UnlessStageZero,
}

/// Up to which stage an increase is fast recovery, with `F` the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Stages 1 to F − 1, this increase counted (SIGCOMM 2015; SURF).
    Below,
    /// Stages 1 to F (HPCC's code, which compares before it counts; htsim).
    Through,
}

/// When and by how much the target rises faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hyper {
    /// Never.
    None,
    /// By R_HAI from the second stage after recovery on: one additive step lies between (HPCC's code; SURF).
    AfterOne,
    /// By R_HAI once the smaller stage is above F (SIGCOMM 2015).
    MinStage,
    /// By R_HAI · (smaller stage − F) once the smaller stage is above F (htsim).
    Scaled,
}

/// A member of the family: every parameter and switch.
///
/// Which stage counts: with a byte counter there are two, and "any stage" is the larger, "the smaller stage" the
/// smaller; without one there is the timer's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The gain g.
    pub g: Ratio,
    /// R_AI in kb/s.
    pub rai_kbps: u32,
    /// R_HAI in kb/s.
    pub rhai_kbps: u32,
    /// The least rate in kb/s; where a link is slower, the link's.
    pub rmin_kbps: u32,
    /// Alpha when the first CNP of a queue pair comes.
    pub first_alpha: Ratio,
    /// What the first CNP leaves of rate and target, before the cut that it causes like any other.
    pub first_rate: Ratio,
    /// When a CNP cuts.
    pub cut: Cut,
    /// The period of [`Cut::ByFlag`], the cooldown of [`Cut::AtOnce`]; zero: no cooldown.
    pub decrease_interval: Span,
    /// When alpha rises.
    pub alpha_rise: AlphaRise,
    /// The period of alpha.
    pub alpha_timer: Span,
    /// The period T of the increase timer.
    pub increase_timer: Span,
    /// What resets the increase timer, the byte counter and the stages.
    pub reset_on: ResetOn,
    /// Octets B of payload between increases by the byte counter; zero: none.
    pub byte_counter: u32,
    /// The threshold F of the stages.
    pub threshold: u32,
    /// Which stages are fast recovery.
    pub recovery: Recovery,
    /// The hyper increase.
    pub hyper: Hyper,
    /// Whether each cut sets the target to the rate before it.
    pub clamp: bool,
    /// What a cut does to the target otherwise.
    pub clamp_off: ClampOff,
    /// The least time between two CNPs that a receiver sends.
    pub cnp_gap: Span,
    /// Whether that gap is kept per queue pair or over the port.
    pub cnp_scope: Scope,
    /// Whether each queue pair has a limiter or the port has one.
    pub limiter: Scope,
    /// Fractional bits of alpha, 4 to 30.
    pub alpha_bits: u8,
    /// Rounding of alpha's product.
    pub alpha_rounding: Rounding,
    /// Rounding of what a cut takes away, and of the half-way step of an increase.
    pub rate_rounding: Rounding,
}

impl Params {
    /// Alpha's arithmetic. The gain is rounded to the nearest that the width holds, and is at least one unit.
    pub(super) fn estimator(&self) -> Estimator {
        let gain = u32::try_from(self.g.fixed(u32::from(self.alpha_bits))).unwrap_or(u32::MAX);
        let one = 1u32 << self.alpha_bits;
        Estimator { bits: self.alpha_bits, gain: gain.clamp(1, one), rounding: self.alpha_rounding }
    }
}
