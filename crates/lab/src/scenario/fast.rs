//! Links whose rate laws cannot tell: they count in kb/s, in 32 bits.

use super::source::{ScenarioError, Source};
use super::transport::Control;
use crate::traffic::{ControlIndex, Networks, Traffic};
use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{COUNTED_MAX, Pairing, Topology};
use roci_units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};

/// The laws that calculate with no link's rate. At their top those with a rate are as fast as the link, and do not pace.
const LAWS: [&str; 5] = ["none", "dcqcn", "timely", "swift", "homa"];

/// The links that are faster than laws can tell, and which flows may take them.
#[derive(Debug, Default)]
pub(super) struct Fast {
    /// The fastest of those that flows of each control may take; by `None`, those of the common one.
    fastest: BTreeMap<Option<ControlIndex>, BitsPerSec>,
}

impl Fast {
    /// Of `topology`, where `networks` have controls of their own, with this traffic.
    pub(super) fn of(topology: &Topology, networks: &Networks, traffic: &[Traffic]) -> Self {
        let mut fast = Self::default();
        if topology.graph.links.iter().all(|link| link.rate <= COUNTED_MAX) {
            return fast;
        }
        let ways = Ways::of(topology);
        let mut pairing = Pairing::of(topology);
        let mut nearest = |hosts| pairing.as_mut().map_or_else(|| vec![hosts], |it| it.nearest(hosts));
        for table in traffic {
            let pairs = table.pairs().into_iter().flatten();
            let known: Vec<_> = pairs.map(|(a, b, it)| ([a, b], it.control)).take(PAIRS).collect();
            if (1..PAIRS).contains(&known.len()) {
                for (hosts, own) in BTreeSet::from_iter(known) {
                    for nics in nearest(hosts) {
                        fast.take(networks.control(nics).or(own), ways.fastest(nics));
                    }
                }
            } else {
                fast.take_all(&ways, networks, &table.controls().collect());
            }
        }
        fast
    }

    /// Takes all links into account that flows between any two hosts may take, which have one of these controls of their `own`.
    fn take_all(&mut self, ways: &Ways, networks: &Networks, own: &BTreeSet<Option<ControlIndex>>) {
        let nics = || (0u16..).map(HostId).take(ways.nics.len());
        for nic in nics() {
            let fastest = ways.fastest([nic; 2]);
            for control in networks.of_nic(nic) {
                match control {
                    Some(_) => self.take(*control, fastest),
                    None => own.iter().for_each(|own| self.take(*own, fastest)),
                }
            }
        }
    }

    fn take(&mut self, control: Option<ControlIndex>, rate: BitsPerSec) {
        if rate > COUNTED_MAX {
            let fastest = self.fastest.entry(control).or_insert(rate);
            *fastest = rate.max(*fastest);
        }
    }

    /// The controls whose flows may take such links, of the `common` one and of `own`, with the fastest of these.
    fn met<'a>(
        &self,
        common: &'a Control,
        own: &'a [Control],
    ) -> impl Iterator<Item = (&'a Control, BitsPerSec)> {
        let own = (0..).map(|index| Some(ControlIndex(index))).zip(own);
        [(None, common)]
            .into_iter()
            .chain(own)
            .filter_map(|(index, control)| Some((control, *self.fastest.get(&index)?)))
    }

    /// Refuses links too fast for a law whose flows may take them, of the `common` control or of `own`.
    pub(super) fn fits(
        &self,
        source: &Source,
        common: &Control,
        own: &[Control],
    ) -> Result<(), ScenarioError> {
        let counts = |control: &Control| {
            let is_known = LAWS.contains(&control.law.value.as_str()) || control.is_program();
            !is_known || control.wants_telemetry()
        };
        self.met(common, own).find(|(control, _)| counts(control)).map_or(Ok(()), |(control, rate)| {
            let law = &control.law.value;
            let message = format!(
                "law `{law}` calculates with the rates of links, of up to {COUNTED_MAX}, and here one has {rate}"
            );
            let others = LAWS.map(|name| format!("`{name}`")).join(", ");
            let remedy = format!(
                "give no link more than {COUNTED_MAX}, or take one of {others}; for links within servers alone, by `[[transport.on]]`"
            );
            Err(source.error(control.law.origin, message, remedy))
        })
    }

    /// What a program is told instead.
    pub(super) fn note(&self, common: &Control, own: &[Control]) -> Option<String> {
        self.met(common, own).find(|(control, _)| control.is_program()).map(|(control, rate)| {
            format!(
                "{} reads 4294967295 kb/s as the rate of a link that is faster, such as those of {rate} here: as its own rate that is the link's, \
                 but a window that it calculates from it is too short",
                control.name()
            )
        })
    }
}

/// Of tables with fewer pairs of hosts these are looked at one by one.
const PAIRS: usize = 1 << 17;

/// The rates of a network's links, by the parts of it that nothing joins.
struct Ways {
    /// The part of each node.
    parts: Vec<u32>,
    /// The fastest link between switches of each part.
    between: BTreeMap<u32, BitsPerSec>,
    /// The link of each NIC.
    nics: Vec<BitsPerSec>,
}

impl Ways {
    fn of(topology: &Topology) -> Self {
        let graph = &topology.graph;
        let parts = topology.islands();
        let mut between = BTreeMap::new();
        let is_nic = |node: NodeId| (node.0 as usize) < graph.hosts.len();
        for link in graph.links.iter().filter(|link| !is_nic(link.a) && !is_nic(link.b)) {
            let fastest = between.entry(parts[link.a.0 as usize]).or_insert(link.rate);
            *fastest = link.rate.max(*fastest);
        }
        Self { parts, between, nics: graph.host_rates() }
    }

    fn part(&self, nic: HostId) -> u32 {
        self.parts[usize::from(nic.0)]
    }

    /// The fastest link that may be on the way between two NICs.
    fn fastest(&self, nics: [HostId; 2]) -> BitsPerSec {
        let [from, to] = nics.map(|nic| self.nics[usize::from(nic.0)]);
        let between = self.between.get(&self.part(nics[0])).copied().unwrap_or_default();
        from.max(to).max(between)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    const NVLINK: &str = r#"
        [topology]
        kind = "star"
        hosts = 2
        rate = "7.2Tb/s"
        delay = "100ns"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "1MB" }]
    "#;

    fn parse(set: &[(&str, &str)]) -> Result<Scenario, super::ScenarioError> {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::parse(NVLINK, "here.toml", &set)
    }

    #[test]
    fn laws_that_calculate_with_the_rates_of_links_are_refused_where_one_is_faster_than_they_can_tell() {
        for law in ["hpcc", "powertcp", "theta-powertcp", "dctcp", "nscc"] {
            let error = parse(&[("transport.control", law)]).unwrap_err().to_string();
            let told = format!(
                "law `{law}` calculates with the rates of links, of up to 4Tb/s, and here one has 7200Gb/s"
            );
            assert!(error.contains(&told) && error.contains("take one of `none`, `dcqcn`"), "{error}");
            parse(&[("transport.control", law), ("topology.rate", "4Tb/s")]).unwrap();
        }
        for law in super::LAWS {
            parse(&[("transport.control", law)]).unwrap();
        }
        let error = parse(&[("topology.rate", "101Tb/s")]).unwrap_err().to_string();
        assert!(error.contains("up to 100Tb/s"), "{error}");
    }

    #[test]
    fn a_program_is_taken_with_a_note_on_what_it_reads_and_refused_where_it_reads_telemetry() {
        let program = |name: &str| {
            let control = format!("{{ law = \"program\", elf = \"firmware/{name}.elf\" }}");
            parse(&[("transport.control", &control)])
        };
        let scenario = program("dcqcn").unwrap();
        let is_told = |note: &str| {
            note.contains("firmware/dcqcn.elf reads 4294967295 kb/s") && note.contains("7200Gb/s")
        };
        assert!(scenario.notes().any(is_told), "{:?}", scenario.notes().collect::<Vec<_>>());
        let error = program("hpcc").unwrap_err().to_string();
        assert!(error.contains("law `program` calculates with the rates of links"), "{error}");
    }

    /// Two servers with fast links within, and what flows have there.
    fn rails(law: &str, on: &str, traffic: &str) -> Result<Scenario, super::ScenarioError> {
        let text = format!(
            "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 2\nspines = 1\nrate = \"400Gb/s\"\ndelay = \"1us\"\nscale_up = \"7.2Tb/s\"\n\
             [transport]\ncontrol = \"{law}\"\n{on}\n[[traffic]]\n{traffic}\n"
        );
        Scenario::parse(&text, "here.toml", &[])
    }

    #[test]
    fn links_that_flows_of_a_law_never_take_are_no_matter_to_it() {
        let (own, all) = ("on = [{ switches = [\"up*\"] }]", "kind = \"all-to-all\"\nsize = \"1KB\"");
        for law in ["hpcc", "powertcp", "theta-powertcp", "dctcp", "nscc"] {
            rails(law, "", all).unwrap();
            let error = rails(law, own, all).unwrap_err().to_string();
            assert!(
                error.contains(&format!("law `{law}` calculates")) && error.contains("`[[transport.on]]`"),
                "{error}"
            );
            let error =
                rails("none", &format!("on = [{{ switches = [\"up*\"], control = \"{law}\" }}]"), all)
                    .unwrap_err();
            assert!(error.to_string().contains(&format!("law `{law}` calculates")), "{error}");
            // Who talks to whom is known here.
            let flows = |to: &str| {
                format!("kind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"{to}\", size = \"1KB\" }}]")
            };
            rails(law, own, &flows("h2")).unwrap();
            rails(law, own, &flows("h1")).unwrap_err();
            let both = "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h2\", size = \"1KB\" }, \
                { src = \"h0\", dst = \"h1\", size = \"1KB\", control = \"none\" }]";
            rails(law, own, both).unwrap();
        }
        let program = |elf: &str| {
            let text = format!(
                "on = [{{ switches = [\"up*\"], control = {{ law = \"program\", elf = \"firmware/{elf}.elf\" }} }}]"
            );
            rails("hpcc", &text, all)
        };
        let scenario = program("dcqcn").unwrap();
        assert!(scenario.notes().any(|note| note.contains("reads 4294967295 kb/s")));
        assert!(program("hpcc").is_err());
    }
}
