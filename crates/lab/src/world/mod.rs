//! The simulated world: from a scenario and a seed to results.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `alone` | the least time that a collective takes |
//! | `build` | the fabric, the NICs and their engines |
//! | `driver` | the application on the hosts: connects, posts, records |
//! | `receiving` | the application that takes SENDs |
//! | `drops` | why switches dropped packets though PFC is on |
//! | `profile` | what queue pairs have in common |
//! | `faults` | rules of faults as nodes on links |
//! | `links` | what passed each way of each link |
//! | `path` | the way of a flow, for its ideal completion time |
//! | `sampler` | time series |
//! | `writes` | registers written during the run |
//! | `capture` | what the taps recorded |
//! | `stopwatch` | what a run costs |
//! | `stuck` | runs that do not get on |

mod alone;
mod build;
mod capture;
mod driver;
mod drops;
mod faults;
mod links;
mod path;
mod profile;
mod receiving;
mod sampler;
mod stopwatch;
mod stuck;
mod writes;

use crate::program::CLASSES;
use crate::program::events::Events;
use crate::results::effect::Goodput;
use crate::results::{
    CoreArray, Deadlock, Failure, FaultResult, FlowResult, FlowStatus, HostFigures, HostResult, Offered,
    ProgramResult, Results, SwitchResult, TrafficResult, imbalance,
};
use crate::run::{Go, Progress, RunError, World};
use crate::scenario::{NicModel, Scenario};
use crate::traffic::{Jobs, Setting, Traffic, jobs};
use capture::Capture;
use driver::{Collectives, Driver, Fallen, Goals, Outcome, Rpcs};
use path::Paths;
use roci_control::Law;
use roci_control::program::Tally;
use roci_control::program::fault::FAULTS_KEPT;
use roci_fabric::deadlock::Held;
use roci_fabric::fabric::{Fabric, Stopped};
use roci_fabric::fault::InSwitch;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_fabric::routing::EqualPorts;
use roci_nic::{Host, Simulated};
use roci_transport::Service;
use roci_units::{Instant, Span};
use sampler::Sampler;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;
use stopwatch::Stopwatch;

/// The world in which everything is simulated.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedWorld;

impl World for SimulatedWorld {
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        folder: Option<&Path>,
        progress: &mut dyn FnMut(&Progress) -> Go,
    ) -> Result<Results, RunError> {
        let setup = Stopwatch::start();
        let mut simulation = Simulation::new(scenario, seed, folder)?;
        let setup_s = setup.wall_s();
        let watch = Stopwatch::start();
        let deadlock = or_deadlock(simulation.run(progress))?;
        simulation.finish(progress)?;
        let figures = HostFigures {
            wall_s: watch.wall_s(),
            cpu_s: watch.cpu_s(),
            peak_rss_bytes: stopwatch::peak_rss_bytes(),
            setup_s,
            output_s: 0.0,
        };
        let mut results = simulation.results(seed, figures, progress);
        results.deadlock = match deadlock {
            Some(deadlock) => Some(deadlock),
            None => or_deadlock(simulation.look_behind(&results.flows))?,
        };
        Ok(results)
    }
}

/// A deadlock is an end of a run that leaves results; what else goes wrong leaves none.
fn or_deadlock(ended: Result<(), RunError>) -> Result<Option<Deadlock>, RunError> {
    match ended {
        Ok(()) => Ok(None),
        Err(RunError::Deadlock(deadlock)) => Ok(Some(deadlock)),
        Err(error) => Err(error),
    }
}

/// What there will be `by` that moment, where so much came until `now`.
fn as_much_by(begun: u64, now: Instant, by: Instant) -> u64 {
    let (now, by) = (u128::from(now.as_ps()).max(1), u128::from(by.as_ps()));
    u64::try_from(u128::from(begun) * by.max(now) / now).unwrap_or(u64::MAX)
}

/// A run under way.
struct Simulation<'a> {
    scenario: &'a Scenario,
    fabric: Fabric<Simulated<Driver>>,
    jobs: Peekable<Jobs>,
    paths: Paths<'a>,
    sampler: Sampler,
    /// How many of the scenario's register writes have been made.
    written: usize,
    /// How many of its writes to switches.
    thresholds: usize,
    /// Flows, by their numbers, whose programs were replaced for them alone, each with the writes that did it.
    own_programs: BTreeMap<u32, Vec<usize>>,
    /// What is to be told of the run: writes that nobody took, flows that may send next to nothing.
    warnings: Vec<String>,
    /// When to look next for such flows; never again once they have been told of.
    crawl_at: Instant,
    /// There were some, and it has been said.
    crawls: bool,
    capture: Capture,
    /// Octets that had been delivered after so many link crossings.
    delivered: (u64, u64),
    /// By when all flows have begun, if that is known.
    begun_by: Option<Instant>,
    /// The ports that stood still at the last look for a deadlock.
    suspects: Vec<Held>,
    /// How long lies between two looks for a deadlock, and when the next is due.
    look: Span,
    look_at: Instant,
}

/// How long a run is left alone at most, in simulated time: between two of these it can be stopped.
const SLICE: Span = Span::from_millis(1);
/// How many flows are started, or how often anything is done between events, before a run can be stopped.
const TURNS: u32 = 1 << 12;
/// So many link crossings for each live flow lie between two times that all are asked what they have delivered: a few thousandths of
/// the time that these take.
const ASKED_AFTER: u64 = 2048;

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, seed: u64, folder: Option<&Path>) -> Result<Self, RunError> {
        let stop = scenario.stop.map(|stop| Instant::ZERO + stop);
        if stop.is_some_and(|stop| stop.as_ps() >= roci_fabric::queue::HORIZON_PS) {
            return Err(RunError::Impossible(
                "a run lasts at most 75 minutes; make `stop` shorter".to_owned(),
            ));
        }
        let traffic: Arc<[Traffic]> = jobs::drawn(&scenario.traffic, seed);
        let mut fabric = build::fabric(scenario, Arc::clone(&traffic), seed)?;
        let setting = Setting {
            topology: &scenario.topology,
            seed,
            stop,
            packet: build::full_packet(scenario),
            start_jitter: scenario.start_jitter,
        };
        alone::refuse_too_long(scenario, &traffic)?;
        let jobs = Jobs::new(&traffic, &setting).map_err(|error| RunError::Impossible(error.to_string()))?;
        let jobs = jobs.on(&scenario.networks);
        fabric.nics.application.collectives =
            Collectives::new(&traffic, &scenario.topology.homes, &setting.jitter_max(), seed);
        let Simulated { hosts, application, .. } = &mut fabric.nics;
        application.goals = Goals::new(&traffic, &setting.jitter_max(), seed, scenario.measure.timeline);
        application.rpcs = Rpcs::new(scenario, hosts, |host| application.profiles.key(host));
        Ok(Self {
            scenario,
            sampler: Sampler::new(scenario, &fabric.net),
            capture: Capture::new(scenario, &mut fabric.net, folder)?,
            paths: Paths::new(scenario),
            fabric,
            jobs: jobs.peekable(),
            written: 0,
            thresholds: 0,
            own_programs: BTreeMap::new(),
            warnings: Vec::new(),
            delivered: (0, 0),
            begun_by: traffic
                .iter()
                .map(Traffic::begun_by)
                .max_by_key(|by| by.unwrap_or(Instant::NEVER))
                .flatten(),
            crawl_at: Instant::ZERO + stuck::CRAWLS_AFTER,
            crawls: false,
            suspects: Vec::new(),
            look: stuck::look_interval(scenario),
            look_at: Instant::ZERO + stuck::look_interval(scenario),
        })
    }

    /// Runs until all traffic is done, the scenario's end has come, or nothing gets on any more.
    fn run(&mut self, progress: &mut dyn FnMut(&Progress) -> Go) -> Result<(), RunError> {
        let stop = self.stop();
        let mut slice = Instant::ZERO + SLICE;
        // Simulated time may pass slowly, so that turns and events count too.
        let mut turns = 0;
        let mut early = false;
        loop {
            let now = self.fabric.net.now();
            turns += 1;
            if now >= slice || early || turns >= TURNS {
                turns = 0;
                if progress(&self.progress()) == Go::Stop {
                    return Err(RunError::Interrupted);
                }
            }
            if now >= slice {
                slice = now + SLICE;
            }
            if now >= self.look_at {
                self.look_at = now + self.look;
                self.look_for_deadlock()?;
            }
            if now >= self.crawl_at {
                self.crawl_at = now + now.since(Instant::ZERO);
                if self.crawls {
                    self.give_up(now)?;
                }
                let warning = if self.crawls { None } else { self.look_for_crawling(now) };
                self.crawls |= warning.is_some();
                if warning.is_some() && progress(&Progress { warning, ..self.progress() }) == Go::Stop {
                    return Err(RunError::Interrupted);
                }
            }
            self.start_due(now, stop, progress)?;
            self.begin_due();
            self.write_due(now);
            self.receive_due(now);
            self.serve_due();
            self.sampler.take_due(now, &mut self.fabric);
            self.capture.collect(&mut self.fabric.net)?;
            let next_start = self.jobs.peek().map_or(Instant::NEVER, |job| job.start);
            // A rank may begin late and find that it has all: then no flow is alive, and its iteration is not over.
            if now >= stop || (self.alive() == 0 && next_start.min(self.next_begin()) >= stop) {
                self.schedules_are_done(stop)?;
                break;
            }
            let until = [
                stop,
                slice,
                next_start,
                self.next_write(),
                self.next_receive(),
                self.next_begin(),
                self.next_service(),
                self.sampler.due(),
            ];
            let until = until.into_iter().min().unwrap_or(stop);
            let stopped = self.go_on(until)?;
            early = stopped == Stopped::Early;
            if stopped == Stopped::Idle {
                // Nothing under way: time passes until something is started or written from outside.
                let due = [
                    next_start,
                    self.next_write(),
                    self.next_receive(),
                    self.next_begin(),
                    self.next_service(),
                ];
                let outside = due.into_iter().min().unwrap_or(Instant::NEVER);
                if outside < stop {
                    self.pass_to(outside)?;
                } else if self.alive() > 0 {
                    self.stalled(stop)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the last sample and closes the capture.
    fn finish(&mut self, progress: &mut dyn FnMut(&Progress) -> Go) -> Result<(), RunError> {
        self.sampler.finish(&mut self.fabric);
        self.tell_of_writes_to_come();
        // Whoever gives a run an end finds flows there that are not done, and not why.
        if !self.crawls {
            self.look_for_crawling(self.fabric.net.now());
        }
        self.look_for_refused();
        self.look_for_undone();
        self.look_for_slow_reads();
        self.capture.finish(&mut self.fabric.net)?;
        progress(&self.progress());
        Ok(())
    }

    fn alive(&self) -> usize {
        self.fabric.nics.application.alive
    }

    fn progress(&mut self) -> Progress {
        let now = self.fabric.net.now();
        let stop = self.scenario.stop.map(|stop| Instant::ZERO + stop);
        let begun = self.fabric.nics.application.begun_octets;
        let by = if self.all_began() { Some(now) } else { self.begun_by.or(stop) };
        let packet_hops = self.fabric.net.totals().packet_hops;
        let nics = &self.fabric.nics;
        let driver = &nics.application;
        if packet_hops - self.delivered.1 > ASKED_AFTER * driver.alive as u64 {
            self.delivered = (driver.delivered_octets(&nics.hosts), packet_hops);
        }
        Progress {
            now,
            stop,
            delivered: self.delivered.0,
            total: by.filter(|_| begun < u64::MAX).map(|by| as_much_by(begun, now, by)),
            flows_done: driver.ended.len() as u64,
            flows_begun: driver.begun() as u64,
            packet_hops,
            again: None,
            warning: None,
        }
    }

    /// Starts the flows that are due.
    fn start_due(
        &mut self,
        now: Instant,
        stop: Instant,
        progress: &mut dyn FnMut(&Progress) -> Go,
    ) -> Result<(), RunError> {
        let mut started = 0;
        while let Some(job) = self.jobs.next_if(|job| job.start <= now && job.start < stop) {
            started += 1;
            if started % TURNS == 0 && progress(&self.progress()) == Go::Stop {
                return Err(RunError::Interrupted);
            }
            let Fabric { net, nics } = &mut self.fabric;
            let mtu = nics.application.profiles.mtu(job.src, job.dst);
            let ideal = self.paths.ideal(net, &job, mtu);
            let writes = &self.scenario.writes[self.written..];
            nics.application.start(now, &mut nics.hosts, &job, ideal, writes);
            nics.hosts[usize::from(job.src.0)].poke(net, job.src);
        }
        Ok(())
    }

    /// Lets the ranks of collectives and schedules begin that are due, and those go on that have calculated.
    fn begin_due(&mut self) {
        let Fabric { net, nics } = &mut self.fabric;
        nics.application.begin_due(net, &mut nics.hosts);
        nics.application.go_on_due(net, &mut nics.hosts);
    }

    /// When the next of them is due.
    fn next_begin(&self) -> Instant {
        let application = &self.fabric.nics.application;
        application.collectives.next().min(application.goals.next())
    }

    /// Posts the receive requests that are due, and gives up flows of which nothing more will come.
    fn receive_due(&mut self, now: Instant) {
        let nics = &mut self.fabric.nics;
        nics.application.receive_due(now, &mut nics.hosts);
        nics.application.give_up_due(now, &mut nics.hosts);
    }

    /// When the next of them is due.
    fn next_receive(&self) -> Instant {
        let driver = &self.fabric.nics.application;
        driver.receiving.next().min(driver.arrivals.next())
    }

    /// Lets the threads of servers go on that are due.
    fn serve_due(&mut self) {
        let Fabric { net, nics } = &mut self.fabric;
        nics.application.serve_due(net, &mut nics.hosts);
    }

    /// When the next of them is due.
    fn next_service(&self) -> Instant {
        self.fabric.nics.application.rpcs.next()
    }

    /// When the run ended what is offered by the clock: where all that was to begin is over that is the scenario's end, if any,
    /// for nothing would have begun until then either; else the run was cut short.
    fn offered_until(&mut self) -> Instant {
        if self.all_began() && self.alive() == 0 { self.stop() } else { self.fabric.net.now() }
    }

    /// When it stops at the latest.
    fn stop(&self) -> Instant {
        self.scenario.stop.map_or(Instant::NEVER, |stop| Instant::ZERO + stop)
    }

    /// Whether no flow will begin any more.
    fn all_began(&mut self) -> bool {
        let stop = self.stop();
        self.jobs.peek().is_none_or(|job| job.start >= stop)
    }

    /// Everything that the run found out, once.
    fn results(
        &mut self,
        seed: u64,
        figures: HostFigures,
        progress: &mut dyn FnMut(&Progress) -> Go,
    ) -> Results {
        let offered_until = self.offered_until();
        let collectives = self.collectives();
        let goals = self.goals(progress);
        let Fabric { net, nics } = &mut self.fabric;
        let now = net.now();
        let totals = net.totals();
        let graph = &self.scenario.topology.graph;
        let (rpcs, machines) = nics.application.rpcs.results(now);
        let switches = (0u32..).zip(&graph.switches).map(|(number, name)| switch_result(net, number, name));
        let Outcome { mut flows, places, of_tables } = nics.application.results(&nics.hosts);
        let mut controls = self.scenario.control_names(self.written);
        for (number, own) in &self.own_programs {
            let flow = &mut flows[places[*number as usize] as usize];
            let name = self.scenario.control_name(flow.control.into(), self.written, own);
            note_control(flow, name, &mut controls);
        }
        let mut series = self.sampler.take_series();
        series.renumber(&places);
        let rules = faults::results(self.scenario, net, &Goodput::new(&series, &flows, now));
        let hosts = (0u16..).zip(&graph.hosts).zip(&nics.hosts);
        let hosts: Vec<_> = hosts
            .map(|((number, name), host)| host_result(net, HostId(number), host, name, self.scenario))
            .collect();
        let faults = fault_result(net);
        let mut warnings = std::mem::take(&mut self.warnings);
        let fallen = &nics.application.fallen;
        let mut programs = programs(&mut nics.hosts, fallen, &places);
        count_fallen(&mut programs, fallen.iter().map(|fallen| places[fallen.number as usize]), &flows);
        warnings.extend(programs.iter().filter_map(left_out));
        warnings.extend(drops::warning(self.scenario, net));
        warnings.extend(drops::of_hosts(self.scenario, &hosts));
        warnings.extend(without_bitmaps(&hosts));
        warnings.extend(lost_messages(&flows));
        let scenario = self.scenario;
        let traffic = scenario.traffic.iter().zip(&scenario.traffic_names).zip(of_tables);
        let traffic = traffic.map(|((traffic, name), flows)| TrafficResult {
            name: name.clone(),
            kind: traffic.kind(),
            flows,
            offered: Offered::of(std::slice::from_ref(traffic), offered_until),
            pattern: traffic.pattern(),
            priorities: scenario.priorities_of(traffic),
        });
        Results {
            name: self.scenario.name.clone(),
            seed,
            scenario: self.scenario.source.as_run(),
            overrides: self.scenario.source.overrides().to_vec(),
            simulated: now,
            events: totals.events,
            packets: nics.hosts.iter().map(|host| host.counters.sent).sum(),
            packet_hops: totals.packet_hops,
            traffic: traffic.collect(),
            collectives,
            goals,
            rpcs,
            machines,
            switches: switches.collect(),
            links: links::results(net, graph),
            hosts,
            several_nics: !self.scenario.topology.homes.is_none(),
            timeline: self.scenario.measure.timeline,
            controls,
            programs,
            faults,
            rules,
            changes: scenario.changes().into_iter().filter(|(time, _)| *time <= now).collect(),
            is_unreliable: self.scenario.transport.service == Service::Uc,
            offered: Offered::of(&self.scenario.traffic, offered_until),
            deadlock: None,
            warnings,
            first_received: nics.application.first_received,
            flows,
            series,
            run: figures,
        }
    }
}

/// `flow` runs under the control called `name`, which becomes one of `controls` where it is none yet.
fn note_control(flow: &mut FlowResult, name: String, controls: &mut Vec<String>) {
    let place = controls.iter().position(|control| *control == name).unwrap_or(controls.len());
    if let Ok(control) = u16::try_from(place) {
        flow.control = control;
        if place == controls.len() {
            controls.push(name);
        }
    }
}

/// Counts for each program the flows whose queue pairs it has lost to its fallback, of those at the places `fallen`.
fn count_fallen(programs: &mut [ProgramResult], fallen: impl Iterator<Item = u32>, flows: &[FlowResult]) {
    let with_failures: BTreeSet<u32> = fallen.collect();
    for program in programs {
        let its = |place: &&u32| flows[**place as usize].control == program.control;
        program.flows_fallen = with_failures.iter().filter(its).count() as u64;
    }
}

/// What a switch did, over all of its ports.
fn switch_result(net: &Net, number: u32, name: &str) -> SwitchResult {
    let mut result = SwitchResult { name: name.to_owned(), ..SwitchResult::default() };
    for port in net.switch_ports(number) {
        if let Some(counters) = net.counters(port) {
            result.drops += counters.dropped + counters.headroom_dropped;
            result.drops_behind_pause += counters.headroom_dropped;
            result.ecn_marks += counters.marked;
            result.trimmed += counters.trimmed;
            result.returned += counters.returned;
        }
        let pauses = net.pauses(port);
        result.pause_sent += u64::from(pauses.sent);
        result.pause_received += u64::from(pauses.received);
        result.paused += pauses.paused(net.now());
    }
    result.max_buffer_bytes = u64::from(net.switch(number).peak());
    let InSwitch { failed, no_way } = net.lost_in_switch(number);
    (result.lost_as_it_failed, result.lost_without_way) = (failed, no_way);
    // Of several sets of equal ports, the one that sent the most: a few acknowledgements say nothing of balance.
    let first = net.switch_ports(number).start;
    let sent =
        |local: u16| (net.tx_octets(first + u32::from(local)), net.rate_of_port(first + u32::from(local)));
    let once = |equal: EqualPorts<'_>| equal.ports().collect::<BTreeSet<_>>();
    let choices =
        net.routes().choices(number).map(|equal| once(equal).into_iter().map(sent).collect::<Vec<_>>());
    let busiest = choices.max_by_key(|ports| ports.iter().map(|(octets, _)| octets).sum::<u64>());
    result.imbalance = busiest.and_then(|ports| imbalance(&ports));
    result
}

/// What a host sent and received, and what its NIC counted. Hosts are the first nodes, and each has the port of its number.
fn host_result(net: &Net, id: HostId, host: &Host, name: &str, scenario: &Scenario) -> HostResult {
    let port = u32::from(id.0);
    let pauses = net.pauses(port);
    HostResult {
        name: name.to_owned(),
        tx_bytes: net.tx_octets(port),
        rx_bytes: net.rx_octets(id),
        pause_sent: pauses.sent.into(),
        pause_received: pauses.received.into(),
        paused: pauses.paused(net.now()),
        dropped: host.overflowed(),
        unheard: host.engine.unheard(),
        bitmaps_refused: host.engine.bitmaps_refused(),
        nic: host.parts().map(Box::new),
        cores: match &scenario.nic.config_of(name).model {
            NicModel::Parts(architecture) => CoreArray::of(architecture).map(Box::new),
            _ => None,
        },
    }
}

/// What rules of faults did, over all links; `None` where no link has any.
fn fault_result(net: &Net) -> Option<FaultResult> {
    let elsewhere = net.lost_elsewhere();
    let counted = (0u32..).zip(0..net.port_count()).filter_map(|(port, _)| net.fault_counters(port));
    let on_links = counted.fold(None, |sum: Option<FaultResult>, counters| {
        let mut sum = sum.unwrap_or_default();
        sum.dropped += counters.dropped.packets;
        sum.corrupted += counters.corrupted.packets;
        sum.duplicated += counters.duplicated.packets;
        sum.reordered += counters.reordered;
        sum.forged_cnps += counters.forged;
        Some(sum)
    });
    on_links.map(|sum| FaultResult {
        dropped: sum.dropped + elsewhere,
        dropped_in_switches: elsewhere,
        ..sum
    })
}

/// Of which packets a program asked for there are none; `None` where that did not happen.
fn left_out(program: &ProgramResult) -> Option<String> {
    let Tally { left_out, left_out_classes, .. } = program.tally;
    let classes = CLASSES.iter().filter(|(class, _)| class.meets(left_out_classes));
    let classes: Vec<_> = classes.map(|(_, name)| *name).collect();
    (left_out > 0).then(|| {
        let one = left_out == 1;
        format!(
            "{} asked for {left_out} packet{} of class {}, which the layout has not: {} not sent",
            program.elf,
            if one { "" } else { "s" },
            classes.join(" and "),
            if one { "it was" } else { "they were" }
        )
    })
}

/// What programs did, of each control that is one on all hosts together; `places` are those of flows by their numbers.
fn programs(hosts: &mut [Host], fallen: &[Fallen], places: &[u32]) -> Vec<ProgramResult> {
    let mut programs: Vec<ProgramResult> = Vec::new();
    let mut recorded: Vec<Events> = Vec::new();
    for (id, host) in (0u16..).zip(hosts) {
        // Law 0 is none, the controls follow, and then the laws of single flows that a parameter was written for.
        for (law, control) in (1u16..).zip(0u16..) {
            let law = match host.engine.law_mut(law) {
                Some(Law::Program(law)) => law,
                Some(_) => continue,
                None => break,
            };
            let control = law.origin().map_or(control, |origin| origin.saturating_sub(1));
            let failures = law.tally().faults.iter().map(|fault| {
                let of = fallen.iter().filter(|fallen| {
                    (fallen.host.0, fallen.qpn.get()) == (id, fault.qpn) && fallen.start <= fault.at
                });
                let flow = of.max_by_key(|fallen| fallen.start).map(|fallen| places[fallen.number as usize]);
                Failure { host: id, flow, fault: fault.clone() }
            });
            let known = programs.iter().position(|program| program.control == control);
            let place = known.unwrap_or_else(|| {
                let elf = law.image().name().to_owned();
                let (tally, failures, events) = (Tally::default(), Vec::new(), String::new());
                programs.push(ProgramResult { control, elf, tally, flows_fallen: 0, failures, events });
                recorded.push(Events::of(law.image()));
                programs.len() - 1
            });
            programs[place].tally.add(law.tally());
            programs[place].failures.extend(failures);
            recorded[place].add(id, law.recorded());
        }
    }
    for (program, events) in programs.iter_mut().zip(recorded) {
        if !events.is_empty() {
            program.events = events.to_string();
        }
        program.failures.sort_by_key(|failure| failure.fault.at);
        program.failures.truncate(FAULTS_KEPT);
    }
    programs
}

/// Of messages that were lost over unreliable connections; `None` where there were none.
fn lost_messages(flows: &[FlowResult]) -> Option<String> {
    let lost = || flows.iter().filter(|flow| flow.status == FlowStatus::Lost);
    let (lost, of) = (lost().map(|flow| u64::from(flow.naks)).sum::<u64>(), lost().count());
    let s = |count: u64| if count == 1 { "" } else { "s" };
    (lost > 0).then(|| {
        format!(
            "{lost} message{} of {of} flow{} did not arrive, and nobody sends them again",
            s(lost),
            s(of as u64)
        )
    })
}

/// Of losses that queue pairs recovered from without bitmaps, for there were none left; `None` where there were none such.
fn without_bitmaps(hosts: &[HostResult]) -> Option<String> {
    let refused: u64 = hosts.iter().map(|host| host.bitmaps_refused).sum();
    (refused > 0).then(|| {
        format!(
            "{refused} times a queue pair found no bitmap left for what came out of order or was to be sent again, and more was sent again \
             than was lost: `transport.bitmaps` is how many a host has"
        )
    })
}
