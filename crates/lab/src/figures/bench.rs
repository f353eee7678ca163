//! Running the scenarios of figures, once for each seed, on all cores.

use super::{FigureError, Step};
use crate::results::Results;
use crate::run::{Go, RunError, World};
use crate::scenario::source::Source;
use crate::scenario::{Scenario, ScenarioError};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A scenario that is part of this program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    /// Its file, from the repository's root.
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    /// Names and texts of the files that it names.
    files: &'static [(&'static str, &'static str)],
}

macro_rules! scenario {
    ($file:literal $(, $beside:literal)*) => {
        Text {
            file: $file,
            text: include_str!(concat!("../../../../", $file)),
            files: &[$(($beside, include_str!(concat!("../../../../figures/", $beside)))),*],
        }
    };
}

/// Eight boards behind three leaves: the LST paper's Figure 3, and this project's first example.
pub(super) const INCAST: Text = scenario!("scenarios/advcam-incast.toml");
/// One board and a device that forges CNPs: the LST paper's Figure 8.
pub(super) const FORGED: Text = scenario!("figures/lst-forged-cnps.toml");
/// Three boards and a server: the LST paper's Figure 10.
pub(super) const THREE: Text = scenario!("figures/lst-three-boards.toml");
/// The same, one board with other parameters: the LST paper's Figure 13.
pub(super) const SAWTOOTH: Text = scenario!("figures/lst-sawtooth.toml");
/// Hundreds of boards.
pub(super) const SCALE: Text = scenario!("figures/lst-scale.toml");
/// Two hosts to one under DCQCN: Tonic's Figure 4.
pub(super) const DCQCN: Text = scenario!("figures/tonic-dcqcn.toml");
/// Two hosts to one with NewReno: Tonic's Figure 3c.
pub(super) const NEWRENO: Text = scenario!("figures/tonic-newreno.toml");
/// Two NICs with many connections: SRNIC's Figures 2 and 9.
pub(super) const CONNECTIONS: Text = scenario!("figures/srnic-connections.toml");
/// Two NICs with one: SRNIC's Figure 10.
pub(super) const SINGLE: Text = scenario!("figures/srnic-single.toml");
/// One connection with losses: SRNIC's Figure 11.
pub(super) const LOSS: Text = scenario!("figures/srnic-loss.toml");
/// Fat trees of SRNIC's Figure 12.
pub(super) const SCALE_OUT: Text = scenario!("figures/srnic-scale.toml");
/// Many flows of small packets on Tonic: its Table 4.
pub(super) const CAPACITY: Text = scenario!("figures/tonic-capacity.toml");
/// One flow of small packets on Tonic.
pub(super) const TONIC_RATE: Text = scenario!("figures/tonic-rate.toml");
/// Messages at random times on one link.
pub(super) const QUEUEING: Text = scenario!("figures/validation-queueing.toml");
/// N flows on one link, for DCQCN's fixed point.
pub(super) const FIXED_POINT: Text = scenario!("figures/validation-fixed-point.toml");
/// A link whose receiving port is filled to the last octet.
pub(super) const HEADROOM: Text = scenario!("figures/validation-headroom.toml");
/// Leaves with one, two, three and six senders.
pub(super) const SHARES: Text = scenario!("figures/validation-shares.toml");
/// Two priorities with shares of one link.
pub(super) const ETS: Text = scenario!("figures/validation-ets.toml");
/// Senders that never end, for each law's own promise.
pub(super) const LAWS: Text = scenario!("figures/validation-laws.toml");

/// HPCC's fat tree with WebSearch, in files of HPCC's form.
pub(super) const HPCC: Text =
    scenario!("figures/hpcc-compare.toml", "hpcc-fat-tree-topology.txt", "hpcc-websearch-flows.txt");

/// One long message over one link, for the SRNIC paper's header extensions.
pub(super) const HEADER: Text = scenario!("figures/srnic-header.toml");

/// Short messages among long ones.
pub(super) const HOMA: Text = scenario!("figures/validation-homa.toml");
/// The same as SENDs, several outstanding on a queue pair.
pub(super) const HOMA_SENDS: Text = scenario!("figures/validation-homa-sends.toml");
/// READs on sprayed paths.
pub(super) const HOMA_READS: Text = scenario!("figures/validation-homa-reads.toml");
/// Many READs to one reader.
pub(super) const HOMA_INCAST: Text = scenario!("figures/validation-homa-incast.toml");
/// READs whose data wait in the core.
pub(super) const HOMA_CORE: Text = scenario!("figures/validation-homa-core.toml");
/// Two WRITEs of which one waits for the other.
pub(super) const HOMA_STARVED: Text = scenario!("figures/validation-homa-starved.toml");
/// A WRITE to a receiver whose other sender is busy elsewhere.
pub(super) const HOMA_BUSY: Text = scenario!("figures/validation-homa-busy.toml");
/// A message beside shorter ones without end.
pub(super) const HOMA_OLDEST: Text = scenario!("figures/validation-homa-oldest.toml");
/// Many senders to one receiver.
pub(super) const NDP: Text = scenario!("figures/validation-ndp.toml");
/// Many senders of short messages to one receiver, one after the other.
pub(super) const NDP_CLOSED: Text = scenario!("figures/validation-ndp-closed.toml");
/// One sender on links that lose packets.
pub(super) const NDP_LOSS: Text = scenario!("figures/validation-ndp-loss.toml");

/// One host that writes to another, message by message: SwCC's Figure 7 and Table 1.
pub(super) const SWCC_DELAY: Text = scenario!("figures/swcc-delay.toml");
/// Two senders, the second of which finds the link taken: SwCC's Figure 1.
pub(super) const SWCC_DRAIN: Text = scenario!("figures/swcc-drain.toml");
/// One host that writes to another as fast as it can: SwCC's Figures 10 and 11.
pub(super) const SWCC_RATE: Text = scenario!("figures/swcc-rate.toml");
/// Two senders with five flows each: SwCC's Figures 12 to 14.
pub(super) const SWCC_INCAST: Text = scenario!("figures/swcc-incast.toml");

/// Long requests to more and more threads of a server: CARC's Figure 2.
pub(super) const CARC_CONNECTIONS: Text = scenario!("figures/carc-connections.toml");
/// One connection whose credits are few: CARC's Figure 7.
pub(super) const CARC_IDLE: Text = scenario!("figures/carc-idle.toml");
/// Short and long requests to a server: CARC's Figures 5b, 5c and 8b and Table 1.
pub(super) const CARC_LONG: Text = scenario!("figures/carc-long.toml");
/// Short requests to all threads of a server: CARC's Figures 5a and 8a.
pub(super) const CARC_SHORT: Text = scenario!("figures/carc-short.toml");

/// All of them.
#[cfg(test)]
pub(super) const SCENARIOS: [Text; 40] = [
    INCAST,
    FORGED,
    THREE,
    SAWTOOTH,
    SCALE,
    DCQCN,
    NEWRENO,
    CONNECTIONS,
    SINGLE,
    LOSS,
    SCALE_OUT,
    CAPACITY,
    TONIC_RATE,
    QUEUEING,
    FIXED_POINT,
    HEADROOM,
    SHARES,
    ETS,
    LAWS,
    HPCC,
    HEADER,
    HOMA,
    HOMA_SENDS,
    HOMA_READS,
    HOMA_INCAST,
    HOMA_CORE,
    HOMA_STARVED,
    HOMA_BUSY,
    HOMA_OLDEST,
    NDP,
    NDP_CLOSED,
    NDP_LOSS,
    SWCC_DELAY,
    SWCC_DRAIN,
    SWCC_RATE,
    SWCC_INCAST,
    CARC_CONNECTIONS,
    CARC_IDLE,
    CARC_LONG,
    CARC_SHORT,
];

impl Text {
    /// The scenario, with `overrides`.
    pub(super) fn read(self, overrides: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Scenario::read(Source::new(self.file, self.text, overrides).with_files(self.files))
    }
}

/// Where figures are run.
pub(super) struct Bench<'a> {
    world: &'a dyn World,
    seeds: &'a [u64],
    /// What switches the figure's mechanism off; empty where it is on.
    ablation: Vec<(String, String)>,
    progress: &'a (dyn Fn(Step) -> Go + Sync),
    done: AtomicUsize,
    asked: AtomicUsize,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        world: &'a dyn World,
        seeds: &'a [u64],
        ablation: Vec<(String, String)>,
        progress: &'a (dyn Fn(Step) -> Go + Sync),
    ) -> Self {
        Self { world, seeds, ablation, progress, done: AtomicUsize::new(0), asked: AtomicUsize::new(0) }
    }

    /// The seeds that are run.
    pub(super) fn seeds(&self) -> &[u64] {
        self.seeds
    }

    /// What switches the figure's mechanism off, where that is asked for: for figures that run no scenario.
    pub(super) fn ablation(&self) -> &[(String, String)] {
        &self.ablation
    }

    /// The results of `scenario` with `set`, for each seed; with the figure's mechanism off where that is asked for.
    pub(super) fn run(&self, scenario: Text, set: &[(&str, &str)]) -> Result<Vec<Results>, FigureError> {
        let ablation = self.ablation.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        self.control(scenario, &set.iter().copied().chain(ablation).collect::<Vec<_>>())
    }

    /// As [`Bench::run`], with the mechanism on in any case: what a figure is compared with.
    pub(super) fn control(&self, scenario: Text, set: &[(&str, &str)]) -> Result<Vec<Results>, FigureError> {
        self.each(scenario, set, self.seeds)
    }

    /// As [`Bench::control`], for the first seed alone: for what takes minutes.
    pub(super) fn first(&self, scenario: Text, set: &[(&str, &str)]) -> Result<Vec<Results>, FigureError> {
        self.each(scenario, set, self.seeds.get(..1).unwrap_or_default())
    }

    fn each(&self, scenario: Text, set: &[(&str, &str)], seeds: &[u64]) -> Result<Vec<Results>, FigureError> {
        let overrides: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.asked.fetch_add(seeds.len(), Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<_>>> = seeds.iter().map(|_| Mutex::new(None)).collect();
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..cores.min(seeds.len()) {
                scope.spawn(|| {
                    while let Some((seed, place)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        seeds.get(index).zip(results.get(index))
                    } {
                        let result = self.once(scenario, &overrides, *seed);
                        *place.lock().expect("nobody panics with this lock") = Some(result);
                        self.done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let taken =
            results.into_iter().map(|place| place.into_inner().expect("nobody panics with this lock"));
        taken.map(|result| result.expect("every seed was run")).collect()
    }

    fn once(
        &self,
        scenario: Text,
        overrides: &[(String, String)],
        seed: u64,
    ) -> Result<Results, FigureError> {
        let read = scenario.read(overrides).map_err(RunError::Scenario);
        let mut progress = |_: &_| self.tell();
        let run = read.and_then(|scenario| self.world.run(&scenario, seed, None, &mut progress));
        let run = run.and_then(|mut results| match results.deadlock.take() {
            // No figure is about one.
            Some(deadlock) => Err(RunError::Deadlock(deadlock)),
            None => Ok(results),
        });
        run.map_err(|error| FigureError::Run { name: scenario.file.to_owned(), seed, error: Box::new(error) })
    }

    fn tell(&self) -> Go {
        let (done, asked) = (self.done.load(Ordering::Relaxed), self.asked.load(Ordering::Relaxed));
        (self.progress)(Step { done, asked })
    }
}
