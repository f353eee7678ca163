//! Fat trees: pods of ToR and aggregation switches under a core.

use super::shapes::at_least_one;
use super::{Builder, HOSTS_MAX, Topology, TopologyError, check};
use roci_units::{BitsPerSec, Span};

/// How the size of a fat tree is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// At least so many hosts, in three tiers with full bisection.
    ///
    /// Its pods are those of a tree of switches with `2n` ports: `n` ToRs with `n` hosts each and `n` aggregation
    /// switches, under `n²` cores; of its `2n` pods only as many are built as are needed, at least two. So a tree has
    /// `pods × n × n` hosts. Of all such trees the smallest that holds the hosts is built, and of equal ones the one
    /// with the fewest ports per switch: 128 = 8 × 4 × 4, 1024 = 16 × 8 × 8, 4096 = 16 × 16 × 16. A size between two
    /// trees is rounded up, which the note says.
    Hosts(u32),
    /// Three tiers of switches with `k` ports, `k` even: `k` pods of `k/2` ToRs with `k/2` hosts each, `k/2`
    /// aggregation switches per pod, and `k²/4` cores.
    Radix(u32),
    /// By its parts. One of `cores` and `aggs_per_pod` must be a multiple of the other. A single pod needs no cores
    /// and a single ToR no aggregation switch.
    Pods {
        /// How many pods.
        pods: u32,
        /// ToR switches in each pod.
        tors_per_pod: u32,
        /// Aggregation switches in each pod; each has a link to every ToR of its pod.
        aggs_per_pod: u32,
        /// Core switches in all. With more cores than `aggs_per_pod`, aggregation switch `j` of each pod has links
        /// to the `j`-th share of them; with fewer, to core `j` modulo `cores`.
        cores: u32,
        /// Hosts on each ToR.
        hosts_per_tor: u32,
    },
}

/// A fat tree. Hosts, ToRs and aggregation switches are numbered through, pod after pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Its size.
    pub form: Form,
    /// The rate of the hosts' links.
    pub rate: BitsPerSec,
    /// The rate of the links between switches; `None`: `rate`.
    pub fabric_rate: Option<BitsPerSec>,
    /// The rate of those to cores; `None`: that of the others between switches.
    pub core_rate: Option<BitsPerSec>,
    /// The delay of each link.
    pub delay: Span,
}

impl FatTree {
    /// Builds it; the note says when there are more hosts than asked for.
    ///
    /// # Errors
    /// When a number is out of range, the cores cannot be shared evenly, or pods or ToRs are not joined.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let parts = match self.form {
            Form::Hosts(hosts) => smallest(at_least_one("hosts", hosts)?)?,
            Form::Radix(k) => of_radix(k)?,
            Form::Pods { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor } => Parts {
                pods: at_least_one("pods", pods)?,
                tors: at_least_one("tors_per_pod", tors_per_pod)?,
                aggs: u64::from(aggs_per_pod),
                cores: u64::from(cores),
                hosts: at_least_one("hosts_per_tor", hosts_per_tor)?,
            },
        };
        let mut topology = self.of_parts(parts)?;
        if let Form::Hosts(wanted) = self.form
            && topology.graph.hosts.len() != wanted as usize
        {
            topology.note = Some(format!(
                "fat-tree: {wanted} hosts rounded up to {} ({} pods of {} ToRs with {} hosts each)",
                topology.graph.hosts.len(),
                parts.pods,
                parts.tors,
                parts.hosts,
            ));
        }
        Ok(topology)
    }

    fn of_parts(&self, parts: Parts) -> Result<Topology, TopologyError> {
        let Parts { pods, tors, aggs, cores, hosts } = parts;
        parts.check()?;
        let tors_in_all = pods.saturating_mul(tors);
        let mut builder = Builder::new(tors_in_all.saturating_mul(hosts), self.delay)?;
        let first_tor = u64::from(builder.switches("tor", tors_in_all)?);
        let first_agg = u64::from(builder.switches("agg", pods.saturating_mul(aggs))?);
        let first_core = u64::from(builder.switches("core", cores)?);
        let up_links = if cores == 0 { 0 } else { (cores / aggs).max(1) };
        check::link_count(tors_in_all * (hosts + aggs) + pods * aggs * up_links)?;

        let fabric_rate = self.fabric_rate.unwrap_or(self.rate);
        let core_rate = self.core_rate.unwrap_or(fabric_rate);
        let mut link = |a: u64, b: u64, rate| {
            #[expect(clippy::cast_possible_truncation, reason = "the builder has bounded the nodes")]
            builder.link(a as u32, b as u32, rate);
        };
        for tor in 0..tors_in_all {
            for host in 0..hosts {
                link(tor * hosts + host, first_tor + tor, self.rate);
            }
            for agg in 0..aggs {
                link(first_tor + tor, first_agg + tor / tors * aggs + agg, fabric_rate);
            }
        }
        for agg in 0..pods * aggs {
            for up in 0..up_links {
                let core = (agg % aggs * up_links + up) % cores;
                link(first_agg + agg, first_core + core, core_rate);
            }
        }
        builder.finish()
    }
}

/// The parts of a tree; `tors` and `aggs` are those of a pod, `hosts` those of a ToR, `cores` all.
#[derive(Clone, Copy)]
struct Parts {
    pods: u64,
    tors: u64,
    aggs: u64,
    cores: u64,
    hosts: u64,
}

impl Parts {
    fn check(self) -> Result<(), TopologyError> {
        let Self { pods, tors, aggs, cores, .. } = self;
        if aggs == 0 && (tors > 1 || pods > 1) {
            let parts = pods.saturating_mul(tors);
            return Err(TopologyError::NotJoined { what: "ToRs", parts, key: "aggs_per_pod" });
        }
        if cores == 0 && pods > 1 {
            return Err(TopologyError::NotJoined { what: "pods", parts: pods, key: "cores" });
        }
        let even = cores == 0 || (aggs > 0 && (cores.is_multiple_of(aggs) || aggs.is_multiple_of(cores)));
        if even { Ok(()) } else { Err(TopologyError::UnevenCores { cores, aggs }) }
    }
}

fn of_radix(k: u32) -> Result<Parts, TopologyError> {
    let k = u64::from(k);
    if k < 2 {
        return Err(TopologyError::TooFew { key: "k", value: k, least: 2 });
    }
    if !k.is_multiple_of(2) {
        return Err(TopologyError::OddRadix(k));
    }
    let half = k / 2;
    Ok(Parts { pods: k, tors: half, aggs: half, cores: half * half, hosts: half })
}

/// The smallest tree that [`Form::Hosts`] describes with at least `hosts` hosts.
fn smallest(hosts: u64) -> Result<Parts, TopologyError> {
    if hosts > u64::from(HOSTS_MAX) {
        return Err(TopologyError::TooManyHosts(hosts));
    }
    // From the first `half` on whose two pods hold all hosts, trees only grow.
    let enough = (1..).find(|half| 2 * half * half >= hosts).unwrap_or(1);
    let sizes = (1..=enough).filter_map(|half: u64| {
        let pods = hosts.div_ceil(half * half).max(2);
        (pods <= 2 * half).then_some((pods * half * half, half, pods))
    });
    // The tuple orders by hosts, then by ports.
    let (_, half, pods) = sizes.min().unwrap_or((2, 1, 2));
    Ok(Parts { pods, tors: half, aggs: half, cores: half * half, hosts: half })
}
