//! The topology files of the HPCC simulator.
//!
//! The first line counts nodes, switches and links; the second lists the numbers of the nodes that are switches; then
//! each line is a link: `node node rate delay loss`. Numbers run from 0. Nodes keep their numbers in their names:
//! node 7 is `h7` as a host and `s7` as a switch. Any rate is read, such as `40Gbps`. Empty lines and what follows a
//! `#` are skipped, and the switches may stand on several lines. What stands behind the links that the first line
//! counts is not read: the simulator's own files explain themselves there.
//!
//! ASTRA-sim's files are such, and so are `SimAI`'s, but for the first line: it counts nodes, GPUs of a server, NVSwitches, other
//! switches and links, and ends with the kind of GPU; then the numbers of all switches follow. Each GPU has a NIC at each of its links.

use super::{HOSTS_MAX, SWITCHES_MAX, Topology, TopologyError, check, node_index};
use crate::graph::{Graph, Link, NodeId};
use crate::queue::HORIZON_PS;
use roci_units::{BitsPerSec, ParseError, Ratio, Span};
use std::iter::Peekable;
use std::str::FromStr;

/// Why a text is not a topology file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpccError {
    /// There is nothing in the text.
    #[error("the file is empty; begin it with {HEADER}")]
    Empty,
    /// Fewer switches are listed than the first line counts.
    #[error(
        "line {line}: the first line counts {counted} switches, but only {found} are listed before this; list the others by \
         their numbers, or correct the count"
    )]
    FewerSwitches {
        /// The number of the line that lists no switch, or of the last one, from 1.
        line: usize,
        /// What the first line says.
        counted: u32,
        /// How many are listed.
        found: u32,
    },
    /// More switches are listed than the first line counts.
    #[error(
        "line {line}: more switches are listed than the {counted} that the first line counts; correct the count or the list"
    )]
    MoreSwitches {
        /// Its number, from 1.
        line: usize,
        /// What the first line says.
        counted: u32,
    },
    /// Fewer links than the first line counts.
    #[error(
        "the first line counts {counted} links, but {found} follow; add the others, or correct the count"
    )]
    FewerLinks {
        /// What the first line says.
        counted: u32,
        /// How many there are.
        found: u32,
    },
    /// No node is a host.
    #[error(
        "line {line}: {switches} of {nodes} nodes are switches, which leaves no host; count the hosts among the nodes too"
    )]
    NoHost {
        /// Its number, from 1.
        line: usize,
        /// How many nodes there are.
        nodes: u32,
        /// How many of them are switches.
        switches: u32,
    },
    /// Servers would have different numbers of GPUs.
    #[error(
        "line {line}: {hosts} GPUs are not divided evenly into servers of {gpus}; correct one of the counts"
    )]
    UnevenServers {
        /// Its number, from 1.
        line: usize,
        /// How many nodes are no switches.
        hosts: u32,
        /// What the first line says of a server.
        gpus: u32,
    },
    /// A line has another form.
    #[error("line {line}: {text:?} cannot be read here; write {expected}")]
    Form {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A rate, delay or loss cannot be read.
    #[error("line {line}: {text:?}: {reason}")]
    Quantity {
        /// Its number, from 1.
        line: usize,
        /// The quantity.
        text: String,
        /// What is wrong with it.
        reason: ParseError,
    },
    /// More packets lost than sent.
    #[error("line {line}: a loss of {loss}; it must be at most 1")]
    Loss {
        /// Its number, from 1.
        line: usize,
        /// The loss.
        loss: Ratio,
    },
    /// A node number beyond those that the first line counts.
    #[error(
        "line {line}: node {node}, but the first line counts {nodes} nodes, from 0; use a lower number, or correct the count"
    )]
    UnknownNode {
        /// Its number, from 1.
        line: usize,
        /// The node.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// A switch is listed twice.
    #[error(
        "line {line}: switch {node} is listed twice; name another one, or correct the count of switches in the first line"
    )]
    SwitchTwice {
        /// Its number, from 1.
        line: usize,
        /// The node.
        node: u32,
    },
    /// A delay longer than a run may last.
    #[error("line {line}: a delay of {delay}; shorten it: a run lasts less than 75 minutes")]
    Delay {
        /// Its number, from 1.
        line: usize,
        /// The delay.
        delay: Span,
    },
    /// The network does not hold together.
    #[error("{}{reason}", line.map(|l| format!("line {l}: ")).unwrap_or_default())]
    Topology {
        /// The number of the line that is to blame, if one is.
        line: Option<usize>,
        /// What is wrong.
        reason: TopologyError,
    },
}

/// Reads a topology file.
///
/// # Errors
/// When a line has another form, a number is out of range, or the network does not hold together; with the line.
pub fn read(text: &str) -> Result<Topology, HpccError> {
    let mut lines = Lines::new(text);
    let Header { line, counts: [nodes, switches, links], per_server } = lines.header()?;
    if switches >= nodes {
        return Err(HpccError::NoHost { line, nodes, switches });
    }
    let hosts = nodes - switches;
    if let Some(gpus) = per_server.filter(|gpus| *gpus == 0 || !hosts.is_multiple_of(*gpus)) {
        return Err(HpccError::UnevenServers { line, hosts, gpus });
    }
    let refused = |reason| HpccError::Topology { line: Some(line), reason };
    // Bounded before anything is allocated by these numbers.
    check::switch_count(u64::from(switches)).map_err(refused)?;
    check::host_count(u64::from(nodes - switches)).map_err(refused)?;
    check::link_count(u64::from(links)).map_err(refused)?;
    debug_assert!(nodes <= HOSTS_MAX + SWITCHES_MAX, "the sum of the two bounds");

    let is_switch = lines.switches(nodes, switches)?;
    let (mut graph, places) = name_nodes(&is_switch);
    let (mut loss, mut note) = (Vec::new(), None);
    let mut link_lines = Vec::new();
    for index in 0..links {
        let next = lines.content.next().ok_or(HpccError::FewerLinks { counted: links, found: index })?;
        let (line, ends, quantities) = link(next, nodes)?;
        let [a, b] = ends.map(|node| places[node as usize]);
        graph.links.push(Link { a, b, rate: quantities.rate, delay: quantities.delay });
        if quantities.loss != Ratio::ZERO {
            loss.push((index, quantities.loss));
        }
        link_lines.push(line);
    }
    if let Some((line, _)) = lines.content.find(|(_, text)| is_link(text, nodes)) {
        note = Some(format!(
            "the topology file counts {links} links; from line {line} on there are more, which are not read"
        ));
    }
    let topology = Topology::of(graph).map_err(|reason| {
        let line = reason.link().and_then(|link| link_lines.get(link)).copied();
        HpccError::Topology { line, reason }
    })?;
    Ok(Topology { loss, note, per_server, ..topology })
}

/// The graph's nodes, and where each node of the file is among them.
fn name_nodes(is_switch: &[bool]) -> (Graph, Vec<NodeId>) {
    let hosts = is_switch.iter().filter(|&&switch| !switch).count();
    let mut graph = Graph::default();
    let mut places = Vec::with_capacity(is_switch.len());
    for (node, &switch) in is_switch.iter().enumerate() {
        if switch {
            places.push(NodeId(node_index(hosts + graph.switches.len())));
            graph.switches.push(format!("s{node}"));
        } else {
            places.push(NodeId(node_index(graph.hosts.len())));
            graph.hosts.push(format!("h{node}"));
        }
    }
    (graph, places)
}

/// What a link's line says besides its ends.
struct Quantities {
    rate: BitsPerSec,
    delay: Span,
    loss: Ratio,
}

/// What the first line says.
struct Header {
    line: usize,
    /// Nodes, switches and links.
    counts: [u32; 3],
    /// GPUs of a server.
    per_server: Option<u32>,
}

/// The lines of the file that say something, with their numbers.
struct Lines<'a> {
    content: Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>,
    last: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let numbered = text.lines().enumerate().map(|(index, line)| {
            let content = line.split('#').next().unwrap_or_default().trim();
            (index + 1, content)
        });
        let content: Box<dyn Iterator<Item = (usize, &'a str)> + 'a> =
            Box::new(numbered.filter(|(_, content)| !content.is_empty()));
        Self { content: content.peekable(), last: text.lines().count() }
    }

    fn header(&mut self) -> Result<Header, HpccError> {
        let (line, text) = self.content.next().ok_or(HpccError::Empty)?;
        let form = || HpccError::Form { line, text: text.to_owned(), expected: HEADER };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let number = |field: &str| field.parse::<u32>().map_err(|_| form());
        match fields[..] {
            [nodes, switches, links] => {
                let counts = [number(nodes)?, number(switches)?, number(links)?];
                Ok(Header { line, counts, per_server: None })
            }
            // Some versions count GPUs of a node behind their kind.
            [nodes, gpus, nv_switches, switches, links, _]
            | [nodes, gpus, nv_switches, switches, links, _, _] => {
                let switches = number(nv_switches)?.checked_add(number(switches)?).ok_or_else(form)?;
                let counts = [number(nodes)?, switches, number(links)?];
                Ok(Header { line, counts, per_server: Some(number(gpus)?) })
            }
            _ => Err(form()),
        }
    }

    fn switches(&mut self, nodes: u32, switches: u32) -> Result<Vec<bool>, HpccError> {
        let mut is_switch = vec![false; nodes as usize];
        let mut found = 0;
        while found < switches {
            let fewer = |line| HpccError::FewerSwitches { line, counted: switches, found };
            let (line, text) = self.content.next().ok_or(fewer(self.last))?;
            // A line with anything else is the first link already.
            let numbers = text.split_whitespace().map(|field| field.parse::<u32>().map_err(|_| fewer(line)));
            for node in numbers.collect::<Result<Vec<_>, _>>()? {
                if found == switches {
                    return Err(HpccError::MoreSwitches { line, counted: switches });
                }
                match is_switch.get_mut(node as usize) {
                    None => return Err(HpccError::UnknownNode { line, node, nodes }),
                    Some(true) => return Err(HpccError::SwitchTwice { line, node }),
                    Some(switch) => *switch = true,
                }
                found += 1;
            }
        }
        Ok(is_switch)
    }
}

/// What the first line should be.
const HEADER: &str = "\"nodes switches links\", three numbers, or as SimAI does \"nodes gpus-per-server nvswitches switches links gpu-type\"";
/// What a line after the switches says.
const LINK: &str = "a link: \"node node rate delay loss\", such as \"0 320 100Gbps 1us 0\"";

/// A link's ends and quantities, with the line's number, where there are `nodes` nodes.
fn link((line, text): (usize, &str), nodes: u32) -> Result<(usize, [u32; 2], Quantities), HpccError> {
    let form = || HpccError::Form { line, text: text.to_owned(), expected: LINK };
    let fields: Vec<&str> = text.split_whitespace().collect();
    // The loss may be left out; it is zero in nearly every file.
    let (&[a, b, rate, delay], rest) = fields.split_first_chunk().ok_or_else(form)?;
    let loss = match rest {
        [] => "0",
        [loss] => loss,
        _ => return Err(form()),
    };
    let mut ends = [0; 2];
    for (end, field) in ends.iter_mut().zip([a, b]) {
        *end = field.parse().map_err(|_| form())?;
        if *end >= nodes {
            return Err(HpccError::UnknownNode { line, node: *end, nodes });
        }
    }
    let quantities = Quantities {
        rate: quantity(line, rate)?,
        delay: quantity(line, delay)?,
        loss: quantity(line, loss)?,
    };
    if quantities.delay.as_ps() >= HORIZON_PS {
        return Err(HpccError::Delay { line, delay: quantities.delay });
    }
    if quantities.loss.is_proper() {
        Ok((line, ends, quantities))
    } else {
        Err(HpccError::Loss { line, loss: quantities.loss })
    }
}

/// Whether `text` could be a link's line, unlike an explanation.
fn is_link(text: &str, nodes: u32) -> bool {
    let ends = text.split_whitespace().take(2).filter(|end| end.parse().is_ok_and(|node: u32| node < nodes));
    ends.count() == 2
}

fn quantity<T: FromStr<Err = ParseError>>(line: usize, text: &str) -> Result<T, HpccError> {
    text.parse().map_err(|reason| HpccError::Quantity { line, text: text.to_owned(), reason })
}
