//! Runs that do not get on: deadlocks, stalls, and the end of time.

use super::driver::{Live, Longer, SlowRead};
use super::sampler::sending_end;
use super::{SLICE, Simulation, build};
use crate::results::{Deadlock, FlowResult, FlowStatus};
use crate::run::{RunError, Stall};
use crate::scenario::Scenario;
use roci_control::Law;
use roci_fabric::deadlock::Deadlock as Found;
use roci_fabric::fabric::Stopped;
use roci_fabric::graph::{Graph, NodeId};
use roci_fabric::queue::HORIZON_PS;
use roci_units::{Instant, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use std::sync::Arc;

/// The last instant that can be simulated.
pub(super) const LAST: Instant = Instant::from_ps(HORIZON_PS - 1);

/// After how long of simulated time a run is looked at for flows that may send next to nothing, and then whenever as long as it
/// has lasted has passed again.
pub(super) const CRAWLS_AFTER: Span = Span::from_secs(1);

/// Octets of payload in a packet at most.
const PAYLOAD_MAX: u64 = 4096;

/// How long lies between two looks for a deadlock: so long that what was on its way at the first has arrived by the
/// second, even on the slowest link.
pub(super) fn look_interval(scenario: &Scenario) -> Span {
    let frame = u64::from(scenario.switch.config.max_frame) + WIRE_OVERHEAD as u64;
    let slowest = slowest_frame(&scenario.topology.graph, frame);
    let degraded = scenario.faults.rates().map(|rate| rate.time_for(frame)).max();
    let slowest = degraded.map_or(slowest, |time| slowest + time);
    SLICE.max(slowest * 4) + scenario.faults.latest()
}

/// The longest time that a frame of `octets` takes over a link.
fn slowest_frame(graph: &Graph, octets: u64) -> Span {
    let times = graph.links.iter().map(|link| link.rate.time_for(octets) + link.delay);
    times.max().unwrap_or(Span::ZERO)
}

/// A flow that may send next to nothing.
struct Slowest {
    kbps: u32,
    flow: String,
    /// Its law's name, or its program's.
    law: String,
    /// How many are as slow or nearly so, of how many.
    slow: usize,
    alive: usize,
}

impl Simulation<'_> {
    /// Fails when ports that were held at the last look are held by one another still, and for ever. Traffic may go on
    /// elsewhere, and for a moment ports may stand so in a run that frees itself.
    pub(super) fn look_for_deadlock(&mut self) -> Result<(), RunError> {
        if let Some(found) = self.fabric.net.deadlock_since(&self.suspects) {
            return Err(self.deadlocked(found));
        }
        self.suspects = self.fabric.net.held();
        Ok(())
    }

    /// Fails when a deadlock stands in a run that is done: flows have failed because of it, or the scenario's end came
    /// before it was found. It may have come between two looks. Its packets still stand there: time passes until a second
    /// look can tell that they do not move, so the run's results have been taken before.
    pub(super) fn look_behind(&mut self, flows: &[FlowResult]) -> Result<(), RunError> {
        if flows.iter().all(|flow| flow.status == FlowStatus::OK) {
            return Ok(());
        }
        self.suspects = self.fabric.net.held();
        if self.suspects.is_empty() {
            return Ok(());
        }
        let until = (self.fabric.net.now() + self.look).min(LAST);
        self.fabric.run_until(until);
        self.look_for_deadlock()
    }

    fn deadlocked(&self, found: Found) -> RunError {
        let net = &self.fabric.net;
        let cycle = found
            .cycle
            .into_iter()
            .map(|(_, port)| (self.name(net.node_of(port)), self.name(net.node_of(net.peer(port)))));
        RunError::Deadlock(Deadlock { at: net.now(), priority: found.priority, cycle: cycle.collect() })
    }

    fn name(&self, node: u32) -> String {
        build::node_name(&self.scenario.topology.graph, node).to_owned()
    }

    /// Nothing will happen any more, and flows are left. With an end given the run just ends there.
    pub(super) fn stalled(&mut self, stop: Instant) -> Result<(), RunError> {
        if let Some(found) = self.fabric.net.deadlock() {
            return Err(self.deadlocked(found));
        }
        if stop != Instant::NEVER {
            self.fabric.net.pass_to(stop);
            return Ok(());
        }
        let beyond = |host: &roci_nic::Host| host.engine.next_wakeup().is_some_and(|at| at > LAST);
        let at = self.fabric.net.now();
        let storms = self.scenario.faults.storming(at, &self.scenario.topology.graph);
        let way =
            |(NodeId(from), NodeId(to)): (NodeId, NodeId)| format!("{}>{}", self.name(from), self.name(to));
        let why = if self.fabric.net.beyond() > 0 || self.fabric.nics.hosts.iter().any(beyond) {
            Stall::EndOfTime
        } else if !storms.is_empty() {
            Stall::Storm(storms.into_iter().map(way).take(5).collect())
        } else if let waiting = self.waiting()
            && !waiting.is_empty()
        {
            Stall::Schedule(waiting)
        } else if self.scenario.transport.timeout.is_zero() {
            Stall::NoTimeout
        } else {
            Stall::NoCredit
        };
        Err(self.left(why))
    }

    /// Some of the ranks of schedules that wait for messages though none is under way, and for what.
    fn waiting(&self) -> Vec<String> {
        let names = &self.scenario.topology.graph.hosts;
        let waiting = self.fabric.nics.application.goals.waiting().into_iter();
        let told = waiting.map(|(table, rank, host, does)| {
            let (name, host) = (&self.scenario.traffic_names[table], &names[usize::from(host.0)]);
            format!("rank {rank} of traffic {name}, on {host}, waits in `{does}`")
        });
        told.take(5).collect()
    }

    /// Fails where no flow is left and a schedule is not done, for none of its messages is under way and nothing is calculated. With an end
    /// given the run just ends.
    pub(super) fn schedules_are_done(&self, stop: Instant) -> Result<(), RunError> {
        let goals = &self.fabric.nics.application.goals;
        if stop != Instant::NEVER || self.alive() > 0 || !goals.is_undone() {
            return Ok(());
        }
        let waiting = self.waiting();
        let why = if waiting.is_empty() { Stall::Calculation } else { Stall::Schedule(waiting) };
        Err(RunError::Stalled { at: self.fabric.net.now(), flows: Vec::new(), left: 0, why })
    }

    /// Tells of schedules that have come to no end though all that was sent has arrived and nothing is calculated, and of messages that an
    /// application would not have taken whole.
    pub(super) fn look_for_undone(&mut self) {
        for (table, count, longer, [sends, receives]) in self.fabric.nics.application.goals.longer() {
            let name = &self.scenario.traffic_names[table];
            let Longer { send: (from, of), receive: (to, by) } = longer;
            self.warnings.push(format!(
                "{count} of the messages of traffic {name} were longer than the receives that took them say, where MPI would cut them off with an error; they came whole. \
                 The first: rank {from}, operation {of}, `{sends}`, taken by rank {to}, operation {by}, `{receives}`; have both say one size"
            ));
        }
        let waiting = self.waiting();
        if !waiting.is_empty() {
            self.warnings.push(format!(
                "a schedule is not done, and nothing is under way in it: {}; mend it, for these messages come only behind what waits for them, or from nobody",
                waiting.join(", ")
            ));
        } else if self.alive() == 0 {
            for (table, count) in self.fabric.nics.application.goals.untaken().filter(|(_, count)| *count > 0)
            {
                let name = &self.scenario.traffic_names[table];
                self.warnings.push(format!("no receive took {count} of the messages of traffic {name}: its ranks send more than they receive"));
            }
        }
    }

    /// The error of a run that leaves flows undone.
    fn left(&mut self, why: Stall) -> RunError {
        let why = if why == Stall::EndOfTime { self.slow().unwrap_or(why) } else { why };
        let driver = &self.fabric.nics.application;
        let left = driver.live.iter().flatten().map(|live| driver.name(live.id).to_string());
        let at = self.fabric.net.now();
        RunError::Stalled { at, flows: left.take(5).collect(), left: driver.alive, why }
    }

    /// Tells of flows under way at `now` that may send next to nothing, if there are any.
    pub(super) fn look_for_crawling(&mut self, now: Instant) -> Option<Arc<str>> {
        /// A packet of 1 KB then takes 88 ms and more.
        const CRAWLING_KBPS: u32 = 100;
        let Slowest { kbps, flow, law, slow, alive } = self.slowest(CRAWLING_KBPS)?;
        let zero = if kbps == 1 { ", for which a rate of 0 is taken too" } else { "" };
        let stop = match self.scenario.stop {
            Some(_) => "",
            None => ", or give the scenario a `stop`: the run may go on for 75 minutes of simulated time",
        };
        let warning = format!(
            "{slow} of {alive} flows under way at {now} may send next to nothing: `{law}` lets {flow} send at {kbps} kb/s{zero}. \
             Have the law keep a least rate{stop}"
        );
        self.warnings.push(warning.clone());
        Some(warning.into())
    }

    /// Tells of flows that are under way at the end, whose programs have refused to send for long and not been stopped for it yet.
    pub(super) fn look_for_refused(&mut self) {
        /// A receiver that paces leaves its senders without credit for some time.
        const LONG: Span = Span::from_millis(1);
        let nics = &self.fabric.nics;
        let (now, driver) = (self.fabric.net.now(), &nics.application);
        let since = |live: &Live| {
            let (sender, qpn) = sending_end(live);
            let engine = &nics.hosts[usize::from(sender.0)].engine;
            let since = engine.refused_since(qpn).filter(|since| now.since(*since) >= LONG)?;
            Some((since, driver.name(live.id).to_string(), engine.program(qpn)?.image().name().to_owned()))
        };
        let mut refused: Vec<_> = driver.live.iter().flatten().filter_map(since).collect();
        refused.sort();
        let Some((since, flow, program)) = refused.first() else { return };
        let (count, alive, ms) = (refused.len(), driver.alive, now.since(*since).as_ps() / 1_000_000_000);
        self.warnings.push(format!(
            "{count} of {alive} flows under way at {now} have nothing in flight and are not let send: for {ms} ms `{program}` has let nothing of \
             {flow} go, by LoopBack or for want of tokens; look at what its send() waits for, and what gives tokens"
        ));
    }

    /// Tells of READs that failed because their responders' laws let no packet go within a timeout.
    pub(super) fn look_for_slow_reads(&mut self) {
        let nics = &mut self.fabric.nics;
        let (Some(SlowRead { id, law, kbps }), count) = nics.application.slow_reads else { return };
        let (flow, name) = (nics.application.name(id), law_name(nics.hosts[0].engine.law_mut(law)));
        self.warnings.push(format!(
            "{count} READs failed while their responders were let send so little that a packet took longer than `transport.timeout`, {}: \
             `{name}` let {flow} at {kbps} kb/s. Have the law keep a larger least rate, or the timeout be longer",
            self.scenario.transport.timeout
        ));
    }

    /// Ends a run without a `stop` whose flows are all let send at the least rate there is, now and when it was looked
    /// before, and of which none can be done at that by the end of time. Nothing else is to come that would change that.
    pub(super) fn give_up(&mut self, now: Instant) -> Result<(), RunError> {
        /// A rate of zero is taken for this.
        const LEAST_KBPS: u32 = 1;
        let ahead = self.scenario.stop.is_some() || self.jobs.peek().is_some();
        if ahead || self.next_write() != Instant::NEVER {
            return Ok(());
        }
        // What a flow may still send until then.
        let most = LAST.since(now).as_ps() / (8 * 1_000_000_000_000 / (1_000 * u64::from(LEAST_KBPS)));
        let nics = &self.fabric.nics;
        let done = |live: &Live| {
            let (sender, qpn) = sending_end(live);
            let acknowledged = nics.hosts[usize::from(sender.0)].engine.query(qpn).map(|it| it.acknowledged);
            let octets = u64::from(acknowledged.unwrap_or(u32::MAX)) * PAYLOAD_MAX;
            live.bytes.saturating_sub(octets) <= most
        };
        if nics.application.live.iter().flatten().any(done) {
            return Ok(());
        }
        match self.slowest(LEAST_KBPS) {
            Some(Slowest { flow, law, slow, alive, .. }) if slow == alive => {
                Err(self.left(Stall::Hopeless { flow, law }))
            }
            _ => Ok(()),
        }
    }

    /// Names the slowest of the flows that are left, where its law lets it send next to nothing.
    fn slow(&mut self) -> Option<Stall> {
        /// A packet then takes 8 ms and more.
        const NEXT_TO_NOTHING_KBPS: u32 = 1_000;
        let Slowest { kbps, flow, law, .. } = self.slowest(NEXT_TO_NOTHING_KBPS)?;
        Some(Stall::Slow { flow, law, kbps })
    }

    /// The slowest of the flows that are left, if its law lets it send at `most_kbps` or less.
    fn slowest(&mut self, most_kbps: u32) -> Option<Slowest> {
        let nics = &mut self.fabric.nics;
        let (hosts, driver) = (&mut nics.hosts, &nics.application);
        let rate = |live: &Live| {
            let (sender, qpn) = sending_end(live);
            let credit = hosts[usize::from(sender.0)].engine.query(qpn).ok()?.credit;
            Some((credit.rate_kbps, sender, live.law, live.id))
        };
        let rates = driver.live.iter().flatten().filter_map(rate).filter(|(kbps, ..)| *kbps <= most_kbps);
        let rates: Vec<_> = rates.collect();
        let slow = rates.len();
        let (kbps, sender, law, id) = rates.into_iter().min_by_key(|(kbps, ..)| *kbps)?;
        let law = law_name(hosts[usize::from(sender.0)].engine.law_mut(law));
        Some(Slowest { kbps, flow: driver.name(id).to_string(), law, slow, alive: driver.alive })
    }

    /// Lets the network go on until `until`, or nothing happens any more, or it is time to look around.
    ///
    /// # Errors
    /// When the end of time has come first.
    pub(super) fn go_on(&mut self, until: Instant) -> Result<Stopped, RunError> {
        if self.fabric.net.now() >= LAST && until > LAST {
            return Err(self.left(Stall::EndOfTime));
        }
        Ok(self.fabric.run_some(until.min(LAST)))
    }

    /// Lets time pass up to `at`, before which nothing happens.
    ///
    /// # Errors
    /// When the end of time comes first.
    pub(super) fn pass_to(&mut self, at: Instant) -> Result<(), RunError> {
        if at > LAST {
            let calculates = self.fabric.nics.application.goals.next() == at;
            return Err(self.left(if calculates { Stall::Calculation } else { Stall::EndOfTime }));
        }
        self.fabric.net.pass_to(at);
        Ok(())
    }
}

/// What a law is called: a program by its image.
fn law_name(law: Option<&mut Law>) -> String {
    match law {
        Some(Law::Program(program)) => program.image().name().to_owned(),
        Some(law) => law.name().to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_links_of(rate: &str, faults: &str) -> Scenario {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"{rate}\"\ndelay = \"1us\"\n\
             [nic]\nmtu = 4096\n[transport]\ntimeout = \"0s\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1KB\"\n{faults}"
        );
        Scenario::parse(&text, "here.toml", &[]).unwrap()
    }

    #[test]
    fn looks_for_a_deadlock_lie_further_apart_than_frames_on_the_slowest_link() {
        assert_eq!(look_interval(&on_links_of("10Gb/s", "")), SLICE);
        let late = "[faults]\ndelay = \"20ms\"\n";
        assert_eq!(look_interval(&on_links_of("10Gb/s", late)), SLICE + Span::from_millis(20));
        let slow = look_interval(&on_links_of("1Mb/s", ""));
        assert!(slow >= Span::from_millis(2 * 33), "{slow}: a frame of 4174 octets takes 33 ms");
    }
}
