//! The members of the family that others have built, and where their values come from.

use super::alpha::Rounding;
use super::params::{AlphaRise, ClampOff, Cut, Hyper, Params, Recovery, ResetOn};
use crate::outcome::Scope;
use roci_units::{BitsPerSec, Ratio, Span};

/// The names of the presets; the first is the default.
pub const PRESETS: [&str; 7] = ["sigcomm15", "hpcc", "htsim", "isekai", "surf", "swcc", "lst-table2"];

const MBPS: u32 = 1_000;
const MBYTES_PER_SEC: u32 = 8_000;

impl Params {
    /// The preset `name` for a link of `link`, or `None` where there is no such preset.
    ///
    /// Only `hpcc` and `htsim` depend on the link's rate.
    pub fn preset(name: &str, link: BitsPerSec) -> Option<Self> {
        let link_kbps = link.as_kbps();
        Some(match name {
            "sigcomm15" => sigcomm15(),
            "hpcc" => hpcc(link_kbps),
            "htsim" => htsim(link_kbps),
            "isekai" => isekai(),
            "surf" => surf(),
            "swcc" => swcc(),
            "lst-table2" => lst_table2(),
            _ => return None,
        })
    }
}

/// Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015: the equations and the state
/// machine of §3, the values of §5 and Figure 14.
///
/// The paper leaves open R_HAI, the least rate and the width of its numbers: 200 Mb/s, one R_AI, and 24 bits
/// (within 10⁻⁵ of the real numbers) are our choice. Its CNPs are 50 µs apart, so a cooldown would change nothing.
fn sigcomm15() -> Params {
    Params {
        g: Ratio::new(1, 256),
        rai_kbps: 40 * MBPS,
        rhai_kbps: 200 * MBPS,
        rmin_kbps: 40 * MBPS,
        first_alpha: Ratio::ONE,
        first_rate: Ratio::ONE,
        cut: Cut::AtOnce,
        decrease_interval: Span::ZERO,
        alpha_rise: AlphaRise::OnCnp,
        alpha_timer: Span::from_micros(55),
        increase_timer: Span::from_micros(55),
        reset_on: ResetOn::Cut,
        byte_counter: 10_000_000,
        threshold: 5,
        recovery: Recovery::Below,
        hyper: Hyper::MinStage,
        clamp: true,
        clamp_off: ClampOff::Plain,
        cnp_gap: Span::from_micros(50),
        cnp_scope: Scope::Qp,
        limiter: Scope::Qp,
        alpha_bits: 24,
        alpha_rounding: Rounding::Down,
        rate_rounding: Rounding::Nearest,
    }
}

/// The ns-3 model that came with HPCC (alibaba-edu/High-Precision-Congestion-Control): the state machine of
/// `rdma-hw.cc` with the values of its `run.py`, which scales the increments by the link's rate over 25 Gb/s.
///
/// Every acknowledgement of a marked packet is a CNP there, so our receiver answers each marked packet and the
/// decrease period does the rest. `run.py` has a least rate of 1 Gb/s at 25 Gb/s and above; below that we scale it
/// too, since ten flows would fill a 10 Gb/s link with it for ever.
fn hpcc(link_kbps: u32) -> Params {
    let scaled = |mbps_at_25_gbps: u64| {
        let kbps = Ratio::new(link_kbps, 25_000 * MBPS).of(mbps_at_25_gbps * u64::from(MBPS));
        u32::try_from(kbps.max(1)).unwrap_or(u32::MAX)
    };
    Params {
        rai_kbps: scaled(5),
        rhai_kbps: scaled(50),
        rmin_kbps: scaled(1_000).min(1_000 * MBPS),
        cut: Cut::ByFlag,
        decrease_interval: Span::from_micros(4),
        alpha_rise: AlphaRise::ByFlag,
        alpha_timer: Span::from_micros(1),
        increase_timer: Span::from_micros(300),
        byte_counter: 0,
        threshold: 1,
        recovery: Recovery::Through,
        hyper: Hyper::AfterOne,
        clamp: false,
        clamp_off: ClampOff::UnlessStageZero,
        cnp_gap: Span::ZERO,
        ..sigcomm15()
    }
}

/// csg-htsim's `dcqcn.cpp`: R_AI and R_HAI a twentieth and a tenth of the link's rate, fast recovery through stage
/// F, and a hyper increase that grows with the stage. The least rate, which it needs so that a flow cannot stop,
/// is the link's over 1000.
///
/// Departs from it in one point: the target is bounded by the link's rate here, there only the rate is.
fn htsim(link_kbps: u32) -> Params {
    Params {
        rai_kbps: (link_kbps / 20).max(1),
        rhai_kbps: (link_kbps / 10).max(1),
        rmin_kbps: (link_kbps / 1_000).max(1),
        recovery: Recovery::Through,
        hyper: Hyper::Scaled,
        ..sigcomm15()
    }
}

/// google/isekai's integer model of the ConnectX firmware: alpha of 10 bits truncated, g = 5/1024, a first CNP that
/// leaves 85 %, a byte counter of 32767 units of 64 octets, and the firmware's `clamp_tgt_rate_after_time_inc`,
/// which moves the target at the first cut after an increase.
///
/// Its least decrease factor of 50 % never binds, as alpha is below one. Rates there have a unit of their own; ours
/// is 1 kb/s. CNP gap and least rate are the firmware's defaults, 4 µs and 1 Mb/s.
fn isekai() -> Params {
    Params {
        g: Ratio::new(5, 1024),
        rai_kbps: 5 * MBPS,
        rhai_kbps: 50 * MBPS,
        rmin_kbps: MBPS,
        first_alpha: Ratio::new(1023, 1024),
        first_rate: Ratio::new(85, 100),
        cut: Cut::ByFlag,
        decrease_interval: Span::from_micros(4),
        alpha_rise: AlphaRise::ByFlag,
        alpha_timer: Span::from_micros(1),
        increase_timer: Span::from_micros(300),
        byte_counter: 32_767 * 64,
        threshold: 1,
        clamp: false,
        clamp_off: ClampOff::UnlessStageZero,
        cnp_gap: Span::from_micros(4),
        alpha_bits: 10,
        rate_rounding: Rounding::Down,
        ..sigcomm15()
    }
}

/// SLAC's SURF firmware (`ethernet/RoCEv2/rtl/RoCEv2Dcqcn.vhd` and its three processes) with the values that its
/// registers have after reset: alpha of 10 bits rounded to the nearest, one limiter for the port, no byte counter.
///
/// The periods of the VHDL are counts of a 156.25 MHz clock (625, 8594, 234375); its state machines spend one to
/// three clocks more per period, which we leave out, and it halves R_C and R_T one by one, which can lose one unit
/// more. It receives CNPs only, so the gap is that of the receiver in front of which it was built, a ConnectX, whose
/// driver's documentation has it as the least time between CNPs from the port (`min_time_between_cnps`): senders that
/// meet there share it.
fn surf() -> Params {
    Params {
        g: Ratio::new(4, 1024),
        rai_kbps: 6 * MBYTES_PER_SEC,
        rhai_kbps: 12 * MBYTES_PER_SEC,
        rmin_kbps: 10 * MBYTES_PER_SEC,
        first_alpha: Ratio::new(1023, 1024),
        cut: Cut::ByFlag,
        decrease_interval: Span::from_micros(4),
        alpha_rise: AlphaRise::ByFlag,
        alpha_timer: Span::from_micros(55),
        increase_timer: Span::from_micros(1_500),
        reset_on: ResetOn::Cnp,
        byte_counter: 0,
        hyper: Hyper::AfterOne,
        clamp: false,
        clamp_off: ClampOff::UnlessStageZero,
        cnp_gap: Span::from_micros(4),
        cnp_scope: Scope::Port,
        limiter: Scope::Port,
        alpha_bits: 10,
        alpha_rounding: Rounding::Nearest,
        rate_rounding: Rounding::Down,
        ..sigcomm15()
    }
}

/// SwCC's C program (RC4ML/SwCC): 16.16 fixed point, one 55 µs period for alpha and increase, 10 MiB, no hyper
/// increase, and a CNP gap that is a variable of the core's program and so is shared by its queue pairs.
///
/// The program has no least rate and no bound by the link; a rate there is a whole number of MB/s, so 1 MB/s is the
/// least that still moves, and the link bounds every limiter here. Defects of the published program (an update with
/// another queue pair's alpha, a lost event) are not reproduced.
fn swcc() -> Params {
    Params {
        rai_kbps: 5 * MBYTES_PER_SEC,
        rhai_kbps: 5 * MBYTES_PER_SEC,
        rmin_kbps: MBYTES_PER_SEC,
        byte_counter: 10 << 20,
        hyper: Hyper::None,
        cnp_scope: Scope::Port,
        alpha_bits: 16,
        rate_rounding: Rounding::Down,
        ..sigcomm15()
    }
}

/// The three-sender hardware test of the LST front-end paper, Table II, on the firmware that `surf` describes.
///
/// Where the paper is silent: a CNP gap of 4 µs over the port, which is the default of its receiver, a ConnectX-5, and a
/// least rate of 10 MB/s and a first alpha of one, which are our choice.
fn lst_table2() -> Params {
    Params {
        g: Ratio::new(1, 256),
        first_alpha: Ratio::ONE,
        decrease_interval: Span::from_micros(3),
        alpha_timer: Span::from_micros(40),
        increase_timer: Span::from_millis(2),
        clamp: true,
        ..surf()
    }
}
