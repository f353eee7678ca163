//! DCQCN with the memory that its fluid model leaves out: the gap that a notification point keeps, and timers that begin
//! anew with each CNP.
//!
//! A flow of R packets per second, each marked with probability p, meets marks at h = −R·ln(1 − p) per second. Its
//! notification point is blind for τ behind each CNP, so that CNPs are a renewal process: n = h/(1 + hτ) of them come per
//! second, and none follows within t of the one before with probability S(t) = e^(−h(t − τ)), one up to τ. The timer T
//! begins anew with each CNP, so that the kth increase behind one is met with S(kT): there are n·ΣS(kT) increases per
//! second, of which those with k > F are additive, and n·ΣS(kτ′) decays of alpha. The byte counter is left out: in the
//! figure's scenarios CNPs come ten times and more before it runs out.
//!
//! **At rest**, alpha is n over n and the decays. From one CNP to the next R falls by Rα/2, then gets half way to R_T at each
//! increase, and R_T rises by R_AI before each additive one. The p at which the mean of that is zero is found by
//! bisection, with the exact mean over the number of increases.
//!
//! **Near rest**, with x̂ for a small change of x at e^(st), ĥ = C/N·p̂/(1 − p)·e^(−sτ*), for what leaves the queue of a busy link
//! leaves it at C, however fast it came; and
//!
//! - n̂ = ĥ / ((1 + hτ)(1 + h(1 − e^(−sτ))/s)): who was told just now is deaf to marks;
//! - increases: Σ S(kT)·(n̂·e^(−skT) − n·ĥ·(1 − e^(−s(kT − τ)))/s), for each remembers the marks since its CNP;
//! - and the equations of [`super::fluid`] for α, R_T and R with these in place of its own, where means of products are
//!   products of means.
//!
//! The memory is what decides: an increase may be F·T behind the CNP that it counts from, a third of the loop's period.
//! Products of means in place of means of products cost accuracy: a test that draws flows lets the phase be off by 6°.

use super::fluid::{Fluid, phase_margin};
use num_complex::Complex64;

/// The model at rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewal {
    fluid: Fluid,
    /// R.
    rate: f64,
    /// p.
    marking: f64,
    /// h.
    hazard: f64,
    /// n.
    cnps: f64,
}

/// How fast a flow increases, of what kind: per second at rest, or its small change.
struct Increases<T> {
    all: T,
    additive: T,
    decays: T,
}

/// Where S is so small that no later increase counts.
const NEVER: f64 = 1e-9;

impl Renewal {
    /// The model of `fluid`, where it rests.
    pub(super) fn at_rest(fluid: Fluid) -> Self {
        // R climbs where there are too few marks and falls where there are too many. Bisected on the logarithm.
        let (mut low, mut high) = (1e-6f64.ln(), 0.999f64.ln());
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if Self::of(fluid, middle.exp()).climb() > 0.0 { low = middle } else { high = middle }
        }
        Self::of(fluid, f64::midpoint(low, high).exp())
    }

    fn of(fluid: Fluid, marking: f64) -> Self {
        let rate = fluid.link / fluid.flows;
        let hazard = -(-marking).ln_1p() * rate;
        Self { fluid, rate, marking, hazard, cnps: hazard / (1.0 + hazard * fluid.cut_period) }
    }

    /// The queue in packets, on a marking line without an end.
    pub(super) fn queue(&self) -> f64 {
        self.fluid.kmin + self.marking / self.fluid.slope
    }

    /// How many degrees of phase the linearised loop has left where its gain is one; negative: it is unstable.
    ///
    /// A switch marks what leaves it, so that the queue's own delay is not in the loop.
    pub(super) fn phase_margin(&self) -> f64 {
        phase_margin(|omega| self.open_loop(omega))
    }

    /// The probability that no CNP follows within `time` of the one before.
    fn undisturbed(&self, time: f64) -> f64 {
        (-self.hazard * (time - self.fluid.cut_period)).min(0.0).exp()
    }

    /// What R gains on average from one CNP to the next.
    fn climb(&self) -> f64 {
        let Increases { decays, .. } = self.increases();
        let alpha = self.cnps / (self.cnps + decays);
        let (mut rate, mut target) = (-self.rate * alpha / 2.0, 0.0);
        let (mut mean, mut met, mut count) = (0.0, 1.0, 1.0);
        while met > NEVER {
            let next = self.undisturbed(count * self.fluid.timer);
            mean += (met - next) * rate;
            if count > self.fluid.stages {
                target += self.fluid.increment;
            }
            rate = f64::midpoint(rate, target);
            (met, count) = (next, count + 1.0);
        }
        mean
    }

    fn increases(&self) -> Increases<f64> {
        let sum = |period: f64, first: f64| {
            self.undisturbed(first * period) / (1.0 - (-self.hazard * period).exp()) * self.cnps
        };
        // The first may be certain: a timer that ends within the gap. Ours do not.
        let Fluid { timer, alpha_period, stages, .. } = self.fluid;
        Increases { all: sum(timer, 1.0), additive: sum(timer, stages + 1.0), decays: sum(alpha_period, 1.0) }
    }

    /// The changes of the increases at `s`, for a change of n by `cnps` and of h by one.
    fn changed(&self, s: Complex64, cnps: Complex64) -> Increases<Complex64> {
        let sum = |period: f64, first: f64| {
            let (mut sum, mut count) = (Complex64::ZERO, first);
            loop {
                let time = count * period;
                let met = self.undisturbed(time);
                if met < NEVER {
                    return sum;
                }
                let marks = (1.0 - (-s * (time - self.fluid.cut_period)).exp()) / s;
                sum += met * (cnps * (-s * time).exp() - self.cnps * marks);
                count += 1.0;
            }
        };
        let Fluid { timer, alpha_period, stages, .. } = self.fluid;
        Increases { all: sum(timer, 1.0), additive: sum(timer, stages + 1.0), decays: sum(alpha_period, 1.0) }
    }

    /// The loop, cut open at the queue: the change of the queue that a change of it at ω causes, with its sign turned.
    fn open_loop(&self, omega: f64) -> Complex64 {
        let Self { rate, hazard, cnps, ref fluid, .. } = *self;
        let s = Complex64::new(0.0, omega);
        let late = (-s * fluid.delay).exp();
        let told = (1.0 - (-s * fluid.cut_period).exp()) / s;
        let changed_cnps = 1.0 / (1.0 + hazard * fluid.cut_period) / (1.0 + hazard * told);
        let rest = self.increases();
        let changed = self.changed(s, changed_cnps);
        let alpha = cnps / (cnps + rest.decays);
        let lead = fluid.increment * rest.additive / cnps;

        // Per change of h: of alpha, and of R_T beside what it follows of R.
        let changed_alpha = fluid.gain * ((1.0 - alpha) * changed_cnps - alpha * changed.decays)
            / (s + fluid.gain * (cnps + rest.decays));
        let follows = cnps / (s + cnps);
        let changed_target = (fluid.increment * changed.additive - lead * changed_cnps) / (s + cnps);
        // R: its own damping, and per change of h.
        let damping = s + alpha * cnps / 2.0 + rest.all / 2.0 * (1.0 - follows);
        let driven = rest.all / 2.0 * changed_target + lead * changed.all / 2.0
            - rate * (cnps * changed_alpha + alpha * changed_cnps) / 2.0;
        let by_mark = driven * late * rate / (1.0 - self.marking);
        -by_mark / damping * fluid.slope * fluid.flows / s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Random;

    /// 40 Gb/s of packets of 1106 octets on a marking line of 960 KB.
    fn flows(flows: f64) -> Fluid {
        Fluid {
            flows,
            link: 4.52e6,
            gain: 1.0 / 256.0,
            cut_period: 50e-6,
            alpha_period: 55e-6,
            timer: 55e-6,
            byte_counter: 10_000.0,
            stages: 5.0,
            increment: 4_520.0,
            slope: 1.0 / 887.0,
            kmin: 37.0,
            delay: 4e-6,
        }
    }

    /// CNPs drawn packet by packet, each marked by lot, and timers that begin anew with each.
    #[test]
    fn cnps_and_increases_come_as_often_as_when_they_are_drawn() {
        let model = Renewal::at_rest(flows(16.0));
        let mut random = Random::new(1, 0);
        let packets = 4_000_000u32;
        let (mut cnps, mut increases, mut additive) = (0u32, 0.0, 0.0);
        let mut last = 0.0f64;
        for packet in 0..packets {
            let now = f64::from(packet) / model.rate;
            let marked = random.below(1 << 32) as f64 / (1u64 << 32) as f64 <= model.marking;
            if marked && now - last >= model.fluid.cut_period {
                let met = ((now - last) / model.fluid.timer).floor();
                increases += met;
                additive += (met - model.fluid.stages).max(0.0);
                cnps += 1;
                last = now;
            }
        }
        let seconds = f64::from(packets) / model.rate;
        let expected = model.increases();
        for (drawn, expected) in
            [(f64::from(cnps), model.cnps), (increases, expected.all), (additive, expected.additive)]
        {
            let ratio = drawn / seconds / expected;
            assert!((0.97..1.03).contains(&ratio), "{ratio}: {drawn} drawn, {expected} per second expected");
        }
    }

    /// A change that lasts is answered as the difference of two states at rest says.
    #[test]
    fn a_slow_change_is_the_difference_of_two_states() {
        let model = Renewal::at_rest(flows(12.0));
        let other = Renewal::of(model.fluid, model.marking * 1.0001);
        let by = other.hazard - model.hazard;
        let s = Complex64::new(0.0, 1e-2);
        let told = (1.0 - (-s * model.fluid.cut_period).exp()) / s;
        let cnps = 1.0 / (1.0 + model.hazard * model.fluid.cut_period) / (1.0 + model.hazard * told);
        let changed = model.changed(s, cnps);
        let (before, after) = (model.increases(), other.increases());
        for (linear, difference) in [
            (cnps.re, other.cnps - model.cnps),
            (changed.all.re, after.all - before.all),
            (changed.additive.re, after.additive - before.additive),
            (changed.decays.re, after.decays - before.decays),
        ] {
            assert!((linear * by / difference - 1.0).abs() < 1e-3, "{} and {difference}", linear * by);
        }
    }

    #[test]
    fn more_flows_and_a_longer_delay_take_phase_away() {
        let margin = |fluid| Renewal::at_rest(fluid).phase_margin();
        assert!(margin(flows(12.0)) > margin(flows(32.0)));
        assert!(margin(flows(12.0)) > margin(Fluid { delay: 30e-6, ..flows(12.0) }));
    }

    /// A phase margin says little of a loop whose phase is below −180° where its gain is high. Open, this one has no pole
    /// to the right and one at zero: it is stable where 1 + L turns by +90° from there on, and not where it turns back.
    #[test]
    fn the_margin_has_the_sign_that_nyquist_gives() {
        for (count, steepness) in
            [2.0, 4.0, 8.0, 16.0, 32.0, 64.0].into_iter().flat_map(|count| [(count, 1.0), (count, 0.05)])
        {
            let fluid = flows(count);
            let model = Renewal::at_rest(Fluid { slope: fluid.slope * steepness, ..fluid });
            let arguments = (0..12_000).map(|step| 10f64.powf(-1.0 + 7.0 * f64::from(step) / 12_000.0));
            let arguments: Vec<f64> = arguments.map(|omega| (1.0 + model.open_loop(omega)).arg()).collect();
            let turn: f64 = arguments
                .windows(2)
                .map(|pair| {
                    let turn = pair[1] - pair[0];
                    turn - std::f64::consts::TAU * (turn / std::f64::consts::TAU).round()
                })
                .sum();
            let (turn, margin) = (turn.to_degrees(), model.phase_margin());
            assert!((turn - 90.0).abs() < 5.0 || turn < 0.0, "{count}: {turn}");
            assert_eq!(turn > 0.0, margin > 0.0, "{count} on {steepness}: {turn} and {margin}");
        }
    }

    /// One flow, by what the law does: marks drawn at the rate of what leaves the queue, cuts, timers that begin anew.
    struct Drawn {
        rate: f64,
        target: f64,
        alpha: f64,
        stage: f64,
        deaf: f64,
        increase: f64,
        decay: f64,
    }

    impl Drawn {
        fn mark(&mut self, now: f64, fluid: &Fluid) {
            if now < self.deaf {
                return;
            }
            self.target = self.rate;
            self.rate *= 1.0 - self.alpha / 2.0;
            self.alpha += fluid.gain * (1.0 - self.alpha);
            self.stage = 0.0;
            self.deaf = now + fluid.cut_period;
            self.increase = now + fluid.timer;
            self.decay = now + fluid.alpha_period;
        }

        fn timers(&mut self, now: f64, fluid: &Fluid) {
            while self.decay <= now {
                self.alpha *= 1.0 - fluid.gain;
                self.decay += fluid.alpha_period;
            }
            while self.increase <= now {
                self.stage += 1.0;
                if self.stage > fluid.stages {
                    self.target += fluid.increment;
                }
                self.rate = f64::midpoint(self.rate, self.target);
                self.increase += fluid.timer;
            }
        }
    }

    /// Flows whose marking swings by a quarter about the model's: their mean rate follows as the open loop says.
    #[test]
    fn drawn_flows_answer_a_swing_of_the_marking_as_the_loop_says() {
        let fluid = Fluid { slope: flows(64.0).slope / 20.0, ..flows(64.0) };
        let model = Renewal::at_rest(fluid);
        let (omega, swing) = (1_000.0, 0.25);
        let period = std::f64::consts::TAU / omega;
        let (settled, end) = (20.0 * period, 60.0 * period - 1e-9);
        let mut random = Random::new(1, 0);
        let mut uniform = move || (random.below(1 << 32) as f64 + 1.0) / (1u64 << 32) as f64;
        // The first harmonic of the rate over that of the marking, which is sin(ωt) = Im e^(jωt).
        let (mut harmonic, mut looks) = (Complex64::ZERO, 0u32);
        for _ in 0..1_500 {
            let mut flow = Drawn {
                rate: model.rate,
                target: model.rate,
                alpha: model.cnps / (model.cnps + model.increases().decays),
                stage: 0.0,
                deaf: 0.0,
                increase: fluid.timer * uniform(),
                decay: fluid.alpha_period * uniform(),
            };
            // Marks by thinning those of the highest probability.
            let most = model.hazard * (1.0 + swing);
            let (mut now, mut look) = (0.0, settled);
            while now < end {
                let next = now - uniform().ln() / most;
                while look < next.min(end) {
                    flow.timers(look, &fluid);
                    harmonic += Complex64::from_polar(flow.rate, -omega * look);
                    looks += 1;
                    look += period / 20.0;
                }
                now = next;
                flow.timers(now, &fluid);
                if uniform() * most <= model.hazard * (1.0 + swing * (omega * now).sin()) {
                    flow.mark(now, &fluid);
                }
            }
        }
        let answer = harmonic * Complex64::I * 2.0 / f64::from(looks);
        let by_hazard = answer / (model.hazard * swing);
        let s = Complex64::new(0.0, omega);
        let late = (-s * fluid.delay).exp();
        let drawn = -by_hazard * late * model.rate / (1.0 - model.marking) * fluid.slope * fluid.flows / s;
        let ratio = drawn / model.open_loop(omega);
        assert!((0.75..1.25).contains(&ratio.norm()), "{drawn} and {}", model.open_loop(omega));
        assert!(ratio.arg().to_degrees().abs() < 6.0, "{} degrees", ratio.arg().to_degrees());
    }
}
