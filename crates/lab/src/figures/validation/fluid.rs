//! DCQCN as a fluid: its fixed point.
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
        let Terms { a, alpha, b, c, d, e } = fluid.terms(p, rate);
        let target = rate + fluid.cut_period * fluid.increment * rate * (c + e) / a;
        let slope_of_rate =
            -rate * alpha * a / (2.0 * fluid.cut_period) + (target - rate) / 2.0 * rate * (b + d);
        assert!(slope_of_rate.abs() < 1e-3 * rate, "{slope_of_rate}");
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
}
