//! What a time series records of a law.

use crate::outcome::Credit;

/// What a law shows of one queue pair. What it has not is [`Sample::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The rate in kb/s of octets on the wire: DCQCN's R_C, HPCC's R.
    pub rate_kbps: u32,
    /// The rate aimed for in kb/s: DCQCN's R_T.
    pub target_kbps: u32,
    /// The window in octets.
    pub window: u32,
    /// The estimate of congestion times 2³⁰: alpha of DCQCN and DCTCP, U of HPCC, which may exceed one.
    pub alpha_q30: u32,
    /// The round trip that it used last, in nanoseconds.
    pub rtt_ns: u32,
    /// Increases by the timer since the last reset, or HPCC's incStage; zero from others.
    pub stage: u16,
    /// Increases by the byte counter since the last reset.
    pub byte_stage: u16,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            rate_kbps: Self::NONE,
            target_kbps: Self::NONE,
            window: Self::NONE,
            alpha_q30: Self::NONE,
            rtt_ns: Self::NONE,
            stage: 0,
            byte_stage: 0,
        }
    }
}

impl Sample {
    /// The law has no such quantity, or nothing limits it.
    pub const NONE: u32 = Credit::UNLIMITED;

    /// The estimate of congestion, for people and reports; never used to compute with.
    pub fn alpha_as_f64(&self) -> Option<f64> {
        (self.alpha_q30 != Self::NONE).then(|| f64::from(self.alpha_q30) / f64::from(1u32 << 30))
    }

    /// A time, or none where it is zero, as before the first one.
    pub(crate) const fn known(nanos: u32) -> u32 {
        if nanos == 0 { Self::NONE } else { nanos }
    }
}
