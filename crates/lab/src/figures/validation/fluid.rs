//! DCQCN as a fluid: its fixed point, and whether the loop linearised there is stable.
//!
//! The model is that of Zhu, Ghobadi, Misra and Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY"
//! (CoNEXT 2016, §3), for N equal flows. A packet is marked with probability p. Then, with rates in packets per second:
//!
//! - a = 1 − (1 − p)^(τR): the chance of a CNP in the period τ, after each of which the rate is cut;
//! - a′ = 1 − (1 − p)^(τ′R): the same in alpha's period τ′;
//! - b = p / ((1 − p)^(−B) − 1) and d = p / ((1 − p)^(−TR) − 1): the increases by the byte counter and by the timer,
//!   per packet sent; c = b·(1 − p)^(FB) and e = d·(1 − p)^(FTR): those of them behind F stages, which are additive;
//!
//! - dα/dt = g/τ′ · (a′ − α)
//! - dR_T/dt = −(R_T − R)·a/τ + R_AI·R·(c + e)
//! - dR/dt = −R·α·a/(2τ) + (R_T − R)/2 · R·(b + d)
//! - dq/dt = N·R − C
//!
//! At rest R = C/N and α = a′; the other two give R_T − R = τ·R_AI·R·(c + e)/a and a²·α = τ²·R_AI·R·(b + d)·(c + e),
//! whose one root p gives the queue by the marking line.
//!
//! The model takes CNPs as independent from one period τ to the next, and increases as if they followed p at once. What comes
//! of a notification point's gap and of timers that begin anew is in [`super::renewal`].

use num_complex::Complex64;
use std::f64::consts::{PI, TAU};

/// The parameters of the model. Rates are packets per second, times seconds, and B packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fluid {
    /// N.
    pub(super) flows: f64,
    /// C.
    pub(super) link: f64,
    /// g.
    pub(super) gain: f64,
    /// τ.
    pub(super) cut_period: f64,
    /// τ′.
    pub(super) alpha_period: f64,
    /// T.
    pub(super) timer: f64,
    /// B.
    pub(super) byte_counter: f64,
    /// F.
    pub(super) stages: f64,
    /// R_AI.
    pub(super) increment: f64,
    /// The slope of the marking line, per packet of queue.
    pub(super) slope: f64,
    /// Where the marking line begins, in packets.
    pub(super) kmin: f64,
    /// The delay of the loop without its queue.
    pub(super) delay: f64,
}

impl Fluid {
    /// The marking probability at rest.
    pub(super) fn marking(&self) -> f64 {
        let rate = self.link / self.flows;
        let excess = |p: f64| {
            let terms = self.terms(p, rate);
            let Terms { a, alpha, b, c, d, e } = terms;
            a * a * alpha - self.cut_period.powi(2) * self.increment * rate * (b + d) * (c + e)
        };
        // The left side grows with p from zero, the right side falls: one root. Bisected on the logarithm.
        let (mut low, mut high) = (1e-9f64.ln(), 0.999f64.ln());
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if excess(middle.exp()) < 0.0 { low = middle } else { high = middle }
        }
        f64::midpoint(low, high).exp()
    }

    /// The queue at rest, in packets, on a marking line without an end.
    pub(super) fn queue(&self) -> f64 {
        self.kmin + self.marking() / self.slope
    }

    /// How many degrees of phase the linearised loop has left where its gain is one; negative: it is unstable.
    ///
    /// A switch marks what leaves it, so that the queue's own delay is not in the loop.
    pub(super) fn phase_margin(&self) -> f64 {
        let (p, rate) = (self.marking(), self.link / self.flows);
        let Terms { a, alpha, c, e, .. } = self.terms(p, rate);
        let target = rate + self.cut_period * self.increment * rate * (c + e) / a;
        // Derivatives by alpha, R_T, R, the R of a loop's delay ago, and p, by central differences.
        let derivative = |which: usize| {
            let rest = [alpha, target, rate, rate, p];
            let width = rest[which] * 1e-5;
            let slopes = |by: f64| {
                let mut point = rest;
                point[which] += by;
                let [alpha, target, rate, delayed, p] = point;
                self.slopes(&[alpha, target, rate], delayed, p)
            };
            let (more, less) = (slopes(width), slopes(-width));
            [0, 1, 2].map(|row: usize| (more[row] - less[row]) / (2.0 * width))
        };
        let columns = [0, 1, 2, 3, 4].map(derivative);
        phase_margin(|omega| {
            let s = Complex64::new(0.0, omega);
            let late = (-s * self.delay).exp();
            // (sI − A − D·e^(−sτ*)) x = P·e^(−sτ*), of which R is the last.
            let mut matrix = [[Complex64::ZERO; 3]; 3];
            for (place, row) in matrix.iter_mut().enumerate() {
                for (column, entry) in row.iter_mut().enumerate() {
                    *entry = Complex64::from(-columns[column][place]);
                }
                row[place] += s;
                row[2] -= late * columns[3][place];
            }
            let mut replaced = matrix;
            for (row, marked) in replaced.iter_mut().zip(columns[4]) {
                row[2] = late * marked;
            }
            -determinant(&replaced) / determinant(&matrix) * self.slope * self.flows / s
        })
    }

    /// How far at most a flow's mean rate over `seconds` lies from its share by chance: the standard deviation, as a part
    /// of it.
    ///
    /// At rest a²·α = τ²·R_AI·R·(b + d)·(c + e). What a flow meets of its cuts, increases and additive increases in so
    /// long a time are counts, and a count of n events that come by chance is off by 1/√n of itself, a cut's by √(1 − a)
    /// of that, since a period τ has one at most. Cuts count three times, for alpha follows them. The three are no
    /// independent chances: who is cut more often climbs less, so that at worst they add up. By that much the sides of
    /// the equation differ for this flow, and its rate moves until they are equal again: by that over κ, the derivative
    /// of the logarithm of left over right by the logarithm of R. The marking probability is that of all flows, and stays.
    pub(super) fn scatter(&self, seconds: f64) -> f64 {
        let (p, share) = (self.marking(), self.link / self.flows);
        let unbalance = |rate: f64| {
            let Terms { a, alpha, b, c, d, e } = self.terms(p, rate);
            (a * a * alpha / (rate * (b + d) * (c + e))).ln()
        };
        let step = 1e-4f64;
        let kappa = (unbalance(share * (1.0 + step)) - unbalance(share * (1.0 - step))) / (2.0 * step);
        let Terms { a, b, c, d, e, .. } = self.terms(p, share);
        let cuts = a / self.cut_period * seconds;
        let increases = share * (b + d) * seconds;
        let additive = share * (c + e) * seconds;
        (3.0 * ((1.0 - a) / cuts).sqrt() + (1.0 / increases).sqrt() + (1.0 / additive).sqrt()) / kappa
    }

    /// The right sides of the equations of alpha, R_T and R, where feedback was caused by `delayed`, R a loop delay ago.
    fn slopes(&self, &[alpha, target, rate]: &[f64; 3], delayed: f64, p: f64) -> [f64; 3] {
        let Terms { a, alpha: seen, b, c, d, e } = self.terms(p, delayed);
        [
            self.gain / self.alpha_period * (seen - alpha),
            -(target - rate) * a / self.cut_period + self.increment * delayed * (c + e),
            -rate * alpha * a / (2.0 * self.cut_period) + (target - rate) / 2.0 * delayed * (b + d),
        ]
    }

    fn terms(&self, p: f64, rate: f64) -> Terms {
        let unmarked = |packets: f64| (packets * (-p).ln_1p()).exp();
        let per_packet = |packets: f64| p / (-packets * (-p).ln_1p()).exp_m1();
        let b = per_packet(self.byte_counter);
        let d = per_packet(self.timer * rate);
        Terms {
            a: 1.0 - unmarked(self.cut_period * rate),
            alpha: 1.0 - unmarked(self.alpha_period * rate),
            b,
            c: b * unmarked(self.stages * self.byte_counter),
            d,
            e: d * unmarked(self.stages * self.timer * rate),
        }
    }
}

/// The terms of the model, by the names of its paper; `alpha` is a′.
struct Terms {
    a: f64,
    alpha: f64,
    b: f64,
    c: f64,
    d: f64,
    e: f64,
}

fn determinant(m: &[[Complex64; 3]; 3]) -> Complex64 {
    let minor = |a: usize, b: usize| m[1][a] * m[2][b] - m[1][b] * m[2][a];
    m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
}

/// How many degrees of phase a loop has left where its gain is one, at the least: `open_loop` is its gain at ω, cut open,
/// with a sign that makes −1 the point not to be reached.
pub(super) fn phase_margin(open_loop: impl Fn(f64) -> Complex64) -> f64 {
    let mut margin = f64::INFINITY;
    let mut before: Option<(f64, f64)> = None;
    for step in 0..4_000 {
        let omega = 10f64.powf(6.0 * f64::from(step) / 4_000.0);
        let (size, mut phase) = open_loop(omega).to_polar();
        if let Some((size_before, phase_before)) = before {
            // The phase is continuous; its branch is not.
            phase += TAU * ((phase_before - phase) / TAU).round();
            if (size_before >= 1.0) != (size >= 1.0) {
                margin = margin.min((PI + phase).to_degrees());
            }
        }
        before = Some((size, phase));
    }
    margin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 Gb/s of packets of 1000 octets, with the parameters of the paper's Table 2.
    fn paper(flows: f64) -> Fluid {
        Fluid {
            flows,
            link: 5e6,
            gain: 1.0 / 256.0,
            cut_period: 50e-6,
            alpha_period: 55e-6,
            timer: 55e-6,
            byte_counter: 10_000.0,
            stages: 5.0,
            increment: 40e6 / 8_000.0,
            slope: 0.01 / 195.0,
            kmin: 5.0,
            delay: 4e-6,
        }
    }

    #[test]
    fn at_rest_nothing_changes() {
        let fluid = paper(2.0);
        let (p, rate) = (fluid.marking(), fluid.link / fluid.flows);
        let Terms { a, alpha, c, e, .. } = fluid.terms(p, rate);
        let target = rate + fluid.cut_period * fluid.increment * rate * (c + e) / a;
        for slope in fluid.slopes(&[alpha, target, rate], rate, p) {
            assert!(slope.abs() < 1e-3 * rate, "{slope}");
        }
        assert!(target > rate);
    }

    #[test]
    fn more_flows_need_more_marking() {
        let marking: Vec<f64> =
            [2.0, 4.0, 8.0, 16.0, 32.0].into_iter().map(|flows| paper(flows).marking()).collect();
        assert!(marking.is_sorted(), "{marking:?}");
        // With the paper's Pmax of 1 % two flows rest on the line; many saturate it.
        assert!(marking[0] < 0.01 && marking[4] > 0.01, "{marking:?}");
    }

    #[test]
    fn delay_takes_phase_away() {
        let near = paper(10.0).phase_margin();
        let far = Fluid { delay: 85e-6, ..paper(10.0) }.phase_margin();
        assert!(near > far, "{near} {far}");
    }
}
