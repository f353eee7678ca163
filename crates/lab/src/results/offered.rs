//! What an open-loop load offered, and what was delivered meanwhile: a source that goes by the clock waits for nobody, so that
//! the last of its flows may end long after it, and a mean until then would tell of that one flow.

use super::{FlowResult, FlowSet};
use crate::traffic::Traffic;
use crate::traffic::spec::Repeat;
use roci_units::Instant;

/// The time during which flows were offered by the clock, whatever became of those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// When the first could begin.
    pub from: Instant,
    /// None began at or after this.
    pub until: Instant,
}

impl Offered {
    /// When `traffic` offers flows by the clock in a run that lets none begin from `end` on; `None` where some of it does not, for what that
    /// is to move was offered at no time. A file of flows has no end but its last start, which may be its first.
    pub fn of(traffic: &[Traffic], end: Instant) -> Option<Self> {
        let times = traffic.iter().map(|traffic| match traffic {
            Traffic::Poisson(spec) => Some((spec.start, spec.until)),
            Traffic::Trigger(spec) => Some((spec.start, spec.until)),
            Traffic::Incast(spec) => (spec.repeat != Repeat::Once).then_some((spec.start, spec.until)),
            Traffic::Hpcc(_)
            | Traffic::Flows(_)
            | Traffic::ClosedLoop(_)
            | Traffic::Collective(_)
            | Traffic::Goal(_)
            | Traffic::Rpc(_)
            | Traffic::Permutation(_)
            | Traffic::AllToAll(_) => None,
        });
        let times: Vec<_> = times.collect::<Option<_>>()?;
        let times = times.into_iter().map(|(from, until)| (from, until.unwrap_or(end).min(end)));
        let (from, until) = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        (from < until).then_some(Self { from, until })
    }

    fn seconds(self) -> f64 {
        self.until.since(self.from).as_secs_f64()
    }
}

/// All of `octets` in bits. From zero on: the sum of none is minus zero.
fn bits(octets: impl Iterator<Item = f64>) -> f64 {
    octets.fold(0.0, |all, octets| all + octets) * 8.0
}

impl FlowSet<'_> {
    /// Payload that flows were to move which began while a load was offered, over that time, in bits per second; `None`
    /// where none was offered by the clock.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn offered_bps(self) -> Option<f64> {
        let offered = self.offered?;
        let began = self.flows.iter().filter(|flow| (offered.from..offered.until).contains(&flow.start));
        Some(bits(began.map(|flow| flow.bytes as f64)) / offered.seconds())
    }

    /// Payload delivered by all flows together while a load was offered, in bits per second: what a flow delivered counts as
    /// spread evenly over its life. `None` where none was offered by the clock.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn goodput_while_offered_bps(self) -> Option<f64> {
        let offered = self.offered?;
        let within = |flow: &FlowResult| {
            let end = flow.end.min(self.simulated);
            let (from, until) = (flow.start.max(offered.from), end.min(offered.until));
            if until <= from {
                return 0.0;
            }
            let share = until.since(from).as_secs_f64() / end.since(flow.start).as_secs_f64();
            flow.delivered as f64 * share
        };
        Some(bits(self.flows.iter().map(within)) / offered.seconds())
    }

    /// Payload delivered by all flows per second: while a load was offered where that was by the clock, else from the first
    /// start to the last end.
    pub fn total_goodput_bps(self) -> Option<f64> {
        self.goodput_while_offered_bps().or_else(|| self.goodput_to_the_last_end_bps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{FlowStatus, Results};
    use crate::run::{Go, World};
    use crate::scenario::Scenario;
    use crate::world::SimulatedWorld;
    use roci_units::Span;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn a_long_tail_does_not_make_an_open_loop_goodput_small() {
        let template = crate::output::test_results::sample().flows[0].clone();
        let flow = |start, end, bytes| FlowResult {
            start: at(start),
            end: at(end),
            bytes,
            delivered: bytes,
            status: FlowStatus::OK,
            ..template.clone()
        };
        let results = Results {
            // Over 100 µs: 50 and 30 kB within, and of 80 kB in a tail of 400 µs a quarter.
            flows: vec![flow(0, 50, 50_000), flow(50, 90, 30_000), flow(0, 400, 80_000)],
            offered: Some(Offered { from: at(0), until: at(100) }),
            simulated: at(400),
            ..Results::default()
        };
        assert_eq!(results.offered_bps(), Some(160_000.0 * 8.0 / 1e-4));
        assert_eq!(results.total_goodput_bps(), Some(100_000.0 * 8.0 / 1e-4));
        assert_eq!(results.goodput_to_the_last_end_bps(), Some(160_000.0 * 8.0 / 4e-4));
        let closed = Results { offered: None, ..results };
        assert_eq!(closed.total_goodput_bps(), closed.goodput_to_the_last_end_bps());
        assert_eq!(closed.offered_bps(), None);
    }

    #[test]
    fn a_light_load_is_delivered_as_it_is_offered() {
        let text = "stop = \"20ms\"\n[topology]\nkind = \"star\"\nhosts = 8\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
            [[traffic]]\nkind = \"poisson\"\nsizes = \"10KB\"\nload = 0.3\nstart = \"1ms\"\nuntil = \"11ms\"\n";
        let scenario = Scenario::parse(text, "here.toml", &[]).unwrap();
        let results = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap();
        assert_eq!(results.offered, Some(Offered { from: at(1_000), until: at(11_000) }));
        let (offered, delivered) = (results.offered_bps().unwrap(), results.total_goodput_bps().unwrap());
        assert!((offered / 24e9 - 1.0).abs() < 0.1, "{offered}: 30 % of 80 Gb/s");
        assert!((delivered / offered - 1.0).abs() < 0.01, "{delivered} of {offered}");
        assert_eq!(offered_of(text, at(20_000)), results.offered);
        let burst = text.replace(
            "kind = \"poisson\"\nsizes = \"10KB\"\nload = 0.3",
            "kind = \"permutation\"\nsize = \"10KB\"",
        );
        let burst = burst.replace("\nuntil = \"11ms\"", "");
        assert_eq!(offered_of(&burst, at(20_000)), None);
    }

    #[test]
    fn what_is_offered_does_not_depend_on_when_the_last_flow_ended() {
        let incast = |every: &str, until: &str, stop: &str| {
            let text = format!(
                "{stop}[topology]\nkind = \"star\"\nhosts = 5\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[[traffic]]\n\
                 kind = \"incast\"\nsenders = 4\nsize = \"10KB\"\nevery = \"{every}\"\nuntil = \"{until}\"\n"
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            let results = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap();
            assert_eq!(results.traffic[0].offered, results.offered);
            (results.offered.unwrap().until, results.offered_bps().unwrap())
        };
        let octets = 4.0 * 10_000.0 * 8.0;
        // The last burst is long over at each of these ends.
        assert_eq!(incast("500us", "2ms", ""), (at(2_000), 4.0 * octets / 2e-3));
        assert_eq!(incast("1ms", "1900us", ""), (at(1_900), 2.0 * octets / 1.9e-3));
        assert_eq!(incast("500us", "2ms", "stop = \"1ms\"\n"), (at(1_000), 2.0 * octets / 1e-3));
        assert_eq!(incast("500us", "2ms", "stop = \"5ms\"\n"), (at(2_000), 4.0 * octets / 2e-3));
    }

    fn offered_of(text: &str, end: Instant) -> Option<Offered> {
        Offered::of(&Scenario::parse(text, "here.toml", &[]).unwrap().traffic, end)
    }

    /// Of the payload of a burst it cannot be said over which time it was offered, so that a sum of both kinds would be no
    /// load. Goodput is then what it is for any scenario: over the time from the first start to the last end.
    #[test]
    fn where_only_some_traffic_goes_by_the_clock_nothing_counts_as_offered() {
        let star =
            "stop = \"4ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n";
        let poisson = "[[traffic]]\nkind = \"poisson\"\nsizes = \"10KB\"\nload = 0.1\nuntil = \"1ms\"\n";
        let later = "[[traffic]]\nkind = \"incast\"\nsenders = 2\nsize = \"10KB\"\nevery = \"1ms\"\nstart = \"500us\"\nuntil = \"3ms\"\n";
        let burst = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
        let both = offered_of(&format!("{star}{poisson}{later}"), at(4_000));
        assert_eq!(both, Some(Offered { from: at(0), until: at(3_000) }), "from the first to the last");
        for mixed in [format!("{star}{poisson}{burst}"), format!("{star}{burst}{later}")] {
            assert_eq!(offered_of(&mixed, at(4_000)), None);
        }
        let scenario = Scenario::parse(&format!("{star}{poisson}{burst}"), "here.toml", &[]).unwrap();
        let results = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap();
        assert_eq!((results.offered, results.offered_bps()), (None, None));
        assert!(results.total_goodput_bps().is_some());
        assert_eq!(results.total_goodput_bps(), results.goodput_to_the_last_end_bps());
    }
}
