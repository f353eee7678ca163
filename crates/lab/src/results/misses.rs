//! NICs whose caches are too small for what their hosts do.

use super::{HostResult, Results};
use roci_nic::ArchCounters;
use roci_nic::arch::counters::{Cause, Lookups};
use roci_units::{Instant, Span};
use std::fmt;

/// A host whose NIC fetches again and again what its cache had to give up.
#[derive(Clone, Copy, Debug)]
pub struct Misses<'a> {
    /// The host.
    pub host: &'a HostResult,
    /// Of its two caches that hold a queue pair's context and its translations those that are too small.
    pub caches: [Option<Lookups>; 2],
    counted: &'a ArchCounters,
    simulated: Span,
}

/// What these caches hold, in singular and plural, and why it crosses PCIe.
const HELD: [(&str, &str, Cause); 2] =
    [("context", "contexts", Cause::Context), ("translation", "translations", Cause::Mtt)];

impl Results {
    /// The hosts at which more than 5 % of the lookups of contexts or of translations missed, and as many entries made way
    /// for others: what is looked up once and finds room is not missed again.
    pub fn misses(&self) -> impl Iterator<Item = Misses<'_>> {
        /// One lookup in so many.
        const ONE_IN: u64 = 20;
        let simulated = self.simulated.since(Instant::ZERO);
        self.hosts.iter().filter_map(move |host| {
            let counted = host.nic.as_deref()?;
            let too_small = |it: &Lookups| it.misses.min(it.evictions) * ONE_IN > it.hits + it.misses;
            let caches = [counted.context, counted.mtt].map(|lookups| Some(lookups).filter(too_small));
            caches.iter().any(Option::is_some).then_some(Misses { host, caches, counted, simulated })
        })
    }
}

impl fmt::Display for Misses<'_> {
    /// `h0: 68 % of context lookups missed; PCIe 106 Gb/s both ways, of which contexts 58 Gb/s; its 8 units waited for 83 % of the time`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = || self.caches.into_iter().zip(HELD).filter_map(|(lookups, held)| Some((lookups?, held)));
        write!(f, "{}: ", self.host.name)?;
        for (place, (lookups, (one, ..))) in told().enumerate() {
            let and = if place > 0 { " and " } else { "" };
            write!(f, "{and}{:.0} % of {one} lookups", lookups.missed() * 100.0)?;
        }
        write!(f, " missed; PCIe {:.0} Gb/s both ways", self.gbps(self.counted.pcie_total()))?;
        for (place, (_, (_, plural, cause))) in told().enumerate() {
            let and = if place > 0 { " and" } else { ", of which" };
            write!(f, "{and} {plural} {:.0} Gb/s", self.gbps(self.counted.pcie_of(cause)))?;
        }
        let units = f64::from(self.counted.units);
        if units > 0.0 {
            let share = self.counted.units_waited.as_secs_f64() / (units * self.simulated.as_secs_f64());
            write!(f, "; its {units} units waited for {:.0} % of the time", share * 100.0)?;
        }
        Ok(())
    }
}

impl Misses<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a rate shows fewer digits than f64 holds")]
    fn gbps(&self, octets: u64) -> f64 {
        octets as f64 * 8e-9 / self.simulated.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a host of a run of 1 ms whose NIC has so many units.
    fn told_of(units: u32, context: Lookups, mtt: Lookups) -> Vec<String> {
        let units_waited = Span::from_micros(830) * u64::from(units);
        let mut counted = ArchCounters { context, mtt, units, units_waited, ..ArchCounters::default() };
        counted.pcie[Cause::Payload as usize] = 5_000_000;
        counted.pcie[Cause::Context as usize] = 7_250_000;
        counted.pcie[Cause::Mtt as usize] = 1_000_000;
        let host = HostResult { name: "h0".into(), nic: Some(Box::new(counted)), ..HostResult::default() };
        let simulated = Instant::ZERO + Span::from_micros(1_000);
        let results = Results { hosts: vec![host], simulated, ..Results::default() };
        results.misses().map(|misses| misses.to_string()).collect()
    }

    fn told(context: Lookups, mtt: Lookups) -> Vec<String> {
        told_of(0, context, mtt)
    }

    #[test]
    fn a_cache_that_is_too_small_is_told_of_with_what_its_misses_take() {
        let none = Lookups::default();
        let lookups = |hits, misses, evictions| Lookups { hits, misses, evictions };
        assert_eq!(
            told(lookups(32, 68, 60), none),
            ["h0: 68 % of context lookups missed; PCIe 106 Gb/s both ways, of which contexts 58 Gb/s"]
        );
        assert_eq!(
            told(lookups(32, 68, 60), lookups(90, 10, 6)),
            [
                "h0: 68 % of context lookups and 10 % of translation lookups missed; PCIe 106 Gb/s both ways, of which contexts 58 Gb/s \
                 and translations 8 Gb/s"
            ]
        );
        let of_units = told_of(8, lookups(32, 68, 60), none);
        assert!(
            of_units[0].ends_with("contexts 58 Gb/s; its 8 units waited for 83 % of the time"),
            "{of_units:?}"
        );
        assert!(told(lookups(95, 5, 5), none).is_empty(), "5 % and no more");
        assert!(told(lookups(0, 100, 0), none).is_empty(), "each was looked up once");
    }
}
