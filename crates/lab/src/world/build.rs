//! The fabric of a scenario, the NICs on its hosts, and the engines in them.

use super::driver::Driver;
use super::faults;
use super::profile::Profiles;
use super::receiving::Receiving;
use crate::run::RunError;
use crate::scenario::program::Costs;
use crate::scenario::{NicModel, Scenario};
use crate::traffic::{ControlIndex, Traffic};
use roci_control::program::ImageError;
use roci_control::{Image, Law, Programmed};
use roci_fabric::fabric::Fabric;
use roci_fabric::graph::Graph;
use roci_fabric::net::{FabricConfig, Net};
use roci_fabric::packet::HostId;
use roci_nic::{Classes, Delays, DrainConfig, Host, Path, Simulated};
use roci_switch::config::CUSTOMARY_FRAME;
use roci_transport::{Access, Engine, EngineConfig, Pd};
use roci_units::{BitsPerSec, Bytes, Random};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{Hop, IpVersion, Opcode};
use std::sync::Arc;

/// The network of `scenario` with its hosts, at the start of time.
pub(super) fn fabric(
    scenario: &Scenario,
    traffic: Arc<[Traffic]>,
    seed: u64,
) -> Result<Fabric<Simulated<Driver>>, RunError> {
    let graph = &scenario.topology.graph;
    let mut hosts = roci_prefetch::with_huge_pages(graph.hosts.len());
    let mut keys = Vec::with_capacity(graph.hosts.len());
    let mut laws = Laws::new(scenario);
    let traced = scenario.gathers_telemetry();
    for (((number, name), link), traced) in (0u64..).zip(&graph.hosts).zip(graph.host_rates()).zip(traced) {
        let mut engine = engine(scenario, name, link, seed, number, &mut laws)?;
        let (_, rkey) = engine
            .register_everything(Pd::default(), Access::ALL)
            .expect("a new engine has room for a region");
        keys.push(rkey);
        let mut host = host(scenario, name, engine, Random::new(seed, DELAY_STREAMS + number));
        host.set_traced(traced);
        if let Some(how) = scenario.transport.paths {
            host.spread(how, Random::new(seed, SPREAD_STREAMS + number));
        }
        hosts.push(host);
    }
    let config = config(scenario, seed);
    let mut driver =
        Driver::new(Profiles::new(scenario, &keys), traffic, Receiving::new(&scenario.application), seed);
    // Weights follow the rates of links.
    driver.reroutes = !config.outages.is_empty() || config.weighted && !config.faults.is_empty();
    let nics = Simulated::new(hosts, driver);
    let mut fabric =
        Fabric::new(graph, &config, nics).map_err(|error| RunError::Impossible(error.to_string()))?;
    if scenario.counts_priorities() {
        fabric.net.count_priorities();
    }
    set_receive_paths(scenario, &mut fabric);
    Ok(fabric)
}

/// The engine of the host called `name`, which has this number and a link of this rate, with its laws.
fn engine(
    scenario: &Scenario,
    name: &str,
    link: BitsPerSec,
    seed: u64,
    number: u64,
    laws: &mut Laws<'_>,
) -> Result<Engine, RunError> {
    let model = &scenario.nic.config_of(name).model;
    let config = EngineConfig {
        link,
        seed: Random::new(seed, HOST_STREAMS + number).next_u64(),
        wire_overhead: data_overhead(scenario),
        cnp_priority: scenario.switch.classes.cnp,
        flow_bits: Path::FLOW_BITS,
        bitmaps_max: scenario.transport.bitmaps,
        pacing_burst: match model {
            NicModel::Parts(parts) => parts.span(parts.send.slack),
            NicModel::Ideal | NicModel::Delaying => link.time_for(MADE_UP * full_packet(scenario)),
        },
        ..EngineConfig::default()
    };
    let mut engine = Engine::with_bitmaps(config, scenario.transport.bitmap_packets());
    let cores = match model {
        NicModel::Parts(parts) if parts.cores.pairs > 0 => Some(&parts.cores),
        _ => None,
    };
    for law in laws.of(link, cores.map(Costs::of))? {
        let mut law = law.clone();
        if let (Law::Program(program), Some(cores)) = (&mut law, cores) {
            program.set_pairs(cores.pairs);
        }
        engine.add_law(law);
    }
    Ok(engine)
}

/// The NIC of the host called `name` around its engine. What happens in it by chance is drawn from `random`.
fn host(scenario: &Scenario, name: &str, engine: Engine, random: Random) -> Host {
    let (nic, classes) = (scenario.nic.config_of(name), classes(scenario));
    let mut host = match &nic.model {
        NicModel::Ideal => Host::new(engine, classes, Delays::IDEAL, random),
        NicModel::Delaying => Host::new(engine, classes, Delays::delaying(), random),
        NicModel::Parts(parts) => Host::of_parts(engine, classes, Arc::clone(parts), random),
    };
    if scenario.may_reorder() {
        host.watch_order();
    }
    if let Some(shares) = &nic.ets {
        host.set_shares(shares, scenario.switch.config.max_frame);
    }
    host
}

/// Gives NICs what they receive by, which may be slower than their links and has them pause their switches.
fn set_receive_paths(scenario: &Scenario, fabric: &mut Fabric<Simulated<Driver>>) {
    let max_frame = scenario.switch.config.max_frame.max(CUSTOMARY_FRAME);
    let pause = if scenario.switch.config.pfc.is_some() { scenario.switch.classes.pause } else { 0 };
    let Fabric { net, nics } = fabric;
    for ((number, name), host) in (0u16..).zip(&scenario.topology.graph.hosts).zip(&mut nics.hosts) {
        let nic = scenario.nic.config_of(name);
        if let NicModel::Parts(_) = nic.model {
            host.set_pauses(net, HostId(number), pause, max_frame);
        }
        // A FIFO that empties as fast as the link never fills, and has no effect.
        if let Some(rate) = nic.rx_rate {
            let drain = DrainConfig { fifo: nic.rx_fifo.unwrap_or(UNLIMITED), rate, pause, max_frame };
            host.set_drain(net, HostId(number), drain);
        }
    }
}

/// A receive FIFO that never is full.
const UNLIMITED: Bytes = Bytes(u64::MAX);

/// Packets of others that a paced queue pair may wait for at the port and keep its pace, where nothing else takes time.
const MADE_UP: u64 = 8;

/// Streams of chance of hosts: the seeds of their engines, and the delays of their NICs.
const HOST_STREAMS: u64 = 0;
const DELAY_STREAMS: u64 = 1 << 32;
const SPREAD_STREAMS: u64 = 1 << 33;

/// Which law a flow runs, among those of its engine: none is 0, the common one 1, then those of single flows.
pub(super) fn law_index(control: Option<ControlIndex>) -> u16 {
    control.map_or(1, |own| u16::try_from(own.0 + 2).expect("fewer than 65 534 laws"))
}

/// What decides how a law is made: the host's link, and what instructions cost on its cores.
type Place = (BitsPerSec, Option<Costs>);

/// The laws of a scenario for hosts of one kind after the other.
struct Laws<'a> {
    scenario: &'a Scenario,
    made: Vec<(Place, Vec<Law>)>,
}

impl<'a> Laws<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, made: Vec::new() }
    }

    /// The laws on links of `link`, in the order of [`law_index`] from 1; `costs`: what instructions take on the cores that
    /// run programs, where the NIC has some.
    fn of(&mut self, link: BitsPerSec, costs: Option<Costs>) -> Result<&[Law], RunError> {
        let place = match self.made.iter().position(|(made, _)| *made == (link, costs)) {
            Some(place) => place,
            None => {
                let controls =
                    std::iter::once(&self.scenario.transport.control).chain(&self.scenario.controls);
                let mtu = self.scenario.nic.config.mtu;
                let source = &self.scenario.source;
                let laws = controls.map(|control| match costs {
                    None => control.make(source, link, mtu),
                    Some(costs) => control.on_core(costs).make(source, link, mtu),
                });
                let laws: Vec<Law> = laws.collect::<Result<_, _>>().map_err(RunError::Scenario)?;
                try_replacements(self.scenario, &laws)?;
                self.made.push(((link, costs), laws));
                self.made.len() - 1
            }
        };
        Ok(&self.made[place].1)
    }
}

/// Takes in each program that will replace others, once as for the cores of these: what cannot be is refused before the run.
fn try_replacements(scenario: &Scenario, laws: &[Law]) -> Result<(), RunError> {
    for write in &scenario.writes {
        let Some(image) = write.program.image() else { continue };
        let indices = std::iter::once(None).chain((0..).map(|index| Some(ControlIndex(index))));
        for (law, index) in laws.iter().zip(indices) {
            let Law::Program(law) = law else { continue };
            if !write.is_for(&scenario.traffic, index) {
                continue;
            }
            replacement(law, image).map_err(|error| {
                let message = format!("on these cores: {}: {error}", image.name());
                let remedy =
                    "`roci program check --nic` says more; `cycles` is the most that an event may take";
                RunError::Scenario(scenario.source.error(write.text.origin, message, remedy))
            })?;
        }
    }
    Ok(())
}

/// `image` for the cores, and within the limits, of the program that it replaces in `law`.
pub(super) fn replacement(law: &Programmed, image: &Arc<Image>) -> Result<Arc<Image>, ImageError> {
    let options = law.image().options();
    if image.options() == options { Ok(Arc::clone(image)) } else { image.remade(options).map(Arc::new) }
}

fn config(scenario: &Scenario, seed: u64) -> FabricConfig {
    let graph = &scenario.topology.graph;
    let switch = &scenario.switch;
    let fastest = graph.fastest_rates();
    let special = (0u32..).zip(&graph.switches).zip(&fastest).filter_map(|((number, name), &rate)| {
        let own = switch.config_of(name, rate);
        (*own != switch.config).then(|| (number, own.clone()))
    });
    FabricConfig {
        seed,
        switch: switch.config.clone(),
        switch_on: special.collect(),
        hop_octets: if switch.int { Hop::OCTETS } else { 0 },
        balancing: switch.routing,
        weighted: switch.wcmp,
        faults: faults::specs(scenario),
        outages: faults::outages(scenario),
        detect: scenario.faults.detect(),
        detect_own: scenario.faults.detect_local(switch.routing),
    }
}

fn classes(scenario: &Scenario) -> Classes {
    let classes = &scenario.switch.classes;
    Classes { ack: (classes.ack != classes.data).then_some(classes.ack), notice: classes.cnp }
}

/// Octets on the wire besides payload of the most common data packet, the one in the middle of a WRITE.
#[expect(clippy::cast_possible_truncation, reason = "20")]
pub(super) fn data_overhead(scenario: &Scenario) -> u16 {
    let layout = scenario.transport.layout;
    roci_wire::overhead(Opcode::WRITE_MIDDLE, layout, IpVersion::V4) + WIRE_OVERHEAD as u16
}

/// Octets of a full packet on the wire.
pub(super) fn full_packet(scenario: &Scenario) -> u64 {
    u64::from(scenario.nic.config.mtu) + u64::from(data_overhead(scenario))
}

/// The name of node `node`.
pub(super) fn node_name(graph: &Graph, node: u32) -> &str {
    let node = node as usize;
    graph.hosts.get(node).unwrap_or_else(|| &graph.switches[node - graph.hosts.len()])
}

/// The name of `port`: its node's and the neighbour's, `s>t`, and its number from 1 among those that lead there, `s>t#2`, where several do.
pub(super) fn port_name<'a>(net: &Net, port: u32, name: impl Fn(u32) -> &'a str) -> String {
    let leads_to = |port| net.node_of(net.peer(port));
    let peer = leads_to(port);
    let one = format!("{}>{}", name(net.node_of(port)), name(peer));
    // A host has one link.
    let (Some(switch), Some(_)) = (net.switch_of(port), net.switch_of(net.peer(port))) else { return one };
    let parallel = || net.switch_ports(switch).filter(|&other| leads_to(other) == peer);
    match parallel().count() {
        1 => one,
        _ => format!("{one}#{}", parallel().take_while(|&other| other <= port).count()),
    }
}
