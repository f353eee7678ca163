//! `[machine]`: the hosts that answer requests.

use super::nic::Nic;
use super::read::Table;
use super::source::{ScenarioError, Source};
use super::traffic::Reading;
use super::tree::Kind;
use super::{Control, presets};
use crate::traffic::rpc::Rpc;
use crate::traffic::spec::{ControlIndex, Traffic};
use roci_fabric::packet::HostId;
use roci_fabric::topology::Topology;
use roci_machine::{Geometry, IioConfig, MachineConfig, MemoryConfig};
use roci_rpc::{REQUEST_HEADER, RETURN_HEADER};
use roci_units::{BitsPerSec, Span};

/// What the hosts that answer requests are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The machine.
    pub config: MachineConfig,
    /// What arrives is marked CE while so many lines stand in the I/O controller's buffer; `None`: never.
    pub hostcc: Option<u32>,
}

/// The occupancy from which on hostCC marks (Agarwal et al., SIGCOMM 2023, §4), where writes of a NIC are concerned.
const HOSTCC: u32 = 70;

impl Machine {
    /// Reads `[machine]`.
    pub(super) fn read(table: Option<Table<'_>>) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let usual = MachineConfig::default();
        let small = |key: &str, most: u32, usual: u16| -> Result<u16, ScenarioError> {
            let number = table.count(key, 1..=most)?;
            Ok(number.map_or(usual, |number| u16::try_from(number).unwrap_or(u16::MAX)))
        };
        let memory = MemoryConfig {
            latency: span(table, "miss")?.unwrap_or(usual.memory.latency),
            rate: memory_rate(table)?.unwrap_or(usual.memory.rate),
        };
        let iio = IioConfig {
            entries: table.count("iio_entries", 1..=65_535)?.unwrap_or(usual.iio.entries),
            residence: span(table, "iio_time")?.unwrap_or(usual.iio.residence),
        };
        let config = MachineConfig {
            cores: small("cores", 1024, usual.cores)?,
            threads_per_core: small("threads_per_core", 8, usual.threads_per_core)?,
            shared_speed: table.load("shared_speed")?.unwrap_or(usual.shared_speed),
            cache: geometry(table, &usual)?,
            hit: span(table, "hit")?.unwrap_or(usual.hit),
            fill_buffers: small("fill_buffers", 1024, usual.fill_buffers)?,
            memory,
            iio,
            ..usual
        };
        Ok(Self { config, hostcc: hostcc(table, config.iio.entries)? })
    }

    /// What a user should know who has set this where no host answers requests, or marks that no law heeds; `law` names that of an index.
    pub(super) fn notes<'a>(
        &self,
        traffic: &[Traffic],
        law: impl Fn(Option<ControlIndex>) -> &'a Control,
    ) -> Vec<String> {
        let requests = || {
            traffic.iter().filter_map(|traffic| match traffic {
                Traffic::Rpc(rpc) => Some(rpc),
                _ => None,
            })
        };
        let idle = (requests().next().is_none() && *self != Self::default()).then(|| {
            "`[machine]` has no effect: it is of hosts that answer requests, and no traffic here has `kind = \"rpc\"`".to_owned()
        });
        let heeds = presets::heeds_marks;
        let mut laws = requests().map(|rpc| law(rpc.common.control));
        let first = laws.next().filter(|_| self.hostcc.is_some());
        let unheeded = first.filter(|first| !heeds(first) && !laws.any(heeds)).map(|first| {
            format!(
                "`machine.hostcc` marks what arrives, and `{}` does not slow down for marks: set `transport.control = \"dctcp\"`",
                first.law.value
            )
        });
        idle.into_iter().chain(unheeded).collect()
    }

    /// Refuses requests that machines have no threads or no memory for, and responses that are longer than a packet.
    pub(super) fn fits(
        &self,
        source: &Source,
        reading: &Reading<'_>,
        topology: &Topology,
        nic: &Nic,
    ) -> Result<(), ScenarioError> {
        let machine = roci_machine::Machine::new(self.config);
        let hosts = topology.hosts();
        let mtu = |host: HostId| u64::from(nic.mtu_of(host, topology));
        let mut needs: Vec<(HostId, u64, u64)> = Vec::new();
        for (traffic, origin) in reading.traffic.iter().zip(&reading.origins) {
            let Traffic::Rpc(spec) = traffic else { continue };
            let refuse = |message: String, remedy: String| Err(source.error(*origin, message, remedy));
            let packet = spec.clients.iter().map(|&client| mtu(client)).chain([mtu(spec.server)]).min();
            let packet = packet.unwrap_or(0);
            let response = spec.response.0 + u64::from(RETURN_HEADER);
            if response > packet || packet <= u64::from(REQUEST_HEADER) {
                return refuse(
                    format!(
                        "a response of {}, with {RETURN_HEADER} octets before it, is longer than a packet of {packet}",
                        spec.response
                    ),
                    "make `response` shorter, or `nic.mtu` larger; that goes up to 4096".to_owned(),
                );
            }
            let place = needs.iter().position(|(host, ..)| *host == spec.server).unwrap_or_else(|| {
                needs.push((spec.server, 0, 0));
                needs.len() - 1
            });
            let (_, threads, octets) = &mut needs[place];
            *threads += u64::from(spec.threads);
            *octets += octets_of(spec, mtu(spec.server), topology.homes.nics(spec.server).count() as u64);
            if *threads > machine.threads() as u64 {
                return refuse(
                    format!("{threads} threads answer on `{}`", hosts[usize::from(spec.server.0)]),
                    format!(
                        "it has {} hardware threads: `machine.cores` times `machine.threads_per_core`",
                        machine.threads()
                    ),
                );
            }
            if *octets > MEMORY {
                return refuse(
                    format!("`{}` would need {octets} octets for buffers", hosts[usize::from(spec.server.0)]),
                    format!("it has room for {MEMORY}: make `rx_ring`, `request` or `connections` smaller"),
                );
            }
        }
        Ok(())
    }
}

/// What a machine has room for: numbers of lines have 32 bits.
const MEMORY: u64 = 1 << 37;

/// What a table needs at most of a server with so many NICs, its buffers rounded up to lines.
fn octets_of(spec: &Rpc, packet: u64, nics: u64) -> u64 {
    let ring = nics * u64::from(spec.threads) * u64::from(spec.rx_ring) * (packet + 192);
    ring + u64::from(spec.queue_pairs()) * (spec.request.0 + spec.response.0 + 256)
}

/// A time above zero.
fn span(table: Table<'_>, key: &str) -> Result<Option<Span>, ScenarioError> {
    table.period(key)
}

fn memory_rate(table: Table<'_>) -> Result<Option<BitsPerSec>, ScenarioError> {
    let rate = table.quantity::<BitsPerSec>("memory_rate")?;
    if rate == Some(BitsPerSec(0)) {
        return Err(table.refuse("memory_rate", "memory that carries nothing", "give a rate above zero"));
    }
    Ok(rate)
}

/// `cache`, `ways` and `io_ways`.
fn geometry(table: Table<'_>, usual: &MachineConfig) -> Result<Geometry, ScenarioError> {
    let byte = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
    let ways = table.count("ways", 1..=64)?.map_or(usual.cache.ways, byte);
    let io_ways = table.count("io_ways", 0..=64)?.map_or(usual.cache.io_ways.min(ways), byte);
    if io_ways > ways {
        let message = format!("`io_ways = {io_ways}` is more than the {ways} `ways` that the cache has");
        return Err(table.refuse("io_ways", message, "ways for I/O are some of all ways"));
    }
    let octets = table.bytes("cache", 4096..=1 << 32)?.map_or_else(|| usual.cache_octets(), |size| size.0);
    let set = u64::from(ways) * u64::from(usual.line);
    if octets % set != 0 || octets < set {
        let message = format!(
            "a cache of {octets} octets has no whole number of sets of {ways} lines of {}",
            usual.line
        );
        let remedy = format!("make `cache` a multiple of {set}B");
        return Err(table.refuse("cache", message, remedy));
    }
    Ok(Geometry { sets: u32::try_from(octets / set).unwrap_or(u32::MAX), ways, io_ways })
}

fn hostcc(table: Table<'_>, entries: u32) -> Result<Option<u32>, ScenarioError> {
    match table.get("hostcc").map(|node| &node.kind) {
        None | Some(Kind::Flag(false)) => Ok(None),
        Some(Kind::Flag(true)) => Ok(Some(HOSTCC.min(entries))),
        Some(_) => table.count("hostcc", 1..=entries),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PERMUTATION, parse, star};
    use super::*;
    use roci_units::Ratio;

    fn read(lines: &str) -> Result<Machine, String> {
        parse(&(star(PERMUTATION) + "[machine]\n" + lines)).map(|it| it.machine).map_err(|it| it.to_string())
    }

    #[test]
    fn a_machine_is_a_socket_of_the_paper_unless_it_says_otherwise() {
        assert_eq!(parse(&star(PERMUTATION)).unwrap().machine, Machine::default());
        assert_eq!(read("").unwrap(), Machine { config: MachineConfig::default(), hostcc: None });
        let lines = "cores = 4\nthreads_per_core = 1\nshared_speed = 0.5\ncache = \"1MiB\"\nways = 16\nio_ways = 3\n\
            hit = \"20ns\"\nmiss = \"100ns\"\nfill_buffers = 10\nmemory_rate = \"800Gb/s\"\niio_entries = 80\n\
            iio_time = \"50ns\"\nhostcc = true\n";
        let Machine { config, hostcc } = read(lines).unwrap();
        assert_eq!((config.cores, config.threads_per_core, config.fill_buffers), (4, 1, 10));
        assert_eq!(config.shared_speed, Ratio::new(1, 2));
        assert_eq!(config.cache, Geometry { sets: 1024, ways: 16, io_ways: 3 });
        assert_eq!((config.hit, config.memory.latency), (Span::from_nanos(20), Span::from_nanos(100)));
        assert_eq!(config.memory.rate, BitsPerSec::from_gbps(800));
        assert_eq!((config.iio.entries, config.iio.residence), (80, Span::from_nanos(50)));
        assert_eq!(hostcc, Some(70));
        assert_eq!(read("iio_entries = 60\nhostcc = true\n").unwrap().hostcc, Some(60));
        assert_eq!(read("hostcc = 30\n").unwrap().hostcc, Some(30));
        assert_eq!(read("hostcc = false\n").unwrap().hostcc, None);
    }

    #[test]
    fn marks_of_a_machine_that_no_law_heeds_are_told_of() {
        let told = |control: &str, rest: &str| {
            let requests = "[[traffic]]\nkind = \"rpc\"\nserver = \"h0\"\nrequest = \"64B\"\ncount = 1\n";
            let text = star(requests) + "[machine]\nhostcc = true\n" + rest;
            let text = format!("{text}[transport]\ncontrol = \"{control}\"\n");
            parse(&text).unwrap().notes().collect::<Vec<_>>().join(" ")
        };
        for (law, is_told) in [("none", true), ("timely", true), ("dctcp", false), ("dcqcn", false)] {
            let notes = told(law, "");
            assert_eq!(notes.contains("does not slow down for marks"), is_told, "{law}: {notes}");
        }
        let stops = parse(&format!(
            "stop = \"1ms\"\n{}",
            star("[[traffic]]\nkind = \"rpc\"\nserver = \"h0\"\nrequest = \"64B\"\nwarmup = \"2ms\"\n")
        ));
        let notes: Vec<_> = stops.unwrap().notes().map(|note| note.to_string()).collect();
        assert!(notes.iter().any(|note| note.contains("no request of `0` is counted")), "{notes:?}");
        // It marks where switches do not.
        assert!(!told("dctcp", "[switch]\necn = false\n").contains("`switch.ecn` is off"));
    }

    #[test]
    fn a_machine_that_answers_nothing_is_told_of() {
        let told = |lines: &str| {
            let scenario = parse(&(star(PERMUTATION) + "[machine]\n" + lines)).unwrap();
            scenario.notes().collect::<Vec<_>>().join(" ")
        };
        assert!(told("cores = 4\n").contains("`[machine]` has no effect"));
        assert_eq!(told(""), "");
    }

    #[test]
    fn a_machine_that_cannot_be_is_refused_with_a_remedy() {
        for (lines, message, remedy) in [
            ("io_ways = 13\n", "more than the 12 `ways`", "some of all ways"),
            ("cache = \"1MB\"\n", "no whole number of sets", "a multiple of 768B"),
            ("memory_rate = \"0Gb/s\"\n", "carries nothing", "above zero"),
            ("hostcc = 94\n", "out of range", "up to iio_entries"),
            ("cores = 0\n", "out of range", "1 to 1024"),
            ("llc = 3\n", "llc", ""),
        ] {
            let told = read(lines).unwrap_err();
            assert!(told.contains(message) && told.contains(remedy), "{lines}: {told}");
        }
    }
}
