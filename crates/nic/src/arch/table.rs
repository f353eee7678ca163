//! The contexts that the cores work on: a set-associative table on the chip, and slower memory behind it.

use super::cache::Cache;
use super::counters::Lookups;
use super::spec;
use roci_units::{Instant, Qpn};

/// Where the contexts of queue pairs are, and when they are there.
///
/// A context takes one line (SwCC's table), or several where lines are shorter (a plain cache). A line that is on its way
/// is found, and is there when it comes.
#[derive(Clone, Debug)]
pub struct Table {
    config: spec::Table,
    /// Lines of a context, at least one.
    lines: u64,
    /// When each line is there, in ps.
    places: Cache<u64>,
    /// Looked up by a hint: found, and fetched.
    pub hinted: Lookups,
    /// Looked up by a core: found, be it still on its way, and fetched.
    pub wanted: Lookups,
}

impl Table {
    /// An empty table.
    pub fn new(config: spec::Table) -> Self {
        let line = if config.line == 0 { config.size } else { config.line };
        let lines = u64::from(config.size).div_ceil(u64::from(line.max(1))).max(1);
        let places = Cache::new(config.lines, config.ways);
        Self { config, lines, places, hinted: Lookups::default(), wanted: Lookups::default() }
    }

    /// The number of a queue pair has become known: what is missing of its context is fetched, where the NIC goes by
    /// such hints.
    pub fn hint(&mut self, now: Instant, qpn: Qpn) {
        if self.config.hint {
            let (_, misses) = self.look_up(now, qpn);
            count(&mut self.hinted, misses);
        }
    }

    /// A core wants the context of `qpn`: when all of it is there. Lines that are missing come one after the other, for
    /// the core waits for each.
    pub fn reach(&mut self, now: Instant, qpn: Qpn) -> Instant {
        let (at, misses) = self.look_up(now, qpn);
        count(&mut self.wanted, misses);
        at
    }

    fn look_up(&mut self, now: Instant, qpn: Qpn) -> (Instant, u64) {
        if self.places.is_whole() {
            return (now, 0);
        }
        let (mut at, mut misses) = (now, 0);
        for line in 0..self.lines {
            let number = u64::from(qpn.get()) * self.lines + line;
            match self.places.lookup(number) {
                Some(there) => at = at.max(Instant::from_ps(*there)),
                None => {
                    at += self.config.memory;
                    misses += 1;
                    self.places.insert(number, at.as_ps());
                }
            }
        }
        (at, misses)
    }
}

const fn count(lookups: &mut Lookups, misses: u64) {
    if misses == 0 {
        lookups.hits += 1;
    } else {
        lookups.misses += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::*;
    use roci_units::Span;

    fn of(name: &str) -> Table {
        Table::new(presets::find(name).expect("it exists").table)
    }

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(ns)
    }

    #[test]
    fn a_context_that_was_hinted_at_is_there_when_its_memory_has_answered() {
        let mut table = of("swcc");
        table.hint(at(0), Qpn::new(7));
        assert_eq!(table.reach(at(60), Qpn::new(7)), at(100), "40 ns of the 100 are left");
        assert_eq!(table.reach(at(200), Qpn::new(7)), at(200));
        assert_eq!(table.reach(at(200), Qpn::new(8)), at(300), "nobody hinted at this one");
        assert_eq!((table.hinted, table.wanted), (of_lookups(0, 1), of_lookups(2, 1)));
    }

    #[test]
    fn a_plain_cache_takes_a_context_apart_and_fetches_line_by_line() {
        let mut config = presets::find("swcc-naive").expect("it exists").table;
        config.size = 128;
        let mut table = Table::new(config);
        table.hint(at(0), Qpn::new(7));
        assert_eq!(
            table.reach(at(60), Qpn::new(7)),
            at(260),
            "two lines of 64 octets, and hints are not heard"
        );
        assert_eq!(table.reach(at(300), Qpn::new(7)), at(300));
    }

    #[test]
    fn the_queue_pair_of_a_set_that_was_used_longest_ago_makes_way() {
        let mut table = of("swcc");
        // 1024 contexts in sets of four: the numbers 0, 256, 512 … share a set.
        let number = |k: u32| Qpn::new(256 * k);
        for k in 0..4 {
            table.reach(at(0), number(k));
        }
        assert_eq!(table.reach(at(1_000), number(0)), at(1_000));
        assert_eq!(table.reach(at(1_000), number(4)), at(1_100), "a fifth");
        assert_eq!(table.reach(at(2_000), number(0)), at(2_000), "used after 1");
        assert_eq!(table.reach(at(2_000), number(1)), at(2_100));
        assert_eq!(table.reach(at(2_000), Qpn::new(1)), at(2_100), "the set beside it is empty");
    }

    fn of_lookups(hits: u64, misses: u64) -> Lookups {
        Lookups { hits, misses, ..Lookups::default() }
    }
}
